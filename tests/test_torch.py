"""Losses as functions of PyTorch tensors: the bits of `nceref.losses`, and a sentence for what there is not."""

import doctest
import pickle
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from framework_cases import answer, assert_same_bits, calls, learned, reductions
from sweep import every_loss, sweep

from benchmarks import training
from nceref import config, get_loss, losses
from nceref.errors import DerivativeError, InputError, UnavailableError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nceref[torch]'")
contrastive = pytest.importorskip("nceref.torch")


def tensors(name, inputs):
    """Arrays as tensors on memory of their own, numbers that are learned as tensors of 64 bits; all of them learned."""
    given, names = {}, learned(name, inputs)
    for key, x in inputs.items():
        is_number = isinstance(x, float) and key in names
        given[key] = torch.from_numpy(np.array(x)) if isinstance(x, np.ndarray) or is_number else x
        if key in names:
            given[key].requires_grad_()
    return given


def assert_gradients(name, given, grads, where):
    for key in grads:
        assert_same_bits(given[key].grad, grads[key], (where, key))


def views(rows=4, dim=3, dtype=torch.float64):
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.standard_normal((rows, dim))).to(dtype).requires_grad_() for _ in range(2)]


@sweep("dtype", [np.float32, np.float64])
@every_loss
def test_value_and_gradients_are_those_of_numpy_bit_by_bit(loss_name, dtype):
    for inputs in calls(loss_name, dtype):
        for reduction in reductions(loss_name):
            value, slope, grads = answer(loss_name, inputs, reduction)
            given = tensors(loss_name, inputs)
            result = contrastive.get_loss(loss_name)(**given, reduction=reduction)
            result.backward(None if slope is None else torch.from_numpy(slope))
            assert result.dtype is (torch.float64 if dtype is np.float64 else torch.float32)
            assert_same_bits(result.detach(), value, reduction)
            assert set(grads) == {key for key, x in given.items() if getattr(x, "grad", None) is not None}
            assert_gradients(loss_name, given, grads, reduction)


@sweep("temperature", [1e-3, 1e-2, 100.0])
def test_extreme_temperatures_have_the_same_bits(temperature):
    z1, z2 = views()
    value, grads = losses.nt_xent.value_and_grad(*(z.detach().numpy() for z in (z1, z2)), temperature=temperature)
    result = contrastive.nt_xent(z1, z2, temperature=temperature)
    result.backward()
    assert_same_bits(result.detach(), value, "value")
    assert_gradients("nt_xent", {"z1": z1, "z2": z2}, {name: grads[name] for name in ("z1", "z2")}, temperature)


CONSTANT_WEIGHTS = {"dclw": {"sigma": 1e9}, "mnrl": {"hardness": 0.0}, "sampled_softmax": {"correction": "negatives"}}
"""Settings of losses whose weights count as constants, which finite differences do not, under which they are."""


@every_loss
def test_gradcheck_passes(loss_name):
    for inputs in calls(loss_name, np.float64, ("random",)):
        given = tensors(loss_name, {**inputs, **CONSTANT_WEIGHTS.get(loss_name, {})})
        names = [key for key in given if key in learned(loss_name, inputs)]
        for reduction in {"mean", reductions(loss_name)[-1]}:

            def function(*values, given=given, names=names, reduction=reduction):
                arguments = given | dict(zip(names, values, strict=True))
                return contrastive.get_loss(loss_name)(**arguments, reduction=reduction)

            assert torch.autograd.gradcheck(function, [given[key] for key in names])


def after_a_slope(function):
    """Gradients of a loss whose value is multiplied by 3, and of rows of which each has a slope."""
    z1, z2 = views()
    (3 * function(z1, z2, temperature=0.3)).backward()
    _, slope, grads = answer(
        "nt_xent", {"z1": z1.detach().numpy(), "z2": z2.detach().numpy(), "temperature": 0.3}, "none"
    )
    z3, z4 = views()
    function(z3, z4, temperature=0.3, reduction="none").backward(torch.from_numpy(slope))
    return z1.grad, z3.grad, grads["z1"]


