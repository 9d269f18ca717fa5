"""JAX targets: arrays in, one reverse pass; see `frameworks.Framework`."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.output.text import shown
from nceref.targets.frameworks import Answer, CallRequest, Reply, gradient_of, loss_of, value_of
from nceref.targets.target import Program, ResolvedTarget


def check(request: CallRequest) -> None:
    """Refuse a device that is not there."""
    import jax

    try:
        jax.devices(request.device)
    except RuntimeError as error:
        msg = f"`device` is {shown(request.device)}, which jax cannot use here: {str(error).splitlines()[0]}"
        raise InputError(msg) from error


def answer(target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool) -> Answer:
    """Differentiate the sum of what it returns by every tracked input."""
    import jax

    with double(request), jax.default_device(jax.devices(request.device)[0]):
        inputs = native(request, floats)
        wanted = request.differentiable - floats if gradients and request.mode != "no-grad" else frozenset()
        loss, grads = differentiated(target, request, inputs, wanted)
        if not grads or not isinstance(loss, jax.Array):
            return _plain(loss, request)
        return Answer(value_of(loss, request), {n: gradient_of(n, g, request) for n, g in grads.items()})


def differentiated(
    target: ResolvedTarget, request: CallRequest, inputs: Mapping[str, Any], wanted: frozenset[str]
) -> tuple[Any, dict[str, Any]]:
    """The loss that a target returns, and the gradients of its sum.

    `request` has the mode, the reduction and the upstream gradient. The target is differentiated by the inputs in
    `wanted`, and only called if there are none.
    """
    import jax

    assert target.program is not None
    tracked = {n: x for n, x in inputs.items() if n in wanted}

    def total(variables: Mapping[str, Any]) -> Any:
        returned = target.program({**inputs, **variables}, request.reduction, lambda x: x)  # type: ignore[misc]
        loss = loss_of(returned, request, lambda x: isinstance(x, jax.Array))
        upstream = 1.0 if request.cotangent is None else request.cotangent
        return (jax.numpy.asarray(loss) * upstream).sum(), loss

    def both(variables: Mapping[str, Any]) -> Any:
        # The loss as it was returned comes along, so that value and gradients are of one call.
        summed, vjp, loss = jax.vjp(total, variables, has_aux=True)
        return loss, vjp(jax.numpy.ones_like(summed))[0]

    return _transformed(both, request.mode)(tracked) if tracked else (total(tracked)[1], {})


def _transformed(function: Callable[[Any], Any], mode: str) -> Callable[[Any], Any]:
    """The function compiled, or as the first of two that are evaluated at once."""
    import jax

    if mode == "vmap":
        first, double = (lambda x: x[0]), (lambda x: jax.numpy.stack([x, -x]))
        return lambda x: jax.tree.map(first, jax.vmap(function)(jax.tree.map(double, x)))
    return jax.jit(function) if mode == "jit" else function


def _plain(loss: Any, request: CallRequest) -> Answer:
    import jax

    remarks = {}
    if not isinstance(loss, jax.Array):
        kind = type(loss).__name__
        remarks["python-float"] = f"returns a {kind}, not an array of jax: no gradient can flow back from it"
        return Answer(
            value_of(loss, request), {}, dict.fromkeys(request.differentiable, f"it returns a {kind}"), remarks
        )
    return Answer(value_of(loss, request))


def double(request: CallRequest) -> contextlib.AbstractContextManager[None]:
    """Float64 where the run is in it; JAX leaves it out by default."""
    import jax

    # Releases of JAX differ in where it is.
    if not hasattr(jax, "enable_x64"):
        from jax.experimental import enable_x64

        return enable_x64(request.dtype == "float64")  # type: ignore[no-any-return]
    return jax.enable_x64(request.dtype == "float64")  # type: ignore[no-any-return]


def native(request: CallRequest, floats: frozenset[str]) -> dict[str, Any]:
    """The inputs as JAX has them, of the format of the run."""
    import jax.numpy as jnp

    dtype, out = jnp.dtype(request.dtype), dict(request.inputs)
    for name, x in request.inputs.items():
        if isinstance(x, np.ndarray):
            # Labels get the integer type that JAX has under these settings.
            out[name] = jnp.asarray(x, dtype=dtype if x.dtype.kind == "f" else None)
        elif name in request.scalars - floats:
            out[name] = jnp.asarray(x, dtype=dtype)
    return out


def program(reply: Reply) -> Program:
    """A program with a known value and a known reverse pass."""
    import jax
    import jax.numpy as jnp

    def returned(inputs: Mapping[str, Any], reduction: str, placed: Any) -> Any:
        arrays = {n: x for n, x in inputs.items() if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating)}
        plain = {n: x for n, x in inputs.items() if n not in arrays}

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def known(variables: Any) -> Any:
            return forward(variables)[0]

        def forward(variables: Any) -> Any:
            given = {n: x.astype(np.float64) for n, x in _read(variables).items()}
            value, grads = reply({**_read(plain), **given})
            dtype = next(iter(variables.values())).dtype
            rows = {n: jnp.asarray(grads.get(n, np.zeros(x.shape)), dtype=dtype) for n, x in variables.items()}
            return jnp.asarray(value, dtype=dtype), rows

        # Rows are added up, so that their cotangent is 1 throughout.
        known.defvjp(forward, lambda rows, cotangent: ({n: g * cotangent.reshape(-1)[0] for n, g in rows.items()},))
        return known(arrays)

    return returned


def _read(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as those of NumPy; on several devices they have no numbers yet."""
    import jax

    known = {n for n, x in inputs.items() if isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)}
    return {n: np.asarray(x) if n in known else x for n, x in inputs.items()}
