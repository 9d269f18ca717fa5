from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import supcon_in, supcon_out
from nceref.tolerance import close

T = 0.5
E = exp(1 / T)
# Rows e_1, e_2, e_1: the first and the last have logits 0 and 1/T, the middle one 0 and 0.
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
WITHOUT_POSITIVE = np.array([1, 5, 1])
NEAR, FAR = E / (1 + E), 1 / (1 + E)
# The same rows and one more e_2 of another class: the row e_2 has its positives at 0, 0 and a negative at 1/T;
# the rows e_1 have positives at 0 and 1/T and a negative at 0.
FOUR, CLASSES = np.concatenate([ROWS, ROWS[1:2]]), np.array([0, 0, 0, 1])


def test_mean_over_positives_is_taken_inside_the_logarithm():
    rows = supcon_in(FOUR, CLASSES, temperature=T, no_positive="skip", reduction="none")
    outer = -log((E + 1) / 2 / (E + 2))
    assert close(rows, np.array([outer, -log(1 / (E + 2)), outer, 0]))


def test_positives_of_different_similarity_cost_more_outside_the_logarithm():
    args = {"temperature": T, "no_positive": "skip", "reduction": "none"}
    difference = supcon_out(FOUR, CLASSES, **args) - supcon_in(FOUR, CLASSES, **args)
    # log of the arithmetic mean (E + 1) / 2 against that of the geometric mean e^(1/2T).
    outer = log((E + 1) / 2) - 1 / (2 * T)
    assert outer > 0
    assert close(difference, np.array([outer, 0, outer, 0]), scale=1)


def test_gradient_leaves_each_positive_its_share():
    """dL_i/ds_ia = (P_ia - w_ia e^(s_ia/T) / sum_{p in P} w_ip e^(s_ip/T)) / T,  w = 0 off P,
    P_ia = exp(s_ia/T) / sum_{b!=i} exp(s_ib/T);
    dL_i/dT = -sum_a s_ia dL_i/ds_ia / T;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    # Row 1 alone: X = softmax over its positives = (FAR, NEAR); P = (1, E, 1) / (E + 2).
    # Tangentially: (1/(E + 2) - FAR) / T along e_2 to the positive, 1/(E + 2) / T to the negative.
    _, grad = supcon_in.value_and_grad(
        FOUR, CLASSES, temperature=T, no_positive="skip", reduction="none", cotangent=np.array([1.0, 0, 0, 0])
    )
    to_positive, to_negative = (1 / (E + 2) - FAR) / T, 1 / (E + 2) / T
    assert set(grad) == {"embeddings", "temperature"}
    assert close(
        grad["embeddings"],
        np.array([[0, to_positive + to_negative], [to_positive, 0], [0, 0], [to_negative, 0]]),
        scale=1,
    )
    # dL/dT = (E_X[s] - E_P[s]) / T^2.
    assert close(grad["temperature"], (NEAR - E / (E + 2)) / T**2)


def test_without_negatives_the_value_is_log_of_the_positives_and_flat():
    # All others are positives: their mean share of the softmax is 1/2, wherever they are.
    value, grad = supcon_in.value_and_grad(ROWS, np.zeros(3, dtype=int), temperature=T)
    assert close(value, log(2))
    assert close(grad["embeddings"], np.zeros((3, 2)), scale=1)
    assert close(grad["temperature"], 0, scale=1)


@pytest.mark.parametrize(("policy", "rows"), [("skip", 2), ("zero", 3)])
def test_lonely_anchor_is_left_out_or_counted_as_zero(policy, rows):
    value, grad = supcon_in.value_and_grad(ROWS, WITHOUT_POSITIVE, temperature=T, no_positive=policy)
    assert close(value, 2 * log(1 + exp(-1 / T)) / rows)
    assert close(grad["embeddings"], FAR / (rows * T) * np.array([[0, 1], [2, 0], [0, 1]]))
    assert close(grad["temperature"], 2 * FAR / (rows * T**2))


def test_lonely_anchor_is_refused_by_default():
    with pytest.raises(InputError, match="anchor 1 has no positive"):
        supcon_in(ROWS, WITHOUT_POSITIVE, temperature=T)


def test_equal_rows_read_log_of_the_others():
    same = np.ones((4, 2))
    assert close(supcon_in(same, CLASSES, temperature=T, no_positive="skip"), log(3))
    assert close(supcon_in(same, CLASSES, temperature=T, no_positive="zero"), 3 / 4 * log(3))


def test_mask_need_not_be_symmetric():
    # Positives 1 -> 2 -> 3 -> 1, at 0, 0 and 1/T.
    mask = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    rows = supcon_in(ROWS, mask=mask, temperature=T, reduction="none")
    assert close(rows, np.array([log(1 + E), log(2), log(1 + exp(-1 / T))]))


def test_mask_weights_average_the_exponentials():
    # Row 1: share (3 * 1 + 1 * E) / 4 of 1 + E. dL/ds_12 = FAR - 3 / (3 + E); dL/dT = (E_X[s] - E_P[s]) / T^2.
    mask = np.array([[0.0, 3, 1], [0, 0, 1], [1, 0, 0]])
    rows, grad = supcon_in.value_and_grad(
        ROWS, mask=mask, temperature=T, reduction="none", cotangent=np.array([1.0, 0, 0])
    )
    assert close(rows[0], log(1 + E) - log((3 + E) / 4))
    assert close(grad["embeddings"], (FAR - 3 / (3 + E)) / T * np.array([[0, 1], [1, 0], [0, 0]]), scale=1)
    assert close(grad["temperature"], (E / (3 + E) - NEAR) / T**2, scale=1)


# Two samples with two views each, (N, V, D).
VIEWS = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]])


def test_rows_are_view_one_then_view_two():
    easy, hard = log(1 + 2 * exp(-1 / T)), log(1 + 2 * exp(1 / T))
    assert close(supcon_in(VIEWS, temperature=T, reduction="none"), np.array([easy, hard, easy, hard]))
    assert close(supcon_in(VIEWS, temperature=T, reduction="sum"), 2 * (easy + hard))


def test_anchor_mode_one_takes_anchors_from_the_first_view():
    easy, hard = log(1 + 2 * exp(-1 / T)), log(1 + 2 * exp(1 / T))
    rows = supcon_in(VIEWS, temperature=T, anchor_mode="one", reduction="none")
    assert close(rows, np.array([easy, hard]))


def test_anchor_weights_weigh_the_mean():
    easy, hard = log(1 + 2 * exp(-1 / T)), log(1 + 2 * exp(1 / T))
    value = supcon_in(VIEWS, temperature=T, anchor_weights=np.array([3.0, 1.0]))
    assert close(value, (3 * easy + hard) / 4)
