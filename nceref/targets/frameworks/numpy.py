"""NumPy targets: arrays in, a value or a pair of value and gradients out; see `Framework`."""

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from nceref.cases.aliases import match_input
from nceref.errors import InputError
from nceref.output.text import class_name, shown
from nceref.output.words import alike, as_code, did_you_mean
from nceref.targets.frameworks.call import (
    ARRAY,
    PAIR,
    WHICH,
    Answer,
    CallRequest,
    Trouble,
    content,
    gradient_of,
    laid_out,
    loss_of,
    modified,
    short,
    value_of,
)
from nceref.targets.frameworks.framework import Dialect, Framework, Reply
from nceref.targets.frameworks.steps import in_steps
from nceref.targets.target import Program, ResolvedTarget


def check(request: CallRequest) -> None:
    """Refuse a format that NumPy does not have, and devices."""
    if request.dtype == "bfloat16":
        msg = "`dtype` is 'bfloat16', which NumPy does not have; verify a NumPy target in float16, float32 or float64"
        raise InputError(msg)
    if request.device != "cpu":
        msg = f"`device` is {shown(request.device)}, but a NumPy target runs on the cpu"
        raise InputError(msg)


def answer(target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool) -> Answer:
    """Call it; without gradients of its own, only the value can be judged."""
    return in_steps(request, lambda part: _called(target, part, gradients))


def _called(target: ResolvedTarget, request: CallRequest, gradients: bool) -> Answer:
    assert target.program is not None
    handed = _native(request)
    before = [(name, x, content(x)) for name, x in handed.items() if isinstance(x, ARRAY)]
    returned = target.program(handed, request.reduction, lambda instance: instance)
    value, grads = returned if _is_pair(returned) else (_first(returned, request), None)
    given = _named(grads, target, request) if gradients and request.mode != "no-grad" else {}
    grads_by_input = {name: gradient_of(name, grad, request) for name, grad in given.items()}
    missing = sorted(n for n in request.differentiable if n not in grads_by_input and n not in request.constants)
    why = "the target returns no gradient of it" if grads_by_input else _without_gradients(returned)
    reasons = dict.fromkeys(missing, why)
    if grads_by_input:
        of_function = "the target takes `{}`, a function of it, and returns that gradient"
        reasons |= {target.names[n]: of_function.format(n) for n in target.forms if target.names[n] in reasons}
    # Looked for last: what is returned may be read by code of the target.
    changed = (name for name, x, was in before if content(x) != was)
    return Answer(
        value_of(loss_of(value, request, lambda x: isinstance(x, np.ndarray | np.generic)), request),
        grads_by_input,
        reasons,
        modified(changed),
    )


def _is_pair(returned: Any) -> bool:
    """Whether it is a value with gradients; a list of two numbers is rows."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        return False
    return isinstance(returned, tuple) or isinstance(returned[1], Mapping)


def _first(returned: Any, request: CallRequest) -> Any:
    """The value of a tuple that goes on with a gradient for each input; others as they are."""
    shapes = [np.shape(request.inputs[n]) for n in request.inputs if n in request.differentiable]
    if not isinstance(returned, tuple) or not all(isinstance(x, numbers.Number | np.ndarray) for x in returned):
        return returned
    rest = [np.shape(x) for x in returned[1:]]
    return returned[0] if len(rest) > 1 and np.shape(returned[0]) == () and {*rest} <= {*shapes} else returned


def _without_gradients(returned: Any) -> str:
    # Not every mapping: one of a target's own may have no end.
    if type(returned) is dict and len(returned) > 1:
        keys = ", ".join(short(key, 60) for key in [*returned][:4] if type(key) is str)
        return f"the target returns a mapping with {keys}; gradients are read from a pair {PAIR}"
    if isinstance(returned, tuple) and len(returned) > 2:
        return f"the target returns {len(returned)} values; gradients are read from a pair {PAIR}"
    return "the target returns no gradients"


def _native(request: CallRequest) -> dict[str, Any]:
    """Copies of the inputs: float arrays and differentiable scalars in the dtype of the run, the rest as it is."""
    out = dict(request.inputs)
    for name, x in request.inputs.items():
        if isinstance(x, ARRAY):
            out[name] = _array(x, request)
        elif name in request.scalars:
            out[name] = np.dtype(request.dtype).type(x)
    return out


def _array(x: Any, request: CallRequest) -> Any:
    dtype, between = (request.dtype, np.nan) if x.dtype.kind == "f" else (np.int64, -1)
    return laid_out(x.astype(dtype), request.mode, lambda shape: np.full(shape, between, dtype))


def _named(grads: Any, target: ResolvedTarget, request: CallRequest) -> dict[str, Any]:
    """Gradients by input: from a mapping by name, parameter or alias, or from a sequence in the target's order."""
    if grads is None:
        return {}
    if isinstance(grads, Mapping):
        by_name = {}
        for key, grad in grads.items():
            name = _input_of(key, target, request)
            # The slope by a function of an input is not that by the input.
            if key not in target.forms and name in request.differentiable and grad is not None:
                by_name[name] = grad
        return by_name
    order = [n for n in dict.fromkeys(target.names.values()) if n in request.differentiable]
    functions = {target.names[n] for n in target.forms}
    entries = list(grads) if isinstance(grads, list | tuple) else [grads]
    if not isinstance(grads, list | tuple) and (len(order) != 1 or not isinstance(grads, np.ndarray)):
        msg = f"returns a pair whose second part, a {class_name(grads)}, is no mapping of gradients by input{WHICH}[0]"
        raise Trouble(msg, "wrong-shape")
    if len(entries) > len(order):
        msg = f"returns {len(entries)} gradients, but has {len(order)} inputs: {', '.join(order)}"
        raise Trouble(msg, "wrong-shape")
    return {name: g for name, g in zip(order, entries, strict=False) if g is not None and name not in functions}