def assert_slope_is_used(function):
    of_value, of_rows, expected = after_a_slope(function)
    z1, z2 = views()
    once = losses.nt_xent.value_and_grad(z1.detach().numpy(), z2.detach().numpy(), temperature=0.3)[1]["z1"]
    assert_same_bits(of_value, once * 3, "value")
    assert_same_bits(of_rows, expected, "rows")


def test_the_slope_from_above_is_used():
    assert_slope_is_used(contrastive.nt_xent)


def test_a_backward_pass_that_ignores_the_slope_is_caught(monkeypatch):
    right = contrastive._Gradients.forward
    monkeypatch.setattr(
        contrastive._Gradients,
        "forward",
        staticmethod(lambda call, slope, *kept: right(call, torch.ones_like(slope), *kept)),
    )
    with pytest.raises(AssertionError, match="value"):
        assert_slope_is_used(contrastive.nt_xent)


def test_a_slope_without_memory_of_its_own_is_one_of_ones():
    z1, z2 = views()
    contrastive.nt_xent(z1, z2, temperature=0.3, reduction="none").sum().backward()
    z3, z4 = views()
    contrastive.nt_xent(z3, z4, temperature=0.3, reduction="sum").backward()
    assert torch.allclose(z1.grad, z3.grad, rtol=1e-14)


def test_a_tensor_that_is_used_twice_gets_both_gradients():
    z1, z2 = views()
    contrastive.info_nce(z1, z1, z2, temperature=0.3).backward()
    keys = z1.detach().numpy()
    grads = losses.info_nce.value_and_grad(keys, keys, z2.detach().numpy(), temperature=0.3)[1]
    assert_same_bits(z1.grad, grads["queries"] + grads["keys"], "both")


def test_only_what_requires_grad_gets_one():
    z1, z2 = views()
    contrastive.nt_xent(z1, z2.detach(), temperature=torch.tensor(0.3)).backward()
    assert z1.grad is not None
    assert z2.grad is None
    scale = torch.nn.Parameter(torch.tensor(10.0))
    contrastive.clip(z1.detach(), z2.detach(), logit_scale=scale).backward()
    expected = losses.clip.value_and_grad(z1.detach().numpy(), z2.detach().numpy(), logit_scale=10.0)[1]["logit_scale"]
    assert_same_bits(scale.grad, expected, "float32")


def test_without_gradients_the_value_is_a_constant(monkeypatch):
    z1, z2 = views()
    monkeypatch.setattr(losses.LossFunction, "value_and_grad", None)
    with torch.no_grad():
        value = contrastive.nt_xent(z1, z2, temperature=0.3)
    assert not value.requires_grad
    assert not contrastive.nt_xent(z1.detach(), z2.detach(), temperature=0.3).requires_grad
    assert float(value) == losses.nt_xent(z1.detach().numpy(), z2.detach().numpy(), temperature=0.3)


def test_arrays_are_on_the_memory_of_the_tensors_and_stay_as_they_are():
    wide = views(6, 8)[0]
    z1, z2 = (x.detach().requires_grad_() for x in (wide[::2, ::3], wide.detach().T[:3, :3]))
    before = wide.detach().clone()
    assert not z1.is_contiguous()
    for z in (z1, z2):
        assert contrastive._as_array("z", z).__array_interface__["data"][0] == z.data_ptr()
    contrastive.nt_xent(z1, z2, temperature=0.3).backward()
    grads = losses.nt_xent.value_and_grad(z1.detach().numpy(), z2.detach().numpy(), temperature=0.3)[1]
    assert_gradients("nt_xent", {"z1": z1, "z2": z2}, {name: grads[name] for name in ("z1", "z2")}, "strides")
    assert torch.equal(wide.detach(), before)


def test_what_was_written_to_after_the_forward_pass_is_refused():
    z1, z2 = views()
    middle = z1 * 2
    rows = contrastive.nt_xent(middle, z2, temperature=0.3, reduction="none")
    with torch.no_grad():
        middle.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        rows.sum().backward()


