"""Logits that are distances: within one set of points, or between pairs of equal index (see `similarity`)."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nceref.engine.embeddings import Gradients, Rows, merge
from nceref.engine.namespaces import array_namespace
from nceref.engine.similarity import ONE, Accumulator, Factor, in_range

Array = Any


@dataclass(frozen=True, eq=False)
class SquaredDistance:
    """-factor * |x_i - x_j|^2 within one set of rows."""

    points: Rows
    factor: Factor = ONE
    offset: None = None
    symmetric = True

    @property
    def scale(self) -> float:
        """What squared distances of balanced points are multiplied by."""
        return self.factor.times_power(2 * self.points.balanced[1])

    @cached_property
    def bound(self) -> float:
        xp = array_namespace(self.like)
        # Two points are at most as far apart as both are from the first one.
        return self.scale * float(2 * xp.max(xp.linalg.vector_norm(self.centered, axis=1))) ** 2

    @cached_property
    def centered(self) -> Array:
        """Balanced points seen from the first one: far from the origin, squares would swallow the distances."""
        return self.points.balanced[0] - self.points.balanced[0][:1, :]

    @property
    def shape(self) -> tuple[int, int]:
        return self.points.values.shape[0], self.points.values.shape[0]

    @property
    def like(self) -> Array:
        return self.points.values

    def block(self, rows: slice, columns: slice) -> Array:
        xp = array_namespace(self.like)
        a, b = self.centered[rows, :], self.centered[columns, :]
        squares = xp.sum(a * a, axis=1)[:, None] + xp.sum(b * b, axis=1)[None, :]
        # Rounding may leave a negative distance between equal rows; there is none.
        s = -self.factor.multiply(xp.clip(squares - 2 * (a @ b.T), min=0.0), 2 * self.points.balanced[1])
        # In units of distances beyond the range, those of near rows are lost.
        return in_range(s, self.bound)

    def gradient(self, mirrored: bool) -> "_SquaredDistanceGradient":
        return _SquaredDistanceGradient(self, mirrored)


class _SquaredDistanceGradient(Accumulator):
    """dx_i = -2 factor sum_j (g_ij + g_ji) (x_i - x_j)."""

    sums = ("x",)

    def __init__(self, logits: SquaredDistance, mirrored: bool) -> None:
        super().__init__(logits)
        self.mirrored = mirrored

    def zeros(self, name: str) -> Array:
        return array_namespace(self.logits.like).zeros_like(self.logits.like)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        xp = array_namespace(g)
        x = self.logits.centered
        self.x[rows, :] += xp.sum(g, axis=1)[:, None] * x[rows, :] - g @ x[columns, :]
        # A mirrored block on the diagonal is g_ij + g_ji already.
        if self.mirrored and rows == columns:
            return
        self.x[columns, :] += xp.sum(g, axis=0)[:, None] * x[columns, :] - g.T @ x[rows, :]

    def finish(self, exponent: int) -> Gradients:
        points: Rows = self.logits.points
        return points.vjp(self.logits.factor.multiply(-2 * self.x, points.balanced[1]), exponent)


@dataclass(frozen=True, eq=False)
class PairedDistance:
    """|x_i - y_i| as one column: only pairs of equal index are compared."""

    x: Rows
    y: Rows
    factor: Factor = ONE
    offset: None = None
    symmetric = False
    bound = math.inf
    """Of no use: a column of distances is added up, not exponentiated."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.values.shape[0], 1

    @property
    def like(self) -> Array:
        return self.x.values

    def block(self, rows: slice, columns: slice) -> Array:
        peak, shrunk = self._differences(rows)
        return peak * _lengths(shrunk)

    @property
    def directions(self) -> Array:
        """(x_i - y_i) / |x_i - y_i|, and 0 where they meet."""
        _, shrunk = self._differences(slice(None))
        lengths = _lengths(shrunk)
        return shrunk / array_namespace(lengths).where(lengths > 0, lengths, 1.0)

    def _differences(self, rows: slice) -> tuple[Array, Array]:
        """The largest entry of each difference, and the difference divided by it: squares stay in the range."""
        xp = array_namespace(self.like)
        difference = self.x.values[rows, :] - self.y.values[rows, :]
        peak = xp.max(xp.abs(difference), axis=1, keepdims=True)
        return peak, difference / xp.where(peak > 0, peak, 1.0)

    def gradient(self, mirrored: bool) -> "_PairedDistanceGradient":
        return _PairedDistanceGradient(self)


class _PairedDistanceGradient(Accumulator):
    """dx_i = g_i (x_i - y_i) / |x_i - y_i| = -dy_i, and 0 where they meet."""

    def __init__(self, logits: PairedDistance) -> None:
        super().__init__(logits)
        self.g = array_namespace(logits.like).zeros_like(logits.like[:, :1])

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        self.g[rows, :] = g

    def finish(self, exponent: int) -> Gradients:
        x, y = self.logits.x, self.logits.y
        by_x = self.g * self.logits.directions
        by_y = -by_x
        return merge(x.vjp(by_x, exponent), y.vjp(by_y, exponent))


def _lengths(x: Array) -> Array:
    """Lengths of rows, as a column."""
    xp = array_namespace(x)
    return xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))
