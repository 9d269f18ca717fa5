"""Expected failures: the one reader of what a caller lists, and the one matcher of ids of results, and of checks."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from nceref.cases.former_ids import current, warn_of_former
from nceref.cases.records import Result, Status
from nceref.errors import InputError
from nceref.output import files
from nceref.output.json_text import json_object
from nceref.output.text import shown
from nceref.output.words import alike, as_code, did_you_mean

OUT_OF_DATE = "expected-failure"
"""Quantity of the result that stands for an expected failure which matches none, or has another explanation."""
FAILING = frozenset[Status]({"fail", "error", "xpass"})
"""Statuses of results that are not as they should be."""


@dataclass(frozen=True)
class ExpectedFailure:
    """The reason why results are expected to fail, and what holds where they pass.

    Attributes
    ----------
    reason : str
    link : str
        Address of a page that says more; may be empty.
    strict : bool or "some"
        Whether each result that passes is a failure; ``some``: only where none of them fails.
    diagnosis : str
        Id of what explains the difference; may be empty, and then it is not compared.
    """

    reason: str
    link: str = ""
    strict: bool | Literal["some"] = True
    diagnosis: str = ""

    def __str__(self) -> str:
        reason = self.reason.removesuffix(".") if self.link else self.reason
        return ", ".join(filter(None, (self.diagnosis, reason, self.link)))


def read_expected_failures(given: Any) -> dict[str, ExpectedFailure]:
    """An argument ``expected_failures``: ids, with ``*`` for any letters, to what is expected.

    `given`: a mapping of ids to reasons, as text or as `ExpectedFailure`. Raises `InputError` for anything else.
    """
    if not isinstance(given, Mapping) or not all(isinstance(id, str) for id in given):
        msg = f"`expected_failures` must map ids to reasons, got {shown(given)}"
        raise InputError(msg)
    if wrong := [id for id, reason in given.items() if not isinstance(reason, str | ExpectedFailure)]:
        msg = f"`expected_failures` must map ids to reasons, got {shown(given[wrong[0]])} for {shown(wrong[0])}"
        raise InputError(msg)
    return {id: ExpectedFailure(reason) if isinstance(reason, str) else reason for id, reason in given.items()}


def expected_failures_in(path: str | os.PathLike[str], option: str) -> dict[str, ExpectedFailure]:
    """The expected failures of a file: a JSON object of reasons, or lines of an id and its reason; ``#`` is a comment.

    Raises `InputError` for an id without a reason. `option`: by which the file was given, for errors.
    """
    text = files.read_text(path, option)
    if text.lstrip().startswith(("{", "[")):
        lines = list(json_object(path, text).items())
    else:
        kept = (line.split("#", 1)[0].strip().partition(" ") for line in text.splitlines())
        lines = [(id, reason) for id, _, reason in kept if id]
    for id, reason in lines:
        if not (isinstance(reason, str) and reason.strip()):
            msg = f"{path}: {id!r} has no reason; write the id, a space and why it fails"
            raise InputError(msg)
    # A line may be "id: reason" as well.
    return read_expected_failures({id.removesuffix(":"): reason.strip() for id, reason in lines})


def matching(id: str, names: Iterable[str]) -> list[str]:
    """The names, with ``*`` for any letters, that an id has or had; the first says why a result of this id fails."""
    from fnmatch import fnmatchcase

    return [name for name in names if id == current(name) or fnmatchcase(id, current(name))]


def first_matching(id: str, names: Iterable[str]) -> str | None:
    """The first name that matches an id, as `matching` has them; None for none."""
    return next(iter(matching(id, names)), None)


def _without_its_run(name: str, ids: Iterable[str]) -> str:
    """The remedy for a name that has an id but for what ids of several runs begin with, such as their format."""
    rests = (id.partition("/")[2] for id in ids)
    lacks = any("/" in rest and matching(rest, (name,)) for rest in rests)
    return f"ids begin with the format here; write {as_code(f'*/{name}')}" if lacks else ""


_MARKS: Mapping[str, Status] = {"fail": "xfail", "error": "xfail", "pass": "xpass"}


def in_use(results: Iterable[Result], expected: Iterable[str]) -> dict[str, int]:
    """The number of results that fail as each name has it, where any does; `results` are marked."""
    names = (first_matching(r.id, expected) for r in results if r.status == "xfail")
    return dict(Counter(name for name in names if name is not None))


def changed_failures(
    results: Sequence[Result], expected: Mapping[str, ExpectedFailure], found: Sequence[str]
) -> list[Result]:
    """A result that fails for each expected failure whose explanation is another one than is listed.

    `results`: marked, see `mark_expected_failures`. `found`: ids of what explains the difference, those of several at
    once joined by ``+``; the one that is listed may be a part of these.
    """
    words, out = " and ".join(map(as_code, found)) or "no explanation", []
    for name in in_use(results, expected):
        failure = expected[name]
        if failure.diagnosis and not any(failure.diagnosis in (id, *id.split("+")) for id in found):
            why = (
                f"expected to fail ({failure.reason}), but its explanation has changed: expected"
                f" {as_code(failure.diagnosis)}, found {words}; mend what is new, or correct `diagnosis` and `reason`"
            )
            out.append(Result(name, "", OUT_OF_DATE, "fail", None, None, None, why))
    return out


def mark_expected_failures(results: Sequence[Result], expected: Mapping[str, ExpectedFailure]) -> list[Result]:
    """The results with those that were expected to fail marked: ``xfail``, or ``xpass`` if they pass.

    Of several names that a result has, the first one says why it fails and whether it may pass. A name that matches
    nothing that was judged becomes a failure of its own: it is out of date.

    `expected`: ids of results, with ``*`` for any letters, to why they fail. Result: in the same order; what is out of
    date stands at the end.
    """
    warn_of_former(expected)
    used, failing, out = set[str](), set[str](), list[Result]()
    ids = [r.id for r in results]
    for result in results:
        names = matching(result.id, expected)
        if not names or result.status not in _MARKS:
            out.append(result)
            continue
        used.update(names)
        passes, failure = result.status == "pass", expected[names[0]]
        failing.update(() if passes else names)
        if passes and failure.strict is not True:
            out.append(result)
            continue
        why = f"expected to fail ({failure}), but it passes" if passes else f"{result.why} [{failure}]"
        out.append(replace(result, status=_MARKS[result.status], why=why))
    for name, failure in expected.items():
        if name not in used or (failure.strict == "some" and name not in failing):
            nothing, meant = "none of its results does", ""
            if name not in used:
                nothing, meant = "no result has this id", did_you_mean(alike(name, ids)[:2], as_code)
                meant = _without_its_run(name, ids) or meant
            why = f"expected to fail, but {nothing}; {meant or 'remove it from the expected failures'}"
            out.append(Result(name, "", OUT_OF_DATE, "fail", None, None, None, why))
    return out
