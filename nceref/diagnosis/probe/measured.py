"""What a program computes, measured by calling it: a formula that predicts fresh calls, or nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Outcome, Probe
from nceref.diagnosis.dense.forms import form_of
from nceref.diagnosis.probe.calls import Calls, NoNumber, drawn_as_trained, drawn_together, random_rows
from nceref.diagnosis.probe.composed import BEYOND, LARGE, MORE, SIZES, SMALL_TEMPERATURE, Explained, compositions
from nceref.diagnosis.probe.composition import Composition, Lines
from nceref.diagnosis.probe.design import Design, design, scalars, scale_of
from nceref.engine.bound_loss import bound_loss
from nceref.errors import InputError
from nceref.output.limits import digits_of
from nceref.output.words import counted
from nceref.spec import Loss
from nceref.targets.search import Search

FRESH = 10
"""Calls on other rows, sizes, scalars and labels that a formula must predict; as many more are larger."""
_WITHIN, _APART = 1e-9, 100.0
"""How near it must be in float64, relative to the larger of 1 and the value; how much farther the reference must be."""
FORMATS = ("float64", "float32")
"""Formats whose numbers say enough."""
_LENGTHS = (0.5, 2.0)
_DRAWN = {1: drawn_as_trained, 3: drawn_together}
_LARGER: tuple[Mapping[str, int], ...] = (*LARGE, *MORE, *BEYOND)


@dataclass(frozen=True)
class Trial:
    """Fresh calls: how far the formula and the reference were off at most, and from which sizes and temperatures."""

    calls: int
    off: float
    reference_off: float
    rows: tuple[int, int]
    temperatures: tuple[float, float]


def measured(
    loss: Loss,
    call: Callable[[Probe], Outcome],
    settings: Mapping[str, Any],
    dtype: str,
    reduction: str,
    takes: Collection[str] | None = None,
    search: Search | None = None,
) -> Diagnosis | None:
    """The formula of a target beside that of the reference, if it predicts fresh calls.

    `loss`: the reference. `call`: calls the target. `settings`: what is set in every call: arguments of the loss,
    scalars that the target has fixed. `dtype` and `reduction`: of every call. `takes`: arguments of the loss that the
    target takes; default: all. What it does not take is set in no call. `search`: is told if a count has ended it.
    Result: none for a loss without stages, and where no formula of this kind predicts the target.
    """
    if dtype not in FORMATS or form_of(loss).stages is None:
        return None
    calls = Calls(call, dtype, reduction)
    try:
        diagnosis = _formula(calls, loss, settings, takes)
    except NoNumber:
        diagnosis = None
    if diagnosis is None and calls.limit and search is not None:
        search.end("limit", f"was cut after {calls.limit}, its limit")
    return diagnosis


def _formula(calls: Calls, loss: Loss, settings: Mapping[str, Any], takes: Collection[str] | None) -> Diagnosis | None:
    if not _repeats(calls, loss, settings):
        return None
    one, several = compositions(calls, loss, settings)
    # Several changes are looked for last, since that takes longest.
    return _composed(calls, loss, one, settings, takes) or _composed(calls, loss, several, settings, takes)


def _repeats(calls: Calls, loss: Loss, settings: Mapping[str, Any]) -> bool:
    """Whether the same call gives the same number twice: no formula predicts another one."""
    one = design(loss, settings, SIZES[0], scalars(loss, 0.5, 0.5), 0)
    x = calls.rows(random_rows(one, int(one.symbols.get("D", 0)), np.random.default_rng(0), _LENGTHS))
    first = calls.value(one, x)
    return abs(calls.value(one, x) - first) <= calls.noise(first)


def _composed(
    calls: Calls, loss: Loss, formulas: Iterator[Explained], settings: Mapping[str, Any], takes: Collection[str] | None
) -> Diagnosis | None:
    """A formula that is the reference's with some parts done otherwise."""
    for formula, given, shown in formulas:
        more = {k: x for k, x in given.items() if k not in settings and x is not ...}
        if takes is not None and not set(more) <= set(takes):
            continue
        try:
            trial = confirmed(calls, formula, loss, given)
        except NoNumber:
            return None
        if trial is not None:
            return _diagnosis(calls, trial, shown, more)
    return None


