"""Runs the formula of a loss, which is the judge of its program, in a number system.

A formula sees numbers only through `m` (see `number_systems`). The same text therefore gives floats, gradients without
differences (reverse mode, complex step), 50 digits, proven enclosures and symbolic expressions.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from nceref.engine.arguments import bind, converted, declared, integer, one_of, refuse_other_libraries
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.entry_point import entry_point
from nceref.errors import InputError
from nceref.exact.digits import MOST_DIGITS, digits_of_exponents
from nceref.exact.number_systems import Balls, ExponentRange, Mpmath, Symbols
from nceref.exact.reverse_mode import ReverseMode, Variable, backward, value_of
from nceref.losses import get_loss
from nceref.spec import Array, Labels, Loss, Scalar


def arguments(loss: Loss, m: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The checked inputs of a loss as a formula takes them.

    Parameters
    ----------
    loss : Loss
        Whose parameters.
    m : number system
        Of the numbers that are returned.
    inputs : mapping
        What `bind` returned.

    Returns
    -------
    dict
        Every parameter by name: nested lists of numbers for arrays; labels and choices as they are.
    """
    out: dict[str, Any] = {}
    for p in loss.parameters:
        value = inputs[p.name]
        if value is not None and isinstance(p, Array):
            value = mapped(m.number, value.tolist())
        elif value is not None and isinstance(p, Labels):
            value = value.tolist()
        elif value is not None and isinstance(p, Scalar):
            value = m.number(value)
        out[p.name] = value
    return out


def mapped(f: Callable[[Any], Any], nested: Any) -> Any:
    """`f` of every number in nested lists."""
    return [mapped(f, x) for x in nested] if isinstance(nested, list) else f(nested)


def reduce_rows(loss: Loss, result: Any, given: Mapping[str, Any], reduction: str) -> Any:
    """The reduced value of what a formula returned.

    Parameters
    ----------
    loss : Loss
        Whose formula.
    result : list or number
        Row values, None for a row that is left out of the mean; one number for a loss without rows.
    given : mapping
        The arguments of the formula.
    reduction : {"mean", "sum", "none"}
        With "none", the rows times the anchor weights are returned.

    Returns
    -------
    number or list of numbers
    """
    if not loss.has_rows:
        return result
    per_sample = given.get("anchor_weights") or [1]
    # Rows stand view by view: the weights of the samples come once for each view.
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
    """The formula's value in a number system.

    Parameters
    ----------
    loss : Loss
        Whose formula.
    inputs : mapping
        What `bind` returned.
    m : number system
        What is computed in.
    reduction : {"mean", "sum", "none"}
        How rows become a value.
    """
    given = arguments(loss, m, inputs)
    return reduce_rows(loss, loss.formula(m, **given), given, reduction)


def with_gradients(
    loss: Loss, inputs: Mapping[str, Any], base: Any, of_rows: Collection[int] | None = None
) -> tuple[Any, Any, dict[str, Any]]:
    """The formula and all its derivatives in one number system, by reverse mode.

    `base` is a number system of real numbers. Rows that are not in `of_rows` are 0, and the mean is divided by as many
    as before. Returns the value under the reduction "mean"; the rows, None for a loss without; and the derivatives of
    the value by every differentiable input, in nested lists.
    """
    given = arguments(loss, base, inputs)
    variables = {
        name: mapped(partial(Variable, base), given[name]) for name in loss.differentiable if given[name] is not None
    }
    result = loss.formula(ReverseMode(base), **given | variables)
    if of_rows is not None:
        result = [row if i in of_rows or row is None else 0 for i, row in enumerate(result)]
    output = reduce_rows(loss, result, given, "mean")
    backward(output)
    zero = base.number(0.0)
    slopes = {name: mapped(lambda x: zero + x.slope, x) for name, x in variables.items()}
    rows = mapped(value_of, reduce_rows(loss, result, given, "none")) if loss.has_rows else None
    return value_of(output), rows, slopes


def complex_step(loss: Loss, inputs: Mapping[str, Any], m: Any, h: Any) -> dict[str, Any]:
    """Value and every gradient of the formula in one number system: d f / d x = Im f(x + i h) / h.

    No difference is taken, so h may be as small as the system allows, and no digit is lost.

    Parameters
    ----------
    loss : Loss
        Whose formula.
    inputs : mapping
        What `bind` returned.
    m : number system
        One with complex numbers.
    h : number
        The step; the relative error is of the order of h^2.

    Returns
    -------
    dict
        "value", and one entry for every differentiable input, in nested lists.
    """
    given = arguments(loss, m, inputs)

    def at(changed: Mapping[str, Any]) -> Any:
        # The reduction reads constants and lengths only, so that it may have the arguments without the step.
        return reduce_rows(loss, loss.formula(m, **changed), given, "mean")

    out = {"value": at(given).real}
    for name in loss.differentiable:
        if given[name] is None:
            continue
        out[name] = perturbed(given[name], lambda x: x.imag / h, lambda x: x + 1j * h, at, given, name)
    return out


