"""Inputs as rows: stacked, unbound into views, normalized; and the way back from a gradient to the inputs'."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from nceref.engine.chunks import ChunkedArray, chunked_rows
from nceref.engine.namespaces import array_namespace, device
from nceref.engine.scaling import excess_exponent, power_of_two, times_power
from nceref.engine.tiles import row_major
from nceref.errors import InputError

Array = Any
Gradients = dict[str, Any]


def merge(total: Gradients, more: Gradients) -> Gradients:
    """Add `more` to `total`, name by name, and return `total`; arrays that are added up stay as they are."""
    for name, grad in more.items():
        total[name] = total[name] + grad if name in total else grad
    return total


@dataclass(frozen=True, eq=False)
class Part:
    """The rows that one input contributes to a matrix of rows.

    Attributes
    ----------
    name : str
        The input.
    source : array
        The input: its shape is that of its gradient.
    span : slice
        Where its rows stand.
    length : array or None
        (n, 1), the length each row was divided by; None where rows are taken as they are.
    unit : array or None
        (n, 1), powers of two: lengths are measured in them where they, or their squares, leave the range.
    constant : bool
        It gets no gradient.
    """

    name: str
    source: Array
    span: slice
    length: Array | None = None
    constant: bool = False
    unit: Array | None = None

    def per_length(self, x: Array) -> Array:
        """The array, (n, D), row by row divided by what the rows were divided by."""
        return x / self.length if self.unit is None else x / self.length / self.unit


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they enter the logits, (n, D), and where they came from."""

    values: Array
    parts: tuple[Part, ...]
    order: Array | None = None
    """The present place of each row of the parts; None where no row has moved."""

    def __sizeof__(self) -> int:
        # Schedulers ask: what looks small is moved for nothing, and kept twice.
        return object.__sizeof__(self) + getattr(self.values, "nbytes", 0)

    def reordered(self, order: Array) -> "Rows":
        """The same rows in another order, for the host: row i of the result is row order[i]."""
        return Rows(self.values[order, :], self.parts, np.argsort(order))

    @cached_property
    def longest(self) -> float:
        """A bound on the lengths of the rows, `balanced`."""
        if all(part.length is not None for part in self.parts):
            return 1.0
        xp = array_namespace(self.values)
        return float(xp.max(xp.linalg.vector_norm(self.balanced[0], axis=1)))

    @cached_property
    def balanced(self) -> tuple[Array, int]:
        """The rows divided by a power of two, and its exponent: 0 where products of rows cannot leave the range."""
        exponent = 0 if all(part.length is not None for part in self.parts) else excess_exponent(self.values)
        return times_power(self.values, -exponent), exponent

    def vjp(self, g: Array, exponent: int = 0) -> Gradients:
        """Gradients by the inputs from that by the rows, which is used up: (g - (g.z) z) / |w| if normalized.

        All are multiplied by 2^exponent, last: a division by tiny lengths may bring them back into the range.
        An input may take part twice, as anchor and as candidate.
        """
        xp = array_namespace(g)
        values = self.values if self.order is None else self.values[self.order, :]
        g = g if self.order is None else g[self.order, :]
        out: Gradients = {}
        for part in self.parts:
            if part.constant:
                continue
            own = g[part.span, :]
            if part.length is not None:
                z = values[part.span, :]
                own -= xp.vecdot(own, z, axis=-1)[:, None] * z
                own = part.per_length(own)
            out[part.name] = restored(times_power(own, exponent), part.source)
        return out


NOTHING = Rows(None, ())
"""No rows: those of logits that are to be filled."""


