"""Derivatives of a formula by reverse mode over the numbers of any system: one run gives every one of them.

Nothing is approximated: where the numbers are proven enclosures, so are the derivatives.
"""

from collections.abc import Iterable
from typing import Any

from nceref.exact.number_systems import Vector

Number = Any


class Variable:
    """A number with what it was made of.

    The value and the derivatives are numbers of the system `base`. `parents` are variables with the derivative by each;
    there are none for an input.

    Attributes
    ----------
    slope : number
        The derivative of an output by it, once `backward` has run.
    """

    __slots__ = ("base", "parents", "row", "slope", "value")

    def __init__(self, base: Any, value: Number, parents: Iterable[tuple[Any, Any]] = ()) -> None:
        self.base, self.value, self.parents = base, value, tuple(parents)
        self.slope: Number = 0
        self.row: VariableRow | None = None

    def made(self, value: Number, slope: Number, other: Any = None, its_slope: Number = None) -> "Variable":
        """A result of this variable and of another one, or of a number, with the derivatives by both."""
        parents = [(self, slope), *([(other, its_slope)] if isinstance(other, Variable) else [])]
        return Variable(self.base, value, parents)

    def spread(self) -> None:
        """Add to the slope of everything that this was made of what comes from this one."""
        for parent, slope in self.parents:
            parent.slope = parent.slope + self.slope * slope

    def dot_product(self, a: list[Any], b: list[Any]) -> "Variable":
        """sum_k a_k b_k of rows that begin with this variable and with any number."""
        x, y = row_of(self.base, a), row_of(self.base, b)
        return OfRows(self.base, x.vector.dot(y.vector), ((x, y.vector), (y, x.vector)))

    def squared_distance(self, a: list[Any], b: list[Any]) -> "Variable":
        """sum_k (a_k - b_k)^2 of such rows."""
        x, y = row_of(self.base, a), row_of(self.base, b)
        apart = x.vector + y.vector.times(-1)
        return OfRows(self.base, apart.dot(apart), ((x, apart.times(2)), (y, apart.times(-2))))

    def __neg__(self) -> "Variable":
        return self.made(-self.value, -1)

    def __add__(self, other: Any) -> "Variable":
        return self.made(self.value + value_of(other), 1, other, 1)

    def __sub__(self, other: Any) -> "Variable":
        return self.made(self.value - value_of(other), 1, other, -1)

    def __rsub__(self, other: Any) -> "Variable":
        return self.made(other - self.value, -1)

    def __mul__(self, other: Any) -> "Variable":
        factor = value_of(other)
        return self.made(self.value * factor, factor, other, self.value)

    def __truediv__(self, other: Any) -> "Variable":
        # A divisor may be an integer, and 1 / 5 a float: not so if the 1 is a number of the system.
        inverse = self.base.number(1.0) / value_of(other)
        quotient = self.value / value_of(other)
        return self.made(quotient, inverse, other, -quotient * inverse)

    def __rtruediv__(self, other: Any) -> "Variable":
        quotient = other / self.value
        return self.made(quotient, -quotient / self.value)

    def __pow__(self, exponent: Any) -> "Variable":
        power = value_of(exponent)
        value, slope = self.value**power, power * self.value ** (power - 1)
        return self.made(value, slope, exponent, value * self.base.log(self.value) if power is not exponent else None)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < value_of(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > value_of(other))

    __radd__, __rmul__ = __add__, __mul__


def value_of(x: Any) -> Number:
    """The value of a variable; a number as it is."""
    return x.value if isinstance(x, Variable) else x


class VariableRow:
    """Variables, or numbers, side by side: one step between the many products of rows and what is in the rows.

    Attributes
    ----------
    vector : Vector
        Their values.
    slope : Vector or None
        The derivatives by them that came from products of rows.
    """

    __slots__ = ("elements", "parents", "slope", "vector")

    def __init__(self, base: Any, elements: list[Any]) -> None:
        self.elements = elements
        self.slope: Any = None
        self.vector = getattr(base, "vector", Vector)(map(value_of, elements))
        self.parents = tuple((x, None) for x in elements if isinstance(x, Variable))

    def spread(self) -> None:
        """Add to the slope of every variable of the row what came to the row."""
        slopes = self.slope.numbers if self.slope else []
        for x, slope in zip(self.elements, slopes, strict=False):
            if isinstance(x, Variable):
                x.slope = x.slope + slope


class OfRows(Variable):
    """A number that was made of rows; its parents are these, each with a vector of derivatives."""

    __slots__ = ()

    def spread(self) -> None:
        for row, slopes in self.parents:
            step = slopes.times(self.slope)
            row.slope = row.slope + step if row.slope else step


def row_of(base: Any, elements: list[Any]) -> VariableRow:
    """The row of these elements, the same one each time."""
    first = elements[0]
    if not isinstance(first, Variable):
        return VariableRow(base, elements)
    # Compared one by one, by identity: a formula may make another row of some of the same variables.
    if first.row is None or first.row.elements != elements:
        first.row = VariableRow(base, list(elements))
    return first.row


class ReverseMode:
    """The number system of a formula of variables and of numbers of another system.

    The other system, `base`, has real numbers.
    """

    def __init__(self, base: Any) -> None:
        self.base, self.number = base, base.number

    def detach(self, x: Any) -> Number:
        return value_of(x)

    def real(self, x: Any) -> Any:
        return self.base.real(value_of(x))

    def above(self, x: Any, y: Any) -> bool:
        return bool(self.base.above(value_of(x), value_of(y)))

    def exp(self, x: Any) -> Any:
        value = self.base.exp(value_of(x))
        return x.made(value, value) if isinstance(x, Variable) else value

    def log(self, x: Any) -> Any:
        value = self.base.log(value_of(x))
        return x.made(value, 1 / x.value) if isinstance(x, Variable) else value

    def sqrt(self, x: Any) -> Any:
        value = self.base.sqrt(value_of(x))
        return x.made(value, 1 / (2 * value)) if isinstance(x, Variable) else value

    def sin(self, x: Any) -> Any:
        value = self.base.sin(value_of(x))
        return x.made(value, self.base.cos(x.value)) if isinstance(x, Variable) else value

    def cos(self, x: Any) -> Any:
        value = self.base.cos(value_of(x))
        return x.made(value, -self.base.sin(x.value)) if isinstance(x, Variable) else value

    def acos(self, x: Any) -> Any:
        value = self.base.acos(value_of(x))
        return x.made(value, -1 / self.base.sqrt(1 - x.value * x.value)) if isinstance(x, Variable) else value


def backward(output: Any) -> None:
    """Set the slope of everything that the output was made of: the derivative of the output by it."""
    if not isinstance(output, Variable):
        return
    output.slope = 1
    for variable in reversed(_ordered(output)):
        variable.spread()


def _ordered(output: Any) -> list[Any]:
    """The variables that a variable was made of, parents first; without recursion, which long sums would exhaust."""
    ordered: list[Any] = []
    entered: set[int] = set()
    stack: list[tuple[Any, bool]] = [(output, False)]
    while stack:
        variable, complete = stack.pop()
        if complete:
            ordered.append(variable)
        elif id(variable) not in entered:
            entered.add(id(variable))
            stack.append((variable, True))
            stack.extend((parent, False) for parent, _ in variable.parents)
    return ordered
