from math import exp, expm1, log, log1p

import numpy as np
import pytest
from sweep import sweep

from nceref import config
from nceref.errors import InputError
from nceref.losses import uniformity
from nceref.tolerance import close

# Squared distances 2, 2 to the middle row and 4 between the outer ones; S sums the potentials of the three pairs.
THREE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
T = 0.5
S = 2 * exp(-2 * T) + exp(-4 * T)


def test_log_of_the_mean_over_pairs():
    assert close(uniformity(THREE, t=T), log(S / 3))


def test_diagonal_counts_every_point_with_itself():
    # Nine ordered pairs: three of potential 1, and each of the others twice.
    assert close(uniformity(THREE, t=T, include_diagonal=True), log((3 + 2 * S) / 9))


def test_gradient_pushes_each_point_off_the_others():
    """pairs i < j: dL/dx_i = -2t sum_j w_ij (x_i - x_j),  w_ij = exp(-t d_ij^2) / sum_{k<l} exp(-t d_kl^2),
    d_ij = |x_i - x_j|"""
    # -2t sum_j w_ij (x_i - x_j), w = potential / S: at e_1 only x_2 is tangential, 2t w_12 (0, 1);
    # the middle row is pushed by both sides alike.
    _, grad = uniformity.value_and_grad(THREE, t=T)
    assert set(grad) == {"x"}
    assert close(grad["x"], 2 * T * exp(-2 * T) / S * np.array([[0, 1], [0, 0], [0, 1]]), scale=1)


def test_diagonal_makes_the_gradient_smaller():
    # Each pair counts twice among potentials that add up to 3 + 2 S.
    _, grad = uniformity.value_and_grad(THREE, t=T, include_diagonal=True)
    assert close(grad["x"], 2 * T * 2 * exp(-2 * T) / (3 + 2 * S) * np.array([[0, 1], [0, 0], [0, 1]]), scale=1)


def test_radial_part_stays_without_normalization():
    # Two points at distance 1: L = -t d^2, and dL/dx_1 = -2t (x_1 - x_2).
    value, grad = uniformity.value_and_grad(np.array([[2.0, 0.0], [1.0, 0.0]]), t=T, normalize="none")
    assert close(value, -T)
    assert close(grad["x"], -2 * T * np.array([[1, 0], [-1, 0]]))


def test_t_defaults_to_two():
    assert close(uniformity(THREE), log((2 * exp(-4) + exp(-8)) / 3))


def test_equal_points_are_the_maximum_zero():
    value, grad = uniformity.value_and_grad(np.ones((3, 2)))
    assert close(value, 0.0, scale=1)
    assert close(grad["x"], np.zeros((3, 2)), scale=1)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_reduction_other_than_mean_is_refused(reduction):
    with pytest.raises(InputError, match="uniformity has no rows, so `reduction` must be 'mean'"):
        uniformity(THREE, reduction=reduction)


def test_cotangent_is_refused():
    with pytest.raises(InputError, match="`cotangent` goes with reduction='none' only"):
        uniformity.value_and_grad(THREE, cotangent=np.ones(3))


def test_one_point_alone_is_refused():
    with pytest.raises(InputError, match="at least 2 rows of `x` to form a pair, got 1"):
        uniformity(THREE[:1])


@sweep("block", [64, 1])
@sweep("include_diagonal", [False, True])
@sweep("t", [1e-300, 1e-17, 1e-9, 1e-3])
def test_potentials_near_1_keep_all_digits(t, include_diagonal, block):
    """Points 0, 1 and 3 on a line: log1p of the mean of what the potentials lack to 1."""
    lacks = [expm1(-t * square) for square in (1, 9, 4)]
    count = 4.5 if include_diagonal else 3
    with config(block=block):
        value, grad = uniformity.value_and_grad(
            np.array([[0.0], [1.0], [3.0]]), t=t, include_diagonal=include_diagonal, normalize="none"
        )
    assert value == pytest.approx(log1p(sum(lacks) / count), rel=2e-15, abs=0)
    slope = 2 * t * (1 + lacks[0] + 3 * (1 + lacks[1])) / (count + sum(lacks))
    assert grad["x"][0, 0] == pytest.approx(slope, rel=2e-15, abs=0)
