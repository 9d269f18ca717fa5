"""Every loss as a function of JAX arrays, to train with: value and gradients are those of `nceref.losses`.

>>> import jax
>>> import nceref.jax as contrastive
>>> step = jax.jit(jax.value_and_grad(lambda z1, z2: contrastive.nt_xent(z1, z2, temperature=0.1)))
>>> value, grad = step(jax.numpy.eye(4), jax.numpy.eye(4))
>>> grad.shape
(4, 4)
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from nceref import losses
from nceref.engine.arguments import converted
from nceref.engine.arrays import refuse_masked
from nceref.engine.bound_loss import bound_loss
from nceref.errors import UnavailableError
from nceref.spec import Labels, Parameter, Scalar
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
    import jax
except ImportError as missing:
    _msg = "nceref.jax needs JAX: pip install 'nceref[jax]'"
    raise UnavailableError(_msg) from missing

JaxArray = Any
_INSTEAD = "write the loss in jax.numpy"


def get_loss(name: str) -> Callable[..., Any]:
    """A loss as a function of JAX arrays.

    Parameters
    ----------
    name : str
        As for `nceref.get_loss`: a name of the package, or ``file.py:LOSS`` for a loss of one's own.

    Returns
    -------
    callable
        It takes the arguments of `nceref.losses`, also under `jit`, `grad`, `value_and_grad` and `vmap`: arrays and
        labels as arrays, numbers such as the temperature as arrays or as they are, everything else as it is. It returns
        an array in the widest format of the float arrays, at least float32. Arrays of float16 and bfloat16 are computed
        with in float32. NumPy computes, on the host: a compiled program calls it, one batch of `vmap` after another.

    Raises
    ------
    InputError
        If there is none of that name. The function raises it for any argument that the loss cannot take, and where the
        gradient by a constant of the loss is taken; a compiled program raises what JAX makes of it.
    DerivativeError
        By the function's gradient, where it is differentiated again.
    """
    return _function(losses.get_loss(name))


@cache
def _function(loss: losses.LossFunction) -> Callable[..., Any]:
    return function_of(loss, _evaluate, __name__, jax.Array)


def __getattr__(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = member(name, get_loss)
    return function


def __dir__() -> list[str]:
    return members()


def _evaluate(loss: losses.LossFunction, positional: tuple[Any, ...], by_name: dict[str, Any]) -> JaxArray:
    """The value of a loss, which JAX can differentiate."""
    given, reduction = arguments_of(loss, positional, by_name, jax.Array)
    operands = {p.name: _operand(p, given[p.name]) for p in loss.parameters if _is_operand(p, given)}
    check_numbers(loss, operands, "an array")
    plain = {name: x for name, x in given.items() if name not in operands}
    learned = tuple(name for name in loss.declaration.differentiable if _is_float(operands.get(name)))
    call = _JaxCall(loss, reduction, plain, tuple(operands), learned)
    return _value(call, *(_varying(x, *operands.values()) for x in operands.values()))


def _is_operand(p: Parameter, given: dict[str, Any]) -> bool:
    """Whether JAX traces an argument; a number in Python has digits that an array of float32 has not."""
    x = given.get(p.name)
    return isinstance(x, jax.Array) or (x is not None and hasattr(p, "shape"))


def _is_float(x: JaxArray | None) -> bool:
    return x is not None and jax.numpy.issubdtype(x.dtype, jax.numpy.floating)


def _operand(p: Parameter, x: Any) -> JaxArray:
    refuse_masked(p.name, x)
    array = x if isinstance(x, jax.Array) else converted(p.name, x, jax.numpy.asarray, x)
    half = array.dtype in (jax.numpy.float16, jax.numpy.bfloat16)
    # Exact; on the way back, JAX rounds the gradient to the format of the array.
    return array.astype(jax.numpy.float32) if half else array


@dataclass(frozen=True, eq=False)
class _JaxCall:
    """One call of a loss.

    Attributes
    ----------
    loss : LossFunction
    reduction : str
    plain : mapping
        Arguments that are not traced, by name.
    names : tuple of str
        Those that are.
    learned : tuple of str
        Those of them that get a gradient.
    """

    loss: losses.LossFunction
    reduction: str
    plain: Mapping[str, Any]
    names: tuple[str, ...]
    learned: tuple[str, ...]

    def value(self, *operands: Any) -> Any:
        """The value alone, by NumPy."""
        value = self.loss(**self._arguments(operands), reduction=self.reduction)
        return np.asarray(value, self.dtype(operands))

    def value_and_grads(self, *operands: Any, **cotangent: Any) -> tuple[Any, dict[str, Any]]:
        """The value, and the gradients of what is learned, by NumPy."""
        given = self._arguments(operands)
        value, grads = self.loss.value_and_grad(**given, reduction=self.reduction, **cotangent)
        own = {name: np.asarray(grads[name], given[name].dtype) for name in self.learned}
        return np.asarray(value, self.dtype(operands)), own

    def row_grads(self, slope: Any, *operands: Any) -> dict[str, Any]:
        """The gradients of rows that have a slope each; NaN where one of them is inf or NaN."""
        if not np.isfinite(slope).all():
            given = self._arguments(operands)
            return {name: np.full_like(given[name], np.nan) for name in self.learned}
        return self.value_and_grads(*operands, cotangent=np.asarray(slope))[1]

    def _arguments(self, operands: tuple[Any, ...]) -> dict[str, Any]:
        return {**self.plain, **{name: np.asarray(x) for name, x in zip(self.names, operands, strict=True)}}

    def dtype(self, operands: tuple[Any, ...]) -> Any:
        """The dtype of the value."""
        kinds = {p.name: p for p in self.loss.parameters}
        arrays = [x for name, x in zip(self.names, operands, strict=True) if not isinstance(kinds[name], Scalar)]
        return np.float64 if any(x.dtype == np.float64 for x in arrays) else np.float32

    def shapes(self, operands: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        """The shapes of value and gradients; arguments that no numbers could mend raise an `InputError`."""
        by_name = dict(zip(self.names, operands, strict=True))
        stand_ins = {p.name: _stand_in(p, by_name[p.name]) for p in self.loss.parameters if p.name in by_name}
        bound = bound_loss(self.loss.declaration, (), {**self.plain, **stand_ins})
        rows = bound.plan.row_shape() if self.reduction == "none" else ()
        grads = {name: jax.ShapeDtypeStruct(by_name[name].shape, by_name[name].dtype) for name in self.learned}
        return jax.ShapeDtypeStruct(rows, self.dtype(operands)), grads


def _stand_in(p: Parameter, x: JaxArray) -> Any:
    """An argument of that shape and format, which every loss can take; no number of it is stored."""
    if isinstance(p, Scalar):
        return np.asarray(p.typical[0], float if jax.numpy.issubdtype(x.dtype, jax.numpy.integer) else x.dtype)
    shares = getattr(p, "like", "") == "prior"
    number = 0 if isinstance(p, Labels) else 1 / max(x.size, 1) if shares else 1
    return np.broadcast_to(np.asarray(number, x.dtype), x.shape)


@cache
def _host_thread() -> ThreadPoolExecutor:
    """The thread that NumPy runs in.

    JAX calls back from threads that flush the smallest numbers to 0; so would every thread that is started from there.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="nceref-jax")
    thread.submit(int).result()
    return thread