@pytest.mark.parametrize("save", [torch.autograd.graph.save_on_cpu, torch.enable_grad])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_graph_can_be_kept_and_gone_through_again(save, reduction):
    z1, z2 = views()
    with save():
        value = contrastive.nt_xent(z1, z2, temperature=0.3, reduction=reduction).sum()
    value.backward(retain_graph=True)
    once = z1.grad.clone()
    value.backward()
    assert torch.equal(z1.grad, once * 2)


def test_checkpoints_change_nothing():
    from torch.utils.checkpoint import checkpoint

    z1, z2 = views()
    contrastive.nt_xent(z1 * 2, z2, temperature=0.3).backward()
    plain, z1.grad = z1.grad, None
    checkpoint(lambda a, b: contrastive.nt_xent(a * 2, b, temperature=0.3), z1, z2, use_reentrant=False).backward()
    assert torch.equal(z1.grad, plain)


@sweep("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_with_in_float32(dtype):
    z1, z2 = views(dtype=dtype)
    value = contrastive.nt_xent(z1, z2, temperature=0.3)
    # As a scaler of gradients does it: 2^-20 is 0 in float16, and so is a gradient of that size without the slope.
    (value * 2.0**-20).backward(torch.tensor(2.0**20))
    expected, grads = losses.nt_xent.value_and_grad(*(z.detach().float().numpy() for z in (z1, z2)), temperature=0.3)
    assert value.dtype is torch.float32
    assert_same_bits(value.detach(), expected, "value")
    assert z1.grad.dtype is dtype
    assert torch.equal(z1.grad, torch.from_numpy(grads["z1"]).to(dtype))


def test_labels_masks_and_counts_are_tensors_or_not():
    z, labels = views(6)[0], torch.tensor([0, 0, 1, 1, 2, 2])
    expected = losses.supcon_out(z.detach().numpy(), labels.numpy(), temperature=0.3)
    for given in (labels, labels.to(torch.uint8), labels.numpy(), labels.tolist()):
        assert float(contrastive.supcon_out(z, given, temperature=0.3).detach()) == expected
    same = labels[:, None] == labels
    mask = (same & ~torch.eye(6, dtype=torch.bool)).contiguous()
    assert float(contrastive.supcon_out(z, mask=mask, temperature=0.3).detach()) == pytest.approx(expected, rel=1e-14)
    value = contrastive.balanced_softmax(z, labels, torch.tensor([2, 2, 2]))
    assert float(value.detach()) == losses.balanced_softmax(z.detach().numpy(), labels.numpy(), np.array([2, 2, 2]))


def of_the_first(z1, z2, **options):
    return torch.autograd.grad(contrastive.nt_xent(z1, z2, temperature=0.3, **options).sum(), z1, create_graph=True)[0]


SECOND = "nt_xent has no second derivative: its gradient alone is derived by hand; leave out create_graph=True"


@pytest.mark.parametrize("options", [{}, {"reduction": "none"}], ids=str)
def test_a_second_derivative_is_refused_wherever_it_is_taken(options):
    z1, z2 = views()
    first = of_the_first(z1, z2, **options)
    with pytest.raises(DerivativeError, match=SECOND):
        first.square().sum().backward()
    # Where there is another way to the tensor, the one through the gradient must not be left out.
    with pytest.raises(DerivativeError, match=SECOND):
        torch.autograd.grad((of_the_first(z1, z2, **options) + z1).sum(), z1)
    # That a graph was made is nothing to refuse yet.
    plain = torch.autograd.grad(contrastive.nt_xent(z1, z2, temperature=0.3, **options).sum(), z1)[0]
    assert torch.equal(first.detach(), plain)


# PyTorch compiles functions of its own for forward mode.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is:DeprecationWarning")
def test_other_transformations_work_or_are_refused_with_a_sentence():
    z1, z2 = (z.detach() for z in views())

    def function(z):
        return contrastive.nt_xent(z, z2, temperature=0.3)

    expected = losses.nt_xent.value_and_grad(z1.numpy(), z2.numpy(), temperature=0.3)[1]["z1"]
    assert_same_bits(torch.func.grad(function)(z1), expected, "func.grad")
    with pytest.raises(DerivativeError, match=r"nt_xent has no derivative in forward mode: .*; use backward\(\)"):
        torch.func.jvp(function, (z1,), (z1,))
    for refused in (function, torch.func.grad(function)):
        with pytest.raises(InputError, match="nt_xent takes one batch a call, and does not run under vmap; call it in"):
            torch.func.vmap(refused)(torch.stack([z1, z2]))
    with pytest.raises(InputError, match="does not run under vmap"):
        torch.func.jacrev(lambda z: contrastive.nt_xent(z, z2, temperature=0.3, reduction="none"))(z1)


COMPILED = pytest.mark.filterwarnings(
    # At a break of the graph, PyTorch looks for a gradient of what goes on to the next one.
    "ignore:The .grad attribute:UserWarning",
    "ignore:.torch.jit.script. is:DeprecationWarning",
    "ignore:.*should not be instantiated:DeprecationWarning",
)


@COMPILED
def test_a_compiled_function_calls_the_loss_as_it_is():
    z1, z2 = views()
    # The default backend needs a compiler of C++.
    compiled = torch.compile(lambda a, b: 3 * contrastive.nt_xent(a * 2, b, temperature=0.3), backend="aot_eager")
    value = compiled(z1, z2)
    value.backward()
    z3, z4 = views()
    plain = 3 * contrastive.nt_xent(z3 * 2, z4, temperature=0.3)
    plain.backward()
    assert torch.equal(value, plain)
    assert torch.equal(z1.grad, z3.grad)


def assert_compiled_is_plain(function, loss_name, backend):
    """Value and gradients of a call without choices; what was compiled before is forgotten."""
    torch.compiler.reset()
    inputs = next(iter(calls(loss_name, np.float64, ("random",))))
    given, plain = tensors(loss_name, inputs), tensors(loss_name, inputs)
    value = torch.compile(function, backend=backend)(**given)
    expected = contrastive.get_loss(loss_name)(**plain)
    for result in (value, expected):
        result.backward()
    assert torch.equal(value, expected)
    assert_gradients(loss_name, given, {key: plain[key].grad for key in learned(loss_name, inputs)}, backend)


@COMPILED
@every_loss
def test_every_loss_can_be_compiled_by_itself(loss_name):
    assert_compiled_is_plain(contrastive.get_loss(loss_name), loss_name, "eager")


@COMPILED
@sweep("loss_name", ["nt_xent", "clip", "supcon_out", "arcface"])
def test_losses_and_modules_are_compiled_for_autograd(loss_name):
    loss = contrastive.get_loss(loss_name)

    class Module(torch.nn.Module):
        def forward(self, **given):
            return loss(**given)

    assert_compiled_is_plain(loss, loss_name, "aot_eager")
    assert_compiled_is_plain(Module(), loss_name, "aot_eager")


@COMPILED
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_compiled_backward_pass_calls_the_gradient_as_it_is(reduction):
    torch.compiler.reset()
    z1, z2 = views()

    def total(z):
        return 2 * contrastive.nt_xent(z * 1, z2, temperature=0.3, reduction=reduction).sum()

    forward = torch.compile(total, backend="aot_eager")
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(lambda z: forward(z).backward(), backend="aot_eager")(z1)
    z3 = views()[0]
    total(z3).backward()
    assert torch.equal(z1.grad, z3.grad)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace. is:DeprecationWarning")
def test_a_record_of_operations_would_have_the_loss_as_a_constant():
    from torch.fx.experimental.proxy_tensor import make_fx

    z1, z2 = (z.detach() for z in views())

    def function(z):
        return contrastive.nt_xent(z, z2, temperature=0.3)

    for record in (make_fx(function), lambda z: torch.jit.trace(function, (z,))):
        with pytest.raises(InputError, match="nt_xent is computed by NumPy, and cannot be recorded by make_fx"):
            record(z1)


@pytest.mark.parametrize("kind", [list, np.array])
def test_what_is_no_tensor_may_be_written_to_after_the_forward_pass(kind):
    z, labels, temperature = views(6)[0], kind([0, 0, 1, 1, 2, 2]), np.array(0.3)
    (expected,) = torch.autograd.grad(contrastive.supcon_out(z, labels, temperature=0.3, reduction="sum"), z)
    rows = contrastive.supcon_out(z, labels, temperature=temperature, reduction="none")
    labels[:], temperature[...] = [0, 1, 2, 0, 1, 2], 9
    (grad,) = torch.autograd.grad(rows.sum(), z)
    assert torch.allclose(grad, expected, rtol=1e-12)


@sweep(
    ("call", "message"),
    [
        (lambda z: contrastive.nt_xent(z.detach().numpy(), z, temperature=1), "`z1` must be a tensor, got array.*pass"),
        (lambda z: contrastive.nt_xent(z, temperature=1), "nt_xent needs `z2`, an array of floats"),
        (lambda z: contrastive.nt_xent(temperature=1), "nt_xent needs `z1`, an array of floats"),
        (lambda z: contrastive.nt_xent(z, z[:2], temperature=1), r"`z2` must be \(N, D\) = \(4, 3\) to match `z1`"),
        (lambda z: contrastive.nt_xent(z, z * torch.nan, temperature=1), "`z2` must be finite everywhere, got nan at"),
        (lambda z: contrastive.nt_xent(z, z, temperature=torch.tensor(-1.0)), "`temperature` must be > 0, got"),
        (lambda z: contrastive.nt_xent(z, z, temperature=torch.ones(1)), r"shape \(1,\); pass .* temperature\[0\]"),
        (lambda z: contrastive.nt_xent(z.long(), z, temperature=1), "`z1` must be an array of real floats"),
        (lambda z: contrastive.nt_xent(z * 1j, z, temperature=1), "`z1` must be an array of real floats"),
        (lambda z: contrastive.nt_xent(z.detach().to_sparse(), z, temperature=1), "`z1` cannot be read: .*to_dense"),
        (lambda z: contrastive.nt_xent(z.detach().to(torch.float8_e5m2), z, temperature=1), "pass a dense tensor"),
        (lambda z: contrastive.nt_xent(z, z.to("meta"), temperature=1), "`z2` is on meta, but `z1` is on cpu; move"),
        (lambda z: contrastive.supcon_out(z, torch.ones(4), temperature=1), "`labels` must be an array of integers"),
        (lambda z: contrastive.moco(z, z, z.detach(), temperature=1), r"`keys` gets no gradient.*keys.detach\(\)"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_an_error_that_says_what_to_do(call, message):
    with pytest.raises(InputError, match=message):
        call(views()[0])


def test_what_is_stored_as_its_negative_is_read():
    z = views()[0].detach()
    for unusual in (torch._neg_view(-z), torch.complex(z, -z).conj().imag):
        assert unusual.is_neg()
        assert torch.equal(contrastive.nt_xent(unusual, z, temperature=0.3), contrastive.nt_xent(z, z, temperature=0.3))


@sweep("slope", [torch.inf, -torch.inf, torch.nan])
def test_gradients_below_a_slope_that_is_not_finite_are_not(slope):
    for reduction in ("mean", "none"):
        z, temperature = views()[0], torch.tensor(0.3, requires_grad=True)
        rows = contrastive.nt_xent(z, z.detach(), temperature=temperature, reduction=reduction)
        (rows.reshape(-1)[0] * slope).backward()
        assert not z.grad.isfinite().any()
        assert not temperature.grad.isfinite()


def test_a_batch_of_slopes_is_refused_for_rows():
    z1, z2 = views()
    rows = contrastive.nt_xent(z1, z2, temperature=0.3, reduction="none")
    with pytest.raises(InputError, match="nt_xent takes one batch a call"):
        torch.autograd.grad(rows, z1, torch.eye(8, dtype=z1.dtype), is_grads_batched=True)


def test_a_device_that_nothing_reads_is_named():
    z = torch.empty((4, 3), device="meta")
    with pytest.raises(
        UnavailableError, match=r"`z1` is on meta, and nceref computes on the CPU and on CUDA; pass z1.cpu"
    ):
        contrastive.nt_xent(z, z, temperature=0.3)


def on_cuda(tensor):
    """What stands for a tensor on a GPU."""
    return SimpleNamespace(device=torch.device("cuda:0"), ndim=tensor.ndim, detach=tensor.detach, cpu=tensor.cpu)


def test_a_tensor_on_cuda_is_read_by_cupy_or_the_message_says_what_to_install(monkeypatch):
    z = views()[0].detach()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(
        UnavailableError, match=r"`z1` is on cuda:0, where CuPy computes: pip install 'nceref\[cuda12\]', or"
    ):
        contrastive._as_array("z1", on_cuda(z))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(from_dlpack=np.from_dlpack))
    read = contrastive._as_array("z1", on_cuda(z))
    assert read.__array_interface__["data"][0] == z.data_ptr()


def test_another_library_can_compute(monkeypatch):
    strict = pytest.importorskip("array_api_strict", reason="stands in for CuPy")
    monkeypatch.setattr(
        contrastive, "_as_array", lambda name, x: strict.asarray(x.detach().numpy()) if x.ndim else float(x)
    )
    z1, z2 = views()
    temperature = torch.tensor(0.3, requires_grad=True)
    value = contrastive.nt_xent(z1, z2, temperature=temperature)
    value.backward()
    expected, grads = losses.nt_xent.value_and_grad(
        z1.detach().numpy(), z2.detach().numpy(), temperature=float(temperature.detach())
    )
    assert float(value.detach()) == pytest.approx(expected, rel=1e-12)
    assert np.allclose(z1.grad, grads["z1"], rtol=1e-9)
    assert float(temperature.grad) == pytest.approx(grads["temperature"], rel=1e-6)


def test_a_module_learns_its_scale_and_its_encoder():
    torch.manual_seed(0)
    encoder, log_scale = torch.nn.Linear(8, 4), torch.nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.SGD([*encoder.parameters(), log_scale], lr=0.1)
    x = torch.randn(16, 8)
    values = []
    for _ in range(20):
        value = contrastive.clip(encoder(x), encoder(x + 0.1), logit_scale=log_scale.exp())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    assert values[-1] < values[0] / 2
    assert float(log_scale.detach()) > 1


def test_threads_change_nothing_but_rounding():
    z1, z2 = views(1100, 8)
    with config(threads=2):
        contrastive.nt_xent(z1, z2, temperature=0.3).backward()
        grads = losses.nt_xent.value_and_grad(z1.detach().numpy(), z2.detach().numpy(), temperature=0.3)[1]
    assert_same_bits(z1.grad, grads["z1"], "two threads")


def test_functions_are_names_of_the_module(loss_name):
    function = getattr(contrastive, loss_name)
    assert pickle.loads(pickle.dumps(function)) is function is contrastive.get_loss(loss_name)
    assert loss_name in dir(contrastive)


def test_a_loss_of_ones_own_is_a_function_too(tmp_path):
    file = tmp_path / "mine.py"
    text = (
        "from dataclasses import replace\nfrom nceref.family.nt_xent import LOSS\nMINE = replace(LOSS, name='mine')\n"
    )
    file.write_text(text, encoding="utf-8")
    z1, z2 = views()
    value = contrastive.get_loss(f"{file}:MINE")(z1, z2, temperature=0.3)
    assert float(value.detach()) == get_loss("nt_xent")(z1.detach().numpy(), z2.detach().numpy(), temperature=0.3)


def test_a_step_is_measured_beside_pytorch_up_to_a_size(monkeypatch):
    assert re.fullmatch(r"\| 64( \| \d+\.\d\d s, \d+ MiB){2} \| \d+\.\d\d \|", training.line(64, 8, 1))
    monkeypatch.setattr(training, "_measured", lambda *given: {"seconds": [2.0, 1.0], "extra": None})
    assert training.line(64, 8, 1, beside=32) == "| 64 | 1.00 s, unknown | - | - |"


def test_the_example_of_the_module_runs():
    assert doctest.testmod(contrastive).attempted > 4
    assert doctest.testmod(contrastive).failed == 0
