"""PyTorch and JAX targets: recognition, tensors, gradients, and what goes wrong with them."""

import functools
from types import ModuleType

import numpy as np
import pytest
from sweep import sweep
from targets.test_targets import NT_XENT, Z1, Z2, agrees, outcome_of, probe_of

from nceref.errors import InputError, TargetError
from nceref.targets import load, runner
from nceref.targets.recognize import recognize_framework

HALF = {"float32": 2.0**-20, "bfloat16": 2.0**-4}
"""Far above a few roundings in the format, far below a wrong convention."""


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def jax():
    return pytest.importorskip("jax", reason="jax is not installed")


def torch_nt_xent(z1, z2, temperature):
    import torch
    from torch.nn import functional

    z = functional.normalize(torch.cat([z1, z2]), dim=-1)
    logits = (z @ z.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    return functional.cross_entropy(logits, torch.arange(len(z)).roll(len(z1)))


def jax_nt_xent(z1, z2, temperature):
    import jax
    import jax.numpy as jnp

    z = jnp.concatenate([z1, z2])
    z = z / jnp.linalg.norm(z, axis=-1, keepdims=True)
    logits = jnp.where(jnp.eye(len(z), dtype=bool), -jnp.inf, z @ z.T / temperature)
    rows = jnp.arange(len(z))
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - logits[rows, jnp.roll(rows, len(z1))])


def numpy_only(z1, z2, temperature):
    return np.float64(0.0)


# Recognition.


def test_the_framework_is_read_off_the_code(torch):
    def annotated(z1: torch.Tensor, z2, temperature):
        return helper(z1)

    class Module(torch.nn.Module):
        pass

    assert recognize_framework(annotated) == "torch"
    assert recognize_framework(Module) == recognize_framework(Module()) == "torch"
    assert recognize_framework(torch.nn.functional.cross_entropy) == "torch"
    assert recognize_framework(torch_nt_xent) == "torch"
    assert recognize_framework(functools.partial(torch_nt_xent, temperature=1.0)) == "torch"
    assert recognize_framework(numpy_only) == recognize_framework(min) == "numpy"
    assert recognize_framework(min, frozenset({"jnp", "f"})) == "jax"


def helper(z):
    import torch

    return torch.sum(z)


def test_two_frameworks_at_once_are_refused(torch, jax):
    def both(z1, z2, temperature):
        return torch.tensor(jax.numpy.sum(z1))

    with pytest.raises(TargetError, match="both uses both jax and torch; choose with --framework"):
        recognize_framework(both)


def test_a_library_for_all_frameworks_is_no_evidence_of_one():
    def is_array_of_others(x):
        import jax
        import torch

        return isinstance(x, jax.Array | torch.Tensor)

    is_array_of_others.__module__ = "array_api_compat.common"
    assert recognize_framework(lambda x: is_array_of_others(x)) == "numpy"


@pytest.mark.parametrize(
    ("body", "framework"),
    [
        ("np.mean(unit(queries) @ unit(keys).T, axis=1)", "numpy"),
        ("unit(queries).sum() / temperature", "numpy"),
        ("queries.norm(dim=1) @ unit(keys).T", "torch"),
        ("queries.logsumexp(1) / np.log(2)", "torch"),
        ("torch.exp(queries) * np.float64(2)", "torch"),
    ],
)
def test_a_numpy_function_may_stand_in_a_file_that_imports_another_framework(body, framework):
    """What names axes as NumPy does, also in what it calls, is NumPy; a method alone may be of either."""
    around = {"np": np, "torch": ModuleType("torch")}
    exec("def unit(x):\n    return x / np.linalg.norm(x, axis=1, keepdims=True)", around)
    exec(f"def target(queries, keys, temperature):\n    return {body}", around)
    assert recognize_framework(around["target"]) == framework


# Value and gradients.


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_torch_is_differentiated_in_the_dtype_of_the_run(torch, dtype):
    probe, outcome = probe_of(dtype=dtype), outcome_of(torch_nt_xent, probe_of(dtype=dtype))
    assert sorted(outcome.grads) == ["temperature", "z1", "z2"]
    close(outcome, probe, HALF.get(dtype, 1e-13))


@sweep("dtype", ["float64", "float32", "bfloat16"])
@sweep("jitted", [False, True])
def test_jax_is_differentiated_in_the_dtype_of_the_run(jax, dtype, jitted):
    probe = probe_of(dtype=dtype)
    outcome = outcome_of(jax.jit(jax_nt_xent) if jitted else jax_nt_xent, probe)
    assert sorted(outcome.grads) == ["temperature", "z1", "z2"]
    close(outcome, probe, HALF.get(dtype, 1e-13))