def restored(g: Array, x: Array) -> Array:
    """Rows in the shape of their input.

    `g` is the gradient by the rows, (n, D), all rows of view 1 first, and `x` the input: (n,), (n, D) or (N, V, D).
    Views that gave no rows get 0.
    """
    xp = array_namespace(g)
    if x.ndim == 3:
        n, views, width = x.shape
        g = xp.permute_dims(xp.reshape(g, (-1, n, width)), (1, 0, 2))
        missing = views - g.shape[1]
        g = xp.concat([g, xp.zeros((n, missing, width), dtype=g.dtype, device=device(g))], axis=1) if missing else g
    return g[:, 0] if x.ndim == 1 else g


def unit(x: Array, name: str, which: Callable[[int], str]) -> tuple[Array, Array, Array | None]:
    """Rows scaled to length 1, and their lengths; a zero row is refused.

    Returns the rows, (n, D), their lengths, (n, 1), and the powers of two in which lengths are measured, (n, 1); None
    where that is 1. Raises `InputError` for a row of zeros, which `which` words by its number.
    """
    xp = array_namespace(x)
    square = _squares(x)
    # Squares far inside the range, their sum and that of their inverses too: nothing was lost in them.
    if math.isfinite(float(xp.sum(square + 1e6 / square))):
        length = xp.sqrt(square)
        return x / length, length, None
    peak = xp.max(xp.abs(x), axis=-1, keepdims=True)
    if bool(xp.any(peak == 0)):
        row = int(xp.argmax(xp.astype(peak[:, 0] == 0, xp.int8)))
        msg = f"`{name}` {which(row)} is zero and has no direction; drop it, or pass normalize='none'"
        raise InputError(msg)
    # In units of their largest entry, neither rows of 1e200 nor of 1e-200 leave the range.
    scale = power_of_two(peak)
    rows = x / scale
    length = xp.sqrt(_squares(rows))
    return rows / length, length, scale


def _squares(x: Array) -> Array:
    """The squared length of each row, (n, 1), of its entries alone: some BLAS add up a row by where it is in memory."""
    return array_namespace(x).sum(row_major(x * x), axis=-1, keepdims=True)


def row_words(samples: int | None, row: int, start: int = 0) -> str:
    """A row in a message, from `start` on; where rows are views of so many samples, view 1 first, sample and view."""
    return f"row {start + row}" if samples is None else f"sample {start + row % samples}, view {row // samples},"


def _flat(x: Array, first_view: bool) -> Array:
    """Rows of one input; (N, V, D) is unbound into views, all rows of view 1 first."""
    if x.ndim != 3:
        return x
    xp = array_namespace(x)
    views = xp.permute_dims(x, (1, 0, 2))
    return xp.reshape(views[:1, :, :] if first_view else views, (-1, x.shape[2]))


def embed(normalize: str, constants: tuple[str, ...] = (), first_view: bool = False, **inputs: Array) -> Any:
    """Stack the rows of the inputs, in order.

    Each input is (n, D), or (N, V, D), which is unbound into views, all rows of view 1 first; `first_view` leaves out
    the others. Inputs in `constants` get no gradient. Raises `InputError` for a row of zeros that is to be normalized.
    """
    if isinstance(next(iter(inputs.values())), ChunkedArray):
        return chunked_rows(normalize, first_view, **inputs)
    blocks, parts, start = [], [], 0
    for name, x in inputs.items():
        flat, length, scale = _flat(x, first_view), None, None
        if normalize == "l2":
            flat, length, scale = unit(flat, name, partial(row_words, x.shape[0] if x.ndim == 3 else None))
        blocks.append(flat)
        span = slice(start, start + flat.shape[0])
        parts.append(Part(name, x, span, length, name in constants, scale))
        start = span.stop
    values = blocks[0] if len(blocks) == 1 else array_namespace(*blocks).concat(blocks, axis=0)
    return Rows(values, tuple(parts))


def given(name: str, x: Array) -> Any:
    """An input that is logits already, one row an anchor; a vector becomes one column."""
    if isinstance(x, ChunkedArray):
        return chunked_rows("none", False, **{name: x})
    return Rows(x if x.ndim == 2 else x[:, None], (Part(name, x, slice(0, x.shape[0])),))
