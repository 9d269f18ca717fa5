"""Losses as functions of JAX arrays: the bits of `nceref.losses`, and a sentence for what there is not."""

import contextlib
import doctest
import importlib
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from framework_cases import answer, assert_same_bits, calls, learned, reductions
from sweep import every_loss, sweep

from nceref import config, get_loss, losses, verify
from nceref.engine import settings
from nceref.errors import DerivativeError, InputError

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'nceref[jax]'")
contrastive = pytest.importorskip("nceref.jax")
jnp = jax.numpy


def formats(dtype):
    """Within it, arrays of that format can be made."""
    if dtype is not np.float64:
        return contextlib.nullcontext()
    # Older releases have it among the experiments.
    return (
        jax.enable_x64(True) if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental").enable_x64()
    )


def views(rows=4, dim=3, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.standard_normal((rows, dim)), dtype) for _ in range(2)]


def nt_xent(z1, z2, temperature=0.3, **options):
    return contrastive.nt_xent(z1, z2, temperature=temperature, **options)


def answered(z1, z2, temperature=0.3):
    return losses.nt_xent.value_and_grad(np.asarray(z1), np.asarray(z2), temperature=temperature)


def assert_answers_are_those_of_numpy(name, inputs, reduction, transform):
    """Numbers that are learned are arrays; what else is no array stays what it is."""
    names, traced = learned(name, inputs), {}
    for key, x in inputs.items():
        if isinstance(x, np.ndarray) or key in names:
            traced[key] = jnp.asarray(x)
    plain = {key: x for key, x in inputs.items() if key not in traced}
    # A number of float32 is another one than that of float64.
    same = inputs | {key: float(traced[key]) for key in names if isinstance(inputs[key], float)}
    value, slope, grads = answer(name, same, reduction)

    def step(by, rest, slope):
        function = contrastive.get_loss(name)
        value, pull = jax.vjp(lambda by: function(**by, **rest, **plain, reduction=reduction), by)
        return value, pull(jnp.ones_like(value) if slope is None else slope)[0]

    by, rest = ({k: x for k, x in traced.items() if (k in names) == of} for of in (True, False))
    got, got_grads = transform(step)(by, rest, None if slope is None else jnp.asarray(slope))
    assert_same_bits(got, value, reduction)
    assert set(got_grads) == set(grads)
    for key, grad in grads.items():
        assert_same_bits(got_grads[key], grad, (reduction, key))


@sweep("transform", [jax.jit, lambda function: function])
@sweep("dtype", [np.float32, np.float64])
@every_loss
def test_value_and_gradients_are_those_of_numpy_bit_by_bit(loss_name, dtype, transform):
    with formats(dtype):
        # Programs are compiled for every variant, which takes longer than the losses do.
        for inputs in calls(loss_name, dtype, ("random",)):
            for reduction in {"mean", reductions(loss_name)[-1]}:
                assert_answers_are_those_of_numpy(loss_name, inputs, reduction, transform)


@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "as it is"])
def test_a_sum_and_a_slope_have_their_gradients(transform):
    z1, z2 = views()
    grad = transform(jax.grad(lambda a: 3 * nt_xent(a, z2, reduction="sum")))(z1)
    expected = losses.nt_xent.value_and_grad(np.asarray(z1), np.asarray(z2), temperature=0.3, reduction="sum")[1]["z1"]
    assert_same_bits(grad, expected * np.float32(3), "sum")


def test_a_backward_pass_that_ignores_the_slope_is_caught(monkeypatch):
    right = contrastive._JaxCall.row_grads

    def ignoring(call, slope, *operands):
        return right(call, np.ones_like(slope), *operands)

    monkeypatch.setattr(contrastive._JaxCall, "row_grads", ignoring)
    inputs = next(iter(calls("nt_xent", np.float32, ("random",))))
    with pytest.raises(AssertionError):
        assert_answers_are_those_of_numpy("nt_xent", inputs, "none", jax.jit)


def test_a_number_of_python_keeps_its_digits_and_a_traced_one_gets_a_gradient():
    z1, z2 = views()
    assert_same_bits(jax.jit(nt_xent)(z1, z2), answered(z1, z2, float(np.float32(0.3)))[0], "traced")
    assert_same_bits(jax.jit(lambda a: nt_xent(a, z2))(z1), answered(z1, z2)[0], "constant")
    grad = jax.jit(jax.grad(nt_xent, argnums=2))(z1, z2, 0.3)
    assert_same_bits(grad, answered(z1, z2, float(np.float32(0.3)))[1]["temperature"], "temperature")


