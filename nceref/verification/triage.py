"""Arithmetic triage: too coarse a format, exponentials out of range, gradients that are not finite, cancellation.

The rest must agree: a target that is wrong everywhere and NaN somewhere is no case of arithmetic. `expected` says what
else the rest may agree with, so that a bug of arithmetic is seen beside another convention.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nceref.allowance import FORMATS, allowance
from nceref.anatomy import roles
from nceref.arrays import promoted
from nceref.errors import InputError
from nceref.inputs import bind
from nceref.losses import LossFunction
from nceref.verification.features import lonely, where
from nceref.verification.gaps import VALUE, Expected, diagnosis, gaps, listed, not_finite, shifted, usable
from nceref.verification.records import Diagnosis, Observation, Probe


def triage(observations: Sequence[Observation], expected: Expected | None = None) -> tuple[Diagnosis, ...]:
    """What the arithmetic of a target does, given that it computes the reference, or what `expected` says.

    Parameters
    ----------
    observations : sequence of Observation
        All of a run.
    expected : callable, optional
        Probe to ``(value, grads)`` of the reading to start from; default: the reference.

    Returns
    -------
    tuple of Diagnosis
        Empty where nothing is wrong, and where arithmetic alone does not explain it.
    """
    moved = shifted(usable(observations), expected)
    if not moved:
        return ()
    finite = [o for o in moved if gaps(o)[VALUE].finite]
    found = _coarse(moved) if len(finite) == len(moved) and not any(not_finite(o) for o in moved) else ()
    if found:
        return found
    small = _cancelled(finite)
    if not all(gaps(o)[VALUE].right for o in finite) and not small:
        return ()
    return (*_endless(moved), *small)


COARSER = {
    "float32-fallback": ("float32", ("float64",)),
    "tf32-fallback": ("float16", ("float64", "float32")),
    "half-fallback": ("bfloat16", ("float64", "float32")),
}
"""Convention: the format whose bounds must hold on every case, and the formats of runs in which that is a finding.

TF32 has the significand of float16; which of the two it was is told by whether the answers fit into 16 bits.
"""


def _coarse(observations: Sequence[Observation]) -> tuple[Diagnosis, ...]:
    """The finest format that explains every error, if the errors look like roundings at all."""
    found = [(o, gap) for o in observations for gap in gaps(o).values()]
    failing = [gap for _, gap in found if not gap.right]
    if not failing or not _looks_rounded(observations):
        return ()
    dtype = observations[0].probe.dtype
    short = _fit_into_half(observations)
    for id, (coarse, runs) in COARSER.items():
        if dtype not in runs or (short and id != "half-fallback"):
            continue
        residual = _within(observations, coarse)
        if residual is not None:
            count = sum(any(not gap.right for gap in gaps(o).values()) for o in observations)
            sentence = (
                f"beyond the {dtype} bound on {count} of {len(observations)} cases, but within that of"
                f" {TOLD[id]} on all of them (largest error {residual:.2g} of it)"
            )
            return (diagnosis(id, sentence),)
    return ()


TOLD = {"float32-fallback": "float32", "tf32-fallback": "TF32", "half-fallback": "bfloat16"}
"""How a format is called in a sentence."""


def _within(observations: Sequence[Observation], coarse: str) -> float | None:
    """The largest error in units of a coarser format's bounds; None where one is beyond it, or they prove nothing."""
    worst, telling = 0.0, 0
    for observation in observations:
        probe = observation.probe
        wide = allowance(probe.loss, probe.inputs, coarse, probe.reduction)
        for name, gap in gaps(observation).items():
            room = np.asarray(wide.value if name == VALUE else wide.grads[name]) + gap.bound
            error = np.abs(gap.got - gap.want)
            # Inputs are rounded as well, which no bound of a run counts: they are numbers of its format.
            if np.any(error > 2 * room):
                return None
            worst = max(worst, float(np.max(error / np.where(room > 0, room, 1.0), initial=0.0)))
            telling += bool(np.max(room) < 0.1 * np.max(np.abs(gap.want), initial=0.0))
    return worst if telling >= 2 else None


