"""Arithmetic triage: too coarse a format, exponentials out of range, gradients that are not finite, cancellation.

The rest must agree: a target that is wrong everywhere and NaN somewhere is no case of arithmetic. `expected` says what
else the rest may agree with, so that a bug of arithmetic is seen beside another convention.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation
from nceref.cases.rounding import rounded
from nceref.diagnosis.features import where
from nceref.diagnosis.fresh import NO_CALLS, FreshCalls
from nceref.diagnosis.gaps import (
    VALUE,
    Expected,
    Gap,
    diagnosis,
    gaps,
    listed,
    not_finite,
    shifted,
    usable,
)
from nceref.diagnosis.nonfinite import nonfinite
from nceref.diagnosis.ranges import exponents
from nceref.diagnosis.rounding import errors_look_rounded
from nceref.errors import InputError
from nceref.output.words import out_of
from nceref.tolerance.implementation import FORMATS, implementation_bounds


def triage(
    observations: Sequence[Observation],
    expected: Expected | None = None,
    *,
    causes: bool = True,
    calls: FreshCalls = NO_CALLS,
) -> tuple[Diagnosis, ...]:
    """Diagnoses of the arithmetic of a target, given that it computes the reference, or what `expected` says.

    `observations`: all of a run. `expected`: probe to ``(value, grads)`` of the reading to start from; default: the
    reference. `causes`: whether the exponents are those of the reference, so that they can tell why a value is not
    finite. `calls`: the target, for calls that can refute what is seen. Result: empty where nothing is wrong, and where
    arithmetic alone does not explain it.
    """
    moved = shifted(usable(observations), expected)
    if not moved:
        return ()
    finite = [o for o in moved if gaps(o)[VALUE].finite]
    coarse = _coarse(moved, calls) if len(finite) == len(moved) and not any(not_finite(o) for o in moved) else ()
    again = partial(_found_again, expected=expected, causes=causes)
    if coarse:
        return tuple(replace(one, predicts=partial(again, one.id)) for one in coarse)
    if (rough := _rough_gradients(moved, calls)) is not None:
        return (rough,)
    small = _cancelled(finite, calls)
    if not all(gaps(o)[VALUE].right for o in finite) and not small:
        return ()
    found = (*nonfinite(moved, expected, causes, calls), *small)
    return tuple(one if one.predicts else replace(one, predicts=partial(again, one.id)) for one in found)


def _found_again(id: str, observations: Sequence[Observation], expected: Expected | None, causes: bool) -> bool:
    """Whether other cases show the same, and nothing but arithmetic."""
    return any(one.id == id for one in triage(observations, expected, causes=causes))


@dataclass(frozen=True)
class CoarseFormat:
    """A format that a target may fall back to.

    Attributes
    ----------
    id, words : str
        Convention, and how the format is called in a sentence.
    bounds : str
        The format whose bounds must hold on every case.
    runs : tuple of str
        Formats of runs in which that is a finding.
    least, part : float
        How much of the bound the largest error must use up at least, and a value at most: rounding takes little of it,
        and a small bug that stays below it more, or next to nothing.
    """

    id: str
    words: str
    bounds: str
    runs: tuple[str, ...]
    least: float
    part: float


# Of the bounds of float32, casts to it take 0.016 to 0.05. Of those of float16, products in TF32, which has as many
# bits, take 0.009 to 0.013, and products in bfloat16 0.02 to 0.06; of those of bfloat16, products in half formats take
# 0.0035 to 0.024.
COARSER = (
    CoarseFormat("float32-fallback", "float32", "float32", ("float64",), 0.006, 0.3),
    CoarseFormat("tf32-fallback", "TF32 or float16", "float16", ("float64", "float32"), 0.004, 0.015),
    CoarseFormat("half-fallback", "bfloat16", "bfloat16", ("float64", "float32"), 0.003, 0.3),
)
"""From fine to coarse."""


def _coarse(observations: Sequence[Observation], calls: FreshCalls) -> tuple[Diagnosis, ...]:
    """The finest format that explains every error, if the errors look like roundings at all."""
    failing = [o for o in observations if any(not gap.right for gap in gaps(o).values())]
    by_value = [o for o in failing if not gaps(o)[VALUE].right]
    # Roundings show nearly everywhere: where only gradients are off, something is missing there, and where only values
    # are, it is what comes out that was rounded, not what it was computed with.
    steep = [o for o in failing if any(not gap.right for name, gap in gaps(o).items() if name != VALUE)]
    judged = [o for o in failing if len(gaps(o)) > 1]
    if 2 * len(failing) <= len(observations) or 2 * len(by_value) < len(failing) or 2 * len(steep) < len(judged):
        return ()
    if not _looks_rounded(observations):
        return ()
    dtype, short = observations[0].probe.dtype, _fit_into_half(observations)
    for coarse in COARSER:
        if dtype not in coarse.runs or (short and coarse.id != "half-fallback"):
            continue
        residual = _within(observations, coarse)
        if residual is not None and residual >= coarse.least:
            # A small change of the formula has errors that hardly change from one input to the next.
            if errors_look_rounded(observations, calls, FORMATS[coarse.bounds].storage.u) is False:
                return ()
            cases = (
                f"beyond the {dtype} bound on {out_of(len(failing), len(observations), 'case')}, within the"
                f" {coarse.bounds} bound on all of them (at most {residual:.2g} of it)"
            )
            return (diagnosis(coarse.id, DiagnosisPart(f"your errors are those of {coarse.words}", cases, "computes")),)
    return ()


def _within(observations: Sequence[Observation], coarse: CoarseFormat) -> float | None:
    """The largest error in units of a coarser format's bounds; None where one is too large, or they prove nothing."""
    shares, discriminating = [], 0
    for observation in observations:
        probe, worst = observation.probe, 0.0
        wide = implementation_bounds(probe.bound, coarse.bounds, probe.reduction)
        for name, gap in gaps(observation).items():
            room = np.asarray(wide.value if name == VALUE else wide.grads[name]) + gap.bound
            error = np.abs(gap.got - gap.want)
            if np.any(error > (coarse.part if name == VALUE else _PART) * room):
                return None
            worst = max(worst, float(np.max(error / np.where(room > 0, room, 1.0), initial=0.0)))
            discriminating += bool(np.max(room) < 0.5 * np.max(np.abs(gap.want), initial=0.0))
        shares.append(worst)
    # Where the wider bound is above half of the numbers nearly everything is within it, and nothing is proved.
    # Roundings use up much the same part everywhere; of a small change of the inputs, one case may make a large one.
    even = max(shares) <= _UNEVEN * float(np.median(shares))
    return max(shares) if discriminating >= 2 and even else None


