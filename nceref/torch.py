"""Every loss as a function of PyTorch tensors, to train with: value and gradients are those of `nceref.losses`.

>>> import torch
>>> import nceref.torch as contrastive
>>> z1, z2 = torch.eye(4, requires_grad=True), torch.eye(4)
>>> loss = contrastive.nt_xent(z1, z2, temperature=0.1)
>>> loss.backward()
>>> z1.grad.shape
torch.Size([4, 4])
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from nceref import losses
from nceref.engine.arguments import converted
from nceref.errors import InputError, UnavailableError
from nceref.output.text import shown
from nceref.spec import Array
from nceref.training.frameworks import (
    arguments_of,
    check_learned,
    check_numbers,
    function_of,
    member,
    members,
    no_derivative,
)

try:
    import torch
except ImportError as missing:
    _msg = "nceref.torch needs PyTorch: pip install 'nceref[torch]'"
    raise UnavailableError(_msg) from missing

Tensor = Any
_INSTEAD = "leave out create_graph=True, or write the loss in operations of PyTorch"
_DENSE = "pass a dense tensor, whose floats are float32 or float64"
_HALF = (torch.float16, torch.bfloat16)


def get_loss(name: str) -> Callable[..., Any]:
    """A loss as a function of tensors.

    Parameters
    ----------
    name : str
        As for `nceref.get_loss`: a name of the package, or ``file.py:LOSS`` for a loss of one's own.

    Returns
    -------
    callable
        It takes the arguments of `nceref.losses`: float arrays as tensors of one device, labels and numbers as tensors
        or as they are. It returns a tensor on that device, in the widest format of the arrays, at least float32. Every
        tensor that requires grad gets a gradient, numbers such as the temperature among them. Tensors of float16 and
        bfloat16 are computed with in float32.

    Raises
    ------
    InputError
        If there is none of that name. The function raises it for any argument that the loss cannot take, and for a
        constant of the loss that requires grad.
    UnavailableError
        By the function, for tensors on a device that NumPy and CuPy cannot read.
    DerivativeError
        By the function's gradient, where it is differentiated again.
    """
    return _function(losses.get_loss(name))


@cache
def _function(loss: losses.LossFunction) -> Callable[..., Any]:
    return function_of(loss, _evaluate, __name__, torch.Tensor)


def __getattr__(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = member(name, get_loss)
    return function


def __dir__() -> list[str]:
    return members()


# A compiled program calls it as it is: traced, operations of NumPy would become others.
@torch.compiler.disable  # type: ignore[untyped-decorator]
def _evaluate(loss: losses.LossFunction, positional: tuple[Any, ...], by_name: dict[str, Any]) -> Tensor:
    """The value of a loss, with what its gradient needs."""
    _refuse_recording(loss)
    given, reduction = arguments_of(loss, positional, by_name, torch.Tensor)
    tensors = {name: x for name, x in given.items() if isinstance(x, torch.Tensor)}
    arrays = {name: x for name, x in given.items() if x is not None and name in _arrays(loss)}
    check_numbers(loss, tensors, "a tensor")
    device = _common_device(arrays, tensors)
    # Exact; on the way back, autograd rounds the gradient to the format of the tensor.
    tensors = {name: x.float() if x.dtype in _HALF else x for name, x in tensors.items()}
    learned = tuple(name for name, x in tensors.items() if torch.is_grad_enabled() and x.requires_grad)
    check_learned(loss, learned, "{}.detach()")
    plain = {name: x for name, x in given.items() if name not in tensors}
    dtype = torch.float64 if any(tensors[name].dtype is torch.float64 for name in arrays) else torch.float32
    call = _TensorCall(loss, reduction, plain, tuple(tensors), learned, dtype, device)
    return _Value.apply(call, *tensors.values())[0]


def _refuse_recording(loss: losses.LossFunction) -> None:
    """Raise an `InputError` where operations of PyTorch are recorded: the loss would be a constant of the record."""
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")
    if torch.jit.is_tracing() or (proxies and proxies.get_proxy_mode()):
        msg = (
            f"{loss.name} is computed by NumPy, and cannot be recorded by make_fx, torch.export or torch.jit.trace; "
            "call it outside of what is recorded"
        )
        raise InputError(msg)


def _arrays(loss: losses.LossFunction) -> set[str]:
    return {p.name for p in loss.parameters if isinstance(p, Array)}


def _common_device(arrays: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    """The device of all tensors; an InputError for an array that is no tensor, or one that is elsewhere."""
    for name, x in arrays.items():
        if name not in tensors:
            msg = f"`{name}` must be a tensor, got {shown(x)}; pass torch.as_tensor({name})"
            raise InputError(msg)
    devices = {name: x.device for name, x in tensors.items() if x.ndim}
    first = next(iter(devices), "")
    for name, device in devices.items():
        if device != devices[first]:
            msg = f"`{name}` is on {device}, but `{first}` is on {devices[first]}; move them to one device"
            raise InputError(msg)
    return devices.get(first, torch.device("cpu"))


@dataclass(frozen=True, eq=False)
class _TensorCall:
    """One call of a loss.

    Attributes
    ----------
    loss : LossFunction
    reduction : str
    plain : mapping
        Arguments that are no tensors, by name.
    names : tuple of str
        Those that are.
    learned : tuple of str
        Those of them that get a gradient.
    dtype, device : torch.dtype, torch.device
        Of the value.
    """

    loss: losses.LossFunction
    reduction: str
    plain: Mapping[str, Any]
    names: tuple[str, ...]
    learned: tuple[str, ...]
    dtype: Any
    device: Any

    def value(self, tensors: Sequence[Tensor]) -> Tensor:
        """The value alone."""
        with self._current_device():
            return self._tensor(self.loss(**self._arguments(tensors)))

    def value_and_grads(self, tensors: Sequence[Tensor], **cotangent: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The value, and the gradients of what is learned in the format of each."""
        inputs = dict(zip(self.names, tensors, strict=True))
        with self._current_device():
            arrays = {name: _as_array(name, x) for name, x in cotangent.items()}
            value, grads = self.loss.value_and_grad(**self._arguments(tensors), **arrays)
            return self._tensor(value), tuple(_as_tensor(grads[name], inputs[name]) for name in self.learned)

    # A compiled backward pass calls it as it is, too.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def row_grads(self, tensors: Sequence[Tensor], slope: Tensor) -> tuple[Tensor, ...]:
        """The gradients of rows that have a slope each; NaN where one of them is inf or NaN, as a scaler expects."""
        try:
            slope = slope.detach()
        except RuntimeError as error:
            # PyTorch cannot do it with the batch of slopes that `is_grads_batched` makes.
            raise _no_batch(self) from error
        if not slope.isfinite().all():
            inputs = dict(zip(self.names, tensors, strict=True))
            return tuple(torch.full_like(inputs[name], torch.nan) for name in self.learned)
        return self.value_and_grads(tensors, cotangent=slope)[1]

    def _current_device(self) -> Any:
        """Context in which the current GPU is the one of the tensors; on the CPU it does nothing."""
        return torch.cuda.device(self.device.index if self.device.type == "cuda" else -1)

    def _arguments(self, tensors: Sequence[Tensor]) -> dict[str, Any]:
        arrays = {name: _as_array(name, x) for name, x in zip(self.names, tensors, strict=True)}
        return {**self.plain, **arrays, "reduction": self.reduction}

    def _tensor(self, value: Any) -> Tensor:
        return _as_tensor(value, torch.empty((), dtype=self.dtype, device=self.device))


