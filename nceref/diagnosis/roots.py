"""Numbers at which a measured function is 0."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

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
        whole: Callable[[], Any] | None = None,
    ) -> None:
        self.grid, self.room, self.near, self.points = [float(x) for x in grid], room, near, points
        self.gap = cache(f)
        self._whole = whole
        self._between = cache(self._root_between)

    @cached_property
    def gaps(self) -> Any:
        """The function at the points of the grid."""
        return np.array([self.gap(x) for x in self.grid] if self._whole is None else self._whole(), dtype=float)

    def roots(self) -> Iterator[float]:
        """All of them, those that are points of the grid first."""
        for k in np.flatnonzero(self._on_points):
            yield self.grid[k]
        for k in np.flatnonzero(self._crossings):
            if (root := self._between(int(k))) is not None:
                yield root

    def nearest(self, c: float) -> float | None:
        """A number itself where it is a root, or the root that is nearest."""
        if abs(self.gap(c)) <= self.room:
            return c
        best = None
        likely = np.flatnonzero(self._crossings | self._on_points[:-1] | self._on_points[1:])
        places = [(max(self.grid[k] - c, c - self.grid[k + 1], 0.0), int(k)) for k in likely]
        for far, k in sorted(places):
            if best is not None and far > abs(best - c):
                break
            for root in (*(self.grid[at] for at in (k, k + 1) if self._on_points[at]), self._between(k)):
                if root is not None and (best is None or abs(root - c) < abs(best - c)):
                    best = root
        return best

    @cached_property
    def _on_points(self) -> Any:
        return (np.abs(self.gaps) <= self.room) & self.points

    @cached_property
    def _crossings(self) -> Any:
        """The gaps between points, beside numbers of different signs."""
        low, high = self.gaps[:-1], self.gaps[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.isfinite(low) & np.isfinite(high) & (low * high <= 0) & (low != high)

    def _root_between(self, k: int) -> float | None:
        """The root between two points of the grid."""
        if not self._crossings[k]:
            return None
        (a, b), (fa, fb) = self.grid[k : k + 2], self.gaps[k : k + 2].tolist()
        return _root(self.gap, a, b, fa, fb, self.room, self.near * self.room)


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
