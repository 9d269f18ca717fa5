"""Closed forms and the exact mean over random rows, against published numbers and other integrals."""

from itertools import product
from math import cosh, exp, log, pi

import mpmath
import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep

from nceref import losses
from nceref.checks import random_rows
from nceref.checks.expect import expected_readings
from nceref.checks.integrals import distance_power, log_0f1, mean_log_sum, mean_softmax_cosine
from nceref.checks.random_rows import mean_log_potential, mean_of_rows
from nceref.checks.situations import Sizes
from nceref.tolerance import close

PUBLISHED_UNIFORMITY = {2: -1.57502720, 3: -2.07977706, 8: -3.08252723, 128: -3.93753001, 2048: -3.99609376}


@pytest.mark.parametrize(("dim", "printed"), PUBLISHED_UNIFORMITY.items())
def test_uniform_law_has_the_published_uniformity(dim, printed):
    # WI-3, eight decimals.
    assert f"{Sizes({'dim': dim, 't': 2.0}).uniform():.8f}" == f"{printed:.8f}"


def polygon(n):
    """Uniformity of the regular polygon at t = 2, to 50 digits."""
    with mpmath.workdps(50):
        chords = [4 * mpmath.sin(mpmath.pi * k / n) ** 2 for k in range(1, n)]
        return mpmath.log(sum(mpmath.exp(-2 * d) for d in chords) / (n - 1))


def bound(n, dim):
    """The larger of both lower bounds of uniformity, to 50 digits."""
    with mpmath.workdps(50):
        mass = n * mpmath.hyp0f1(mpmath.mpf(dim) / 2, 4) * mpmath.exp(-4) - 1
        simplex = mpmath.mpf(-4 * n) / (n - 1)
        return max(simplex, mpmath.log(mass / (n - 1))) if mass > 0 else simplex


@sweep("n", [3, 5, 8, 16, 24, 64])
def test_polygons_minimize_uniformity_and_come_up_to_the_bound(n):
    sizes = Sizes({"n": n, "dim": 2, "t": 2.0})
    assert close(sizes.least_potential(), float(polygon(n)))
    assert 0 <= bound(n, 2) - sizes.potential_bound() < 1e-11
    assert sizes.potential_bound() <= sizes.least_potential()
    # Terms of degree n and above of the potential are all that is between them: 2 I_n(4) e^-4.
    assert (n < 16) or 0 < polygon(n) - bound(n, 2) + mpmath.mpf(10) ** -45 < 1e-8


@pytest.mark.parametrize(
    ("n", "dim"),
    partly_slow(
        [(4, 3), (5, 2), (5, 3), (6, 3), (8, 2), (8, 4), (12, 3), (30, 3)],
        {(4, 3), (5, 2), (5, 3)}.__contains__,
        "descent in more dimensions or with more points",
    ),
)
def test_descent_from_random_points_ends_at_the_optimum_of_uniformity_or_above_its_bound(n, dim):
    sizes, rng, ends = Sizes({"n": n, "dim": dim, "t": 2.0}), np.random.default_rng(0), []
    for _ in range(3):
        x, rate = rng.standard_normal((n, dim)), 0.5
        value, slope = losses.uniformity.value_and_grad(x)
        for _ in range(150):
            moved = x / np.linalg.norm(x, axis=1, keepdims=True) - rate * slope["x"]
            new, new_slope = losses.uniformity.value_and_grad(moved)
            x, value, slope = (moved, new, new_slope) if new < value else (x, value, slope)
            rate *= 1.3 if new == value else 0.5
        ends.append(value)
    least, limit = sizes.least_potential(), sizes.potential_bound()
    # Random points read U in the mean; 30 points come within .001 of the bound, and U is .28 above it.
    assert limit - 1e-12 < min(ends) < sizes.uniform()
    assert n < 30 or min(ends) < limit + 2e-3
    assert least is None or abs(min(ends) - least) < 1e-3