def _input_of(key: Any, target: ResolvedTarget, request: CallRequest) -> str:
    """The input that a gradient is named after."""
    text = key if type(key) is str else short(key)
    name = target.names.get(text) or match_input(text, request.differentiable)
    if name is None:
        inputs = sorted(request.differentiable)
        hint = did_you_mean(alike(text, inputs), as_code) or f"the inputs are {', '.join(inputs)}"
        msg = f"returns a gradient named {short(text, 60)!r}; {hint}"
        raise Trouble(msg, "wrong-shape")
    return name


def program(reply: Reply) -> Program:
    """A program that returns a known pair, in the dtype of its inputs."""

    def returned(inputs: Mapping[str, Any], reduction: str, placed: Any) -> Any:
        like = next(x.dtype for x in inputs.values() if isinstance(x, np.ndarray) and x.dtype.kind == "f")
        value, grads = reply(
            {n: np.float64(x) if hasattr(x, "dtype") and x.dtype.kind == "f" else x for n, x in inputs.items()}
        )
        return np.asarray(value).astype(like), {n: np.asarray(g).astype(like) for n, g in grads.items()}

    return returned


_DIALECT = Dialect(
    imports=(),
    array="np.array({literal}, dtype=np.{dtype})",
    scalar="np.{dtype}({literal})",
    labels="np.array({literal})",
    call="value = {call}\nvalue, grads = value if isinstance(value, tuple) else (value, None)",
    # A target may name its gradients by its own parameters, or leave them in order.
    grads="grads = grads if isinstance(grads, dict) else dict(zip(({returned}), grads))",
)
_IS_ZERO = "Derive the gradient of the {}: what is returned for it is 0."
_ADVICE = {
    "epsilon-in-norm": "Take the larger of length and eps; add nothing to it.",
    "norm-floored": "Divide by the length itself; a floor of 1e-12 leaves rows as they are.",
    "mask-leaks": "Mask with -inf, not with a finite constant.",
    "temperature-in-float32": "Keep the temperature in the format of the run.",
    "scale-in-float32": "Keep the scale in the format of the run.",
    "first-input-detached": _IS_ZERO.format("first input"),
    "keys-detached": f"{_IS_ZERO.format('keys')} Or declare them constant (moco).",
    "temperature-detached": _IS_ZERO.format("temperature or scale"),
    "bias-detached": _IS_ZERO.format("bias"),
    "centers-detached": _IS_ZERO.format("class weights or centers"),
    "constants-get-gradient": "Return 0 for the queue and the momentum keys, or nothing.",
    "positives-detached": "Add the derivative of the numerator.",
    "denominator-detached": "Add the derivative of the log-sum-exp.",
    "negatives-detached": "Add the derivative by the candidates.",
    "candidates-detached": "Add the derivative by each row as a candidate: every row is an anchor and a candidate.",
    "other-view-detached": "Add the derivative by the rows of the other view as candidates.",
    "weights-not-detached": "Leave out the derivative of the weights: they are constants.",
    "weights-detached": "Add the derivative of the weights.",
    "normalization-detached": "Multiply by the derivative of the normalization, (I - u u^T) / |x| with u = x / |x|:"
    " the gradient must be orthogonal to each row.",
    "gradient-clamped": "Clamp parameters outside the loss.",
    "gradient-zero": "Derive the gradients: what is returned for every input is 0.",
    "gradient-radial-only": "Harmless where the rows are normalized before; otherwise look at the derivative of the"
    " normalization.",
    "gradient-missing-rows": "Add the gradient of every chunk of the batch.",
    "gradient-parts-scaled": "Look for a term that is added twice or left out, or a weight that one of the two sums"
    " has.",
    "outer-factor-constant": "Find the factor, such as 2 or 1/N.",
    "gradient-constant-factor": "Look for a factor, such as 2 or 1/N, that value and gradient do not share.",
    "tf32-fallback": "Take products in the format of the run: look for a cast to float16.",
    "not-repeatable": "Look for random numbers, or a state that calls leave behind.",
}
FRAMEWORK = Framework(
    "numpy",
    check,
    answer,
    program,
    _DIALECT,
    modules={"np": "numpy", "numpy": "numpy"},
    logarithm="np.log({})",
    packages=("numpy", "scipy"),
    ways=("again", "strided", "offset", "transposed", "after-larger", "sum", "mean"),
    advice=_ADVICE,
    autodiff=False,
    joined=("np.concatenate([{}])", "np.stack([{}], 1)"),
    integers=("{}.astype(np.int32)",),
)
