"""What a program computes, measured by calling it: a formula that predicts fresh calls, or nothing."""

from dataclasses import dataclass, replace

from nceref.cases.records import Diagnosis, DiagnosisPart, Outcome, Probe
from nceref.diagnosis.dense.forms import batches, form_of
from nceref.diagnosis.fresh import GENERAL, MORE, FreshCalls, InputSpec, Template, fresh_inputs
from nceref.diagnosis.probe.composed import EFFORT, FormulaSearch, target_call
from nceref.diagnosis.probe.composition import Composition, Lines
from nceref.output.limits import digits_of
from nceref.output.words import counted
from nceref.spec import Scalar
from nceref.targets.search import Search
from nceref.tolerance.implementation import FORMATS

KEPT = (
    *GENERAL,
    *MORE,
    InputSpec("turned", 1.1, (11, 9, 4, 8, 6, 3)),
    InputSpec("aligned", 0.3, (7, 6, 3, 5, 9, 2)),
    InputSpec("designed", 0.33, (70, 9, 4, 7, 7, 2)),
    InputSpec("turned", 0.47, (9, 80, 5, 70, 70, 2)),
    InputSpec("designed", 0.21, (12, 9, 24, 5, 6, 3)),
    InputSpec("turned", 0.04, (10, 6, 6, 5, 6, 2)),
    InputSpec("turned", 0.38, (24, 7, 6, 9, 9, 2)),
    InputSpec("aligned", 0.4, (21, 6, 5, 8, 8, 2)),
    # What holds up to a size is told from what holds of every multiple of it.
    InputSpec("designed", 0.57, (129, 5, 40, 5, 6, 2)),
    InputSpec("designed", 0.75, (10, 150, 5, 7, 130, 2)),
)
"""Calls that a formula must predict: other rows, sizes, scalars and labels than it was looked for on."""
_WITHIN, _COARSE, _APART, _FEWEST = 1e-9, 2e3, 100.0, 10
"""How near it must be in float64, relative to the larger of 1 and the value, and in units of coarser formats; how much
farther the reference must be; how many of the calls must have an answer."""
_DTYPES = ("float64", "float32")
"""Formats whose numbers say enough."""


@dataclass(frozen=True)
class Trial:
    """Fresh calls: how far the formula and the reference were off at most, and from which sizes and temperatures."""

    calls: int
    off: float
    reference_off: float
    rows: tuple[int, int]
    temperatures: tuple[float, float]


def measured(calls: FreshCalls, search: Search | None = None) -> Diagnosis | None:
    """The formula of a target beside that of the reference, if it predicts fresh calls.

    `calls`: as those of its explanation; they are counted anew. `search`: is told if a count has ended it. Result: none
    for a loss without stages, and where no formula of this kind predicts the target.
    """
    like = calls.like
    if calls.call is None or like is None or like.dtype not in _DTYPES or form_of(like.loss).stages is None:
        return None
    target = calls.call
    if (like := _with_stages(like)) is None:
        return None

    def value_alone(probe: Probe) -> Outcome:
        return target(replace(probe, mode="no-grad"))

    fresh = FreshCalls(value_alone, like)
    looking = FormulaSearch(fresh)
    for formula, shown in looking.formulas():
        if (trial := confirmed(fresh, formula)) is not None:
            return _diagnosis(fresh, trial, shown)
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


def confirmed(fresh: FreshCalls, formula: Composition) -> Trial | None:
    """Try a formula on calls that it was not read off; none where it fails one, or where the reference passes."""
    off, reference_off, sizes, temperatures = 0.0, 0.0, [], []
    within = _WITHIN
    for observed in fresh.at(KEPT):
        call, probe = target_call(observed), observed.probe
        if call is None:
            return None
        within = max(_WITHIN, _COARSE * FORMATS[probe.dtype].storage.u)
        size = max(1.0, abs(call.y))
        distance = abs(formula.value(call) - call.y) / size
        # NaN is no prediction.
        if not distance <= within:
            return None
        off = max(off, distance)
        reference_off = max(reference_off, abs(call.reference - call.y) / size)
        sizes.append(int(call.symbols["N"]))
        temperatures.append(1 / call.directions[0].scale)
    if len(sizes) < _FEWEST or reference_off < _APART * within:
        return None
    return Trial(len(sizes), off, reference_off, (min(sizes), max(sizes)), (min(temperatures), max(temperatures)))


def _diagnosis(fresh: FreshCalls, trial: Trial, shown: Lines) -> Diagnosis:
    yours, theirs, differences = shown
    fix = "; ".join(one.remedy for one in differences)
    different = DiagnosisPart(f"different: {'; '.join(one.sentence for one in differences)}")
    parts = (_predicting(fresh, trial), different)
    return Diagnosis("measured-formula", parts, fix=f"{fix[0].upper()}{fix[1:]}.", formula=yours, reference=theirs)


def _predicting(fresh: FreshCalls, trial: Trial) -> DiagnosisPart:
    """A sentence on how well a formula predicts what was kept to try it."""
    low, high = trial.temperatures
    between = f", temperatures from {low:.2g} to {high:.2g}" if low < high else ""
    near = f"to {counted(digits_of(trial.off), 'digit')}"
    whose = " of the sum of your rows" if fresh.like is not None and fresh.like.reduction == "none" else ""
    return DiagnosisPart(
        f"a formula{whose}, measured on {fresh.made - trial.calls} calls, predicts {trial.calls} others"
        f" (N from {trial.rows[0]} to {trial.rows[1]}{between}) {near}, where the reference"
        f" is off by up to {trial.reference_off:.2g} (relative to the larger of 1 and the value)",
        role="note",
    )
