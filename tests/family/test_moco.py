from math import exp, log

import numpy as np

from nceref.losses import info_nce, moco
from nceref.tolerance import close

T = 0.5
# The own key is at a right angle, one queue row is its opposite and one is the query itself: logits 0, 0, 1/T.
QUERY, KEY, QUEUE = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
SHARE = 1 / (2 + exp(1 / T))


def test_value_is_log_softmax_of_the_own_key_among_itself_and_the_queue():
    assert close(moco(QUERY, KEY, QUEUE, temperature=T), log(2 + exp(1 / T)))


def test_gradient_reaches_query_and_temperature_only():
    """dL_i/ds_ij = (P_ij - [j is the own key]) / T, passed on to the query only,
    s_ij the products of q_i with the own key and the queue,  P_i = softmax(s_i/T);
    dL_i/dT = (s_own - sum_j P_ij s_ij) / T^2"""
    # -(1 - SHARE) k + SHARE (-k) + (1 - 2 SHARE) q over T: tangentially -k / T. dL/dT = -(1 - 2 SHARE) / T^2.
    _, grad = moco.value_and_grad(QUERY, KEY, QUEUE, temperature=T)
    assert set(grad) == {"queries", "temperature"}
    assert close(grad["queries"], np.array([[0, -1 / T]]))
    assert close(grad["temperature"], -(1 - 2 * SHARE) / T**2)


def test_query_gradient_is_that_of_explicit_negatives():
    ours, theirs = (loss.value_and_grad(QUERY, KEY, QUEUE, temperature=T) for loss in (moco, info_nce))
    assert close(ours[0], theirs[0])
    assert close(ours[1]["queries"], theirs[1]["queries"], scale=1)


def test_keys_of_other_queries_are_no_candidates():
    # Both keys equal both queries; only the orthogonal queue row competes.
    same = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert close(moco(same, same, QUEUE[:1], temperature=T), log(1 + exp(-1 / T)))


def test_own_key_in_the_queue_is_a_negative_too():
    assert close(moco(QUERY, KEY, KEY, temperature=T), log(2))


def test_cotangent_weighs_the_rows_and_sum_adds_them():
    # Query 1 on its key with the queue at a right angle; query 2 the other way around.
    queries, keys, queue = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0]])
    expected = np.array([log(1 + exp(-1 / T)), log(1 + exp(1 / T))])
    assert close(moco(queries, keys, queue, temperature=T, reduction="sum"), sum(expected))
    assert close(moco(queries, keys, queue, temperature=T), sum(expected) / 2)
    rows, grad = moco.value_and_grad(
        queries, keys, queue, temperature=T, reduction="none", cotangent=np.array([0.0, 2.0])
    )
    missed = 1 / (1 + exp(-1 / T))
    assert close(rows, expected)
    assert close(grad["queries"], 2 * missed / T * np.array([[0, 0], [-1, 0]]))
    assert close(grad["temperature"], -2 * missed / T**2)
