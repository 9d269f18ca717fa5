"""Interval arithmetic for heads: an array of numbers, each with all that rounding may have made of it.

A head takes intervals as it takes arrays. Beside the number x of the exact computation (`middle`) an interval has

    low, high   ends that hold every number x' which a program may have in its place (R. E. Moore, Interval Analysis)
    slopes      ends of the numbers D_k, and
    rest        a bound on |r|, such that x' - x = sum_k D_k e_k + r, where e_k is the error of the k-th statistic of
                the row in units of its bound, -1 <= e_k <= 1

By the mean value theorem a function f takes D_k to f'(y) D_k with some y between the ends, and r to f'(y) r plus the
rounding of f itself in the format of the program: an operation is correctly rounded, and a function is right to 4 units
in the last place, 8 u. An error is therefore a product of slopes and bounds, and no difference of ends: it moves
smoothly with the numbers, and errors of one origin may cancel. Where functions bend within a wide interval the ends
may be nearer, and count.

Numbers of different rows have errors of their own: what mixes rows adds up magnitudes, and keeps no slopes.
The analysis is itself done in float64: ends are rounded outwards by what an operation of it may lose.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from nceref.tolerance.forward import RoundingFormat, finite

Array = Any
FUNCTION = 8
"""Roundings that one value of an elementary function stands for: 4 units in the last place."""
_HALF_ULP = 2.0**-53
_LEAST = float(np.finfo(np.float64).smallest_subnormal)
WIDE = 2.0**-26
"""The smallest relative error of a number at which its ends have digits enough to be subtracted."""


class Span(NamedTuple):
    """Ends of an array of numbers; of slopes, D_k of every entry, (k, *shape)."""

    low: Array
    high: Array


@lru_cache(maxsize=64)
def _no_slopes(shape: tuple[int, ...]) -> Span:
    """The slopes of numbers without errors, read-only."""
    return Span(*[np.broadcast_to(0.0, (1, *shape))] * 2)


class Interval:
    """An array of intervals.

    `middle` are numbers of the exact computation; infinite ones are allowed. The ends are by default `middle`, for
    numbers that every program has.
    """

    # An array on the left leaves the operation to `__rmul__` and its like.
    __array_ufunc__ = None

    def __init__(
        self,
        middle: Array,
        fmt: RoundingFormat,
        low: Array = None,
        high: Array = None,
        slopes: Span | None = None,
        rest: Array = 0.0,
    ) -> None:
        self.middle, self.fmt = np.asarray(middle, dtype=np.float64), fmt
        self.low = self.middle if low is None else low
        self.high = self.middle if high is None else high
        self.slopes = slopes or _no_slopes(self.shape)
        self.rest: Array = rest if np.shape(rest) == self.shape else np.broadcast_to(rest, self.shape)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return NAMESPACE

    def __getitem__(self, key: Any) -> "Interval":
        # A column, and a new axis, leave every row where it is.
        in_place = isinstance(key, tuple) and key[0] in (slice(None), None)
        one = self if in_place else self.without_slopes()
        slopes = Span(*(ends[(slice(None), *key)] for ends in one.slopes)) if in_place else None
        return Interval(one.middle[key], one.fmt, one.low[key], one.high[key], slopes, one.rest[key])

    def __float__(self) -> float:
        return float(self.middle)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers."""
        return self.middle.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers."""
        return self.middle.dtype

    @property
    def size(self) -> Array:
        """The largest magnitude of each interval; 0 for infinite ones, which lose nothing."""
        return np.maximum(_size(self.low), _size(self.high))

    @property
    def error(self) -> Array:
        """The largest distance of a program's numbers from the exact ones."""
        linear = self._linear
        return np.where(self._ends_count(linear), np.minimum(linear, self._to_ends), linear)

    @property
    def _linear(self) -> Array:
        return self.rest + np.sum(np.maximum(*map(np.abs, self.slopes)), axis=0)

    @property
    def _to_ends(self) -> Array:
        """The distance of the farther end; infinite where an end is no number."""
        return _but_for_nan(np.maximum(self.high - self.middle, self.middle - self.low), 0.0)

    def _ends_count(self, linear: Array) -> Array:
        return ~(linear <= WIDE * np.abs(self.middle))

    def without_slopes(self) -> "Interval":
        """The same intervals with the magnitude of all errors as their rest."""
        return Interval(self.middle, self.fmt, self.low, self.high, None, self._linear)

    def within(self, low: Array, high: Array) -> "Interval":
        """The same intervals, whose ends are known to be no farther than these."""
        out = Interval(self.middle, self.fmt, np.maximum(self.low, low), np.minimum(self.high, high))
        linear, to_ends = self._linear, out._to_ends
        nearer = self._ends_count(linear) & (to_ends < linear)
        out.rest = np.where(nearer, to_ends, self.rest)
        out.slopes = Span(*(np.where(nearer, 0.0, ends) for ends in self.slopes))
        return out

    def ends(self, f: Callable[..., Any], signs: Sequence[int], arguments: Sequence["Interval"]) -> Any:
        """A function that rises (+1) or falls (-1) with each argument: its ends are its values at two corners."""
        corners = [(x.low, x.high) if sign > 0 else (x.high, x.low) for x, sign in zip(arguments, signs, strict=True)]
        # At a corner the arguments are given, and what is off is what the function rounds.
        below, above = (f(*(Interval(end, self.fmt) for end in ends)) for ends in zip(*corners, strict=True))
        return f(*arguments).within(below.low, above.high)

    def softplus_and_sigmoid(self, f: Callable[[Array], tuple[Array, Array]]) -> tuple["Interval", "Interval"]:
        """log(1 + e^x) and its slope, by their own derivatives: 1 / (1 + e^-x), and that times 1 / (1 + e^x).

        `f` gives both for an array.
        """
        (value, slope), (value_low, slope_low), (value_high, slope_high) = map(f, (self.middle, self.low, self.high))
        nearest = np.clip(0.0, self.low, self.high)
        (bent, up), down = f(-np.abs(nearest)), f(np.abs(nearest))[1]
        # Rounded are e^-|x|, its log(1 + .), which is at most `bent`, and their sum with x where that is positive.
        relative = self.fmt.u + 2 * self._function * bent / np.where(value_high > 0, value_high, 1.0)
        return (
            _made(value, self.fmt, value_low, value_high, *self._by(slope_low, slope_high), relative),
            # Rounded are the exponential, the sum and the quotient.
            _made(slope, self.fmt, slope_low, slope_high, *self._by(0.0 * up, up * down),
                  self._function + 2 * self.fmt.u),
        )  # fmt: skip

    @property
    def _is_point(self) -> Array:
        return self.low == self.high

    @property
    def _function(self) -> Any:
        """Relative rounding of an elementary function of the program."""
        return self.fmt.count(FUNCTION) * self.fmt.u

    def _by(self, low: Array, high: Array) -> tuple[Span, Array]:
        """The slopes and the rest under a function whose slope is between `low` and `high`."""
        rest = np.maximum(np.abs(low), np.abs(high)) * self.rest
        # 0 times what is beyond every number is 0, as in `_corners`.
        return _corners(np.multiply, self.slopes, Span(low, high)), _but_for_nan(rest, 0.0)

    def __neg__(self) -> "Interval":
        slopes = Span(-self.slopes.high, -self.slopes.low)
        return Interval(-self.middle, self.fmt, -self.high, -self.low, slopes, self.rest)

    def __add__(self, other: Any) -> "Interval":
        other = _interval(other, self.fmt)
        low, high = self.low + other.low, self.high + other.high
        # 0 added is no operation.
        lost = self.fmt.u * ((self.size > 0) & (other.size > 0))
        slopes = _sum_of_slopes(self.slopes, other.slopes)
        return _made(self.middle + other.middle, self.fmt, low, high, slopes, self.rest + other.rest, lost)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Interval":
        out: Interval = self + -_interval(other, self.fmt)
        return out

    def __rsub__(self, other: Any) -> "Interval":
        out: Interval = -self + other
        return out

    def __mul__(self, other: Any) -> "Interval":
        # One number with itself is no product of two numbers.
        if other is self:
            out: Interval = self**2
            return out
        other = _interval(other, self.fmt)
        low, high = _corners(np.multiply, Span(self.low, self.high), Span(other.low, other.high))
        slopes, rest = self._by(other.low, other.high)
        more, other_rest = other._by(self.middle, self.middle)
        # Powers of two multiply exactly; any other number that is given is itself rounded.
        exact, given = _is_power_of_two(self) | _is_power_of_two(other), self._is_point | other._is_point
        lost = self.fmt.u * np.where(exact, 0.0, 1.0 + given)
        return _made(
            self.middle * other.middle, self.fmt, low, high, _sum_of_slopes(slopes, more), rest + other_rest, lost
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Interval":
        other = _interval(other, self.fmt)
        through = (other.low <= 0) & (other.high >= 0)
        ends = Span(np.where(through, 1.0, other.low), np.where(through, 1.0, other.high))
        low, high = _corners(np.divide, Span(self.low, self.high), ends)
        low, high = np.where(through, -np.inf, low), np.where(through, np.inf, high)
        quotient = self.middle / other.middle
        # x' / y' - x / y = ((x' - x) - x / y (y' - y)) / y'.
        slopes, rest = other._by(-quotient, -quotient)
        both = Interval(quotient, self.fmt, low, high, _sum_of_slopes(self.slopes, slopes), self.rest + rest)
        slopes, rest = both._by(np.where(through, -np.inf, 1 / ends.high), np.where(through, np.inf, 1 / ends.low))
        lost = self.fmt.u * np.where(_is_power_of_two(other), 0.0, 1.0 + other._is_point)
        return _made(quotient, self.fmt, low, high, slopes, rest, lost)

    def __rtruediv__(self, other: Any) -> "Interval":
        return _interval(other, self.fmt) / self

    def __pow__(self, exponent: float) -> "Interval":
        """The power of numbers that are not negative, and the square of any."""
        exponent = float(exponent)
        base = abs(self) if exponent == 2 else self
        values = [end**exponent for end in (base.low, base.high)]
        steep = [exponent * end ** (exponent - 1) for end in (base.low, base.high)]
        (low, high), (least, most) = (np.sort(x, axis=0) for x in (values, steep))
        slopes, rest = base._by(least, most)
        if exponent == 2:
            lost: Any = self.fmt.u
        else:
            # The exponent may be one less than a number that is rounded, but for eighths, which every format has.
            inexact = 0 if (8 * exponent).is_integer() else 1
            far = np.maximum(_log_size(base.low), _log_size(base.high))
            lost = self._function + (inexact + 2 * abs(exponent)) * self.fmt.u * far
        return _made(self.middle**exponent, self.fmt, low, high, slopes, rest, lost)

    def __abs__(self) -> "Interval":
        low = np.maximum(np.maximum(self.low, -self.high), 0.0)
        slopes, rest = self._by(np.where(self.low >= 0, 1.0, -1.0), np.where(self.high <= 0, -1.0, 1.0))
        high = np.maximum(np.abs(self.low), np.abs(self.high))
        return Interval(np.abs(self.middle), self.fmt, low, high, slopes, rest)

    def __lt__(self, other: Any) -> "Unsure":
        other = _interval(other, self.fmt)
        return Unsure(self.high < other.low, self.low >= other.high, self.middle < other.middle, self.fmt)

    def __gt__(self, other: Any) -> "Unsure":
        other = _interval(other, self.fmt)
        return Unsure(self.low > other.high, self.high <= other.low, self.middle > other.middle, self.fmt)

    def __eq__(self, other: Any) -> Any:
        other = _interval(other, self.fmt)
        point = (self.low == self.high) & (other.low == other.high)
        no = (self.high < other.low) | (self.low > other.high)
        return Unsure(point & (self.low == other.low), no, self.middle == other.middle, self.fmt)

    __hash__ = None  # type: ignore[assignment]


class Unsure:
    """Truth values of intervals: where one is certainly true, certainly false, and which it is for the middles."""

    def __init__(self, yes: Array, no: Array, middle: Array, fmt: RoundingFormat) -> None:
        self.yes, self.no, self.middle, self.fmt = yes, no, middle, fmt

    def __invert__(self) -> "Unsure":
        return Unsure(self.no, self.yes, ~self.middle, self.fmt)

    def __and__(self, other: "Unsure") -> "Unsure":
        return Unsure(self.yes & other.yes, self.no | other.no, self.middle & other.middle, self.fmt)

    def __bool__(self) -> bool:
        return bool(self.yes)


def statistics(stats: Mapping[str, Array], spread: Mapping[str, Array], fmt: RoundingFormat) -> dict[str, Interval]:
    """Arguments of a head: every statistic give or take its error, which is one of its own for each row.

    Of a set of positives the mass is a sum of weights that are given, and has no error.
    """
    spread = {name: x if x.ndim == 1 else x * (np.arange(x.shape[1]) < 2) for name, x in spread.items()}
    columns = {name: 1 if x.ndim == 1 else x.shape[1] for name, x in stats.items()}
    out, first = {}, 0
    for name, x in stats.items():
        slopes = np.zeros((sum(columns.values()), *x.shape))
        for column in range(columns[name]):
            place = ... if x.ndim == 1 else (..., column)
            slopes[first + column][place] = spread[name][place]
        first += columns[name]
        out[name] = Interval(x, fmt, x - spread[name], x + spread[name], Span(slopes, slopes))
    return out


def _interval(x: Any, fmt: RoundingFormat) -> Interval:
    return x if isinstance(x, Interval) else Interval(x, fmt)


def _made(
    middle: Array,
    fmt: RoundingFormat,
    low: Array,
    high: Array,
    slopes: Span,
    rest: Array,
    lost: Array,
    of: Array = None,
) -> Interval:
    """The result of an operation that loses a part `lost` of it, or of something larger."""
    below, above = (_size(low), _size(high)) if of is None else (of, of)
    rest = rest + lost * np.maximum(below, above)
    lost = lost + 2 * _HALF_ULP
    low, high = _moved(low, high, lost * below + _LEAST, lost * above + _LEAST)
    if not np.all(known := np.isfinite(slopes.low) & np.isfinite(slopes.high)):
        # One that is no number says nothing, nor do the others without it.
        known = np.all(known, axis=0)
        slopes, rest = Span(*(np.where(known, ends, 0.0) for ends in slopes)), np.where(known, rest, np.inf)
    return Interval(middle, fmt, low, high, slopes, _but_for_nan(rest, np.inf))


def _moved(low: Array, high: Array, below: Array, above: Array) -> tuple[Array, Array]:
    """Ends moved outwards; an infinite end stays where it is, and one that is no number becomes infinite."""
    low, high = np.where(np.isinf(low), low, low - below), np.where(np.isinf(high), high, high + above)
    return _but_for_nan(low, -np.inf), _but_for_nan(high, np.inf)


def _but_for_nan(x: Array, number: float) -> Array:
    """The array with a number in the place of NaN."""
    return np.where(np.isnan(x), number, x)


def _log_size(end: Array) -> Array:
    """The magnitude of the logarithm of a magnitude; 0 for 0, which has no digit to lose."""
    size = _size(end)
    return np.abs(np.log(np.where(size > 0, size, 1.0)))


def _size(end: Array) -> Array:
    """The magnitudes of numbers, 0 of infinite ones."""
    return np.abs(finite(end))


def _corners(f: Any, x: Span, y: Span) -> Span:
    """A product or a quotient of intervals, which is largest and smallest at corners."""
    points = [f(a, b) for a in _distinct(x) for b in _distinct(y)]
    # By the usual convention, 0 times what is beyond every number is 0.
    points = [_but_for_nan(c, 0.0) for c in points]
    return Span(reduce(np.minimum, points), reduce(np.maximum, points))


def _distinct(x: Span) -> tuple[Array, ...]:
    return x[:1] if x.low is x.high else x


def _sum_of_slopes(x: Span, y: Span) -> Span:
    return Span(x.low + y.low, x.high + y.high)


def _is_power_of_two(x: Interval) -> Array:
    """Whether a factor is given and changes exponents only; 0 is one, too."""
    mantissa = np.abs(np.frexp(x.middle)[0])
    return x._is_point & ((mantissa == 0.5) | (mantissa == 0.0))


def _elementary(
    f: Callable[[Array], Array], slope: Callable[[Array], Array], least: float = -np.inf, rounded: bool = False
) -> Callable[[Interval], Interval]:
    """A rising function of one number whose slope rises or falls throughout; below `least` it has no values.

    A function that is `rounded` correctly loses as much as an operation.
    """

    def of_interval(x: Interval) -> Interval:
        ends = np.maximum(x.low, least), np.maximum(x.high, least)
        low, high = map(f, ends)
        steep = np.sort([slope(end) for end in ends], axis=0)
        slopes, rest = x._by(*steep)
        lost = x.fmt.u if rounded else x._function
        return _made(f(x.middle), x.fmt, low, high, slopes, rest, lost)

    return of_interval


def _clip(x: Interval, min: float = -np.inf, max: float = np.inf) -> Interval:
    return _maximum(-_maximum(-x, -max), min)


def _maximum(x: Any, y: Any) -> Interval:
    """The larger of two: as far off as the larger, or as either where it is not sure which that is."""
    x, y = _pair(x, y)
    first, second = x.low > y.high, y.low > x.high

    def choose(a: Array, b: Array, either: Callable[[Array, Array], Array]) -> Array:
        return np.where(first, a, np.where(second, b, either(a, b)))

    slopes = Span(*map(choose, x.slopes, y.slopes, (np.minimum, np.maximum)))
    low, high = np.maximum(x.low, y.low), np.maximum(x.high, y.high)
    return Interval(np.maximum(x.middle, y.middle), x.fmt, low, high, slopes, choose(x.rest, y.rest, np.maximum))


def _pair(x: Any, y: Any) -> tuple[Interval, Interval]:
    fmt = x.fmt if isinstance(x, Interval) else y.fmt
    return _interval(x, fmt), _interval(y, fmt)


def _joined(join: Callable[..., Array], in_place: bool) -> Callable[..., Interval]:
    """A function that joins intervals as `join` does arrays; where the rows move, without slopes."""

    def of_intervals(parts: Sequence[Any], axis: int = 0) -> Interval:
        fmt = next(part.fmt for part in parts if isinstance(part, Interval))
        ones = [_interval(part, fmt) if in_place else _interval(part, fmt).without_slopes() for part in parts]
        middle, low, high, rest = (
            join([getattr(one, name) for one in ones], axis=axis) for name in ("middle", "low", "high", "rest")
        )
        if not in_place:
            return Interval(middle, fmt, low, high, None, rest)
        by_end = (np.broadcast_arrays(*ends) for ends in zip(*(one.slopes for one in ones), strict=True))
        return Interval(middle, fmt, low, high, Span(*(join(ends, axis=axis + 1) for ends in by_end)), rest)

    return of_intervals


def _where(condition: Any, x: Any, y: Any) -> Any:
    """The interval that a condition chooses of two; where the condition is not sure, one that holds both."""
    if not isinstance(condition, Unsure):
        condition = Unsure(condition, ~np.asarray(condition), condition, _pair(x, y)[0].fmt)
    x, y = _interval(x, condition.fmt), _interval(y, condition.fmt)
    sure = condition.yes | condition.no

    def choose(a: Array, b: Array) -> Array:
        return np.where(condition.yes, a, b)

    low = np.where(sure, choose(x.low, y.low), np.minimum(x.low, y.low))
    high = np.where(sure, choose(x.high, y.high), np.maximum(x.high, y.high))
    out = Interval(np.where(condition.middle, x.middle, y.middle), condition.fmt, low, high)
    out.rest = np.where(sure, choose(x.rest, y.rest), out._to_ends)
    out.slopes = Span(*(np.where(sure, choose(*ends), 0.0) for ends in zip(x.slopes, y.slopes, strict=True)))
    return out


def _sum(x: Interval, axis: int | None = None) -> Interval:
    """The sum of rows: in whatever order, each rounding is of a part of the sum of magnitudes."""
    one = x.without_slopes()
    total = np.sum(one.size, axis=axis)
    count = one.fmt.count(one.fmt.ratio * (one.middle.size // max(np.size(total), 1)))
    middle, low, high, rest = (np.sum(part, axis=axis) for part in (one.middle, one.low, one.high, one.rest))
    return _made(middle, one.fmt, low, high, Interval(middle, one.fmt).slopes, rest, count * one.fmt.u, total)


def _largest_of_all(x: Interval) -> Interval:
    one = x.without_slopes()
    return Interval(np.max(one.middle), one.fmt, np.max(one.low), np.max(one.high), None, np.max(one.rest))


def _logaddexp(x: Any, y: Any) -> Interval:
    x, y = _pair(x, y)
    low, high = np.logaddexp(x.low, y.low), np.logaddexp(x.high, y.high)

    def share(a: Array, b: Array) -> Array:
        """The slope by a, 1 / (1 + e^(b - a)); none where a is -inf."""
        some = ~np.isneginf(a)
        return np.where(some, 1 / (1 + np.exp(np.where(some, b - a, 0.0))), 0.0)

    first, rest = x._by(share(x.low, y.high), share(x.high, y.low))
    second, more = y._by(share(y.low, x.high), share(y.high, x.low))
    # Rounded are the logarithm of at most 2, and its sum with the larger one.
    size = np.maximum(_size(low), _size(high))
    lost = x._function * np.where(np.isfinite(low), np.log(2.0), 0.0) + x.fmt.u * size
    middle = np.logaddexp(x.middle, y.middle)
    return _made(middle, x.fmt, low, high, _sum_of_slopes(first, second), rest + more, 1.0, lost)


def _for_intervals(f: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function of intervals that leaves what has none in it to NumPy's."""

    def of_either(*arguments: Any, **options: Any) -> Any:
        parts = arguments[0] if isinstance(arguments[0], list) else arguments
        return (f if any(isinstance(x, Interval | Unsure) for x in parts) else plain)(*arguments, **options)

    return of_either


NAMESPACE: Any = ModuleType("nceref.tolerance.intervals.NAMESPACE")
"""The functions of the array standard that heads use, for intervals."""
_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.clip: _clip,
    np.exp: _elementary(np.exp, np.exp),
    np.expm1: _elementary(np.expm1, np.exp),
    np.log: _elementary(np.log, lambda x: 1 / x, 0.0),
    np.log1p: _elementary(np.log1p, lambda x: 1 / (1 + x), -1.0),
    np.logaddexp: _logaddexp,
    np.max: _largest_of_all,
    np.maximum: _maximum,
    np.mean: lambda x: _sum(x) / float(x.middle.size),
    np.min: lambda x: -_largest_of_all(-x),
    np.ones_like: lambda x: np.ones_like(x.middle),
    np.sqrt: _elementary(np.sqrt, lambda x: 0.5 / np.sqrt(x), 0.0, rounded=True),
    np.stack: _joined(np.stack, in_place=True),
    np.sum: _sum,
    np.where: _where,
    np.zeros_like: lambda x: np.zeros_like(x.middle),
}
vars(NAMESPACE).update(
    {plain.__name__: _for_intervals(f, plain) for plain, f in _FUNCTIONS.items()}
    | {"abs": abs, "all": _for_intervals(lambda x: np.all(x.yes), np.all)}
    | {"concat": _for_intervals(_joined(np.concatenate, in_place=False), np.concatenate)}
    | {"inf": np.inf, "isdtype": np.isdtype, "finfo": np.finfo}
)
