"""Error bounds of the forward pass: logits and row statistics, each with how far rounding may move it.

All arrays are dense and float64, whatever the arithmetic that is analyzed. Throughout, `s` are logits (n, m), `ds` the
bound on their error, entry by entry, `mask` and `weight` say where a statistic looks, and `fmt` is the arithmetic.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nceref.engine.distances import PairedDistance, SquaredDistance
from nceref.engine.embeddings import Rows
from nceref.engine.patterns import union
from nceref.engine.similarity import Dot
from nceref.engine.statistics import LogSumExp, PositiveSet, Sum, Term

Array = Any
LARGE = 50.0
"""The largest exponent in a bound: larger ones, which make it vacuous anyway, are cut to stay finite."""


@dataclass(frozen=True)
class RoundingFormat:
    """The arithmetic that is analyzed.

    Attributes
    ----------
    u : float
        Unit roundoff of the format in which every intermediate is stored.
    tiny : float
        Its smallest normal number.
    ratio : float
        Unit roundoff of sums and dot products over `u`: below 1 where they are added up in a wider format.
    textbook : bool
        Whether any backward-stable evaluation is admitted, or only the cancellation-free one.
    """

    u: float
    tiny: float
    ratio: float = 1.0
    textbook: bool = False

    def count(self, n: Any) -> Any:
        """The size of n roundings together, in units of one."""
        return n

    def gamma(self, n: Any) -> Any:
        """The constant g_n of n roundings."""
        # Beyond n u = 1/2 there is no bound of this form; the cut keeps the result positive and finite.
        return self.count(n) * self.u / np.maximum(1 - n * self.u, 0.5)


class MovedRows(Rows):
    """Rows whose entries carry their rounding errors already, so that no more are counted."""


def finite(x: Array) -> Array:
    """The array with 0 where it is infinite."""
    return np.where(np.isfinite(x), x, 0.0)


def entry_costs(rows: Rows, fmt: RoundingFormat) -> Array:
    """Relative error of an entry of each row, in units of u: 0 as given, D/2 + 6 after normalization.

    A textbook program needs no more than 4 roundings beside the sum: squares, root, a bound from below, division.

    The rows may be those of several inputs; those of an input with a `length` were normalized.
    """
    d = rows.values.shape[1]
    cost = np.zeros((rows.values.shape[0], 1))
    for part in () if isinstance(rows, MovedRows) else rows.parts:
        if part.length is not None:
            # The root halves the relative error of a sum of D squares.
            cost[part.span] = fmt.ratio * d / 2 + (4 if fmt.textbook else 6)
    return cost


def logits_error(logits: Any, fmt: RoundingFormat) -> tuple[Array, Array]:
    """Dense logits and the bound on their error."""
    s = _dense_logits(logits)
    extra = fmt.count(1 if fmt.textbook else 2) * fmt.u * np.abs(s) + _offset_error(logits, fmt)
    if isinstance(logits, Dot):
        a, b = logits.anchors, logits.candidates
        # The product, its factor, and the factor's own rounding.
        cost = entry_costs(a, fmt) + entry_costs(b, fmt).T + fmt.ratio * a.values.shape[1] + (3 if fmt.textbook else 4)
        return s, logits.scale * fmt.u * fmt.count(cost) * products(logits)[1] + extra
    if isinstance(logits, SquaredDistance):
        squares = np.sum(far_from(logits, fmt) ** 2, axis=1)
        cost = 2 * entry_costs(logits.points, fmt).max() + fmt.ratio * logits.points.values.shape[1] + 8
        return s, 2 * logits.scale * fmt.u * fmt.count(cost) * (squares[:, None] + squares[None, :]) + extra
    if isinstance(logits, PairedDistance):
        return s, distance_error(logits, s, fmt) + extra
    size = logits.scale * np.abs(logits.source.balanced[0])
    if fmt.textbook:
        # What was subtracted from the input before may be subtracted later, or together with the offset.
        size = size + 2 * logits.factor.times_power(0) * np.abs(logits.source.parts[0].source).reshape(size.shape)
    return s, 4 * fmt.u * size + extra


# Both analyses of a plan start from the same numbers.
@lru_cache(maxsize=4)
def _dense_logits(logits: Any) -> Array:
    n, m = logits.shape
    return logits.block(slice(0, n), slice(0, m))


@lru_cache(maxsize=4)
def products(logits: Dot) -> tuple[Array, Array]:
    """Dot products of balanced rows, and what their terms add up to in magnitude."""
    a, b = logits.anchors.balanced[0], logits.candidates.balanced[0]
    return a @ b.T, np.abs(a) @ np.abs(b).T


def far_from(logits: Any, fmt: RoundingFormat) -> Array:
    """Magnitudes of the rows in a squared distance, measured from the first row or from the origin.

    A textbook program need not shift the rows.
    """
    points = np.abs(logits.points.balanced[0])
    if fmt.textbook:
        return np.abs(logits.centered) + 2 * points
    # Without a normalization the rows are exact, and only their differences are rounded.
    return np.abs(logits.centered) + 2 * np.max(entry_costs(logits.points, fmt) > 0) * points


def distance_error(logits: Any, s: Array, fmt: RoundingFormat) -> Array:
    """The bound on the errors of the distances `s` of pairs."""
    x, y = logits.x.values, logits.y.values
    costs = entry_costs(logits.x, fmt), entry_costs(logits.y, fmt)
    entry = fmt.u * (costs[0] * np.abs(x) + costs[1] * np.abs(y) + np.abs(x - y))
    error = np.linalg.norm(entry, axis=1, keepdims=True) + fmt.gamma(fmt.ratio * x.shape[1] + 6) * s
    # Distances below the range have fewer digits.
    error = error + 2 * fmt.u * fmt.tiny
    if not fmt.textbook:
        return error
    # Through |x|^2 + |y|^2 - 2 xy, or through a cosine: an absolute error of the square.
    square = fmt.u * (costs[0] + costs[1] + fmt.ratio * x.shape[1] + 8)
    square = square * np.sum(np.abs(x) + np.abs(y), axis=1, keepdims=True) ** 2 / 2
    # |sqrt(s^2 + e) - s| is at most e / s, and at most sqrt(e) however near the points are.
    return error + np.minimum(square / np.where(s > 0, s, 1e-300), np.sqrt(square))


def _offset_error(logits: Any, fmt: RoundingFormat) -> Any:
    if logits.offset is None:
        return 0.0
    return 4 * fmt.u * np.abs(logits.offset.value)


def pattern(term: Term, s: Array) -> tuple[Array, Array]:
    """Bool mask and weights of a term's pattern, dense.

    `s` are the logits. The results have the term's own rows first; the weight is 0 outside the mask.
    """
    view = oriented(term, s)
    return _dense_pattern(term, view) if term.pattern.whole_rows else _fixed_pattern(term, view.shape)


# Both analyses of a plan look at the patterns of its few terms, at every stage.
@lru_cache(maxsize=8)
def _fixed_pattern(term: Term, shape: tuple[int, int]) -> tuple[Array, Array]:
    """A pattern that is the same for all logits."""
    return _dense_pattern(term, np.broadcast_to(0.0, shape))


def _dense_pattern(term: Term, view: Array) -> tuple[Array, Array]:
    rows, columns = slice(0, view.shape[0]), slice(0, view.shape[1])
    mask = term.pattern.mask(rows, columns, view)
    # Patterns say None for all pairs and False for none.
    mask = np.full(view.shape, mask is None) if mask is None or mask is False else mask
    weight = term.pattern.weight(rows, columns)
    return mask, np.where(mask, 1.0 if weight is None else weight, 0.0)


def unsure(term: Term, s: Array, ds: Array, fmt: RoundingFormat) -> Array:
    """The pairs that rounding may take into a pattern of the largest logits, or push out of it.

    Two candidates may stand in another order in the exact logits, or in those of the program, only where the logits in
    hand are no further apart than what both may be off by.

    The pattern of the term is one of whole rows; `s` and `ds` have the term's own rows first. A textbook program may
    tell equal candidates apart by their rounding.
    """
    ranking: Any = term.pattern
    kept, (n, m) = _dense_pattern(term, s)[0], s.shape
    dropped = ~(kept | union(ranking.own, slice(0, n), slice(0, m), s))
    copies = None if fmt.textbook else ranking.copies
    which = np.arange(m) if copies is None else copies.first
    # The logits in hand are rounded to float64 themselves.
    ds = ds * (1 + np.finfo(float).eps / 2 / (fmt.u * fmt.ratio))
    pushed = kept & (_largest_other(s + ds, dropped, which) > s - ds)
    taken = dropped & (s + ds > -_largest_other(ds - s, kept, which))
    return pushed | taken


def _largest_other(x: Array, among: Array, which: Array) -> Array:
    """The largest entry in the row of each that is in `among` and no copy of its candidate; -inf: there is none."""
    x = np.where(among, x, -np.inf)
    best = which[np.argmax(x, axis=1)][:, None] == which[None, :]
    largest, next_largest = (np.max(y, axis=1, keepdims=True) for y in (x, np.where(best, -np.inf, x)))
    return np.where(best, next_largest, largest)


def covered(comparison: Any, s: Array) -> Array:
    """The mask of the entries that at least one statistic reads, dense."""
    return np.any([oriented(term, pattern(term, s)[0]) for term in comparison.terms.values()], axis=0)


def oriented(term: Term, x: Array) -> Array:
    """The array with the term's own rows first."""
    return x if term.along == "rows" else x.T