def _diagnosis(calls: Calls, trial: "Trial", shown: Lines, given: Mapping[str, Any]) -> Diagnosis:
    yours, theirs, differences = shown
    fix = "; ".join(one.remedy for one in differences)
    different = DiagnosisPart(f"different: {'; '.join(one.sentence for one in differences)}")
    parts = (_predicting(calls, trial, given), different)
    return Diagnosis("measured-formula", parts, fix=f"{fix[0].upper()}{fix[1:]}.", formula=yours, reference=theirs)


def confirmed(calls: Calls, formula: Composition, loss: Loss, settings: Mapping[str, Any]) -> Trial | None:
    """Try a formula on fresh calls, of sizes, scalars, labels and rows that it was not read off.

    Result: none where it fails one of them, or where the reference passes as well. Raises `NoNumber` if the target
    gives none.
    """
    rng = np.random.default_rng(1)
    within = max(_WITHIN, 2e3 * calls.unit) if calls.dtype != "float64" else _WITHIN
    off, reference_off, sizes, temperatures = 0.0, 0.0, [], []
    for number, larger in enumerate(({},) * FRESH + _LARGER):
        one = _fresh(loss, settings, number, rng, larger)
        x = random_rows(one, int(one.symbols.get("D", 0)), rng, _LENGTHS)
        x = calls.rows(_DRAWN[number % 4](one, x, rng) if number % 4 in _DRAWN else x)
        y, predicted = calls.value(one, x), formula.value(one, x)
        size = max(1.0, abs(y))
        # NaN is no prediction.
        if not abs(predicted - y) <= within * size:
            return None
        off = max(off, abs(predicted - y) / size)
        reference_off = max(reference_off, abs(_value(one, x, calls) - y) / size)
        sizes.append(int(one.symbols["N"]))
        temperatures.append(1 / scale_of(one))
    if reference_off < _APART * within:
        return None
    return Trial(len(sizes), off, reference_off, (min(sizes), max(sizes)), (min(temperatures), max(temperatures)))


def _fresh(loss: Loss, settings: Mapping[str, Any], number: int, rng: Any, larger: Mapping[str, int]) -> Design:
    sizes = {x: int(rng.integers(low, 13)) for x, low in (("N", 4), ("D", 3), ("C", 2), ("M", 1), ("K", 1))}
    temperature = SMALL_TEMPERATURE if larger is LARGE[-1] else float(rng.uniform(0.15, 1.2))
    chosen = scalars(loss, temperature, float(rng.uniform(0.1, 0.9)))
    sizes |= {"E": sizes["D"], "V": int(rng.integers(2, 5)), **larger}
    return design(loss, settings, sizes, chosen, 100 + number)


def _value(design: Design, x: Any, calls: Calls) -> float:
    """The reference's value; infinite where it refuses the call."""
    try:
        evaluation = bound_loss(design.loss, (), design.call(x)).evaluate(calls.reduction, keep=False)
        return float(np.sum(evaluation.value(calls.reduction)))
    except InputError:
        return np.inf


def _predicting(calls: Calls, trial: Trial, given: Mapping[str, Any]) -> DiagnosisPart:
    """A sentence on how well a formula predicts what was kept to try it."""
    low, high = trial.temperatures
    between = f", temperatures from {low:.2g} to {high:.2g}" if low < high else ""
    beside = "".join(f", {name} {value}" for name, value in given.items())
    near = f"to {counted(digits_of(trial.off), 'digit')}"
    whose = " of the sum of your rows" if calls.reduction == "none" else ""
    return DiagnosisPart(
        f"a formula{whose}, measured on {calls.count} calls, predicts {trial.calls} that were kept to try it"
        f" (random rows, N from {trial.rows[0]} to {trial.rows[1]}{between}{beside}) {near}, which that of the"
        f" reference misses by up to {trial.reference_off:.2g} of it",
        role="note",
    )
