"""How a program enters the catalogue, and the gradients that the harness gives it."""

import inspect
from types import ModuleType

import numpy as np
import pytest

from mutants import bug as harness
from mutants.bug import bug, bugs, correct, slopes, target
from nceref.errors import DeclarationError


def test_the_name_is_the_id_and_the_docstring_the_sentence():
    @bug("nt_xent", named="views-interleaved+log-base-2", seen="a re-implementation")
    def bits_in_turns(z1, z2, *, temperature):
        """Two bugs at once."""

    program = bits_in_turns.entry
    assert (program.id, program.sentence) == ("bits-in-turns", "Two bugs at once.")
    assert program.named == ("views-interleaved", "log-base-2")
    assert program.function is bits_in_turns


def test_an_id_that_two_files_declare_is_refused(monkeypatch):
    def module(name):
        @correct("nt_xent")
        def twice(z1, z2, *, temperature):
            """Declared in two files."""

        made = ModuleType(name)
        made.twice = twice
        return made

    monkeypatch.setattr("nceref.registry.names", lambda package: ("one", "two"))
    monkeypatch.setattr("importlib.import_module", module)
    with pytest.raises(DeclarationError, match="two declares 'twice'"):
        harness._collected("package")


def torch_self_kept(torch, z1, z2, temperature):
    z = torch.nn.functional.normalize(torch.cat([z1, z2]))
    return torch.nn.functional.cross_entropy(z @ z.T / temperature, torch.arange(2 * len(z1)).roll(len(z1)))


def torch_keys_detached(torch, queries, keys, temperature):
    unit = torch.nn.functional.normalize
    logits = unit(queries) @ unit(keys.detach()).T / temperature
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)))


def torch_both_added(torch, image, text, logit_scale):
    unit, cross_entropy = torch.nn.functional.normalize, torch.nn.functional.cross_entropy
    logits, labels = logit_scale * unit(image) @ unit(text).T, torch.arange(len(image))
    return cross_entropy(logits, labels) + cross_entropy(logits.T, labels)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("nt-xent-own-logit-kept", torch_self_kept),
        ("info-nce-keys-from-no-grad", torch_keys_detached),
        ("clip-both-ways-added", torch_both_added),
    ],
)
def test_the_complex_step_gives_the_gradient_of_autodiff(name, twin):
    torch = pytest.importorskip("torch", reason="compares with torch's autodiff")
    program = bugs()[name]
    rng = np.random.default_rng(7)
    inputs = {n: rng.standard_normal((4, 3)) for n in inspect.signature(program.function).parameters}
    inputs[list(inputs)[-1]] = 0.3
    leaves = {n: torch.tensor(x, dtype=torch.float64, requires_grad=True) for n, x in inputs.items()}
    loss = twin(torch, **leaves)
    loss.backward()
    value, grads = target(program)(**inputs)
    assert value == pytest.approx(loss.item(), rel=1e-14)
    for n, leaf in leaves.items():
        expected = np.zeros_like(inputs[n]) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(grads[n], expected, rtol=1e-12, atol=1e-14)


def test_the_complex_step_gives_central_differences():
    rng = np.random.default_rng(7)
    inputs = {"z1": rng.standard_normal((3, 2)), "z2": rng.standard_normal((3, 2)), "temperature": 0.3}
    program = bugs()["nt-xent-own-logit-kept"]
    _, grads = target(program)(**inputs)
    for name, grad in grads.items():
        direction = rng.standard_normal(np.shape(grad))
        up, down = (program.function(**{**inputs, name: inputs[name] + h * direction}) for h in (1e-6, -1e-6))
        assert np.sum(grad * direction) == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_a_float32_program_stays_in_float32():
    dtypes = []

    @bug("nt_xent", named="")
    def program(z1, z2, *, temperature):
        dtypes.append(np.result_type(z1, z2, temperature))
        return np.sum(z1 * z2) / temperature

    row = np.ones((2, 3), dtype=np.float32)
    _, grads = target(program.entry)(row, row, temperature=0.1)
    # Gradients are computed when they are read.
    assert set(dtypes) == {np.dtype(np.float32)}
    assert grads["z1"].dtype == np.float32
    assert set(dtypes) == {np.dtype(np.float32), np.dtype(np.complex64)}


def test_tiny_gradients_are_not_lost_in_float32():
    x = np.full((1, 2), 1e-3, dtype=np.float32)
    grad = slopes(lambda x: np.sum(x * np.float32(1e-28)), {"x": x}, ["x"])["x"]
    np.testing.assert_allclose(grad, 1e-28, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "slope"),
    [(harness.softplus, [1 / (1 + np.exp(-1)), 1.0, 1 / (1 + np.exp(3))]), (harness.logsumexp, [0.0, 1.0, 0.0])],
)
def test_functions_of_the_framework_keep_derivatives(function, slope):
    x = np.array([[1.0, 800.0, -3.0]])
    grad = slopes(lambda x: np.sum(function(x)), {"x": x}, ["x"])["x"]
    np.testing.assert_allclose(grad, [slope], atol=1e-15)


def test_the_log_of_an_empty_sum_is_minus_infinity_as_in_frameworks():
    with np.errstate(divide="ignore"):
        sums = harness.logsumexp(np.array([[-np.inf, -np.inf], [0.0, 0.0]]))
    np.testing.assert_array_equal(sums, [-np.inf, np.log(2.0)])
