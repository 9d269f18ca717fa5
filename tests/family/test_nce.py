from math import exp, log

import numpy as np

from nceref.losses import nce
from nceref.tolerance import close

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
