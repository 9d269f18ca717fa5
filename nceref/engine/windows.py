"""Comparisons of rows in chunks, cut into windows: what one chunk of anchors and one of candidates give by themselves.

A window is a small comparison with its own plan of statistics. It is filled with the rows of its two pieces, folded to
states that merge with those of other windows, and later pulled back to gradients that add up. Where the logits of a
comparison are symmetric, a window off the diagonal stands for its mirror image as well, as tiles do in `passes`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from nceref.engine.chunks import ChunkedRows
from nceref.engine.distances import ChunkedChord
from nceref.engine.embeddings import Part, Rows
from nceref.engine.label_patterns import Unlisted, Weighted
from nceref.engine.namespaces import array_namespace, device, on_host
from nceref.engine.passes import Walk, largest_exponent
from nceref.engine.patterns import HardestSoFar, Index, Least, Pattern, indices
from nceref.engine.plan import Comparison
from nceref.engine.similarity import Dot, Given, Offset
from nceref.engine.statistics import FittedTerm
from nceref.engine.ties import Copies

Array = Any
MIRRORED = "mirrored "
"""The prefix of the names of terms of the mirror image of a window."""


@dataclass(frozen=True, eq=False)
class Window:
    """A comparison of one piece of the anchors with one of the candidates.

    Attributes
    ----------
    logits : Dot, Given, SquaredDistance, PairedDistance or ChunkedChord
        Without rows, until it is filled.
    terms : mapping of str to FittedTerm
        With patterns over the window alone. Those along columns give statistics of the candidates' piece.
    bounded : bool
        Whether exponentials stay in the range, as of `Comparison.fitted`.
    pieces : tuple of int
        Which piece of each side of the logits.
    start : int
        The first column.
    """

    logits: Any
    terms: Mapping[str, FittedTerm]
    bounded: bool
    pieces: tuple[int, ...]
    start: int
    whole_rows = False

    @property
    def symmetric(self) -> bool:
        """Whether s_ij = s_ji within the window."""
        return bool(self.logits.symmetric)

    def fitted(self, most: float) -> tuple[Mapping[str, FittedTerm], bool]:
        """The terms: all windows have the same statistics, or their states would not merge."""
        return self.terms, self.bounded

    def sorted_by_label(self) -> tuple["Window", None]:
        """The window itself: its rows keep their order."""
        return self, None


def windows(comparison: Comparison) -> Iterator[Window]:
    """The windows of a comparison that one of its terms touches, and at least one of each piece of the anchors.

    The rows of the comparison are in chunks.
    """
    logits = comparison.logits
    fitted, bounded = comparison.fitted(largest_exponent(logits.like))
    for pieces, rows, columns in _places(logits):
        twin = logits.symmetric and pieces[0] != pieces[1]
        terms = dict(_cut(fitted, rows, columns))
        if twin:
            mirrored = _cut({name: term._replace(along="columns") for name, term in fitted.items()}, rows, columns)
            terms |= {f"{MIRRORED}{name}": term for name, term in mirrored}
        if terms:
            yield Window(logits.window(rows, columns), terms, bounded, pieces, columns.start)


def _places(logits: Any) -> Iterator[tuple[tuple[int, ...], slice, slice]]:
    """The places of the windows: pieces of each side, rows and columns; of two mirrored ones, the upper."""
    first, last = logits.sides[0], logits.sides[-1]
    for i, rows in enumerate(first.values.spans):
        if logits.paired:
            yield tuple(_paired(side, i) for side in logits.sides), rows, slice(0, logits.shape[1])
        else:
            for j, columns in enumerate(last.values.spans):
                if not (logits.symmetric and j < i):
                    yield (i, j), rows, columns


def _paired(side: ChunkedRows, piece: int) -> int:
    """The piece with the same rows; a side in one piece is given to all."""
    return piece if len(side.pieces) > 1 else 0


def _cut(terms: Mapping[str, FittedTerm], rows: slice, columns: slice) -> Iterator[tuple[str, FittedTerm]]:
    """The terms that touch a window, with patterns over it alone."""
    for name, term in terms.items():
        own = (rows, columns) if term.along == "rows" else (columns, rows)
        if term.pattern.touches(*own):
            yield name, term._replace(pattern=term.pattern.window(*own))


class Extras(NamedTuple):
    """The arrays that a window needs besides its rows.

    Attributes
    ----------
    origin : array or None
        (1, D), the row that squared distances are seen from.
    least : Least or None
        The last candidates that are kept of whole rows.
    tables : tuple of array or None
        The weights of the candidates' samples for the anchors' samples, and the other way round.
    copies : Copies or None
        Which candidates have an equal one in this window or in another.
    """

    origin: Array | None = None
    least: Least | None = None
    tables: tuple[Array, Array] | None = None
    copies: Copies | None = None


NO_EXTRAS = Extras()


def fold(window: Window, rows: tuple[Rows, ...], extras: Extras = NO_EXTRAS) -> dict[str, dict[str, Any]]:
    """The first pass over a window.

    `rows` are those of its pieces, the same object twice where they are one. The states are by name: under "rows" those
    of the anchors' piece, under "columns" those of the candidates'.
    """
    states: dict[str, dict[str, Any]] = {"rows": {}, "columns": {}}
    filled = _filled(window, rows, extras)
    for name, state in Walk(filled, keep=False).states().items():
        states[filled.terms[name].along][name.removeprefix(MIRRORED)] = state
    return states


Slopes = Mapping[str, tuple[Array, Array]]
"""The statistic of a piece, and d value / d statistic, by name."""


def pull(
    window: Window, rows: tuple[Rows, ...], slopes: Mapping[str, Slopes], extras: Extras = NO_EXTRAS
) -> tuple[list[Array | None], dict[tuple[str, int], Any]]:
    """The second pass over a window.

    `slopes` are those of the anchors' piece under "rows", of the candidates' under "columns". Returns the gradient by
    the rows of each piece, None where there is none or an earlier one is the same piece; and the gradients by scalars
    and by offsets of columns, by name and first column.
    """
    own = {name: slopes[term.along].get(name.removeprefix(MIRRORED)) for name, term in window.terms.items()}
    known = {name: pair for name, pair in own.items() if pair is not None}
    if not known:
        return [None] * len(rows), {}
    walk = Walk(_filled(window, rows, extras), keep=False)
    grads = walk.vjp({name: pair[0] for name, pair in known.items()}, {name: pair[1] for name, pair in known.items()})
    by_rows = [grads.pop(str(side), None) for side in range(len(rows))]
    return by_rows, {(name, window.start): grad for name, grad in grads.items()}


def hardest(window: Window, rows: tuple[Rows, ...], extras: Extras = NO_EXTRAS) -> Least:
    """The most similar candidates of each anchor in a window, in order, for a pattern that keeps some of whole rows.

    The arrays are (n, kept).
    """
    filled = _filled(window, rows, extras)
    walk = Walk(filled, keep=False)
    pattern = _hardest(window)
    kept: dict[int, Least] = {}
    for tile in walk.tiles(walk.terms, walk.rows):
        s, start = tile.s, tile.rows.start
        xp = array_namespace(s)
        inside = pattern.mask(tile.rows, tile.columns, s)
        logit = s if inside is None else xp.where(inside, s, -xp.inf)
        column = indices(tile.columns, s) + pattern.first
        own = Least(logit, xp.broadcast_to(column[None, :], s.shape))
        kept[start] = most_similar([kept[start], own] if start in kept else [own], pattern.count)
    parts = [kept[start] for start in sorted(kept)]
    return Least(*(array_namespace(x[0]).concat(list(x)) for x in zip(*parts, strict=True)))


def _hardest(window: Window) -> HardestSoFar:
    return next(t.pattern for t in window.terms.values() if isinstance(t.pattern, HardestSoFar))


def most_similar(parts: Sequence[Least], count: int) -> Least:
    """The `count` most similar candidates of several lists, in order; ties go to the lower column.

    Each list is (n, some), and they come in the order of the columns.
    """
    xp = array_namespace(parts[0].logit)
    logit, column = (xp.concat(list(x), axis=1) for x in zip(*parts, strict=True))
    order = xp.argsort(-logit, axis=1, stable=True)[:, : min(count, logit.shape[1])]
    return Least(xp.take_along_axis(logit, order, axis=1), xp.take_along_axis(column, order, axis=1))


def least(kept: Least) -> Least:
    """The last one of each row."""
    return Least(kept.logit[:, -1], kept.column[:, -1])


def _filled(window: Window, rows: tuple[Rows, ...], extras: Extras) -> Any:
    """The window with its rows, taken as they are: the way back through the normalization comes last, and once."""
    plain = [Rows(r.values, (Part(str(i), r.values, slice(0, r.values.shape[0])),)) for i, r in enumerate(rows)]
    if len(rows) == 2 and rows[0] is rows[1]:
        plain[1] = plain[0]
    if not on_host(rows[0].values):
        window = _moved(window, rows[0].values)
    known = {name: x for name in ("origin", "copies") if (x := getattr(extras, name)) is not None}
    terms = {name: term._replace(pattern=_whole(term, extras)) for name, term in window.terms.items()}
    return replace(window, logits=window.logits.filled(*plain, **known), terms=terms)


_HOLDERS: Any = (Pattern, Index, Offset, Window, Dot, Given, ChunkedChord)
"""Classes whose objects may hold arrays of one number a row or a column."""


def _moved(x: Any, like: Array) -> Any:
    """The object with its arrays of the host moved to the library and the device of another array."""
    if isinstance(x, np.ndarray):
        return array_namespace(like).asarray(x, device=device(like))
    if isinstance(x, Mapping):
        return {name: _moved(value, like) for name, value in x.items()}
    if isinstance(x, tuple):
        parts = (_moved(value, like) for value in x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, _HOLDERS):
        return replace(x, **{f.name: _moved(getattr(x, f.name), like) for f in fields(x) if f.init})
    return x


def _whole(term: FittedTerm, extras: Extras) -> Any:
    """The pattern of a term, with what it lacks."""
    pattern = term.pattern
    if extras.least is not None and isinstance(pattern, HardestSoFar):
        return replace(pattern, least=extras.least)
    if extras.tables is not None and isinstance(pattern, Weighted | Unlisted):
        return pattern.filled(extras.tables[term.along == "columns"])
    return pattern
