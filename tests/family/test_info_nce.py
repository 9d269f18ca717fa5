from math import exp, log, log1p

import numpy as np

from nceref.losses import info_nce
from nceref.tolerance import close

T = 0.5
# Two orthogonal pairs: each row has the logits 1/T and 0, and its negative has probability P.
PAIRS = np.eye(2)
P = 1 / (1 + exp(1 / T))


def test_orthogonal_pairs_give_log_of_one_plus_one_negative():
    assert close(info_nce(PAIRS, PAIRS, temperature=T), log(1 + exp(-1 / T)))


def test_gradient_repels_query_and_key_of_different_pairs():
    """dL_i/ds_ij = (P_ij - [j = i]) / T,  s_ij = q_i.k_j,  P_i = softmax(s_i/T);
    dL_i/dT = (s_ii - sum_j P_ij s_ij) / T^2"""
    # Mean of two rows: dL/dq_1 = (P / 2T) (k_2 - k_1), whose tangential part is (P / 2T) k_2; keys likewise.
    # dL/dT = (s_ii - E_P[s]) / T^2 = (1 - (1 - P)) / T^2.
    _, grad = info_nce.value_and_grad(PAIRS, PAIRS, temperature=T)
    away = P / (2 * T) * np.array([[0, 1], [1, 0]])
    assert set(grad) == {"queries", "keys", "temperature"}
    assert close(grad["queries"], away)
    assert close(grad["keys"], away)
    assert close(grad["temperature"], P / T**2)


def test_gradient_of_a_longer_row_is_shorter():
    value, grad = info_nce.value_and_grad(4 * PAIRS, PAIRS, temperature=T)
    assert close(value, log(1 + exp(-1 / T)))
    assert close(grad["queries"], P / (2 * T) * np.array([[0, 1], [1, 0]]) / 4)


def test_without_normalization_the_radial_part_stays():
    # Lengths 2: the logits are 4/T and 0, and dL/dq_1 = (R / 2T) (k_2 - k_1).
    value, grad = info_nce.value_and_grad(2 * PAIRS, 2 * PAIRS, temperature=T, normalize="none")
    R = 1 / (1 + exp(4 / T))
    assert close(value, log1p(exp(-4 / T)))
    assert close(grad["queries"], R / T * np.array([[-1, 1], [1, -1]]))
    assert close(grad["temperature"], 4 * R / T**2)


# One query at a right angle to its key, one negative opposite to the key and one on the query: logits 0, 0, 1/T.
QUERY, KEY, NEGATIVES = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
SHARE = 1 / (2 + exp(1 / T))


def test_explicit_negatives_are_the_only_other_candidates():
    # Tangential at q: -(1 - SHARE) k + SHARE (-k) = -k over T. Tangential at k: -(1 - SHARE) q; at the opposite
    # negative: SHARE q; the negative on the query is parallel to it. dL/dT = (0 - E_P[s]) / T^2 = -(1 - 2 SHARE) / T^2.
    value, grad = info_nce.value_and_grad(QUERY, KEY, NEGATIVES, temperature=T)
    assert set(grad) == {"queries", "keys", "negatives", "temperature"}
    assert close(value, log(2 + exp(1 / T)))
    assert close(grad["queries"], np.array([[0, -1 / T]]))
    assert close(grad["keys"], np.array([[-(1 - SHARE) / T, 0]]))
    assert close(grad["negatives"], np.array([[SHARE / T, 0], [0, 0]]))
    assert close(grad["temperature"], -(1 - 2 * SHARE) / T**2)


def test_with_explicit_negatives_other_keys_are_left_out():
    # Both queries see their own key at 1 and the negative at 0; query 2's key would have been at 1 for query 1.
    same = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert close(info_nce(same, same, NEGATIVES[:1], temperature=T), log(1 + exp(-1 / T)))
    assert close(info_nce(same, same, temperature=T), log(2))


def test_one_pair_alone_is_zero_with_zero_gradient():
    value, grad = info_nce.value_and_grad(QUERY, KEY, temperature=T)
    assert value == 0
    assert grad["temperature"] == 0
    assert not grad["queries"].any()
    assert not grad["keys"].any()


def test_cotangent_weighs_the_rows_and_sum_adds_them():
    # Keys on the first axis both: query 1 has logits 1/T, 1/T and query 2 has 0, 0.
    queries, keys = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])
    assert close(info_nce(queries, keys, temperature=T, reduction="sum"), 2 * log(2))
    rows, grad = info_nce.value_and_grad(queries, keys, temperature=T, reduction="none", cotangent=np.array([0.0, 3.0]))
    # Row 2: dL/dk_1 = q_2 / 2T and dL/dk_2 = -q_2 / 2T, both tangential; on q_2 the two keys cancel.
    assert close(rows, np.array([log(2), log(2)]))
    assert close(grad["keys"], 3 / (2 * T) * np.array([[0, 1], [0, -1]]))
    assert close(grad["queries"], np.zeros((2, 2)), scale=1)