def statistic(term: Term, s: Array, ds: Array, fmt: RoundingFormat) -> tuple[Array, Array]:
    """A statistic of every row and the bound on its error.

    A `PositiveSet` has three numbers a row: the log-sum-exp over the set, its level, and its weight.
    """
    mask, weight = pattern(term, s)
    s, ds = oriented(term, s), oriented(term, ds)
    if term.pattern.whole_rows:
        # Of candidates that may change places, the error is that of any of them: what is taken in is not in the mask.
        near = unsure(term, s, ds, fmt)
        ds = np.where(near, np.max(ds, axis=1, keepdims=True, where=near, initial=0.0), ds)
    if isinstance(term.statistic, LogSumExp):
        return log_sum_exp(term.statistic.k, s, ds, mask, weight / (term.statistic.count or 1), fmt)
    if isinstance(term.statistic, Sum):
        return weighted_sum(term.statistic, s, ds, weight, fmt)
    peak, dpeak = log_sum_exp(1.0, s, ds, mask, mask * 1.0, fmt)
    mass = np.sum(weight, axis=1)
    one = np.where(mass > 0, mass, 1.0)
    if term.statistic.inside:
        level, dlevel = log_sum_exp(1.0, s, ds, mask, weight, fmt)
        level, dlevel = level - np.log(one), dlevel + 4 * fmt.u * np.abs(np.log(one))
    else:
        total, dtotal = weighted_sum(Sum(), s, ds, weight, fmt)
        level, dlevel = total / one, dtotal / one + 3 * fmt.u * np.abs(total / one)
    # One positive: peak and level are the same bits, so that their difference has no error at all.
    alone = np.sum(mask, axis=1) == 1
    together = np.where(alone, np.maximum(dpeak, dlevel), dlevel)
    return np.stack([peak, level, mass], axis=1), np.stack(
        [dpeak, together, fmt.gamma(fmt.ratio * s.shape[1]) * mass], axis=1
    )


