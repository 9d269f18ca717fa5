"""Numbers at which a measured function is 0, one in each gap of a grid."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

_STEPS = 60
"""How often a root is approached at most."""


def roots(
    f: Callable[[float], float], grid: Sequence[float], gaps: Sequence[float], room: float, near: float = 0.0
) -> Iterator[float]:
    """Roots of a function between neighbors of a grid.

    `grid`: in order. `gaps`: the function there; between two of one sign, and beside one that is no number, nothing is
    looked for. `room`: how far from 0 rounding may leave the function at its root: where it jumps there is none.
    `near`: the share of the room that is near enough; a root known so may be far less exact than it can be.
    """
    for a, b, fa, fb in zip(grid, grid[1:], gaps, gaps[1:], strict=False):
        if np.isfinite(fa) and np.isfinite(fb) and fa * fb <= 0 and fa != fb:
            root = _root(f, float(a), float(b), float(fa), float(fb), room, near * room)
            if root is not None:
                yield root


def _root(
    f: Callable[[float], float], a: float, b: float, fa: float, fb: float, room: float, enough: float
) -> float | None:
    """Regula falsi with bisection, by the rule of Illinois."""
    for _ in range(_STEPS):
        c = b - fb * (b - a) / (fb - fa) if fb != fa else 0.5 * (a + b)
        fc = f(c)
        if not np.isfinite(fc):
            return None
        if abs(fc) <= enough or abs(b - a) <= 1e-15 * abs(b):
            break
        if fc * fb < 0:
            a, fa = b, fb
        else:
            fa *= 0.5
        b, fb = c, fc
    return c if abs(fc) <= room else None
