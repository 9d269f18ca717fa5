"""Number systems that a formula runs in: floats, complex floats, mpmath, balls of python-flint, SymPy.

Each offers ``exp log sqrt sin cos acos`` and, for what is not analytic, ``real`` (a float to decide a branch by),
``above`` (a comparison in full precision) and ``detach`` (a constant of the same value).
"""

import cmath
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from nceref.errors import UnavailableError

Number = Any


class Floats:
    """Python floats."""

    exp: Any
    log: Any
    sqrt: Any
    sin: Any
    cos: Any
    acos: Any
    exp, log, sqrt, sin, cos, acos = (
        staticmethod(f) for f in (math.exp, math.log, math.sqrt, math.sin, math.cos, math.acos)
    )

    def number(self, x: float) -> Number:
        """The number of this system that equals the float `x`."""
        return x

    def real(self, x: Number) -> float:
        """A float to decide a branch by."""
        return float(x)

    def detach(self, x: Number) -> Number:
        """The same value as a constant."""
        return x

    def above(self, x: Number, y: Number) -> bool:
        """Whether x > y, by their real parts."""
        return bool(x.real > y.real)


class Complex(Floats):
    """Complex floats, for the complex step: the imaginary part carries a derivative."""

    exp, log, sqrt, sin, cos, acos = (
        staticmethod(f) for f in (cmath.exp, cmath.log, cmath.sqrt, cmath.sin, cmath.cos, cmath.acos)
    )

    def number(self, x: float) -> Number:
        return complex(x)

    def real(self, x: Number) -> float:
        return float(x.real)

    def detach(self, x: Number) -> Number:
        return complex(x.real)


class Mpmath:
    """Multiprecision numbers with `digits` decimal digits, real or complex, in a context of their own."""

    def __init__(self, digits: int) -> None:
        from mpmath.ctx_mp import MPContext

        # The module's own context is shared with everyone: its precision is left alone.
        self.context = MPContext()
        self.context.dps = digits
        c = self.context
        self.exp, self.log, self.sqrt, self.sin, self.cos, self.acos = c.exp, c.log, c.sqrt, c.sin, c.cos, c.acos

    def number(self, x: float) -> Number:
        return self.context.mpf(x)

    def real(self, x: Number) -> float:
        return float(x.real)

    def detach(self, x: Number) -> Number:
        return self.context.mpf(x.real)

    def above(self, x: Number, y: Number) -> bool:
        return bool(x.real > y.real)


class ExponentRange(Mpmath):
    """Numbers of any size that remember the largest exponent they met: it sets the digits to begin with.

    The logarithm of an input counts as one: what is left of a difference may be as small as the input is.
    """

    def __init__(self) -> None:
        super().__init__(15)
        self.largest = self.context.mpf(0)
        self.exp, self.log, self.acos = self._exp, self._log, self._acos

    def number(self, x: float) -> Number:
        """The number, whose logarithm is remembered."""
        if x != 0:
            self.largest = max(self.largest, abs(self.context.log(abs(x))))
        return super().number(x)

    def _exp(self, x: Number) -> Number:
        """e^x, held between e^-700 and e^700: what is beyond would take as many digits as it has."""
        self.largest = max(self.largest, abs(x))
        return self.context.exp(max(-700, min(700, x)))

    def _log(self, x: Number) -> Number:
        """Log x; -700 where rounding left nothing."""
        return self.context.log(x) if x > 0 else self.context.mpf(-700)

    def _acos(self, x: Number) -> Number:
        """Acos x, with x held in [-1, 1]."""
        return self.context.acos(max(-1, min(1, x)))


class Vector:
    """Numbers of a system side by side: what reverse mode adds up of rows."""

    def __init__(self, numbers: Iterable[Number]) -> None:
        self.numbers = list(numbers)

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(x + y for x, y in zip(self.numbers, other.numbers, strict=True))

    def times(self, factor: Number) -> "Vector":
        """The numbers times the factor."""
        return Vector(factor * x for x in self.numbers)

    def dot(self, other: "Vector") -> Number:
        """Sum of the products."""
        return sum(x * y for x, y in zip(self.numbers, other.numbers, strict=True))


class BallVector:
    """Balls side by side, as a matrix of python-flint with one row."""

    def __init__(self, numbers: Iterable[Number]) -> None:
        import flint

        row = list(numbers)
        self.matrix = flint.arb_mat(1, len(row), row)

    @classmethod
    def _made(cls, matrix: Any) -> "BallVector":
        out = cls.__new__(cls)
        out.matrix = matrix
        return out

    @property
    def numbers(self) -> list[Number]:
        return list(self.matrix.entries())

    def __add__(self, other: "BallVector") -> "BallVector":
        return self._made(self.matrix + other.matrix)

    def times(self, factor: Number) -> "BallVector":
        return self._made(self.matrix * factor)

    def dot(self, other: "BallVector") -> Number:
        return (self.matrix * other.column)[0, 0]

    @cached_property
    def column(self) -> Any:
        """The same balls, one below another."""
        return self.matrix.transpose()


class Balls:
    """Balls of python-flint with `digits` decimal digits: every result encloses the true value."""

    def __init__(self, digits: int) -> None:
        try:
            import flint
        except ImportError:
            msg = "ball arithmetic needs the package python-flint: pip install 'nceref[certify]'"
            raise UnavailableError(msg) from None
        # The precision belongs to the library, not to a ball: it holds until the next system is made.
        flint.ctx.prec = math.ceil(digits * math.log2(10)) + 10
        ball = flint.arb
        self.number: Callable[[float], Number] = ball
        self.exp, self.log, self.sqrt = ball.exp, ball.log, ball.sqrt
        self.sin, self.cos, self.acos = ball.sin, ball.cos, ball.acos

    def vector(self, numbers: Iterable[Number]) -> "BallVector":
        """A `Vector` of balls."""
        return BallVector(numbers)

    def real(self, x: Number) -> Any:
        return float(x.mid())

    def detach(self, x: Number) -> Number:
        return x

    def above(self, x: Number, y: Number) -> bool:
        return bool(x.mid() > y.mid())


class Symbols:
    """SymPy expressions. `point` gives every symbol a float, by which branches are chosen.

    A detached expression becomes a fresh symbol; `constants` maps it back to what it stands for.
    """

    def __init__(self, point: Mapping[Any, float] | None = None) -> None:
        import sympy

        self.sympy = sympy
        self.point = dict(point or {})
        self.constants: dict[Any, Any] = {}
        self.exp, self.log, self.sqrt, self.sin = sympy.exp, sympy.log, sympy.sqrt, sympy.sin
        self.cos, self.acos = sympy.cos, sympy.acos

    def number(self, x: Any) -> Number:
        # Exact: a SymPy float would bring its own 15 digits into every result.
        return self.sympy.Rational(x) if isinstance(x, float) else self.sympy.sympify(x)

    def real(self, x: Number) -> float:
        # Detached parts first: `point` has no number for the symbols that stand for them.
        return float(self.sympy.sympify(x).xreplace(self.constants).evalf(subs=self.point))

    def above(self, x: Number, y: Number) -> bool:
        return self.real(x) > self.real(y)

    def detach(self, x: Number) -> Number:
        constant = self.sympy.Dummy("constant", real=True)
        self.constants[constant] = self.sympy.sympify(x).xreplace(self.constants)
        return constant