def test_an_array_that_is_used_twice_gets_both_gradients():
    z1, _ = views()
    keys = np.asarray(z1)
    grads = losses.info_nce.value_and_grad(keys, keys, temperature=0.3)[1]
    got = jax.jit(jax.grad(lambda z: contrastive.info_nce(z, z, temperature=0.3)))(z1)
    assert_same_bits(got, grads["queries"] + grads["keys"], "both")


def test_arguments_stay_as_they_are_and_are_not_copied(monkeypatch):
    z1, z2 = views()
    before, read = np.array(z1), []
    right = losses.LossFunction.value_and_grad
    monkeypatch.setattr(
        losses.LossFunction, "value_and_grad", lambda loss, **given: read.append(given["z1"]) or right(loss, **given)
    )
    jax.grad(nt_xent)(z1, z2)
    assert read[0].ctypes.data == np.asarray(z1).ctypes.data
    assert np.array_equal(np.asarray(z1), before)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_arrays_of_numpy_may_be_written_to_after_the_forward_pass(reduction):
    z1, z2 = map(np.array, views(64, 16))
    expected = jax.grad(lambda a: nt_xent(a, jnp.array(z2), reduction=reduction).sum())(jnp.array(z1))
    temperature = np.array(0.3)
    value, pull = jax.vjp(lambda a: nt_xent(a, z2, temperature, reduction=reduction), z1)
    for x in (z1, z2, temperature):
        x[...] = 7
    assert_same_bits(pull(jnp.ones_like(value))[0], expected, reduction)


ON_TWO_DEVICES = """
    import jax, numpy as np
    from jax.sharding import Mesh, PartitionSpec as P
    import nceref.jax as contrastive

    mesh, over = Mesh(np.array(jax.devices()), "d"), P("d")
    a, b = map(jax.numpy.asarray, np.random.default_rng(0).standard_normal((2, 8, 4)).astype(np.float32))

    def loss(a, b, t):
        return contrastive.nt_xent(a, b, temperature=t)

    def sharded(a, b, t):
        each = lambda a, b, t: loss(a, b, t)[None]
        return jax.shard_map(each, mesh=mesh, in_specs=(over, over, P()), out_specs=over)(a, b, t).sum()

    def halves(a, b, t):
        return loss(a[:4], b[:4], t) + loss(a[4:], b[4:], t)

    t = jax.numpy.asarray(0.3)
    answers = [jax.jit(jax.value_and_grad(f, argnums=(0, 1, 2)))(a, b, t) for f in (sharded, halves)]
    assert jax.tree.all(jax.tree.map(lambda x, y: np.allclose(x, y, rtol=1e-6, atol=1e-7), *answers)), answers

    second = jax.devices()[1]
    there = jax.device_put((a, b), second)
    rows = jax.grad(lambda a: contrastive.nt_xent(a, b, temperature=0.3, reduction="none").sum())
    for x in (loss(*there, 0.3), jax.grad(loss)(*there, 0.3), rows(there[0])):
        assert x.devices() == {second}, x.devices()
    spread = jax.device_put((a, b), jax.sharding.NamedSharding(mesh, over))
    for x in (loss(*spread, 0.3), jax.grad(loss)(*spread, 0.3)):
        assert x.devices() == set(mesh.devices.flat), x.devices()
"""


@pytest.mark.skipif(not hasattr(jax.lax, "pcast"), reason="needs jax.lax.pcast: pip install -U jax")
def test_arrays_on_several_devices_have_their_gradients_there():
    here = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", textwrap.dedent(ON_TWO_DEVICES)]
    ended = subprocess.run(command, env=os.environ | here, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "as it is"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_number_may_be_a_whole_one(transform, reduction):
    z1, z2 = views()
    grad = transform(jax.grad(lambda a, t: nt_xent(a, z2, t, reduction=reduction).sum()))
    assert_same_bits(grad(z1, jnp.asarray(1)), grad(z1, jnp.asarray(1.0)), reduction)


@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "as it is"])
@pytest.mark.parametrize("slope", [np.inf, np.nan])
def test_gradients_below_a_slope_that_is_not_finite_are_not(transform, slope):
    z1, z2 = views()
    for reduction in ("mean", "none"):
        step = jax.grad(lambda z, t, of=reduction: nt_xent(z, z2, t, reduction=of).reshape(-1)[0] * slope, (0, 1))
        assert not any(np.isfinite(grad).any() for grad in transform(step)(z1, jnp.asarray(0.3)))


