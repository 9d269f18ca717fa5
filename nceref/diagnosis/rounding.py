"""Whether errors are roundings, by fresh calls: nearby inputs have unlike roundings, and alike errors otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Probe
from nceref.diagnosis.fresh import FreshCalls, judged
from nceref.diagnosis.gaps import Gap, gaps
from nceref.engine.parameters import INVERSE_TEMPERATURES

NEIGHBORS = 4
UNLIKE = 0.3
"""Share of the errors that changes from neighbor to neighbor: 0.87 if they are random, next to 0 if they are smooth."""
_STEP = 16.0
"""By how many units of the coarser format inputs move: all their roundings are others then."""


def errors_look_rounded(
    observations: Sequence[Observation], calls: FreshCalls, unit: float, only: Sequence[str] = ()
) -> bool | None:
    """Whether errors change without a pattern where inputs change by a few units of a format.

    `observations`: some with an error beyond their bound. `unit`: unit roundoff of the format. `only`: quantities to
    look at; default: all that fail. Result: none where no call can be made.
    """
    failing = [o for o in observations if not all(gap.right for gap in gaps(o).values())]
    if not failing or not calls.possible:
        return None
    start = _central(failing)
    wrong = [name for name, gap in gaps(start).items() if not gap.right and name in (only or gaps(start))]
    rng = np.random.default_rng(7)
    near = [start]
    for number in range(NEIGHBORS):
        probe = judged(calls.like, _moved(start.probe, _STEP * unit, rng), f"near-{number}") if calls.like else None
        seen = calls.on(probe) if probe is not None else None
        if seen is not None and set(wrong) <= set(gaps(seen)):
            near.append(seen)
    if len(near) < NEIGHBORS:
        return None
    return _spread(near, wrong) > UNLIKE


def _central(failing: Sequence[Observation]) -> Observation:
    """The failing case whose temperature is nearest to 1: it carries the motion of the inputs on least."""

    def far(observation: Observation) -> float:
        given = [observation.probe.inputs.get(name) for name in INVERSE_TEMPERATURES]
        return max((abs(float(np.log(x))) for x in given if isinstance(x, float)), default=0.0)

    return min(failing, key=far)


def _moved(probe: Probe, step: float, rng: np.random.Generator) -> dict[str, Any]:
    """The inputs, each float entry times a number near 1."""
    out = dict(probe.inputs)
    for name, x in probe.inputs.items():
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            out[name] = x * (1 + step * rng.uniform(-1, 1, x.shape))
        elif name in INVERSE_TEMPERATURES and isinstance(x, float):
            out[name] = x * (1 + step * float(rng.uniform(-1, 1)))
    return out


def _spread(near: Sequence[Observation], names: Sequence[str]) -> float:
    """The spread of errors around their mean over the neighbors, as a share of their size; the largest of all."""
    shares = []
    for name in names:
        errors = np.stack([np.ravel(gaps(o)[name].got - gaps(o)[name].want) for o in near])
        size = float(np.sqrt(np.mean(errors**2)))
        off = errors - np.mean(errors, axis=0)
        shares.append(float(np.sqrt(np.mean(off**2))) / size if size > 0 else 0.0)
    return float(np.median(shares)) if shares else 0.0


@dataclass(frozen=True)
class Repeated:
    """Two answers of a target to the same inputs that differ by more than twice the bound.

    Attributes
    ----------
    quantity, case : str
    first, second : float
    in_turn : bool
        Whether two calls in a row differ; otherwise what differs is a call after other cases.
    """

    quantity: str
    case: str
    first: float
    second: float
    in_turn: bool


def repeated(observations: Sequence[Observation], calls: FreshCalls) -> Repeated | None:
    """The two answers that differ, of the first two observations; None where all agree."""
    for observation in observations[:2]:
        probe = observation.probe
        answers = [observation, *(o for o in (calls.on(probe), calls.on(probe)) if o is not None)]
        # Two calls in a row come first: what they show is more than what other cases have left behind.
        for first, second in reversed([*pairwise(answers)]):
            for name, gap in gaps(first).items():
                other = gaps(second).get(name)
                place = None if other is None else _changed(gap, other)
                if place is not None and other is not None:
                    numbers = float(gap.got.flat[place]), float(other.got.flat[place])
                    return Repeated(name, probe.id, *numbers, in_turn=first is not observation)
    return None


def _changed(first: Gap, second: Gap) -> int | None:
    """The entry that differs most in units of its bound, beyond what each may be off; None where all agree."""
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(first.got == second.got, 0.0, np.abs(first.got - second.got) / (2 * first.bound))
    both = np.isfinite(first.got) & np.isfinite(second.got)
    # What is no number stays none, whichever: NaN or infinite.
    apart = np.where(both, apart, np.where(np.isfinite(first.got) == np.isfinite(second.got), 0.0, np.inf))
    place = int(np.argmax(apart))
    return place if float(np.ravel(apart)[place]) > 1 else None
