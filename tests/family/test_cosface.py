from math import exp, log, log1p

import numpy as np

from nceref.losses import cosface
from nceref.tolerance import close

M, S = 0.25, 2.0
# The target's weight is at a right angle, the other weight on the embedding: cosines 0 - m and 1.
X, WEIGHTS, TARGET = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0])
MISSED = 1 / (1 + exp(-S * (1 + M)))


def test_value_adds_the_scaled_margin_to_the_gap():
    assert close(cosface(X, WEIGHTS, TARGET, margin=M, scale=S), log(1 + exp(S * (1 + M))))


def test_gradient_is_scale_times_softmax_minus_target():
    """dL_i/dcos theta_k = s (p_k - [k = y]);
    dL_i/ds = sum_k p_k c_k - c_y,  p = softmax(s c),  c_k = cos theta_k - m [k = y]"""
    # dL/dcos_y = -S MISSED, dL/dcos_other = S MISSED; the other weight is parallel to x and has no tangential part.
    _, grad = cosface.value_and_grad(X, WEIGHTS, TARGET, margin=M, scale=S)
    assert set(grad) == {"embeddings", "class_weights", "scale"}
    assert close(grad["embeddings"], np.array([[0, -S * MISSED]]))
    assert close(grad["class_weights"], np.array([[-S * MISSED, 0], [0, 0]]))
    assert close(grad["scale"], MISSED * (1 + M))


def test_scale_gradient_changes_sign_where_the_cosine_beats_the_margin():
    # x on its class: the gap is 0 - (1 - m), and the loss falls with the scale.
    value, grad = cosface.value_and_grad(X, np.eye(2), TARGET, margin=M, scale=S)
    assert close(value, log(1 + exp(-S * (1 - M))))
    assert close(grad["scale"], -(1 - M) / (1 + exp(S * (1 - M))))


def test_margin_defaults_to_0_35_and_scale_to_64():
    assert close(cosface(X, np.eye(2), TARGET), log1p(exp(-64 * (1 - 0.35))), ulps=128)


def test_cotangent_weighs_the_rows_and_sum_adds_them():
    x, target = np.eye(2), np.array([0, 0])
    expected = np.array([log(1 + exp(S * (1 + M))), log(1 + exp(-S * (1 - M)))])
    assert close(cosface(x, WEIGHTS, target, margin=M, scale=S, reduction="sum"), sum(expected))
    rows, grad = cosface.value_and_grad(
        x, WEIGHTS, target, margin=M, scale=S, reduction="none", cotangent=np.array([2.0, 0.0])
    )
    assert close(rows, expected)
    assert close(grad["embeddings"], np.array([[0, -2 * S * MISSED], [0, 0]]))
    assert close(grad["scale"], 2 * MISSED * (1 + M))