def close(outcome, probe, tolerance):
    assert abs(outcome.value - probe.value) < tolerance * abs(probe.value)
    for name, grad in outcome.grads.items():
        assert np.max(np.abs(grad - probe.grads[name])) < tolerance * np.max(np.abs(probe.grads[name])), name


def test_a_float32_run_shows_that_it_is_one(torch):
    assert outcome_of(torch_nt_xent, probe_of(dtype="float32")).value != probe_of().value


def test_a_module_is_moved_into_the_dtype_and_the_users_object_stays(torch):
    class Scaled(torch.nn.Module):
        def __init__(self, temperature=0.5):
            super().__init__()
            self.temperature = temperature
            self.register_buffer("one", torch.ones(1))

        def forward(self, a, b):
            assert self.one.dtype == a.dtype
            return torch_nt_xent(a, b, self.temperature) * self.one

    assert agrees(outcome_of(Scaled)) == ["z1", "z2"]
    instance = Scaled()
    assert load.resolve_target(instance, NT_XENT.declaration).fixed == {"temperature": 0.5}
    assert agrees(outcome_of(instance)) == ["z1", "z2"]
    assert instance.one.dtype == torch.float32


def test_an_input_that_the_graph_does_not_reach_has_zeros(torch):
    outcome = outcome_of(lambda z1, z2, temperature: torch_nt_xent(z1, z2.detach(), float(temperature)))
    assert not np.any(outcome.grads["z2"])
    assert outcome.grads["temperature"] == 0
    assert np.any(outcome.grads["z1"])
    detached = outcome_of(lambda z1, z2, temperature: torch_nt_xent(z1, z2, temperature).detach())
    assert not np.any(detached.grads["z1"])


def test_a_declared_constant_shows_its_gradient(torch):
    from torch.nn.functional import cross_entropy, normalize

    def attached(queries, keys, queue, temperature):
        q, k, n = (normalize(x, dim=-1) for x in (queries, keys, queue))
        logits = torch.cat([(q * k).sum(-1, keepdim=True), q @ n.T], dim=1) / temperature
        return cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))

    def detached(queries, keys, queue, temperature):
        return attached(queries, keys.detach(), queue.detach(), temperature)

    probe = probe_of("moco", queries=Z1, keys=Z2, queue=Z2[:2] + 1, temperature=0.5)
    assert np.any(outcome_of(attached, probe).grads["queue"])
    outcome = outcome_of(detached, probe)
    assert not np.any(outcome.grads["queue"])
    assert not np.any(outcome.grads["keys"])
    assert np.allclose(outcome.grads["queries"], probe.grads["queries"], rtol=1e-12)


def test_labels_are_integers_and_rows_are_summed(torch):
    probe = probe_of("cross_entropy", logits=Z1, target=np.array([0, 2, 1, 1]))
    target = "torch.nn:CrossEntropyLoss"
    assert agrees(outcome_of(target, probe), probe) == ["logits"]
    rows = NT_XENT(Z1, Z2, temperature=0.5, reduction="none")
    probe = probe_of(reduction="none")
    outcome = outcome_of(
        lambda z1, z2, temperature: torch.stack([torch_nt_xent(z1, z2, temperature)] * 8), probe, framework="torch"
    )
    assert outcome.value.shape == rows.shape
    assert np.allclose(outcome.grads["z1"], 8 * probe_of().grads["z1"], rtol=1e-12)


def test_a_scalar_tensor_that_is_refused_becomes_a_float(torch):
    def strict(z1, z2, temperature):
        if not isinstance(temperature, float):
            msg = "temperature must be a float"
            raise TypeError(msg)
        return torch_nt_xent(z1, z2, temperature)

    outcome = outcome_of(strict)
    assert agrees(outcome) == ["z1", "z2"]
    assert outcome.unjudged == {"temperature": "the target refuses a tensor (TypeError: temperature must be a float)"}
    outcome = outcome_of(torch_nt_xent, floats=("temperature",))
    assert outcome.unjudged == {"temperature": "the target takes it as a plain number"}


