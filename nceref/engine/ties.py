"""Equal candidates have equal logits: those of rows that come more than once are added up in one order.

A product of matrices rounds the same two rows in different ways: by where they stand in a block, and by processor. A
pattern that ranks candidates would tell equal ones apart by that. Their logits are taken entry by entry instead: the
bits depend on the two rows alone, in whichever block, chunk or library they are.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nceref.engine.chunks import ChunkedRows
from nceref.engine.namespaces import array_namespace, device
from nceref.engine.tiles import row_major

Array = Any


class Copies(NamedTuple):
    """The rows that come more than once.

    Attributes
    ----------
    repeated : array of bool
        (m,), True for each row that does; for a few others it may be True.
    first : array of int
        (m,), a row that equals it, the same one for most of those that are equal.
    """

    repeated: Array
    first: Array


def in_order(a: Array, b: Array) -> Array:
    """Inner products of every row of a with every row of b, (n, m), each added up from the first entry to the last."""
    # An entry of all rows after the other: they stand side by side.
    a, b = row_major(a.T), row_major(b.T)
    total = a[0, :, None] * b[0, None, :]
    for d in range(1, a.shape[0]):
        total += a[d, :, None] * b[d, None, :]
    return total


def fingerprints(rows: Array) -> Array:
    """A number for each row, (m,), of its entries alone: the same for equal rows, and seldom for others."""
    xp, d = array_namespace(rows), rows.shape[1]
    # Multiples of the golden ratio modulo 1 are spread evenly. Divided by D, no sum leaves the range.
    weights = [[(0.25 + (k * 0.6180339887498949) % 1 / 2) / d for k in range(1, d + 1)]]
    return in_order(rows, xp.asarray(weights, dtype=rows.dtype, device=device(rows)))[:, 0]


def repeated(prints: Sequence[Array]) -> Array:
    """The fingerprints that come more than once among those of all chunks, sorted."""
    xp = array_namespace(prints[0])
    ranked = xp.sort(xp.concat(list(prints)))
    return ranked[1:][ranked[1:] == ranked[:-1]]


def copies(rows: Array, prints: Array, twice: Array) -> Copies | None:
    """The rows that come more than once; None where none does.

    `prints` are the fingerprints of the rows, (m,); `twice` is what `repeated` returned, of these rows or of more.
    """
    xp = array_namespace(rows)
    if twice.shape[0] == 0:
        return None
    several = xp.searchsorted(twice, prints, side="left") < xp.searchsorted(twice, prints, side="right")
    if not bool(xp.any(several)):
        return None
    order = xp.argsort(prints, stable=True)
    first = xp.take(order, xp.searchsorted(xp.take(prints, order), prints))
    # Rows that share a fingerprint by chance stand for themselves.
    equal = xp.all(xp.take(rows, first, axis=0) == rows, axis=1)
    own = xp.arange(rows.shape[0], dtype=first.dtype, device=device(rows))
    return Copies(several, xp.where(equal, first, own))


def ranked(logits: Any) -> Any:
    """The same logits for a pattern that ranks candidates: those of equal candidates are equal.

    Equal candidates in chunks are only known when the chunks are read: such logits come back as they are.
    """
    if isinstance(logits.candidates, ChunkedRows):
        return logits
    rows = logits.candidates.values
    prints = fingerprints(rows)
    return replace(logits, copies=copies(rows, prints, repeated([prints])))


def settled(s: Array, a: Array, b: Array, which: Copies, columns: slice) -> Array:
    """A block of products of rows in which equal candidates have equal ones.

    `s` is the block as a product of matrices gives it, (n, columns); `a` are its rows, (n, D), and `b` all candidates,
    (m, D), of which `which` are the copies.
    """
    xp, several, first = array_namespace(s), which.repeated[columns], which.first[columns]
    if not bool(xp.any(several)):
        return s
    # Each row is multiplied once; what comes once points to one of those, and is left out again.
    rows, place = xp.unique_inverse(xp.where(several, first, first[int(xp.argmax(xp.astype(several, xp.int8)))]))
    return xp.where(several[None, :], xp.take(in_order(a, xp.take(b, rows, axis=0)), place, axis=1), s)
