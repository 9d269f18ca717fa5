"""Expected failures of checks: by id, by globs, or by a function."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.cases.expected_failures import ExpectedFailure, matching, read_expected_failures
from nceref.cases.former_ids import current, warn_of_former
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.verification.conformance.check import Check
from nceref.verification.conformance.target import Target

Reasons = Mapping[str, str] | Iterable[str] | Callable[[Target, Check], str | None]
"""How a caller says which checks fail, and why."""
_NO_REASON = "expected to fail"


@dataclass
class ExpectedFailures:
    """The failures that a caller expects, and the entries that have matched a check."""

    given: Mapping[str, ExpectedFailure]
    function: Callable[[Target, Check], str | None] | None = None
    matched: set[str] = field(default_factory=set)
    _of_groups: set[str] = field(default_factory=set)

    def reason(self, target: Target, check: Check, names: Iterable[str]) -> tuple[str, bool]:
        """Why a check fails, and whether any check of its case may.

        `names`: what the target is called in ids. Result: the reason is empty where it is expected to pass.
        """
        if self.function is not None:
            return _answer(self.function(target, check)), False
        ids = [f"{name}-{check}" for name in names]
        cases = [f"{name}-{check.case}" for name in names] if check.quantity else []
        entries = [(entry, False) for entry in self.given if current(entry) in ids]
        entries += [(entry, True) for entry in self.given if current(entry) in cases]
        entries += [(entry, False) for id in ids for entry in matching(id, self.given)]
        # An entry that another one overrules is in use as well.
        self.matched.update(entry for entry, _ in entries)
        return (str(self.given[entries[0][0]]) or _NO_REASON, entries[0][1]) if entries else ("", False)

    def names_exactly(self, check: Check, names: Iterable[str]) -> bool:
        """Whether the id of a check is listed as it is, not by a pattern or a function; parameters as for `reason`."""
        return not {f"{name}-{check}" for name in names}.isdisjoint(map(current, self.given))

    def reason_of_group(self, group: object, names: Iterable[str]) -> str:
        """Why a group of checks fails, where an entry is about the group; empty otherwise.

        `group`: whose text is its id. An entry that its members have, or other checks, is about these. `names`: what
        the target is called in ids.
        """
        ids = [f"{name}-{group}" for name in names]
        own = [entry for entry in self.given if entry not in self.matched or current(entry) in ids]
        entries = [entry for id in ids for entry in matching(id, own)]
        self._of_groups.update(entries)
        return str(self.given[entries[0]]) or _NO_REASON if entries else ""

    def unmatched(self) -> Iterator[str]:
        """The entries that no check has."""
        yield from (entry for entry in self.given if entry not in self.matched | self._of_groups)


def _answer(given: Any) -> str:
    if given is not None and not isinstance(given, str):
        msg = f"`expected_failures` must return a reason or None, got {shown(given)}"
        raise InputError(msg)
    return given or ""


def expected_failures_of(given: Any) -> ExpectedFailures:
    """An argument ``expected_failures`` of checks: a mapping, an iterable of ids, a function or None.

    Raises `InputError` for anything else.
    """
    if given is None:
        return ExpectedFailures({})
    if not isinstance(given, Mapping) and callable(given):
        return ExpectedFailures({}, given)
    if isinstance(given, list | tuple | set | frozenset) and all(isinstance(entry, str) for entry in given):
        given = dict.fromkeys(given, _NO_REASON)
    warn_of_former(expected := read_expected_failures(given))
    return ExpectedFailures(expected)


@dataclass(frozen=True)
class UnmatchedEntry:
    """A check that fails, for an expected failure that names no check."""

    entry: str

    def __str__(self) -> str:
        return f"expected-failure-{self.entry}"

    def __call__(self, target: Any) -> None:
        """Raise AssertionError."""
        __tracebackhide__ = True
        msg = f"`expected_failures` names no check: {shown(self.entry)}; see `pytest --collect-only`"
        raise AssertionError(msg)
