"""Powers of two: what is divided by one and multiplied by it again keeps every bit, and leaves no range on the way.

Weights, rows and cotangents may be as small or as large as their format allows. Sums and products of them are not: so
they are taken of numbers near 1, and the power comes back with the result.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nceref.engine.namespaces import array_namespace, number_format, on_host

Array = Any


def power_of_two(x: Array) -> Array:
    """The largest power of two up to each entry, which is >= 0; 1 for 0."""
    # Entries of an array on the host, such as its largest, are no arrays.
    if on_host(x) or np.isscalar(x):
        return np.where(x > 0, np.ldexp(np.ones_like(x), np.frexp(x)[1] - 1), np.ones_like(x))
    xp = array_namespace(x)
    exponent = xp.floor(xp.log2(xp.where(x > 0, x, 1.0)))
    # The logarithm of the largest number is rounded up.
    most = float(exponent_of(number_format(xp, x.dtype).largest))
    return xp.pow(xp.full_like(x, 2.0), xp.clip(exponent, max=most))


def product(*factors: Array) -> Array:
    """The product entry by entry: it leaves the range, and loses digits, only where it is beyond the range itself."""
    if len(factors) <= 2:
        return math.prod(factors[1:], start=factors[0])
    return _joined(*_split(factors))


def scaled_product(*factors: Array) -> tuple[Array, int]:
    """The product divided by a power of two, and its exponent: 0 unless the largest entry is tiny for the first one."""
    xp = array_namespace(*factors)
    least = -(exponent_of(number_format(xp, factors[0].dtype).largest) // 4)
    # One array needs no joining: it is what it was, unless all of it is tiny.
    if len(factors) == 1 and float(xp.max(xp.abs(factors[0]))) >= 2.0**least:
        return factors[0], 0
    mantissa, exponents = _split(factors)
    largest = float(xp.max(xp.where(mantissa == 0, -xp.inf, exponents)))
    exponent = int(largest) if -math.inf < largest < least else 0
    return _joined(mantissa, exponents - exponent), exponent


def _split(factors: Sequence[Array]) -> tuple[Array, Array]:
    """The product of numbers near 1, and the sum of the exponents that they lack."""
    xp = array_namespace(*factors)
    powers = [power_of_two(xp.abs(x)) for x in factors]
    mantissas = (x / power for x, power in zip(factors, powers, strict=True))
    return math.prod(mantissas), sum(xp.round(xp.log2(power)) for power in powers)


def _joined(mantissa: Array, exponents: Array) -> Array:
    """Mantissa times 2^exponents, in two steps that the format can hold."""
    xp = array_namespace(mantissa)
    most = float(exponent_of(number_format(xp, mantissa.dtype).largest))
    # What is beyond twice the range is so for any mantissa; times 0 it would be NaN.
    exponents = xp.clip(exponents, min=-2 * most, max=2 * most)
    half, two = xp.floor(exponents / 2), xp.full_like(mantissa, 2.0)
    return mantissa * xp.pow(two, half) * xp.pow(two, exponents - half)


def exponent_of(x: float) -> int:
    """The exponent of the largest power of two up to x > 0."""
    return math.frexp(x)[1] - 1


def shifted(x: float, exponent: int) -> float:
    """The number x 2^exponent; infinite only where the product is too large."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(math.inf, x)


def exponent_range(x: Array, dtype: Any = None) -> tuple[int, int]:
    """The exponent of the largest entry, and a quarter of those of the dtype, by default that of the array.

    Products of two numbers within a quarter of the range stay far inside of it.
    """
    xp = array_namespace(x)
    largest = float(xp.max(xp.abs(x)))
    most = exponent_of(number_format(xp, x.dtype if dtype is None else dtype).largest)
    return exponent_of(largest) if largest > 0 else 0, most // 4


def excess_exponent(x: Array) -> int:
    """The part of the largest entry's exponent that lies beyond a quarter of the range; 0 within it.

    No more than that is scaled away, so that entries which are much smaller than the largest keep their digits.
    """
    exponent, quarter = exponent_range(x)
    return max(exponent - quarter, 0) + min(exponent + quarter, 0)


def times_power(x: Any, exponent: int) -> Any:
    """The number or array times 2^exponent, in steps that every format can hold."""
    while exponent:
        step = max(-100, min(100, exponent))
        x = x * 2.0**step
        exponent -= step
    return x
