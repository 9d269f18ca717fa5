"""Limits and known digits of numbers whose last digits depend on the machine."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

SHARES = (0.25, 1.0)
"""Parts of a bound, below which a measured error is said to be. Few and far between: what is near one may be on either
side of it, and right programs are below the first one under every kernel that was measured."""
DIGITS = 12
"""Significant digits of a float64 that a few dozen roundings leave as they are."""


def at_most(number: float, digits: int) -> float:
    """The smallest number of so many significant digits that is not below a positive one.

    >>> at_most(5.2323e-14, 2), at_most(0.25, 2), at_most(0.0, 2), at_most(math.inf, 2)
    (5.3e-14, 0.25, 0.0, inf)
    """
    return _rounded(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int) -> float:
    """The largest number of so many significant digits that is not above a positive one.

    >>> at_least(5.2783e-14, 2), at_least(0.25, 2), at_least(0.0, 2)
    (5.2e-14, 0.25, 0.0)
    """
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> float:
    # Of the shortest decimal: the bits of 5.3e-14 are a little more than that.
    return float(Context(prec=digits, rounding=rounding).create_decimal(repr(float(number))))


def share(ratio: float) -> float:
    """The first of `SHARES` that an error in units of its bound is not above; above the last one, two digits of it.

    >>> share(0.0062), share(0.9), share(7.13), share(math.inf)
    (0.25, 1.0, 7.2, inf)
    """
    return next((limit for limit in SHARES if ratio <= limit), at_most(ratio, 2))


def of_the_bound(ratio: float) -> str:
    """An error in units of its bound, in words.

    >>> of_the_bound(0.0062), of_the_bound(0.9), of_the_bound(7.13)
    ('below 25 % of the bound', 'within the bound', 'up to 7.2 times the bound')
    """
    limit = share(ratio)
    if limit > 1:
        return f"up to {limit:.2g} times the bound"
    return "within the bound" if limit == 1 else f"below {100 * limit:g} % of the bound"


def guaranteed(error: float, bound: float) -> tuple[float, float]:
    """An error and its bound as they are reported; that one is above the other stays so.

    Of one within its bound, the bound rounded upward and the first of `SHARES` of it that the error is not above: how
    much of it was used moves with the last bits of the reference. Of another, three digits and the bound rounded
    downward.

    >>> guaranteed(8.9e-16, 5.2323e-14), guaranteed(0.0, 0.0), guaranteed(1.41960220814, 5.2323e-14)
    ((1.325e-14, 5.3e-14), (0.0, 0.0), (1.42, 5.2e-14))
    """
    if error <= bound:
        room = at_most(bound, 2)
        return share(error / bound if bound > 0 else 0.0) * room, room
    room = at_least(bound, 2)
    return max(stable(error, 3), math.nextafter(room, math.inf)), room


def digits_of(error: float) -> int:
    """The count of right leading digits, at most `DIGITS`, of a number that is off by so much of its size.

    >>> digits_of(2.2e-16), digits_of(0.0), digits_of(1.2e-7), digits_of(3.0)
    (12, 12, 6, 0)
    """
    return max(0, min(DIGITS, math.floor(-math.log10(error)))) if error > 0 else DIGITS


def stable(number: float, digits: int = DIGITS) -> float:
    """A computed number with the digits that every machine computes alike, or with fewer.

    >>> stable(0.6050043010488297), stable(0.6050043010488299), stable(3.0)
    (0.605004301049, 0.605004301049, 3.0)
    """
    return float(f"{number:.{digits - 1}e}") if math.isfinite(number) else number
