"""JAX targets on several devices of one process, each with the rows of a rank; see `frameworks.Framework`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np

from nceref.errors import TargetError
from nceref.output.words import counted
from nceref.targets import run_jax
from nceref.targets.frameworks import Answer, CallRequest, Reply, gradient_of, value_of
from nceref.targets.target import Deferred, ResolvedTarget


def check(request: CallRequest) -> None:
    """Refuse more ranks than there are devices."""
    import jax

    run_jax.check(request)
    there = len(jax.devices(request.device))
    if there < request.devices:
        ranks, devices = counted(request.devices, "rank"), counted(there, "device")
        remedy = "let it set neither XLA_FLAGS nor jax_num_cpu_devices"
        msg = f"{ranks} of JAX need as many devices, but the target leaves {devices}: {remedy}"
        raise TargetError(msg)


def answer(target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool) -> Answer:
    """Differentiate on every device what the target returns there; value and gradients have an axis of the devices."""
    plain = {n: x for n, x in request.inputs.items() if not isinstance(x, np.ndarray)}
    plain |= {n: float(request.inputs[n][0]) for n in floats & request.scalars & request.inputs.keys()}
    arrays = replace(request, inputs={n: x for n, x in request.inputs.items() if n not in plain})
    wanted = request.differentiable - floats if gradients else frozenset()
    with run_jax.double(request):
        ways = request.reduction, request.mode, request.cotangent
        function = _compiled(target, tuple(plain.items()), wanted, ways, request.devices, request.axis)
        losses, grads = function(run_jax.native(arrays, floats))
    one = replace(arrays, inputs={n: x[0] for n, x in arrays.inputs.items()})
    values = np.array([value_of(x, one) for x in np.asarray(losses)])
    return Answer(values, {n: np.stack([gradient_of(n, x, one) for x in np.asarray(g)]) for n, g in grads.items()})


@lru_cache(32)
def _compiled(
    target: ResolvedTarget,
    plain: tuple[tuple[str, Any], ...],
    wanted: frozenset[str],
    ways: tuple[str, str, float | None],
    devices: int,
    axis: str,
) -> Callable[[Mapping[str, Any]], tuple[Any, dict[str, Any]]]:
    """Losses and gradients of all devices; compiled once for cases of the same shapes.

    Without compiling, every operation would be sent to the devices by itself, which takes ten times as long.
    """
    import jax
    from jax.sharding import Mesh, PartitionSpec

    reduction, mode, cotangent = ways
    request = CallRequest({}, frozenset(), frozenset(), reduction=reduction, mode=mode, cotangent=cotangent)

    def on_device(arrays: Mapping[str, Any]) -> Any:
        own = {**dict(plain), **{n: x[0] for n, x in arrays.items()}}
        loss, grads = run_jax.differentiated(target, request, own, wanted)
        return jax.numpy.asarray(loss)[None], {n: g[None] for n, g in grads.items()}

    mesh = Mesh(np.array(jax.devices("cpu")[:devices]), (axis,))
    # A few cases a shape run on it: to optimize would take longer than they do.
    options = {"compiler_options": _UNOPTIMIZED} if "compiler_options" in signature(jax.jit).parameters else {}
    return jax.jit(_mapped(on_device, mesh, PartitionSpec(axis)), **options)  # type: ignore[no-any-return]


_UNOPTIMIZED = {"xla_backend_optimization_level": 0}


def _mapped(function: Callable[[Any], Any], mesh: Any, along: Any) -> Callable[[Any], Any]:
    """The function on every device of a mesh.

    With its checks of what is the same on all devices, `shard_map` takes such a value for one number: the transpose of
    psum is then the identity, and the gradient inside of a loss that is averaged over W devices is 1/W of that of
    `pmap`. Without them psum's transpose is psum, as for `pmap`, and as the backward pass of PyTorch's all_reduce: what
    is left on a device is the gradient of the sum of all devices' losses. Gathered rows have the same one either way.
    """
    import jax

    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=along, out_specs=along, check_vma=False)  # type: ignore[no-any-return]
    from jax.experimental.shard_map import shard_map

    return shard_map(function, mesh=mesh, in_specs=along, out_specs=along, check_rep=False)  # type: ignore[no-any-return]


def of_device(known: tuple[Any, Mapping[str, Any]], axis: str) -> Reply:
    """The part of a known answer that belongs to the device on which it is asked for.

    `known` has a first axis of the devices.
    """

    def reply(inputs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        import jax

        own, (value, grads) = jax.lax.axis_index(axis), known
        return jax.numpy.asarray(value)[own], {n: jax.numpy.asarray(g)[own] for n, g in grads.items()}

    return reply


def place(group: Mapping[str, Any]) -> dict[str, Any]:
    """The ``rank`` and ``world_size`` for a target that takes them; the rank is that of the device it is called on.

    `group` has the ``axis`` and the ``world_size``.
    """
    import jax

    return {"rank": Deferred(lambda: jax.lax.axis_index(group["axis"])), "world_size": group["world_size"]}
