"""The two passes of every loss: fold row statistics over tiles, then take the gradient back over the same tiles.

    fold      s = logits.block(rows, columns)         for every tile: each statistic takes it in
    head      statistics -> row values, by hand with its derivative
    vjp       g = sum over statistics of slope * d statistic / d s for every tile, and the logits take g in

No n x m array ever exists: memory beyond inputs and gradients is O(n + m), a few tiles a thread, and at most
`config(keep=)` bytes of tiles that are kept for the second pass. A batch whose tiles do not fit computes them again.

A tile is mirrored where the logits are symmetric, as those of one set of rows against itself: block (J, I) is then
block (I, J) transposed. Only the blocks on and above the diagonal are visited, and each stands for both.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from nceref.engine.arrays import all_finite, check_finite
from nceref.engine.embeddings import Gradients, merge
from nceref.engine.namespaces import array_namespace, as_scalar, device, number_format
from nceref.engine.plan import Comparison, Plan
from nceref.engine.scaling import product, scaled_product, times_power
from nceref.engine.settings import block_shape, cache_limit, threads_for
from nceref.engine.statistics import FittedTerm
from nceref.engine.threads import share
from nceref.engine.tiles import Slopes, Tile, View

Array = Any
Terms = Mapping[str, FittedTerm]


def _spans(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def largest_exponent(like: Array) -> float:
    """The bound on |s| below which exp(s) needs no maximum of its row.

    It is half of the range of exponents, so that a product of two exponentials, or of one with the inverse of a sum of
    them, stays in the range as well.
    """
    return math.log(number_format(array_namespace(like), like.dtype).largest) / 2


class TileCache:
    """Tiles of the first pass for the second: all of them, or none where they need more than `config(keep=)` bytes.

    The second pass needs the same exponentials as the first one. To read them is faster than to compute them again,
    as long as they do not push everything else out of memory.

    `itemsize` is the bytes of a logit.
    """

    def __init__(self, walk: "Walk", itemsize: int) -> None:
        self.tiles: dict[tuple[int, int], Tile] = {}
        self.rereads = any(term.statistic.rereads(term.pattern) for term in walk.terms.values())
        # Where each tile starts in the store; empty where nothing is kept.
        self.offsets: dict[tuple[int, int], int] = {}
        # A single tile needs no store: it is kept as it is, with everything that was made of it.
        self.single = len(walk.rows) == len(walk.columns) == 1
        pairs = 0
        for rows, columns in walk.blocks(walk.rows):
            self.offsets[rows.start, columns.start] = pairs
            pairs += (rows.stop - rows.start) * (columns.stop - columns.start)
        if pairs * itemsize > cache_limit(walk.like):
            self.offsets.clear()
        elif not self.single:
            # One array: the system hands out large pages for it, and small ones for many arrays, which takes longer.
            self.store = array_namespace(walk.like).empty(pairs, dtype=walk.like.dtype, device=device(walk.like))

    def put(self, tile: Tile) -> None:
        """Keep what the second pass needs of a tile, if there is room."""
        key = tile.rows.start, tile.columns.start
        # Several threads do so at once, without a lock: each has keys and a part of the store of its own.
        if key in self.offsets:
            self.tiles[key] = tile if self.single else tile.moved(self.store, self.offsets[key], self.rereads)

    def get(self, rows: slice, columns: slice) -> Tile | None:
        """The tile with what was kept of it; of several, what is made from now on is not kept as well."""
        tile = self.tiles.get((rows.start, columns.start))
        return tile if tile is None or self.single else tile.copy()


class Walk:
    """One comparison on its way through both passes: how it is cut into tiles, and which are kept.

    `keep` says that there will be a second pass, for which tiles are kept.
    """

    def __init__(self, comparison: Comparison, keep: bool) -> None:
        self.threads = threads_for(math.prod(comparison.logits.shape), comparison.logits.like)
        # Sorted by label, most blocks hold no positive and are skipped; in a small batch, sorting costs more than that.
        comparison, self.order = comparison.sorted_by_label() if self.threads else (comparison, None)
        self.logits, self.mirrored = comparison.logits, comparison.symmetric
        self.like = comparison.logits.like
        self.terms, self.bounded = comparison.fitted(largest_exponent(self.like))
        self.shape = n, m = comparison.logits.shape
        height, width = block_shape(n, m, self.like, comparison.whole_rows, self.mirrored)
        self.rows, self.columns = _spans(n, height), _spans(m, width)
        self.cache = (
            TileCache(self, number_format(array_namespace(self.like), self.like.dtype).bits // 8) if keep else None
        )

    def blocks(self, strips: Iterable[slice]) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of the tiles in some strips; of two mirrored ones, the upper."""
        return ((r, c) for r in strips for c in self.columns if not (self.mirrored and c.start < r.start))

    def tiles(self, terms: Terms, strips: Iterable[slice]) -> Iterator[Tile]:
        """The tiles of some strips of rows that at least one of the terms touches.

        `strips` are spans of rows, the share of one thread. A tile that was kept may come although none of the terms
        touches it.
        """
        for rows, columns in self.blocks(strips):
            tile = None if self.cache is None else self.cache.get(rows, columns)
            if tile is not None:
                yield tile
            elif any(term.pattern.touches(rows, columns) for term in terms.values()):
                yield Tile(self._block(rows, columns), rows, columns, self.bounded)

    def _block(self, rows: slice, columns: slice) -> Array:
        """The logits of a tile; on the diagonal of mirrored ones, s_ij and s_ji are the same bits.

        The first pass reads s_ij there, the second one both. A product of matrices rounds them differently, and
        exp(s_ji - log sum_j e^s_ij) is no share where that difference is more than 1, as it is for |s| u > 1.
        """
        s = self.logits.block(rows, columns)
        on_diagonal = self.mirrored and rows == columns
        return array_namespace(s).maximum(s, s.T) if on_diagonal and not self.bounded else s

    def share(self, work: Any) -> list[Any]:
        """Results of `work` on shares of the strips of rows, one a thread."""
        return share(work, self.rows, self.threads)

    def fold(self) -> dict[str, Array]:
        """The first pass.

        Each statistic by name is (n,), along columns (m,), of a `PositiveSet` (n, 4); in the order of the inputs.
        """
        stats = {name: self.terms[name].statistic.finish(state) for name, state in self.states().items()}
        if self.order is None:
            return stats
        # Heads and callers see the anchors in the order of the inputs: the inverse permutation.
        back = np.argsort(self.order)
        return {name: stat[back] for name, stat in stats.items()}

    def states(self) -> dict[str, Any]:
        """The states of the statistics by name, with all tiles folded in; rows are in the order of the tiles."""

        def work(strips: Iterable[slice]) -> dict[str, dict[int, Any]]:
            # A state of every span, not of this thread's strips alone: a mirrored tile, or a term along columns, also
            # adds to rows of other threads.
            states = {name: self._starts(term) for name, term in self.terms.items()}
            for tile in self.tiles(self.terms, strips):
                for name, term in self.terms.items():
                    # A tile on the diagonal holds its mirror image already.
                    for view in views(tile, term, self.mirrored and tile.rows != tile.columns):
                        state = states[name][view.rows.start]
                        states[name][view.rows.start] = term.statistic.fold(state, view, term.pattern)
                if self.cache is not None:
                    self.cache.put(tile)
            return states

        shares = self.share(work)
        return {
            name: _concatenated(
                [merged(term.statistic, [states[name][start] for states in shares]) for start in shares[0][name]]
            )
            for name, term in self.terms.items()
        }

    def _starts(self, term: FittedTerm) -> dict[int, Any]:
        """An empty state of the term's statistic for every span of rows (or of columns)."""
        axis, spans = (0, self.rows) if term.along == "rows" else (1, self.columns)
        xp = array_namespace(self.like)
        zeros = xp.zeros(self.shape[axis], dtype=self.like.dtype, device=device(self.like))
        return {span.start: term.statistic.start(zeros[span]) for span in spans}

    def vjp(self, stats: Mapping[str, Array], slopes: Mapping[str, Array], exponent: int = 0) -> Gradients:
        """The second pass.

        `stats` is what `fold` returned. `slopes` has d value / d statistic by name, in the shape of the statistic; one
        that is not in it gets no gradient. They were divided by 2^exponent, which gradients are multiplied by. Returns
        the gradient of the value by every input of the logits, in the shape of the input.
        """
        active = {name: term for name, term in self.terms.items() if name in slopes}
        order = slice(None) if self.order is None else self.order
        prepared = {
            name: term.statistic.prepare(slopes[name][order, ...], stats[name][order, ...])
            for name, term in active.items()
        }
        total: Any = self.logits.gradient(self.mirrored)

        def work(strips: Iterable[slice]) -> Any:
            gradient = total.fork()
            for tile in self.tiles(active, strips):
                # In both directions on the diagonal, too: such a tile reaches the accumulator once, and a slope of
                # s_ij goes to both of its rows.
                g = tile_slopes(tile, active, prepared, self.mirrored)
                if g is not None:
                    gradient.add(tile.rows, tile.columns, g)
            return gradient

        for gradient in self.share(work):
            total.join(gradient)
        grads: Gradients = total.finish(exponent)
        return grads


