"""Inputs as rows: stacked, unbound into views, normalized; and the way back from a gradient to the inputs'."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from nceref.errors import InputError
from nceref.namespaces import array_namespace

Array = Any
Gradients = dict[str, Any]


def merge(total: Gradients, more: Gradients) -> Gradients:
    """Add `more` to `total`, name by name, in place of nothing the caller owns."""
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
    constant : bool
        No gradient is wanted.
    """

    name: str
    source: Array
    span: slice
    length: Array | None = None
    constant: bool = False


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they enter the logits, (n, D), and where they came from."""

    values: Array
    parts: tuple[Part, ...]

    def pull(self, g: Array) -> Gradients:
        """From the gradient by the rows to the gradients by the inputs: (g - (g.z) z) / |w| where normalized."""
        xp = array_namespace(g)
        out: Gradients = {}
        for part in self.parts:
            if part.constant:
                continue
            own, z = g[part.span, :], self.values[part.span, :]
            if part.length is not None:
                own = (own - xp.sum(own * z, axis=-1, keepdims=True) * z) / part.length
            out[part.name] = restored(own, part.source)
        return out


def restored(g: Array, x: Array) -> Array:
    """Rows in the shape of their input: a vector, a matrix, or views whose missing ones get 0."""
    xp = array_namespace(g)
    if x.ndim == 3:
        n, views, width = x.shape
        g = xp.permute_dims(xp.reshape(g, (-1, n, width)), (1, 0, 2))
        missing = views - g.shape[1]
        g = xp.concat([g, xp.zeros((n, missing, width), dtype=g.dtype, device=device(g))], axis=1) if missing else g
    return g[:, 0] if x.ndim == 1 else g


def unit(x: Array, name: str, samples: int | None = None) -> tuple[Array, Array]:
    """Rows scaled to length 1, and their lengths (n, 1); a zero row is refused.

    Squares are taken after division by the largest entry, so that neither 1e200 nor 1e-200 leaves the range.
    """
    xp = array_namespace(x)
    peak = xp.max(xp.abs(x), axis=-1, keepdims=True)
    if bool(xp.any(peak == 0)):
        row = int(xp.argmax(xp.astype(peak[:, 0] == 0, xp.int8)))
        which = f"row {row}" if samples is None else f"sample {row % samples}, view {row // samples},"
        msg = f"`{name}` {which} is zero and has no direction; drop it, or pass normalize='none'"
        raise InputError(msg)
    shrunk = x / peak
    root = xp.sqrt(xp.sum(shrunk * shrunk, axis=-1, keepdims=True))
    with np.errstate(over="ignore"):
        # A row at the end of the range may be longer than any number: its gradient is 0 then.
        length = peak * root
    return shrunk / root, length


def embed(normalize: str, constants: tuple[str, ...] = (), first_view: bool = False, **inputs: Array) -> Rows:
    """Stack the rows of the inputs, in order, normalizing each row if asked.

    A (N, V, D) input is unbound into views, all rows of view 1 first; with `first_view` the others are left out.
    Names in `constants` get no gradient.
    """
    xp = array_namespace(*inputs.values())
    blocks, parts, start = [], [], 0
    for name, x in inputs.items():
        flat = x
        if x.ndim == 3:
            flat = xp.permute_dims(flat, (1, 0, 2))
            flat = xp.reshape(flat[:1, :, :] if first_view else flat, (-1, x.shape[2]))
        samples = x.shape[0] if x.ndim == 3 else None
        flat, length = unit(flat, name, samples) if normalize == "l2" else (flat, None)
        blocks.append(flat)
        span = slice(start, start + flat.shape[0])
        parts.append(Part(name, x, span, length, name in constants))
        start = span.stop
    return Rows(blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=0), tuple(parts))


def given(name: str, x: Array) -> Rows:
    """An input that is logits already, one row an anchor; a vector becomes one column."""
    return Rows(x if x.ndim == 2 else x[:, None], (Part(name, x, slice(0, x.shape[0])),))