def _looks_rounded(observations: Sequence[Observation]) -> bool:
    """Whether values err to both sides, or fit into a shorter format: a constant or a clamp errs to one side."""
    pairs = [gaps(o)[VALUE] for o in observations]
    signs = {float(np.sign(x)) for gap in pairs if not gap.right for x in np.ravel(gap.got - gap.want)}
    if len(signs) > 1:
        return True
    if any(not gap.right for gap in pairs):
        return all(np.array_equal(gap.got, gap.got.astype(np.float32)) for gap in pairs)
    offs = [
        gap.got - gap.want for o in observations for name, gap in gaps(o).items() if name != VALUE and not gap.right
    ]
    return any(np.any(off > 0) and np.any(off < 0) for off in offs)


def _fit_into_half(observations: Sequence[Observation]) -> bool:
    from nceref.verification.corpus import rounded

    answers = [gap.got for o in observations for gap in gaps(o).values()]
    return any(all(np.array_equal(rounded(x, half), x) for x in answers) for half in ("bfloat16", "float16"))


@dataclass(frozen=True)
class Range:
    """How far the exponents of a case reach.

    Attributes
    ----------
    largest, smallest : float
        Logits of pairs that take part.
    masked : float
        The largest logit of any pair, the anchor with itself included.
    drop : float
        By how much the largest of any pair exceeds the largest that takes part, in the worst row.
    row : float
        The largest loss of a row: minus the logarithm of a probability.
    """

    largest: float
    smallest: float
    masked: float
    drop: float
    row: float


def exponents(probe: Probe) -> Range:
    """The range of the exponents of a case, from the dense logits of the reference."""
    plan = LossFunction(probe.loss).declaration.plan(**promoted(bind(probe.loss, (), probe.inputs)))
    blocks = []
    for comparison, part in zip(plan.comparisons, roles(plan, ""), strict=False):
        s = np.asarray(comparison.logits.block(*(slice(0, size) for size in comparison.logits.shape)))
        blocks.append((s, np.where(part, s, -np.inf), np.where(part, s, np.inf)))
    tops = [high.max(axis=1) for _, high, _ in blocks]
    drop = max(float(np.max(s.max(axis=1) - top, initial=0.0, where=top > -np.inf)) for (s, _, _), top in
               zip(blocks, tops, strict=True))  # fmt: skip
    reduction = "none" if probe.loss.has_rows else "mean"
    rows = LossFunction(probe.loss)(**probe.inputs, reduction=reduction)
    return Range(
        max(float(top.max()) for top in tops),
        min(float(low.min()) for _, _, low in blocks),
        max(float(s.max()) for s, _, _ in blocks),
        drop,
        float(np.max(rows)),
    )


def _endless(moved: Sequence[Observation]) -> Iterator[Diagnosis]:
    """Why values or gradients are not finite, all else being right."""
    endless = [o for o in moved if not gaps(o)[VALUE].finite]
    finite = [o for o in moved if gaps(o)[VALUE].finite]
    steep = [o for o in finite if not_finite(o)]
    fine = [o for o in finite if o not in steep]
    cause = _out_of_range([*endless, *steep], fine) if endless or steep else None
    because = f": {cause[1]}" if cause else ""
    if endless:
        alone = all(lonely(o.probe) for o in endless) and not any(lonely(o.probe) for o in finite)
        id = "lonely-anchors-nan" if alone else cause[0] if cause else "value-not-finite"
        others = f"; it agrees on the other {len(finite)}" if finite else ""
        words = f"the value is {_kind(endless)} {where(endless, moved)}{'' if alone else because}{others}"
        yield diagnosis(id, words)
    if steep:
        names = listed(dict.fromkeys(name for o in steep for name in not_finite(o)))
        words = f"the gradient of {names} is not finite {where(steep, finite)}, where the value is right{because}"
        yield diagnosis("gradient-not-finite", words)


def _kind(observations: Sequence[Observation]) -> str:
    x = np.concatenate([np.ravel(np.asarray(o.outcome.value, dtype=np.float64)) for o in observations])
    found = {"NaN": np.any(np.isnan(x)), "infinite": np.any(np.isinf(x))}
    return " or ".join(name for name, there in found.items() if there)


