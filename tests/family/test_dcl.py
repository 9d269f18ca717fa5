from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import dcl
from nceref.tolerance import close

T = 0.5
# Two orthogonal samples with equal views: the positive at 1, and two negatives at 0 that share the softmax.
Z = np.eye(2)


def test_value_of_two_orthogonal_samples_is_negative():
    value = dcl(Z, Z, temperature=T)
    assert close(value, log(2) - 1 / T)
    assert value < 0


def test_positive_slope_does_not_fade():
    """dL_i/ds_ip = -1/T,  dL_i/ds_ij = softmax over negatives / T;
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    # As anchor: half of each of two equal negatives over T; as a candidate of two rows: half each. Mean over 4 rows.
    # L = log 2 - 1/T, so dL/dT = 1 / T^2.
    _, grad = dcl.value_and_grad(Z, Z, temperature=T)
    assert set(grad) == {"z1", "z2", "temperature"}
    for view in ("z1", "z2"):
        assert close(grad[view], 1 / (2 * T) * np.array([[0, 1], [1, 0]]))
    assert close(grad["temperature"], 1 / T**2)


def test_negatives_of_different_similarity_share_the_softmax():
    # Views of sample 2 are e_2 and e_1. Row 1 of view 1: positive at 1, negatives at 0 and 1.
    # Row 2 of view 1: positive 0, negatives 0, 0. Row 2 of view 2: positive 0, negatives 1, 1.
    rows = dcl(Z, np.array([[1.0, 0.0], [1.0, 0.0]]), temperature=T, reduction="none")
    same = log(1 + exp(1 / T)) - 1 / T
    assert close(rows, np.array([same, log(2), same, log(2) + 1 / T]))


def test_cotangent_of_one_row_reaches_all_its_candidates():
    # Row 2 of view 2, e_1 with its positive e_2 at 0 and two negatives on it at 1: -e_2 / T on the row,
    # -e_1 / T on the positive; the negatives are parallel. dL/dT = (0 - 1) / T^2.
    _, grad = dcl.value_and_grad(
        Z, np.array([[1.0, 0.0], [1.0, 0.0]]), temperature=T, reduction="none", cotangent=np.array([0, 0, 0, 1.0])
    )
    assert close(grad["z2"], np.array([[0, 0], [0, -1 / T]]))
    assert close(grad["z1"], np.array([[0, 0], [-1 / T, 0]]))
    assert close(grad["temperature"], -1 / T**2)


def test_sum_is_four_times_the_mean_of_two_pairs():
    assert close(dcl(Z, Z, temperature=T, reduction="sum"), 4 * (log(2) - 1 / T))


def test_one_pair_alone_is_refused():
    with pytest.raises(
        InputError, match="dcl has no negatives for 1 pair of views in `z1` and `z2`; pass at least 2 pairs"
    ):
        dcl(Z[:1], Z[:1], temperature=T)
