"""Implementation bounds: how far somebody else's right program may be from the exact loss, in any format.

A format stores every intermediate; sums and dot products are accumulated in the same format, or in float32 for the
16-bit ones. There are two classes of algorithms:

    log1p     softplus of differences of log-sum-exps: the bounds of `tolerance`
    textbook  any backward-stable evaluation. Beyond these bounds it may

        subtract the positive from a log-sum-exp over all   c u max |logit| + g_m a row
        shift by a maximum that masked entries take part in, or by none: exponentials below the range are lost
        take the logarithm of a probability                 what it loses below the normal numbers
        subtract 1 from a probability                       c u + (relative error of p) p a positive
        let the gradient through the maximum                |sum of the slopes| a row, at the maximum
        take a sigmoid before its logarithm                 c u (1 + |logit|) an entry
        compute distances and angles from inner products    c u (|x| + |y|)^2 / 2 a squared distance

What the program is compared with is the float64 program without cancellation, whose own bound is added, or a number
that is proven: then only the radius of that is to be added, by whoever has it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nceref.engine.arguments import choose_reduction, one_of
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.distances import PairedDistance
from nceref.engine.plan import Comparison
from nceref.engine.statistics import LogSumExp
from nceref.tolerance.analysis import Analysis, Bounds
from nceref.tolerance.backward import shifted_slopes
from nceref.tolerance.forward import LARGE, RoundingFormat, covered, exponentiates, finite, shift_error, statistic

Array = Any
ALGORITHMS = ("textbook", "log1p")


@dataclass(frozen=True)
class Storage:
    """A format in which numbers are kept.

    Attributes
    ----------
    u : float
        Unit roundoff.
    tiny, largest : float
        Smallest normal and largest number.
    """

    u: float
    tiny: float
    largest: float


@dataclass(frozen=True)
class Precision:
    """The two formats that a program computes in: that of what it stores, and that of its sums and dot products."""

    storage: Storage
    accumulation: Storage

    def arithmetic(self, textbook: bool) -> RoundingFormat:
        """The formats as the error analysis takes them; `textbook` admits any backward-stable evaluation."""
        return RoundingFormat(self.storage.u, self.storage.tiny, self.accumulation.u / self.storage.u, textbook)


def _ieee(dtype: Any) -> Storage:
    info = np.finfo(dtype)
    return Storage(float(info.eps) / 2, float(info.tiny), float(info.max))


_SINGLE, _DOUBLE = _ieee(np.float32), _ieee(np.float64)
FORMATS = {
    "float64": Precision(_DOUBLE, _DOUBLE),
    "float32": Precision(_SINGLE, _SINGLE),
    # Not a dtype of NumPy: 8 significant bits with the exponents of float32.
    "bfloat16": Precision(Storage(2.0**-8, 2.0**-126, (2 - 2.0**-7) * 2.0**127), _SINGLE),
    "float16": Precision(_ieee(np.float16), _SINGLE),
}
"""Precisions by the name of their dtype."""


def implementation_bounds(
    bound: BoundLoss, dtype: str, reduction: str = "mean", algorithm: str = "textbook", against: str = "program"
) -> Bounds:
    """Bounds on the errors of a right program in `dtype`.

    The batch is small enough for dense n x m arrays, and the inputs are numbers of `dtype`. With the reduction "none"
    the bound of the value is an array over rows, and gradients are those of the sum of the rows. `algorithm` names the
    programs that are admitted; errors are taken against the float64 reference, or against the exact loss. A bound is
    infinite where a right program may leave the range of the format. Raises `InputError` for a format, reduction or
    algorithm that does not exist.
    """
    run, algorithm = FORMATS[one_of("dtype", dtype, FORMATS)], one_of("algorithm", algorithm, ALGORITHMS)
    reduction = choose_reduction(bound.loss, reduction)
    plan = bound.plan
    fmt = run.arithmetic(algorithm == "textbook")
    with np.errstate(all="ignore"):
        reference = None
        if against == "program":
            reference = Analysis(plan, FORMATS["float64"].arithmetic(False), reduction).run()
        analysis = Analysis(plan, fmt, reduction, reference)
        shift = walk(analysis, bound.arguments)
        parts = _parts(analysis, shift, reference)
        grads = {name: g + (reference.grads[name] if reference else 0.0) for name, g in analysis.grads.items()}
        beyond = _beyond(analysis, run.storage.largest)
    value = np.inf if "" in beyond else sum(parts.values())
    grads = {name: np.full_like(g, np.inf) if {"", name} & beyond else g for name, g in grads.items()}
    terms = Terms(parts, lambda: _from_dots(bound, fmt, reduction))
    return Bounds(value, {name: float(b) if np.ndim(b) == 0 else b for name, b in grads.items()}, terms)


class Terms(Mapping[str, Any]):
    """The stages of a bound; the parts of dot products and statistics in its rows are computed when they are asked for.

    `parts` has the stages, with ``rows`` for both parts; `dots` computes that of the dot products.
    """

    def __init__(self, parts: Mapping[str, Any], dots: Callable[[], Any]) -> None:
        self._rows, self._others = parts["rows"], {name: x for name, x in parts.items() if name != "rows"}
        self._dots = cache(dots)

    def __getitem__(self, stage: str) -> Any:
        if stage not in _OF_ROWS:
            return self._others[stage]
        return self._dots() if stage == _OF_ROWS[0] else self._rows - self._dots()

    def __iter__(self) -> Iterator[str]:
        return iter((*_OF_ROWS, *self._others))

    def __len__(self) -> int:
        return len(_OF_ROWS) + len(self._others)


_OF_ROWS = ("dot products", "statistics")


def walk(analysis: Analysis, arguments: Mapping[str, Any]) -> Array:
    """Go through the stages, each widened by what a textbook program may lose there; what rows lose to the shift."""
    if not (analysis.fmt.textbook and any(map(exponentiates, analysis.plan.comparisons))):
        return np.zeros_like(analysis.run().rows)
    # Stage by stage: what is widened here goes through all stages that follow.
    analysis.fold()
    # Distances of pairs are no logits; all other comparisons have the same anchors, and are one row of logits.
    parts = [(i, c) for i, c in enumerate(analysis.plan.comparisons) if not isinstance(c.logits, PairedDistance)]
    peak = _peak(analysis, parts)
    count = sum(max(c.logits.shape) for _, c in parts)
    for i, comparison in parts:
        for name, term in comparison.terms.items():
            lost = shift_error(term, analysis.stats[name], peak, max(analysis.logits[i][0].shape), analysis.fmt)
            analysis.errors[name] = analysis.errors[name] + lost
    analysis.apply_head()
    # Where rows are not anchors, the largest weight is a bound for every anchor.
    weights = analysis.weighted(np.ones_like(analysis.rows))
    weights = weights if weights.shape == peak.shape else np.full_like(peak, np.max(weights))
    sensitivity = _sensitivity(analysis, weights)
    lost = analysis.fmt.count(4) * analysis.fmt.u * peak + analysis.fmt.gamma(analysis.fmt.ratio * count + 6)
    relative = np.expm1(np.minimum(2 * _spread(analysis, parts) + lost, LARGE))
    for name in set(analysis.slopes) - set(analysis.stats):
        # What multiplies the logits is at most that much of the largest.
        extra = np.sum(weights * sensitivity * (lost + relative * peak)) / abs(arguments[name])
        analysis.slope_errors[name] = analysis.slope_errors[name] + extra
    analysis.vjp()
    _widen_slopes(analysis, parts, relative, lost, weights * sensitivity)
    analysis.finish()
    return _like_rows(sensitivity * lost, analysis.rows) + _lost_in_logarithm(analysis)


def _lost_in_logarithm(analysis: Analysis) -> Array:
    """The error of a row that is the logarithm of a probability below the normal numbers, but not below all."""
    # In units of the smallest subnormal number; exp of the row itself would leave the range.
    excess = np.abs(analysis.rows) + np.log(2 * analysis.fmt.u * analysis.fmt.tiny)
    return np.where(excess < 0, np.exp(np.minimum(excess, 0.0)), 0.0)


Parts = list[tuple[int, Comparison]]


def _peak(analysis: Analysis, parts: Parts) -> Array:
    """The largest logit of each anchor, masked ones and those of its column included where columns are reduced."""
    peaks = [np.max(np.abs(analysis.logits[i][0]), axis=1) for i, _ in parts]
    peaks += [np.max(np.abs(analysis.logits[i][0]), axis=0) for i, c in parts if _by_column(c)]
    return np.max(peaks, axis=0) + analysis.plan.constant


def _spread(analysis: Analysis, parts: Parts) -> Array:
    """The largest error of a logit that takes part, by anchor."""
    spreads = []
    for i, comparison in parts:
        s, ds = analysis.logits[i]
        seen = np.where(covered(comparison, s), ds, 0.0)
        spreads.append(np.max(seen, axis=1))
        spreads += [np.max(seen, axis=0)] if _by_column(comparison) else []
    largest: Array = np.max(spreads, axis=0)
    return largest


def _by_column(comparison: Comparison) -> bool:
    return any(term.along == "columns" for term in comparison.terms.values())


def _sensitivity(analysis: Analysis, weights: Array) -> Array:
    """The sensitivity of a row to a logit when it is evaluated term by term: at least 1.

    It is read from the slopes, those at even odds too: where the positive wins, they hide what cancels. These are two
    samples, no supremum; that right programs stay within the bounds is tested.
    """
    sums = {n for c in analysis.plan.comparisons for n, t in c.terms.items() if isinstance(t.statistic, LogSumExp)}
    positive = [n for n in analysis.stats if n not in sums and analysis.stats[n].shape == weights.shape]
    even = {n: analysis.stats[positive[0]] if n in sums and positive else x for n, x in analysis.stats.items()}
    largest = np.ones_like(weights)
    for slopes in (analysis.slopes, analysis.head_at(even)[1]):
        for name in set(slopes) & set(analysis.stats):
            size = np.abs(slopes[name]).reshape(len(slopes[name]), -1).max(axis=1)
            if size.shape == weights.shape:
                part = size / np.where(weights > 0, weights, np.inf)
                largest = np.maximum(largest, np.where(np.isfinite(part), part, 0.0))
    return largest


def _widen_slopes(analysis: Analysis, parts: Parts, relative: Array, lost: Array, load: Array) -> None:
    """Put the errors of a program that subtracts 1 from a probability in place of those of one that does not."""
    fmt = analysis.fmt
    # However the logits were rounded, their probabilities add up to 1 but for what the log-sum-exp lost.
    total = load * (np.expm1(np.minimum(lost, LARGE)) + 4 * fmt.u)
    for i, comparison in parts:
        g, dg = analysis.blocks[i]
        analysis.blocks[i] = g, shifted_slopes(comparison, (*analysis.logits[i], dg), relative, load, total, fmt)


def _like_rows(x: Array, rows: Array) -> Array:
    """Numbers by anchor as numbers by row: for one row they are those of the worst anchor."""
    if rows.shape == x.shape:
        return x
    return np.full_like(rows, np.max(x)) if rows.shape[-1:] != x.shape else np.broadcast_to(x, rows.shape)


def _parts(analysis: Analysis, shift: Array, reference: Analysis | None) -> dict[str, Any]:
    """The stages of the bound of the value; by row where there is no reduction."""
    whole = analysis.reduction != "none"
    weighted, size = analysis.weighted, analysis.weighted(np.abs(analysis.rows))
    weights = weighted(np.ones_like(analysis.rows))
    # The rest of the row errors came with the statistics.
    head = np.minimum(analysis.own_rounding(), analysis.row_errors)
    by_row = {
        "rows": weighted(analysis.row_errors - head),
        "shift": weighted(shift),
        "head": weighted(head),
        "reduction": (analysis.summing(analysis.rows.size) if whole else analysis.summing(0)) * size,
        "underflow": 4 * analysis.fmt.tiny * np.maximum(weights, 0 * weights + 1 / max(weights.size, 1)),
    }
    if reference:
        by_row["reference"] = reference.weighted(reference.row_errors) + reference.summing(size.size) * size
    return {name: float(np.sum(x)) for name, x in by_row.items()} if whole else by_row


def _from_dots(bound: BoundLoss, fmt: RoundingFormat, reduction: str) -> Any:
    """The part of the errors of the rows that came with the logits."""
    analysis = Analysis(bound.plan, fmt, reduction)
    with np.errstate(all="ignore"):
        walk(analysis, bound.arguments)
        # The same box without what came with the logits: the difference is what they add.
        shares = _share_of_dots(analysis)
        own = {name: spread - shares[name] * analysis.errors[name] for name, spread in analysis.spread.items()}
        moved = analysis.rows_moved_by(analysis.spread)
        dots = analysis.weighted(np.maximum(moved - analysis.rows_moved_by(own), 0.0))
    return dots if reduction == "none" else float(np.sum(dots))


def _share_of_dots(analysis: Analysis) -> dict[str, float]:
    """The share of the error of each statistic that came with the logits."""
    shares = {}
    for comparison, (s, ds) in zip(analysis.plan.comparisons, analysis.logits, strict=True):
        for name, term in comparison.terms.items():
            errors = np.sum(finite(analysis.errors[name]))
            # The same bound with exact logits: the difference is what the logits' errors add.
            own = np.sum(finite(statistic(term, s, 0 * ds, analysis.fmt)[1]))
            full = np.sum(finite(statistic(term, s, ds, analysis.fmt)[1]))
            shares[name] = float((full - own) / errors) if errors > 0 else 0.0
    return shares


def _beyond(analysis: Analysis, largest: float) -> set[str]:
    """Inputs whose gradients may leave the range on the way; the empty name where already the value may."""
    logits = [
        (c.logits, np.max(np.abs(s))) for c, (s, _) in zip(analysis.plan.comparisons, analysis.logits, strict=True)
    ]
    if max(max(peak for _, peak in logits), np.sum(analysis.weighted(np.abs(analysis.rows)))) > largest / 2:
        return {""}
    scalars = [(x.factor.name, peak / x.factor.scalar) for x, peak in logits]
    steep = {name for name, slope in scalars if name is not None and slope > largest / 2}
    return steep | {name for name, size in analysis.sizes.items() if np.max(size) > largest / 4}
