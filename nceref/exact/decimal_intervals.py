"""Enclosures by the standard library's `decimal`, rounded outward: a second engine beside the balls of python-flint.

It shares no arithmetic with them: ends in place of middle and radius, decimals in place of bits. There are two kinds of
derivatives: those of reverse mode, as in the balls, and along one direction those of forward mode, which share no rule.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from nceref.exact.certified import Enclosure, OverlapError, enclosures
from nceref.exact.reference import arguments, mapped, reduce_rows
from nceref.spec import Loss

T = TypeVar("T")


class Ends(NamedTuple):
    """Lower and upper end of an interval."""

    low: Decimal
    high: Decimal


class Arithmetic:
    """Interval arithmetic with so many decimal digits."""

    def __init__(self, digits: int) -> None:
        self.down, self.up = (
            Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        )

    def add(self, a: Ends, b: Ends) -> Ends:
        return Ends(self.down.add(a.low, b.low), self.up.add(a.high, b.high))

    def negative(self, a: Ends) -> Ends:
        # The unary minus would round to the precision of the thread.
        return Ends(a.high.copy_negate(), a.low.copy_negate())

    def multiply(self, a: Ends, b: Ends) -> Ends:
        if a.low >= 0 and b.low >= 0:
            return Ends(self.down.multiply(a.low, b.low), self.up.multiply(a.high, b.high))
        if a.low < 0 >= a.high:
            return self.negative(self.multiply(self.negative(a), b))
        if b.low < 0 >= b.high:
            return self.negative(self.multiply(a, self.negative(b)))
        # One of them, or both, have 0 inside.
        pairs = [(x, y) for x in a for y in b]
        low = min(self.down.multiply(x, y) for x, y in pairs)
        return Ends(low, max(self.up.multiply(x, y) for x, y in pairs))

    def divide(self, a: Ends, b: Ends) -> Ends:
        if b.low <= 0 <= b.high:
            raise OverlapError
        one = Decimal(1)
        return self.multiply(a, Ends(self.down.divide(one, b.high), self.up.divide(one, b.low)))

    def widened(self, low: Decimal, high: Decimal) -> Ends:
        """Ends moved out by a unit in the last place: functions are rounded to nearest whatever the context says."""
        return Ends(self.down.next_minus(low), self.up.next_plus(high))

    def exp(self, a: Ends) -> Ends:
        low, high = self.widened(self.down.exp(a.low), self.up.exp(a.high))
        return Ends(max(low, Decimal(0)), high)

    def log(self, a: Ends) -> Ends:
        if a.low <= 0:
            raise OverlapError
        return self.widened(self.down.ln(a.low), self.up.ln(a.high))

    def sqrt(self, a: Ends) -> Ends:
        if a.low < 0:
            raise OverlapError
        low, high = self.widened(self.down.sqrt(a.low), self.up.sqrt(a.high))
        return Ends(max(low, Decimal(0)), high)

    def power(self, a: Ends, by: Ends) -> Ends:
        return self.exp(self.multiply(by, self.log(a)))

    def series(self, a: Ends, first: int) -> Ends:
        """The alternating series of cos (first = 0) or sin (first = 1), at an angle between -4 and 4."""
        square, total = self.multiply(a, a), Ends(Decimal(0), Decimal(0))
        term = a if first else Ends(Decimal(1), Decimal(1))
        k = first
        small = Decimal(10) ** -(self.down.prec + 5)
        # From k = 4 on the terms get smaller, so that what is left out is smaller than the first of it.
        while k < 6 or max(abs(term.low), abs(term.high)) > small:
            total = self.add(total, term)
            factor = Ends(Decimal(-1), Decimal(-1))
            term = self.divide(self.multiply(self.multiply(term, square), factor), _integer((k + 1) * (k + 2)))
            k += 2
        rest = max(abs(term.low), abs(term.high))
        return self.add(total, Ends(rest.copy_negate(), rest))

    def acos(self, a: Ends) -> Ends:
        """The inverse cosine by Newton's method from the float, with cosines that prove the answer."""
        return Ends(self._acos(a.high).low, self._acos(a.low).high)

    def _acos(self, x: Decimal) -> Ends:
        if not -1 < x < 1:
            raise OverlapError
        exact, angle = Ends(x, x), Decimal(math.acos(float(x)))
        for _ in range(self.down.prec.bit_length()):
            here = Ends(angle, angle)
            step = self.divide(self.subtract(self.series(here, 0), exact), self.series(here, 1))
            angle = self.down.add(angle, step.low)
        width = Decimal(10) ** -(self.down.prec - 8)
        low, high = self.down.subtract(angle, width), self.up.add(angle, width)
        # The cosine falls between 0 and pi.
        if not (self.series(Ends(low, low), 0).low > x > self.series(Ends(high, high), 0).high and low > 0):
            raise OverlapError
        return Ends(low, high)

    def subtract(self, a: Ends, b: Ends) -> Ends:
        return self.add(a, self.negative(b))