def perturbed(node: Any, read: Any, move: Any, at: Any, given: Mapping[str, Any], name: str) -> Any:
    """The derivatives by the numbers in the nested list `given[name]`, nested alike."""
    if not isinstance(node, list):
        return read(at({**given, name: move(node)}))
    out = mapped(lambda x: x, node)
    for index in _indices(node):
        moved = mapped(lambda x: x, node)
        _set(moved, index, move(_get(node, index)))
        _set(out, index, read(at({**given, name: moved})))
    return out


def _indices(nested: Any) -> Iterator[tuple[int, ...]]:
    if not isinstance(nested, list):
        yield ()
        return
    for i, x in enumerate(nested):
        yield from ((i, *rest) for rest in _indices(x))


def _get(nested: Any, index: tuple[int, ...]) -> Any:
    for i in index:
        nested = nested[i]
    return nested


def _set(nested: Any, index: tuple[int, ...], to: Any) -> None:
    _get(nested, index[:-1])[index[-1]] = to


SYSTEMS: dict[str, Any] = {"mpmath": Mpmath, "ball": Balls}


@entry_point
def reference(
    declaration: Any, /, *arrays: Any, system: str = "mpmath", digits: int = 30, gradients: bool = True, **named: Any
) -> dict[str, Any]:
    """Value and gradients of the exact formula, right to `digits` digits.

    The precision doubles until two successive precisions agree: at a fixed 50 digits the textbook form returns 0 for
    a loss of 1e-108.

    Parameters
    ----------
    declaration : Loss, LossFunction or str
        What to evaluate.
    *arrays, **named
        The arguments of the loss, NumPy arrays.
    system : {"mpmath", "ball"}
        Multiprecision numbers, or balls of python-flint (about twenty times faster, needs the extra `certify`).
    digits : int
        Digits on which successive precisions must agree.
    gradients : bool
        Whether gradients are wanted; on a kink there are none.

    Returns
    -------
    dict
        "value" and one entry for every differentiable input, as nested lists of numbers of the system.

    Raises
    ------
    InputError
        For arguments that the loss refuses, for gradients on a declared kink, and where exponents are so large that
        more than 20,000 digits would be needed.
    """
    loss = declared_loss(declaration)
    system, gradients = one_of("system", system, SYSTEMS), one_of("gradients", gradients, (True, False))
    digits = integer("`digits`", digits, 1, MOST_DIGITS)
    inputs = bind(loss, arrays, named)
    refuse_other_libraries(inputs, "exact formulas")
    _refuse(loss, inputs, gradients)
    precision = digits + 30 + digits_of_exponents(BoundLoss(loss, inputs), lambda given: largest_exponent(loss, given))
    return _converged(loss.name, lambda p: _at_precision(loss, inputs, system, p, gradients), precision, digits)


def largest_exponent(loss: Loss, inputs: Mapping[str, Any]) -> Any:
    """The largest exponent that the formula takes."""
    probe = ExponentRange()
    value(loss, inputs, probe)
    return probe.largest


def declared_loss(loss: Any) -> Loss:
    """The declaration of a loss that was given as such, as a callable or by name."""
    return declared(get_loss(loss) if isinstance(loss, str) else loss)


def _refuse(loss: Loss, inputs: Mapping[str, Any], gradients: bool) -> None:
    """Raise what the program would raise, and for a gradient on a kink, where there is none."""
    BoundLoss(loss, inputs).evaluate("mean")
    for kink in loss.kinks if gradients else ():
        if kink.near(inputs, sys.float_info.epsilon):
            msg = f"{loss.name} has no gradient here: {kink.where} ({kink.name}); pass gradients=False for the value"
            raise InputError(msg)


def _at_precision(
    loss: Loss, inputs: Mapping[str, Any], system: str, precision: int, gradients: bool
) -> dict[str, Any]:
    m: Any = SYSTEMS[system](precision)
    if not gradients:
        return {"value": value(loss, inputs, m)}
    value_there, _, slopes = with_gradients(loss, inputs, m)
    return {"value": value_there, **slopes}


def as_floats(node: Any) -> Any:
    """Numbers of a system, or nested lists of them, as floats; a ball gives its middle."""
    if isinstance(node, list):
        import numpy as np

        return np.array([as_floats(x) for x in node])
    return float(_middle(node))


