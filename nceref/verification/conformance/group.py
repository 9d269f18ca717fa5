"""A test of several checks: a quantity on all cases, the identities, or a family of ways of calling."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nceref.cases.judge import of_bound
from nceref.cases.records import Result
from nceref.output.words import out_of
from nceref.verification.conformance.check import Check, CheckOutcome, end_quietly
from nceref.verification.conformance.target import Target
from nceref.verification.conformance.verification import verification_of
from nceref.verification.modes import MODES

SHOWN = 6
"""Cases and ids that are named."""


@dataclass(frozen=True)
class CheckGroup:
    """Checks that are one test; called with a target, it asserts.

    Attributes
    ----------
    name : str
        Such as ``value``, ``gradient-keys``, ``identities`` or ``memory-layouts``.
    members : tuple of Check
        Each with what is expected of it.
    prefix : str
        What ids of members begin with; empty where results are expected to fail, and not checks.
    reason : str
        Why any of them may fail; empty where only what is expected of a member may.
    command : str
        What prints the whole report; empty: the call in Python.
    """

    name: str
    members: tuple[Check, ...] = field(repr=False)
    prefix: str = ""
    reason: str = ""
    command: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.name

    def __call__(self, target: Target) -> None:
        """Raise AssertionError unless all members pass, or fail as expected; what cannot be judged is skipped."""
        __tracebackhide__ = True
        first = self.members[0]
        verification = verification_of(target, first.suite, first.ranks)
        outcomes = tuple((member, member.outcome(verification)) for member in self.members)
        verification.warn_of_one_value()
        if self.reason and verification.is_judged:
            outcomes = self._intended(outcomes)
        if lines := list(self._failure(outcomes)):
            raise AssertionError("\n".join([*lines, *verification.explanation(self.name, self.command)]))
        end_quietly(_joined([outcome for _, outcome in outcomes]))

    def _intended(self, outcomes: Sequence[tuple[Check, CheckOutcome]]) -> tuple[tuple[Check, CheckOutcome], ...]:
        """The outcomes where the group is expected to fail: one that fails is enough."""
        seen = {outcome.status for _, outcome in outcomes}
        if not seen & {"fail", "xfail"} and seen & {"pass"}:
            msg = f"{self}: expected to fail ({self.reason}), but it passes"
            return ((self.members[0], CheckOutcome("xpass", msg)),)
        return tuple(
            (m, CheckOutcome("xfail", self.reason, o.failing) if o.status == "fail" else o) for m, o in outcomes
        )

    def _failure(self, outcomes: Sequence[tuple[Check, CheckOutcome]]) -> Iterator[str]:
        """The failures, in lines; none where nothing failed that was not expected."""
        failed = [(member, outcome) for member, outcome in outcomes if outcome.status == "fail"]
        passed = [outcome.text for _, outcome in outcomes if outcome.status == "xpass"]
        if failed:
            yield failed[0][1].text
        results = [r for _, outcome in failed for r in outcome.failing]
        if results:
            judged = sum(outcome.status != "skip" for _, outcome in outcomes)
            noun = "case" if failed[0][0].case else "check"
            named = [member.case or str(member) for member, _ in failed]
            yield f"fails on {out_of(len(failed), judged, noun)}: {_few(named)}"
            yield from _numbers(results)
            if any(outcome.status == "xfail" for _, outcome in outcomes):
                yield f"not among the expected failures: {self._ids([member for member, _ in failed], results)}"
        yield from passed[:SHOWN]
        if len(passed) > SHOWN:
            yield f"and {len(passed) - SHOWN} more that pass"

    def _ids(self, failed: Sequence[Check], results: Sequence[Result]) -> str:
        """The ids to list for failures to be expected."""
        if not self.prefix:
            return _few(dict.fromkeys(r.id for r in results))
        return f"{_few(f'{self.prefix}-{member}' for member in failed)}; or all as {self.prefix}-{self}"


def _few(names: Iterable[str]) -> str:
    names = list(names)
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*names[:SHOWN], *more])


def _numbers(results: Sequence[Result]) -> Iterator[str]:
    """The first failure, and the one that is off most."""
    first, worst = results[0], max(results, key=_off)
    yield f"{first.id}: {first.why}"
    # Of those that are off alike the first is enough.
    if _off(worst) > 1.01 * _off(first):
        yield f"worst, {worst.id}: {worst.why}"


def _off(result: Result) -> float:
    """The error of a result: relative to the reference, or to its bound where that is 0."""
    if result.error is None:
        return 0.0
    return result.error / result.size if result.size else of_bound(result) or 0.0


def _joined(outcomes: Sequence[CheckOutcome]) -> CheckOutcome:
    """The outcome of members of which none fails: as expected where one is, and skipped where all are."""
    for status in ("xfail", "skip"):
        own = [outcome for outcome in outcomes if outcome.status == status]
        if own and (status == "xfail" or len(own) == len(outcomes)):
            return CheckOutcome(status, "; ".join(dict.fromkeys(outcome.text for outcome in own)))
    return CheckOutcome("pass")


def grouped(members: Iterable[Check], prefix: str = "", command: str = "") -> tuple[CheckGroup, ...]:
    """The checks of a target as about ten tests: the value, each gradient, identities, families of ways of calling.

    `members`: as `checks` yields them, without the whole run. `prefix` and `command`: of the groups.
    """
    groups: dict[str, list[Check]] = {}
    for member in members:
        groups.setdefault(_name(member), []).append(member)
    return tuple(CheckGroup(name, tuple(own), prefix, command=command) for name, own in groups.items())


def _name(member: Check) -> str:
    kind, _, rest = member.quantity.partition(".")
    if kind == "mode":
        return MODES[rest].family or rest
    return {"identity": "identities", "grad": f"gradient-{rest}"}.get(kind, kind)
