from math import sqrt

import numpy as np
import pytest
from sweep import sweep

from nceref.losses import alignment
from nceref.tolerance import close

# One orthogonal pair: the squared distance is 2.
X, Y = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])


@pytest.mark.parametrize(("a", "value"), [(1.0, sqrt(2)), (2.0, 2.0), (3.0, 2 * sqrt(2))])
def test_distance_to_a_power_and_its_gradient(a, value):
    """dL_i/dx_i = a |x_i - y_i|^(a-2) (x_i - y_i) = -dL_i/dy_i"""
    # a |x - y|^(a - 2) (x - y), of which the component along y is tangential at x, and conversely.
    loss, grad = alignment.value_and_grad(X, Y, exponent=a)
    assert set(grad) == {"x", "y"}
    assert close(loss, value)
    assert close(grad["x"], np.array([[0, -a * value / 2]]))
    assert close(grad["y"], np.array([[-a * value / 2, 0]]))


def test_exponent_defaults_to_two():
    assert close(alignment(X, Y), 2.0)


@sweep("exponent", [0.5, 1.0, 1.5, 2.0, 3.0])
@sweep("normalize", ["l2", "none"])
def test_equal_pair_is_zero_with_zero_gradient(exponent, normalize):
    value, grad = alignment.value_and_grad(X, X, exponent=exponent, normalize=normalize)
    assert value == 0
    assert not grad["x"].any()
    assert not grad["y"].any()


def test_radial_part_stays_without_normalization():
    # d = 5 for (3, 0) and (0, 4): dL/dx = (x - y) / 5 for exponent 1.
    value, grad = alignment.value_and_grad(3 * X, 4 * Y, exponent=1.0, normalize="none")
    assert close(value, 5.0)
    assert close(grad["x"], np.array([[3, -4]]) / 5)
    assert close(grad["y"], np.array([[-3, 4]]) / 5)


def test_mean_of_two_rows_is_half_their_sum():
    # An opposite pair at distance 2, and an orthogonal one.
    x, y = np.concatenate([X, X]), np.concatenate([-X, Y])
    assert close(alignment(x, y, reduction="sum"), 4 + 2)
    assert close(alignment(x, y), 3)


def test_cotangent_weighs_the_rows():
    x, y = np.concatenate([X, X]), np.concatenate([X, Y])
    rows, grad = alignment.value_and_grad(x, y, reduction="none", cotangent=np.array([5.0, 3.0]))
    assert close(rows, np.array([0.0, 2.0]))
    assert close(grad["x"], np.array([[0, 0], [0, -6]]))
    assert close(grad["y"], np.array([[0, 0], [-6, 0]]))
