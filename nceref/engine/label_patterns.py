"""Patterns by what samples are: with the label of the anchor, with another one, or listed in a table of weights."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from nceref.engine.chunks import ChunkedTable
from nceref.engine.namespaces import array_namespace
from nceref.engine.patterns import Diagonal, Mask, PairSets, Pattern, indices, union, windows
from nceref.engine.scaling import power_of_two
from nceref.engine.tiles import View

Array = Any


def _without(mask: Mask, own: PairSets, rows: slice, columns: slice, s: Array) -> Mask:
    itself = union(own, rows, columns, s)
    return mask if itself is False else mask & ~itself


@dataclass(frozen=True, eq=False)
class _Labelled(Pattern):
    """Labels of anchors and candidates. Once both are sorted, few blocks hold two of a kind, and it is seen at once."""

    anchors: Array
    candidates: Array
    own: tuple[Diagonal, ...] = ()
    is_sorted: bool = False

    def reordered(self, rows: Array, columns: Array) -> Self:
        """The same pattern with anchors and candidates in another order, sorted by label but for a seam."""
        return replace(self, anchors=self.anchors[rows], candidates=self.candidates[columns], is_sorted=True)

    def window(self, rows: slice, columns: slice) -> Self:
        """The same pattern over a block alone."""
        own = tuple(diagonal.window(rows, columns) for diagonal in self.own if diagonal.touches(rows, columns))
        return replace(self, anchors=self.anchors[rows], candidates=self.candidates[columns], own=own)

    def meets(self, rows: slice, columns: slice) -> bool:
        """Whether the block may hold a pair with the same label."""
        if not self.is_sorted:
            return True
        # Ranges that do not overlap share no label; across the seam the test may say yes for nothing.
        a, b = self.anchors[rows], self.candidates[columns]
        return bool(a.max() >= b.min() and b.max() >= a.min())


@dataclass(frozen=True, eq=False)
class SameLabel(_Labelled):
    """Candidates with the anchor's label, the anchor itself (`own`) left out."""

    def touches(self, rows: slice, columns: slice) -> bool:
        return self.meets(rows, columns)

    def inside(self, view: View) -> Array:
        """1 inside the pattern and 0 outside; the anchor itself is written as a line."""
        s = view.tile.s
        xp, anchors, candidates = array_namespace(s), self.anchors[view.rows], self.candidates[view.columns]
        first, second = (candidates, anchors) if view.flip else (anchors, candidates)
        same = xp.astype(first[:, None] == second[None, :], s.dtype)
        # A view: a diagonal is one stride through it, and no mask of it is made.
        flat = xp.reshape(same, (-1,))
        for diagonal in self.own:
            line = diagonal.line(view)
            if line is not None:
                flat[line[1]] = 0.0
        return same

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        if not self.meets(rows, columns):
            return False
        same = self.anchors[rows][:, None] == self.candidates[columns][None, :]
        return _without(same, self.own, rows, columns, s)


@dataclass(frozen=True, eq=False)
class OtherLabel(_Labelled):
    """Candidates with another label than the anchor's."""

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        # No label in common: every pair belongs to the pattern.
        if not self.meets(rows, columns):
            return None
        return self.anchors[rows][:, None] != self.candidates[columns][None, :]


@dataclass(frozen=True, eq=False)
class Weighted(Pattern):
    """Candidates with a positive weight in a table over samples, tiled over the views; the anchor itself left out.

    Not symmetric, since the table need not be: a mirrored tile is masked in each direction apart.

    Weights are measured in `unit`, a power of two for each row: only their ratios count, and sums of them, or of their
    products with logits, keep their digits whatever the weights are.
    """

    table: Any
    own: PairSets
    units: Array | None = None
    symmetric = False

    @cached_property
    def unit(self) -> Array:
        """(N,), the largest power of two up to the largest weight of each row; of an empty row, of the table."""
        if self.units is not None:
            return self.units
        chunked = isinstance(self.table, ChunkedTable)
        largest = self.table.largest if chunked else array_namespace(self.table).max(self.table, axis=1)
        xp = array_namespace(largest)
        return power_of_two(xp.where(largest > 0, largest, xp.max(largest)))

    def window(self, rows: slice, columns: slice) -> "Weighted":
        """The pattern over a block of rows of one view, against one view, to be given its block of the table."""
        start = rows.start % self.unit.shape[0]
        units = self.unit[start : start + rows.stop - rows.start]
        return Weighted(None, windows(self.own, rows, columns), units)

    def filled(self, table: Array) -> "Weighted":
        """The pattern of a window with its block of the table."""
        return replace(self, table=table)

    def weight(self, rows: slice, columns: slice) -> Array:
        """The block of the table, (rows, columns), in units."""
        xp, unit = array_namespace(self.table), self.unit
        return self.given(rows, columns) / xp.take(unit, indices(rows, unit) % unit.shape[0])[:, None]

    def log_weight(self, rows: slice, columns: slice) -> Array:
        """Logarithms of the same, 0 outside the pattern; also of what is too small for a number in units."""
        xp, unit = array_namespace(self.table), self.unit
        weight, given = self.weight(rows, columns), self.given(rows, columns)
        log_unit = xp.log(xp.take(unit, indices(rows, unit) % unit.shape[0]))[:, None]
        lost = xp.log(xp.where(given > 0, given, 1.0)) - log_unit
        return xp.where(weight > 0, xp.log(xp.where(weight > 0, weight, 1.0)), xp.where(given > 0, lost, 0.0))

    def given(self, rows: slice, columns: slice) -> Array:
        """The block of the table."""
        xp, (n, m) = array_namespace(self.table), self.table.shape
        # Rows stand view by view: row i is a view of sample i mod n.
        i, j = indices(rows, self.table) % n, indices(columns, self.table) % m
        return xp.take(xp.take(self.table, i, axis=0), j, axis=1)

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return _without(self.given(rows, columns) > 0, self.own, rows, columns, s)


@dataclass(frozen=True, eq=False)
class Unlisted(Pattern):
    """Candidates with weight 0 in the table, the anchor itself left out."""

    table: Weighted
    symmetric = False

    def window(self, rows: slice, columns: slice) -> "Unlisted":
        """The pattern over a block of rows of one view, against one view, to be given its block of the table."""
        return Unlisted(self.table.window(rows, columns))

    def filled(self, table: Array) -> "Unlisted":
        """The pattern of a window with its block of the table."""
        return Unlisted(self.table.filled(table))

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return _without(self.table.given(rows, columns) == 0, self.table.own, rows, columns, s)
