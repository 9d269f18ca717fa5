from math import exp, log

import numpy as np

from nceref.losses import balanced_softmax
from nceref.tolerance import close

T = 0.5
LOGITS, COUNTS = np.array([[1.0, 0.0]]), np.array([3.0, 1.0])
HEAD, TAIL = np.array([0]), np.array([1])
# Weighted masses are 3 e^(1/T) and 1; P is the probability of the head class.
P = 3 * exp(1 / T) / (1 + 3 * exp(1 / T))


def test_counts_multiply_the_exponentials():
    assert close(balanced_softmax(LOGITS, HEAD, COUNTS, temperature=T), log(1 + exp(-1 / T) / 3))
    assert close(balanced_softmax(LOGITS, TAIL, COUNTS, temperature=T), log(1 + 3 * exp(1 / T)))


def test_gradient_is_weighted_softmax_minus_target_over_temperature():
    """dL_i/dx_ik = (p_ik - [k = y_i]) / T,  p_ik = n_k exp(x_ik/T) / sum_l n_l exp(x_il/T);
    dL_i/dT = -sum_k x_ik dL_i/dx_ik / T"""
    # dL/dT = (x_y - E_P[x]) / T^2 = (0 - P) / T^2: the temperature divides the logits, not the counts.
    _, grad = balanced_softmax.value_and_grad(LOGITS, TAIL, COUNTS, temperature=T)
    assert close(grad["logits"], np.array([[P, -P]]) / T)
    assert close(grad["temperature"], -P / T**2)


def test_counts_are_constants():
    _, grad = balanced_softmax.value_and_grad(LOGITS, TAIL, COUNTS)
    assert set(grad) == {"logits", "temperature"}


def test_frequencies_give_the_loss_of_counts():
    frequencies = np.array([3 / 4, 1 / 4])
    value, grad = balanced_softmax.value_and_grad(LOGITS, TAIL, frequencies, temperature=T)
    assert close(value, log(1 + 3 * exp(1 / T)))
    assert close(grad["logits"], np.array([[P, -P]]) / T)


def test_equal_logits_leave_the_prior():
    assert close(balanced_softmax(np.zeros((1, 2)), TAIL, COUNTS), log(4))


def test_mean_of_two_rows_is_half_their_sum():
    total = log(1 + exp(-1 / T) / 3) + log(1 + 3 * exp(1 / T))
    two = np.concatenate([LOGITS, LOGITS]), np.array([0, 1]), COUNTS
    assert close(balanced_softmax(*two, temperature=T, reduction="sum"), total)
    assert close(balanced_softmax(*two, temperature=T), total / 2)


def test_cotangent_weighs_the_rows():
    two = np.concatenate([LOGITS, LOGITS]), np.array([0, 1]), COUNTS
    rows, grad = balanced_softmax.value_and_grad(*two, temperature=T, reduction="none", cotangent=np.array([0.0, 2.0]))
    assert close(rows, np.array([log(1 + exp(-1 / T) / 3), log(1 + 3 * exp(1 / T))]))
    assert close(grad["logits"], np.array([[0, 0], [2 * P, -2 * P]]) / T)
    assert close(grad["temperature"], -2 * P / T**2)
