"""How far the exponents of a case reach, and which way of writing exponentials leaves the range of a format there."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Probe
from nceref.diagnosis.fresh import InputSpec
from nceref.engine.anatomy import roles
from nceref.engine.entry_point import entry_point
from nceref.engine.statistics import Sum
from nceref.errors import InputError
from nceref.tolerance.implementation import FORMATS


@dataclass(frozen=True)
class CaseExponents:
    """The range of the exponents of a case.

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
    deepest : float
        By how much all logits of a row lie below 0, in the worst row.
    spread : float
        By how much the largest logit of a row lies below that of all rows, in the worst row.
    below, under : float
        By how much positives lie below the largest logit of all rows, and of the own row with the masked ones, in the
        worst row, to within the logarithm of the number of candidates.
    positive : float
        The largest logit of a positive.
    """

    largest: float
    smallest: float
    masked: float
    drop: float
    row: float
    deepest: float = 0.0
    spread: float = 0.0
    below: float = 0.0
    under: float = 0.0
    positive: float = -math.inf

    @property
    def least(self) -> float:
        """Minus the smallest logit."""
        return -self.smallest


@entry_point
def exponents(probe: Probe) -> CaseExponents:
    """The range of the exponents of a case, from the dense logits of the reference.

    Raises `InputError` where the loss refuses the inputs.
    """
    plan = probe.bound.plan
    blocks = []
    for comparison, part in zip(plan.comparisons, roles(plan, ""), strict=False):
        s = np.asarray(comparison.logits.block(*(slice(0, size) for size in comparison.logits.shape)))
        blocks.append((s, np.where(part, s, -np.inf), np.where(part, s, np.inf)))
    if not is_softmax(probe):
        blocks = _signed(blocks, plan)
    tops = [high.max(axis=1) for _, high, _ in blocks]
    positives = roles(plan, "positive")
    drop = max(float(np.max(s.max(axis=1) - top, initial=0.0, where=top > -np.inf)) for (s, _, _), top in
               zip(blocks, tops, strict=True))  # fmt: skip
    reduction = "none" if probe.loss.has_rows else "mean"
    rows = probe.bound.evaluate(reduction).value(reduction)
    return CaseExponents(
        max(float(top.max()) for top in tops),
        min(float(low.min()) for _, _, low in blocks),
        max(float(s.max()) for s, _, _ in blocks),
        drop,
        float(np.max(rows)),
        max(float(np.max(-top, initial=0.0, where=top > -np.inf)) for top in tops),
        max(float(np.max(top.max() - top, initial=0.0, where=top > -np.inf)) for top in tops),
        *_below(np.concatenate(tops), np.concatenate([s.max(axis=1) for s, *_ in blocks]), np.ravel(rows)),
        max(float(np.max(s, where=part, initial=-np.inf)) for (s, *_), part in zip(blocks, positives, strict=False)),
    )


def _signed(blocks: list[Any], plan: Any) -> list[Any]:
    """The largest logits of negatives, the smallest of positives: those that a sigmoid of either sign exponentiates."""
    signs = zip(blocks, roles(plan, "negative"), roles(plan, "positive"), strict=False)
    return [(s, np.where(no, s, -np.inf), np.where(yes, s, np.inf)) for (s, *_), no, yes in signs]


def _below(tops: Any, masked: Any, rows: Any) -> tuple[float, float]:
    # A row loss is about its largest logit less the positive, but where a row has several comparisons.
    if len(tops) != len(rows):
        return 0.0, 0.0
    there = tops > -np.inf
    below = np.max(np.max(tops) - tops + rows, where=there, initial=0.0)
    return float(below), float(np.max(masked - tops + rows, where=there, initial=0.0))


def range_specs(probe: Probe) -> tuple[InputSpec, ...]:
    """Inputs at which each way of writing exponentials fails, or not, by itself.

    `probe`: one of the run; half formats are commonly computed with in float32 as well. Result: logits that are all
    large; for a softmax also such that are all far below 0, that differ by more than the range while each of them is
    within it, and the same within the range.
    """
    dtype = probe.dtype
    sizes = (6, 5, 3, 5, 6, 2)
    out = []
    for name in dict.fromkeys((dtype, dtype if dtype == "float64" else "float32")):
        top, _ = limits(name)
        places = [("collapsed", 1.3), ("designed", 1.3)]
        if is_softmax(probe):
            places += [("apart", 1.4), ("opposed", 0.6), ("opposed", 0.35)]
        out += [InputSpec(geometry, float(f"{1 / (share * top):.3g}"), sizes) for geometry, share in places]
    return tuple(out)


Spans = Sequence[tuple[CaseExponents, bool]]
"""The exponents of each case, and whether the target failed on it."""


def out_of_range(failing: Sequence[Observation], others: Sequence[Observation]) -> tuple[str, str] | None:
    """The id and the words of the range that the failing cases leave, and the others do not.

    `failing` and `others`: cases with and without a number that is not finite. Result: none where no way of writing the
    exponentials separates them.
    """
    try:
        spans = [(exponents(o.probe), True) for o in failing] + [(exponents(o.probe), False) for o in others]
    except InputError:
        return None
    ways = _possible(failing)
    own = failing[0].probe.dtype
    # Half formats are commonly computed with in float32. In float64 nothing in float32 would be right elsewhere.
    for dtype in (own,) if own == "float64" else dict.fromkeys((own, "float32")):
        top, low = limits(dtype)
        prediction = _predicted(spans, top, low, ways)
        if prediction:
            id, reached = prediction
            return id, f"{reached}, and {limit_in_words(id, dtype)}"
    return None


def limits(dtype: str) -> tuple[float, float]:
    """The largest exponent of a format, and minus the one from which on exponentials are 0."""
    storage = FORMATS[dtype].storage
    # The smallest subnormal number of a format is tiny times 2 u; half of it is rounded to 0.
    return math.log(storage.largest), -math.log(storage.tiny) - math.log(storage.u)


def limit_in_words(id: str, dtype: str) -> str:
    """The place where exponentials overflow or underflow."""
    top, low = limits(dtype)
    if id == "exp-overflows":
        return f"exp overflows in {dtype} beyond {top:.4g} (a sum of n exponentials beyond {top:.4g} - log n)"
    return f"exp(-x) is 0 in {dtype} from x = {math.ceil(10 * low) / 10:g} on"


def _possible(failing: Sequence[Observation]) -> "list[Way]":
    """The ways that fit what came out."""
    values = np.concatenate([np.ravel(np.asarray(o.outcome.value, dtype=np.float64)) for o in failing])
    if not is_softmax(failing[0].probe):
        return [way for way in WAYS if way.id == "exp-overflows"]
    if np.any(values == -np.inf):
        # The logarithm of an empty sum; a sum that overflows gives plus infinity or NaN.
        return [way for way in WAYS if way.id == "exp-underflows"]
    # The logarithm of a probability that is 0 is never NaN, and is named first where nothing else tells.
    softmax = [way for way in WAYS if way.what == "row"]
    rest = [way for way in WAYS if way.what != "row"]
    return rest if np.any(np.isnan(values)) else [*softmax, *rest]


def is_softmax(probe: Probe) -> bool:
    """Whether a row takes the logarithm of a sum of exponentials, and not only sums of sigmoids."""
    plan = probe.bound.plan
    return not all(isinstance(term.statistic, Sum) for c in plan.comparisons for term in c.terms.values())


@dataclass(frozen=True)
class Way:
    """A way of writing the exponentials: `surely` above 1 is out of range, `perhaps` above 1/2 may be.

    A product of exponentials leaves the range at half of it.
    """

    id: str
    what: str
    surely: Callable[[CaseExponents, float, float], float]
    perhaps: Callable[[CaseExponents, float, float], float]


WAYS = (
    Way("exp-overflows", "largest", lambda r, top, low: r.largest / top, lambda r, top, low: _widest(r, top, low)),
    Way("exp-overflows", "masked", lambda r, top, low: r.masked / top, lambda r, top, low: _widest(r, top, low)),
    Way("exp-underflows", "row", lambda r, top, low: r.row / low, lambda r, top, low: max(r.drop, r.row) / low),
    Way("exp-overflows", "largest", lambda r, top, low: _quotient(r.largest, r, top, low), lambda r, top, low: 1.0),
    Way("exp-overflows", "masked", lambda r, top, low: _quotient(r.masked, r, top, low), lambda r, top, low: 1.0),
    Way("exp-underflows", "deepest", lambda r, top, low: r.deepest / low, lambda r, top, low: _widest(r, top, low)),
    Way("exp-underflows", "drop", lambda r, top, low: r.drop / low, lambda r, top, low: max(r.drop, r.row) / low),
)
"""Exponentials without a shift, with or without the masked pairs; shifted by a maximum, over all or over the masked.

