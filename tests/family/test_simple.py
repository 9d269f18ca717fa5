import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import simple
from nceref.tolerance import close

# Similarities of the rows with themselves: 1 on the diagonal, -1 between the first and the last, else 0.
THREE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def test_default_weight_is_the_mean_over_negatives():
    # Rows: -1 + (0 - 1) / 2, -1 + (0 + 0) / 2, -1 + (-1 + 0) / 2.
    assert close(simple(THREE, THREE, reduction="none"), np.array([-3 / 2, -1, -3 / 2]))
    assert close(simple(THREE, THREE), -4 / 3)


def test_weight_multiplies_the_sum_over_negatives():
    assert close(simple(THREE, THREE, negative_weight=1.0, reduction="sum"), -2 - 1 - 2)
    assert close(simple(THREE, THREE, negative_weight=0.0), -1)


def test_gradient_is_minus_the_key_plus_the_weighted_other_keys():
    """dL_i/ds_ii = -1,  dL_i/ds_ij = w"""
    # Tangential parts: q_1 and q_3 keep w k_2 = (0, w); q_2 keeps w (k_1 + k_3) = 0. Keys are the same by symmetry.
    w = 2.0
    _, grad = simple.value_and_grad(THREE, THREE, negative_weight=w)
    expected = np.array([[0, w], [0, 0], [0, w]]) / 3
    assert set(grad) == {"queries", "keys"}
    assert close(grad["queries"], expected)
    assert close(grad["keys"], expected)


def test_radial_part_stays_without_normalization():
    # dL/dq_1 = (-k_1 + (k_2 + k_3) / 2) / 3.
    _, grad = simple.value_and_grad(THREE, THREE, normalize="none")
    assert close(grad["queries"][0], np.array([-1 - 1 / 2, 1 / 2]) / 3)


def test_one_pair_has_no_negative_and_only_attracts():
    # L = -q.k at a right angle, whatever the weight.
    for weight in (None, 5.0):
        value, grad = simple.value_and_grad(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), negative_weight=weight)
        assert value == 0
        assert close(grad["queries"], np.array([[0.0, -1.0]]))
        assert close(grad["keys"], np.array([[-1.0, 0.0]]))


def test_cotangent_weighs_the_rows():
    _, grad = simple.value_and_grad(
        THREE, THREE, negative_weight=1.0, reduction="none", cotangent=np.array([0.0, 2.0, 0.0])
    )
    # Row 2 alone, -q_2.k_2 + q_2.k_1 + q_2.k_3: keys 1 and 3 get q_2, and key 2 is parallel to it.
    assert close(grad["queries"], np.zeros((3, 2)))
    assert close(grad["keys"], np.array([[0, 2], [0, 0], [0, 2]]))


def test_negative_weight_below_zero_is_refused():
    with pytest.raises(InputError, match="`negative_weight` must be >= 0, got -1"):
        simple(THREE, THREE, negative_weight=-1)
