"""What a program computes, measured by calling it: a formula that predicts fresh calls, or nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Outcome, Probe
from nceref.diagnosis.probe.calls import Calls, NoNumber, drawn_as_trained, drawn_together, random_rows
from nceref.diagnosis.probe.composed import BEYOND, LARGE, MORE, SMALL_TEMPERATURE, Explained, compositions
from nceref.diagnosis.probe.composition import Composition
from nceref.diagnosis.probe.design import Design, design_or_inputs
from nceref.diagnosis.probe.pattern import Formula
from nceref.diagnosis.probe.recover import designs, formula_of, scalars, scale_of
from nceref.diagnosis.probe.structure import structure
from nceref.diagnosis.probe.words import Difference, side_by_side, writable
from nceref.engine.bound_loss import bound_loss
from nceref.errors import InputError
from nceref.output.limits import digits_of
from nceref.output.words import counted
from nceref.spec import Loss
from nceref.targets.search import Search

FRESH = 10
"""Calls on other rows, sizes, scalars and labels that a formula must predict."""
_WITHIN, _APART = 1e-9, 100.0
"""How near it must be in float64, relative to the larger of 1 and the value; how much farther the reference must be."""
FORMATS = ("float64", "float32")
"""Formats whose numbers say enough."""
_LENGTHS = (0.5, 2.0)
_DRAWN = {1: drawn_as_trained, 3: drawn_together}


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
    Result: none where no formula of this kind was links, or where it is the reference's.
    """
    if dtype not in FORMATS:
        return None
    calls = Calls(call, dtype, reduction)
    try:
        diagnosis = _formula(calls, loss, settings, takes) if _repeats(calls, loss, settings) else None
    except NoNumber:
        diagnosis = None
    if diagnosis is None and calls.limit and search is not None:
        search.end("limit", f"was cut after {calls.limit}, its limit")
    return diagnosis


def _formula(calls: Calls, loss: Loss, settings: Mapping[str, Any], takes: Collection[str] | None) -> Diagnosis | None:
    one, several = compositions(calls, loss, settings)
    # Several changes are looked for last, since that takes longest.
    return (
        _composed(calls, loss, one, settings, takes)
        or _summed(calls, loss, settings)
        or _composed(calls, loss, several, settings, takes)
    )


def _repeats(calls: Calls, loss: Loss, settings: Mapping[str, Any]) -> bool:
    """Whether the same call gives the same number twice: no formula predicts another one."""
    made = designs(loss, settings)[:1]
    for one in made:
        x = calls.rows(random_rows(one, int(one.symbols.get("D", 0)), np.random.default_rng(0), _LENGTHS))
        first = calls.value(one, x)
        if abs(calls.value(one, x) - first) > calls.noise(first):
            return False
    return True


def _summed(calls: Calls, loss: Loss, settings: Mapping[str, Any]) -> Diagnosis | None:
    """A formula of sums of linear terms and logarithms of sums of exponentials."""
    made = designs(loss, settings)
    # Rows whose similarities are chosen one by one need a feature each.
    if not made or (not made[0].logits and len(made[0].nodes) > made[0].symbols["D"]):
        return None
    try:
        links = structure(calls, made[0], np.random.default_rng(0))
        usual = _reference(loss, settings, calls.reduction, None)
        formula = formula_of(calls, made, links, None, usual.how if usual else None)
        trial = None if formula is None else confirmed(calls, formula, loss, settings)
    except NoNumber:
        return None
    if formula is None or trial is None or not writable(formula, made[0]):
        return None
    if usual is not None and usual.pattern.refinement != formula.pattern.refinement:
        usual = _reference(loss, settings, calls.reduction, formula.pattern.refinement) or usual
    yours, theirs, differences = side_by_side(formula, usual, made[0])
    # A formula that reads like the reference's explains no difference.
    if usual is not None and not differences:
        return None
    return _diagnosis(calls, trial, yours, theirs or loss.text, differences)


def _composed(
    calls: Calls, loss: Loss, formulas: Iterator[Explained], settings: Mapping[str, Any], takes: Collection[str] | None
) -> Diagnosis | None:
    """A formula that is the reference's with some parts done otherwise."""
    for formula, given, (yours, theirs, differences) in formulas:
        more = {k: x for k, x in given.items() if k not in settings and x is not ...}
        if takes is not None and not set(more) <= set(takes):
            continue
        try:
            trial = confirmed(calls, formula, loss, given)
        except NoNumber:
            return None
        if trial is not None:
            return _diagnosis(calls, trial, yours, theirs, differences, more)
    return None


