"""Runs the formula of a loss, which is the judge of its program, in a number system.

A formula sees numbers only through `m` (see `number_systems`). The same text therefore gives floats, gradients without
differences (complex step), 50 digits, proven enclosures and symbolic expressions.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nceref.errors import InputError
from nceref.inputs import bind
from nceref.losses import differentiable
from nceref.number_systems import Balls, Mpmath, Range
from nceref.spec import Array, Labels, Loss, Scalar


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


SYSTEMS: dict[str, Any] = {"mpmath": Mpmath, "ball": Balls}


def reference(
    declaration: Any, *arrays: Any, system: str = "mpmath", digits: int = 30, gradients: bool = True, **named: Any
) -> dict[str, Any]:
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
    gradients : bool
        Whether gradients are wanted; on a kink there are none.

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
        current = _at_precision(loss, inputs, system, precision, gradients)
        if previous is not None and _agree(_flat(previous), _flat(current), precision // 2, digits):
            return current
        previous, precision = current, 2 * precision
    msg = f"the formula of {loss.name} does not settle at {precision // 2} digits on these inputs; they lie on a kink"
    raise InputError(msg)


def _at_precision(
    loss: Loss, inputs: Mapping[str, Any], system: str, precision: int, gradients: bool
) -> dict[str, Any]:
    m: Any = SYSTEMS[system](precision)
    if not gradients:
        return {"value": value(loss, inputs, m)}
    return complex_step(loss, inputs, m, m.number(2.0) ** (-4 * precision))


def as_floats(node: Any) -> Any:
    """Numbers of a system, or nested lists of them, as floats; a ball gives its middle."""
    if isinstance(node, list):
        import numpy as np

        return np.array([as_floats(x) for x in node])
    return float(_middle(node))


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
