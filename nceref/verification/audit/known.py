"""What is known of released packages: differences that were looked at, each with its reason and a link."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from nceref.verification.manifest.expected_failures import listed

PACKAGE, FILE = "nceref.verification.audit", "nceref.toml"


@dataclass(frozen=True)
class Difference:
    """A difference of a released peer that was looked at: an entry of the manifest.

    Attributes
    ----------
    target : str
        Name of the target.
    versions : tuple of str
        The releases that it was measured on; it does not hold for any other.
    dtypes : tuple of str
    results : tuple of str
        Ids of the results that fail; ``*`` stands for any letters. Each must match one.
    diagnosis : str
        Id that the report must give, alone or beside others; empty where nothing on the list fits.
    reason : str
        What the peer does, in a sentence.
    link : str
        Where that can be read.
    ranks : mapping or None
        What it is constructed with, for a difference on several ranks; None for one that a single process has.
    """

    target: str
    versions: tuple[str, ...]
    dtypes: tuple[str, ...]
    results: tuple[str, ...]
    diagnosis: str
    reason: str
    link: str
    ranks: Mapping[str, Any] | None = None

    def covers(self, result: str) -> bool:
        """Whether a result of this id may fail."""
        return any(fnmatchcase(result, pattern) for pattern in self.results)

    def outdated(self, failing: Sequence[str], diagnoses: Sequence[str]) -> Iterable[str]:
        """What of this entry is no longer true.

        Parameters
        ----------
        failing : sequence of str
            Ids of the results that fail.
        diagnoses : sequence of str
            Ids of the diagnoses of the report; of several conventions at once, joined by ``+``.

        Yields
        ------
        str
            A sentence for each pattern that matches nothing, and for a diagnosis that was not given.
        """
        where = f"{FILE} of {PACKAGE}"
        for pattern in self.results:
            if not any(fnmatchcase(result, pattern) for result in failing):
                yield f"known difference {pattern} does not fail any more; remove it from {where}"
        if self.diagnosis and not any(self.diagnosis in (id, *id.split("+")) for id in diagnoses):
            given = ", ".join(diagnoses) or "no diagnosis"
            yield f"known as {self.diagnosis}, but the report gives {given}; correct {where}"


@cache
def known() -> tuple[Difference, ...]:
    """The expected failures of the manifest of released packages, for every release that they name."""
    content = tomllib.loads(files(PACKAGE).joinpath(FILE).read_text(encoding="utf-8"))
    tables = [{**content["defaults"], **table} for table in content["target"]]
    in_one_process = {(t["target"], row["reason"]) for t in tables if "ranks" not in t for row in _rows(t)}
    return tuple(
        _difference(table, row)
        for table in tables
        for row in _rows(table)
        # On several ranks, what one process has as well is not listed again.
        if "ranks" not in table or (table["target"], row["reason"]) not in in_one_process
    )


def _rows(table: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = table.get("expected_failures", ())
    return rows


def _difference(table: Mapping[str, Any], row: Mapping[str, Any]) -> Difference:
    ((_, versions),) = row["versions"].items()
    dtypes = row.get("dtypes", table["dtypes"])
    ways = table.get("init", {}) if "ranks" in table else None
    return Difference(
        target=table["target"],
        versions=tuple(listed(versions)),
        dtypes=tuple(listed(dtypes)),
        results=tuple(listed(row["id"])),
        diagnosis=row.get("diagnosis", ""),
        reason=row["reason"],
        link=row["link"],
        ranks=ways,
    )