def _as_array(name: str, tensor: Tensor) -> Any:
    """A tensor as an array on the same memory; one number is read."""
    # A copy of those alone whose numbers are the negative, or the conjugate, of what is stored.
    read = partial(converted, name, tensor, lambda convert: convert(tensor.detach().resolve_conj().resolve_neg()))
    if tensor.device.type == "cpu" or not tensor.ndim:
        return read(lambda x: x.cpu().numpy(), remedy=_DENSE)
    if tensor.device.type != "cuda":
        msg = f"`{name}` is on {tensor.device}, and nceref computes on the CPU and on CUDA; pass {name}.cpu()"
        raise UnavailableError(msg)
    try:
        import cupy
    except ImportError as error:
        msg = f"`{name}` is on {tensor.device}, where CuPy computes: pip install 'nceref[cuda12]', or pass {name}.cpu()"
        raise UnavailableError(msg) from error
    return read(cupy.from_dlpack, remedy=_DENSE)


def _as_tensor(x: Any, like: Tensor) -> Tensor:
    """A number or an array in the format and on the device of a tensor; on the same memory where they are its own."""
    if isinstance(x, float | np.ndarray):
        return torch.as_tensor(x, dtype=like.dtype, device=like.device)
    return torch.from_dlpack(x).to(dtype=like.dtype, device=like.device)


class _Value(torch.autograd.Function):  # type: ignore[misc]
    """The value, and with it the gradients: the backward pass multiplies them by the slope that comes from above.

    Rows have a slope each, so that their gradient is computed in the backward pass.
    """

    @staticmethod
    def forward(call: _TensorCall, *tensors: Tensor) -> tuple[Tensor, ...]:
        if not call.learned or call.reduction == "none":
            return (call.value(tensors),)
        value, grads = call.value_and_grads(tensors)
        return value, *grads

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        (call, *tensors), (_, *grads) = inputs, output
        ctx.call = call
        # There are none of gradients, and zeros in place of them would take as much memory.
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*grads)
        # Those that have a gradient are its place in the graph, which a second derivative would go through.
        kept = [name for name in call.names if call.reduction == "none" or name in call.learned]
        ctx.save_for_backward(*(x for name, x in zip(call.names, tensors, strict=True) if name in kept), *grads)

    @staticmethod
    def backward(ctx: Any, slope: Tensor | None, *unused: None) -> tuple[Tensor | None, ...]:
        call = ctx.call
        grads = () if slope is None else _Gradients.apply(call, slope, *ctx.saved_tensors)
        by_name = dict(zip(call.learned, grads, strict=False))
        return None, *(by_name.get(name) for name in call.names)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise no_derivative(ctx.call.loss, "derivative in forward mode", "use backward()")

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: _TensorCall, *tensors: Tensor) -> Any:
        raise _no_batch(call)


class _Gradients(torch.autograd.Function):  # type: ignore[misc]
    """The gradients times a slope. A function of their own: it stands where a second derivative would be taken."""

    @staticmethod
    def forward(call: _TensorCall, slope: Tensor, *saved: Tensor) -> tuple[Tensor, ...]:
        if call.reduction == "none":
            grads: tuple[Tensor, ...] = call.row_grads(saved, slope)
            return grads
        return tuple((grad * slope).to(grad.dtype) for grad in saved[len(call.learned) :])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.call = inputs[0]

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        raise no_derivative(ctx.call.loss, "second derivative", _INSTEAD)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise no_derivative(ctx.call.loss, "second derivative", _INSTEAD)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: _TensorCall, *tensors: Tensor) -> Any:
        raise _no_batch(call)


def _no_batch(call: _TensorCall) -> InputError:
    return InputError(f"{call.loss.name} takes one batch a call, and does not run under vmap; call it in a loop")
