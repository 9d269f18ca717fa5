"""Enclosures by the standard library's `decimal`, rounded outward: a second engine beside the balls of python-flint.

It shares nothing with them but the formula: ends in place of middle and radius, decimals in place of bits, and
derivatives by forward mode, one direction a run.
"""

import math
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from nceref.exact.certified import Enclosure, OverlapError, as_array
from nceref.exact.reference import arguments, mapped, perturbed, reduce_rows
from nceref.losses import differentiable
from nceref.spec import Loss


class Ends(NamedTuple):
    """Lower and upper end of an interval."""

    low: Decimal
    high: Decimal


class Arithmetic:
    """Interval arithmetic with so many decimal digits.

    Parameters
    ----------
    digits : int
    """

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
        """By a unit in the last place: functions are rounded to nearest whatever the context says."""
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
        """By Newton's method from the float, and by cosines that prove the answer."""
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

    def other(self, x: Any) -> "Dual":
        return x if isinstance(x, Dual) else Dual(self.arithmetic, Ends(Decimal(x), Decimal(x)))

    def __neg__(self) -> "Dual":
        return self * -1

    def __add__(self, other: Any) -> "Dual":
        one, y = _integer(1), self.other(other)
        return self.made(self.arithmetic.add(self.value, y.value), (self.slope, one), (y.slope, one))

    def __sub__(self, other: Any) -> "Dual":
        return self + self.other(other) * -1

    def __rsub__(self, other: Any) -> "Dual":
        return self.other(other) - self

    def __mul__(self, other: Any) -> "Dual":
        y = self.other(other)
        return self.made(self.arithmetic.multiply(self.value, y.value), (self.slope, y.value), (y.slope, self.value))

    def __truediv__(self, other: Any) -> "Dual":
        a, y = self.arithmetic, self.other(other)
        inverse = a.divide(_integer(1), y.value)
        return self * y.made(inverse, (y.slope, a.negative(a.multiply(inverse, inverse))))

    def __rtruediv__(self, other: Any) -> "Dual":
        return self.other(other) / self

    def __pow__(self, exponent: Any) -> "Dual":
        a, by = self.arithmetic, self.other(exponent)
        if by.value == _integer(1):
            return self
        value = a.power(self.value, by.value)
        less = a.multiply(by.value, a.power(self.value, a.subtract(by.value, _integer(1))))
        return self.made(value, (self.slope, less), (by.slope, a.multiply(value, a.log(self.value))))

    def __lt__(self, other: Any) -> bool:
        y = self.other(other)
        if self.value.high < y.value.low:
            return True
        if self.value.low >= y.value.high:
            return False
        raise OverlapError

    def __gt__(self, other: Any) -> bool:
        return self.other(other) < self

    def __eq__(self, other: object) -> bool:
        # A sort compares for equality first; intervals that overlap stay in doubt.
        return isinstance(other, Dual) and not (self < other or other < self)

    __hash__ = None  # type: ignore[assignment]

    def __float__(self) -> float:
        return float(self.value.low)

    __radd__, __rmul__ = __add__, __mul__


class DecimalIntervals:
    """The number system of a formula: intervals with their derivative along one direction.

    Parameters
    ----------
    digits : int
    """

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
    def enclosure(ends: Ends | None) -> Enclosure:
        """The interval as exact numbers; None is 0."""
        if ends is None:
            return Enclosure(Fraction(0))
        if not (ends.low.is_finite() and ends.high.is_finite()):
            raise OverlapError
        low, high = Fraction(ends.low), Fraction(ends.high)
        return Enclosure((low + high) / 2, (high - low) / 2)


def decimal_enclosures(loss: Loss, inputs: Mapping[str, Any], digits: int) -> dict[str, Any]:
    """Enclosures of the value, the rows and all gradients under the reduction "mean", as `certified` returns them.

    Parameters
    ----------
    loss : Loss
        Whose formula.
    inputs : mapping
        What `bind` returned.
    digits : int
        Of every decimal.
    """
    m = DecimalIntervals(digits)
    given = arguments(loss, m, inputs)

    def value(changed: Mapping[str, Any]) -> Any:
        return reduce_rows(loss, loss.formula(m, **changed), changed, "mean")

    result = loss.formula(m, **given)
    out: dict[str, Any] = {"value": _enclosure(reduce_rows(loss, result, given, "mean"))}
    if loss.has_rows:
        out["rows"] = as_array([_enclosure(row) for row in reduce_rows(loss, result, given, "none")])
    for name in differentiable(loss):
        if given[name] is not None:
            out[f"grad.{name}"] = as_array(perturbed(given[name], _slope, _seeded, value, given, name))
    return out


def decimal_along(
    loss: Loss, inputs: Mapping[str, Any], digits: int, direction: Mapping[str, Any]
) -> tuple[Enclosure, Enclosure]:
    """Enclosures of the value and of its derivative along one direction, in one run of the formula.

    Parameters
    ----------
    loss : Loss
        Whose formula.
    inputs : mapping
        What `bind` returned.
    digits : int
        Of every decimal.
    direction : mapping
        Inputs to an array of integers in their shape.

    Returns
    -------
    value, slope : Enclosure
    """
    m = DecimalIntervals(digits)
    given = arguments(loss, m, inputs)
    for name, steps in direction.items():
        step = iter(np.ravel(steps).tolist())
        given[name] = mapped(lambda x, step=step: Dual(x.arithmetic, x.value, _integer(next(step))), given[name])
    value = reduce_rows(loss, loss.formula(m, **given), given, "mean")
    return _enclosure(value), _slope(value)


def _enclosure(x: Any) -> Enclosure:
    return DecimalIntervals.enclosure(x.value if isinstance(x, Dual) else _integer(x))


def _slope(x: Any) -> Enclosure:
    return DecimalIntervals.enclosure(x.slope if isinstance(x, Dual) else None)


def _seeded(x: Dual) -> Dual:
    return Dual(x.arithmetic, x.value, _integer(1))
