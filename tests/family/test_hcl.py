import math
from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import hcl
from nceref.tolerance import bounds, close

# Rows e_1, e_2 | e_1, -e_1. Row 1 of either view: positive 1, negatives 0 and -1. Row 2 of view 1: positive 0,
# negatives 0, 0. Row 2 of view 2: positive 0, negatives -1, -1. Two negatives a row.
Z1, Z2 = np.eye(2), np.array([[1.0, 0.0], [-1.0, 0.0]])
T, PRIOR, B = 0.8, 0.1, 2.0
FREE, FLOORED = np.array([1.0, 0, 0, 0]), np.array([0, 0, 0, 1.0])


def hard(b):
    """Twice the mean of e^s over the negatives 0 and -1 of row 1, weighted by e^(b s)."""
    return 2 * (1 + exp(-(1 + b) / T)) / (1 + exp(-b / T))


NG = (hard(B) - PRIOR * 2 * exp(1 / T)) / (1 - PRIOR)
D = exp(1 / T) + NG


def test_hard_negatives_weigh_more():
    # Rows with equal negatives do not feel the concentration.
    rows = hcl(Z1, Z2, temperature=T, positive_prior=PRIOR, concentration=B, reduction="none")
    assert 2 * exp(-1 / T) < NG
    assert close(rows[:3], np.array([log(D / exp(1 / T)), log(3), log(D / exp(1 / T))]))


def test_estimate_below_the_floor_is_clamped():
    # Row 2 of view 2: (2 e^(-1/T) - 2 prior) / (1 - prior) < 2 e^(-1/T).
    rows = hcl(Z1, Z2, temperature=T, positive_prior=PRIOR, concentration=B, reduction="none")
    assert close(rows[3], log(1 + 2 * exp(-1 / T)))


def test_gradient_flows_through_the_importance_weights():
    """dL_i/ds_ij = W ((1+b) r^(1+b)_j - b r^(b)_j) / ((e^+ + Ng) T), 0 on the clamp,
    W = n sum e^((1+b)s/T) / sum e^(bs/T) / (1 - prior),  r^(b) = softmax of b s/T over the negatives;
    dL_i/ds_ip = -(Ng + prior n e^+ / (1 - prior)) / ((e^+ + Ng) T), on the clamp -Ng / ((e^+ + Ng) T);
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T, p among the j, on the clamp Ng (1 + s_ip) / ((e^+ + Ng) T^2);
    dL/dz = (G + G^T) z,  G = dL/ds"""
    # G-6: negative j gets W ((1 + b) r_j^(1+b) - b r_j^(b)) / (D T), W = hard / (1 - prior), r^(k) = softmax(k s);
    # the positive (e^(1/T) - prior 2 e^(1/T) / (1 - prior)) / D - 1 over T. dL/dT = -sum (dL/ds) s / T.
    positive = (exp(1 / T) * (1 - 2 * PRIOR / (1 - PRIOR)) / D - 1) / T
    upper, level = exp(-(1 + B) / T) / (1 + exp(-(1 + B) / T)), exp(-B / T) / (1 + exp(-B / T))
    outer = hard(B) / (1 - PRIOR) / (D * T)
    opposite = outer * ((1 + B) * upper - B * level)
    orthogonal = outer * ((1 + B) * (1 - upper) - B * (1 - level))
    _, grad = hcl.value_and_grad(
        Z1, Z2, temperature=T, positive_prior=PRIOR, concentration=B, normalize="none", reduction="none", cotangent=FREE
    )
    assert set(grad) == {"z1", "z2", "temperature"}
    assert close(grad["z1"], np.array([[positive - opposite, orthogonal], [orthogonal, 0]]), scale=1)
    assert close(grad["z2"], np.array([[positive, 0], [opposite, 0]]), scale=1)
    assert close(grad["temperature"], -(positive - opposite) / T, scale=1)


