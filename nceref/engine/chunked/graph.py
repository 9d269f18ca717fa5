"""The tasks of a loss of arrays in chunks, as a graph of Dask."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

from nceref.engine.chunked import tasks
from nceref.engine.chunked.arguments import ChunkedLoss
from nceref.engine.chunks import ChunkedArray, ChunkedTable, Piece
from nceref.engine.distances import SquaredDistance
from nceref.engine.label_patterns import Unlisted, Weighted
from nceref.engine.passes import largest_exponent
from nceref.engine.patterns import Hardest
from nceref.engine.settings import chosen
from nceref.engine.ties import repeated
from nceref.engine.windows import Window, least, windows
from nceref.spec import Array, Scalar

MERGED_AT_ONCE = 16
"""States that one task merges: more of them would be held until the last one is there."""


@dataclass(frozen=True, eq=False)
class Place:
    """A window of a comparison, with the piece of each side, and which chain of each piece it belongs to (`lanes`)."""

    comparison: int
    window: Window
    pieces: tuple[Piece, ...]
    lanes: tuple[int, ...]

    @property
    def links(self) -> "list[Link]":
        """Each piece with its lane, once."""
        return list(dict.fromkeys(zip(self.pieces, self.lanes, strict=True)))


def ordered(cuts: Sequence[Window], symmetric: bool) -> list[tuple[Window, tuple[int, ...]]]:
    """Windows in rounds, in each of which no piece comes twice, with the lane of each piece.

    Round t has the windows (i, i + t), or with symmetric logits, where each stands for two, {i, t - i}, modulo the
    number of pieces. Where one side has fewer pieces, each of them is in several windows at a time, of one lane each;
    lanes are added up last.
    """
    counts = [1 + max(w.pieces[side] for w in cuts) for side in (0, -1)]
    modulus, fewest = max(counts), min(counts)

    def place(window: Window) -> tuple[int, int]:
        i, j = window.pieces[0], window.pieces[-1]
        return ((i + j) if symmetric else (j - i)) % modulus, i

    out = []
    for window in sorted(cuts, key=place):
        i, j = window.pieces[0], window.pieces[-1]
        lanes = (j // counts[0] if fewest < counts[1] else 0, i // counts[1] if fewest < counts[0] else 0)
        out.append((window, lanes[: len(window.pieces)]))
    return out


class Graph:
    """The tasks, by key; rows become a value by the reduction ``mean``, ``sum`` or ``none``."""

    def __init__(self, loss: ChunkedLoss, reduction: str) -> None:
        self.loss, self.reduction = loss, reduction
        self.name = f"nceref-{loss.loss.name}-{uuid4().hex}"
        self.block = chosen("block")
        self.tasks: dict[Hashable, Any] = {}
        self.rows: dict[Piece, Hashable] = {}
        self.handed: dict[Link, Hashable] = {}
        self.places: list[Place] = []
        self.fitted = [c.fitted(largest_exponent(loss.like)) for c in loss.plan.comparisons]
        for index, comparison in enumerate(loss.plan.comparisons):
            sides = comparison.logits.sides
            for window, lanes in ordered(list(windows(comparison)), comparison.symmetric):
                pieces = tuple(side.pieces[k] for side, k in zip(sides, window.pieces, strict=True))
                self.places.append(Place(index, window, pieces, lanes))

    def key(self, kind: str, *which: Any) -> tuple[Any, ...]:
        """The key of a task."""
        return (f"{self.name}-{kind}", *which)

    def add(self, key: Hashable, function: Any, *args: Any) -> Hashable:
        """A task; arguments are keys, and lists of them."""
        self.tasks[key] = (tasks.Quiet(function, self.block), *args)
        return key

    # The first pass.

    def loaded(self, piece: Piece) -> Hashable:
        """The rows of a piece."""
        if piece not in self.rows:
            described: ChunkedArray = self.loss.arguments[piece.name]
            source = self.loss.arrays[piece.name]
            start, parameter = described.spans[piece.chunk].start, self.loss.parameter(piece.name)
            work = partial(tasks.load, parameter, piece.view, piece.normalize, start, self.loss.dtype)
            chunk = (source.name, piece.chunk, *([0] * (source.ndim - 1)))
            self.rows[piece] = self.add(self.key("load", len(self.rows)), work, chunk)
        return self.rows[piece]

    def filled(self, place: Place) -> tuple[list[Hashable], list[Any]]:
        """The rows that fill a window, and what it needs besides."""
        comparison = self.loss.plan.comparisons[place.comparison]
        origin = least = copies = None
        if isinstance(comparison.logits, SquaredDistance):
            origin = self.once(
                ("origin", place.comparison), tasks.first_row, self.loaded(comparison.logits.sides[0].pieces[0])
            )
        if comparison.whole_rows:
            least, copies = self.least(place.comparison, place.window.pieces[0]), self.copies(place)
        tables = None
        if any(isinstance(term.pattern, Weighted | Unlisted) for term in comparison.terms.values()):
            i, j = (piece.chunk for piece in place.pieces)
            tables = [self.table(i, j), self.table(j, i)]
        rows = [self.handed.get(link) or self.loaded(link[0]) for link in zip(place.pieces, place.lanes, strict=True)]
        return rows, [origin, least, tables, copies]

    def hand_on(self, place: Place, done: Hashable) -> None:
        """Rows go from window to window: what many tasks wait for would be kept by every worker that has met it."""
        for link in place.links:
            rows = self.handed.get(link) or self.loaded(link[0])
            self.handed[link] = self.add(self.key("rows", len(self.tasks)), tasks.handed_on, rows, done)

    def table(self, i: int, j: int) -> Hashable:
        """The weights of the samples of one chunk for those of another."""
        described: ChunkedTable = self.loss.arguments["mask"]
        parameter, spans = self.loss.parameter("mask"), described.spans
        views = len({piece.view for piece in self.loss.plan.comparisons[0].logits.sides[1].pieces})
        start = (spans[i].start, spans[j].start)
        work = partial(tasks.load_table, parameter, start, views > 1, self.loss.dtype)
        return self.once(("table", i, j), work, (self.loss.arrays["mask"].name, i, j))

    def least(self, comparison: int, piece: int) -> Hashable:
        """The last candidates that the anchors of a piece keep of their rows."""
        places = [p for p in self.places if p.comparison == comparison and p.window.pieces[0] == piece]
        places.sort(key=lambda place: place.window.start)
        count = next(
            term.pattern.count
            for term in self.loss.plan.comparisons[comparison].terms.values()
            if isinstance(term.pattern, Hardest)
        )
        lists = []
        for place in places:
            rows, work = [self.loaded(p) for p in place.pieces], partial(tasks.hardest_of, place.window)
            lists.append(self.once(("hardest", comparison, *place.window.pieces), work, rows, self.copies(place)))
        merged = self.once(("hardest", comparison, piece), partial(tasks.merge_hardest, count), lists)
        return self.once(("least", comparison, piece), least, merged)

    def copies(self, place: Place) -> Hashable:
        """A mask of the candidates of a place that have an equal one, there or in another chunk."""
        pieces = self.loss.plan.comparisons[place.comparison].logits.sides[-1].pieces
        prints = [self.once(("prints", *piece), tasks.fingerprints_of, self.loaded(piece)) for piece in pieces]
        twice = self.once(("repeated", place.comparison), repeated, prints)
        own = place.window.pieces[-1]
        rows = self.loaded(pieces[own])
        return self.once(("copies", place.comparison, own), tasks.copies_of, rows, prints[own], twice)

    def once(self, which: Any, function: Any, *args: Any) -> Hashable:
        """A task that several others need."""
        key = self.key(*which)
        return key if key in self.tasks else self.add(key, function, *args)

    def statistics(self) -> list[Hashable]:
        """The statistics of all pieces, those of one statistic in the order of its rows."""
        folded: dict[Ends, list[tuple[Hashable, str]]] = defaultdict(list)
        for number, place in enumerate(self.places):
            work = partial(tasks.fold_window, place.window)
            key = self.add(self.key("fold", number), work, *self.filled(place))
            self.hand_on(place, key)
            for end, side in self.ends(place).items():
                folded[end].append((key, side))
        return [self._finished(end, folded[end]) for end in sorted(folded)]

    def ends(self, place: Place) -> "dict[Ends, str]":
        """The pieces that a window has statistics of, and under which name `fold` has them."""
        symmetric = self.loss.plan.comparisons[place.comparison].symmetric
        sides = {term.along for term in place.window.terms.values()}
        return {
            (place.comparison, "rows" if symmetric else side, place.window.pieces[0 if side == "rows" else -1]): side
            for side in sorted(sides, reverse=True)
        }

    def _finished(self, end: "Ends", parts: list[tuple[Hashable, str]]) -> Hashable:
        """The statistics of one piece, merged a few at a time."""
        comparison, along, _ = end
        fitted, _ = self.fitted[comparison]
        statistics = {name: term.statistic for name, term in fitted.items() if term.along == along}
        level = 0
        while len(parts) > MERGED_AT_ONCE:
            groups = [parts[i : i + MERGED_AT_ONCE] for i in range(0, len(parts), MERGED_AT_ONCE)]
            keys = [
                self._merge(("merge", *end, level, i), tasks.merge_states, statistics, group)
                for i, group in enumerate(groups)
            ]
            parts, level = [(key, "rows") for key in keys], level + 1
        return self._merge(("finish", *end), tasks.finish_states, statistics, parts)

    def _merge(self, which: Any, function: Any, statistics: Any, parts: Sequence[tuple[Hashable, str]]) -> Hashable:
        work = partial(function, statistics, [side for _, side in parts])
        return self.add(self.key(*which), work, [key for key, _ in parts])

    def head(self, cotangent: Any) -> Hashable:
        """Value and slopes."""
        plan = self.loss.plan
        parts = self.statistics()
        unbounded = tuple(name for fitted, bounded in self.fitted if not bounded for name in fitted)
        work = partial(tasks.head, replace(plan, comparisons=()), self.reduction, unbounded, cotangent)
        return self.add(self.key("head"), work, parts)

    # The second pass.

    def slopes(self, head: Hashable, end: "Ends") -> Hashable:
        """Statistics and slopes of a piece."""
        comparison, along, piece = end
        own = self.loss.plan.comparisons[comparison]
        names = tuple(name for name, term in own.terms.items() if term.along == along)
        span = own.logits.sides[0 if along == "rows" else -1].values.spans[piece]
        return self.once(("cut", *end), partial(tasks.cut, names, span), head)

    def chains(self, head: Hashable, wanted: set[str]) -> dict[Piece, list[Hashable]]:
        """The ends of the chains of each piece, in the order of their lanes; a window is a link of its pieces'."""
        last: dict[Link, Hashable] = {}
        for number, place in enumerate(self.places):
            by_side = {side: self.slopes(head, end) for end, side in self.ends(place).items()}
            slopes = [by_side.get("rows"), by_side.get("columns")]
            work = partial(tasks.pull_window, place.window, tuple(piece.name in wanted for piece in place.pieces))
            so_far = [last.get(link) for link in zip(place.pieces, place.lanes, strict=True)]
            both = self.add(self.key("pull", number), work, *self.filled(place), slopes, so_far)
            # Of a piece that is both sides, the second chain goes on where the first one ends.
            for side, link in enumerate(place.links):
                last[link] = self.add(self.key("chain", number, side), partial(tasks.pick, side), both)
            self.hand_on(place, both)
        ends: dict[Piece, list[Hashable]] = defaultdict(list)
        for (piece, _), key in sorted(last.items()):
            ends[piece].append(key)
        return ends

    def gradients(self, head: Hashable) -> dict[str, dict[Hashable, Hashable]]:
        """The chunks of each input that gets a gradient; of a scalar, the only one under ()."""
        declared = [p for p in self.loss.loss.parameters if isinstance(p, Array | Scalar) and not p.constant]
        present = [p for p in declared if self.loss.arguments[p.name] is not None]
        chains = self.chains(head, {p.name for p in present})
        others = [
            self.add(self.key("others", i), tasks.others_of, key)
            for i, key in enumerate(key for keys in chains.values() for key in keys)
        ]
        out: dict[str, dict[Hashable, Hashable]] = {}
        for p in present:
            if p.name in self.loss.arrays:
                out[p.name] = self._input(p.name, head, chains)
            else:
                value = self.loss.arguments[p.name]
                dtype = None if isinstance(p, Scalar) else value.dtype
                work = partial(tasks.other_gradient, p.name, dtype)
                out[p.name] = {(): self.add(self.key("gradient", p.name), work, head, others)}
        return out

    def _input(self, name: str, head: Hashable, chains: dict[Piece, list[Hashable]]) -> dict[Hashable, Hashable]:
        described: ChunkedArray = self.loss.arguments[name]
        out: dict[Hashable, Hashable] = {}
        for chunk, span in enumerate(described.spans):
            pieces = [piece for piece in chains if piece.name == name and piece.chunk == chunk]
            shape = (span.stop - span.start, *described.shape[1:])
            work = partial(tasks.input_gradient, name, shape, tuple(p.view for p in pieces), described.dtype)
            rows = [self.handed.get((piece, 0)) or self.loaded(piece) for piece in pieces]
            sums = [chains[piece] for piece in pieces]
            out[chunk] = self.add(self.key("gradient", name, chunk), work, head, rows, sums)
        return out


Link = tuple[Piece, int]
"""A piece, and which of its chains."""
Ends = tuple[int, str, int]
"""A comparison, "rows" or "columns", and a piece of that side."""
