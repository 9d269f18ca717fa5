"""One check: a quantity of a case, which it reads from the verification of its target."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nceref.cases.judge import OUT_OF_DATE, constants, expected_failure_of
from nceref.cases.records import Probe, Result
from nceref.errors import InputError, NcerefError
from nceref.output.text import shown
from nceref.verification.conformance.failure_line import failure_line
from nceref.verification.conformance.target import Target
from nceref.verification.conformance.verification import TargetVerification, verification_of
from nceref.verification.report import BROKEN_CHECKER, DIFFERS, Report

_FAILING = ("fail", "error", "xpass")


@dataclass(frozen=True)
class ExpectedOutcome:
    """What is expected of a check.

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
    """

    reason: str = ""
    of_case: bool = False
    held: frozenset[tuple[str, str]] = frozenset()
    listed: bool = False


@dataclass(frozen=True)
class Check:
    """A quantity of one case, or with an empty `case` the run as a whole; called with a target, it asserts.

    With `ranks` it is the whole run on so many ranks; without `quantity`, all of a case. A target is verified once,
    and all of its checks read that.
    """

    case: str
    suite: str = "standard"
    ranks: int = 0
    quantity: str = ""
    expectation: ExpectedOutcome = field(default=ExpectedOutcome(), compare=False, repr=False)

    def __str__(self) -> str:
        if not self.case:
            return f"{self.ranks}-rank{'s' * (self.ranks > 1)}" if self.ranks else "whole-run"
        quantity = self.quantity.replace("grad.", "gradient-", 1)
        return f"{self.case}-{quantity}" if quantity else self.case

    def __call__(self, target: Target) -> None:
        """Raise AssertionError unless the target passes; what cannot be judged is skipped."""
        __tracebackhide__ = True
        verification = verification_of(target, self.suite, self.ranks)
        failing, line = self._failure(verification)
        expected = self.expectation
        if expected.reason and _is_judged(verification):
            if line:
                import pytest

                pytest.xfail(expected.reason)
            elif self._passes_unexpectedly(verification):
                msg = f"{self}: expected to fail ({expected.reason}), but it passes"
                raise AssertionError(msg)
        if line:
            raise AssertionError(_with_page(line, failing, verification, str(self)))
        if self.case:
            self._leave_out(verification)

    def _leave_out(self, verification: TargetVerification) -> None:
        """Tell pytest of what fails as the target's own options expect it to, and of what was not judged."""
        __tracebackhide__ = True
        known = next((r for r in self._own(verification.report) if r.status == "xfail"), None)
        reason = self._unjudged(verification.report)
        if known is None and not reason:
            return
        import pytest

        if known is None:
            pytest.skip(reason)
        entries = verification.options["expected_failures"]
        pytest.xfail(str(entries[expected_failure_of(known.id, entries)]))

    def _failure(self, verification: TargetVerification) -> tuple[Sequence[Result], str]:
        """What fails, and the line that says so; empty where nothing does."""
        try:
            report = verification.report
        except NcerefError as error:
            return (), f"{verification.target}: {error}"
        if not self.case:
            held = not self.expectation.reason and self._all_held(report)
            return (), "" if report.ok or held else failure_line(report)
        if report.results and not any(map(self._is_of_case, report.results)):
            msg = f"`case` of a Check must be a case of its target that is judged, got {shown(self.case)}"
            raise InputError(msg)
        own = self._own(report)
        failing = [r for r in own if r.status in _FAILING and not self._is_listed(r)]
        # A checker that passes wrong answers says nothing, and so does one that could not run the target.
        mute = report.exit_code == BROKEN_CHECKER or (not own and not report.results)
        return failing, failure_line(report, () if mute else failing) if failing or mute else ""

    def _own(self, report: Report) -> list[Result]:
        return [r for r in report.results if self._is_of_case(r) and self._is_about(r)]

    def _is_of_case(self, result: Result) -> bool:
        return result.case.rpartition("/")[2] == self.case

    def _is_about(self, result: Result) -> bool:
        if not self.quantity:
            return True
        # Without an answer there is no gradient either.
        behavior = result.quantity.startswith("behavior.") and (self.quantity == "value" or result.status == "error")
        return behavior or result.quantity in (self.quantity, f"{self.quantity}.finite")

    def _all_held(self, report: Report) -> bool:
        """Whether nothing fails but what other checks expect to fail."""
        failing = [r for r in report.results if r.status in _FAILING]
        return report.exit_code == DIFFERS and bool(failing) and all(map(self._is_held, failing))

    def _is_listed(self, result: Result) -> bool:
        return self.expectation.listed and (result.status == "xpass" or result.quantity == OUT_OF_DATE)

    def _is_held(self, result: Result) -> bool:
        if self._is_listed(result):
            return True
        quantity = result.quantity.removesuffix(".finite")
        quantity = "value" if quantity.startswith("behavior.") else quantity
        return (result.case.rpartition("/")[2], quantity) in self.expectation.held

    def _passes_unexpectedly(self, verification: TargetVerification) -> bool:
        if not self.expectation.of_case:
            return not (self.case and self._unjudged(verification.report))
        # One check speaks for its case.
        whole = Check(self.case, self.suite, self.ranks)
        return self.quantity == "value" and not whole._failure(verification)[1]

    def _unjudged(self, report: Report) -> str:
        """Why there is nothing to judge, or empty."""
        own = self._own(report)
        if any(r.status not in ("skip", "inconclusive") for r in own):
            return ""
        return next((r.why for r in own), "there is none to judge on this case")


def _is_judged(verification: TargetVerification) -> bool:
    """Whether there are results: what cannot be run, or a checker that is broken, is no failure that was expected."""
    try:
        report = verification.report
    except NcerefError:
        return False
    return bool(report.results) and report.exit_code != BROKEN_CHECKER


def _with_page(line: str, failing: Sequence[Result], verification: TargetVerification, check: str) -> str:
    """The message of a failure: the whole report with the first one of a target, and only then."""
    details = [f"{r.id}: {r.why}" for r in failing[:3]]
    if verification.printed:
        return "\n".join([line, *details, f"the report is shown with the failure of {verification.printed}"])
    try:
        page = str(verification.report)
    except NcerefError:
        return line
    verification.printed = check
    return "\n".join([line, *details, "", page])


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
        In the order of the corpus: the value of a case, then its gradients; the whole run comes last.
    """
    if numbers := tuple(ranks):
        yield from (Check("", suite, count) for count in numbers)
        return
    given: Any = target
    if not isinstance(given, Target):
        msg = f"`target` must be a Target, got {shown(given)}"
        raise InputError(msg)
    judged = [probe for probe in verification_of(target, suite).probes if not probe.skip or probe.must_refuse]
    names = [p.name for p in judged[0].loss.parameters] if judged else []
    anywhere = {name for probe in judged for name in probe.grads}
    for probe in judged:
        yield Check(probe.id, suite, quantity="value")
        yield from (Check(probe.id, suite, quantity=f"grad.{n}") for n in names if _has_gradient(probe, n, anywhere))
    yield Check("", suite)


def _has_gradient(probe: Probe, name: str, anywhere: set[str]) -> bool:
    """Whether a gradient is judged there; on a kink, whether it is finite."""
    if probe.must_refuse:
        return False
    on_kink = not probe.grads and name in anywhere and probe.inputs.get(name) is not None
    return on_kink or name in probe.grads or name in constants(probe)