Spans = Sequence[tuple[Range, bool]]
"""The exponents of each case, and whether the target failed on it."""


def _out_of_range(failing: Sequence[Observation], others: Sequence[Observation]) -> tuple[str, str] | None:
    """The id and the words of the range that the failing cases leave, and the others do not."""
    try:
        spans = [(exponents(o.probe), True) for o in failing] + [(exponents(o.probe), False) for o in others]
    except InputError:
        return None
    # Minus infinity is the logarithm of an empty sum; a sum that overflows gives plus infinity or NaN.
    empty = any(np.any(np.asarray(o.outcome.value) == -np.inf) for o in failing)
    ways = [way for way in WAYS if not (empty and way.id == "exp-overflows")]
    for dtype in dict.fromkeys((failing[0].probe.dtype, "float32")):
        storage = FORMATS[dtype].storage
        top, low = float(np.log(storage.largest)), float(-np.log(storage.tiny * 2 * storage.u))
        found = _predicted(spans, top, low, ways)
        if found:
            id, reached = found
            limit = f"exp overflows beyond {top:.4g}" if id == "exp-overflows" else f"exp(-{low:.4g}) is 0"
            return id, f"{reached}, and {limit} in {dtype}"
    return None


@dataclass(frozen=True)
class Way:
    """A way of writing the exponentials: `surely` above 1 is out of range, `perhaps` above 1/2 may be.

    A product of exponentials leaves the range at half of it.
    """

    id: str
    what: str
    surely: Callable[[Range, float, float], float]
    perhaps: Callable[[Range, float, float], float]


WAYS = (
    Way("exp-overflows", "largest", lambda r, top, low: r.largest / top, lambda r, top, low: _widest(r, top, low)),
    Way("exp-overflows", "masked", lambda r, top, low: r.masked / top, lambda r, top, low: _widest(r, top, low)),
    Way("exp-underflows", "row", lambda r, top, low: r.row / low, lambda r, top, low: max(r.drop, r.row) / low),
    Way("exp-underflows", "drop", lambda r, top, low: r.drop / low, lambda r, top, low: max(r.drop, r.row) / low),
)
"""Exponentials without a shift, with or without the masked pairs; shifted by a maximum, over all or over the masked."""


def _widest(r: Range, top: float, low: float) -> float:
    return max(r.masked / top, -r.smallest / low)


def _predicted(spans: Spans, top: float, low: float, ways: Sequence[Way]) -> tuple[str, str] | None:
    """Which way of writing the exponentials fails on these cases and on no other; the one that tells them apart best.

    `top` and `low` are the largest and the smallest exponent, both positive.
    """
    found = []
    for way in ways:
        bad = [way.surely(r, top, low) for r, failed in spans if failed]
        good = [way.surely(r, top, low) for r, failed in spans if not failed]
        must = max(good, default=0.0) <= 1.1 and max(bad) > 0.45
        if must and all(way.perhaps(r, top, low) > 0.45 for r, failed in spans if failed):
            apart = min(bad) - max(good, default=0.0)
            reached = max(getattr(r, way.what) for r, failed in spans if failed)
            found.append((apart, way.id, f"{REACHED[way.what]} {reached:.4g} there"))
    return max(found, key=lambda each: each[0])[1:] if found else None


REACHED = {
    "largest": "logits reach",
    "masked": "logits, the masked ones included, reach",
    "drop": "the largest logit of a row is that of a masked pair, and exceeds the others by",
    "row": "minus the log-probabilities reach",
}
"""What left the range, by attribute of `Range`."""


_ROUNDINGS = 256.0


def _cancelled(finite: Sequence[Observation]) -> tuple[Diagnosis, ...]:
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
    gap = max((gaps(o)[VALUE] for o in failing), key=lambda gap: gap.of_bound)
    worst = int(np.argmax(np.abs(gap.got - gap.want)))
    example = f"yours {gap.got.flat[worst]:.6g}, reference {gap.want.flat[worst]:.6g}"
    words = f"the value has lost its digits {where(failing, finite)} ({example}), where the loss is small"
    return (diagnosis("cancellation", words),)