def views(tile: Tile, term: FittedTerm, mirrored: bool) -> list[View]:
    """Views of a tile by a term: as it is, transposed, or, where the tile stands for its mirror image as well, both.

    Views without a pair of the term's pattern are left out.
    """
    both = (View(tile, flip) for flip in ((False, True) if mirrored else (term.along == "columns",)))
    return [view for view in both if term.pattern.touches(view.rows, view.columns)]


def tile_slopes(tile: Tile, terms: Terms, prepared: Mapping[str, tuple[Array, ...]], mirrored: bool) -> Array | None:
    """D value / d logits on one tile.

    `terms` are those that get a gradient, and `prepared` is what `prepare` of each statistic returned, one number a
    row. With `mirrored`, the slopes of the mirror image are added, transposed. None where no statistic reaches the
    tile.
    """
    slopes = Slopes(tile)
    for name, term in terms.items():
        for view in views(tile, term, mirrored):
            own = (vector[view.rows, ...] for vector in prepared[name])
            term.statistic.vjp(slopes, view, term.pattern, *own)
    return slopes.total()


def merged(statistic: Any, states: Sequence[Any]) -> Any:
    """One state of some rows, from those that were folded over different candidates, in their order."""
    return reduce(statistic.merge, states)


def _concatenated(states: Sequence[Any]) -> Any:
    """One state of many rows, from those of one span after another."""
    if len(states) == 1:
        return states[0]
    if isinstance(states[0], tuple):
        return tuple(_concatenated(parts) for parts in zip(*states, strict=True))
    return array_namespace(*states).concat(list(states), axis=0)