def test_vmap_takes_one_batch_after_another():
    z1, z2 = views()
    both, temperatures = jnp.stack([z1, z2]), jnp.asarray([0.3, 0.5])
    mapped = jax.jit(jax.vmap(jax.value_and_grad(nt_xent), in_axes=(0, None, 0)))
    values, grads = mapped(both, z2, temperatures)
    for i, z in enumerate(both):
        value, expected = answered(z, z2, float(temperatures[i]))
        assert_same_bits(values[i], value, i)
        assert_same_bits(grads[i], expected["z1"], i)
    rows = jax.jacrev(lambda z: nt_xent(z, z2, reduction="none"))(z1)
    assert rows.shape == (8, 4, 3)
    assert np.allclose(rows.mean(0), jax.grad(nt_xent)(z1, z2), atol=1e-6)


def test_checkpoint_and_scan_change_nothing():
    z1, z2 = views()

    def through_scan(z):
        return jax.lax.scan(lambda total, x: (total + nt_xent(x, z2), None), 0.0, jnp.stack([z, 2 * z]))[0]

    plain = jax.grad(lambda z: nt_xent(z, z2) + nt_xent(2 * z, z2))(z1)
    assert np.allclose(jax.jit(jax.grad(through_scan))(z1), plain, atol=1e-6)
    assert_same_bits(jax.grad(jax.checkpoint(nt_xent))(z1, z2), answered(z1, z2)[1]["z1"], "checkpoint")


@sweep("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_computed_with_in_float32(dtype):
    z1, z2 = views(dtype=dtype)
    value, grad = jax.jit(jax.value_and_grad(nt_xent))(z1, z2)
    expected, grads = answered(z1.astype(np.float32), z2.astype(np.float32), float(np.float32(0.3)))
    assert_same_bits(jax.jit(lambda a: nt_xent(a, z2, jnp.float32(0.3)))(z1), expected, "value")
    assert (value.dtype, grad.dtype) == (np.float32, dtype)
    assert np.allclose(np.asarray(grad, np.float32), grads["z1"], rtol=2.0**-7, atol=1e-6)


def test_labels_and_masks_can_be_traced():
    z, labels = views()[0], jnp.asarray([0, 0, 1, 1])
    expected = losses.supcon_out(np.asarray(z), np.asarray(labels), temperature=0.3)
    step = jax.jit(jax.value_and_grad(lambda z, labels: contrastive.supcon_out(z, labels, temperature=0.3)))
    assert_same_bits(step(z, labels)[0], expected, "labels")
    assert_same_bits(contrastive.supcon_out(z, [0, 0, 1, 1], temperature=0.3), expected, "list")
    mask = (labels[:, None] == labels) & ~jnp.eye(4, dtype=bool)
    masked = jax.jit(jax.grad(lambda z, mask: contrastive.supcon_out(z, mask=mask, temperature=0.3)))
    assert np.allclose(masked(z, mask), step(z, labels)[1], atol=1e-6)


SECOND = "nt_xent has no second derivative: its gradient alone is derived by hand; write the loss in jax.numpy"


@pytest.mark.parametrize("options", [{}, {"reduction": "none"}], ids=str)
@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "as it is"])
def test_a_second_derivative_is_refused_with_a_sentence(transform, options):
    z1, z2 = views()
    first = jax.grad(lambda z: nt_xent(z, z2, **options).sum())
    with pytest.raises(DerivativeError, match=SECOND):
        transform(jax.grad(lambda z: first(z).sum()))(z1)
    with pytest.raises(DerivativeError, match=SECOND):
        transform(jax.hessian(lambda z: nt_xent(z, z2, **options).sum()))(z1)


def test_forward_mode_is_refused_by_jax():
    z1, z2 = views()
    with pytest.raises(TypeError, match="can't apply forward-mode"):
        jax.jvp(lambda z: nt_xent(z, z2), (z1,), (z1,))