def _on_host(run: Callable[..., Any], shapes: Callable[[], Any], *operands: JaxArray) -> Any:
    """The results of a NumPy function on the operands: now, or when the program that is being traced runs."""
    if not any(isinstance(x, jax.core.Tracer) for x in operands):
        return jax.device_put(jax.tree.map(jax.numpy.asarray, run(*operands)), _place(operands))
    thread, context = _host_thread(), copy_context()

    def called_back(*arrays: Any) -> Any:
        return thread.submit(context.copy().run, run, *map(np.asarray, arrays)).result()

    results = jax.pure_callback(called_back, shapes(), *operands, vmap_method="sequential")
    return jax.tree.map(lambda x: _varying(x, *operands), results)


def _place(operands: tuple[JaxArray, ...]) -> Any:
    """The placement of the first array, whole on each device of a mesh; None where JAX may choose."""
    first = next((x.sharding for x in operands if x.ndim and getattr(x, "committed", False)), None)
    if isinstance(first, jax.sharding.NamedSharding):
        return jax.sharding.NamedSharding(first.mesh, jax.sharding.PartitionSpec())
    return min(first.device_set, key=lambda device: device.id) if first else None


def _varying(x: JaxArray, *others: JaxArray) -> JaxArray:
    """The same array, under `shard_map` typed as varying between devices where one of the others varies."""
    axes = frozenset().union(*map(_axes, others)) - _axes(x)
    return jax.lax.pcast(x, tuple(sorted(axes)), to="varying") if axes else x


def _axes(x: JaxArray) -> frozenset[str]:
    """Axes of a mesh along which an array varies; releases before `pcast` do not tell."""
    kind = getattr(jax.typeof(x), "manual_axis_type", None) if hasattr(jax.lax, "pcast") else None
    return kind.varying if kind else frozenset()


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _value(call: _JaxCall, *operands: JaxArray) -> JaxArray:
    return _value_alone(call, *operands)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _value_alone(call: _JaxCall, *operands: JaxArray) -> JaxArray:
    return _on_host(call.value, lambda: call.shapes(operands)[0], *operands)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _value_and_grads(call: _JaxCall, *operands: JaxArray) -> tuple[JaxArray, dict[str, JaxArray]]:
    pair: tuple[JaxArray, dict[str, JaxArray]]
    pair = _on_host(call.value_and_grads, lambda: call.shapes(operands), *operands)
    return pair


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _row_grads(call: _JaxCall, slope: JaxArray, *operands: JaxArray) -> dict[str, JaxArray]:
    grads: dict[str, JaxArray] = _on_host(call.row_grads, lambda: call.shapes(operands)[1], slope, *operands)
    return grads


def _second_derivative(call: _JaxCall, *operands: Any) -> Any:
    raise no_derivative(call.loss, "second derivative", _INSTEAD)


for _first in (_value_alone, _value_and_grads, _row_grads):
    _first.defjvp(_second_derivative)


def _forward(call: _JaxCall, *primals: Any) -> tuple[JaxArray, Any]:
    """The value, and its gradients; of rows the operands, as each row has a slope of its own."""
    learned = (name for name, x in zip(call.names, primals, strict=True) if x.perturbed)
    check_learned(call.loss, learned, "jax.lax.stop_gradient({})")
    # JAX hands on an array of NumPy as it is, which may be written to before the way back.
    operands = tuple(x.value if isinstance(x.value, jax.Array) else jax.numpy.array(x.value) for x in primals)
    return (_value_alone(call, *operands), operands) if call.reduction == "none" else _value_and_grads(call, *operands)


def _backward(call: _JaxCall, kept: Any, slope: JaxArray) -> tuple[JaxArray | None, ...]:
    if call.reduction == "none":
        grads = _row_grads(call, slope, *kept)
    else:
        grads = {name: (grad * slope).astype(grad.dtype) for name, grad in kept.items()}
    return tuple(grads.get(name) for name in call.names)


_value.defvjp(_forward, _backward, symbolic_zeros=True)