def _diagnosis(
    calls: Calls,
    trial: "Trial",
    yours: str,
    theirs: str,
    differences: tuple[Difference, ...],
    given: Mapping[str, Any] = MappingProxyType({}),
) -> Diagnosis:
    fix = "; ".join(one.remedy for one in differences)
    fix = f"{fix[:1].upper()}{fix[1:]}." if fix else ""
    different = DiagnosisPart(f"different: {'; '.join(one.sentence for one in differences)}")
    none = DiagnosisPart("the reference is no formula of this kind", "", "note")
    parts = (_predicting(calls, trial, given), different if differences else none)
    return Diagnosis("measured-formula", parts, fix=fix, formula=yours, reference=theirs)


def confirmed(calls: Calls, formula: Formula | Composition, loss: Loss, settings: Mapping[str, Any]) -> Trial | None:
    """Try a formula on fresh calls, of sizes, scalars, labels and rows that it was not read off.

    Result: none where it fails one of them, or where the reference passes as well. Raises `NoNumber` if the target
    gives none.
    """
    rng = np.random.default_rng(1)
    within = max(_WITHIN, 2e3 * calls.unit) if calls.dtype != "float64" else _WITHIN
    off, reference_off, sizes, temperatures = 0.0, 0.0, [], []
    larger: tuple[Mapping[str, int], ...] = (*LARGE, *MORE, *BEYOND) if isinstance(formula, Composition) else ()
    for number in range(FRESH + len(larger)):
        one = _fresh(loss, settings, number, rng, {} if number < FRESH else larger[number - FRESH])
        x = random_rows(one, int(one.symbols.get("D", 0)), rng, _LENGTHS)
        if isinstance(formula, Composition) and number % 4 in _DRAWN:
            x = _DRAWN[number % 4](one, x, rng)
        x = calls.rows(x)
        y, predicted = calls.value(one, x), float(formula.value(one, x[None])[0])
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
    return Trial(
        FRESH + len(larger), off, reference_off, (min(sizes), max(sizes)), (min(temperatures), max(temperatures))
    )


def _fresh(
    loss: Loss, settings: Mapping[str, Any], number: int, rng: Any, larger: Mapping[str, int] = MappingProxyType({})
) -> Design:
    sizes = {x: int(rng.integers(low, 13)) for x, low in (("N", 4), ("D", 3), ("C", 2), ("M", 1), ("K", 1))}
    temperature = SMALL_TEMPERATURE if larger is LARGE[-1] else float(rng.uniform(0.15, 1.2))
    chosen = scalars(loss, temperature, float(rng.uniform(0.1, 0.9)))
    return design_or_inputs(
        loss, settings, {**sizes, "E": sizes["D"], "V": int(rng.integers(2, 5)), **larger}, chosen, 100 + number
    )


def _value(design: Design, x: Any, calls: Calls) -> float:
    """The reference's value; infinite where it refuses the call."""
    try:
        return float(_evaluated(calls.reduction)(Probe("", design.loss, design.call(x), calls.dtype)).value)
    except InputError:
        return np.inf


def _evaluated(reduction: str) -> Callable[[Probe], Outcome]:
    def call(probe: Probe) -> Outcome:
        evaluation = bound_loss(probe.loss, (), probe.inputs).evaluate(reduction, keep=False)
        return Outcome(float(np.sum(evaluation.value(reduction))))

    return call


def _reference(loss: Loss, settings: Mapping[str, Any], reduction: str, refinement: str | None) -> Formula | None:
    """The reference's formula by the same means; None where it is none of these."""
    plain = all(isinstance(x, str | float | int) or x is None or x is ... for x in settings.values())
    # Arrays are generated all the same.
    key = tuple(sorted((n, x if plain or not hasattr(x, "__len__") else ...) for n, x in settings.items()))
    return _known_reference(loss, key, reduction, refinement)


# What is measured of the reference is the same for every target.
@lru_cache(maxsize=128)
def _known_reference(
    loss: Loss, settings: tuple[tuple[str, Any], ...], reduction: str, refinement: str | None
) -> Formula | None:
    given = dict(settings)
    calls, made = Calls(_evaluated(reduction), "float64", reduction), designs(loss, given)
    try:
        links = structure(calls, made[0], np.random.default_rng(0))
        formula = formula_of(calls, made, links, refinement)
        return (
            formula
            if formula is not None and writable(formula, made[0]) and _holds(calls, formula, loss, given)
            else None
        )
    except (NoNumber, InputError):
        return None


def _holds(calls: Calls, formula: Formula, loss: Loss, settings: Mapping[str, Any]) -> bool:
    rng = np.random.default_rng(2)
    for number in range(3):
        one = _fresh(loss, settings, number, rng)
        x = random_rows(one, int(one.symbols.get("D", 0)), rng, _LENGTHS)
        y = calls.value(one, x)
        if not abs(float(formula.value(one, x[None])[0]) - y) <= _WITHIN * max(1.0, abs(y)):
            return False
    return True


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
