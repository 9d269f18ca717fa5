"""Points with the least uniformity: against a linear program, against points that are built, and on a line."""

from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from sweep import sweep

from nceref import losses
from nceref.checks.optimal_points import UNIVERSAL_OPTIMA, least_potential
from nceref.tolerance import close


def touching(cosines, t):
    """Coefficients, low to high, of the polynomial that touches exp(-2t (1 - s)) at all cosines, and cuts it at -1."""
    nodes = sorted([*cosines, *(c for c in cosines if c != -1)])
    table = [mpmath.exp(-2 * t * (1 - c)) for c in nodes]
    out, basis = [mpmath.mpf(0)] * len(nodes), [mpmath.mpf(1)]
    for order, node in enumerate(nodes):
        out = [a + table[0] * b for a, b in zip(out, [*basis, *[0] * len(out)], strict=False)]
        basis = [a - node * b for a, b in zip([0, *basis], [*basis, 0], strict=True)]
        # Newton's divided differences; the derivative where a node stands twice.
        ends = [(nodes[i], nodes[i + order + 1]) for i in range(len(table) - 1)]
        slopes = [2 * t * mpmath.exp(-2 * t * (1 - low)) for low, _ in ends]
        table = [
            slopes[i] if low == high else (table[i + 1] - table[i]) / (high - low) for i, (low, high) in enumerate(ends)
        ]
    return out


def harmonics(polynomial, dim):
    """Means over the sphere of a polynomial of the cosine times each Gegenbauer polynomial."""
    powers = [
        0 if k % 2 else mpmath.rf(mpmath.mpf(1) / 2, k // 2) / mpmath.rf(mpmath.mpf(dim) / 2, k // 2)
        for k in range(2 * len(polynomial))
    ]
    before, this, out = [mpmath.mpf(0)], [mpmath.mpf(1)], []
    for k in range(len(polynomial)):
        out.append(sum(a * b * powers[i + j] for i, a in enumerate(this) for j, b in enumerate(polynomial)))
        # (k + D - 2) P_(k + 1) = (2k + D - 2) s P_k - k P_(k - 1), with P_k(1) = 1.
        later = [mpmath.mpf(0), *((2 * k + dim - 2) * a for a in this)] if k else [mpmath.mpf(0), mpmath.mpf(1)]
        later = [a - k * b for a, b in zip(later, [*before, *[0] * len(later)], strict=False)]
        before, this = this, [a / (k + dim - 2) for a in later] if k else later
    return out


@sweep("t", [0.1, 2, 20])
@sweep(("n", "dim"), [*UNIVERSAL_OPTIMA, (8, 4), (9, 2), (5, 4)])
def test_linear_program_proves_that_no_points_are_better_than_those_of_the_table(n, dim, t):
    # Cohn & Kumar 2007: h <= f without a negative harmonic bounds the sum over pairs by N^2 h_0 - N h(1).
    with mpmath.workdps(60):
        if dim == 2:
            cosines = [mpmath.cos(2 * mpmath.pi * k / n) for k in range(1, n // 2 + 1)]
        elif n == dim + 1:
            cosines = [-mpmath.mpf(1) / dim]
        else:
            rows = UNIVERSAL_OPTIMA.get((n, dim), ((-1, 1), (0, n - 2)))
            cosines = [mpmath.mpf(c) for c, _ in rows]
        polynomial = touching(cosines, mpmath.mpf(t))
        waves = harmonics(polynomial, dim)
        bound = mpmath.log((n * waves[0] - sum(polynomial)) / (n - 1))
    if (n, dim) == (120, 4):
        # No design of the strength that makes this polynomial exact; the proof takes another one.
        assert least_potential(n, t, dim) > bound - 1e-12
    else:
        assert min(waves) > -1e-14 * abs(waves[0])
        assert abs(least_potential(n, t, dim) - bound) < 1e-11 * abs(bound)


def unit_rows(x):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    # The same row but for rounding; -0.0 is 0.
    return x[np.unique(np.round(x, 9) + 0.0, axis=0, return_index=True)[1]]


def around(x, cosine):
    """Directions from the first row to those that have this cosine with it."""
    return x[np.abs(x @ x[0] - cosine) < 1e-9] - cosine * x[0]


def test_points_that_are_built_read_what_the_table_says():
    golden, signs = (1 + 5**0.5) / 2, np.array(list(product((-1, 1), repeat=8)))
    sphere = [np.roll((0, a, b * golden), k) for a, b, k in product((-1, 1), (-1, 1), range(3))]
    pairs = [a * np.eye(8)[i] + b * np.eye(8)[j] for a, b, i in product((-1, 1), (-1, 1), range(8)) for j in range(i)]
    roots = unit_rows(np.concatenate([pairs, signs[signs.prod(axis=1) > 0] / 2]))
    even = [list(p) for p in permutations(range(4)) if np.linalg.det(np.eye(4)[list(p)]) > 0]
    mixed = [np.array([a * golden, b, c / golden, 0])[p] for a, b, c in product((-1, 1), repeat=3) for p in even]
    points = {(12, 3): np.array(sphere), (240, 8): roots}
    points[120, 4] = np.concatenate([2 * np.eye(4), -2 * np.eye(4), signs[:, :4], mixed])
    points[56, 7] = unit_rows(around(roots, 0.5))
    points[27, 6] = unit_rows(around(points[56, 7], 1 / 3))
    points[16, 5] = unit_rows(around(points[27, 6], 0.25))
    for (n, dim), rows in points.items():
        x = unit_rows(rows)
        assert (len(x), np.linalg.matrix_rank(x, tol=1e-6)) == (n, dim)
        for t in (0.3, 2.0, 9.0):
            assert abs(losses.uniformity(x, t=t) - least_potential(n, t, dim)) < 1e-10


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_best_rows_on_a_line_are_two_halves(n):
    of_signs = [losses.uniformity(np.array(signs, dtype=float)[:, None], t=0.7) for signs in product((-1, 1), repeat=n)]
    assert close(least_potential(n, 0.7, 1), min(of_signs))
