"""Value, rows and gradients of a formula as proven enclosures, narrow enough to round to one number of a format."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from nceref.engine.arguments import bind, refuse_other_libraries
from nceref.engine.entry_point import entry_point
from nceref.errors import InputError
from nceref.exact.number_systems import Balls
from nceref.exact.reference import declared_loss, mapped, with_gradients
from nceref.spec import Loss

FIRST_DIGITS, MOST_DIGITS = 35, 1230
"""The first and the most digits of the balls: about 128 and 4096 bits."""
SPARE_BITS = 10
"""An enclosure so many bits wider still rounds to one number."""


class OverlapError(ArithmeticError):
    """Two enclosures overlap: which number is the larger one is not known at this precision."""


class NotProvenError(InputError):
    """No enclosure was narrow enough to decide what a formula compares or divides by."""


@dataclass(frozen=True)
class Enclosure:
    """The interval within a radius of a middle, which holds the true number.

    Attributes
    ----------
    middle, radius : Fraction
        With radius 0 the middle is the number itself.
    """

    middle: Fraction
    radius: Fraction = Fraction(0)

    @property
    def exact(self) -> bool:
        """Whether there is no other number in it."""
        return self.radius == 0

    def ends(self, wider: int = 1) -> tuple[Fraction, Fraction]:
        """Lower and upper end, with the radius times `wider`."""
        return self.middle - wider * self.radius, self.middle + wider * self.radius

    def overlaps(self, other: "Enclosure") -> bool:
        """Whether one number may be in both."""
        return abs(self.middle - other.middle) <= self.radius + other.radius

    def settled(self) -> bool:
        """Whether all of it rounds to one float64, with `SPARE_BITS` to spare."""
        try:
            low, high = map(float, self.ends(2**SPARE_BITS))
        except OverflowError:
            return False
        return low == high

    def __float__(self) -> float:
        return float(self.middle)


class Decided:
    """A ball that a formula compares: with an answer that is proven, or none."""

    def __init__(self, ball: Any) -> None:
        self.ball = ball

    def __neg__(self) -> "Decided":
        return Decided(-self.ball)

    def __rsub__(self, other: Any) -> "Decided":
        return Decided(other - self.ball)

    def __lt__(self, other: Any) -> bool:
        theirs = other.ball if isinstance(other, Decided) else other
        if self.ball < theirs:
            return True
        if self.ball >= theirs:
            return False
        raise OverlapError

    def __gt__(self, other: Any) -> bool:
        theirs = other if isinstance(other, Decided) else Decided(self.ball * 0 + other)
        return theirs < self

    def __eq__(self, other: object) -> bool:
        # A sort compares for equality first; numbers that are equal to all digits at hand stay in doubt.
        return isinstance(other, Decided) and not (self < other or other < self)

    __hash__ = None  # type: ignore[assignment]

    def __float__(self) -> float:
        return float(self.ball)


class ProvenBalls(Balls):
    """Balls whose comparisons are proven as well."""

    def real(self, x: Any) -> Decided:
        return Decided(x)

    def above(self, x: Any, y: Any) -> bool:
        return Decided(y) < Decided(x)

    @staticmethod
    def enclosure(x: Any) -> Enclosure:
        """The ball as exact numbers."""
        if isinstance(x, int):
            return Enclosure(Fraction(x))
        if not x.is_finite():
            raise OverlapError
        return Enclosure(_fraction(x.mid()), _fraction(x.rad()))


def _fraction(x: Any) -> Fraction:
    mantissa, exponent = x.man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


@entry_point
def certified(
    declaration: Any,
    /,
    *arrays: Any,
    most_digits: int = MOST_DIGITS,
    of_rows: Collection[int] | None = None,
    **named: Any,
) -> dict[str, Any]:
    """Enclosures of the value, the rows and all gradients of a loss, under the reduction "mean".

    The formula runs in ball arithmetic and its derivatives are taken by reverse mode in the same balls. Precision
    doubles until every number rounds to one float64 with 10 bits to spare.

    Parameters
    ----------
    declaration : Loss, LossFunction or str
        What to evaluate.
    *arrays, **named
        The arguments of the loss, NumPy arrays.
    most_digits : int
        Where doubling ends; what is not settled then is returned as it is, see `Enclosure.settled`.
    of_rows : collection of int, optional
        The rows that count: what they contribute to the mean over all is enclosed, and its gradients. Default: all.

    Returns
    -------
    dict
        "value": an Enclosure; "rows": an object array of them, for a loss that has rows; "grad.NAME": an object array
        in the shape of the input.

    Raises
    ------
    InputError
        For arguments that the loss refuses.
    NotProvenError
        Where two numbers that a formula compares are equal to all digits, or one that it divides by is 0.
    """
    loss = declared_loss(declaration)
    inputs = bind(loss, arrays, named)
    refuse_other_libraries(inputs, "exact formulas")
    digits, out = FIRST_DIGITS, None
    while digits <= most_digits:
        try:
            out = enclosures(loss, inputs, ProvenBalls(digits), of_rows)
        except ArithmeticError:
            out = None
        if out is not None and all(one.settled() for _, one in numbers(out)):
            return out
        digits *= 2
    if out is None:
        msg = (
            f"{loss.name} has no proven value and gradient here: it compares numbers, or divides by one, that cannot be"
            f" told apart from each other or from 0 with {most_digits} digits"
        )
        raise NotProvenError(msg)
    return out


def numbers(out: Mapping[str, Any]) -> Iterator[tuple[str, Enclosure]]:
    """The enclosures one by one, each with the name of its output."""
    for name, x in out.items():
        yield from ((name, one) for one in (x.flat if isinstance(x, np.ndarray) else [x]))


def enclosures(
    loss: Loss, inputs: Mapping[str, Any], base: Any, of_rows: Collection[int] | None = None
) -> dict[str, Any]:
    """The enclosures that `certified` returns, at the precision of one number system."""
    value, rows, slopes = with_gradients(loss, inputs, base, of_rows)
    made = {"value": value, **({} if rows is None else {"rows": rows})}
    made |= {f"grad.{name}": x for name, x in slopes.items()}
    return {name: as_array(mapped(base.enclosure, x)) for name, x in made.items()}


def as_array(nested: Any) -> Any:
    """Nested lists of enclosures as an object array; one of them as it is."""
    return np.array(nested, dtype=object) if isinstance(nested, list) else nested
