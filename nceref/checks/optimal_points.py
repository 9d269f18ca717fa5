"""Points on the sphere that are proved to have the least mean of exp(-t |x - y|^2) for every t.

exp(-t r) is completely monotone in r = |x - y|^2. Cohn & Kumar, Universally optimal distribution of points on spheres
(J. Amer. Math. Soc. 20, 2007), prove in Theorem 1.2 that every sharp configuration minimizes such a potential (m
distances, and a spherical (2m - 1)-design), and so does the 600-cell. Their Table 1 lists those that are known.
"""

import math
from collections.abc import Sequence

_MOST_CORNERS = 10**6
_ROOT5 = math.sqrt(5)

UNIVERSAL_OPTIMA: dict[tuple[int, int], tuple[tuple[float, int], ...]] = {
    (12, 3): ((-1, 1), (-1 / _ROOT5, 5), (1 / _ROOT5, 5)),
    (120, 4): (
        *((-1, 1), ((-1 - _ROOT5) / 4, 12), (-1 / 2, 20), ((1 - _ROOT5) / 4, 12), (0, 30)),
        *(((_ROOT5 - 1) / 4, 12), (1 / 2, 20), ((1 + _ROOT5) / 4, 12)),
    ),
    (16, 5): ((-3 / 5, 5), (1 / 5, 10)),
    (27, 6): ((-1 / 2, 10), (1 / 4, 16)),
    (56, 7): ((-1, 1), (-1 / 3, 27), (1 / 3, 27)),
    (240, 8): ((-1, 1), (-1 / 2, 56), (0, 126), (1 / 2, 56)),
    (112, 21): ((-1 / 3, 30), (1 / 9, 81)),
    (162, 21): ((-2 / 7, 56), (1 / 7, 105)),
    (100, 22): ((-4 / 11, 22), (1 / 11, 77)),
    (275, 22): ((-1 / 4, 112), (1 / 6, 162)),
    (891, 22): ((-1 / 2, 42), (-1 / 8, 512), (1 / 4, 336)),
    (552, 23): ((-1, 1), (-1 / 5, 275), (1 / 5, 275)),
    (4600, 23): ((-1, 1), (-1 / 3, 891), (0, 2816), (1 / 3, 891)),
    (196560, 24): ((-1, 1), (-1 / 2, 4600), (-1 / 4, 47104), (0, 93150), (1 / 4, 47104), (1 / 2, 4600)),
}
"""Inner products of a point with the others, and how many have each, by points and dimensions.

With simplex, cross-polytope and polygons, these are all of Table 1 in fewer than 52 dimensions. The inner products
with their numbers are those of https://cohn.mit.edu/harmonic-optima; the numbers follow from the design, too.
"""


def least_potential(n: int, t: float, dim: int) -> float | None:
    """Least log of the mean of exp(-t |x_i - x_j|^2) over pairs of n unit rows in D dimensions; None if not known.

    A simplex in more dimensions than it needs attains Jensen's bound. On a line, rows are 1 or -1: p of one sign make
    p (n - p) pairs at a distance of 2 and the others at 0, so that equal halves are best, to one row for an odd n.
    """
    if n <= dim + 1:
        return -2 * t * n / (n - 1)
    if dim == 1:
        apart = n // 2 * (n - n // 2)
        return _log_mean([(0.0, n * (n - 1) // 2 - apart), (4.0, apart)], t)
    if n == 2 * dim:
        return _log_mean([(2.0, n - 2), (4.0, 1)], t)
    if dim == 2 and n <= _MOST_CORNERS:
        return _log_mean([(4 * math.sin(math.pi * k / n) ** 2, 1) for k in range(1, n)], t)
    if (n, dim) in UNIVERSAL_OPTIMA:
        return _log_mean([(2 - 2 * cosine, count) for cosine, count in UNIVERSAL_OPTIMA[n, dim]], t)
    return None


def _log_mean(distances: Sequence[tuple[float, int]], t: float) -> float:
    """Log of the mean of e^(-t d), d a squared distance that occurs so often."""
    nearest, pairs = min(d for d, _ in distances), sum(count for _, count in distances)
    if 4 * t < 1:
        # What the mean lacks to 1 keeps its digits where that is little.
        return math.log1p(math.fsum(count * math.expm1(-t * d) for d, count in distances) / pairs)
    total = math.fsum(count * math.exp(t * (nearest - d)) for d, count in distances)
    return math.log(total / pairs) - t * nearest