def log_sum_exp(k: float, s: Array, ds: Array, mask: Array, weight: Array, fmt: RoundingFormat) -> tuple[Array, Array]:
    """Log-sum-exp of every row and the bound on its error.

    `k` multiplies the logits. Where the mask is False an entry is left out, and its error with it. A row without
    entries has minus infinity.
    """
    x = np.where(mask, k * s, -np.inf)
    top = np.max(x, axis=1)
    shift = np.where(np.isfinite(top), top, 0.0)
    mass = weight * np.exp(x - shift[:, None])
    total = np.sum(mass, axis=1)
    some = total > 0
    out = np.where(some, shift + np.log(np.where(some, total, 1.0)), -np.inf)
    # The derivative by each entry: errors of entries without a share in the sum do not count.
    share = mass / np.where(some, total, 1.0)[:, None]
    entry = np.where(mask, k * ds + fmt.u * (np.abs(k * s) + np.abs(k * s - shift[:, None])), 0.0)
    worst = np.max(entry, axis=1)
    # Terms of second order, see `analysis`.
    growth = np.exp(np.minimum(2 * worst, LARGE))
    error = np.sum(growth[:, None] * share * entry, axis=1)
    beyond = 2 * worst >= LARGE
    if np.any(beyond):
        # Shares that are 0 count there too: a rounded logit may have hidden the largest one.
        error = np.where(beyond, _rise(x, out, weight, entry), error)
    # However large the errors are, the whole moves no further than the entry that moves most.
    error = np.minimum(error, worst)
    return out, error + fmt.gamma(fmt.ratio * s.shape[1] + 8) + fmt.count(2) * fmt.u * np.abs(finite(out))


