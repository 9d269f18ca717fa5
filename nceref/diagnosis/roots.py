"""Numbers at which a measured function is 0."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

_STEPS = 60
"""How often a root is approached at most."""


class Solver:
    """Numbers at which a measured function is 0, in the gaps of a grid.

    `f`: the function; beside a point where it is no number, nothing is looked for. `grid`: in order. `room`:
    how far from 0 rounding may leave the function at its root: where it jumps there is none. `near`: the share of the
    room that is near enough; a root known so may be far less exact than it can be. `points`: whether the points of the
    grid themselves may be roots, since two roots between its points hide each other. `whole`: the function at all
    points of the grid, where these take less time together than one by one.
    """

    def __init__(
        self,
        f: Callable[[float], float],
        grid: Sequence[float],
        room: float,
        near: float = 0.0,
        points: bool = False,
        whole: Callable[[], Sequence[float]] | None = None,
    ) -> None:
        self.grid, self.room, self.near, self.points = grid, room, near, points
        self.gap = cache(f)
        self._whole = whole

    @cached_property
    def gaps(self) -> Sequence[float]:
        """The function at the points of the grid."""
        return [self.gap(float(x)) for x in self.grid] if self._whole is None else self._whole()

    def roots(self, start: int = 0, stop: int | None = None) -> Iterator[float]:
        """Those in a part of the grid."""
        grid = [float(x) for x in self.grid[start:stop]]
        gaps = self.gaps[start:stop]
        if self.points:
            yield from (x for x, gap in zip(grid, gaps, strict=True) if abs(gap) <= self.room)
        for (a, b), (fa, fb) in zip(pairwise(grid), pairwise(gaps), strict=True):
            if np.isfinite(fa) and np.isfinite(fb) and fa * fb <= 0 and fa != fb:
                root = _root(self.gap, a, b, fa, fb, self.room, self.near * self.room)
                if root is not None:
                    yield root

    def nearest(self, c: float) -> float | None:
        """A number itself where it is a root, or the root that is nearest."""
        if abs(self.gap(c)) <= self.room:
            return c
        best = None
        # Most are near, and few points of the grid are asked then.
        for far, k in sorted((max(low - c, c - high, 0.0), k) for k, (low, high) in enumerate(pairwise(self.grid))):
            if best is not None and far > abs(best - c):
                break
            for root in self.roots(k, k + 2):
                best = root if best is None or abs(root - c) < abs(best - c) else best
        return best


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
