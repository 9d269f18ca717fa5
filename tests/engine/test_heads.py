"""Functions that heads are made of: digits at both ends, and slopes that are derivatives."""

import mpmath
import numpy as np
import pytest

from nceref.engine import heads

pytestmark = pytest.mark.machine

ENDS = np.array([-745.0, -40.0, -1.0, -1e-17, 0.0, 1e-17, 1.0, 40.0, 700.0])
EPS = np.finfo(float).eps


def exactly(function, x):
    """In 700 digits: 1 - e^-700 needs more than 304 of them."""
    with mpmath.workdps(700):
        return np.array([float(function(mpmath.mpf(float(one)))) for one in x])


@pytest.mark.parametrize("bounded", [False, True])
def test_softplus_and_sigmoid_keep_their_digits(bounded):
    x = ENDS[np.abs(ENDS) < 350] if bounded else ENDS
    value, slope = heads.softplus_and_sigmoid_of_block(x, bounded)
    expected = exactly(lambda x: mpmath.log1p(mpmath.exp(x)), x)
    assert np.all(np.abs(value - expected) <= 4 * EPS * expected + 5e-324)
    expected = exactly(lambda x: 1 / (1 + mpmath.exp(-x)), x)
    assert np.all(np.abs(slope - expected) <= 4 * EPS * expected + 5e-324)


def test_log1mexp_keeps_its_digits_on_both_sides_of_its_branch():
    x = np.array([-1e-300, -1e-9, -0.69, -0.7, -3.0, -40.0, -700.0])
    expected = exactly(lambda x: mpmath.log(-mpmath.expm1(x)), x)
    assert np.all(np.abs(heads.log1mexp(x) - expected) <= 4 * EPS * np.abs(expected))
    assert heads.log1mexp(np.zeros(1))[0] == -np.inf


def stats_of_positive_set(rng):
    peak = rng.standard_normal(4)
    columns = (peak, peak - rng.uniform(0, 1, 4), rng.uniform(1, 3, 4), np.full(4, 2.0))
    return {"negatives": rng.standard_normal(4), "positives": np.stack(columns, axis=1)}


def stats_of_one_positive(rng):
    return {"negatives": 2 + rng.standard_normal(4), "positive": rng.uniform(-1, 1, 4)}


@pytest.mark.parametrize(
    ("head", "draw"),
    [
        (heads.softmax_one_positive, stats_of_one_positive),
        (heads.difference, stats_of_one_positive),
        (heads.corrected_negatives(0.5, 0.1, 4), stats_of_one_positive),
        (heads.corrected_negatives(0.5, 0.0, 4), stats_of_one_positive),
    ],
)
def test_a_vjp_is_the_derivative_of_the_rows(head, draw):
    """By central differences; every row depends on its own statistics only."""
    stats, step = draw(np.random.default_rng(0)), 1e-6
    c = np.array([1.0, -2.0, 0.5, 3.0])
    slopes = head(stats)[1](c)
    for name, x in stats.items():
        above, below = (head({**stats, name: x + move})[0] for move in (step, -step))
        np.testing.assert_allclose(slopes[name], c * (above - below) / (2 * step), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("form", ["mean", "sum"])
def test_the_vjp_of_a_positive_set_goes_to_peak_and_to_peak_less_level(form):
    stats, step = stats_of_positive_set(np.random.default_rng(0)), 1e-6
    head = heads.positive_set("error", form)
    slopes = head(stats)[1](np.ones(4))

    def moved(name, by):
        return head({**stats, name: stats[name] + by})[0]

    by_negatives = (moved("negatives", step) - moved("negatives", -step)) / (2 * step)
    np.testing.assert_allclose(slopes["negatives"], by_negatives, rtol=1e-7, atol=1e-8)
    # The second column is the slope of peak - level with the peak held, the first that of the peak with the gap held.
    for column, by in ((0, np.array([step, step, 0, 0])), (1, np.array([0, -step, 0, 0]))):
        difference = (moved("positives", by) - moved("positives", -by)) / (2 * step)
        np.testing.assert_allclose(slopes["positives"][:, column], difference, rtol=1e-7, atol=1e-8)