_UNEVEN = 30.0
"""How much more of its bound the worst case may use up than the middle one."""
_PART = 0.3
"""The part of its bound that an entry of a gradient may use up."""


def _looks_rounded(observations: Sequence[Observation]) -> bool:
    """Whether errors go to both sides, or values fit into a shorter format: a constant or a clamp errs to one side."""
    pairs = [gaps(o)[VALUE] for o in observations]
    offs = [np.ravel(gap.got - gap.want) for gap in pairs if not gap.right]
    if not offs:
        wrong = [gap for o in observations for gap in gaps(o).values() if not gap.right]
        offs = [np.ravel(gap.got - gap.want) for gap in wrong]
    every = np.concatenate(offs)
    if np.any(every > 0) and np.any(every < 0):
        return True
    formats = {"float64": ("float32", "float16", "bfloat16")}.get(observations[0].probe.dtype, ("float16", "bfloat16"))
    return any(all(np.array_equal(rounded(gap.got, name), gap.got) for gap in pairs) for name in formats)


def _fit_into_half(observations: Sequence[Observation]) -> bool:
    answers = [gap.got for o in observations for gap in gaps(o).values()]
    return any(all(np.array_equal(rounded(x, half), x) for x in answers) for half in ("bfloat16", "float16"))


_OF_BOUND, _OF_LARGEST = 32.0, 1024.0
"""How many bounds, and how many units of the largest entry, a gradient may be off that is said to have lost digits."""


def _rough_gradients(moved: Sequence[Observation], calls: FreshCalls) -> Diagnosis | None:
    """Gradients that are off by a few bounds, with errors that look like roundings, beside values that are right."""
    failing = [o for o in moved if any(not gap.right for gap in gaps(o).values())]
    if not calls.possible or not failing or not _all_nearly_right(moved):
        return None
    if errors_look_rounded(failing, calls, FORMATS[moved[0].probe.dtype].storage.u) is not True:
        return None
    wrong = [gap for o in failing for gap in gaps(o).values() if not gap.right]
    names = listed(dict.fromkeys(gap.quantity for gap in wrong))
    times = max(gap.of_bound for gap in wrong)
    off = DiagnosisPart(
        f"the gradient of {names} is off by up to {times:.2g} times its bound",
        f"{where(failing, moved)}, and the errors change from one input to the next nearby as roundings do",
    )
    right = DiagnosisPart("the values are right", "", "right")
    return diagnosis("gradient-loses-digits", off, right, predicts=_all_nearly_right)


def _all_nearly_right(observations: Sequence[Observation]) -> bool:
    """Whether values are right, and gradients off by no more than a few bounds and roundings."""
    return all(
        gap.right or (name != VALUE and _is_near(gap, FORMATS[o.probe.dtype].storage.u))
        for o in usable(observations)
        for name, gap in gaps(o).items()
    )


def _is_near(gap: Gap, unit: float) -> bool:
    off = float(np.max(np.abs(gap.got - gap.want)))
    return gap.of_bound <= _OF_BOUND and off <= _OF_LARGEST * unit * float(np.max(np.abs(gap.want)))


_ROUNDINGS = 256.0
"""Of the largest logit, for each entry of the value: as many at most is an error that is called cancellation."""


def _cancelled(finite: Sequence[Observation], calls: FreshCalls) -> tuple[Diagnosis, ...]:
    """Errors of a few roundings of the logits that are many bounds of a small loss; right wherever it is not small."""
    failing = [o for o in finite if not gaps(o)[VALUE].right]
    if not failing or len(failing) == len(finite):
        return ()
    for observation in failing:
        gap, u = gaps(observation)[VALUE], FORMATS[observation.probe.dtype].storage.u
        try:
            reach = exponents(observation.probe)
        except InputError:
            return ()
        size = max(1.0, abs(reach.largest), abs(reach.smallest), abs(reach.masked))
        small = np.max(np.abs(gap.want)) < 1e-2 * size
        if not small or np.any(np.abs(gap.got - gap.want) > _ROUNDINGS * u * size * gap.got.size):
            return ()
    unit = FORMATS[failing[0].probe.dtype].storage.u
    if errors_look_rounded(failing, calls, unit, [VALUE]) is False:
        return ()
    gap = max((gaps(o)[VALUE] for o in failing), key=lambda gap: gap.of_bound)
    worst = int(np.argmax(np.abs(gap.got - gap.want)))
    example = f"yours {gap.got.flat[worst]:.6g}, reference {gap.want.flat[worst]:.6g}"
    cases = f"{where(failing, finite)} ({example}), where the loss is small"
    return (diagnosis("cancellation", DiagnosisPart("the value has lost its digits", cases)),)
