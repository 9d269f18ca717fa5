"""Identification of a target: it is tried against every loss of the family whose inputs fit."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nceref.cases.records import Diagnosis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.errors import InputError, TargetError
from nceref.losses import all_losses
from nceref.output.pages import GAP, Page
from nceref.output.text import printable
from nceref.output.words import counted, letters
from nceref.targets.arguments import UNKNOWN_TO_REFERENCE
from nceref.targets.call_expression import expression
from nceref.targets.command_line import is_command
from nceref.targets.process.child import ChildRunner
from nceref.targets.runner import child_runner
from nceref.verification.report import CONFORMS, DIFFERS, INCONCLUSIVE, Report
from nceref.verification.verifier import verify_with

SHOWN = 5
"""Losses that are shown; the JSON has all that were tried."""
_FAR = "unexplained"
_MEASURED = 2
"""Losses as which a target is measured that is none of them."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A loss that the target was tried as, and what came of it."""

    loss: str
    report: Report

    @property
    def distance(self) -> tuple[int, int, int]:
        """Conforming ones first, then those with the fewest differences, then those with the fewest failures."""
        ids = [d.id for d in self.report.diagnosis if _is_named(d)]
        # An unexplained difference ranks behind every explained one, and one without a diagnosis behind both.
        differences = min((id.count("+") + 1 + 9 * (id == _FAR) for id in ids), default=0 if self.report.ok else 20)
        crashed = any(result.status == "error" for result in self.report.results)
        failures = sum(result.status in ("fail", "error") for result in self.report.results)
        unjudged = sum(result.status == "skip" for result in self.report.results)
        # What explains the few cases that could be run explains little.
        return (0 if self.report.ok else differences + 5 * crashed, failures, unjudged)


def candidates(target: Any, on_progress: Callable[..., Any] | None = None, **options: Any) -> tuple[Candidate, ...]:
    """Try a target as every loss that can call it, on the quick suite; the best candidate comes first.

    `target` and `options` are those of `verify`; losses that lack a setting, or whose inputs do not fit, are left out.
    `on_progress` is called with each report, and with the number of losses as ``total=``. Raises `TargetError` if the
    target fits no loss, with the reason of the last one, and `InputError` if `call` could be the call of no loss.
    """
    if options.get("call"):
        expression(options["call"], {p.name: None for one in all_losses().values() for p in one.parameters})
    tried: list[Candidate] = []
    reasons: list[str] = []
    if is_command(target):
        msg = f"TARGET {printable(target)} is a program, which is called for one loss: nceref verify TARGET --loss LOSS"
        raise InputError(msg)
    with process_of(target, options.get("timeout"), bool(options.get("isolate"))) as child:
        for name in all_losses():
            try:
                report = verify_with(target, name, child=child, measure=False, **{"suite": "quick", **options})
            except InputError as error:
                reasons.append(str(error))
                continue
            if on_progress is not None:
                on_progress(report, total=len(all_losses()))
            if report.exit_code in (CONFORMS, DIFFERS, INCONCLUSIVE):
                tried.append(Candidate(name, report))
            else:
                reasons.append(report.reason)
                # What hangs as one loss most likely hangs as the others, and each costs a timeout.
                if "does not return" in report.reason:
                    break
        tried.sort(key=lambda candidate: candidate.distance)
        # Only where nothing is nearer: measuring takes longer than trying.
        if tried and _unexplained(tried[0]):
            unexplained = sorted(filter(_unexplained, tried), key=_right_bits, reverse=True)
            names = [candidate.loss for candidate in unexplained][:_MEASURED]
            again = [Candidate(n, verify_with(target, n, child=child, **{"suite": "quick", **options})) for n in names]
            again.sort(key=_marks)
            tried = again + [candidate for candidate in tried if candidate.loss not in names]
    if not tried:
        ran = [reason for reason in reasons if reason.startswith("no case could be judged")]
        # One reason for all of them is about the target itself: it cannot be loaded, or not constructed.
        own = len(set(reasons)) == 1 or all(UNKNOWN_TO_REFERENCE in reason for reason in reasons)
        alone = ran[0] if ran else min(reasons, key=len) if own else ""
        alone = alone if str(target) in alone else alone and f"{target}: {alone}"
        msg = alone or f"{target} fits the inputs of no loss; the last reason: {reasons[-1]}"
        raise TargetError(msg)
    return tuple(tried)


def _is_named(diagnosis: Diagnosis) -> bool:
    """Whether it says what a target computes, and not why it computes nothing."""
    return set(diagnosis.id.split("+")) <= CONVENTIONS.keys()


def _unexplained(candidate: Candidate) -> bool:
    return [d.id for d in candidate.report.diagnosis if _is_named(d)] == [_FAR]


def _right_bits(candidate: Candidate) -> float:
    """Mean of the bits in which values agree with the reference, over the cases."""
    bits = [r.bits for r in candidate.report.results if r.quantity == "value" and r.bits is not None]
    return sum(bits) / len(bits) if bits else 0.0