def _integer(n: int) -> Ends:
    return Ends(Decimal(n), Decimal(n))


def _with_number(operation: Callable[["Dual", "Dual"], T]) -> Callable[["Dual", Any], T]:
    """The operation with what becomes a `Dual`; what does not may have a rule of its own for it."""

    @wraps(operation)
    def apply(self: "Dual", other: Any) -> Any:
        if isinstance(other, Dual):
            return operation(self, other)
        if isinstance(other, int | float | Decimal):
            return operation(self, Dual(self.arithmetic, Ends(Decimal(other), Decimal(other))))
        return NotImplemented

    return cast("Callable[[Dual, Any], T]", apply)


class Dual:
    """An interval and that of its derivative along one direction (None: 0)."""

    __slots__ = ("arithmetic", "slope", "value")

    def __init__(self, arithmetic: Arithmetic, value: Ends, slope: Ends | None = None) -> None:
        self.arithmetic, self.value, self.slope = arithmetic, value, slope

    def made(self, value: Ends, *terms: tuple[Ends | None, Ends]) -> "Dual":
        """A result with the sum of slope times derivative over what it was made of."""
        a, total = self.arithmetic, None
        for slope, derivative in terms:
            if slope is not None:
                term = a.multiply(slope, derivative)
                total = term if total is None else a.add(total, term)
        return Dual(a, value, total)

    def __neg__(self) -> "Dual":
        return self * -1

    @_with_number
    def __add__(self, other: "Dual") -> "Dual":
        one = _integer(1)
        return self.made(self.arithmetic.add(self.value, other.value), (self.slope, one), (other.slope, one))

    @_with_number
    def __sub__(self, other: "Dual") -> "Dual":
        return self + other * -1

    @_with_number
    def __rsub__(self, other: "Dual") -> "Dual":
        return other - self

    @_with_number
    def __mul__(self, other: "Dual") -> "Dual":
        product = self.arithmetic.multiply(self.value, other.value)
        return self.made(product, (self.slope, other.value), (other.slope, self.value))

    @_with_number
    def __truediv__(self, other: "Dual") -> "Dual":
        a = self.arithmetic
        inverse = a.divide(_integer(1), other.value)
        return self * other.made(inverse, (other.slope, a.negative(a.multiply(inverse, inverse))))

    @_with_number
    def __rtruediv__(self, other: "Dual") -> "Dual":
        return other / self

    @_with_number
    def __pow__(self, exponent: "Dual") -> "Dual":
        a, by = self.arithmetic, exponent
        if by.value == _integer(1):
            return self
        value = a.power(self.value, by.value)
        less = a.multiply(by.value, a.power(self.value, a.subtract(by.value, _integer(1))))
        return self.made(value, (self.slope, less), (by.slope, a.multiply(value, a.log(self.value))))

    @_with_number
    def __lt__(self, other: "Dual") -> bool:
        if self.value.high < other.value.low:
            return True
        if self.value.low >= other.value.high:
            return False
        raise OverlapError

    @_with_number
    def __gt__(self, other: "Dual") -> bool:
        return other < self

    def __eq__(self, other: object) -> bool:
        # A sort compares for equality first; intervals that overlap stay in doubt.
        return isinstance(other, Dual) and not (self < other or other < self)

    __hash__ = None  # type: ignore[assignment]

    def __float__(self) -> float:
        return float(self.value.low)

    __radd__, __rmul__ = __add__, __mul__


