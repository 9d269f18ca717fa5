from functools import partial
from math import cos, exp, log, log1p, pi, sin, sqrt

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import arcface
from nceref.tolerance import bounds, close

M, S = 0.5, 2.0
X, TARGET = np.array([[1.0, 0.0]]), np.array([0])


def test_right_angle_to_the_target_and_other_class_on_the_embedding():
    """dL_i/dcos theta_y = (p_y - 1) s sin(theta_y + m) / sin(theta_y), (p_y - 1) s past the linear fallback;
    dL_i/dcos theta_k = p_k s;
    dL_i/ds = sum_k p_k c_k - c_y,  p = softmax(s c),
    c the cosines with the margin: c_y = cos(theta_y + m) or its fallback"""
    # theta = pi/2: cos(theta + m) = -sin m and the slope sin(theta + m) / sin(theta) = cos m; the other cosine is 1.
    # The other class weight is parallel to x: its tangential part, and that of x at it, are 0.
    value, grad = arcface.value_and_grad(X, np.array([[0.0, 1.0], [1.0, 0.0]]), TARGET, margin=M, scale=S)
    missed = 1 / (1 + exp(-S * (1 + sin(M))))
    assert set(grad) == {"embeddings", "class_weights", "scale"}
    assert close(value, log(1 + exp(S * (1 + sin(M)))))
    assert close(grad["embeddings"], np.array([[0, -missed * S * cos(M)]]))
    assert close(grad["class_weights"], np.array([[-missed * S * cos(M), 0], [0, 0]]))
    assert close(grad["scale"], missed * (1 + sin(M)))


def test_margin_zero_compares_plain_cosines():
    assert close(arcface(X, np.array([[0.0, 1.0], [1.0, 0.0]]), TARGET, margin=0.0, scale=S), log(1 + exp(S)))


def test_margin_defaults_to_half_and_scale_to_64():
    assert close(arcface(X, np.array([[0.0, 1.0], [-1.0, 0.0]]), TARGET), log1p(exp(64 * (sin(0.5) - 1))), ulps=128)


@pytest.mark.parametrize("fallback", ["none", "linear"])
def test_target_passes_no_gradient_at_angle_zero(fallback):
    # cos(0 + m) = cos m, while sin(theta + m) / sin(theta) diverges: its tangential part is named 0.
    # What is left comes from the other class at cosine 0.
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    value, grad = arcface.value_and_grad(X, weights, TARGET, margin=M, scale=S, fallback=fallback)
    missed = 1 / (1 + exp(S * cos(M)))
    assert close(value, log(1 + exp(-S * cos(M))))
    assert close(grad["embeddings"], np.array([[0, missed * S]]))
    assert close(grad["class_weights"], np.array([[0, 0], [missed * S, 0]]))
    assert close(grad["scale"], -missed * cos(M))


@pytest.mark.parametrize(("fallback", "psi"), [("none", -cos(M)), ("linear", -1 - M * sin(M))])
def test_target_passes_no_gradient_at_angle_pi(fallback, psi):
    weights = np.array([[-1.0, 0.0], [0.0, 1.0]])
    value, grad = arcface.value_and_grad(X, weights, TARGET, margin=M, scale=S, fallback=fallback)
    missed = 1 / (1 + exp(S * psi))
    assert close(value, log(1 + exp(-S * psi)))
    assert close(grad["embeddings"], np.array([[0, missed * S]]))
    assert close(grad["class_weights"], np.array([[0, 0], [missed * S, 0]]))
    assert close(grad["scale"], -missed * psi)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_target_passes_no_gradient_at_a_pole_without_normalization(side):
    # Its radial part is left out too; the other class has probability 1 / (1 + e^(S side cos m)).
    weights = np.array([[side, 0.0], [0.0, 1.0]])
    _, grad = arcface.value_and_grad(X, weights, TARGET, margin=M, scale=S, normalize="none")
    missed = 1 / (1 + exp(S * side * cos(M)))
    assert close(grad["embeddings"], np.array([[0, missed * S]]))
    assert close(grad["class_weights"], np.array([[0, 0], [missed * S, 0]]))


