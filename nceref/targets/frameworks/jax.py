"""JAX targets: arrays in, one reverse pass; several ranks are devices of one process, each with the rows of a rank."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.output.text import shown
from nceref.output.words import counted
from nceref.targets.frameworks.call import Answer, CallRequest, Trouble, gradient_of, loss_of, value_of
from nceref.targets.frameworks.framework import Dialect, Framework, Mode, Reply
from nceref.targets.frameworks.steps import in_steps
from nceref.targets.target import Deferred, Program, ResolvedTarget


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
    if request.devices:
        return _answer_on_devices(target, request, floats, gradients)
    return in_steps(request, lambda part: _called(target, part, floats, gradients))


def _called(target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool) -> Answer:
    import jax

    with _double(request), jax.default_device(jax.devices(request.device)[0]):
        inputs = _native(request, floats)
        wanted = request.differentiable - floats if gradients and request.mode != "no-grad" else frozenset()
        loss, grads = _differentiated(target, request, inputs, wanted)
        if not grads or not isinstance(loss, jax.Array):
            return _plain(loss, request)
        return Answer(value_of(loss, request), {n: gradient_of(n, g, request) for n, g in grads.items()})


def _differentiated(
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


def _double(request: CallRequest) -> contextlib.AbstractContextManager[None]:
    """Float64 where the run is in it; JAX leaves it out by default."""
    import jax

    # Releases of JAX differ in where it is.
    if not hasattr(jax, "enable_x64"):
        from jax.experimental import enable_x64

        return enable_x64(request.dtype == "float64")  # type: ignore[no-any-return]
    return jax.enable_x64(request.dtype == "float64")  # type: ignore[no-any-return]


def _native(request: CallRequest, floats: frozenset[str]) -> dict[str, Any]:
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


def _check_devices(request: CallRequest) -> None:
    """Report more ranks than the target leaves devices."""
    import jax

    there = len(jax.devices(request.device))
    if there < request.devices:
        ranks, devices = counted(request.devices, "rank"), counted(there, "device")
        remedy = "let it set neither XLA_FLAGS nor jax_num_cpu_devices"
        msg = f"leaves {devices} for {ranks} of JAX, which need one each: {remedy}"
        raise Trouble(msg, "raises")


def _answer_on_devices(target: ResolvedTarget, request: CallRequest, floats: frozenset[str], gradients: bool) -> Answer:
    """Differentiate on every device what the target returns there; value and gradients have an axis of the devices."""
    _check_devices(request)
    plain = {n: x for n, x in request.inputs.items() if not isinstance(x, np.ndarray)}
    plain |= {n: float(request.inputs[n][0]) for n in floats & request.scalars & request.inputs.keys()}
    arrays = replace(request, inputs={n: x for n, x in request.inputs.items() if n not in plain})
    wanted = request.differentiable - floats if gradients else frozenset()
    with _double(request):
        ways = request.reduction, request.mode, request.cotangent
        function = _compiled(target, tuple(plain.items()), wanted, ways, request.devices, request.axis)
        losses, grads = function(_native(arrays, floats))
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
        loss, grads = _differentiated(target, request, own, wanted)
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


_DIALECT = Dialect(
    imports=("import jax", "import jax.numpy as jnp"),
    setup={"float64": 'jax.config.update("jax_enable_x64", True)'},
    array="jnp.array({literal}, dtype=jnp.{dtype})",
    scalar="jnp.array({literal}, dtype=jnp.{dtype})",
    labels="jnp.array({literal})",
    call="def answer({arguments}):\n"
    "    value = {call}\n"
    "    return value['loss'] if isinstance(value, dict) else value\n\n\n"
    "value = np.asarray(answer({arguments}), dtype=np.float64)",
    grads="grads = jax.grad(lambda *inputs: answer(*inputs).sum(), argnums=({numbers}))({arguments})\n"
    "grads = dict(zip(({names}), grads))",
)
_ADVICE = {
    "epsilon-in-norm": "Take the larger of length and eps, jnp.maximum(length, eps); add nothing to it.",
    "norm-floored": "Divide by the length itself; a floor of 1e-12 leaves rows as they are.",
    "mask-leaks": "Mask with -inf (jnp.where), not with a finite constant.",
    "temperature-in-float32": "Keep the temperature in the format of the run: float64 needs jax_enable_x64.",
    "scale-in-float32": "Keep the scale in the format of the run: float64 needs jax_enable_x64.",
    "first-input-detached": "Take stop_gradient off the first input.",
    "keys-detached": "Take stop_gradient off the keys, or declare them constant (moco).",
    "temperature-detached": "Keep the temperature traced: no stop_gradient, and no float() or NumPy inside.",
    "bias-detached": "Take stop_gradient off the bias.",
    "centers-detached": "Take stop_gradient off them.",
    "constants-get-gradient": "Put stop_gradient around the queue and the momentum keys.",
    "negatives-detached": "Take stop_gradient off the candidates.",
    "candidates-detached": "Take stop_gradient off the candidates: every row is an anchor and a candidate.",
    "other-view-detached": "Take stop_gradient off the rows of the other view.",
    "weights-not-detached": "Put stop_gradient around the weights.",
    "weights-detached": "Take stop_gradient off the weights.",
    "normalization-detached": "Take stop_gradient off the norm: the gradient must be orthogonal to each row.",
    "gradient-clamped": "Clamp parameters outside the loss.",
    "gradient-zero": "Keep every input traced: no stop_gradient, and no float() or NumPy inside.",
    "gradient-radial-only": "Harmless where the rows are normalized before; otherwise look for stop_gradient around"
    " a norm, or a norm too many.",
    "gradient-parts-scaled": "Look for a term that is added twice or stopped, or a weight that one of the two sums"
    " has.",
    "tf32-fallback": "Set jax_default_matmul_precision='highest'; on a CPU, look for a cast to float16.",
}
FRAMEWORK = Framework(
    "jax",
    check,
    answer,
    program,
    _DIALECT,
    modules={"jax": "jax", "jnp": "jax.numpy"},
    logarithm="jnp.log({})",
    packages=("jax", "jaxlib", "optax", "flax", "equinox", "haiku"),
    ways=("again", "upstream", "after-larger", "sum", "mean"),
    modes={
        "jit": Mode("compiled by jax.jit", "compiled-differs", family="compiled"),
        "vmap": Mode("within jax.vmap", "compiled-differs", family="compiled"),
    },
    advice=_ADVICE,
    ranks="devices",
)
