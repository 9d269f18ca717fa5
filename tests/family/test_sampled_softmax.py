from math import exp

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import info_nce, sampled_softmax
from nceref.tolerance import close

T = 0.5
# Every query on its own item, at right angles to the two others: logits 1/T and 0.
ROWS, COUNTS = np.eye(3), np.array([2.0, 1.0, 0.5])
POSITIVE = exp(1 / T)
OTHERS = np.array([1 + 2, 1 / 2 + 2, 1 / 2 + 1])
"""Sums of 1 / m over the other items."""


def value(**given):
    return sampled_softmax(ROWS, ROWS, COUNTS, temperature=T, reduction="none", **given)


def test_every_item_is_divided_by_its_count():
    assert close(value(), np.log(1 + OTHERS * COUNTS / POSITIVE))


def test_the_positive_is_not_sampled():
    assert close(value(correction="negatives"), np.log(1 + OTHERS / POSITIVE))


def test_the_gap_is_weighted_by_the_probability_of_a_mistake():
    weight = OTHERS / (OTHERS + POSITIVE)
    assert close(value(correction="weighted"), weight * (np.log(OTHERS) - 1 / T))


def test_items_with_the_id_of_the_positive_are_no_negatives():
    # Items 0 and 2 are one.
    others = np.array([1.0, 1 / 2 + 2, 1.0])
    assert close(value(item_ids=[7, 3, 7]), np.log(1 + others * COUNTS / POSITIVE))


def test_the_refined_corrections_have_one_gradient():
    """dL_i/ds_ij = (P_ij - [j = i]) / T,  s_ij = q_i.v_j,  P_i = softmax over the corrected logits;
    dL_i/dT = (s_ii - sum_j P_ij s_ij) / T^2"""
    q, v, m = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([4.0, 0.5])
    # Each query has one negative; the positive is divided by its own count with "all" only.
    for correction, own in (("all", m), ("negatives", 1), ("weighted", 1)):
        share = (1 / m[::-1]) / (1 / m[::-1] + POSITIVE / own)
        slopes = share[:, None] * np.array([[-1, 1], [1, -1]]) / T / 2
        _, grad = sampled_softmax.value_and_grad(q, v, m, temperature=T, correction=correction, normalize="none")
        assert close(grad["queries"], slopes @ v)
        assert close(grad["items"], slopes.T @ q)
        assert close(grad["temperature"], np.mean(share) / T**2)


def test_equal_counts_are_info_nce():
    rng = np.random.default_rng(0)
    q, v = rng.standard_normal((2, 5, 3))
    assert close(sampled_softmax(q, v, np.full(5, 3.0), temperature=T), info_nce(q, v, temperature=T))


def test_one_program_of_the_formulas():
    # A dense program of the three corrections in NumPy, on logits of this generator.
    drawn = np.random.default_rng(0)
    drawn.standard_normal(2 * 24 + 48 + 48 + 48 + 48 + 30 + 72 + 120 + 12)
    f, q = drawn.standard_normal((4, 4)), drawn.dirichlet(np.ones(4))
    given = {"temperature": 1.0, "normalize": "none"}
    assert abs(sampled_softmax(f, np.eye(4), q, **given, reduction="sum") - 10.914311) < 5e-7
    hits = sampled_softmax(f, np.eye(4), q, item_ids=[7, 3, 7, 9], **given, reduction="sum")
    assert abs(hits - 9.906108) < 5e-7
    assert abs(sampled_softmax(f, np.eye(4), 3 * q, correction="negatives", **given) - 3.294886) < 5e-7


@pytest.mark.parametrize(
    ("counts", "more", "reason"),
    [
        ([2.0, 0.0, 1.0], {}, "`expected_counts` must be > 0"),
        ([2.0, 1.0], {}, "`expected_counts` must be (N,) = (3,)"),
        (COUNTS, {"item_ids": [1, 2]}, "`item_ids` must be (N,) = (3,)"),
        (COUNTS, {"item_ids": [1, 1, 1], "correction": "weighted"}, "query 0 has no negative"),
    ],
)
def test_what_means_nothing_is_refused(counts, more, reason):
    with pytest.raises(InputError) as refusal:
        sampled_softmax(ROWS, ROWS, np.array(counts), temperature=T, **more)
    assert reason in str(refusal.value)