# theta = 2 pi / 3 with m = pi / 2 lies past pi - m; the other class stands at a right angle, on the far side.
PAST = np.array([[-1 / 2, sqrt(3) / 2], [0.0, -1.0]])


def test_past_pi_minus_margin_the_printed_formula_pushes_the_target_away():
    # cos(7 pi / 6) = -sqrt(3) / 2, slope sin(7 pi / 6) / sin(2 pi / 3) = -1 / sqrt(3): farther is better.
    # Tangential parts at x: (0, sqrt(3) / 2) of the target and (0, -1) of the other class.
    value, grad = arcface.value_and_grad(X, PAST, TARGET, margin=pi / 2, scale=S, fallback="none")
    missed = 1 / (1 + exp(-S * sqrt(3) / 2))
    assert close(value, log(1 + exp(S * sqrt(3) / 2)))
    assert close(grad["embeddings"], np.array([[0, missed * S * (1 / 2 - 1)]]), scale=1)
    assert close(grad["scale"], missed * sqrt(3) / 2)


def test_past_pi_minus_margin_the_linear_fallback_pulls_the_target():
    # cos(theta) - m sin(m) = -1/2 - pi/2 with slope 1.
    value, grad = arcface.value_and_grad(X, PAST, TARGET, margin=pi / 2, scale=S, fallback="linear")
    missed = 1 / (1 + exp(-S * (1 / 2 + pi / 2)))
    assert close(value, log(1 + exp(S * (1 / 2 + pi / 2))))
    assert close(grad["embeddings"], np.array([[0, -missed * S * (sqrt(3) / 2 + 1)]]), scale=1)
    assert close(grad["scale"], missed * (1 / 2 + pi / 2))


def test_fallback_changes_nothing_before_pi_minus_margin():
    weights = np.array([[0.0, 1.0], [1.0, 0.0]])
    printed, linear = (arcface(X, weights, TARGET, margin=M, scale=S, fallback=f) for f in ("none", "linear"))
    assert printed == linear


def test_cotangent_weighs_the_rows_and_sum_adds_them():
    # Rows: x = (1, 0) misses class 0 by S (1 + sin m); x = (0, 1) is on class 0 with the other class at cosine 0.
    x, weights, target = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 0])
    expected = np.array([log(1 + exp(S * (1 + sin(M)))), log(1 + exp(-S * cos(M)))])
    assert close(arcface(x, weights, target, margin=M, scale=S, reduction="sum"), sum(expected))
    rows, grad = arcface.value_and_grad(
        x, weights, target, margin=M, scale=S, reduction="none", cotangent=np.array([0.0, 3.0])
    )
    missed = 1 / (1 + exp(S * cos(M)))
    assert close(rows, expected)
    assert close(grad["embeddings"], np.array([[0, 0], [3 * missed * S, 0]]))


def test_cosines_beyond_one_are_refused_without_normalization():
    with pytest.raises(InputError, match=r"rows of `embeddings` must have length 1 with normalize='none', got 2\.0"):
        arcface(2 * X, np.eye(2), TARGET, normalize="none")


def test_rows_of_float32_are_as_long_as_float32_can_say():
    """What is taken in float32 has a bound, which is computed in float64; a longer row is refused in both."""
    x = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert np.max(np.linalg.norm(x.astype(np.float64), axis=1)) > 1 + 64 * np.finfo(np.float64).eps
    value, allowed = (f(x, x, range(9), normalize="none") for f in (arcface, partial(bounds, arcface)))
    assert abs(value - arcface(x.astype(np.float64), x, range(9), normalize="none")) <= allowed.value < 1
    with pytest.raises(InputError, match="rows of `embeddings`"):
        arcface((1 + 1e-9) * x.astype(np.float64), x, range(9), normalize="none")
