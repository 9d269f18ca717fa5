from math import exp, log

import numpy as np

from nceref.losses import nt_xent
from nceref.tolerance import close

T = 0.5
# Two orthogonal samples with equal views: a row has its positive at 1 and two negatives at 0, of probability P each.
Z = np.eye(2)
P = exp(-1 / T) / (1 + 2 * exp(-1 / T))


def test_two_samples_give_log_of_one_plus_two_negatives():
    assert close(nt_xent(Z, Z, temperature=T), log(1 + 2 * exp(-1 / T)))


def test_a_row_gets_gradient_as_anchor_and_as_candidate():
    """dL_i/ds_ij = (P_ij - [j = p]) / T,  P_i = softmax of s_ij/T over j != i;
    dL_i/dT = (s_ip - sum_j P_ij s_ij) / T^2;
    a row is anchor and candidate: dL/dz = (G + G^T) z,  G = dL/ds"""
    # As anchor: 2 P over T along the other sample; as a negative of the other sample's two rows: 2 P again.
    # Mean over 4 rows: 4 P / 4T. dL/dT = (1 - (1 - 2P)) / T^2.
    _, grad = nt_xent.value_and_grad(Z, Z, temperature=T)
    assert set(grad) == {"z1", "z2", "temperature"}
    for view in ("z1", "z2"):
        assert close(grad[view], P / T * np.array([[0, 1], [1, 0]]))
    assert close(grad["temperature"], 2 * P / T**2)


def test_one_pair_alone_is_zero_with_zero_gradient():
    value, grad = nt_xent.value_and_grad(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), temperature=T)
    assert value == 0
    assert grad["temperature"] == 0
    assert not grad["z1"].any()
    assert not grad["z2"].any()


def test_rows_are_view_one_then_view_two():
    # Sample 1 has equal views, sample 2 opposite ones: its rows have their positive at -1 and two negatives at 0.
    rows = nt_xent(Z, np.array([[1.0, 0.0], [0.0, -1.0]]), temperature=T, reduction="none")
    easy, hard = log(1 + 2 * exp(-1 / T)), log(1 + 2 * exp(1 / T))
    assert close(rows, np.array([easy, hard, easy, hard]))


def test_sum_is_four_times_the_mean_of_two_pairs():
    assert close(nt_xent(Z, Z, temperature=T, reduction="sum"), 4 * log(1 + 2 * exp(-1 / T)))


def test_cotangent_of_one_row_reaches_all_its_candidates():
    # Row 1 of view 1 alone: its positive is parallel to it, both rows of sample 2 are pushed off with P / T.
    _, grad = nt_xent.value_and_grad(Z, Z, temperature=T, reduction="none", cotangent=np.array([1.0, 0.0, 0.0, 0.0]))
    assert close(grad["z1"], P / T * np.array([[0, 2], [1, 0]]))
    assert close(grad["z2"], P / T * np.array([[0, 0], [1, 0]]))
    assert close(grad["temperature"], 2 * P / T**2)
