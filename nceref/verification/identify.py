"""Identification of a target: it is tried against every loss of the family whose inputs fit."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from nceref.diagnosis.gaps import is_constant
from nceref.errors import InputError, TargetError
from nceref.losses import all_losses
from nceref.output.pages import GAP, Page
from nceref.output.text import printable
from nceref.output.words import counted, out_of
from nceref.registry import must_be_there
from nceref.targets.arguments import UNKNOWN_TO_REFERENCE
from nceref.targets.call_expression import expression
from nceref.targets.command_line import is_command
from nceref.verification.loss_search import (
    UNEXPLAINED,
    Candidate,
    LossSearch,
    is_named,
    misnamed,
    named_like,
    process_of,
    why_not,
)
from nceref.verification.options import SEARCH, names_of
from nceref.verification.report import CONFORMS, DIFFERS, INCONCLUSIVE, Report
from nceref.verification.request import must_be_a_program, ways_of_calling
from nceref.verification.trials import REFUSED, RUNS, WAYS, Trial, how_called, until_ended

SHOWN = 5
"""Losses that are shown; the JSON has all that were tried."""
_MEASURED = 2
"""Losses as which a target is measured that is none of them."""
_JUDGED = (CONFORMS, DIFFERS, INCONCLUSIVE)


def candidates(target: Any, on_progress: Callable[..., Any] | None = None, **options: Any) -> tuple[Candidate, ...]:
    """Try a target as every loss that can call it, on the quick suite; the best candidate comes first.

    `target` and `options` are those of `verify`; losses that lack a setting, or whose inputs do not fit, are left out.
    Where none fits, the usual other ways of calling it are tried. `on_progress` is called with each trial, and with
    the number of losses as ``total=``. Raises `TargetError` if the target fits no loss, and `InputError` if `call`
    could be the call of no loss.
    """
    if options.get("call"):
        expression(options["call"], {p.name: None for one in all_losses().values() for p in one.parameters})
    if is_command(target):
        msg = f"TARGET {printable(target)} is a program, which is called for one loss: nceref verify TARGET --loss LOSS"
        raise InputError(msg)
    with process_of(target, options) as child:
        search = LossSearch(target, child, options)
        plain = []
        for trial in until_ended(search.as_declared()):
            plain.append(trial)
            if on_progress is not None:
                on_progress(trial, total=len(all_losses()))
        chosen = [trial for trial in plain if trial.reached != REFUSED]
        if not any(trial.right for trial in chosen):
            otherwise = search.called_otherwise(plain)
            # A number that is wrong when it is called as it is says more than one of another call.
            if any(trial.right for trial in otherwise) or not any(trial.ran for trial in chosen):
                chosen = otherwise or chosen
        if chosen and all(is_constant(trial.observations) for trial in chosen):
            count = len(chosen[0].observations)
            msg = f"{target} returns the same number on {out_of(count, count, 'case')}, as no loss does"
            raise TargetError(msg)
        tried = [_held(search, trial) for trial in chosen]
        judged = sorted((one for one in tried if one.report.exit_code in _JUDGED), key=lambda one: one.distance)
        if judged and not (judged[0].report.ok or judged[0].is_right_in_part):
            runnable, others = {one.loss for one in judged}, judged
            judged = _explained(search, [trial for trial in chosen if trial.loss in runnable])
            explained = {one.loss for one in judged}
            judged += [one for one in others if one.loss not in explained]
    if not judged:
        reasons = [*(one.report.reason for one in tried), *(t.reason for t in plain if t.reached == REFUSED)]
        raise TargetError(_why_none(str(target), reasons or [search.search.sentence]))
    return tuple(judged)


def _held(search: LossSearch, trial: Trial) -> Candidate:
    """The target held to a loss on all cases, or on the few where it gives another number already."""
    if trial.reached != RUNS:
        return Candidate(trial.loss, search.verified(trial, diagnose=False), trial.options)
    wrong, count = trial.wrong, len(trial.observations)
    reason = f"the value fails on {wrong} of {counted(count, 'case')}"
    return Candidate(trial.loss, Report(str(search.target), trial.loss, "differs", DIFFERS, reason), trial.options)


def _explained(search: LossSearch, trials: Sequence[Trial]) -> list[Candidate]:
    """The losses that it is nearest to, with what explains the difference, or what was measured of it."""
    explained = search.explained(trials)
    # Only where nothing is nearer: measuring takes longer than trying.
    if not _unexplained(explained[0]):
        return explained
    unexplained = sorted(filter(_unexplained, explained), key=_right_bits, reverse=True)[:_MEASURED]
    measured = [replace(one, report=search.verified(one, measure=True)) for one in unexplained]
    return sorted(measured, key=_marks) + [one for one in explained if one not in unexplained]


def _why_none(target: str, reasons: Sequence[str]) -> str:
    """The sentence for a target that fits no loss."""
    ran = [reason for reason in reasons if reason.startswith("no case could be judged")]
    # One reason for all of them is about the target itself: it cannot be loaded, or not constructed.
    own = len(set(reasons)) == 1 or all(UNKNOWN_TO_REFERENCE in reason for reason in reasons)
    alone = ran[0] if ran else min(reasons, key=len) if own else ""
    if not alone:
        return f"{target} fits the inputs of no loss; the last reason: {reasons[-1]}"
    return alone if target in alone else f"{target}: {alone}"


def _unexplained(candidate: Candidate) -> bool:
    return [d.id for d in candidate.report.diagnosis if is_named(d)] == [UNEXPLAINED]


def _right_bits(candidate: Candidate) -> float:
    """Mean of the bits in which values agree with the reference, over the cases."""
    bits = [r.bits for r in candidate.report.results if r.quantity == "value" and r.bits is not None]
    return sum(bits) / len(bits) if bits else 0.0


def _marks(candidate: Candidate) -> float:
    """Number of places where the measured formula differs from that of the loss; infinite without a formula."""
    formulas = [d.formula for d in candidate.report.diagnosis if d.formula]
    return min((formula.count("<<") for formula in formulas), default=math.inf)


def record(candidate: Candidate) -> dict[str, Any]:
    """One candidate as plain data."""
    report: Mapping[str, Any] = candidate.report.record()
    about = report["environment"]
    isolated = {name: about[name] for name in ("isolation", "containment") if name in about}
    called = {name: x for name, x in candidate.options.items() if name in WAYS}
    return {name: report[name] for name in ("target", "loss", "verdict", "reason", "diagnosis")} | isolated | called


def with_loss_of(old: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `verify` for a target against an older program, with the loss and settings that this has or is near.

    Raises `TargetError` where it fits the inputs of no loss.
    """
    must_be_a_program(old)
    must_be_there(old)
    like = {name: x for name, x in options.items() if name in names_of(SEARCH) and x is not None}
    with process_of(old, options) as child:
        for way in ways_of_calling(like):
            search = LossSearch(old, child, way)
            plain = list(search.as_declared())
            exact = search.confirmed(chain(plain, search.with_settings(plain)))
            ran = [trial for trial in plain if trial.ran]
            nearest = min(ran, key=lambda trial: (not trial.agrees, trial.spread), default=None)
            best = next((trial for trial, _ in exact), None) or nearest
            if best is not None:
                return {**best.options, **options, "loss": best.loss}
    reasons = {trial.reason for trial in plain}
    if len(reasons) == 1:
        # It is about the program, and not about a loss.
        raise TargetError(reasons.pop())
    msg = f"{old} fits the inputs of no loss: {why_not(plain)}; name the loss whose inputs it takes, with --loss"
    raise TargetError(msg)


