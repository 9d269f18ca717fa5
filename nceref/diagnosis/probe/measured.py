"""What a program computes, measured by calling it: a formula that predicts its cases and fresh calls, or nothing."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Outcome, Probe
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.dense.forms import FORMULA, batches, form_of
from nceref.diagnosis.diagnose import EQUALS, in_words
from nceref.diagnosis.explanation import Explanation
from nceref.diagnosis.fresh import GENERAL, Call, FreshCalls, InputSpec, Template, fresh_inputs
from nceref.diagnosis.gaps import VALUE, gaps, usable
from nceref.diagnosis.gradients import with_gradients
from nceref.diagnosis.options import Option
from nceref.diagnosis.probe.composed import EFFORT, FormulaSearch
from nceref.diagnosis.probe.composition import Composition
from nceref.diagnosis.probe.search import REFUSED
from nceref.diagnosis.refute import holds, tried
from nceref.diagnosis.search import is_comparable, verified
from nceref.spec import Scalar
from nceref.targets.search import Search

KEPT = (
    *GENERAL,
    InputSpec("designed", 0.33, (70, 9, 4, 7, 7, 2)),
    InputSpec("turned", 0.47, (9, 80, 5, 70, 70, 2)),
    InputSpec("turned", 0.38, (24, 7, 6, 9, 9, 2)),
    InputSpec("aligned", 0.4, (21, 6, 5, 8, 8, 2)),
    # What holds up to a size is told from what holds of every multiple of it.
    InputSpec("designed", 0.57, (129, 5, 40, 5, 6, 2)),
    InputSpec("designed", 0.75, (10, 150, 5, 7, 130, 2)),
)
"""Calls that a formula must predict beside the cases: other rows, sizes, scalars and labels."""
_FEWEST = 6
"""Of these, how many must have an answer."""
_MOST_PAIRS = 100_000
"""Pairs of rows in a case that it is tried on: ways of a stage may have a vector for each of them."""
_DTYPES = ("float64", "float32")
"""Formats whose numbers say enough."""


def measured(calls: FreshCalls, answered: Sequence[Observation], search: Search | None = None) -> Diagnosis | None:
    """The formula of a target beside that of the reference, if it predicts all cases and fresh calls.

    `calls`: as those of its explanation; they are counted anew. `answered`: the cases of the run. `search`: is told if
    a count has ended it. Result: none for a loss without stages, and where no formula of this kind predicts the target.
    """
    like = calls.like
    if calls.call is None or like is None or like.dtype not in _DTYPES or form_of(like.loss).stages is None:
        return None
    if (like := _with_stages(like)) is None:
        return None
    rows = like.reduction == "none"
    call = partial(_summed_call, calls.call, like.reduction)
    like = replace(like, reduction="mean" if like.reduction == "mean" else "sum")
    every = [_summed(o) for o in usable(answered)]
    seen = [o for o in every if is_comparable(o) and _pairs(o.probe) <= _MOST_PAIRS]
    looking = FormulaSearch(FreshCalls(lambda probe: call(replace(probe, mode="no-grad")), like))
    fresh = FreshCalls(call, like)
    known: list[Any] = []
    on_a_part: tuple[Composition, Explanation] | None = None
    for formula in looking.formulas():
        values = np.array([CaseAnalysis(o).answer((Option(FORMULA, formula),))[0] for o in seen])
        # Another formula of the same numbers would fail as well.
        if any(np.allclose(values, others, rtol=1e-9, equal_nan=True) for others in known):
            continue
        known.append(values)
        if (found := _explained(formula, seen, fresh)) is None:
            continue
        if not found.apart:
            return _diagnosis(formula, found, every, fresh, rows)
        on_a_part = on_a_part or (formula, found)
    if on_a_part is not None:
        return _diagnosis(*on_a_part, every, fresh, rows)
    if looking.is_cut and search is not None:
        search.end("limit", f"was cut after {EFFORT:,.0f} evaluations of parts of the loss, its limit")
    return None


def _with_stages(like: Template) -> Template | None:
    """Inputs for which the loss has stages: scalars that are 0 unless they are set are above 0, or else all are 0."""
    off = {p.name for p in like.loss.parameters if isinstance(p, Scalar) and p.default == 0 and p.constant}
    on = tuple((name, max(low, high / 8) if name in off else low, high) for name, low, high in like.ranges)
    others = tuple(each for each in like.ranges if each[0] not in off)
    zeros = tuple((name, 0.0) for name, *_ in like.ranges if name in off)
    for one in (replace(like, ranges=on), replace(like, ranges=others, constants=like.constants + zeros)):
        inputs = fresh_inputs(one, KEPT[0])
        if inputs is not None and batches(one.loss, inputs) is not None:
            return one
    return None


def _pairs(probe: Probe) -> int:
    """The number of pairs of an anchor and a candidate."""
    return max((one.own.size for one in batches(probe.loss, probe.bound.arguments) or ()), default=0)


def _summed_call(call: Call, reduction: str, probe: Probe) -> Outcome:
    """The answer of a target, whose rows are added up."""
    outcome = call(replace(probe, reduction=reduction))
    return outcome if outcome.value is None else replace(outcome, value=np.sum(outcome.value))


def _summed(observation: Observation) -> Observation:
    """An observation whose rows are added up."""
    probe, outcome = observation.probe, observation.outcome
    if probe.reduction != "none" or probe.bounds is None:
        return observation
    bounds = replace(probe.bounds, value=np.sum(probe.bounds.value))
    probe = replace(probe, reduction="sum", value=np.sum(probe.value), bounds=bounds)
    return Observation(probe, replace(outcome, value=np.sum(outcome.value)))


def _explained(formula: Composition, seen: Sequence[Observation], fresh: FreshCalls) -> Explanation | None:
    """The explanation that a formula is, if it predicts the cases that it has a number for, and fresh calls.

    Cases on which the reference is right may be others, as batches below the size of a block.
    """
    option = Option(FORMULA, formula)
    analyses = [a for a in map(CaseAnalysis, seen) if np.all(np.isfinite(a.answer((option,))[0]))]
    others = [a for a in analyses if a.misfit(*a.answer((option,))) > 1]
    if any(a.departs for a in others):
        return None
    analyses = [a for a in analyses if a.departs] if others else analyses
    whole = verified((option,), analyses) if analyses else None
    if whole is None:
        return None
    try:
        candidates = with_gradients(whole, analyses)
    except (*REFUSED, AttributeError):
        # A way of a stage has an operation that the tape has no rule for.
        candidates = [replace(whole, gradient_words=(_NOT_COMPARED,), holds=lambda judged: True)]
    if not others:
        kept = tried(candidates, fresh, KEPT).kept
        return kept[0] if kept and kept[0].fresh >= _FEWEST else None
    made = fresh.at(KEPT)
    wrong = [o for o in made if not gaps(o)[VALUE].right]
    found = (replace(e, apart=_WRONG, fresh=len(wrong)) for e in candidates if holds(e, wrong))
    return next(found, None) if len(wrong) >= _FEWEST else None


_WRONG = "the wrong cases, while the others are right"
_NOT_COMPARED = DiagnosisPart("its gradients were not compared with those of this formula", role="note")


def _diagnosis(
    formula: Composition, explanation: Explanation, seen: Sequence[Observation], fresh: FreshCalls, rows: bool
) -> Diagnosis:
    """The explanation in words, with both formulas; `rows`: whether the target gives rows, which were added up."""
    yours, theirs, _ = formula.lines
    found = in_words(explanation, seen, (), fresh)
    parts = found.parts
    if rows:
        whole = f"the sum of your rows equals that of the reference with {parts[0].text.removeprefix(EQUALS)}"
        parts = (replace(parts[0], text=whole), *parts[1:])
    return replace(found, parts=parts, formula=yours, reference=theirs)
