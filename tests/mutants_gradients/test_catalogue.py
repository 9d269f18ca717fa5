"""The catalogue `gradients`: what each program does, found without the verifier.

Value and gradients are compared with those of the reference; those of a program whose value is wrong, with central
differences of its own value along random directions. Each framework that is not installed skips its programs.
"""

from importlib.util import find_spec

import numpy as np
import pytest

from mutants.bug import gradient_programs
from nceref import get_loss
from nceref.losses import differentiable
from nceref.spec import Array, Labels

N, C, D, M = 9, 4, 5, 6
SEEDS = (0, 1, 2)
RIGHT, WRONG = 1e-9, 1e-3
"""Relative errors: what rounding may do, which is less, and what a change must do, which is more."""
FRAMEWORKS = ("numpy", "torch", "jax")


def inputs(program, seed):
    """Random arguments of a program."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((N, D))
    labels = np.arange(N) % C
    drawn = {
        **dict.fromkeys(("z1", "queries", "image", "x", "embeddings"), rows),
        **dict.fromkeys(("z2", "keys", "text", "y"), rows + random.standard_normal((N, D))),
        **dict.fromkeys(("queue", "negatives"), random.standard_normal((M, D))),
        **dict.fromkeys(("class_weights", "centers"), random.standard_normal((C, D))),
        **dict.fromkeys(("labels", "target"), labels),
        "logits": 2 * random.standard_normal((N, C)),
        "class_counts": np.array([5.0, 40.0, 2.0, 11.0]),
        "data_logits": random.standard_normal(N),
        "noise_logits": random.standard_normal(M),
        "data_log_noise": random.standard_normal(N),
        "noise_log_noise": random.standard_normal(M),
        "temperature": 0.1 + 0.3 * random.random(),
        "logit_scale": 3 + 10 * random.random(),
        "logit_bias": -1.5,
        "margin": 0.3,
        "scale": 6.0,
        "alpha": 0.4,
        "t": 1.5,
        "exponent": 2.0,
        "noise_ratio": 3.0,
        "fraction": 0.4,
        "sigma": 0.5,
        "positive_prior": 0.05,
        "concentration": 0.5,
    }
    return {name: drawn[name] for name in signature(program) if name in drawn}


def signature(program):
    code = program.function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def gradient_names(program, given):
    """Names of what may get a gradient: the differentiable inputs, and rows that must get none."""
    loss = get_loss(program.loss).declaration
    constant_rows = [p.name for p in loss.parameters if isinstance(p, Array) and p.embedding and p.constant]
    return [name for name in (*differentiable(loss), *constant_rows) if name in given]


def constants(program):
    parameters = get_loss(program.loss).declaration.parameters
    return {p.name for p in parameters if isinstance(p, Array) and p.constant}


def called(program, given):
    """The value and the gradients of a program, as its framework computes them."""
    names = gradient_names(program, given)
    value, grads = {"numpy": of_numpy, "torch": of_torch, "jax": of_jax}[program.framework](program, given, names)
    return float(value), {n: np.asarray(grads[n], dtype=np.float64) for n in names if grads.get(n) is not None}


def of_numpy(program, given, names):
    held = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in given.items()}
    value, grads = program.function(**held)
    assert all(np.array_equal(held[n], x) for n, x in given.items()), "it writes into its inputs"
    assert set(names) - constants(program) == set(grads)
    return value, grads


def of_torch(program, given, names):
    import torch

    arrays = {n: np.asarray(x) if n in names else x for n, x in given.items()}
    tensors = {n: torch.tensor(x) if isinstance(x, np.ndarray) else x for n, x in arrays.items()}
    leaves = [tensors[n].requires_grad_() for n in names]
    loss = program.function(**tensors)
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    return loss.detach(), {
        n: torch.zeros_like(x) if g is None else g for n, x, g in zip(names, leaves, grads, strict=True)
    }


def of_jax(program, given, names):
    import jax

    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable(True):
        arrays = {n: jax.numpy.asarray(x) if isinstance(x, np.ndarray) or n in names else x for n, x in given.items()}
        value, vjp = jax.vjp(lambda moved: program.function(**{**arrays, **moved}), {n: arrays[n] for n in names})
        return float(value), {n: np.asarray(g) for n, g in vjp(jax.numpy.ones_like(value))[0].items()}


def reference(program, given):
    """Value and gradients of the reference; constants get zeros."""
    value, grads = get_loss(program.loss).value_and_grad(**given, **program.settings)
    return value, {n: grads.get(n, np.zeros(np.shape(given[n]))) for n in gradient_names(program, given)}


def along(program, given, grads):
    """Slopes along random directions: from the gradients, and central differences of the program's own value.

    Constants, which should get no gradient, have the slope 0 in place of the difference.
    """
    random, step = np.random.default_rng(0), 1e-5
    from_gradient, from_value = {}, {}
    for name, grad in grads.items():
        directions = [random.standard_normal(grad.shape) for _ in range(2)]
        from_gradient[name] = np.array([np.sum(grad * d) for d in directions])
        from_value[name] = np.zeros(len(directions))
        if name not in constants(program):
            moved = [[np.float64(given[name]) + sign * step * d for sign in (1, -1)] for d in directions]
            values = [[called(program, {**given, name: x})[0] for x in pair] for pair in moved]
            from_value[name] = np.array([up - down for up, down in values]) / (2 * step)
    return from_gradient, from_value


def error(got, expected):
    """The largest difference, relative to the largest entry; of zeros, the difference itself."""
    size = np.max(np.abs(expected))
    return np.max(np.abs(got - expected)) / (size if size else 1)


def programs(framework, folder):
    if find_spec(framework) is None:
        pytest.skip(f"needs {framework}")
    chosen = [p for p in gradient_programs().values() if p.framework == framework and f".{folder}." in p.address]
    assert chosen
    return chosen


def assert_gradients(program, grads, expected, room):
    """Those in `wrong` differ, and all others agree."""
    errors = {name: error(grads[name], expected[name]) for name in grads}
    differ = {name for name, x in errors.items() if x > WRONG}
    assert differ == set(program.wrong), (program.id, errors)
    assert all(x <= room for name, x in errors.items() if name not in program.wrong), (program.id, errors)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_wrong_gradient_stands_under_a_right_value(framework):
    for program in programs(framework, "wrong"):
        assert program.wrong, program.id
        for seed in SEEDS:
            given = inputs(program, seed)
            (value, grads), (right, expected) = called(program, given), reference(program, given)
            assert abs(value - right) <= RIGHT * max(abs(right), 1), program.id
            assert_gradients(program, grads, expected, RIGHT)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_three_changes_make_the_value_wrong(framework):
    for program in programs(framework, "triples"):
        off = []
        for seed in SEEDS:
            given = inputs(program, seed)
            (value, grads), (right, _) = called(program, given), reference(program, given)
            off.append(abs(value - right) / max(abs(right), 1))
        # On some draw a change may happen to do little.
        assert sorted(off)[1] > WRONG, (program.id, off)
        assert_gradients(program, *along(program, given, grads), 1e-6)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_correct_program_agrees_in_value_and_gradients(framework):
    for program in programs(framework, "right"):
        for seed in SEEDS:
            given = inputs(program, seed)
            (value, grads), (right, expected) = called(program, given), reference(program, given)
            assert abs(value - right) <= RIGHT * max(abs(right), 1), program.id
            assert_gradients(program, grads, expected, RIGHT)


def test_what_is_wrong_is_said_in_names_of_inputs():
    for program in gradient_programs().values():
        declared = get_loss(program.loss).declaration.parameters
        assert set(program.wrong) <= {p.name for p in declared if not isinstance(p, Labels)}, program.id
        assert program.sentence.endswith("."), program.id