def page_of(target: Any, tried: tuple[Candidate, ...], command: str = "") -> Page:
    """The page that says which loss the target is, with the best candidates.

    `tried` has at least one candidate, the best first. `command` is the call, whose report for one loss has the fix.
    """
    page = Page()
    page.heading(f"{target}: {_answer(tried)}", 1)
    if name := tried[0].report.environment.get("isolation"):
        page.print(f"isolated by {name}", style="dim")
    if words := tried[0].report.environment.get("containment"):
        page.print(words, style="dim")
    called = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    name, exact = called.rpartition(":")[2], [c.loss for c in tried if c.report.ok]
    named = named_like(name, [candidate.loss for candidate in tried[SHOWN:]])
    # The loss that it is named after is shown however much it differs.
    shown = (*tried[:SHOWN], *(candidate for candidate in tried[SHOWN:] if candidate.loss == named))
    if exact and (meant := misnamed(name, list(all_losses()), exact)):
        page.print(f"its name says {meant}, which it is not: --loss {meant} says what differs")
    label = max(len(c.loss) for c in shown)
    page.grid([(c.loss, _summary(c, c is tried[0])) for c in shown], label, styles=("bold", ""), indent=GAP)
    if len(tried) > len(shown):
        rest = counted(len(tried) - len(shown), "more loss takes", "more losses take")
        page.print(f"{rest} such inputs, differing more", style="dim")
    best, how = tried[0], how_called(tried[0].options)
    explained = best.report.ok or best.is_right_in_part or best.is_right_in_value or _explains(best)
    # A call that gives unexplained numbers is most likely another one.
    if how and explained:
        page.print("\nit is called so:")
        page.print(f"  {how}", wrap=False)
    if command and not best.report.ok and (explained or not how):
        page.print(f"\nthe whole report{', with the fix' * _explains(best)}:")
        given = [f"--set {name}=given" for name in _passed(best)]
        page.print(" ".join(filter(None, (f"  {command} --loss {best.loss}", how, *given))), wrap=False)
    return page