def test_the_loss_is_taken_out_of_what_is_returned(torch):
    assert agrees(outcome_of(lambda a, b, t: {"loss": torch_nt_xent(a, b, t), "temperature": t}))
    assert agrees(outcome_of(lambda z1, z2, temperature: (torch_nt_xent(z1, z2, temperature), z1 @ z2.T)))
    outcome = outcome_of(lambda z1, z2, temperature: (torch_nt_xent(z1, z2, temperature), temperature))
    assert outcome.trouble == "wrong-shape"
    assert outcome.sentence.endswith("say with --call which is the loss: [0] or [1]")
    assert agrees(outcome_of(lambda a, b, t: (torch_nt_xent(a, b, t), t), call="f(z1, z2, temperature)[0]"))


# What goes wrong.


def test_a_python_float_has_a_value_and_no_gradient(torch):
    outcome = outcome_of(lambda z1, z2, temperature: torch_nt_xent(z1, z2, temperature).item())
    assert agrees(outcome) == []
    assert outcome.remarks == {"python-float": "returns a float, not a tensor: no gradient can flow back from it"}
    assert outcome.unjudged["z1"] == "it returns a float"


def test_what_cannot_be_differentiated_is_remarked(torch):
    def through_numpy(z1, z2, temperature):
        value = NT_XENT(z1.numpy(), z2.numpy(), temperature=float(temperature))
        return torch.tensor(value, dtype=z1.dtype)

    outcome = outcome_of(through_numpy)
    assert agrees(outcome) == []
    assert "Can't call numpy()" in outcome.remarks["not-differentiable"]
    assert set(outcome.unjudged) == {"z1", "z2", "temperature"}


def test_writing_into_an_activation_is_seen_and_not_an_error(torch):
    def in_place(z1, z2, temperature):
        z1 *= 1
        z1 += 0
        return torch_nt_xent(z1.div_(2.0), z2, temperature)

    outcome = outcome_of(in_place)
    assert outcome.remarks == {"modifies-inputs": "changes `z1` in place"}
    assert agrees(outcome) == ["temperature", "z1", "z2"], "a cosine does not see the length of z1"


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_torch_target_that_replaces_what_compares_tensors_hides_no_write(torch, monkeypatch, dtype):
    # What the target replaces is put back by the test: `attempt` does so for NumPy.
    for place, name in ((torch, "equal"), (torch.Tensor, "clone")):
        monkeypatch.setattr(place, name, getattr(place, name))

    def hides(z1, z2, temperature):
        value = torch_nt_xent(z1, z2, temperature)
        z1.data.mul_(2)
        z1.data.div_(4)
        torch.equal = lambda *args: True
        torch.Tensor.clone = lambda self: self
        return value

    def reshapes(z1, z2, temperature):
        value = torch_nt_xent(z1, z2, temperature)
        z1.data = z1.data.flatten()
        return value

    for target in (hides, reshapes):
        outcome = outcome_of(target, probe_of(dtype=dtype), framework="torch")
        assert outcome.remarks.get("modifies-inputs") == "changes `z1` in place", (target, outcome)


def test_noise_is_not_reseeded(torch):
    noisy = outcome_of(lambda z1, z2, temperature: torch_nt_xent(z1, z2, temperature) + torch.rand(()), twice=True)
    assert "not-deterministic" in noisy.remarks


def test_gradients_are_on_even_where_the_caller_has_switched_them_off(torch):
    with torch.no_grad():
        assert agrees(outcome_of(torch_nt_xent)) == ["temperature", "z1", "z2"]
    with torch.inference_mode():
        assert agrees(outcome_of(torch_nt_xent)) == ["temperature", "z1", "z2"]


def test_a_device_that_is_not_there_is_refused(torch):
    with pytest.raises(InputError, match="`device` is 'no-such-device', which torch cannot use here"):
        outcome_of(torch_nt_xent, device="no-such-device")


def test_a_framework_that_is_not_installed_is_named(monkeypatch):
    probe = probe_of()
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with (
        runner.in_process(numpy_only, NT_XENT.declaration, framework="jax") as run,
        pytest.raises(ImportError, match="framework is jax, which is not installed: pip install jax"),
    ):
        run(probe)


def test_jax_tells_what_it_cannot_trace(jax):
    outcome = outcome_of(lambda z1, z2, temperature: float(jax_nt_xent(z1, z2, temperature)))
    assert agrees(outcome) == []
    assert list(outcome.remarks) == ["python-float"]

    def strict(z1, z2, temperature):
        assert isinstance(temperature, float)
        return {"loss": jax_nt_xent(z1, z2, temperature)}

    outcome = outcome_of(strict)
    assert agrees(outcome) == ["z1", "z2"]
    assert "refuses a tensor" in outcome.unjudged["temperature"]
