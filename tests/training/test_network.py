"""Layers and optimizers: every backward pass against complex steps, ensembles against their members one by one."""

import numpy as np
import pytest
from sweep import sweep

from nceref.errors import InputError
from nceref.training import SGD, Adam, Linear, Network, Normalize, ReLU, Tanh, mlp
from nceref.training.network import initial

STEP = 1e-30
"""Of a complex step: its square vanishes beside 1, so the derivative is exact to rounding."""
LAYERS = {
    "linear": Linear(3, 4),
    "linear without bias": Linear(3, 4, bias=False),
    "tanh": Tanh(),
    "relu": ReLU(),
    "normalize": Normalize(),
    "network": mlp((3, 5, 4, 2), activation=Tanh, normalize=True),
    "network of relu": mlp((3, 6, 2)),
}


def drawn(layer, members=2, rows=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((members, rows, 3)), [rng.standard_normal((members, *shape)) for shape in layer.shapes]


def by_complex_step(f, x):
    """Derivative of the real function f by every entry of x."""
    gradients = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[i] += 1j * STEP
        gradients[i] = f(moved).imag / STEP
    return gradients


@sweep("name", LAYERS)
def test_backward_passes_are_complex_steps_of_forward_passes(name):
    layer = LAYERS[name]
    x, parameters = drawn(layer)
    value, vjp = layer(x, *parameters)
    cotangent = np.random.default_rng(1).standard_normal(value.shape)
    g, gradients = vjp(cotangent)
    everything = [x, *parameters]
    for k, (array, actual) in enumerate(zip(everything, (g, *gradients), strict=True)):
        expected = by_complex_step(
            lambda moved, k=k: (layer(*everything[:k], moved, *everything[k + 1 :])[0] * cotangent).sum(), array
        )
        assert actual.shape == array.shape
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@sweep("name", LAYERS)
def test_an_ensemble_is_its_members_one_by_one(name):
    layer = LAYERS[name]
    x, parameters = drawn(layer, members=3)
    value, vjp = layer(x, *parameters)
    g, gradients = vjp(value)
    for e in range(3):
        own, back = layer(x[e], *(w[e] for w in parameters))
        np.testing.assert_allclose(value[e], own, rtol=1e-13)
        g_own, gradients_own = back(own)
        np.testing.assert_allclose(g[e], g_own, rtol=1e-11, atol=1e-13)
        for a, b in zip(gradients, gradients_own, strict=True):
            np.testing.assert_allclose(a[e], b, rtol=1e-11, atol=1e-13)


def test_unit_rows_at_the_ends_of_the_range():
    x = np.array([[3e200, 4e200], [3e-200, 4e-200]])
    np.testing.assert_allclose(Normalize()(x)[0], [[0.6, 0.8]] * 2, rtol=1e-15)


def test_a_row_of_zeros_has_no_direction():
    with pytest.raises(InputError, match=r"row \(1,\) of the features is zero"):
        Normalize()(np.array([[1.0, 0.0], [0.0, 0.0]]))


def test_relu_at_0_has_slope_0():
    _, vjp = ReLU()(np.array([[0.0, -1.0, 2.0]]))
    assert vjp(np.ones((1, 3)))[0].tolist() == [[0.0, 0.0, 1.0]]


def test_relu_passes_nan_on():
    value, vjp = ReLU()(np.array([[np.nan, -1.0, 2.0]]))
    np.testing.assert_array_equal(value, [[np.nan, 0.0, 2.0]])
    np.testing.assert_array_equal(vjp(np.ones((1, 3)))[0], [[1.0, 0.0, 1.0]])


def test_layers_inside_a_network_inside_a_network_keep_their_range():
    inner = mlp((100, 4, 50), bias=False)
    weights = initial(Network((inner, Linear(50, 2, bias=False))), (0, 1))
    flat = initial(Network((*inner.layers, Linear(50, 2, bias=False))), (0, 1))
    for a, b in zip(weights, flat, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.abs(weights[1]).max() > 0.4


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"rows of shape \(1, 5, 4\) do not go into Linear\(inputs=3"):
        Linear(3, 2)(np.zeros((1, 5, 4)), np.zeros((1, 2, 3)), np.zeros((1, 2)))


def test_initial_weights_depend_on_the_seed_alone_and_keep_their_range():
    network = mlp((4, 9, 2))
    both = initial(network, (5, 6))
    assert [w.shape for w in both] == [(2, 9, 4), (2, 9), (2, 2, 9), (2, 2)]
    for a, b in zip(both, initial(network, (6,)), strict=True):
        np.testing.assert_array_equal(a[1], b[0])
    assert 0.4 < np.abs(both[0]).max() <= 0.5
    assert np.abs(both[2]).max() <= 1 / 3


def test_a_network_needs_two_sizes():
    with pytest.raises(InputError, match=r"`sizes` must name at least 2 layers, .* got \(3,\)"):
        mlp((3,))


def test_dtype_stays():
    network = Network((Linear(2, 3), ReLU(), Linear(3, 2), Normalize()))
    parameters = initial(network, (0,), "float32")
    value, vjp = network(np.ones((1, 4, 2), np.float32), *parameters)
    g, gradients = vjp(value)
    assert {a.dtype for a in (value, g, *gradients)} == {np.dtype(np.float32)}
    for optimizer in (SGD((0.1,), momentum=0.9), Adam((0.1,))):
        moved, _ = optimizer.step(parameters, gradients, optimizer.start(parameters), 1)
        assert {a.dtype for a in moved} == {np.dtype(np.float32)}


def test_momentum_by_hand():
    w, state = (np.array([[1.0]]),), SGD(0.1, momentum=0.5).start((np.array([[1.0]]),))
    w, state = SGD(0.1, momentum=0.5).step(w, (np.array([[2.0]]),), state, 1)
    assert w[0].item() == pytest.approx(1 - 0.1 * 2)
    w, state = SGD(0.1, momentum=0.5).step(w, (np.array([[2.0]]),), state, 2)
    assert w[0].item() == pytest.approx(0.8 - 0.1 * (0.5 * 2 + 2))


def test_adam_starts_with_steps_of_the_rate():
    optimizer = Adam(0.1)
    w = (np.array([[1.0, -1.0]]),)
    moved, _ = optimizer.step(w, (np.array([[3.0, -0.01]]),), optimizer.start(w), 1)
    np.testing.assert_allclose(moved[0], [[0.9, -0.9]], rtol=1e-6)


def test_adam_by_hand_after_two_steps():
    optimizer, w = Adam(0.1, first=0.5, second=0.75, epsilon=1e-8), (np.array([[0.0]]),)
    state = optimizer.start(w)
    for count, g in enumerate((1.0, 3.0), 1):
        w, state = optimizer.step(w, (np.array([[g]]),), state, count)
    mean, square = (0.25 * 1 + 0.5 * 3) / (1 - 0.5**2), (0.1875 * 1 + 0.25 * 9) / (1 - 0.75**2)
    assert w[0].item() == pytest.approx(-0.1 - 0.1 * mean / square**0.5, rel=1e-7)


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_a_rate_for_each_member(optimizer):
    w, g = (np.ones((2, 3, 1)), np.ones((2, 3))), (np.ones((2, 3, 1)), np.ones((2, 3)))
    rates = optimizer((0.1, 0.2))
    for e, rate in enumerate(rates.rate):
        alone = optimizer(rate)
        both, _ = rates.step(w, g, rates.start(w), 1)
        own, _ = alone.step(w, g, alone.start(w), 1)
        for a, b in zip(both, own, strict=True):
            np.testing.assert_allclose(a[e], b[e], rtol=1e-15)


@sweep(
    ("make", "message"),
    [
        (lambda: SGD(0.0), "`rate` must be > 0 and finite, got 0.0"),
        (lambda: SGD(()), r"`rate` must be > 0 and finite, got \(\)"),
        (lambda: SGD("0.1"), "`rate` must be real numbers, got <U3"),
        (lambda: Adam((0.1, 0.2)).start((np.zeros((3, 2)),)), r"for each of 3 members, got \(0.1, 0.2\)"),
        (lambda: SGD((0.1, float("nan"))), "`rate` must be > 0"),
        (lambda: SGD(momentum=1.0), "`momentum` must be >= 0 and < 1, got 1.0"),
        (lambda: Adam(second=-0.1), "`second` must be >= 0 and < 1, got -0.1"),
        (lambda: Adam(epsilon=0.0), "`epsilon` must be > 0, got 0.0"),
    ],
)
def test_senseless_optimizers_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
