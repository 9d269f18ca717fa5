"""Simple numbers near a measured one: fractions, short decimals, ln 2."""

import math
from fractions import Fraction
from typing import Any

NAMED = {"ln 2": math.log(2), "log2(e)": 1 / math.log(2), "ln 10": math.log(10), "pi": math.pi, "e": math.e}
"""Numbers that are known by a name."""


def recognized(x: Any, within: float = 1e-5) -> tuple[float, str]:
    """A number that was measured, as the simple number that it is close to, and how that is written.

    Fractions with a denominator of at most 64, decimals of at most three digits and a few constants are simple.

    `within`: relative distance. `value`: the number itself where no simple one is near.
    """
    x = float(x)
    if not math.isfinite(x) or x == 0:
        return x, f"{x:g}"
    near = Fraction(x).limit_denominator(64)
    options = {f"{near}": float(near), f"{x:.3g}": float(f"{x:.3g}"), f"1/{1 / x:.3g}": 1 / float(f"{1 / x:.3g}")}
    for words, value in {**options, **NAMED}.items():
        if abs(value - x) <= within * abs(x):
            return value, words
    return x, f"{x:.6g}"


def written(x: float) -> str:
    """The digits of a number, and which simple number it is: ``2.5 = 5/2``."""
    # Six digits of a number that is nearly 1 are those of 1.
    if 0 < abs(x - 1) < 1e-4:
        return f"1 {'+' if x > 1 else '-'} {abs(x - 1):.3g}"
    digits, words = f"{x:.6g}", recognized(x)[1]
    return digits if words == digits else f"{digits} = {words}"


def candidates(x: Any, within: float = 0.0) -> list[float]:
    """The simple number, then the measured one where it is another: a constant may be rounded to float32.

    `x`: as it was measured. `within`: relative distance at which other numbers were measured as well: short ones come
    between the two. Result: one to five.
    """
    x = float(x)
    value, _ = recognized(x)
    short = (float(f"{x:.{digits}g}") for digits in (1, 2, 3))
    numbers = [s for s in (value, *(s for s in short if abs(s - x) <= within * abs(x))) if s != x]
    # What differs by rounding only is no other number.
    return list(dict.fromkeys(numbers if value != x and abs(value - x) <= 1e-13 * abs(value) else [*numbers, x]))
