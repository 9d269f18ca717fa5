"""One block of logits, and everything that statistics make of it: taken once, shared by terms, directions and passes.

A `Tile` holds the block; a `View` is the tile as one term sees it, its own rows first; `Slopes` gathers the gradient
by the logits of the tile. Arrays made of a tile have its orientation, whatever the view.
"""

from collections.abc import Callable, Hashable
from copy import copy
from functools import lru_cache
from typing import Any

from nceref.engine.namespaces import array_namespace, device

Array = Any
Line = tuple[slice, slice]
"""Some pairs of a tile, at most one a row: the view's own rows, counted in the tile, and where they stand in it."""


def row_major(x: Array) -> Array:
    """The array with rows contiguous, so that its flat form is a view; nothing happens where they are."""
    xp = array_namespace(x)
    return xp.reshape(xp.reshape(x, (-1,)), x.shape)


class Tile:
    """The logits of some rows and columns, and what statistics made of them.

    Attributes
    ----------
    s : array
        The logits; None in a tile that was kept without them.
    rows, columns : slice
        Where the tile lies.
    bounded : bool
        Whether neither exponentials of the logits nor products of two of them leave the range of the dtype.
    made : dict
        Arrays in the shape of the tile, by key: what `once` made.
    on_line : dict
        Slopes on the lines of sparse patterns, by key.
    """

    __slots__ = ("bounded", "columns", "made", "on_line", "rows", "s")

    def __init__(self, s: Array, rows: slice, columns: slice, bounded: bool = False) -> None:
        self.s, self.rows, self.columns, self.bounded = row_major(s), rows, columns, bounded
        self.made: dict[Hashable, Array] = {}
        self.on_line: dict[Hashable, Array] = {}

    def once(self, key: Hashable, make: Callable[[], Array]) -> Array:
        """The array of a key: `make` is called for its first use only."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def exp(self, k: float) -> Array:
        """A fresh exp(k s)."""
        return array_namespace(self.s).exp(self.s if k == 1.0 else k * self.s)

    def line(self, where: slice) -> Array:
        """The logits on a line."""
        return array_namespace(self.s).reshape(self.s, (-1,))[where]

    def copy(self) -> "Tile":
        """The same logits and arrays; what one of the two makes, the other has not."""
        twin = copy(self)
        twin.made = dict(self.made)
        return twin

    def moved(self, store: Array, start: int, rereads: bool) -> "Tile":
        """A copy with one array, in the store: what the statistics made, if they need no more, else the logits."""
        key = next(iter(self.made)) if len(self.made) == 1 and not rereads else None
        source = self.s if key is None else self.made[key]
        target = array_namespace(source).reshape(store[start : start + source.shape[0] * source.shape[1]], source.shape)
        target[...] = source
        twin = copy(self)
        twin.s, twin.made = (target, {}) if key is None else (None, {key: target})
        return twin


# The tiles of a batch have few different sizes: they share their ones.
@lru_cache(maxsize=64)
def _ones(xp: Any, n: int, dtype: Any, where: Any) -> Array:
    return xp.ones(n, dtype=dtype, device=where)


class View:
    """A tile as a term sees it: as it is, or transposed (`flip`), its own rows first."""

    __slots__ = ("columns", "flip", "rows", "tile")

    def __init__(self, tile: Tile, flip: bool) -> None:
        self.tile, self.flip = tile, flip
        self.rows, self.columns = (tile.columns, tile.rows) if flip else (tile.rows, tile.columns)

    @property
    def s(self) -> Array:
        """The logits, the view's own rows first."""
        return self.turned(self.tile.s)

    def turned(self, x: Array) -> Array:
        """The array turned from the tile's orientation to the view's, or back."""
        return x.T if self.flip else x

    def sums(self, x: Array) -> Array:
        """Sums over the view's own rows of an array made of the tile; a product with ones is how BLAS adds up."""
        ones = _ones(array_namespace(x), x.shape[0 if self.flip else 1], x.dtype, device(x))
        return ones @ x if self.flip else x @ ones

    def key(self, *what: Hashable, symmetric: bool) -> Hashable:
        """A name for something made of the tile; one for both directions where they give the same."""
        return (*what, self.flip and not symmetric)


class Slopes:
    """D value / d logits of a tile, gathered from its views."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile
        self.products: dict[int, list[Any]] = {}
        self.dense: Any = None
        self.lines: list[tuple[slice, Array]] = []

    def scale(self, view: View, made: Array, by: Array) -> None:
        """Add by_i * made_ij, i a row of the view. Views that share `made` cost one product together."""
        # The entry holds the array as well, so that no other one can get its id.
        sides = self.products.setdefault(id(made), [made, None, None])
        side = 2 if view.flip else 1
        sides[side] = by if sides[side] is None else sides[side] + by

    def add(self, g: Array) -> None:
        """Add a fresh array in the orientation of the tile."""
        self.dense = g if self.dense is None else self.dense + g

    def on_line(self, where: slice, values: Array) -> None:
        """Add to the pairs of a line."""
        self.lines.append((where, values))

    def total(self) -> Array | None:
        """The sum of everything; None where nothing was added."""
        # Row-major, since lines are added through the flat form, which has to be a view.
        total = None if self.dense is None else row_major(self.dense)
        for made, by_rows, by_columns in self.products.values():
            part = _outer_sum(by_rows, by_columns, made)
            part *= made
            total = part if total is None else total + part
        for where, values in self.lines:
            if total is None:
                shape = tuple(s.stop - s.start for s in (self.tile.rows, self.tile.columns))
                total = array_namespace(values).zeros(shape, dtype=values.dtype, device=device(values))
            array_namespace(total).reshape(total, (-1,))[where] += values
        return total


def _outer_sum(u: Array | None, v: Array | None, like: Array) -> Array:
    """u_i + v_j as a product of matrices of rank 2, which is several times faster than broadcasting."""
    xp, (n, m) = array_namespace(like), like.shape
    left = xp.empty((n, 2), dtype=like.dtype, device=device(like))
    right = xp.empty((2, m), dtype=like.dtype, device=device(like))
    left[:, 0], left[:, 1] = 0.0 if u is None else u, 1.0
    right[0, :], right[1, :] = 1.0, 0.0 if v is None else v
    return left @ right