SEEN_BY_SHAPE = [
    (lambda z: nt_xent(z, z[:2]), r"`z2` must be \(N, D\) = \(4, 3\) to match `z1`, got"),
    (lambda z: nt_xent(z.astype(int), z), "`z1` must be an array of real floats"),
    (
        lambda z: nt_xent(z, z, temperature=jnp.ones(1)),
        r"must be one number, got an array of shape \(1,\); pass an array without dimensions, such as temperature\[0\]",
    ),
    (lambda z: nt_xent(z, z, temperature=-1.0), "`temperature` must be > 0, got -1.0"),
    (lambda z: contrastive.nt_xent(z, temperature=1), "nt_xent needs `z2`, an array of floats"),
    (lambda z: nt_xent(z, z, other=1), "nt_xent has no argument `other`"),
    (lambda z: nt_xent(z, z, reduction="avg"), "`reduction` must be 'mean'"),
    (lambda z: nt_xent(np.ma.masked_array(np.ones((4, 3))), z), "`z1` is a masked array"),
    (lambda z: nt_xent("text", z), "`z1` cannot be read"),
    (
        lambda z: jax.grad(lambda keys: contrastive.moco(z, keys, z, temperature=1))(z),
        r"`keys` gets no gradient: moco takes it as a constant; pass jax.lax.stop_gradient\(keys\)",
    ),
]
SEEN_BY_VALUE = [
    (lambda z: nt_xent(z, z * jnp.nan), "`z2` must be finite everywhere, got nan at index"),
    (lambda z: nt_xent(z, z, temperature=z[0, 0] * 0), "`temperature` must be > 0, got"),
    (lambda z: contrastive.supcon_out(z, jnp.arange(4), temperature=1), "anchor 0 has no positive"),
]


@sweep(("call", "message"), SEEN_BY_SHAPE + SEEN_BY_VALUE, ids=str)
def test_bad_input_is_an_error_that_says_what_to_do(call, message):
    with pytest.raises(InputError, match=message):
        call(views()[0])


@sweep(("call", "message"), SEEN_BY_SHAPE, ids=str)
def test_what_shapes_show_is_refused_while_a_program_is_traced(call, message):
    with pytest.raises(InputError, match=message):
        jax.jit(call).lower(views()[0])


@sweep(("call", "message"), SEEN_BY_VALUE, ids=str)
def test_a_compiled_program_ends_with_the_same_sentence(call, message):
    # The class is that of JAX, and depends on its release.
    with pytest.raises(Exception, match=message):
        jax.block_until_ready(jax.jit(call)(views()[0]))


def test_shapes_are_known_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(losses.LossFunction, "__call__", None)
    z = jax.ShapeDtypeStruct((4096, 64), np.float32)
    assert jax.eval_shape(lambda a, b: nt_xent(a, b, reduction="none"), z, z).shape == (8192,)
    assert jax.eval_shape(nt_xent, z, z, jax.ShapeDtypeStruct((), np.float32)).shape == ()


@every_loss
def test_rows_have_the_shape_that_the_plan_says(loss_name):
    for inputs in calls(loss_name, np.float32):
        if get_loss(loss_name).declaration.has_rows:
            rows = jax.eval_shape(lambda inputs=inputs: contrastive.get_loss(loss_name)(**inputs, reduction="none"))
            assert rows.shape == get_loss(loss_name)(**inputs, reduction="none").shape


def test_the_smallest_numbers_are_computed_with_in_a_compiled_program():
    z, labels = views()[0], np.array([0, 0, 1, 1])
    # In threads of its own XLA flushes what is below 1.2e-38 to 0, and a row of weight 1e-40 with it.
    options = {"temperature": 0.3, "anchor_weights": np.array([1e-40, 0, 0, 0], np.float32), "reduction": "sum"}
    expected = losses.supcon_out(np.asarray(z), labels, **options)
    assert 0 < expected < 1e-38
    assert_same_bits(jax.jit(lambda z: contrastive.supcon_out(z, labels, **options))(z), expected, "subnormal")


def test_settings_are_those_of_the_tracing(monkeypatch):
    seen = []
    right = settings.block_shape
    monkeypatch.setattr(
        "nceref.engine.passes.block_shape", lambda *given: seen.append(settings.chosen("block")) or right(*given)
    )
    z1, z2 = views()
    with config(block=3):
        program = jax.jit(lambda a: nt_xent(a, z2)).lower(z1).compile()
    program(z1).block_until_ready()
    assert seen[-1] == 3


def test_the_verifier_calls_it_right():
    report = verify(contrastive.clip, loss="clip", suite="quick")
    assert (report.verdict, report.environment["framework"]) == ("conforms", "jax")


def test_functions_are_names_of_the_module(loss_name):
    function = getattr(contrastive, loss_name)
    assert pickle.loads(pickle.dumps(function)) is function is contrastive.get_loss(loss_name)
    assert loss_name in dir(contrastive)


def test_the_example_of_the_module_runs():
    done = doctest.testmod(contrastive)
    assert (done.attempted > 4, done.failed) == (True, 0)
