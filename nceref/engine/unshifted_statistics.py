"""Row statistics of logits whose exponentials stay in range: no maxima, and one exponential for everything.

exp(s) of a tile serves rows and columns, every statistic, and the gradient: d log(sum_j e^s_ij) / d s_ij is
e^s_ij / sum, that is, the same number times one factor a row. So a tile is exponentiated once in both passes.

With a running maximum, every row and every column needs exponentials of its own, since each is shifted by another
number. The shift protects nothing where |s| stays below half of the range of exponents (see `passes.Walk`), which at
unit length means temperatures above 0.0028 in float64 and above 0.023 in float32. To leave it out costs no digit: the
rounding of s itself, which a shift does not undo, limits exp(s). Elsewhere the statistics in `statistics` take over;
the methods are described there.
"""

from dataclasses import dataclass
from typing import Any

from nceref.engine.namespaces import array_namespace
from nceref.engine.patterns import Pattern
from nceref.engine.tiles import Slopes, View

Array = Any


def log_or_empty(total: Array) -> Array:
    """The logarithm; -inf for an empty sum."""
    xp = array_namespace(total)
    return xp.where(total > 0, xp.log(xp.where(total > 0, total, 1.0)), -xp.inf)


def _inverse(out: Array) -> Array:
    """exp(-out), and 0 where the row is empty."""
    xp = array_namespace(out)
    empty = out == -xp.inf
    return xp.where(empty, 0.0, xp.exp(-xp.where(empty, 0.0, out)))


@dataclass(frozen=True)
class SumOfExponentials:
    """The numbers in log( sum_j exp(k s_ij) / count ).

    The count is how many pairs each row has, for a mean; None: the sum itself. The gradient sees `slope` in place of
    k where the rest of the exponent, (k - slope) s_ij, is a constant weight of the pair; None: all of k.
    """

    k: float = 1.0
    count: int | None = None
    slope: float | None = None

    @property
    def by_logit(self) -> float:
        """Derivative of the exponent by the logit."""
        return self.k if self.slope is None else self.slope


@dataclass(frozen=True)
class ExpSum(SumOfExponentials):
    """The logarithm computed as it is written."""

    def rereads(self, pattern: Pattern) -> bool:
        return False

    def start(self, zeros: Array) -> Array:
        return zeros

    def fold(self, state: Array, view: View, pattern: Pattern) -> Array:
        return state + view.sums(self._exp(view, pattern))

    def merge(self, state: Array, other: Array) -> Array:
        return state + other

    def finish(self, state: Array) -> Array:
        return log_or_empty(state / (self.count or 1))

    def prepare(self, slope: Array, out: Array) -> tuple[Array]:
        """The factor of exp(k s_ij) in the slopes, slope * by_logit / sum."""
        return (self.by_logit * slope * _inverse(out) / (self.count or 1),)

    def vjp(self, into: Slopes, view: View, pattern: Pattern, by: Array) -> None:
        into.scale(view, self._exp(view, pattern), by)

    def _exp(self, view: View, pattern: Pattern) -> Array:
        """exp(k s), 0 outside the pattern."""
        tile = view.tile
        key = view.key("exp", self.k, pattern, symmetric=pattern.symmetric)
        # A pattern that writes into its argument gets an array of its own; the others share one.
        if pattern.overwrites:
            return tile.once(key, lambda: pattern.cut(tile.exp(self.k), view, 0.0))
        return tile.once(key, lambda: pattern.cut(_shared_exp(view, self.k), view, 0.0))


@dataclass(frozen=True)
class ExpMeanNearOne(ExpSum):
    """A log-sum-exp of a mean over logits near 0: log1p of the mean of exp(k s) - 1."""

    count: int = 1

    def rereads(self, pattern: Pattern) -> bool:
        return True

    def fold(self, state: Array, view: View, pattern: Pattern) -> Array:
        s = view.tile.s
        return state + view.sums(pattern.cut(array_namespace(s).expm1(self.k * s), view, 0.0))

    def finish(self, state: Array) -> Array:
        return array_namespace(state).log1p(state / self.count)


def _shared_exp(view: View, k: float = 1.0) -> Array:
    """exp(k s) of the whole tile, shared by all that only read it."""
    return view.tile.once(("exp", k), lambda: view.tile.exp(k))


@dataclass(frozen=True)
class PositiveSums:
    """The columns of `PositiveSet`. A single positive has its level for a peak, and one share for both."""

    inside: bool = False

    def rereads(self, pattern: Pattern) -> bool:
        return True

    def start(self, zeros: Array) -> tuple[Array, ...]:
        return zeros, zeros, zeros, zeros

    def fold(self, state: tuple[Array, ...], view: View, pattern: Pattern) -> tuple[Array, ...]:
        e, inside, weight = self._parts(view, pattern)
        level = (e if weight is inside else weight * e) if self.inside else weight * view.tile.s
        count = view.sums(inside)
        sums = view.sums(e), view.sums(level), count if weight is inside else view.sums(weight), count
        return tuple(a + b for a, b in zip(state, sums, strict=True))

    def merge(self, state: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(a + b for a, b in zip(state, other, strict=True))

    def finish(self, state: tuple[Array, ...]) -> Array:
        total, level, mass, count = state
        xp = array_namespace(mass)
        peak, one = log_or_empty(total), xp.where(mass > 0, mass, 1.0)
        # Of one positive, peak and level have to be the same bits. Without `inside` the level is the logit itself,
        # which log(exp(s)) is only up to rounding.
        if self.inside:
            last = xp.where(count == 1, peak, log_or_empty(level) - xp.log(one))
        else:
            last = level / one
            peak = xp.where(count == 1, last, peak)
        return xp.stack([peak, last, mass, count], axis=1)

    def prepare(self, slope: Array, out: Array) -> tuple[Array, Array]:
        """The factors of exp(s_ij) and of the weights in the slopes; with `inside`, of the weights times exp(s_ij)."""
        xp = array_namespace(out)
        single, mass = out[:, 3] == 1, xp.where(out[:, 2] > 0, out[:, 2], 1.0)
        by_gap = xp.where(single, 0.0, slope[:, 1])
        target = by_gap / mass * (_inverse(out[:, 1]) if self.inside else 1.0)
        # The gap is peak - level: its slope goes to the shares of the peak as well.
        return (slope[:, 0] + by_gap) * _inverse(out[:, 0]), -target

    def vjp(self, into: Slopes, view: View, pattern: Pattern, by_share: Array, by_target: Array) -> None:
        e, inside, weight = self._parts(view, pattern)
        into.scale(view, e, by_share)
        if not self.inside:
            into.scale(view, weight, by_target)
        elif weight is inside:
            # All weights are 1: the same array as above, and one product for both factors.
            into.scale(view, e, by_target)
        else:
            into.add(view.turned(by_target[:, None] * view.turned(weight * e)))

    def _parts(self, view: View, pattern: Pattern) -> tuple[Array, Array, Array]:
        """exp(s) inside the pattern, 1 inside and 0 outside, and the weights inside, all made of the tile."""
        tile = view.tile

        def once(what: str, make: Any) -> Array:
            return tile.once(view.key(what, pattern, symmetric=pattern.symmetric), make)

        inside = once("inside", lambda: pattern.inside(view))
        e = once("exp", lambda: _shared_exp(view) * inside)
        weight = pattern.weight(view.rows, view.columns)
        return e, inside, inside if weight is None else once("weight", lambda: inside * view.turned(weight))
