"""The calls that the formula of a target is looked for on, and the formulas that predict them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nceref.cases.records import Observation, Probe
from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.forms import batches, stages
from nceref.diagnosis.fresh import FreshCalls, InputSpec
from nceref.diagnosis.probe.composition import Composition, Lines, lines
from nceref.diagnosis.probe.search import TargetCall, effort, one_change, several_changes
from nceref.spec import Array, Labels, Scalar
from nceref.tolerance.implementation import FORMATS

_MORE = (InputSpec("turned", 0.52, (24, 7, 6, 9, 9, 2)), InputSpec("turned", 0.62, (21, 6, 5, 8, 8, 2)))
SEARCHED = (
    InputSpec("designed", 0.5, (5, 16, 3, 3, 4, 2)),
    InputSpec("turned", 0.6, (6, 9, 4, 5, 3, 3)),
    InputSpec("designed", 0.43, (4, 11, 3, 4, 6, 4)),
    InputSpec("turned", 0.7, (7, 8, 5, 6, 5, 2)),
    InputSpec("designed", 0.54, (8, 10, 4, 2, 7, 3)),
    *_MORE,
    InputSpec("aligned", 0.14, (6, 8, 4, 5, 6, 2)),
    InputSpec("aligned", 0.15, (9, 6, 5, 6, 7, 2)),
)
"""The sizes and scalars of a constant must tell the expression that it is."""
LARGE = (
    InputSpec("designed", 0.45, (70, 9, 4, 7, 7, 2)),
    InputSpec("turned", 0.65, (9, 80, 5, 70, 70, 2)),
    InputSpec("designed", 0.48, (12, 9, 24, 5, 6, 3)),
    InputSpec("turned", 0.041, (10, 6, 6, 5, 6, 2)),
    *SEARCHED[:7],
)
"""Where small cases are right; the fourth is at a small temperature."""
EFFORT, EFFORT_OF_LARGE = 300_000.0, 60_000.0
"""Evaluations of a part for all searches for one target (see `TargetCall`); on larger cases, where most are right."""
_DEPARTS, _CHOICES, _FEWEST = 100.0, 8, 5
"""How much farther than rounding the reference must be; how many formulas are tried on fresh calls; calls without
which nothing is looked for."""
_ROOM, _COARSE = 4096.0 * 2.0**-53, 64.0
"""Roundings that a value may be off by, relative to the larger of 1 and itself; units of coarser formats."""

Explained = tuple[Composition, Lines]


@dataclass(eq=False)
class FormulaSearch:
    """The search for formulas that predict some calls of a target.

    `is_cut`: whether the count of evaluations ended it.
    """

    fresh: FreshCalls
    is_cut: bool = False

    def formulas(self) -> Iterator[Explained]:
        """Formulas with one stage done otherwise, then with several, each with its lines."""
        # What no small call shows is looked for on larger ones.
        for specs, most in ((SEARCHED, EFFORT), (LARGE, EFFORT_OF_LARGE)):
            calls = [call for one in self.fresh.at(specs) if (call := target_call(one)) is not None]
            calls.sort(key=lambda call: (not _departs(call), call.directions[0].own.size))
            if len(calls) >= _FEWEST and _departs(calls[0]):
                for how in (one_change, several_changes):
                    for choice in islice(how(calls, most), _CHOICES):
                        yield Composition(choice), lines(calls[0].stages, choice)
                self.is_cut = effort(calls) > most
                return


def target_call(observed: Observation) -> TargetCall | None:
    """A call with the stages of its loss; None for a loss or an input without stages, and without a finite number."""
    probe, y = observed.probe, float(np.sum(observed.outcome.value))
    made = batches(probe.loss, probe.inputs)
    if made is None or not np.isfinite(y):
        return None
    # Of rows the sum is looked at.
    return TargetCall(
        stages(probe.loss, probe.inputs, probe.reduction), made, y, noise(y, probe.dtype), symbols(probe, made)
    )


def noise(y: float, dtype: str) -> float:
    """The distance by which roundings may move a value of this size."""
    return max(_ROOM, _COARSE * FORMATS[dtype].storage.u) * max(1.0, abs(y))


def symbols(probe: Probe, directions: Sequence[DenseBatch]) -> Mapping[str, float]:
    """Sizes and scalars of a call by the letter that a formula has for them."""
    out: dict[str, float] = {}
    views = False
    for p in probe.loss.parameters:
        given = probe.inputs.get(p.name)
        if isinstance(p, Scalar) and isinstance(given, float):
            out[letter(p)] = given
        elif isinstance(p, Array | Labels) and isinstance(given, np.ndarray):
            shape = p.alternative if isinstance(p, Array) and given.ndim != len(p.shape) and p.alternative else p.shape
            views |= shape is not p.shape
            out |= dict(zip(shape, map(float, given.shape), strict=True))
    counts = {float(n) for n in np.sum(directions[0].together, axis=1)}
    return {**out, "P": counts.pop()} if views and len(counts) == 1 else out


def letter(scalar: Scalar) -> str:
    """The symbol of a scalar in plain text: a letter, or its name."""
    known = {r"\tau": "T", r"\alpha": "a"}
    return known.get(scalar.symbol, scalar.symbol if len(scalar.symbol) == 1 else scalar.name)


def _departs(call: TargetCall) -> bool:
    return abs(call.reference - call.y) > _DEPARTS * call.room
