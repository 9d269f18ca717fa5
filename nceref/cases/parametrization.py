"""Parametrizations of an input by a module: as it is, or as its logarithm, its inverse and the like.

The reference is a function of the input s. A module that holds the parameter p, with s = g(p), has the derivative dL/dp
= dL/ds g'(p) by it.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from nceref.cases.rounding import rounded
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.spec import Array, Parameter, Scalar


@dataclass(frozen=True)
class Parametrization:
    """A function from what a module holds to the input of the loss.

    Attributes
    ----------
    words : str
        Words before "the parameter NAME", such as "exp of".
    written : str
        Notation of a user, with ``{}`` for the parameter.
    value, inverse : callable
        The function g from the parameter to the input, and back.
    gradient : callable
        ``gradient(parameter, grad)``: the derivative by the input, from that by the parameter.
    kinds : tuple of type
        Kinds of input that it is for.
    """

    words: str
    written: str
    value: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    gradient: Callable[[Any, Any], Any]
    kinds: tuple[type, ...] = (Scalar,)


def _softplus_inverse(s: float) -> float:
    return s + math.log(-math.expm1(-s))


PARAMETRIZATIONS: Mapping[str, Parametrization] = MappingProxyType({
    "identity": Parametrization("", "identity({})", lambda p: p, lambda s: s, lambda p, g: g, (Scalar, Array)),
    "exp": Parametrization("exp of ", "exp({})", math.exp, math.log, lambda p, g: g / math.exp(p)),
    "exp_neg": Parametrization("exp of minus ", "exp(-{})", lambda p: math.exp(-p), lambda s: -math.log(s),
                               lambda p, g: -g / math.exp(-p)),
    "inverse": Parametrization("the inverse of ", "1/{}", lambda p: 1 / p, lambda s: 1 / s, lambda p, g: -g * p * p),
    "softplus": Parametrization("softplus of ", "softplus({})", lambda p: float(np.logaddexp(0.0, p)),
                                _softplus_inverse, lambda p, g: g * (1 + math.exp(-p))),
    "log": Parametrization("the logarithm of ", "log({})", math.log, math.exp, lambda p, g: g * p),
    "transpose": Parametrization("the transpose of ", "transpose({})", np.transpose, np.transpose,
                                 lambda p, g: np.transpose(g), (Array,)),
})  # fmt: skip
"""All parametrizations, by name."""

_PATH = r"([A-Za-z_]\w*(?:\.\w+)*)"
_FUNCTIONS = {"exp_neg": rf"exp\(\s*-\s*{_PATH}\s*\)", "inverse": rf"1(?:\.0?)?\s*/\s*{_PATH}"}


def parse_parametrization(text: str) -> tuple[str, str]:
    """Path and name of a parametrization; the name is empty where only a path stands.

    `text` is ``PATH``, ``exp(PATH)``, ``exp(-PATH)``, ``1/PATH``, or another name of the table around a path. Raises
    `InputError` for anything else.
    """
    for name, pattern in ("", _PATH), *_FUNCTIONS.items():
        if match := re.fullmatch(pattern, text.strip()):
            return match[1], name
    match = re.fullmatch(rf"(\w+)\(\s*{_PATH}\s*\)", text.strip())
    if match and match[1] in PARAMETRIZATIONS:
        return match[2], match[1]
    ways = ", ".join(form.written.format("PATH") for form in PARAMETRIZATIONS.values())
    msg = f"`param` must map an input to PATH, a parameter of the module, or to one of {ways}, got {shown(text)}"
    raise InputError(msg)


def candidates(parameter: Parameter) -> tuple[str, ...]:
    """Names of the parametrizations that an input may have, the simplest first.

    A scalar of any sign is held as it is: every other function is for positive numbers.
    """
    if isinstance(parameter, Scalar) and parameter.low == -math.inf:
        return ("identity",)
    return tuple(name for name, form in PARAMETRIZATIONS.items() if isinstance(parameter, form.kinds))


def parameter_at(name: str, s: Any, dtype: str) -> Any:
    """The number of a format whose value is nearest to an input `s`, or the array as the module holds it."""
    form = PARAMETRIZATIONS[name]
    if isinstance(s, np.ndarray):
        return form.inverse(s)
    exact = form.inverse(float(s))
    # In float64 the inverse itself is rounded: of its neighbors one may be the number that the input was made of.
    near = (float(np.nextafter(exact, towards)) for towards in (exact, -math.inf, math.inf))
    return min((rounded(p, dtype) for p in near), key=lambda p: abs(form.value(p) - s))


def representable(name: str, s: Any, dtype: str) -> Any:
    """The input that a module can hold, next to `s`; not rounded itself. The parameters are those of `parameter_at`."""
    return PARAMETRIZATIONS[name].value(parameter_at(name, s, dtype))


def gradient_by(name: str, parameter: Any, grad: Any) -> Any:
    """The gradient by the parameter of a module, from the gradient by the input, or a bound of either."""
    form = PARAMETRIZATIONS[name]
    return (
        grad / form.gradient(parameter, 1.0)
        if Scalar in form.kinds and np.ndim(grad) == 0
        else form.gradient(None, grad)
    )


def described(name: str, path: str) -> str:
    """The input in words, such as the logarithm of a parameter."""
    return f"{PARAMETRIZATIONS[name].words}the parameter {path}"
