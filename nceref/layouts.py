"""Who is compared with whom: patterns over (anchor, candidate) pairs, made block by block and never stored.

`mask(rows, columns, s)` returns None where the block is wholly inside the pattern, False where it is wholly outside,
and a bool array only where the pattern cuts the block. `weight(rows, columns)` returns None (all 1) or an array >= 0.
`touches(rows, columns)` answers without arrays whether a block can be skipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from array_api_compat import device

from nceref.namespaces import array_namespace

Array = Any
Mask = Any


def _range(span: slice, like: Array) -> Array:
    return array_namespace(like).arange(span.start, span.stop, device=device(like))


@dataclass(frozen=True)
class Diagonal:
    """The pairs (i, i + shift) for start <= i < stop."""

    start: int
    stop: int
    shift: int = 0

    def touches(self, rows: slice, columns: slice) -> bool:
        """Whether the block holds one of the pairs."""
        first = max(self.start, rows.start, columns.start - self.shift)
        return bool(first < min(self.stop, rows.stop, columns.stop - self.shift))

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        """True on the pairs; False where the block holds none, found without touching an array."""
        if not self.touches(rows, columns):
            return False
        i = _range(rows, s)[:, None]
        return (i + self.shift == _range(columns, s)[None, :]) & (i >= self.start) & (i < self.stop)


@dataclass(frozen=True, eq=False)
class Index:
    """The pairs (i, index[i])."""

    index: Array

    def touches(self, rows: slice, columns: slice) -> bool:
        """Whether the block may hold one of the pairs."""
        return True

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        """True on the pairs."""
        return self.index[rows][:, None] == _range(columns, s)[None, :]


Places = Sequence[Diagonal | Index]


def _union(places: Places, rows: slice, columns: slice, s: Array) -> Mask:
    masks = [m for m in (place.mask(rows, columns, s) for place in places) if m is not False]
    if not masks:
        return False
    union = masks[0]
    for more in masks[1:]:
        union = union | more
    return union


class _Pattern:
    """What most patterns do: look at single blocks, reach all of them, and count each pair once."""

    whole_rows = False

    def touches(self, rows: slice, columns: slice) -> bool:
        return True

    def weight(self, rows: slice, columns: slice) -> Array:
        return None


@dataclass(frozen=True)
class Everyone(_Pattern):
    """Every candidate."""

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return None


class _Remembered(_Pattern):
    """A pattern that keeps its last mask: a batch of one block asks for it in both passes."""

    places: Places

    def touches(self, rows: slice, columns: slice) -> bool:
        return any(place.touches(rows, columns) for place in self.places)

    def remembered(self, rows: slice, columns: slice, s: Array) -> Mask:
        """The union of the places."""
        key = (rows.start, rows.stop, columns.start, columns.stop)
        last = self.__dict__.get("last")
        if last is None or last[0] != key:
            last = key, _union(self.places, rows, columns, s)
            self.__dict__["last"] = last
        return last[1]


@dataclass(frozen=True, eq=False)
class Only(_Remembered):
    """The pairs at the given places."""

    places: Places

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return self.remembered(rows, columns, s)


@dataclass(frozen=True, eq=False)
class Except(_Remembered):
    """All pairs but those at the given places."""

    places: Places

    def touches(self, rows: slice, columns: slice) -> bool:
        return True

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        excluded = self.remembered(rows, columns, s)
        return None if excluded is False else ~excluded


def _without(mask: Mask, own: Places, rows: slice, columns: slice, s: Array) -> Mask:
    itself = _union(own, rows, columns, s)
    return mask if itself is False else mask & ~itself


@dataclass(frozen=True, eq=False)
class SameLabel(_Pattern):
    """Candidates with the anchor's label, the anchor itself (`own`) left out."""

    anchors: Array
    candidates: Array
    own: Places

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        same = self.anchors[rows][:, None] == self.candidates[columns][None, :]
        return _without(same, self.own, rows, columns, s)


@dataclass(frozen=True, eq=False)
class OtherLabel(_Pattern):
    """Candidates with another label than the anchor's."""

    anchors: Array
    candidates: Array

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return self.anchors[rows][:, None] != self.candidates[columns][None, :]


@dataclass(frozen=True, eq=False)
class Weighted(_Pattern):
    """Candidates with a positive weight in a table over samples, tiled over the views; the anchor itself left out."""

    table: Array
    own: Places

    def weight(self, rows: slice, columns: slice) -> Array:
        """The block of the table, (rows, columns)."""
        xp, n = array_namespace(self.table), self.table.shape[0]
        i, j = _range(rows, self.table) % n, _range(columns, self.table) % n
        return xp.take(xp.take(self.table, i, axis=0), j, axis=1)

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return _without(self.weight(rows, columns) > 0, self.own, rows, columns, s)


@dataclass(frozen=True, eq=False)
class Unlisted(_Pattern):
    """Candidates with weight 0 in the table, the anchor itself left out."""

    table: Weighted

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return _without(self.table.weight(rows, columns) == 0, self.table.own, rows, columns, s)


@dataclass(frozen=True, eq=False)
class Hardest(_Pattern):
    """The `count` most similar candidates of each anchor among all but `own`; ties go to the lower index.

    It looks at whole rows: its blocks are short and span all candidates.
    """

    own: Places
    count: int
    whole_rows = True

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        xp = array_namespace(s)
        itself = _union(self.own, rows, columns, s)
        ranked = s if itself is False else xp.where(itself, -xp.inf, s)
        order = xp.argsort(ranked, axis=1, descending=True, stable=True)
        rank = xp.argsort(order, axis=1, stable=True)
        return rank < self.count


Pattern = Everyone | Only | Except | SameLabel | OtherLabel | Weighted | Unlisted | Hardest


def itself(n: int) -> tuple[Diagonal]:
    """Anchor i is candidate i."""
    return (Diagonal(0, n),)


def other_view(n: int) -> tuple[Diagonal, Diagonal]:
    """In two stacked views of n samples, row i's partner is i + n, and back."""
    return Diagonal(0, n, n), Diagonal(n, 2 * n, -n)