def _passed(candidate: Candidate) -> Iterator[str]:
    """Arrays that it was called with and that a run has not by itself."""
    usual = all_losses()[candidate.loss].declaration.variants[0]
    yield from (name for name, x in candidate.options.items() if x is ... and usual.get(name) is not ...)


def _explains(candidate: Candidate) -> bool:
    """Whether something explains the difference."""
    return any(is_named(each) and each.id != UNEXPLAINED for each in candidate.report.diagnosis)


def _answer(tried: tuple[Candidate, ...]) -> str:
    exact = [c.loss for c in tried if c.report.ok]
    if exact:
        return f"it is {' and '.join(exact)}"
    if tried[0].is_right_in_part:
        return f"it is {tried[0].loss} wherever it returns a number"
    if tried[0].is_right_in_value:
        return f"its value is that of {tried[0].loss}"
    best = tried[0].report.diagnosis[:1]
    if best and best[0].formula:
        return f"it is none of them, but with the inputs of {tried[0].loss} it is {best[0].formula}"
    if best and best[0].id == "other-setting":
        return f"it is {tried[0].loss} with {best[0].lead.text.rpartition(' with ')[2]}"
    if best and best[0].id != UNEXPLAINED and is_named(best[0]):
        return f"it is {tried[0].loss} with {best[0].id}"
    return "it is none of them"


def _summary(candidate: Candidate, first: bool) -> str:
    from nceref.diagnosis.diagnose import EQUALS

    found = next(iter(candidate.report.diagnosis), None)
    lead = None if found is None else found.lead
    # What explains another loss completely is no second answer; what is wrong beside it is.
    if found and lead and not first and lead.role == "computes" and lead.text.startswith(EQUALS):
        with_what = lead.text.removeprefix(EQUALS)
        same = "the same value" if any(part.role == "wrong" for part in found.parts) else "the same function"
        return f"{same}: {candidate.loss} with {with_what}, {lead.cases.partition(' (')[0]}"
    return "; ".join(_sentences(candidate.report))


def _sentences(report: Report) -> Iterator[str]:
    yield f"{report.verdict}: {report.reason}"
    yield from (diagnosis.sentence for diagnosis in report.diagnosis[:1] if diagnosis.id != UNEXPLAINED)
