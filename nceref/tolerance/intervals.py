"""Interval arithmetic for the heads: an array of intervals that goes through a head as an array of numbers does.

What comes out holds every value of the head over the box that goes in, corners or not, whatever the signs of the errors
and however they are combined over rows (R. E. Moore, Interval Analysis, 1966). It may be wider than the values: two
occurrences of the same number count as two numbers. Heads that lose much by that name a monotone part, see `ends`.

Ends are rounded outwards, with u = 2^-53: by 2 u for an operation, which is correctly rounded, and by 16 u for a
function, of which NumPy's are off by up to 4 units in the last place, 8 u.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from nceref.tolerance.forward import finite

Array = Any
_OPERATION, _FUNCTION = 2 * 2.0**-53, 16 * 2.0**-53
_LEAST = float(np.finfo(np.float64).smallest_subnormal)


class Interval:
    """An array of intervals.

    Parameters
    ----------
    low, high : array
        Ends, of one shape; infinite ends are allowed.
    """

    # An array on the left leaves the operation to `__rmul__` and its like.
    __array_ufunc__ = None

    def __init__(self, low: Array, high: Array) -> None:
        self.low, self.high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return NAMESPACE

    def __getitem__(self, key: Any) -> "Interval":
        return Interval(self.low[key], self.high[key])

    def __float__(self) -> float:
        return float(self.middle)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the ends."""
        return self.low.shape

    @property
    def dtype(self) -> Any:
        """Of the ends."""
        return self.low.dtype

    @property
    def middle(self) -> Array:
        """A number inside of each interval, for what cancels in a head whatever it is."""
        return self.low / 2 + self.high / 2

    def ends(self, f: Callable[..., Any], signs: Sequence[int], arguments: Sequence["Interval"]) -> Any:
        """A function that rises (+1) or falls (-1) with each argument, by its values at two corners.

        Parameters
        ----------
        f : callable
            Of arrays, with one array or a tuple of arrays as its result.
        signs : sequence of int
        arguments : sequence of Interval

        Returns
        -------
        Interval or tuple of Interval
        """
        # A function may round its argument, or the exponent of a power of it; 0 has no digit to lose.
        room = [(_lost(x.low) * np.abs(finite(x.low)), _lost(x.high) * np.abs(finite(x.high))) for x in arguments]
        wide = [(x.low - below, x.high + above) for x, (below, above) in zip(arguments, room, strict=True)]
        below = f(*(low if sign > 0 else high for (low, high), sign in zip(wide, signs, strict=True)))
        above = f(*(high if sign > 0 else low for (low, high), sign in zip(wide, signs, strict=True)))
        if not isinstance(below, tuple):
            return _outwards(below, above, _FUNCTION)
        return tuple(_outwards(x, y, _FUNCTION) for x, y in zip(below, above, strict=True))

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def __add__(self, other: Any) -> "Interval":
        other = _interval(other)
        return _outwards(self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Interval":
        out: Interval = self + -_interval(other)
        return out

    def __rsub__(self, other: Any) -> "Interval":
        out: Interval = -self + other
        return out

    def __mul__(self, other: Any) -> "Interval":
        # One number with itself is no product of two numbers.
        if other is self:
            out: Interval = self**2
            return out
        return _of_corners(np.multiply, self, _interval(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Interval":
        other = _interval(other)
        through = (other.low <= 0) & (other.high >= 0)
        out = _of_corners(
            np.divide, self, Interval(np.where(through, 1.0, other.low), np.where(through, 1.0, other.high))
        )
        return Interval(np.where(through, -np.inf, out.low), np.where(through, np.inf, out.high))

    def __rtruediv__(self, other: Any) -> "Interval":
        return _interval(other) / self

    def __pow__(self, exponent: float) -> "Interval":
        """Powers of what is not negative, and the square of anything."""
        base = abs(self) if exponent == 2 else self
        ends = [(end**exponent, _FUNCTION + abs(exponent) * _lost(end)) for end in (base.low, base.high)]
        (low, below), (high, above) = ends if exponent >= 0 else ends[::-1]
        return _outwards(low, high, np.maximum(below, above))

    def __abs__(self) -> "Interval":
        far = np.maximum(np.abs(self.low), np.abs(self.high))
        return Interval(np.maximum(np.maximum(self.low, -self.high), 0.0), far)

    def __lt__(self, other: Any) -> "Unsure":
        other = _interval(other)
        return Unsure(self.high < other.low, self.low >= other.high)

    def __gt__(self, other: Any) -> "Unsure":
        other = _interval(other)
        return Unsure(self.low > other.high, self.high <= other.low)

    def __eq__(self, other: Any) -> Any:
        other = _interval(other)
        point = (self.low == self.high) & (other.low == other.high)
        return Unsure(point & (self.low == other.low), (self.high < other.low) | (self.low > other.high))

    __hash__ = None  # type: ignore[assignment]


class Unsure:
    """Truth values of intervals: where one is certainly true, certainly false, or neither.

    Parameters
    ----------
    yes, no : array of bool
    """

    def __init__(self, yes: Array, no: Array) -> None:
        self.yes, self.no = yes, no

    def __invert__(self) -> "Unsure":
        return Unsure(self.no, self.yes)

    def __and__(self, other: "Unsure") -> "Unsure":
        return Unsure(self.yes & other.yes, self.no | other.no)

    def __bool__(self) -> bool:
        return bool(self.yes)


def _interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else Interval(x, x)


def _lost(x: Array) -> Array:
    """How far x may move, relatively, where it is rounded or a power of it has a rounded exponent: u |log x|."""
    size = np.abs(finite(x))
    return _OPERATION * (1 + np.abs(np.log(np.where(size > 0, size, 1.0))))


def _outwards(low: Array, high: Array, by: Any = _OPERATION) -> Interval:
    """The interval with its ends moved by more than their rounding errors; an end that is no number is infinite."""
    below, above = low - by * np.abs(low) - _LEAST, high + by * np.abs(high) + _LEAST
    if np.all(np.isfinite(below)) and np.all(np.isfinite(above)):
        return Interval(below, above)
    # An infinite end stays where it is.
    below, above = np.where(np.isinf(low), low, below), np.where(np.isinf(high), high, above)
    return Interval(np.where(np.isnan(below), -np.inf, below), np.where(np.isnan(above), np.inf, above))


def _of_corners(f: Any, x: Interval, y: Interval) -> Interval:
    """A product or a quotient, which is largest and smallest at corners."""
    corners = [f(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    # By the usual convention, 0 times what is beyond every number is 0.
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]
    return _outwards(np.minimum.reduce(corners), np.maximum.reduce(corners))


def _increasing(f: Callable[[Array], Array], least: float = -np.inf) -> Callable[[Any], Interval]:
    """A function of one number that rises, for intervals; below `least` it has no values."""

    def of_interval(x: Any) -> Interval:
        x = _interval(x)
        return _outwards(f(np.maximum(x.low, least)), f(np.maximum(x.high, least)), _FUNCTION)

    return of_interval


def _selected(f: Callable[..., Array]) -> Callable[..., Interval]:
    """A function that rises with every argument and rounds nothing: it selects, arranges, or fills."""

    def of_intervals(x: Any, *more: Any, **options: Any) -> Interval:
        if isinstance(x, list):
            ends = [_interval(part) for part in x]
            return Interval(f([e.low for e in ends], **options), f([e.high for e in ends], **options))
        low, high = ([_interval(part).low for part in (x, *more)], [_interval(part).high for part in (x, *more)])
        return Interval(f(*low, **options), f(*high, **options))

    return of_intervals


def _where(condition: Any, x: Any, y: Any) -> Any:
    """One of two; where it is not sure which, what holds both."""
    if not isinstance(condition, Unsure):
        condition = Unsure(condition, ~np.asarray(condition))
    x, y = _interval(x), _interval(y)
    low = np.where(condition.yes, x.low, np.where(condition.no, y.low, np.minimum(x.low, y.low)))
    return Interval(low, np.where(condition.yes, x.high, np.where(condition.no, y.high, np.maximum(x.high, y.high))))


def _sum(x: Any, axis: int | None = None) -> Interval:
    x = _interval(x)
    # However the sum is ordered, each of its roundings is of a part of this.
    room = x.low.size * 2.0**-53 * np.sum(np.maximum(np.abs(x.low), np.abs(x.high)), axis=axis)
    return _outwards(np.sum(x.low, axis=axis) - room, np.sum(x.high, axis=axis) + room)


def _all(x: Any) -> Any:
    return np.all(x.yes) if isinstance(x, Unsure) else np.all(x)


def _logaddexp(x: Any, y: Any) -> Any:
    first = _interval(x)
    return first.ends(np.logaddexp, (1, 1), (first, _interval(y)))


NAMESPACE: Any = ModuleType("nceref.tolerance.intervals.NAMESPACE")
"""The functions of the array standard that heads use, for intervals."""
_SELECTED = (np.clip, np.max, np.maximum, np.min, np.ones_like, np.stack, np.zeros_like)
vars(NAMESPACE).update(
    {f.__name__: _increasing(f) for f in (np.exp, np.expm1)}
    | {f.__name__: _increasing(f, least) for f, least in ((np.log, 0.0), (np.log1p, -1.0), (np.sqrt, 0.0))}
    | {f.__name__: _selected(f) for f in _SELECTED}
    | {"concat": _selected(np.concatenate), "where": _where, "sum": _sum, "all": _all, "logaddexp": _logaddexp}
    | {"mean": lambda x: _sum(x) / _interval(x).low.size, "abs": lambda x: abs(_interval(x))}
    | {"inf": np.inf, "isdtype": np.isdtype, "finfo": np.finfo}
)