def _converged(name: str, at: Callable[[int], dict[str, Any]], precision: int, digits: int) -> dict[str, Any]:
    """The numbers of `at` at the first of doubled precisions that agrees with the one before to `digits` digits."""
    results = [at(precision), at(2 * precision)]
    # Up to 32 times the first precision.
    for doubled in range(2, 7):
        settled = _settled(results, precision, digits)
        if settled is not None:
            return settled
        results.append(at(2**doubled * precision))
    msg = f"the formula of {name} does not settle at {2**6 * precision} digits on these inputs; they lie on a kink"
    raise InputError(msg)


def _settled(results: list[dict[str, Any]], precision: int, digits: int) -> dict[str, Any] | None:
    """The last result where each number agrees with the one before to `digits` digits, or is what rounding left of a 0.

    The results are those at `precision` digits, and at twice, four times, ... as many.
    """
    out: dict[str, Any] = {}
    for name, node in results[-1].items():
        out[name] = mapped(lambda x: x, node)
        for index in _indices(node):
            history = [_middle(_get(result[name], index)) for result in results]
            before, last = history[-2:]
            ten = last.__class__(10)
            if abs(last - before) <= abs(last) * ten**-digits:
                continue
            if not _vanishes([abs(x) for x in history], precision, ten):
                return None
            out[name] = _replaced(out[name], index, 0 * last)
    return out


def _vanishes(sizes: list[Any], precision: int, ten: Any) -> bool:
    """Whether a number got smaller by the digits that were added, twice in a row: a true one would keep its size."""
    # In units of the last digit: of a residue it stays what it is, but for a factor; ten digits are room for that.
    units = [size * ten ** (2**k * precision) for k, size in enumerate(sizes)]
    return len(units) > 2 and all(units[k] <= ten**10 * max(units[:k]) for k in (-2, -1))


def _replaced(nested: Any, index: tuple[int, ...], by: Any) -> Any:
    if not index:
        return by
    _set(nested, index, by)
    return nested


def _middle(x: Any) -> Any:
    return x.mid() if hasattr(x, "mid") else x


class Symbolic:
    """A loss as a SymPy expression in some of its inputs, on the branch that holds at the given arguments.

    Parameters
    ----------
    declaration : Loss or LossFunction
        The loss.
    by : tuple of str
        Inputs that become real symbols (positive ones for scalars that must be); the others become exact rationals.
    *arrays, **named
        The arguments, which also choose the branch of a clamp or a quantile.

    Attributes
    ----------
    symbols : dict
        Nested lists of symbols, by input name.
    point : dict
        Symbol to float: the given arguments.
    """

    def __init__(self, declaration: Any, *arrays: Any, by: tuple[str, ...], **named: Any) -> None:
        loss = declared_loss(declaration)
        self.name, self.numbers = loss.name, Symbols()
        self.point, self.symbols = self.numbers.point, {}
        given = arguments(loss, self.numbers, bind(loss, arrays, named))
        known = [p.name for p in loss.parameters if isinstance(p, Array | Scalar) and given[p.name] is not None]
        for name in dict.fromkeys(one_of("by", name, known) for name in converted("by", by, tuple, by)):
            given[name] = self.symbols[name] = self._named(name, given[name])
        self._value = reduce_rows(loss, loss.formula(self.numbers, **given), given, "mean")

    def _named(self, name: str, node: Any) -> Any:
        if isinstance(node, list):
            return [self._named(f"{name}_{i}", x) for i, x in enumerate(node)]
        symbol = self.numbers.sympy.Symbol(name, real=True, positive=True if node > 0 else None)
        self.point[symbol] = float(node)
        return symbol

    @property
    def value(self) -> Any:
        """The value under the reduction "mean"."""
        return self._value.xreplace(self.numbers.constants)

    def gradient(self, name: str) -> Any:
        """Derivatives by one input, in its shape; detached parts are constants."""
        return mapped(lambda x: self._value.diff(x).xreplace(self.numbers.constants), self.symbols[name])

    def at_point(self, expression: Any) -> Any:
        """A float for an expression, or nested lists of expressions, at the given arguments.

        Precision doubles until 30 digits settle. Subexpressions are computed once: a gradient repeats those of the
        value, and `evalf` would go through each of them again.
        """
        import mpmath

        leaves = [_get(expression, index) for index in _indices(expression)]
        compiled = self.numbers.sympy.lambdify(list(self.point), leaves, modules="mpmath", cse=True)

        def at(digits: int) -> dict[str, Any]:
            with mpmath.workdps(digits):
                return {"leaves": [mpmath.mpf(x) for x in compiled(*map(mpmath.mpf, self.point.values()))]}

        values = iter(_converged(self.name, at, 60, 30)["leaves"])
        return mapped(lambda _: float(next(values)), expression)
