"""Verdicts on published numbers beside computed ones: one enumeration, and the rule behind it."""

import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import isfinite, ulp

from nceref.errors import InputError
from nceref.theory.table import Cell

# What a handful of float64 roundings (a quotient, an exp, a sum of three) may leave in the last place.
_LAST_PLACES = 4

# The sources print 6.1-06 for 6.1e-06. The point is required there: 5-3 is not a number.
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LOST_E = re.compile(r"([-+]?\d+\.\d+)([-+]\d+)")


class Verdict(StrEnum):
    """Result of comparing something published with something computed, best first."""

    AGREES = "agrees"
    PRINTED_DIGITS = "agrees to printed digits"
    TRUNCATED = "truncated"
    FLOAT32_ARTIFACT = "float32 artifact"
    CONDITIONAL = "true under conditions"
    IMPRECISE = "imprecise"
    NOT_REPRODUCIBLE = "not reproducible here"
    WRONG = "wrong"


def verdict(cell: Cell) -> Verdict:
    """Compare the printed text of a cell with its computed number, digit by digit.

    The first line that holds decides:

    - nothing could be computed: `not reproducible here`;
    - the text has more or fewer numbers than were computed: `wrong`;
    - the printed number is the computed one, rounded, and differs from it by no more than a few units in the last
      place of a float64: `agrees`;
    - it is the computed one rounded (half away from zero) to the digits that are printed: `agrees to printed digits`;
    - it is the computed one cut off (toward zero) after the digits that are printed: `truncated`;
    - it is the float32 evaluation, rounded: `float32 artifact`;
    - otherwise: `wrong`.

    A printed zero has no significant digit, so nothing rounds to it: it agrees with an exact zero only, and is an
    artifact if the float32 evaluation is exactly zero. A list gets the worst verdict of its numbers. All arithmetic
    is exact, and each line holds for one printed number at most: another digit is another verdict, or `wrong`.

    The enumeration has two more values, `true under conditions` and `imprecise`. They belong to sentences; no number
    gets them from this rule.

    Raises `InputError` if the text is not a number or a list of numbers, or a computed number is not finite.

    Examples
    --------
    >>> from nceref.theory.table import Cell
    >>> verdict(Cell("0.67", 2 / 3)).value
    'agrees to printed digits'
    >>> verdict(Cell("0.66", 2 / 3)).value
    'truncated'
    """
    published = printed_numbers(cell.published)
    if cell.computed is None:
        return Verdict.NOT_REPRODUCIBLE
    computed, single = _several(cell.computed), _several(cell.single)
    if len(published) != len(computed):
        return Verdict.WRONG
    # A float32 evaluation of another length belongs to other numbers and is left out.
    singles = single if len(single) == len(computed) else (None,) * len(computed)
    judged = [_judge(*one) for one in zip(published, computed, singles, strict=True)]
    # The enumeration goes from best to worst.
    return max(judged, key=list(Verdict).index)


def printed_numbers(text: str) -> tuple[Decimal, ...]:
    """Read the numbers of a printed cell, with the digits that are printed.

    The text is one number, or several in brackets or between commas. An exponent that lost its "e" (6.1-06) is
    understood. Raises `InputError` if some part of the text is not a number.
    """
    return tuple(_printed_number(part.strip(), text) for part in text.strip().strip("[]()").split(","))


def _printed_number(part: str, text: str) -> Decimal:
    lost = _LOST_E.fullmatch(part)
    if lost is not None:
        return Decimal(f"{lost[1]}e{lost[2]}")
    if _NUMBER.fullmatch(part) is None:
        msg = f"a published cell must be a number or a list of numbers, got {text!r}, where {part!r} is none"
        raise InputError(msg)
    return Decimal(part)


def _several(numbers: float | Sequence[float] | None) -> tuple[float, ...]:
    if numbers is None:
        return ()
    floats = tuple(map(float, numbers)) if isinstance(numbers, Sequence) else (float(numbers),)
    for number in floats:
        if not isfinite(number):
            msg = f"a computed number must be finite, got {number}: leave it out (None) if it cannot be computed"
            raise InputError(msg)
    return floats


def _judge(printed: Decimal, computed: float, single: float | None) -> Verdict:
    # Ordered from best to worst. Fractions are exact: the comparison adds no rounding of its own.
    if _rounds_to(computed, printed):
        near = abs(Fraction(printed) - Fraction(computed)) <= _LAST_PLACES * Fraction(ulp(computed))
        return Verdict.AGREES if near else Verdict.PRINTED_DIGITS
    if printed and 0 <= _beyond(computed, printed) < 1:
        return Verdict.TRUNCATED
    if single is not None and _rounds_to(single, printed):
        return Verdict.FLOAT32_ARTIFACT
    return Verdict.WRONG


def _rounds_to(exact: float, printed: Decimal) -> bool:
    """Whether `exact` is `printed` after rounding half away from zero to the last printed digit."""
    if not printed:
        return exact == 0
    # A tie goes away from zero: half a unit short still rounds to `printed`, half a unit beyond does not.
    return Fraction(-1, 2) <= _beyond(exact, printed) < Fraction(1, 2)


def _beyond(exact: float, printed: Decimal) -> Fraction:
    """The distance of `exact` from `printed`, in units of the last printed digit, positive away from zero."""
    _, _, exponent = printed.as_tuple()
    # The exponent of the text, trailing zeros included: 0.50 has two digits, and a unit of 0.01.
    difference = Fraction(exact) - Fraction(printed)
    return difference * (-1 if printed < 0 else 1) / Fraction(10) ** int(exponent)