def statistics(plan: Plan) -> dict[str, Array]:
    """The row statistics of a plan, by name."""
    walks = [Walk(comparison, keep=False) for comparison in plan.comparisons]
    return {name: stat for walk in walks for name, stat in walk.fold().items()}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One forward pass: rows of the head, their weights under the reduction, and what the backward pass needs.

    Units of the rows meet the weights before they meet anything else: either alone may be too small for its digits.
    """

    plan: Plan
    walks: tuple[Walk, ...]
    stats: dict[str, Array]
    measured: Array
    weights: Array
    head_vjp: Any

    @property
    def units(self) -> tuple[Array, ...]:
        """The unit of the rows, where it is not 1."""
        return () if self.plan.row_unit is None else (self.plan.row_unit,)

    @property
    def rows(self) -> Array:
        """Row values."""
        return product(self.measured, *self.units)

    def value(self, reduction: str) -> Any:
        """The reduced value, a Python float for NumPy; the weighted rows for "none"."""
        weighted = product(self.measured, self.weights, *self.units)
        value = weighted if reduction == "none" else as_scalar(array_namespace(weighted).sum(weighted))
        check_finite(value, "the value")
        return value

    def slopes(self) -> dict[str, Any]:
        """D value / d statistic, and / d scalar where the head reads one."""
        slopes: dict[str, Any] = self.head_vjp(product(self.weights, *self.units))
        return slopes

    def gradients(self, cotangent: Array | None = None) -> Gradients:
        """Gradients of the value, or of <cotangent, rows>, by input name.

        `cotangent` has the shape of the rows; its default is all 1. Gradients are arrays in the shape of the inputs, in
        the dtype of the computation; floats for scalars.
        """
        total: Gradients = {}
        slopes, exponent = self.magnified_slopes(cotangent)
        for walk in self.walks:
            own = {name: slopes.pop(name) for name in walk.terms if name in slopes}
            merge(total, walk.vjp(self.stats, own, exponent))
        # What no comparison took are slopes by scalars that the head itself reads.
        merge(total, {name: times_power(slope, exponent) for name, slope in slopes.items()})
        return {name: as_scalar(g) for name, g in total.items()}

    def magnified_slopes(self, cotangent: Array | None) -> tuple[dict[str, Any], int]:
        """Slopes divided by a power of two, and its exponent: tiny slopes lose digits, and gradients are linear."""
        if self.plan.anchor_weights is None and cotangent is None and not self.units:
            return self.slopes(), 0
        by, exponent = scaled_product(self.weights, *self.units, *(() if cotangent is None else (cotangent,)))
        slopes: dict[str, Any] = self.head_vjp(by)
        return slopes, exponent


def evaluate(plan: Plan, reduction: str, keep: bool = False) -> Evaluation:
    """The first pass and the head.

    With `keep`, tiles are kept for `Evaluation.gradients`. Raises `InputError` if a number leaves the range of the
    dtype. NumPy warns of it as well, unless an entry point is above.
    """
    walks = tuple(Walk(comparison, keep) for comparison in plan.comparisons)
    stats = {name: stat for walk in walks for name, stat in walk.fold().items()}
    return joined(plan, stats, reduction, [name for walk in walks if not walk.bounded for name in walk.terms], walks)


def joined(
    plan: Plan, stats: dict[str, Array], reduction: str, unbounded: Collection[str], walks: tuple[Walk, ...] = ()
) -> Evaluation:
    """The head on the statistics of all rows.

    `unbounded` are the statistics whose logits may have left the range of the dtype. `walks` are those that they come
    from, for `Evaluation.gradients`.
    """
    # Statistics of bounded logits cannot leave the range, and are not looked through.
    for stat in (stats[name] for name in unbounded):
        if not all_finite(stat):
            # -inf is an empty row: no pair of the pattern is in it, and the head decides what that means.
            check_finite(array_namespace(stat).where(stat == -math.inf, 0.0, stat), "a logit")
    rows, head_vjp = plan.head(stats)
    check_finite(rows, "a row of the loss")
    return Evaluation(plan, walks, stats, rows, plan.weights(stats, rows, reduction), head_vjp)
