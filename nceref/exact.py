"""Runs a formula in a number system: float, complex step, mpmath, balls, SymPy. The formula is the judge.

A formula sees numbers only through `m`: ``exp log sqrt sin cos acos`` and, for what is not analytic, ``real`` (a float to
decide a branch by) and ``detach`` (a constant of the same value). The same text therefore gives floats, gradients
without differences (complex step), 50 digits, proven enclosures and symbolic expressions.
"""

import cmath
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nceref.errors import InputError, UnavailableError
from nceref.inputs import bind
from nceref.losses import differentiable
from nceref.spec import Array, Labels, Loss, Scalar

Number = Any


class Floats:
    """Python floats."""

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


class Range(Floats):
    """Floats that never overflow, and remember the largest exponent they met: it sets the digits to begin with."""

    def __init__(self) -> None:
        self.largest = 0.0

    def exp(self, x: Number) -> Number:  # type: ignore[override]
        """e^x, held between e^-700 and e^700."""
        self.largest = max(self.largest, abs(x))
        return math.exp(max(-700.0, min(700.0, x)))

    def log(self, x: Number) -> Number:  # type: ignore[override]
        """Log x; -700 where rounding left nothing."""
        return math.log(x) if x > 0 else -700.0

    def acos(self, x: Number) -> Number:  # type: ignore[override]
        """Acos x, with x held in [-1, 1]."""
        return math.acos(max(-1.0, min(1.0, x)))


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
    """Multiprecision complex numbers with `digits` decimal digits, in a context of their own."""

    def __init__(self, digits: int) -> None:
        from mpmath.ctx_mp import MPContext

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

    def step(self, x: Number, h: Number) -> Number:
        """X + i h."""
        return self.context.mpc(x, h)

    def parts(self, x: Number) -> tuple[Number, Number]:
        """Real and imaginary part."""
        return x.real, x.imag


class Balls:
    """Complex balls of python-flint with `digits` decimal digits: every result encloses the true value."""

    def __init__(self, digits: int) -> None:
        try:
            import flint
        except ImportError:
            msg = "ball arithmetic needs the package python-flint: pip install 'nceref[certify]'"
            raise UnavailableError(msg) from None
        self.flint = flint
        self.bits = math.ceil(digits * math.log2(10)) + 10
        flint.ctx.prec = self.bits
        self.number: Callable[[float], Number] = flint.arb

    def exp(self, x: Number) -> Number:
        return x.exp()

    def log(self, x: Number) -> Number:
        return x.log()

    def sqrt(self, x: Number) -> Number:
        return x.sqrt()

    def sin(self, x: Number) -> Number:
        return x.sin()

    def cos(self, x: Number) -> Number:
        return x.cos()

    def acos(self, x: Number) -> Number:
        """To first order in the imaginary part, which is all a complex step reads: acb.acos gives it no digits."""
        a, b = self.parts(x)
        return self.flint.acb(a.acos(), -b / (1 - a * a).sqrt()) if isinstance(x, self.flint.acb) else a.acos()

    def real(self, x: Number) -> float:
        return float(self.parts(x)[0].mid())

    def detach(self, x: Number) -> Number:
        return self.parts(x)[0]

    def above(self, x: Number, y: Number) -> bool:
        return bool(self.parts(x)[0].mid() > self.parts(y)[0].mid())

    def step(self, x: Number, h: Number) -> Number:
        """X + i h."""
        return self.flint.acb(x, h)

    def parts(self, x: Number) -> tuple[Number, Number]:
        """Real and imaginary part."""
        return (x.real, x.imag) if isinstance(x, self.flint.acb) else (x, self.flint.arb(0))


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
        return self.sympy.Rational(x) if isinstance(x, float) else self.sympy.sympify(x)

    def real(self, x: Number) -> float:
        return float(self.sympy.sympify(x).xreplace(self.constants).evalf(subs=self.point))

    def above(self, x: Number, y: Number) -> bool:
        return self.real(x) > self.real(y)

    def detach(self, x: Number) -> Number:
        constant = self.sympy.Dummy("constant", real=True)
        self.constants[constant] = self.sympy.sympify(x).xreplace(self.constants)
        return constant


