from math import exp, log

import numpy as np

from nceref.losses import nce
from nceref.tolerance import bounds, close

NU = 2.0
# Two data points with log-odds 1 - log(nu) and -log(nu), and one noise point with -log(nu).
DATA, NOISE = np.array([3.0, 0.0]), np.array([1.0])
KNOWN = {"data_log_noise": np.array([2.0, 0.0]), "noise_log_noise": np.array([1.0]), "noise_ratio": NU}
# -log h on data is log(1 + nu e^(-gap)); -log(1 - h) on noise is log(1 + e^gap / nu), times nu N / M = 4.
ROWS = np.array([log(1 + NU * exp(-1)), log(1 + NU), NU * 2 * log(1 + 1 / NU)])


def test_rows_are_data_then_noise_times_its_share():
    assert close(nce(DATA, NOISE, reduction="none", **KNOWN), ROWS)


def test_mean_divides_by_the_number_of_data():
    assert close(nce(DATA, NOISE, reduction="sum", **KNOWN), sum(ROWS))
    assert close(nce(DATA, NOISE, **KNOWN), (ROWS[0] + ROWS[1]) / 2 + NU * log(1 + 1 / NU))


def test_gradient_is_the_missed_probability():
    """dL/dlogit = -(1 - h)/N on data, nu h/M on noise,  h = sigmoid(u)"""
    # h = 1 / (1 + nu e^(-gap)): -(1 - h) / N on data, nu h / M on noise; h = 1 / (1 + nu) at a gap of 0.
    _, grad = nce.value_and_grad(DATA, NOISE, **KNOWN)
    assert set(grad) == {"data_logits", "noise_logits"}
    assert close(grad["data_logits"], -np.array([NU * exp(-1) / (1 + NU * exp(-1)), NU / (1 + NU)]) / 2)
    assert close(grad["noise_logits"], np.array([NU / (1 + NU)]))


def test_cotangent_weighs_the_rows():
    _, grad = nce.value_and_grad(DATA, NOISE, reduction="none", cotangent=np.array([0.0, 3.0, 1.0]), **KNOWN)
    assert close(grad["data_logits"], np.array([0, -3 * NU / (1 + NU)]))
    assert close(grad["noise_logits"], np.array([NU * 2 / (1 + NU)]))


def test_sure_and_right_costs_nothing():
    args = {"data_log_noise": np.array([0.0]), "noise_log_noise": np.array([0.0]), "noise_ratio": 1.0}
    assert close(nce(np.array([100.0]), np.array([-100.0]), **args), 2 * exp(-100))


def test_a_subnormal_ratio_and_one_that_brings_back_what_underflowed():
    """nu N / M alone would be 1e-323 for 8e-324; e^-893 is 0, and 1e269 times it is not."""
    zeros = {"data_log_noise": np.zeros(5), "noise_log_noise": np.zeros(3)}
    tiny = nce(np.zeros(5), np.full(3, 1e78), **zeros, noise_ratio=5e-324, reduction="none")
    assert np.allclose(tiny[5:], 5e-324 * 1e78 * 5 / 3, rtol=1e-14, atol=0)
    huge = {**zeros, "noise_log_noise": np.full(3, 273.0), "noise_ratio": 1e269}
    lost = np.exp(-273.0) * 5 / 3
    assert nce(np.zeros(5), np.zeros(3), **huge, reduction="none")[5] == 0
    assert bounds(nce, np.zeros(5), np.zeros(3), **huge).value > 3 * lost / 5
