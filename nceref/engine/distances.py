"""Logits that are distances: within one set of points, or between pairs of equal index (see `similarity`)."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nceref.engine.chunks import ChunkedRows
from nceref.engine.embeddings import NOTHING, Gradients, Part, Rows, merge
from nceref.engine.namespaces import array_namespace
from nceref.engine.scaling import times_power
from nceref.engine.similarity import ONE, Accumulator, Factor, in_range
from nceref.errors import InputError

Array = Any


@dataclass(frozen=True, eq=False)
class SquaredDistance:
    """-factor * |x_i - x_j|^2 within one set of rows, or between two parts of it.

    Attributes
    ----------
    points : Rows
        The set, or the part that the anchors are of.
    factor : Factor
        Multiplies squared distances.
    others : Rows or None
        The part that the candidates are of; None: the same.
    origin : array or None
        (1, D), the row that all are seen from; None: the first.
    """

    points: Rows
    factor: Factor = ONE
    others: Rows | None = None
    origin: Array | None = None
    offset = None
    paired = False

    @property
    def symmetric(self) -> bool:
        return self.others is None

    @property
    def sides(self) -> tuple[Any, ...]:
        return self.points, self.points if self.others is None else self.others

    def window(self, rows: slice, columns: slice) -> "SquaredDistance":
        return replace(self, points=NOTHING)

    def filled(self, *rows: Rows, origin: Array | None = None) -> "SquaredDistance":
        first, second = rows[0], rows[-1]
        return replace(self, points=first, others=None if first is second else second, origin=origin)

    @property
    def scale(self) -> float:
        """The factor of squared distances of balanced points."""
        return self.factor.times_power(2 * self.exponent)

    @property
    def exponent(self) -> int:
        """The exponent of the power of two that points are divided by."""
        return max(int(rows.balanced[1]) for rows in self.sides)

    @cached_property
    def bound(self) -> float:
        points = self.points
        if isinstance(points, ChunkedRows):
            return self.factor.times_power(0) * (2 * points.longest) ** 2
        xp = array_namespace(self.like)
        # Two points are at most as far apart as both are from the first one.
        return self.scale * float(2 * xp.max(xp.linalg.vector_norm(self.centered, axis=1))) ** 2

    @cached_property
    def centered(self) -> Array:
        """Balanced points seen from the first one: far from the origin, squares would swallow the distances."""
        return self._from_origin(self.points)

    @cached_property
    def centered_others(self) -> Array:
        """The candidates, seen from there as well."""
        return self.centered if self.others is None else self._from_origin(self.others)

    def _from_origin(self, rows: Rows) -> Array:
        values, own = rows.balanced
        origin = values[:1, :] if self.origin is None else times_power(self.origin, -own)
        return times_power(values - origin, own - self.exponent)

    @property
    def shape(self) -> tuple[int, int]:
        first, second = self.sides
        return first.values.shape[0], second.values.shape[0]

    @property
    def like(self) -> Array:
        return self.points.values

    def block(self, rows: slice, columns: slice) -> Array:
        xp = array_namespace(self.like)
        a, b = self.centered[rows, :], self.centered_others[columns, :]
        squares = xp.sum(a * a, axis=1)[:, None] + xp.sum(b * b, axis=1)[None, :]
        # Rounding may leave a negative distance between equal rows; there is none.
        s = -self.factor.multiply(xp.clip(squares - 2 * (a @ b.T), min=0.0), 2 * self.exponent)
        # In units of distances beyond the range, those of near rows are lost.
        return in_range(s, self.bound)

    def gradient(self, mirrored: bool) -> "_SquaredDistanceGradient":
        return _SquaredDistanceGradient(self, mirrored)


class _SquaredDistanceGradient(Accumulator):
    """dx_i = -2 factor sum_j (g_ij + g_ji) (x_i - x_j); between two parts, dx_i = -2 factor sum_j g_ij (x_i - y_j)."""

    y: Array = None

    def __init__(self, logits: SquaredDistance, mirrored: bool) -> None:
        self.sums = ("x",) if logits.others is None else ("x", "y")
        super().__init__(logits)
        self.mirrored = mirrored

    def zeros(self, name: str) -> Array:
        like = self.logits.centered if name == "x" else self.logits.centered_others
        return array_namespace(like).zeros_like(like)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        xp = array_namespace(g)
        x, y = self.logits.centered, self.logits.centered_others
        self.x[rows, :] += xp.sum(g, axis=1)[:, None] * x[rows, :] - g @ y[columns, :]
        # A mirrored block on the diagonal is g_ij + g_ji already.
        if self.mirrored and rows == columns:
            return
        by_candidates = self.x if self.logits.others is None else self.y
        by_candidates[columns, :] += xp.sum(g, axis=0)[:, None] * y[columns, :] - g.T @ x[rows, :]

    def finish(self, exponent: int) -> Gradients:
        factor = self.logits.factor
        grads: Gradients = {}
        for rows, by_rows in zip((self.logits.points, self.logits.others), (self.x, self.y), strict=True):
            if rows is not None:
                merge(grads, rows.vjp(factor.multiply(-2 * by_rows, self.logits.exponent), exponent))
        return grads


@dataclass(frozen=True, eq=False)
class PairedDistance:
    """|x_i - y_i| as one column: only pairs of equal index are compared."""

    x: Rows
    y: Rows
    factor: Factor = ONE
    offset: None = None
    symmetric = False
    paired = True
    bound = math.inf
    """No bound: a column of distances is added up, not exponentiated."""

    @property
    def sides(self) -> tuple[Any, ...]:
        return self.x, self.y

    def window(self, rows: slice, columns: slice) -> "PairedDistance":
        return replace(self, x=NOTHING, y=NOTHING)

    def filled(self, *rows: Rows) -> "PairedDistance":
        return replace(self, x=rows[0], y=rows[1])

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


@dataclass(frozen=True, eq=False)
class ChunkedChord:
    """The distances of `chord` for rows in chunks; the candidates are one chunk."""

    x: Any
    candidates: Any
    index: Array
    sign: float
    symmetric = False
    paired = True
    offset = None
    bound = math.inf

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.values.shape[0], 1

    @property
    def like(self) -> Any:
        return self.x.values

    @property
    def sides(self) -> tuple[Any, ...]:
        return self.x, self.candidates

    def window(self, rows: slice, columns: slice) -> "ChunkedChord":
        return replace(self, x=NOTHING, candidates=NOTHING, index=self.index[rows])

    def filled(self, *rows: Rows) -> Any:
        return chord(rows[0], rows[1], self.index, self.sign)


def chord(x: Any, candidates: Any, index: Array, sign: float = 1.0) -> Any:
    """Distances |x_i - sign c_k|, k = index[i], that carry no gradient.

    `x` is (n, D), `candidates` (C, D), and `index` (n,) the candidate of each row; `sign` -1 gives the distance to the
    opposite point. Raises `InputError` for candidates in several chunks.
    """
    if isinstance(x, ChunkedRows):
        name, count = candidates.pieces[0].name, len(candidates.pieces)
        if count > 1:
            msg = f"`{name}` must be one chunk, since each row looks up its own, got {count}; pass {name}.rechunk(-1)"
            raise InputError(msg)
        return ChunkedChord(x, candidates, index, sign)
    own = sign * array_namespace(index).take(candidates.values, index, axis=0)
    part = x.parts[0]
    fixed = Rows(x.values, (replace(part, constant=True),))
    return PairedDistance(fixed, Rows(own, (Part("", own, slice(0, own.shape[0]), part.length, True),)))
