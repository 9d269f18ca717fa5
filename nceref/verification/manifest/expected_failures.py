"""The expected failures of a target, as they stand in a manifest."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nceref.cases.expected_failures import ExpectedFailure
from nceref.output.text import shown
from nceref.targets.peers.peer import installed_version
from nceref.verification.manifest.keys import NEEDED_OF_FAILURE, OF_FAILURE, TABLES, wrong_keys


@dataclass(frozen=True)
class ReadFailures:
    """The expected failures of a table that hold for what is installed, by ids of results with ``*`` for any letters.

    `keys` has the keys below the table by the same ids, for the line; `problems` what is wrong, a sentence with file
    and line each.
    """

    by_id: dict[str, ExpectedFailure] = field(default_factory=dict)
    keys: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_failures(table: Mapping[str, Any], place: Callable[..., str]) -> ReadFailures:
    """Read the expected failures of a target from its table; `place` maps keys below that to ``file:line``.

    Where they are of another kind, the table has that problem, and here are none.
    """
    out, dtypes = ReadFailures(), listed(table.get("dtypes", "float64"))
    given = table.get("expected_failures")
    rows: Sequence[Mapping[str, Any]] = given if given is not None and TABLES.fits(given) else ()
    for i, row in enumerate(rows):
        at = partial(place, "expected_failures", i)
        wrong = [*wrong_keys(row, OF_FAILURE, "an expected failure", NEEDED_OF_FAILURE, at)]
        if not wrong and (other := [each for each in listed(row.get("dtypes", ())) if each not in dtypes]):
            wrong = [f"{at('dtypes')}: the target is not judged in {other[0]}; its `dtypes` are {', '.join(dtypes)}"]
        if not wrong and _holds(row):
            failure = ExpectedFailure(
                row["reason"], row.get("link", ""), row.get("strict", True), row.get("diagnosis", "")
            )
            for id, keys in _ids(row, dtypes, not table.keys().isdisjoint(("ranks", "accumulate"))):
                if id in out.by_id:
                    wrong = [f"{at()}: the expected failure {shown(id)} stands there twice; leave one out"]
                out.by_id.setdefault(id, failure)
                out.keys.setdefault(id, ("expected_failures", i, *keys))
        out.problems.extend(wrong)
    return out


def listed(given: Any) -> Sequence[Any]:
    """A value, or several, as several."""
    return given if isinstance(given, list | tuple) else (given,)


def _holds(row: Mapping[str, Any]) -> bool:
    """Whether what is installed has the versions that it is about."""
    return all(installed_version(name) in listed(few) for name, few in row.get("versions", {}).items())


def _ids(row: Mapping[str, Any], dtypes: Sequence[str], on_ranks: bool) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """The ids of a row in every format that it is about, each with its keys below the row."""
    own = listed(row["dtypes"]) if "dtypes" in row else ("",)
    for dtype in own:
        # As results are called: of one format alone, the ids do not name it.
        format = f"{dtype}{'-' if on_ranks else '/'}" if dtype and len(dtypes) > 1 else ""
        for place, id in enumerate(listed(row["id"])):
            yield format + id, () if isinstance(row["id"], str) else ("id", place)