def arguments(loss: Loss, m: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The checked inputs of a loss as nested lists of numbers of the system `m`."""
    out: dict[str, Any] = {}
    for p in loss.parameters:
        value = inputs[p.name]
        if value is not None and isinstance(p, Array):
            value = _map(m.number, value.tolist())
        elif value is not None and isinstance(p, Labels):
            value = value.tolist()
        elif value is not None and isinstance(p, Scalar):
            value = m.number(value)
        out[p.name] = value
    return out


def _map(f: Callable[[Any], Any], nested: Any) -> Any:
    return [_map(f, x) for x in nested] if isinstance(nested, list) else f(nested)


def reduce_rows(loss: Loss, result: Any, given: Mapping[str, Any], reduction: str) -> Any:
    """The reduced value of what a formula returned: a number, or rows of which None are left out of the mean."""
    if not loss.has_rows:
        return result
    per_sample = given.get("anchor_weights") or [1]
    weights = per_sample * (len(result) // len(per_sample))
    weighted = [0 if row is None else w * row for w, row in zip(weights, result, strict=True)]
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return sum(weighted)
    if loss.mean_over is not None:
        return sum(weighted) / len(given[loss.mean_over])
    return sum(weighted) / sum(w for w, row in zip(weights, result, strict=True) if row is not None)


def value(loss: Loss, inputs: Mapping[str, Any], m: Any, reduction: str = "mean") -> Any:
    """The formula's value in the number system `m`, of inputs that `bind` has checked."""
    given = arguments(loss, m, inputs)
    return reduce_rows(loss, loss.formula(m, **given), given, reduction)


def complex_step(loss: Loss, inputs: Mapping[str, Any], m: Any, h: Any) -> dict[str, Any]:
    """Value ("value") and every gradient of the formula in one number system, with the step i h."""
    given = arguments(loss, m, inputs)
    part = m.parts if hasattr(m, "parts") else (lambda x: (x.real, x.imag))
    step = m.step if hasattr(m, "step") else (lambda x, by: x + 1j * by)

    def at(changed: Mapping[str, Any]) -> Any:
        return reduce_rows(loss, loss.formula(m, **changed), given, "mean")

    out = {"value": part(at(given))[0]}
    for name in differentiable(loss):
        if given[name] is None:
            continue
        out[name] = _perturbed(given[name], lambda x: part(x)[1] / h, lambda x: step(x, h), at, given, name)
    return out


def _perturbed(node: Any, read: Any, move: Any, at: Any, given: Mapping[str, Any], name: str) -> Any:
    """One derivative for every number in the nested list `given[name]`."""
    if not isinstance(node, list):
        return read(at({**given, name: move(node)}))
    out = _map(lambda x: x, node)
    for place in _places(node):
        moved = _map(lambda x: x, node)
        _set(moved, place, move(_get(node, place)))
        _set(out, place, read(at({**given, name: moved})))
    return out


def _places(nested: Any) -> Iterator[tuple[int, ...]]:
    if not isinstance(nested, list):
        yield ()
        return
    for i, x in enumerate(nested):
        yield from ((i, *rest) for rest in _places(x))


def _get(nested: Any, place: tuple[int, ...]) -> Any:
    for i in place:
        nested = nested[i]
    return nested


def _set(nested: Any, place: tuple[int, ...], to: Any) -> None:
    _get(nested, place[:-1])[place[-1]] = to


SYSTEMS = {"mpmath": Mpmath, "ball": Balls}


def reference(declaration: Any, *arrays: Any, system: str = "mpmath", digits: int = 30, **named: Any) -> dict[str, Any]:
    """Value and gradients of the exact formula, right to `digits` digits.

    The precision doubles until two successive precisions agree: at a fixed 50 digits the textbook form returns 0 for
    a loss of 1e-108.

    Parameters
    ----------
    declaration : Loss or LossFunction
        What to evaluate.
    *arrays, **named
        The arguments of the loss, NumPy arrays.
    system : {"mpmath", "ball"}
        Multiprecision numbers, or balls of python-flint (about twenty times faster, needs the extra `certify`).
    digits : int
        Digits on which successive precisions must agree.

    Returns
    -------
    dict
        "value" and one entry for every differentiable input, as nested lists of numbers of the system.
    """
    loss = getattr(declaration, "declaration", declaration)
    inputs = bind(loss, arrays, named)
    probe = Range()
    value(loss, inputs, probe)
    # A loss or a slope is either 0 or not much smaller than exp(-2 max |exponent|): begin beyond that.
    precision = digits + 30 + math.ceil(2 * probe.largest / math.log(10))
    previous = None
    for _ in range(6):
        current = _at_precision(loss, inputs, system, precision)
        if previous is not None and _agree(_flat(previous), _flat(current), precision // 2, digits):
            return current
        previous, precision = current, 2 * precision
    msg = f"the formula of {loss.name} does not settle at {precision // 2} digits on these inputs; they lie on a kink"
    raise InputError(msg)


def _at_precision(loss: Loss, inputs: Mapping[str, Any], system: str, precision: int) -> dict[str, Any]:
    m = SYSTEMS[system](precision)
    return complex_step(loss, inputs, m, m.number(2.0) ** (-4 * precision))


def _flat(result: Mapping[str, Any]) -> list[Any]:
    return [_get(node, place) for node in result.values() for place in _places(node)]


def _agree(coarse: list[Any], fine: list[Any], precision: int, digits: int) -> bool:
    """Whether each pair agrees to `digits` digits, or both are 0 to the coarse precision."""
    for a, b in zip(map(_middle, coarse), map(_middle, fine), strict=True):
        ten = a.__class__(10)
        noise = ten ** (30 - precision)
        if abs(a - b) > abs(b) * ten**-digits and (abs(a) > noise or abs(b) > noise):
            return False
    return True


def _middle(x: Any) -> Any:
    return x.mid() if hasattr(x, "mid") else x