class DecimalIntervals:
    """The number system of a formula: intervals with their derivative along one direction."""

    def __init__(self, digits: int) -> None:
        self.arithmetic = Arithmetic(digits)

    def number(self, x: float) -> Dual:
        return Dual(self.arithmetic, Ends(Decimal(x), Decimal(x)))

    def detach(self, x: Dual) -> Dual:
        return Dual(self.arithmetic, x.value)

    def real(self, x: Dual) -> Dual:
        return x

    def above(self, x: Dual, y: Dual) -> bool:
        return y < x

    def exp(self, x: Dual) -> Dual:
        value = self.arithmetic.exp(x.value)
        return x.made(value, (x.slope, value))

    def log(self, x: Dual) -> Dual:
        a = self.arithmetic
        return x.made(a.log(x.value), (x.slope, a.divide(_integer(1), x.value)))

    def sqrt(self, x: Dual) -> Dual:
        a = self.arithmetic
        value = a.sqrt(x.value)
        return x.made(value, (x.slope, a.divide(_integer(1), a.add(value, value))))

    def sin(self, x: Dual) -> Dual:
        a = self.arithmetic
        return x.made(a.series(x.value, 1), (x.slope, a.series(x.value, 0)))

    def cos(self, x: Dual) -> Dual:
        a = self.arithmetic
        return x.made(a.series(x.value, 0), (x.slope, a.negative(a.series(x.value, 1))))

    def acos(self, x: Dual) -> Dual:
        a = self.arithmetic
        sine = a.sqrt(a.subtract(_integer(1), a.multiply(x.value, x.value)))
        return x.made(a.acos(x.value), (x.slope, a.divide(_integer(-1), sine)))

    @staticmethod
    def enclosure(x: Dual | int) -> Enclosure:
        """The interval as exact numbers."""
        return _exact(x.value if isinstance(x, Dual) else _integer(x))


_SMALLEST = Decimal("1e-5000")
"""The least magnitude of an end but 0: as a fraction, exp(-10^8) has a denominator of 43 million digits."""


def _outward(end: Decimal, rounding: str) -> Fraction:
    if end and end.adjusted() < _SMALLEST.adjusted():
        up = rounding == ROUND_CEILING
        end = Decimal(0) if (end > 0) != up else _SMALLEST.copy_sign(end)
    return Fraction(end)


def _exact(ends: Ends) -> Enclosure:
    if not (ends.low.is_finite() and ends.high.is_finite()):
        raise OverlapError
    low, high = (_outward(end, context) for end, context in zip(ends, (ROUND_FLOOR, ROUND_CEILING), strict=True))
    return Enclosure((low + high) / 2, (high - low) / 2)


def decimal_enclosures(loss: Loss, inputs: Mapping[str, Any], digits: int) -> dict[str, Any]:
    """Enclosures of the value, the rows and all gradients under the reduction "mean", as `certified` returns them.

    Derivatives are taken by reverse mode, as those of `certified`; `decimal_along` has other rules.

    `inputs` are those that `bind` returned; every decimal has `digits` digits.
    """
    return enclosures(loss, inputs, DecimalIntervals(digits))


def decimal_along(
    loss: Loss, inputs: Mapping[str, Any], digits: int, direction: Mapping[str, Any]
) -> tuple[Enclosure, Enclosure]:
    """Enclosures of the value and of its derivative along one direction, by forward mode: one run of the formula.

    `inputs` are those that `bind` returned, every decimal has `digits` digits, and `direction` has an array of integers
    in the shape of each input.
    """
    given = arguments(loss, DecimalIntervals(digits), inputs)
    for name, steps in direction.items():
        given[name] = mapped(partial(_moved, iter(np.ravel(steps).tolist())), given[name])
    value = reduce_rows(loss, loss.formula(DecimalIntervals(digits), **given), given, "mean")
    slope = value.slope if isinstance(value, Dual) else None
    return DecimalIntervals.enclosure(value), _exact(slope or _integer(0))


def _moved(steps: Iterator[int], x: Dual) -> Dual:
    """The number with the next step of a direction for its derivative."""
    return Dual(x.arithmetic, x.value, _integer(next(steps)))


def direction_of(gradients: Mapping[str, Any]) -> dict[str, Any]:
    """A direction by input with no two neighbors alike: 1, -2, 3, -4, 5, -1, 2, ...

    `gradients` has an array for each input.
    """
    places = {name: np.arange(np.size(x)).reshape(np.shape(x)) for name, x in gradients.items()}
    return {name: (place % 5 + 1) * np.where(place % 2, -1, 1) for name, place in places.items()}


def along(gradients: Mapping[str, Any], direction: Mapping[str, Any]) -> Enclosure:
    """The derivative along a direction that gradients give.

    `gradients` has an object array of `Enclosure` for each input, and `direction` an array of integers.
    """
    terms = [pair for name, x in gradients.items() for pair in zip(np.ravel(x), np.ravel(direction[name]), strict=True)]
    middle = sum((one.middle * int(n) for one, n in terms), Fraction(0))
    return Enclosure(middle, sum((one.radius * abs(int(n)) for one, n in terms), Fraction(0)))
