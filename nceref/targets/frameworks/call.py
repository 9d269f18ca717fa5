"""The call of a target: what is asked of it, its answer, and how numbers are read from arrays of a framework."""

import numbers
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nceref.cases.records import Probe
from nceref.output.text import class_name, printable, shown
from nceref.spec import Array, Choice, Labels, Scalar

PAIR = "(value, {input: gradient})"
"""The form in which a NumPy target returns its gradients."""
ARRAY = np.ndarray
"""The type that is kept before a target is loaded, which may replace the name in NumPy."""
ROWS = "choose rows with --set reduction=none"
"""The advice for a target that returns rows where one number is asked for."""

WHICH = "; say with --call which is the loss: "
"""Words before the entries of what a target returned, as a call ends with them."""


class Trouble(Exception):  # noqa: N818 - it is what an outcome calls it
    """Something a target did instead of answering: the sentence, and the id of the outcome's trouble."""

    def __init__(self, sentence: str, name: str) -> None:
        super().__init__(sentence)
        self.name = name


@dataclass(frozen=True, eq=False)
class CallRequest:
    """The call of a target on one case; picklable.

    Attributes
    ----------
    inputs : mapping
        The given arguments of the loss by name: float64 and integer arrays, floats, words.
    tracked : frozenset of str
        Float arrays whose gradient is computed: the differentiable ones, and declared constants that are rows.
    scalars : frozenset of str
        Differentiable scalars.
    constants : frozenset of str
        Inputs of `tracked` that the loss declares constant.
    shape : tuple of int or None
        Shape of the value, where the reference has one.
    mode : str
        Way of calling, see `nceref.verification.modes`; empty for the plain one.
    cotangent : float, array or None
        Upstream gradient; None for 1.
    before : mapping or None
        The inputs that the same instance is called with first.
    rooms : mapping
        Allowed difference of the value, under the empty name, and of gradients between two calls; 0 for names left out.
    devices : int
        Number of devices of JAX that it is called on at once; then arrays and differentiable scalars have a first axis
        of the devices, and so have the value and the gradients. 0 for an ordinary call.
    axis : str
        Name that the target has for that axis.
    shares : tuple of int
        Shares of the rows that each step has, where it is called in steps; then the value has an axis of the steps, and
        so have the gradients by inputs other than `split`. Empty for one call.
    split : mapping
        Inputs of which each step has its own rows, with the number of their axes that are those of the rows.
    """

    inputs: Mapping[str, Any]
    tracked: frozenset[str]
    scalars: frozenset[str]
    constants: frozenset[str] = frozenset()
    dtype: str = "float64"
    reduction: str = "mean"
    shape: tuple[int, ...] | None = None
    device: str = "cpu"
    mode: str = ""
    cotangent: Any = None
    before: Mapping[str, Any] | None = None
    rooms: Mapping[str, Any] = field(default_factory=dict)
    devices: int = 0
    axis: str = ""
    shares: tuple[int, ...] = ()
    split: Mapping[str, int] = field(default_factory=dict)

    @property
    def differentiable(self) -> frozenset[str]:
        """Names of all inputs whose gradients are computed."""
        return self.tracked | self.scalars

    @property
    def calls(self) -> int:
        """Number of values, where there is an axis of them; 0 for an ordinary call."""
        return self.devices or len(self.shares)

    def shape_of_gradient(self, name: str) -> tuple[int, ...]:
        """The shape of the gradient by an input."""
        shape = np.shape(self.inputs[name])
        return (len(self.shares), *shape) if self.shares and name not in self.split else shape


@dataclass(frozen=True, eq=False)
class Answer:
    """Value and gradients in float64, and what was noticed on the way."""

    value: Any
    grads: Mapping[str, Any] = field(default_factory=dict)
    unjudged: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)


def call_request(probe: Probe, device: str = "cpu") -> CallRequest:
    """The call for a probe; arguments that it leaves out have the default of the declaration.

    `device` is named as the framework names it.
    """
    defaults = {p.name: p.default for p in probe.loss.parameters if isinstance(p, Scalar | Choice)}
    given = {name: x for name, x in {**defaults, **probe.inputs}.items() if x is not None and x is not ...}
    declared = [p for p in probe.loss.parameters if p.name in given]
    given |= {p.name: np.asarray(given[p.name], dtype=np.float64) for p in declared if isinstance(p, Array)}
    given |= {p.name: np.asarray(given[p.name], dtype=np.int64) for p in declared if isinstance(p, Labels)}
    # A queue that gets a gradient is a finding; nobody differentiates a mask or class counts.
    tracked = [p for p in declared if isinstance(p, Array) and (p.embedding or not p.constant)]
    constants = frozenset(p.name for p in tracked if p.constant)
    scalars = (p.name for p in declared if isinstance(p, Scalar) and not p.constant)
    shape = None if probe.value is None else np.shape(probe.value)
    return CallRequest(
        given,
        frozenset(p.name for p in tracked),
        frozenset(scalars),
        constants,
        probe.dtype,
        probe.reduction,
        shape,
        device,
        probe.mode,
        probe.cotangent,
        None if probe.before is None else call_request(probe.before).inputs,
        {"": np.asarray(probe.bounds.value), **probe.bounds.grads} if probe.bounds else {},
    )


def short(error: object, length: int = 300) -> str:
    """The message of an exception, on one line of at most that length."""
    return printable(error, length)