def test_an_easy_negative_is_attracted():
    # Its bracket is (1 + b) r^(1+b) - b r^(b) = 3 / (1 + e^(3/T)) - 2 / (1 + e^(2/T)) < 0.
    assert 3 / (1 + exp(3 / T)) < 2 / (1 + exp(2 / T))
    _, grad = hcl.value_and_grad(
        Z1, Z2, temperature=T, concentration=B, normalize="none", reduction="none", cotangent=FREE
    )
    assert grad["z2"][1, 0] < 0


def test_on_the_clamp_negatives_get_no_gradient_and_the_temperature_keeps_the_floor():
    # L = log(1 + 2 e^(-1/T - s_+/T)) at s_+ = 0: dL/ds_+ = -M / T and dL/dT = M / T^2 with M = 2 / (2 + e^(1/T)).
    missed = 2 / (2 + exp(1 / T))
    _, grad = hcl.value_and_grad(
        Z1, Z2, temperature=T, concentration=B, normalize="none", reduction="none", cotangent=FLOORED
    )
    assert close(grad["z1"], missed / T * np.array([[0, 0], [1, 0]]))
    assert close(grad["z2"], missed / T * np.array([[0, 0], [0, -1]]))
    assert close(grad["temperature"], missed / T**2)


def test_concentration_and_prior_zero_are_the_plain_sum_of_negatives():
    # Row 1: log(1 + (1 + e^(-1/T)) / e^(1/T)).
    rows = hcl(Z1, Z2, temperature=T, positive_prior=0.0, concentration=0.0, reduction="none")
    assert close(rows[0], log(1 + (1 + exp(-1 / T)) / exp(1 / T)))


def test_prior_defaults_to_a_tenth_and_concentration_to_one():
    stated = hcl(Z1, Z2, temperature=T, positive_prior=0.1, concentration=1.0)
    assert hcl(Z1, Z2, temperature=T) == stated
    ng = (hard(1.0) - 0.1 * 2 * exp(1 / T)) / 0.9
    total = 2 * log(1 + ng / exp(1 / T)) + log(3) + log(1 + 2 * exp(-1 / T))
    assert close(hcl(Z1, Z2, temperature=T, reduction="sum"), total)
    assert close(stated, total / 4)


def test_one_pair_alone_is_refused():
    with pytest.raises(InputError, match="hcl has no negatives for 1 pair of views"):
        hcl(Z1[:1], Z2[:1], temperature=T)


@pytest.mark.parametrize(
    ("dtype", "concentration", "error", "vacuous"), [(float, 1e10, 1e-6, 1e7), ("f4", 1e4, 1e-3, 300)]
)
def test_a_large_concentration_costs_the_digits_that_the_notes_name(dtype, concentration, error, vacuous):
    given = dict(zip(("z1", "z2"), np.random.default_rng(0).standard_normal((2, 6, 4)).astype(dtype), strict=True))
    limit = hcl(**{name: z.astype(float) for name, z in given.items()}, temperature=0.5, concentration=1e6)
    assert abs(hcl(**given, temperature=0.5, concentration=concentration) / limit - 1) < error
    for b, wide in ((vacuous / 30, False), (3 * vacuous, True)):
        _, grad = hcl.value_and_grad(**given, temperature=0.5, concentration=b)
        bound = bounds(hcl, **given, temperature=0.5, concentration=b).grads["z1"]
        assert (np.max(bound) > np.max(np.abs(grad["z1"]))) == wide


@pytest.mark.parametrize(("dtype", "bits"), [("f8", 53), ("f4", 24)])
def test_a_concentration_to_which_no_one_can_be_added_is_refused(dtype, bits):
    given = {"z1": Z1.astype(dtype), "z2": Z2.astype(dtype)}
    assert np.isfinite(hcl(**given, temperature=T, concentration=math.nextafter(2.0**bits, 0)))
    with pytest.raises(InputError, match=f"`concentration` must be .*< {2**bits}"):
        hcl(**given, temperature=T, concentration=2.0**bits)