Without a shift they overflow; the quotient of two may be 0 besides; or all of a row are 0.
"""


_NEAR = 0.25
"""Of ways that tell failing cases from others almost equally well, the first of the list is named."""


def _widest(r: CaseExponents, top: float, low: float) -> float:
    return max(r.masked / top, -r.smallest / low)


def _quotient(largest: float, r: CaseExponents, top: float, low: float) -> float:
    """The sentence on a quotient of exponentials: its terms overflow, it is 0 itself, or its divisor is."""
    return max(largest / top, r.row / low, r.deepest / low)


def _predicted(spans: Spans, top: float, low: float, ways: Sequence[Way]) -> tuple[str, str] | None:
    """The way of writing the exponentials that fails on these cases and on no other; the one that tells them apart.

    `top` and `low` are the largest and the smallest exponent, both positive.
    """
    fits = []
    for way in ways:
        bad = [way.surely(r, top, low) for r, failed in spans if failed]
        good = [way.surely(r, top, low) for r, failed in spans if not failed]
        must = max(bad) > 1 and min([*bad, 1.2]) > max(good, default=0.0)
        # Just below 1/2, where a product of two exponentials begins to leave the range.
        if must and all(way.perhaps(r, top, low) > 0.45 for r, failed in spans if failed):
            # Beyond the range is beyond the range.
            apart = min([*bad, 1.2]) - max(good, default=0.0)
            reached = max(getattr(r, way.what) for r, failed in spans if failed)
            fits.append((apart, way.id, f"{REACHED[way.what]} {reached:.4g} there"))
    best = max((apart for apart, *_ in fits), default=0.0)
    return next(((id, words) for apart, id, words in fits if apart >= best - _NEAR), None)


REACHED = {
    "largest": "logits reach",
    "masked": "logits, the masked ones included, reach",
    "drop": "the largest logit of a row is that of a masked pair, and exceeds the others by",
    "row": "minus the log-probabilities reach",
    "deepest": "all logits of a row lie below 0, by up to",
    "spread": "the largest logit of a row lies below that of all rows by up to",
    "below": "positives lie below the largest logit of all rows by up to",
    "under": "positives lie below the largest logit of the row, the masked ones included, by up to",
    "least": "minus the logits reach",
    "positive": "logits of positives reach",
}
"""What left the range, by attribute of `CaseExponents`."""
