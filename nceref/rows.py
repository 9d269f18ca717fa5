"""Row statistics: each reduces the logits of a row to one number, and pulls a gradient back to the logits.

A statistic is folded over blocks: `start`, then `fold` for every block, `merge` of what threads
folded apart, then `finish`. `pull(slope, ...)`
is the slope, d value / d statistic, times the derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nceref.layouts import Pattern
from nceref.namespaces import array_namespace

Array = Any


@dataclass(frozen=True)
class LogSumExp:
    """log sum_j w_ij exp(k s_ij); -inf for an empty row, and the head decides what that means."""

    k: float = 1.0

    def start(self, zeros: Array) -> tuple[Array, Array]:
        """Running maximum and running sum of exponentials for as many rows as `zeros` has."""
        return zeros - array_namespace(zeros).inf, zeros

    def fold(self, state: tuple[Array, Array], s: Array, mask: Any, weight: Any) -> tuple[Array, Array]:
        """Take in one block. The maximum is taken over included entries; the exponent is masked, not its result."""
        xp = array_namespace(s)
        peak, total = state
        exponent = _masked(s if self.k == 1.0 else self.k * s, mask)
        top = xp.maximum(peak, xp.max(exponent, axis=1))
        shift = xp.where(top == -xp.inf, 0.0, top)
        terms = xp.exp(exponent - shift[:, None])
        if weight is not None:
            terms = weight * terms
        return top, total * xp.exp(peak - shift) + xp.sum(terms, axis=1)

    def merge(self, state: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        """One state from two that were folded over different blocks."""
        xp = array_namespace(*state)
        top = xp.maximum(state[0], other[0])
        shift = xp.where(top == -xp.inf, 0.0, top)
        return top, state[1] * xp.exp(state[0] - shift) + other[1] * xp.exp(other[0] - shift)

    def finish(self, state: tuple[Array, Array]) -> Array:
        """The statistic of each row."""
        xp = array_namespace(*state)
        peak, total = state
        return xp.where(total > 0, peak + xp.log(xp.where(total > 0, total, 1.0)), -xp.inf)

    def pull(self, slope: Array, out: Array, s: Array, mask: Any, weight: Any) -> Array:
        """Slope times d out_i / d s_ij = k w_ij exp(k s_ij - out_i)."""
        xp = array_namespace(s)
        # An empty row has out = -inf and no pair to give a share to.
        shift = xp.where(out == -xp.inf, 0.0, out)[:, None]
        share = xp.exp(_masked((s if self.k == 1.0 else self.k * s) - shift, mask))
        if weight is not None:
            share = weight * share
        return (slope if self.k == 1.0 else self.k * slope)[:, None] * share


def _masked(exponent: Array, mask: Any) -> Array:
    xp = array_namespace(exponent)
    return exponent if mask is None else xp.where(mask, exponent, -xp.inf)


def _kept(values: Array, mask: Any, weight: Any) -> Array:
    if weight is not None:
        values = weight * values
    return values if mask is None else array_namespace(values).where(mask, values, 0.0)


def _identity(s: Array) -> Array:
    return s


def _one(s: Array) -> Array:
    return array_namespace(s).ones_like(s)


@dataclass(frozen=True)
class Sum:
    """sum_j w_ij f(s_ij), with the slope f'."""

    f: Callable[[Array], Array] = _identity
    slope: Callable[[Array], Array] = _one

    def start(self, zeros: Array) -> Array:
        """0 for as many rows as `zeros` has."""
        return zeros

    def fold(self, state: Array, s: Array, mask: Any, weight: Any) -> Array:
        """Take in one block."""
        return state + array_namespace(s).sum(_kept(self.f(s), mask, weight), axis=1)

    def merge(self, state: Array, other: Array) -> Array:
        """One state from two that were folded over different blocks."""
        return state + other

    def finish(self, state: Array) -> Array:
        """The statistic of each row."""
        return state

    def pull(self, slope: Array, out: Array, s: Array, mask: Any, weight: Any) -> Array:
        """Slope times d out_i / d s_ij = w_ij f'(s_ij)."""
        return _kept(slope[:, None] * self.slope(s), mask, weight)


@dataclass(frozen=True)
class PositiveSet:
    """Three numbers a row about a set of positives with weights w: columns `peak`, `level`, `mass`.

    peak   log sum_j exp(s_ij), the positives' part of the denominator, unweighted
    level  sum_j w_ij s_ij / mass, or with `inside` the logarithm taken last: log(sum_j w_ij exp(s_ij) / mass)
    mass   sum_j w_ij

    For one positive, peak - level is 0 to the last bit, and so is the difference of their slopes: a tiny loss and its
    gradient keep their digits.
    """

    inside: bool = False

    def start(self, zeros: Array) -> tuple[Any, ...]:
        """Nothing folded yet."""
        plain = LogSumExp().start(zeros)
        return plain, (plain if self.inside else zeros), zeros

    def fold(self, state: tuple[Any, ...], s: Array, mask: Any, weight: Any) -> tuple[Any, ...]:
        """Take in one block."""
        peak, level, mass = state
        kind = LogSumExp() if self.inside else Sum()
        return (
            LogSumExp().fold(peak, s, mask, None),
            kind.fold(level, s, mask, weight),
            Sum(_one).fold(mass, s, mask, weight),
        )

    def merge(self, state: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        """One state from two that were folded over different blocks."""
        kinds = (LogSumExp(), LogSumExp() if self.inside else Sum(), Sum(_one))
        return tuple(kind.merge(a, b) for kind, a, b in zip(kinds, state, other, strict=True))

    def finish(self, state: tuple[Any, ...]) -> Array:
        """(n, 3); a row without positives has peak -inf and mass 0."""
        peak, level, mass = state
        xp = array_namespace(mass)
        one = xp.where(mass > 0, mass, 1.0)
        last = LogSumExp().finish(level) - xp.log(one) if self.inside else level / one
        return xp.stack([LogSumExp().finish(peak), last, mass], axis=1)

    def pull(self, slope: Array, out: Array, s: Array, mask: Any, weight: Any) -> Array:
        """Slope column 0 goes to `peak`, column 1 to `peak - level`."""
        xp = array_namespace(s)
        mass = xp.where(out[:, 2:] > 0, out[:, 2:], 1.0)
        peak = xp.where(out[:, :1] == -xp.inf, 0.0, out[:, :1])
        share = xp.exp(_masked(s - peak, mask))
        weights = xp.ones_like(s) if weight is None else weight
        if self.inside:
            level = xp.where(out[:, 1:2] == -xp.inf, 0.0, out[:, 1:2])
            target = weights * xp.exp(_masked(s - level, mask)) / mass
        else:
            target = _kept(weights / mass, mask, None)
        return slope[:, :1] * share + slope[:, 1:] * (share - target)


@dataclass(frozen=True, eq=False)
class Term:
    """A statistic over a pattern; along rows (one number per anchor) or along columns (one per candidate)."""

    statistic: LogSumExp | Sum | PositiveSet
    pattern: Pattern
    along: str = "rows"
