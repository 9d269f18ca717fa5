"""Row statistics: each reduces the logits of a row to one number, and takes a gradient back to the logits.

Every statistic has these methods; n is the number of rows of a view, the part of a tile that a term looks at.

    start(zeros)                     -> state         nothing folded yet, for as many rows as `zeros`, (n,), has
    fold(state, view, pattern)       -> state         one more view taken in
    merge(state, other)              -> state         what two threads folded over different blocks of the same rows
    finish(state)                    -> (n,)          the statistic of each row; (n, 4) of a `PositiveSet`
    prepare(slope, out)              -> vectors (n,)  what `vjp` needs of d value / d statistic, computed once a row
    vjp(into, view, pattern, *those)                  adds slope times d statistic / d s to the `Slopes` of the tile
    within(bound, most)              -> statistic     the variant for logits of at most `bound` in absolute value
    rereads(pattern)                 -> bool          whether `vjp` needs the logits, not only what `fold` made of them

`exponentiates` is True where `within` needs a bound. Heads that use these numbers are in `heads`.

The statistics here work for any logits: every row has its own running maximum. Those of `unshifted_statistics` are for
logits whose exponentials cannot leave the range, which is the usual case, and share one exponential of a tile.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from nceref.engine.namespaces import array_namespace
from nceref.engine.patterns import Pattern
from nceref.engine.tiles import Slopes, View
from nceref.engine.unshifted_statistics import ExpMeanNearOne, ExpSum, PositiveSums, SumOfExponentials, log_or_empty

Array = Any
NEAR = 1 / 16
"""The largest exponent for which the logarithm of a mean of exponentials is taken by their distance from 1."""


@dataclass(frozen=True)
class LogSumExp(SumOfExponentials):
    """log( sum_j exp(k s_ij) / count ); -inf for an empty row, and the head decides what that means."""

    exponentiates = True

    def within(self, bound: float, most: float) -> Any:
        """The statistic without maxima where no exponential overflows; means of numbers near 1 keep their digits."""
        if self.count is not None and self.k * bound < NEAR:
            return ExpMeanNearOne(self.k, self.count, self.slope)
        return ExpSum(self.k, self.count, self.slope) if self.k * bound <= most else self

    def rereads(self, pattern: Pattern) -> bool:
        return True

    def start(self, zeros: Array) -> tuple[Array, Array]:
        """Running maximum and running sum of exponentials for as many rows as `zeros` has."""
        return zeros - array_namespace(zeros).inf, zeros

    def fold(self, state: tuple[Array, Array], view: View, pattern: Pattern) -> tuple[Array, Array]:
        """Take in one view. The maximum is taken over included entries; the exponent is masked, not its result."""
        return fold_exponents(state, self._exponent(view, pattern))

    def merge(self, state: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        """One state from two that were folded over different blocks."""
        xp = array_namespace(*state)
        top = xp.maximum(state[0], other[0])
        # A row that is empty so far has no maximum, and -inf - (-inf) would be NaN.
        shift = xp.where(top == -xp.inf, 0.0, top)
        return top, state[1] * xp.exp(state[0] - shift) + other[1] * xp.exp(other[0] - shift)

    def finish(self, state: tuple[Array, Array]) -> Array:
        """The statistic of each row."""
        peak, total = state
        # A logit beyond the range has left an infinite maximum and no sum: that is not an empty row, and comes out NaN.
        return peak + log_or_empty(total / (self.count or 1))

    def prepare(self, slope: Array, out: Array) -> tuple[Array, Array]:
        """Slope by the exponents, and what these are measured from; an empty row has no pair to give a share to."""
        return self.by_logit * slope, _or_zero(out) + math.log(self.count or 1)

    def vjp(self, into: Slopes, view: View, pattern: Pattern, slope: Array, shift: Array) -> None:
        """Slope times d out_i / d s_ij, which is exp(k s_ij - out_i) times the slope of the exponent."""
        xp = array_namespace(slope)
        into.scale(view, view.turned(xp.exp(self._exponent(view, pattern) - shift[:, None])), slope)

    def _exponent(self, view: View, pattern: Pattern) -> Array:
        return view.turned(pattern.cut(self.k * view.tile.s, view, -array_namespace(view.tile.s).inf))


def fold_exponents(state: tuple[Array, Array], exponent: Array) -> tuple[Array, Array]:
    """Running maximum and running sum of exp(exponent), with the entries of one block taken in.

    `state` is the maximum and the sum so far, (n,) each; -inf and 0 for a row that is empty so far. `exponent` is (n,
    columns), -inf for pairs that are left out. The sum is that of exponentials shifted by the maximum.
    """
    xp = array_namespace(exponent)
    peak, total = state
    top = xp.maximum(peak, xp.max(exponent, axis=1))
    # Where all is left out so far, -inf - (-inf) would be NaN.
    shift = xp.where(top == -xp.inf, 0.0, top)
    return top, total * xp.exp(peak - shift) + xp.sum(xp.exp(exponent - shift[:, None]), axis=1)


def _weighted(exponent: Array, view: View, pattern: Pattern) -> Array:
    """Exponents with the logarithm of each weight added."""
    log_weight = pattern.log_weight(view.rows, view.columns)
    return exponent if log_weight is None else exponent + log_weight


def _or_zero(out: Array) -> Array:
    xp = array_namespace(out)
    return xp.where(out == -xp.inf, 0.0, out)


def _identity(s: Array) -> Array:
    return 1.0 * s  # `positive` need not copy, and `cut` may write into what it gets


def _one(s: Array) -> Array:
    return array_namespace(s).ones_like(s)


@dataclass(frozen=True)
class Sum:
    """sum_j f(s_ij), with the slope f'; both return fresh arrays.

    `both(s, bounded)` returns (f, f') together, where they share work; `bounded` is True if e^s is in range.
    """

    f: Callable[[Array], Array] = _identity
    slope: Callable[[Array], Array] = _one
    both: Callable[[Array, bool], tuple[Array, Array]] | None = None

    def within(self, bound: float, most: float) -> Any:
        """The statistic itself, for any bound: a sum exponentiates nothing."""
        return self

    @property
    def exponentiates(self) -> bool:
        return self.both is not None

    def rereads(self, pattern: Pattern) -> bool:
        return not pattern.sparse and self.both is None

    def start(self, zeros: Array) -> Array:
        """0 for as many rows as `zeros` has, to be added to in place."""
        return zeros

    def fold(self, state: Array, view: View, pattern: Pattern) -> Array:
        """Take in one view."""
        tile = view.tile
        if pattern.sparse:
            for own, where in pattern.lines(view):
                values = tile.line(where)
                # For the second pass, which may get the tile without its logits.
                tile.on_line[self, where.start, where.stop] = self.slope(values)
                state[own] += self.f(values)
            return state
        if self.both is None:
            values = self.f(tile.s)
        else:
            values, slope = self.both(tile.s, tile.bounded)
            # Under the key that `vjp` looks up: the slope is not computed a second time.
            tile.once(self._key(view, pattern), lambda: pattern.cut(slope, view, 0.0))
        return state + view.sums(pattern.cut(values, view, 0.0))

    def merge(self, state: Array, other: Array) -> Array:
        """One state from two that were folded over different blocks."""
        return state + other

    def finish(self, state: Array) -> Array:
        """The statistic of each row."""
        return state

    def prepare(self, slope: Array, out: Array) -> tuple[Array]:
        """The slope itself."""
        return (slope,)

    def vjp(self, into: Slopes, view: View, pattern: Pattern, slope: Array) -> None:
        """Slope times d out_i / d s_ij = f'(s_ij)."""
        tile = view.tile
        if pattern.sparse:
            for own, where in pattern.lines(view):
                known = tile.on_line.get((self, where.start, where.stop))
                into.on_line(where, slope[own] * (self.slope(tile.line(where)) if known is None else known))
            return
        made = tile.once(self._key(view, pattern), lambda: pattern.cut(self.slope(tile.s), view, 0.0))
        into.scale(view, made, slope)

    def _key(self, view: View, pattern: Pattern) -> Any:
        return view.key(self, pattern, symmetric=pattern.symmetric)


@dataclass(frozen=True)
class PositiveSet:
    """Numbers a row about a set of positives with weights w: columns `peak`, `level`, `mass`, `count`.

    peak   log sum_j exp(s_ij), the positives' part of the denominator, unweighted
    level  sum_j w_ij s_ij / mass, or with `inside` the logarithm taken last: log(sum_j w_ij exp(s_ij) / mass)
    mass   sum_j w_ij
    count  how many there are

    For one positive, peak - level is 0 to the last bit, and so is the difference of their slopes: a tiny loss and its
    gradient keep their digits.
    """

    inside: bool = False
    exponentiates = True

    def within(self, bound: float, most: float) -> Any:
        """The statistic without maxima, where no exponential can leave the range."""
        return PositiveSums(self.inside) if bound <= most else self

    def rereads(self, pattern: Pattern) -> bool:
        return True

    def start(self, zeros: Array) -> tuple[Any, ...]:
        """The state before any block."""
        plain = LogSumExp().start(zeros)
        return plain, (plain if self.inside else zeros), zeros, zeros

    def fold(self, state: tuple[Any, ...], view: View, pattern: Pattern) -> tuple[Any, ...]:
        """Take in one view."""
        exponent, inside, weight = self._parts(view, pattern)
        xp = array_namespace(inside)
        peak, level, mass, count = state
        if self.inside:
            level = fold_exponents(level, _weighted(exponent, view, pattern))
        else:
            level = level + xp.sum(weight * view.s, axis=1)
        return fold_exponents(peak, exponent), level, mass + xp.sum(weight, axis=1), count + xp.sum(inside, axis=1)

    def merge(self, state: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        """One state from two that were folded over different blocks."""
        kinds = (LogSumExp(), LogSumExp() if self.inside else Sum(), Sum(), Sum())
        return tuple(kind.merge(a, b) for kind, a, b in zip(kinds, state, other, strict=True))

    def finish(self, state: tuple[Any, ...]) -> Array:
        """(n, 4); a row without positives has peak -inf and mass 0."""
        peak, level, mass, count = state
        xp = array_namespace(mass)
        one = xp.where(mass > 0, mass, 1.0)
        last = LogSumExp().finish(level) - xp.log(one) if self.inside else level / one
        return xp.stack([LogSumExp().finish(peak), last, mass, count], axis=1)

    def prepare(self, slope: Array, out: Array) -> tuple[Array, ...]:
        """Slopes of `peak` and of `peak - level`, the two shifts, and the mass."""
        xp = array_namespace(out)
        mass = xp.where(out[:, 2] > 0, out[:, 2], 1.0)
        # The gap of a single positive is 0, and so is its slope, to the last bit: s_ij may not be s_ji to the last bit.
        by_gap = xp.where(out[:, 3] == 1, 0.0, slope[:, 1])
        return slope[:, 0], by_gap, _or_zero(out[:, 0]), _or_zero(out[:, 1]), mass

    def vjp(self, into: Slopes, view: View, pattern: Pattern, *prepared: Array) -> None:
        """Slope column 0 goes to `peak`, column 1 to `peak - level`."""
        by_peak, by_gap, peak, level, mass = (x[:, None] for x in prepared)
        exponent, _, weight = self._parts(view, pattern)
        xp = array_namespace(exponent)
        share = xp.exp(exponent - peak)
        if self.inside:
            # What an entry is of a sum that it is part of: whatever rounding does, it is not more than 1.
            target = xp.exp(xp.clip(_weighted(exponent, view, pattern) - (level + xp.log(mass)), max=0.0))
        else:
            target = weight / mass
        into.add(view.turned(by_peak * share + by_gap * (share - target)))

    def _parts(self, view: View, pattern: Pattern) -> tuple[Array, Array, Array]:
        """Logits with -inf outside the pattern, 1 inside and 0 outside, and the weights inside."""
        xp = array_namespace(view.s)
        inside = view.turned(pattern.inside(view))
        weight = pattern.weight(view.rows, view.columns)
        return xp.where(inside > 0, view.s, -xp.inf), inside, inside if weight is None else inside * weight


@dataclass(frozen=True, eq=False)
class Term:
    """A statistic over a pattern; along rows (one number per anchor) or along columns (one per candidate)."""

    statistic: LogSumExp | Sum | PositiveSet
    pattern: Pattern
    along: str = "rows"


class FittedTerm(NamedTuple):
    """A term with the statistic that suits the range of the logits."""

    statistic: Any
    pattern: Pattern
    along: str
