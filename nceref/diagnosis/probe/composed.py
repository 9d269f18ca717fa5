"""The calls that the formula of a target is looked for on, and the formulas that predict them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nceref.cases.records import Observation
from nceref.diagnosis.dense.forms import batches, stages
from nceref.diagnosis.fresh import FreshCalls, InputSpec, Template
from nceref.diagnosis.probe.composition import Composition
from nceref.diagnosis.probe.search import TargetCall, effort, one_change, several_changes
from nceref.diagnosis.probe.symbols import symbols
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


@dataclass(eq=False)
class FormulaSearch:
    """The search for formulas that predict some calls of a target.

    `is_cut`: whether the count of evaluations ended it.
    """

    fresh: FreshCalls
    is_cut: bool = False

    def formulas(self) -> Iterator[Composition]:
        """Formulas with one stage done otherwise, then with several."""
        like = self.fresh.like
        if like is None:
            return
        # What no small call shows is looked for on larger ones.
        for specs, most in ((SEARCHED, EFFORT), (LARGE, EFFORT_OF_LARGE)):
            calls = [call for one in self.fresh.at(specs) if (call := target_call(one)) is not None]
            calls.sort(key=lambda call: (not _departs(call), call.directions[0].own.size))
            if len(calls) >= _FEWEST and _departs(calls[0]):
                yield from self._fitting(like, calls, most)
                # A target may be right on some, as on batches below the size of a block.
                wrong = [call for call in calls if _departs(call)]
                if _FEWEST <= len(wrong) < len(calls):
                    yield from self._fitting(like, wrong, most)
                self.is_cut = effort(calls) > most
                return

    def _fitting(self, like: Template, calls: Sequence[TargetCall], most: float) -> Iterator[Composition]:
        """Formulas that predict these calls."""
        for how in (one_change, several_changes):
            for choice in islice(how(calls, most), _CHOICES):
                unit = FORMATS[like.dtype].storage.u
                yield Composition(like.loss, like.reduction, calls[0].stages, choice, unit)


def target_call(observed: Observation) -> TargetCall | None:
    """A call with the stages of its loss; None for a loss or an input without stages, and without a finite number."""
    probe, y = observed.probe, float(np.sum(observed.outcome.value))
    made = batches(probe.loss, probe.inputs)
    if made is None or not np.isfinite(y):
        return None
    return TargetCall(
        stages(probe.loss, probe.inputs, probe.reduction),
        made,
        y,
        noise(y, probe.dtype),
        symbols(probe.loss, probe.inputs, made),
    )


def noise(y: float, dtype: str) -> float:
    """The distance by which roundings may move a value of this size."""
    return max(_ROOM, _COARSE * FORMATS[dtype].storage.u) * max(1.0, abs(y))


def _departs(call: TargetCall) -> bool:
    return abs(call.reference - call.y) > _DEPARTS * call.room
