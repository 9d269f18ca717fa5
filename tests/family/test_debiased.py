from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import debiased
from nceref.tolerance import close

# Rows e_1, e_2 | e_1, -e_1. Row 1 of either view: positive 1, negatives 0 and -1. Row 2 of view 1: positive 0,
# negatives 0, 0. Row 2 of view 2: positive 0, negatives -1, -1. Two negatives a row.
Z1, Z2 = np.eye(2), np.array([[1.0, 0.0], [-1.0, 0.0]])
T, PRIOR = 0.8, 0.1
FREE, FLOORED = np.array([1.0, 0, 0, 0]), np.array([0, 0, 0, 1.0])
# Row 1: the estimate of the true negatives is above its floor 2 e^(-1/T).
NG = (1 + exp(-1 / T) - PRIOR * 2 * exp(1 / T)) / (1 - PRIOR)
D = exp(1 / T) + NG


def test_positives_among_the_negatives_are_subtracted():
    # Row 2 of view 1: (2 - 0.1 * 2) / (1 - 0.1) = 2, whatever the prior.
    rows = debiased(Z1, Z2, temperature=T, positive_prior=PRIOR, reduction="none")
    assert 2 * exp(-1 / T) < NG
    assert close(rows[:3], np.array([log(D / exp(1 / T)), log(3), log(D / exp(1 / T))]))


def test_estimate_below_the_floor_is_clamped():
    # Row 2 of view 2: (2 e^(-1/T) - 2 prior) / (1 - prior) < 2 e^(-1/T), since e^(-1/T) < 1.
    rows = debiased(Z1, Z2, temperature=T, positive_prior=PRIOR, reduction="none")
    assert close(rows[3], log(1 + 2 * exp(-1 / T)))


def test_gradient_off_the_clamp():
    """dL_i/ds_ij = e^(s_ij/T) / ((1 - prior) (e^+ + Ng) T), 0 on the clamp;
    dL_i/ds_ip = -(Ng + prior n e^+ / (1 - prior)) / ((e^+ + Ng) T), on the clamp -Ng / ((e^+ + Ng) T);
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T, p among the j, on the clamp Ng (1 + s_ip) / ((e^+ + Ng) T^2);
    dL/dz = (G + G^T) z,  G = dL/ds"""
    # By logit: positive (e^(1/T) - prior 2 e^(1/T) / (1 - prior)) / D - 1, negative e^s / ((1 - prior) D); over T,
    # and without normalization the row e_1 collects them, each candidate gets its own times e_1.
    # The loss is a function of s / T: dL/dT = -sum (dL/ds) s / T.
    positive = (exp(1 / T) * (1 - 2 * PRIOR / (1 - PRIOR)) / D - 1) / T
    orthogonal, opposite = 1 / ((1 - PRIOR) * D * T), exp(-1 / T) / ((1 - PRIOR) * D * T)
    _, grad = debiased.value_and_grad(
        Z1, Z2, temperature=T, positive_prior=PRIOR, normalize="none", reduction="none", cotangent=FREE
    )
    assert set(grad) == {"z1", "z2", "temperature"}
    assert close(grad["z1"], np.array([[positive - opposite, orthogonal], [orthogonal, 0]]), scale=1)
    assert close(grad["z2"], np.array([[positive, 0], [opposite, 0]]), scale=1)
    assert close(grad["temperature"], -(positive - opposite) / T, scale=1)


def test_on_the_clamp_negatives_get_no_gradient_and_the_temperature_keeps_the_floor():
    # L = log(1 + 2 e^(-1/T - s_+/T)) at s_+ = 0: dL/ds_+ = -M / T and dL/dT = M / T^2 with M = 2 / (2 + e^(1/T)).
    missed = 2 / (2 + exp(1 / T))
    _, grad = debiased.value_and_grad(
        Z1, Z2, temperature=T, positive_prior=PRIOR, normalize="none", reduction="none", cotangent=FLOORED
    )
    assert close(grad["z1"], missed / T * np.array([[0, 0], [1, 0]]))
    assert close(grad["z2"], missed / T * np.array([[0, 0], [0, -1]]))
    assert close(grad["temperature"], missed / T**2)


def test_aligned_views_at_low_temperature_sit_on_the_clamp():
    # prior 2 e^4 > 2: nothing is left of the two negatives at 0.
    value, grad = debiased.value_and_grad(np.eye(2), np.eye(2), temperature=0.25, positive_prior=PRIOR)
    assert close(value, log(1 + 2 * exp(-8)), scale=1)
    assert close(grad["z1"], np.zeros((2, 2)))
    assert close(grad["temperature"], 2 * exp(-8) / (1 + 2 * exp(-8)) * 2 / 0.25**2)


def test_prior_zero_subtracts_nothing():
    value = debiased(np.eye(2), np.eye(2), temperature=T, positive_prior=0.0)
    assert close(value, log(1 + 2 * exp(-1 / T)))


def test_prior_defaults_to_a_tenth_and_sum_adds_the_rows():
    total = 2 * log(D / exp(1 / T)) + log(3) + log(1 + 2 * exp(-1 / T))
    assert close(debiased(Z1, Z2, temperature=T, reduction="sum"), total)
    assert close(debiased(Z1, Z2, temperature=T), total / 4)


def test_one_pair_alone_is_refused():
    with pytest.raises(InputError, match="debiased has no negatives for 1 pair of views"):
        debiased(Z1[:1], Z2[:1], temperature=T)
