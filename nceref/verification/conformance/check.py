"""One check: a quantity of a case, which it reads from the verification of its target."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nceref.cases.expected_failures import FAILING, OUT_OF_DATE, first_matching
from nceref.cases.invariances import INVARIANCES
from nceref.cases.judge import constants
from nceref.cases.records import Probe, Result
from nceref.errors import InputError, NcerefError
from nceref.output.text import shown
from nceref.verification.conformance.failure_line import failure_line
from nceref.verification.conformance.target import Target
from nceref.verification.conformance.verification import TargetVerification, verification_of
from nceref.verification.report import BROKEN_CHECKER, DIFFERS, Report

_ON_ONE_CASE = ("identity.", "mode.")
"""Quantities that are judged on the first case where the question arises."""
_NOTHING = "no case that it could be judged on", "none to judge on this case"


@dataclass(frozen=True)
class ExpectedOutcome:
    """The outcome that is expected of a check.

    Attributes
    ----------
    reason : str
        Why it fails; empty where it does not.
    of_case : bool
        Whether any check of its case may be the one that fails.
    held : frozenset of (str, str)
        For the whole run, the cases and quantities of checks that are expected to fail.
    listed : bool
        Whether the target's own expected failures have checks of their own, which fail where one of them passes.
    strict : bool
        Whether it must fail.
    """

    reason: str = ""
    of_case: bool = False
    held: frozenset[tuple[str, str]] = frozenset()
    listed: bool = False
    strict: bool = True


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of a check.

    Attributes
    ----------
    status : str
        ``xpass`` where it was expected to fail and passes.
    text : str
        What is off in one line, the reason why it fails as expected, or why there is nothing to judge.
    failing : tuple of Result
        The results that fail, expected or not.
    """

    status: Literal["pass", "fail", "skip", "xfail", "xpass"]
    text: str = ""
    failing: tuple[Result, ...] = ()


@dataclass(frozen=True)
class Check:
    """A quantity of one case, or with an empty `case` the run as a whole; called with a target, it asserts.

    With `ranks` it is the whole run on so many ranks; without `quantity`, all of a case. An identity, or a way of
    calling, is judged on one case, which it does not name. A target is verified once, and all of its checks read that.
    """

    case: str
    suite: str = "standard"
    ranks: int = 0
    quantity: str = ""
    expectation: ExpectedOutcome = field(default=ExpectedOutcome(), compare=False, repr=False)

    def __str__(self) -> str:
        if self.is_whole_run:
            return f"{self.ranks}-rank{'s' * (self.ranks > 1)}" if self.ranks else "whole-run"
        quantity = self.quantity.replace("grad.", "gradient-", 1)
        if not self.case:
            return quantity.replace(".", "-", 1)
        return f"{self.case}-{quantity}" if quantity else self.case

    @property
    def is_whole_run(self) -> bool:
        """Whether it is about everything."""
        return not self.case and not self.quantity

    def __call__(self, target: Target) -> None:
        """Raise AssertionError unless the target passes; what cannot be judged is skipped."""
        __tracebackhide__ = True
        verification = verification_of(target, self.suite, self.ranks)
        outcome = self.outcome(verification)
        verification.warn_of_one_value()
        if outcome.status == "xpass":
            raise AssertionError(outcome.text)
        if outcome.status == "fail":
            details = [f"{r.id}: {r.why}" for r in outcome.failing[:3]]
            explanation = verification.explanation(str(self), whole=self.is_whole_run)
            raise AssertionError("\n".join([outcome.text, *details, *explanation]))
        end_quietly(outcome)

    def outcome(self, verification: TargetVerification) -> CheckOutcome:
        """The outcome according to the verification."""
        failing, line = self._failure(verification)
        expected = self.expectation
        if expected.reason and verification.is_judged:
            if line:
                return CheckOutcome("xfail", expected.reason, tuple(failing))
            if self._passes_unexpectedly(verification):
                return CheckOutcome("xpass", f"{self}: expected to fail ({expected.reason}), but it passes")
        if line:
            return CheckOutcome("fail", line, tuple(failing))
        return CheckOutcome("pass") if self.is_whole_run else self._left_out(verification)

    def _left_out(self, verification: TargetVerification) -> CheckOutcome:
        """Results that fail as the target's own options expect it to, and those that were not judged."""
        known = tuple(r for r in self._own(verification) if r.status == "xfail")
        if known:
            entries = verification.options["expected_failures"]
            return CheckOutcome("xfail", str(entries[first_matching(known[0].id, entries)]), known)
        reason = self._unjudged(verification)
        return CheckOutcome("skip", reason) if reason else CheckOutcome("pass")

    def _failure(self, verification: TargetVerification) -> tuple[Sequence[Result], str]:
        """The results that fail, and the line that says so; empty where nothing does."""
        try:
            report = verification.report
        except NcerefError as error:
            return (), f"{verification.target}: {error}"
        if self.is_whole_run:
            held = not self.expectation.reason and self._all_held(report)
            return (), "" if report.ok or held else failure_line(report)
        if self.case and report.results and not verification.results_of(self.case):
            msg = f"`case` of a Check must be a case of its target that is judged, got {shown(self.case)}"
            raise InputError(msg)
        own = self._own(verification)
        failing = [r for r in own if r.status in FAILING and not self._is_listed(r)]
        # A checker that passes wrong answers says nothing, and so does one that could not run the target.
        mute = report.exit_code == BROKEN_CHECKER or (not own and not report.results)
        return failing, failure_line(report, () if mute else failing) if failing or mute else ""

    def _own(self, verification: TargetVerification) -> list[Result]:
        return [r for r in verification.results_of(self.case) if self._is_about(r)]

    def _is_about(self, result: Result) -> bool:
        if not self.quantity or not self.case:
            return not self.quantity or result.quantity == self.quantity
        # Without an answer there is no gradient either.
        behavior = result.quantity.startswith("behavior.") and (self.quantity == "value" or result.status == "error")
        return behavior or result.quantity in (self.quantity, f"{self.quantity}.finite")

    def _all_held(self, report: Report) -> bool:
        """Whether nothing fails but what other checks expect to fail."""
        failing = [r for r in report.results if r.status in FAILING]
        return report.exit_code == DIFFERS and bool(failing) and all(map(self._is_held, failing))

    def _is_listed(self, result: Result) -> bool:
        return self.expectation.listed and (result.status == "xpass" or result.quantity == OUT_OF_DATE)

    def _is_held(self, result: Result) -> bool:
        if self._is_listed(result):
            return True
        quantity = result.quantity.removesuffix(".finite")
        quantity = "value" if quantity.startswith("behavior.") else quantity
        case = "" if quantity.startswith(_ON_ONE_CASE) else result.case.rpartition("/")[2]
        return (case, quantity) in self.expectation.held

    def _passes_unexpectedly(self, verification: TargetVerification) -> bool:
        if not self.expectation.of_case:
            return self.expectation.strict and not (not self.is_whole_run and self._unjudged(verification))
        # One check speaks for its case.
        whole = Check(self.case, self.suite, self.ranks)
        return self.quantity == "value" and not whole._failure(verification)[1]

    def _unjudged(self, verification: TargetVerification) -> str:
        """Why there is nothing to judge, or empty."""
        own = self._own(verification)
        if any(r.status not in ("skip", "inconclusive") for r in own):
            return ""
        return next((r.why for r in own), f"there is {_NOTHING[bool(self.case)]}")


