from math import exp, log

import numpy as np
from sweep import sweep

from nceref.family.hard_contrastive import kept
from nceref.losses import hard_contrastive
from nceref.tolerance import close

T = 0.5
# Similarities of the rows with themselves: 1 on the diagonal, -1 between the first and the last, else 0.
THREE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
P = 1 / (1 + exp(1 / T))


def test_half_of_two_negatives_keeps_the_harder_one():
    # Rows 1 and 3 drop their opposite; row 2 has two equal negatives and keeps one. All read log(1 + e^(-1/T)).
    rows = hard_contrastive(THREE, THREE, temperature=T, fraction=0.5, reduction="none")
    assert close(rows, np.full(3, log(1 + exp(-1 / T))))


def test_more_than_half_of_two_negatives_keeps_both():
    rows = hard_contrastive(THREE, THREE, temperature=T, fraction=0.51, reduction="none")
    outer = log(1 + exp(-1 / T) + exp(-2 / T))
    assert close(rows, np.array([outer, log(1 + 2 * exp(-1 / T)), outer]))


def test_tie_keeps_the_negative_of_lower_index():
    """as InfoNCE on the kept set, 0 on the other negatives"""
    # Row 2 repels key 1 with P / T and leaves key 3 alone, though both are equally similar; mean over three rows.
    # Key 2 is the negative of queries 1 and 3, which cancel. dL/dT = (1 - (1 - P)) / T^2 in every row.
    _, grad = hard_contrastive.value_and_grad(THREE, THREE, temperature=T, fraction=0.5)
    assert set(grad) == {"queries", "keys", "temperature"}
    assert close(grad["keys"], P / (3 * T) * np.array([[0, 1], [0, 0], [0, 0]]), scale=1)
    assert close(grad["queries"], P / (3 * T) * np.array([[0, 1], [1, 0], [0, 1]]), scale=1)
    assert close(grad["temperature"], P / T**2)


@sweep(
    ("fraction", "negatives", "count"),
    [
        (1.0, 10, 10),
        (0.7, 10, 7),
        (0.71, 10, 8),
        (0.07, 100, 7),
        (1e-6, 10, 1),
        (0.5, 1, 1),
        (0.5, 0, 0),
    ],
)
def test_quantile_rounds_up_and_keeps_at_least_one(fraction, negatives, count):
    assert kept(fraction, negatives) == count


def test_one_pair_alone_is_zero_with_zero_gradient():
    value, grad = hard_contrastive.value_and_grad(np.eye(1), -np.eye(1), temperature=T, fraction=0.5)
    assert value == 0
    assert not grad["queries"].any()
    assert grad["temperature"] == 0


def test_cotangent_weighs_the_rows_and_sum_adds_them():
    args = {"temperature": T, "fraction": 0.5}
    assert close(hard_contrastive(THREE, THREE, reduction="sum", **args), 3 * log(1 + exp(-1 / T)))
    _, grad = hard_contrastive.value_and_grad(
        THREE, THREE, reduction="none", cotangent=np.array([0.0, 2.0, 0.0]), **args
    )
    assert close(grad["queries"], 2 * P / T * np.array([[0, 0], [1, 0], [0, 0]]))
    assert close(grad["temperature"], 2 * P / T**2)


def test_the_printed_number_of_negatives_is_the_one_that_is_kept():
    import math
    import re

    printed = re.search(r"k = (.*), s_ij", hard_contrastive.declaration.text)[1].replace(
        "fraction (N-1)", "f * (n - 1)"
    )
    names = {"max": max, "round": round, "ceil": math.ceil}
    # 0.07 * 100 is above 7 in floating point, 1e-12 keeps one all the same.
    for f, n in [(0.07, 101), (0.5, 4), (1e-12, 5), (1.0, 9), (0.51, 3), (1 / 3, 10)]:
        assert eval(printed, names, {"f": f, "n": n}) == kept(f, n - 1)
    assert kept(0.07, 100) == 7 != math.ceil(0.07 * 100)
