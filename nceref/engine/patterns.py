"""Patterns over (anchor, candidate) pairs say who is compared with whom; made block by block and never stored.

Every pattern has these methods and attributes; `rows` and `columns` are the spans of a block, s its logits.

    touches(rows, columns)   -> bool            whether the block may hold a pair, without an array: others are skipped
    mask(rows, columns, s)   -> array of bool   the pairs; None where all pairs of the block are, False where none is
    weight(rows, columns)    -> array >= 0      weights of the pairs, up to a factor a row (`unit`); None: all 1
    log_weight(rows, columns) -> array          their logarithms; None: all 0
    unit                                        (N,), what the weights of each sample are measured in; None: 1
    cut(x, view, fill)       -> array           x, an array made of a tile, with `fill` outside the pattern
    inside(view)             -> array           1 inside the pattern and 0 outside
    lines(view)              -> list of Line    the diagonals in the view, each as one stride through the flat tile
    whole_rows                                  the mask depends on all candidates of an anchor: tiles span all columns
    symmetric                                   with (i, j) the pattern holds (j, i), where anchors are the candidates
    sparse                                      `lines` gives all pairs, so that nothing else of a tile is touched
    overwrites                                  `cut` may write into x
    window(rows, columns)    -> pattern         the pairs of a block, as a pattern over the block alone

A block that the pattern does not cut costs nothing, and diagonals are written as lines, not as masks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from nceref.engine.namespaces import array_namespace, device
from nceref.engine.ties import Copies
from nceref.engine.tiles import Line, View

Array = Any
Mask = Any


def indices(span: slice, like: Array) -> Array:
    """The numbers of a span, where `like` is."""
    return array_namespace(like).arange(span.start, span.stop, device=device(like))


class Diagonal(NamedTuple):
    """The pairs (i, i + shift) for start <= i < stop."""

    start: int
    stop: int
    shift: int = 0

    def touches(self, rows: slice, columns: slice) -> bool:
        """Whether the block holds one of the pairs."""
        first = max(self.start, rows.start, columns.start - self.shift)
        return bool(first < min(self.stop, rows.stop, columns.stop - self.shift))

    def mirrored(self) -> "Diagonal":
        """The pairs (i + shift, i)."""
        return Diagonal(self.start + self.shift, self.stop + self.shift, -self.shift)

    def window(self, rows: slice, columns: slice) -> "Diagonal":
        """The pairs of a block, counted from its corner."""
        start, stop = (min(max(at, rows.start), rows.stop) - rows.start for at in (self.start, self.stop))
        return Diagonal(start, stop, self.shift + rows.start - columns.start)

    def line(self, view: View) -> Line | None:
        """The pairs inside a view: a step of one row and one column is one stride through the flat tile."""
        rows, columns = view.rows, view.columns
        start, stop, shift = self
        first = max(start, rows.start, columns.start - shift)
        count = min(stop, rows.stop, columns.stop - shift) - first
        if count <= 0:
            return None
        # A tile is stored in its own orientation: pair (i, j) of a transposed view stands at (j, i).
        i, j = first - rows.start, first + shift - columns.start
        width = view.tile.columns.stop - view.tile.columns.start
        at = j * width + i if view.flip else i * width + j
        return slice(i, i + count), slice(at, at + (count - 1) * (width + 1) + 1, width + 1)

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        """True on the pairs; False where the block holds none, found without touching an array."""
        if not self.touches(rows, columns):
            return False
        i = indices(rows, s)[:, None]
        return (i + self.shift == indices(columns, s)[None, :]) & (i >= self.start) & (i < self.stop)


@dataclass(frozen=True, eq=False)
class Index:
    """The pairs (i, index[i])."""

    index: Array

    def touches(self, rows: slice, columns: slice) -> bool:
        """Whether the block may hold one of the pairs: always, since only the array itself could say no."""
        return True

    def window(self, rows: slice, columns: slice) -> "Index":
        """The pairs of a block, counted from its corner; an index outside of it meets no column."""
        return Index(self.index[rows] - columns.start)

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        """True on the pairs."""
        return self.index[rows][:, None] == indices(columns, s)[None, :]


PairSets = tuple[Diagonal | Index, ...]


def windows(pair_sets: Iterable[Diagonal | Index], rows: slice, columns: slice) -> PairSets:
    """The sets of pairs of a block, counted from its corner; those without a pair in it are left out."""
    return tuple(pairs.window(rows, columns) for pairs in pair_sets if pairs.touches(rows, columns))


def touch(pair_sets: PairSets, rows: slice, columns: slice) -> bool:
    """Whether one of the sets may hold a pair of the block."""
    return any(pairs.touches(rows, columns) for pairs in pair_sets)


@lru_cache
def _is_symmetric(diagonals: tuple[Diagonal, ...]) -> bool:
    return all(diagonal.mirrored() in diagonals for diagonal in diagonals)


def union(pair_sets: PairSets, rows: slice, columns: slice, s: Array) -> Mask:
    """The mask of the pairs in any of the sets.

    `s`, the logits of the block, give library and device. The mask is (rows, columns); False where no set has a pair in
    the block.
    """
    masks = [m for m in (pairs.mask(rows, columns, s) for pairs in pair_sets) if m is not False]
    if not masks:
        return False
    mask = masks[0]
    for more in masks[1:]:
        mask = mask | more
    return mask


class Pattern:
    """The defaults of most patterns: they look at single blocks, reach all, count each pair once, and cut by a mask."""

    whole_rows = False
    symmetric = True
    overwrites = False
    sparse = False
    unit: Any = None

    def touches(self, rows: slice, columns: slice) -> bool:
        return True

    def window(self, rows: slice, columns: slice) -> Any:
        return self

    def weight(self, rows: slice, columns: slice) -> Array:
        return None

    def log_weight(self, rows: slice, columns: slice) -> Array:
        return None

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        raise NotImplementedError

    def lines(self, view: View) -> list[Line]:
        return []

    def cut(self, x: Array, view: View, fill: float) -> Array:
        """The array with `fill` outside the pattern."""
        mask = self.mask(view.rows, view.columns, view.s)
        if mask is None:
            return x
        xp = array_namespace(x)
        if mask is False:
            return xp.full_like(x, fill)
        # A product with 0 and 1 is several times faster than a choice, and exact for finite numbers.
        return x * self.inside(view) if fill == 0 else xp.where(view.turned(mask), x, fill)

    def inside(self, view: View) -> Array:
        """1 inside the pattern and 0 outside, made of the tile."""
        s = view.tile.s
        xp, mask = array_namespace(s), self.mask(view.rows, view.columns, view.s)
        if mask is None or mask is False:
            return xp.full_like(s, float(mask is None))
        return xp.astype(view.turned(mask), s.dtype)


@dataclass(frozen=True)
class Everyone(Pattern):
    """Every candidate."""

    overwrites = True

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return None


@dataclass(frozen=True)
class _PairPattern(Pattern):
    """A pattern made of sets of pairs; what every tile needs of them is computed once.

    Compared by value: patterns are in the keys under which a tile keeps its arrays, and equal ones share an array.
    """

    pair_sets: PairSets
    diagonal: bool = field(init=False, compare=False)
    symmetric: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        diagonal = all(isinstance(pairs, Diagonal) for pairs in self.pair_sets)
        object.__setattr__(self, "diagonal", diagonal)
        object.__setattr__(self, "symmetric", diagonal and _is_symmetric(self.pair_sets))

    def window(self, rows: slice, columns: slice) -> Any:
        """The pattern of the pairs of a block."""
        return type(self)(windows(self.pair_sets, rows, columns))

    def lines(self, view: View) -> list[Line]:
        """The diagonals among the sets, as lines of the view."""
        lines = (pairs.line(view) for pairs in self.pair_sets if isinstance(pairs, Diagonal))
        return [line for line in lines if line is not None]


@dataclass(frozen=True)
class Only(_PairPattern):
    """The pairs of the given sets."""

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return self.diagonal

    def touches(self, rows: slice, columns: slice) -> bool:
        return touch(self.pair_sets, rows, columns)

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        return union(self.pair_sets, rows, columns, s)


@dataclass(frozen=True)
class Except(_PairPattern):
    """All pairs but those of the given sets."""

    overwrites = True

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        excluded = union(self.pair_sets, rows, columns, s)
        return None if excluded is False else ~excluded

    def cut(self, x: Array, view: View, fill: float) -> Array:
        """The array with `fill` on the pairs of the sets, written in place where they are diagonals."""
        xp = array_namespace(x)
        # What is made of a tile is row-major: the flat form is a view, and x itself is written.
        flat = xp.reshape(x, (-1,))
        for _, where in self.lines(view):
            flat[where] = fill
        for pairs in self.pair_sets:
            if isinstance(pairs, Index):
                x = xp.where(view.turned(pairs.mask(view.rows, view.columns, view.tile.s)), fill, x)
        return x


@dataclass(frozen=True, eq=False)
class Hardest(Pattern):
    """The `count` most similar candidates of each anchor among all but `own`; ties go to the lower index.

    It looks at whole rows: its blocks are short and span all candidates. Rounding never changes the places of `copies`,
    whose logits are equal.
    """

    own: PairSets
    count: int
    copies: Copies | None = None
    whole_rows = True

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        xp = array_namespace(s)
        itself = union(self.own, rows, columns, s)
        ranked = s if itself is False else xp.where(itself, -xp.inf, s)
        order = xp.argsort(-ranked, axis=1, stable=True)
        # The inverse permutation: at which place of the order each candidate stands.
        rank = xp.argsort(order, axis=1, stable=True)
        return rank < self.count

    def window(self, rows: slice, columns: slice) -> "HardestSoFar":
        """The pattern of a block alone: all candidates but the anchor's own, until the last that is kept is known."""
        return HardestSoFar(windows(self.own, rows, columns), self.count, columns.start)