def _rise(x: Array, out: Array, weight: Array, entry: Array) -> Array:
    """The rise of a log-sum-exp where every exponent rises by `entry`; being convex, it falls by no more."""
    raised = log_share(x, out, weight) + entry
    top = finite(np.max(raised, axis=1))
    total = np.sum(np.exp(raised - top[:, None]), axis=1)
    return top + np.log(np.where(total > 0, total, 1.0))


def log_share(x: Array, out: Array, weight: Array) -> Array:
    """Logarithm of W exp(x - out), by entry of every row; it does not underflow.

    `x` are the exponents, -inf for entries that are left out, and `out` is their log-sum-exp.
    """
    some = weight > 0
    return np.where(some, x - finite(out)[:, None] + np.log(np.where(some, weight, 1.0)), -np.inf)


def weighted_sum(statistic: Sum, s: Array, ds: Array, weight: Array, fmt: RoundingFormat) -> tuple[Array, Array]:
    """Sum of f(s) over every row and the bound on its error."""
    f, slope = statistic.f(s), np.abs(statistic.slope(s))
    change = np.where(2 * ds >= LARGE, most_change(statistic.f, s, ds), slope * ds * np.exp(np.minimum(ds, LARGE)))
    # No f is steeper than 1.
    entry = np.minimum(change, ds) + 4 * fmt.u * np.abs(f)
    if not linear(statistic, s):
        # An exponential below the range is lost, whatever it is multiplied by later.
        entry = entry + fmt.tiny
    if fmt.textbook and not linear(statistic, s):
        # log(1 + exp(s)), or the logarithm of a sigmoid.
        entry = entry + 4 * fmt.u * (1 + np.abs(s))
    size = weight * np.abs(f)
    count = np.sum(weight > 0, axis=1)
    return np.sum(weight * f, axis=1), np.sum(weight * entry, axis=1) + fmt.gamma(fmt.ratio * count + 1) * np.sum(
        size, axis=1
    )


def most_change(function: Callable[[Array], Array], s: Array, ds: Array) -> Array:
    """The change of a monotone function where its argument moves by up to `ds`, in digits only if `ds` is not small."""
    return np.maximum(*(np.abs(function(moved) - function(s)) for moved in (s + ds, s - ds)))


def linear(statistic: Sum, s: Array) -> bool:
    """Whether a sum is one of the logits themselves."""
    return bool(np.all(statistic.slope(s) == 1))


def exponentiates(comparison: Any) -> bool:
    """Whether one of the statistics is a log-sum-exp, or a set of positives that is part of one."""
    return any(isinstance(term.statistic, LogSumExp | PositiveSet) for term in comparison.terms.values())


def shift_error(term: Term, out: Array, peak: Array, count: int, fmt: RoundingFormat) -> Array:
    """The error of a statistic by a shift by the largest entry, masked ones included, or by no shift at all.

    `out` is what `statistic` returns, `peak` the largest magnitude of a logit in the row, and `count` the entries of a
    row.
    """
    # A sum of the logits themselves is the positive, from which a program may subtract the same maximum.
    if isinstance(term.statistic, Sum) and not linear(term.statistic, peak):
        return 0.0
    k = term.statistic.k if isinstance(term.statistic, LogSumExp) else 1.0
    level = out[:, 0] if out.ndim == 2 else out
    # Exponentials below the range lose their digits one by one; of a sum of nothing else, nothing is left.
    # 2 u times the smallest normal number is the smallest subnormal one.
    least, depth = 2 * fmt.u * fmt.tiny, k * peak - finite(level)
    # Cut at 700, since float64 ends near e^709.
    lost = np.where(depth < -math.log(least), count * least * np.exp(np.minimum(depth, 700.0)), 0.0)
    error = fmt.count(2) * fmt.u * k * peak + lost
    return error if out.ndim == 1 else np.stack([error, error, 0 * error], axis=1)
