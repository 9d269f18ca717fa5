from math import exp, log

import numpy as np
import pytest

from nceref.losses import cross_entropy
from nceref.tolerance import close

T = 0.5
# One logit of 1 among three: exp(x / T) is (e^(1/T), 1, 1), and each wrong class has probability Q.
LOGITS = np.array([[1.0, 0.0, 0.0]])
RIGHT, WRONG = np.array([0]), np.array([1])
Q = exp(-1 / T) / (1 + 2 * exp(-1 / T))


def test_value_is_log_of_one_plus_two_wrong_classes():
    assert close(cross_entropy(LOGITS, RIGHT, temperature=T), log(1 + 2 * exp(-1 / T)))
    assert close(cross_entropy(LOGITS, WRONG, temperature=T), 1 / T + log(1 + 2 * exp(-1 / T)))


def test_gradient_is_softmax_minus_target_over_temperature():
    """dL_i/dx_ik = (softmax(x_i/T)_k - q_ik) / T;  dL_i/dT = -sum_k x_ik dL_i/dx_ik / T"""
    # dL/dT = (x_y - E_P[x]) / T^2 = (1 - (1 - 2Q)) / T^2.
    _, grad = cross_entropy.value_and_grad(LOGITS, RIGHT, temperature=T)
    assert set(grad) == {"logits", "temperature"}
    assert close(grad["logits"], np.array([[-2 * Q, Q, Q]]) / T)
    assert close(grad["temperature"], 2 * Q / T**2)


def test_temperature_gradient_is_negative_for_a_wrong_class():
    # dL/dT = (0 - (1 - 2Q)) / T^2.
    _, grad = cross_entropy.value_and_grad(LOGITS, WRONG, temperature=T)
    assert close(grad["logits"], np.array([[1 - 2 * Q, Q - 1, Q]]) / T)
    assert close(grad["temperature"], -(1 - 2 * Q) / T**2)


def test_temperature_defaults_to_one():
    assert close(cross_entropy(LOGITS, RIGHT), log(1 + 2 * exp(-1)))


def test_label_smoothing_spreads_its_share_over_all_classes():
    # q = (1 - e + e/3, e/3, e/3), so L grows by (1 - q_0) (x_0 - 0) / T = (2/3) e / T; dL/dx = (softmax - q) / T.
    e = 0.3
    value, grad = cross_entropy.value_and_grad(LOGITS, RIGHT, temperature=T, label_smoothing=e)
    assert close(value, log(1 + 2 * exp(-1 / T)) + 2 / 3 * e / T)
    assert close(grad["logits"], np.array([[2 * e / 3 - 2 * Q, Q - e / 3, Q - e / 3]]) / T)
    assert close(grad["temperature"], (2 * Q - 2 * e / 3) / T**2, scale=1)


def test_full_label_smoothing_forgets_the_target():
    value = log(1 + 2 * exp(-1 / T)) + 2 / 3 / T
    for target in (RIGHT, WRONG):
        assert close(cross_entropy(LOGITS, target, temperature=T, label_smoothing=1.0), value)


def test_mean_of_two_rows_is_half_their_sum():
    logits, target = np.concatenate([LOGITS, LOGITS]), np.array([0, 1])
    total = 1 / T + 2 * log(1 + 2 * exp(-1 / T))
    assert close(cross_entropy(logits, target, temperature=T, reduction="sum"), total)
    assert close(cross_entropy(logits, target, temperature=T), total / 2)


def test_cotangent_weighs_the_rows():
    logits, target = np.concatenate([LOGITS, LOGITS]), np.array([0, 1])
    rows, grad = cross_entropy.value_and_grad(
        logits, target, temperature=T, reduction="none", cotangent=np.array([2.0, -1.0])
    )
    assert close(rows, np.array([0, 1 / T]) + log(1 + 2 * exp(-1 / T)))
    assert close(grad["logits"], np.array([[-4 * Q, 2 * Q, 2 * Q], [2 * Q - 1, 1 - Q, -Q]]) / T)
    assert close(grad["temperature"], (2 * (2 * Q) + (1 - 2 * Q)) / T**2)


@pytest.mark.parametrize(("t", "published"), [(1.0, "0.4076"), (0.5, "0.1429")])
def test_example_of_source_001(t, published):
    # Source 001, logits (1, 2, 3) and true class 2: the printed losses for t = 1 and 0.5.
    value = cross_entropy(np.array([[1.0, 2.0, 3.0]]), np.array([2]), temperature=t)
    assert close(value, log(1 + exp(-1 / t) + exp(-2 / t)))
    assert f"{value:.4f}" == published
