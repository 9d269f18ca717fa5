"""The number of digits that the exponentials of a formula need, and the remedy where there are too many."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from nceref.engine.bound_loss import BoundLoss
from nceref.engine.scaling import exponent_of
from nceref.errors import InputError

MOST_DIGITS = 20_000
"""The most digits: beyond them, a single exponential takes seconds."""
_MOST_EXPONENT = math.floor(MOST_DIGITS * math.log(10) / 2)


def digits_of_exponents(bound: BoundLoss, largest: Callable[[Mapping[str, Any]], Any]) -> int:
    """Digits to begin with: a loss or a slope is either 0 or hardly smaller than exp(-2 max |exponent|).

    `largest` gives the largest exponent of the formula at some arguments, a number of mpmath. Raises `InputError` where
    there are more than 20,000 digits: it names the argument that is farthest from 1, and what it can be.
    """
    exponent = largest(bound.arguments)
    if exponent <= _MOST_EXPONENT:
        return math.ceil(2 * float(exponent) / math.log(10))
    name, size = bound.farthest()
    reach = f"exponents of {bound.loss.name} reach {exponent.context.nstr(exponent, 2)}"
    remedy = bound.remedy("float64", name, size)
    if isinstance(bound.arguments[name], float):
        remedy += _usable(bound, name, largest)
    farthest = f"farthest from 1 is `{name}` with {size:.3g}: {remedy}"
    msg = f"{reach}, exact values are computed up to {_MOST_EXPONENT:,}; {farthest}"
    raise InputError(msg)


def _usable(bound: BoundLoss, name: str, largest: Callable[[Mapping[str, Any]], Any]) -> str:
    """The power of two, between a scalar and 1, up to which its exponents are small enough; empty where 1 is not."""
    given = bound.arguments[name]

    def fits(exponent: int) -> bool:
        return bool(largest({**bound.arguments, name: math.copysign(2.0**exponent, given)}) <= _MOST_EXPONENT)

    inside, outside = 0, exponent_of(abs(given))
    if not fits(inside):
        return ""
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    sign = "-" if given < 0 else ""
    return f" to {sign}2^{inside} = {math.copysign(2.0**inside, given):.4g}"