class Least(NamedTuple):
    """The last of the candidates that each anchor keeps.

    Attributes
    ----------
    logit : array
        (n,), its logit.
    column : array of int
        (n,), its number among all candidates.
    """

    logit: Any
    column: Any


@dataclass(frozen=True, eq=False)
class HardestSoFar(Pattern):
    """The pairs of `Hardest` in a block of candidates from `first` on; `least` is computed before, over all blocks."""

    own: PairSets
    count: int
    first: int
    least: Least | None = None

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        others = ~union(self.own, rows, columns, s) if touch(self.own, rows, columns) else None
        if self.least is None:
            return others
        last, column = self.least.logit[rows][:, None], self.least.column[rows][:, None]
        kept = (s > last) | ((s == last) & (indices(columns, s)[None, :] + self.first <= column))
        return kept if others is None else kept & others


def itself(n: int) -> tuple[Diagonal]:
    """Anchor i is candidate i."""
    return (Diagonal(0, n),)


def of_query(n: int, each: int) -> tuple[Diagonal, ...]:
    """The `each` hard negatives of n queries, which stand view by view: row i and columns i, i + n, ..."""
    return tuple(Diagonal(0, n, n * k) for k in range(each))


def other_view(n: int) -> tuple[Diagonal, Diagonal]:
    """The partners in two stacked views of n samples: row i and row i + n."""
    return Diagonal(0, n, n), Diagonal(n, 2 * n, -n)