def end_quietly(outcome: CheckOutcome) -> None:
    """Tell pytest of what was not judged, and of what fails as expected; anything else returns."""
    __tracebackhide__ = True
    if outcome.status not in ("skip", "xfail"):
        return
    import pytest

    (pytest.skip if outcome.status == "skip" else pytest.xfail)(outcome.text)


def checks(target: Target, suite: str = "standard", ranks: Iterable[int] = ()) -> Iterator[Check]:
    """Every check of a target: one for each quantity that the reference has an answer for, and one for the whole run.

    Parameters
    ----------
    target : Target
    suite : {"quick", "standard", "full"}
    ranks : iterable of int
        Numbers of ranks: there is one check for each, and no other.

    Yields
    ------
    Check
        In the order of the corpus: the value of a case, then its gradients; identities, ways of calling, and last the
        whole run.
    """
    if numbers := tuple(ranks):
        yield from (Check("", suite, count) for count in numbers)
        return
    given: Any = target
    if not isinstance(given, Target):
        msg = f"`target` must be a Target, got {shown(given)}"
        raise InputError(msg)
    verification = verification_of(target, suite)
    judged = [probe for probe in verification.planned.probes if not probe.skip or probe.must_refuse]
    names = [p.name for p in judged[0].loss.parameters] if judged else []
    anywhere = {name for probe in judged for name in probe.grads}
    for probe in judged:
        yield Check(probe.id, suite, quantity="value")
        yield from (Check(probe.id, suite, quantity=f"grad.{n}") for n in names if _has_gradient(probe, n, anywhere))
    for identity in INVARIANCES:
        if any(identity.concerns(probe) for probe in judged if not probe.skip):
            yield Check("", suite, quantity=f"identity.{identity.name}")
    for name in verification.planned.modes:
        yield Check("", suite, quantity=f"mode.{name}")
    yield Check("", suite)


def _has_gradient(probe: Probe, name: str, anywhere: set[str]) -> bool:
    """Whether a gradient is judged there; on a kink, whether it is finite."""
    if probe.must_refuse:
        return False
    on_kink = not probe.grads and name in anywhere and probe.inputs.get(name) is not None
    return on_kink or name in probe.grads or name in constants(probe)