def test_mean_of_uniformity_is_exact_for_two_points_and_its_interval_holds_what_is_drawn(monkeypatch):
    assert mean_log_potential(2, 2.0, 3, -8.0) == -4
    drawn = mean_log_potential(40, 2.0, 2, Sizes({"n": 40, "dim": 2, "t": 2.0}).potential_bound())
    monkeypatch.setattr(random_rows, "_MOST_POINTS", 3)
    interval = mean_log_potential(40, 2.0, 2, Sizes({"n": 40, "dim": 2, "t": 2.0}).potential_bound())
    assert abs(drawn - interval) < interval.error + 2 * drawn.error
    assert drawn.error < interval.error / 10 < 1e-3


@sweep(
    ("n", "dim", "t"),
    [
        *((2, 1, 1000.0), (3, 1, 1000.0), (300, 64, 1000.0), (10**12, 64, 1000.0), (10**12, 3, 1e-4), (40, 10**6, 1e4)),
        *(
            (8, 4, 1e-300),
            (8, 4, 1e-9),
            (8, 4, 1e-16),
            (300, 2, 1e-300),
            (300, 2, 1e-12),
            (5, 1, 1e-16),
            (12, 3, 1e-300),
        ),
    ],
)
def test_uniformity_has_finite_readings_in_order_at_the_ends_of_its_range(n, dim, t):
    sizes = Sizes({"n": n, "dim": dim, "t": t})
    chance, least, limit = sizes.potential_chance(), sizes.least_potential(), sizes.potential_bound()
    assert limit <= (least if least is not None else chance + chance.error)
    assert least is None or least <= chance + chance.error
    assert chance < 0
    # To first order in t: the mean of |x - y|^2 is 2, and at most 2 N / (N - 1), on a line that of equal halves.
    tiny = t < 1e-8
    assert not tiny or abs(chance / t + 2) < 1e-8
    assert not tiny or abs(least / t + (2.4 if dim == 1 else 2 * n / (n - 1))) < 1e-7
    assert limit - 1e-12 * t <= chance - chance.error <= chance <= sizes.uniform() + 1e-12 * t
    # Two points on a line are at a distance of 2: e^U is a half but for e^-4000.
    assert (n, dim) != (2, 1) or limit == -4 * t


def test_drawn_mean_is_the_integral_where_that_is_known():
    # The own term and its mean are control variates: a sum without it is what is left to the draws.
    head = lambda stats: (stats["negatives"], None)  # noqa: E731
    drawn = mean_of_rows(30, 5.0, 8, {"negatives": 1.0}, head)
    assert abs(drawn - mean_log_sum(30, 5.0, 8)) < 2 * drawn.error < 1e-2


def test_mean_weighted_cosine_is_the_slope_of_the_mean_log_sum():
    for dim, kappa in ((1, 2.0), (3, 5.0), (64, 20.0)):
        h = 1e-4 * kappa
        slope = (mean_log_sum(9, kappa + h, dim) - mean_log_sum(9, kappa - h, dim)) / (2 * h)
        assert abs(mean_softmax_cosine(9, kappa, dim) - slope) < 1e-7


def test_constant_term_of_a_sum_is_a_term_of_equal_rows():
    # One cosine on a line: e^5 or e^-5, next to 3.
    assert close(mean_log_sum(1, 5.0, 1, plus=3.0), (log(3 + exp(5)) + log(3 + exp(-5))) / 2, scale=45)


@pytest.mark.parametrize(("positives", "printed"), [(8, "1.6693540"), (8.192, "1.710976")])
def test_paco_has_the_published_minimum(positives, printed):
    # PC-5: alpha = 0.05.
    bound = Sizes({"alpha": 0.05, "positives": positives, "form": "sum"}).paco_bound()
    assert f"{bound:.{len(printed) - 2}f}" == printed


