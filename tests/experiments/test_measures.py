"""What is measured of features, worked by hand."""

import numpy as np
import pytest

from nceref.experiments import measures


def test_measures_of_features_worked_by_hand():
    z = np.array([[1.0, 0], [1, 0], [0, 1], [0, -1]])
    labels = np.array([0, 0, 1, 1])
    assert measures.tolerance(z, labels) == pytest.approx((2 * 1 + 2 * -1) / 4)
    # Squared distances of the six pairs: 0, 4 and four times 2.
    assert measures.uniformity(z) == pytest.approx(-np.log((1 + np.exp(-8) + 4 * np.exp(-4)) / 6))
    assert measures.effective_rank(np.vstack([np.eye(3), -np.eye(3)])) == pytest.approx(3)
    assert measures.effective_rank(np.array([[1.0, 0], [-1, 0], [0, 0]])) == pytest.approx(1)
    assert measures.neighbor_accuracy(z, labels, z, labels, k=1) == 1
    assert measures.slope(np.array([1, 10, 100]), np.array([5.0, 0.5, np.nan])) == pytest.approx(-1)


def test_the_probe_is_the_minimum_of_its_objective():
    """At it the mean of (p - y) x is -decay w, and that of p - y is 0; columns are standardized, constant ones too."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    x = rng.standard_normal((60, 4)) + np.eye(3, 4)[labels]
    x[:, 3] = 2.0
    assert np.mean(measures.probed(x, labels, x) == labels) > 0.5
    np.testing.assert_array_equal(measures.probed(x * [1, 1e3, 1, 1] + 5, labels, x * [1, 1e3, 1, 1] + 5),
                                  measures.probed(x, labels, x))  # fmt: skip
    sklearn = pytest.importorskip("sklearn.linear_model", reason="another logistic regression")
    z = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    other = sklearn.LogisticRegression(C=1 / (len(x) * measures.DECAY), tol=1e-8, max_iter=10_000).fit(z, labels)
    test = rng.standard_normal((500, 4)) + np.array([0, 0, 0, 2])
    predicted = measures.probed(x, labels, test)
    seen = other.predict((test - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1))
    assert np.mean(predicted == seen) > 0.99