def loss_of(returned: Any, request: CallRequest, is_array: Callable[[Any], bool]) -> Any:
    """The loss in what a target returned: itself, the entry ``loss``, or the only scalar of a tuple or dictionary.

    `is_array` says whether an object is an array of the framework. Raises `Trouble` if there is no such entry, or more
    than one.
    """
    if is_array(returned) or isinstance(returned, numbers.Number | np.ndarray):
        return returned
    if isinstance(returned, Mapping) and "loss" in returned:
        return returned["loss"]
    if not isinstance(returned, Mapping | tuple | list):
        msg = f"returns a {class_name(returned)}, {short(shown(returned), 60)}, instead of a number"
        raise Trouble(msg, "not-a-number-type")
    named = list(returned.items() if isinstance(returned, Mapping) else enumerate(returned))
    fits = [(key, x) for key, x in named if is_array(x) and (request.reduction == "none" or np.prod(x.shape) == 1)]
    if len(fits) == 1:
        return fits[0][1]
    kinds = [str(tuple(x.shape)) if is_array(x) else class_name(x) for _, x in named[:20]]
    keys = [printable(key, 30) for key in returned] if isinstance(returned, Mapping) else []
    shapes = short(", ".join(" ".join(each) for each in zip(keys, kinds, strict=False)) or ", ".join(kinds), 120)
    # What a target has for a key is written into a call only if it is plain.
    plain = [key for key, _ in fits[:9] if type(key) in (int, str) and re.fullmatch(r"[\w ./:-]{1,30}", str(key))]
    which = f"{WHICH}{' or '.join(f'[{key!r}]' for key in plain)}" if plain else ""
    msg = f"returns a {class_name(returned)} of {shapes or 'nothing'}{which}"
    raise Trouble(msg, "wrong-shape")


def _numbers(array: Any, what: str, kinds: str) -> Any:
    """An array of real numbers, not yet in float64: its shape may be any."""
    numbers = np.asarray(array)
    # NumPy has no bfloat16: that of JAX is a type of its own, known by its name only.
    if numbers.dtype.kind not in kinds and numbers.dtype.name != "bfloat16":
        msg = f"{what} entries of type {short(numbers.dtype, 60)} instead of real numbers"
        raise Trouble(msg, "not-a-number-type")
    # A masked array has imported its module, which is slow.
    masked: Any = sys.modules.get("numpy.ma")
    if masked is not None and issubclass(type(array), masked.MaskedArray) and masked.is_masked(array):
        msg = f"{what} masked entries instead of real numbers"
        raise Trouble(msg, "not-a-number-type")
    return numbers


def value_of(array: Any, request: CallRequest) -> Any:
    """The value as a float64 number or rows, in the shape that belongs to the reduction.

    `array` is what the target returned, on the CPU. Raises `Trouble` for entries that are no real numbers, and for
    another shape.
    """
    value = _numbers(array, "returns", "fiub")
    # The shape comes first: a few bytes may look like an array that no memory can hold.
    if request.reduction != "none" and value.shape in ((), (1,)):
        return float(value.astype(np.float64).reshape(()))
    if request.reduction == "none" and value.ndim > 0 and request.shape in (None, value.shape):
        return value.astype(np.float64)
    required = "one number" if request.reduction != "none" else f"rows {request.shape or '(N,)'}"
    hint = f"; {ROWS}" if request.reduction != "none" and _are_rows(value, request) else ""
    msg = f"returns shape {value.shape}, but the reduction {request.reduction!r} asks for {required}{hint}"
    raise Trouble(msg, "wrong-shape")


def _are_rows(value: Any, request: CallRequest) -> bool:
    """Whether there are as many numbers as samples, or as their views."""
    samples = next((len(x) for x in request.inputs.values() if isinstance(x, ARRAY) and x.ndim), 0)
    return value.ndim == 1 and samples > 0 and len(value) in (samples, 2 * samples)


def laid_out(x: Any, mode: str, full: Callable[[tuple[int, ...]], Any]) -> Any:
    """The same numbers in another memory layout.

    With the mode ``strided`` the result is every second entry along each axis of a larger array, with ``offset`` the
    middle of one; with ``transposed`` the last two axes are swapped in memory; any other mode returns `x`, an array of
    NumPy or PyTorch, as it is. `full` gives an array of a shape and of the kind of `x`, with entries that nobody should
    read.
    """
    shape, step = tuple(x.shape), {"strided": 2, "offset": 1}.get(mode, 0)
    if mode == "transposed" and len(shape) > 1:
        view = full((*shape[:-2], shape[-1], shape[-2])).mT
    elif step and shape:
        outer = full(tuple(step * n + 2 for n in shape))
        view = outer[tuple(slice(1, step * n + 1, step) for n in shape)]
    else:
        return x
    view[...] = x
    return view


def gradient_of(name: str, array: Any, request: CallRequest) -> Any:
    """The gradient by the input `name` in float64, in the shape of that input.

    `array` is what the framework returned, on the CPU. Raises `Trouble` for entries that are no real numbers, and for
    another shape.
    """
    grad, shape = _numbers(array, f"returns a gradient of `{name}` with", "fiu"), np.shape(request.inputs[name])
    if grad.shape != shape and not (shape == () and grad.shape == (1,)):
        msg = f"returns a gradient of `{name}` with the shape {grad.shape}, but the input has {shape}"
        raise Trouble(msg, "wrong-shape")
    return grad.astype(np.float64).reshape(shape)[()]


def content(array: Any) -> tuple[Any, ...]:
    """Shape, format and bytes of a NumPy array, by methods that nobody can replace."""
    return array.shape, array.dtype.str, array.tobytes()


def modified(names: Iterable[str]) -> dict[str, str]:
    """The remark for inputs that a call has changed."""
    listed = ", ".join(f"`{name}`" for name in names)
    return {"modifies-inputs": f"changes {listed} in place"} if listed else {}
