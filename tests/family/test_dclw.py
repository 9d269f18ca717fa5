from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import dclw
from nceref.tolerance import close

T, SIGMA = 0.5, 0.25
# Sample 1 has equal views e_1, e_1 (positive at 1); sample 2 has views e_2, e_1 (positive at 0).
Z1, Z2 = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])
# Weights 2 - e^(s/sigma) / mean: with E = e^(1/sigma), the mean is (E + 1) / 2.
E = exp(1 / SIGMA)
W1, W2 = 2 / (E + 1), 2 * E / (E + 1)
NEAR, FAR = 1 / (1 + exp(-1 / T)), 1 / (1 + exp(1 / T))


def test_aligned_pair_weighs_less_than_the_other():
    # Rows of sample 1: positive 1, negatives 0 and 1. Row 2 of view 1: negatives 0, 0. Row 2 of view 2: negatives 1, 1.
    rows = dclw(Z1, Z2, temperature=T, sigma=SIGMA, reduction="none")
    first = -W1 / T + log(1 + exp(1 / T))
    assert close(rows, np.array([first, log(2), first, log(2) + 1 / T]))
    assert W1 < 1 < W2


def test_equal_positives_weigh_one_each():
    assert close(dclw(np.eye(2), np.eye(2), temperature=T, sigma=SIGMA), log(2) - 1 / T)


def test_sigma_defaults_to_half():
    assert dclw(Z1, Z2, temperature=T) == dclw(Z1, Z2, temperature=T, sigma=0.5)


# Derivatives over 4 rows, tangential parts along the other axis, T left out:
# z1[0] = e_1: negative e_2 of its own softmax, FAR; a negative of row e_2, 1/2.
# z1[1] = e_2: its own row, -W2 + 1/2 + 1/2; a negative of both rows of sample 1, FAR each; positive of z2[1], -W2.
# z2[1] = e_1: its own row, -W2; positive of z1[1], -W2.
BY_Z1 = np.array([[0, FAR + 1 / 2], [1 - 2 * W2 + 2 * FAR, 0]]) / (4 * T)
BY_Z2 = np.array([[0, FAR + 1 / 2], [0, -2 * W2]]) / (4 * T)


def test_gradient_holds_the_weights_fixed():
    """dL_i/ds_ip = -w_i/T,  dL_i/ds_ij = softmax over negatives / T,  none through w;
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    # dL/dT of the rows: (W1 - NEAR) / T^2 twice, 0, and -1 / T^2.
    _, grad = dclw.value_and_grad(Z1, Z2, temperature=T, sigma=SIGMA)
    assert set(grad) == {"z1", "z2", "temperature"}
    assert close(grad["z1"], BY_Z1, scale=1)
    assert close(grad["z2"], BY_Z2, scale=1)
    assert close(grad["temperature"], (2 * (W1 - NEAR) - 1) / (4 * T**2))


def test_derivative_through_the_weights_would_differ():
    # dW1/ds_2 = 2 E / (sigma (E + 1)^2) at s_1 = 1, s_2 = 0, and -W1 s_1 / T stands in two of the four rows.
    _, grad = dclw.value_and_grad(Z1, Z2, temperature=T, sigma=SIGMA)
    through_weights = -2 / (4 * T) * 2 * E / (SIGMA * (E + 1) ** 2)
    assert abs(through_weights) > 0.01
    assert not close(grad["z1"][1, 0], BY_Z1[1, 0] + through_weights, scale=1)


def test_cotangent_weighs_the_rows_and_sum_adds_them():
    total = 2 * (-W1 / T + log(1 + exp(1 / T))) + 2 * log(2) + 1 / T
    assert close(dclw(Z1, Z2, temperature=T, sigma=SIGMA, reduction="sum"), total)
    _, grad = dclw.value_and_grad(
        Z1, Z2, temperature=T, sigma=SIGMA, reduction="none", cotangent=np.array([0, 0, 0, 1.0])
    )
    assert close(grad["z1"], np.array([[0, 0], [-W2 / T, 0]]))
    assert close(grad["z2"], np.array([[0, 0], [0, -W2 / T]]))
    assert close(grad["temperature"], -1 / T**2)


def test_one_pair_alone_is_refused():
    with pytest.raises(InputError, match="dclw has no negatives for 1 pair of views"):
        dclw(Z1[:1], Z2[:1], temperature=T)