def test_chance_is_below_its_limit_by_the_first_order_term():
    # Delta method: (0F1(; D/2; k^2) / 0F1(; D/2; k^2/4)^2 - 1) / (2 m), and the next term is smaller by a factor m.
    kappa, dim = 2.0, 16
    limit = log_0f1(dim / 2, kappa**2 / 4)
    spread = (exp(log_0f1(dim / 2, kappa**2) - 2 * limit) - 1) / 2
    for terms in (1000, 10_000):
        gap = log(terms) + limit - mean_log_sum(terms, kappa, dim)
        assert abs(terms * gap - spread) <= spread / terms


# At kappa = 1000 the integral in few dimensions takes seconds.
@sweep(
    ("dim", "kappa"), [*product((1, 2, 3, 128), (1e-3, 1.0, 14.0)), (1, 1000.0), (2, 30.0), (3, 100.0), (128, 1000.0)]
)
def test_mean_of_a_single_term_is_zero(dim, kappa):
    # The mean cosine is 0; the integral adds numbers up to about kappa + 40.
    assert close(mean_log_sum(1, kappa, dim), 0.0, scale=kappa + 40)


def gauss(low, high):
    """Nodes and weights of a rule that is exact to rounding for what is analytic within .6 of the interval."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    return (low + high) / 2 + (high - low) / 2 * nodes, (high - low) / 2 * weights


@pytest.mark.parametrize("exponent", [0.01, 1.0, 2.0, 7.5])
@pytest.mark.parametrize("dim", [1, 2, 3, 7])
def test_mean_power_of_a_distance_is_its_integral(dim, exponent):
    def moment(a):
        """E r^a, r = 2 sin(angle / 2), to 30 digits; on a line r is 0 or 2."""
        if dim == 1:
            return mpmath.mpf(2) ** (a - 1)
        weight = lambda angle: mpmath.sin(angle) ** (dim - 2)  # noqa: E731
        powers = mpmath.quad(lambda angle: weight(angle) * (2 * mpmath.sin(angle / 2)) ** a, [0, 0.4, 1.6, mpmath.pi])
        return powers / mpmath.quad(weight, [0, 1.6, mpmath.pi])

    with mpmath.workdps(30):
        a = mpmath.mpf(exponent)
        exact = moment(a), mpmath.sqrt(moment(2 * a) - moment(a) ** 2)
        assert all(abs(x / y - 1) < 1e-15 for x, y in zip(distance_power(exponent, dim), exact, strict=True))


def test_mean_log_of_two_terms_is_that_of_the_double_integral():
    # The cosine is uniform on the sphere, its angle on the circle.
    s, w = gauss(-1, 1)
    sphere = w @ np.log(np.exp(5 * s)[:, None] + np.exp(5 * s)) @ w / 4
    angle, w = gauss(0, pi)
    circle = w @ np.log(np.exp(5 * np.cos(angle))[:, None] + np.exp(5 * np.cos(angle))) @ w / pi**2
    for dim, mean in ((3, sphere), (2, circle)):
        assert close(mean_log_sum(2, 5.0, dim), mean, scale=45)
    assert close(mean_log_sum(2, 5.0, 1), (log(2) + log(2 * cosh(5))) / 2, scale=45)


def test_mean_log_of_an_own_term_is_that_of_the_double_integral():
    # Two terms on the sphere, where the cosine is uniform: one is cos - sin / 4, analytic in the angle.
    moved = mean_log_sum(2, 5.0, 3, lambda cos, sin: cos - sin / 4)
    (angle, w), (t, v) = gauss(0, pi), gauss(-1, 1)
    own = np.exp(5 * (np.cos(angle) - np.sin(angle) / 4))
    expected = (w * np.sin(angle)) @ np.log(own[:, None] + np.exp(5 * t)) @ v / 4
    assert close(moved, expected, scale=45)


def test_own_term_that_is_as_all_others_changes_nothing():
    assert close(mean_log_sum(50, 14.0, 8, lambda cos, _: cos), mean_log_sum(50, 14.0, 8), scale=60)


def test_cold_temperatures_are_refused_with_the_reason():
    sizes = Sizes({"dim": 8, "temperature": 1e-5})
    assert sizes.chance(10) is None
    assert sizes.reasons == ["the integral takes too long for T < 0.0001"]


@sweep("name", ["clip", "dcl", "dclw", "info_nce", "nt_xent", "supcon_out"])
def test_fewer_dimensions_hold_no_better_rows(name):
    given = {"n": 20, "temperature": 0.3}

    def readings(dim):
        return {r.situation: r.value for r in expected_readings(name, {**given, "dim": dim}).readings}

    many = readings(64)
    best = many.get("optimum", many.get("lower bound"))
    for dim in (1, 2, 8):
        few = readings(dim)
        assert few.get("optimum") is None
        assert few["lower bound"] >= best


@sweep(
    ("name", "given", "situation", "reason"),
    [
        ("nt_xent", {"n": 256, "temperature": 0.1, "dim": 128}, "optimum", "known for D >= 255"),
        ("nt_xent", {"n": 1, "temperature": 0.1}, "optimum", "needs N >= 2"),
        ("dcl", {"n": 1, "temperature": 0.1}, "collapse", "needs a negative: there is none to compare with"),
        (
            "supcon_out",
            {"n": 64, "temperature": 0.1},
            "optimum",
            "known for balanced classes (64 is not a multiple of 10)",
        ),
        (
            "cosface",
            {"n": 8, "dim": 4},
            "optimum",
            "known for balanced classes (8 is not a multiple of 10), and known for D >= 9",
        ),
        (
            "supcon_out",
            {"n": 8, "dim": 4, "temperature": 0.1},
            "optimum",
            "known for balanced classes (8 is not a multiple of 10), and known for D >= 9",
        ),
        ("debiased", {"n": 64, "dim": 3, "temperature": 0.1}, "optimum", "known for D >= 63"),
        ("supcon_out", {"n": 10, "temperature": 0.1}, "optimum", "needs 2 rows of a class, or there is no positive"),
        (
            "supcon_in",
            {"n": 64, "temperature": 0.1, "dim": 8},
            "chance",
            "known for balanced classes (64 is not a multiple of 10)",
        ),
        ("alignment", {"exponent": 3000}, "chance", "leaves the range of 64-bit floats, or takes too long to add up"),
        (
            "paco",
            {"n": 16, "alpha": 1},
            "chance",
            "known for balanced classes (16 is not a multiple of 10) or `positives`",
        ),
        (
            "uniformity",
            {"n": 7, "dim": 3},
            "optimum",
            "known for N <= D + 1, N = 2 D, D <= 2 and 14 more sizes; else from the lower bound to chance",
        ),
        (
            "uniformity",
            {"n": 40, "dim": 10**6, "t": 1e5},
            "chance",
            "leaves the range of 64-bit floats, or takes too long to add up",
        ),
        (
            "hcl",
            {"n": 10**6, "temperature": 0.1, "dim": 8},
            "chance",
            "drawing takes too long for more than 100,000 negatives or T < 0.0001",
        ),
        (
            "hcl",
            {"n": 8, "temperature": 0.5, "dim": 8, "concentration": 2.0**35},
            "chance",
            "drawn for a concentration < 2^36 T: above, rounding hides the mean",
        ),
        ("cosface", {"dim": 8, "margin": 1e300}, "chance", "the integral takes too long for s m > 10000"),
        ("info_nce", {"n": 8, "temperature": 1e-5, "dim": 8}, "chance", "the integral takes too long for T < 0.0001"),
    ],
)
def test_a_situation_that_cannot_arise_says_what_it_would_need(name, given, situation, reason):
    reading = next(r for r in expected_readings(name, given).readings if r.situation == situation)
    assert (reading.value, reading.because, reading.needs_dim) == (None, reason, False)