def _marks(candidate: Candidate) -> float:
    """Number of places where the measured formula differs from that of the loss; infinite without a formula."""
    formulas = [d.formula for d in candidate.report.diagnosis if d.formula]
    return min((formula.count("<<") for formula in formulas), default=math.inf)


@contextmanager
def process_of(target: Any, timeout: float | None, isolate: bool) -> Iterator[ChildRunner | None]:
    """One process for all losses, so that what the target imports is imported once; None for an object."""
    if not isinstance(target, str):
        yield None
        return
    child = child_runner(None, "cpu", timeout or 30.0, 120.0, isolate)
    try:
        yield child
    finally:
        child.stop()


def record(candidate: Candidate) -> dict[str, Any]:
    """One candidate as plain data."""
    report: Mapping[str, Any] = candidate.report.record()
    about = report["environment"]
    isolated = {name: about[name] for name in ("isolation", "containment") if name in about}
    return {name: report[name] for name in ("target", "loss", "verdict", "reason", "diagnosis")} | isolated


def is_named_after(name: str, loss: str) -> bool:
    """Whether words of a name are that of a loss, or one that packages give it.

    >>> is_named_after("InfoNCELoss", "info_nce"), is_named_after("mean_distance", "nce")
    (True, False)
    >>> is_named_after("my_gist_embed_loss", "guided_info_nce")
    True
    """
    known = all_losses().get(loss)
    released = () if known is None else known.declaration.known_as
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]
    places = range(len(words) + 1)
    return not {*map(letters, (loss, *released))}.isdisjoint("".join(words[i:j]) for i in places for j in places)


def named_like(name: str, losses: Sequence[str]) -> str:
    """The loss with the longest name that is part of another name, or empty.

    >>> named_like("NTXentLoss", ["info_nce", "nt_xent"])
    'nt_xent'
    """
    named = [loss for loss in losses if is_named_after(name, loss)]
    return max(named, key=lambda loss: len(letters(loss)), default="")


def page_of(target: Any, tried: tuple[Candidate, ...], command: str = "") -> Page:
    """The page that says which loss the target is, with the best candidates.

    `tried` has at least one candidate, the best first. `command` is the call, whose report for one loss has the fix.
    """
    page = Page()
    page.print(f"{target}: {_answer(tried)}", style="bold")
    if name := tried[0].report.environment.get("isolation"):
        page.print(f"isolated by {name}", style="dim")
    if words := tried[0].report.environment.get("containment"):
        page.print(words, style="dim")
    called = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    named = named_like(called.rpartition(":")[2], [candidate.loss for candidate in tried[SHOWN:]])
    # The loss that it is named after is shown however much it differs.
    shown = (*tried[:SHOWN], *(candidate for candidate in tried[SHOWN:] if candidate.loss == named))
    label = max(len(c.loss) for c in shown)
    page.grid([(c.loss, _summary(c, c is tried[0])) for c in shown], label, styles=("bold", ""), indent=GAP)
    if len(tried) > len(shown):
        rest = counted(len(tried) - len(shown), "more loss takes", "more losses take")
        page.print(f"{rest} such inputs, differing more", style="dim")
    if command and not tried[0].report.ok:
        page.print("\nthe whole report, with the fix:")
        page.print(f"  {command} --loss {tried[0].loss}", wrap=False)
    return page


def _answer(tried: tuple[Candidate, ...]) -> str:
    exact = [c.loss for c in tried if c.report.ok]
    if exact:
        return f"it is {' and '.join(exact)}"
    best = tried[0].report.diagnosis[:1]
    if best and best[0].formula:
        return f"it is none of them, but with the inputs of {tried[0].loss} it is {best[0].formula}"
    if best and best[0].id == "other-setting":
        return f"it is {tried[0].loss} with {best[0].lead.text.rpartition(' with ')[2]}"
    if best and best[0].id != _FAR and _is_named(best[0]):
        return f"it is {tried[0].loss} with {best[0].id}"
    return "it is none of them"


def _summary(candidate: Candidate, first: bool) -> str:
    from nceref.diagnosis.diagnose import EQUALS

    lead = next((d.lead for d in candidate.report.diagnosis), None)
    # What explains another loss completely is no second answer.
    if lead is not None and not first and lead.role == "computes" and lead.text.startswith(EQUALS):
        with_what = lead.text.removeprefix(EQUALS)
        return f"the same function: {candidate.loss} with {with_what}, {lead.cases.partition(' (')[0]}"
    return "; ".join(_sentences(candidate.report))


def _sentences(report: Report) -> Iterator[str]:
    yield f"{report.verdict}: {report.reason}"
    yield from (diagnosis.sentence for diagnosis in report.diagnosis[:1] if diagnosis.id != _FAR)
