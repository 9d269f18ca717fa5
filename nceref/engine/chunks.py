"""Matrices in row chunks that lie somewhere else: what a plan reads of them, which is no number.

A plan that is made of such matrices has rows of this module in its comparisons. `windows` cuts them to single chunks,
which are then filled with arrays.
"""

import math
import sys
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nceref.engine.namespaces import array_namespace

Array = Any


def is_chunked(*values: Any) -> bool:
    """Whether one of the values is an array of Dask; nothing is imported for it."""
    module = sys.modules.get("dask.array")
    return module is not None and any(isinstance(x, module.Array) for x in values)


@dataclass(frozen=True, eq=False)
class ChunkedArray:
    """An argument in row chunks, by shape and dtype.

    Attributes
    ----------
    name : str
        The argument.
    shape : tuple of int
        (n, D) or (N, V, D).
    dtype : dtype
        In which it enters the computation.
    spans : tuple of slice
        The rows of each chunk.
    like : array
        An empty array of the library of the chunks.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    spans: tuple[slice, ...]
    like: Any

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return array_namespace(self.like)

    def astype(self, dtype: Any) -> "ChunkedArray":
        """The array in another dtype."""
        return replace(self, dtype=dtype)


@dataclass(frozen=True, eq=False)
class ChunkedTable(ChunkedArray):
    """A table of weights of every sample as a positive of every other, (N, N), in square blocks.

    Attributes
    ----------
    largest : array
        (N,), the largest weight of each row.
    largest_of_others : array
        (N,), the same without the sample itself.
    has_diagonal : bool
        Whether weights of a sample with itself count.
    """

    largest: Any = None
    largest_of_others: Any = None
    has_diagonal: bool = True

    def without_diagonal(self) -> "ChunkedTable":
        """The table in which no sample is a positive of itself."""
        return replace(self, largest=self.largest_of_others, has_diagonal=False)


class Piece(NamedTuple):
    """The rows that one chunk of one input contributes to a matrix of rows.

    Attributes
    ----------
    name : str
        The input.
    chunk : int
        Which of its chunks.
    view : int
        Which of its views, 0 for (n, D).
    normalize : str
        Whether each row is scaled to length 1, "l2" or "none".
    """

    name: str
    chunk: int
    view: int
    normalize: str


@dataclass(frozen=True, eq=False)
class ChunkedRows:
    """A matrix of rows, (n, D), by its pieces: the counterpart of `embeddings.Rows` for arrays in chunks.

    Attributes
    ----------
    values : ChunkedArray
        Its shape and dtype, and the rows of each piece.
    pieces : tuple of Piece
    """

    values: ChunkedArray
    pieces: tuple[Piece, ...]

    @property
    def longest(self) -> float:
        """A bound on the lengths of the rows, which is not known before they are read."""
        return 1.0 if all(piece.normalize == "l2" for piece in self.pieces) else math.inf

    @property
    def balanced(self) -> tuple[ChunkedArray, int]:
        """The rows as they are, and exponent 0: each piece decides whether its rows are divided by a power of two."""
        return self.values, 0


def chunked_rows(normalize: str, first_view: bool, **inputs: ChunkedArray) -> ChunkedRows:
    """Stack the rows of the inputs, in order; parameters as for `embeddings.embed`."""
    pieces, spans, start = [], [], 0
    for name, x in inputs.items():
        for view in range(1 if x.ndim == 2 or first_view else x.shape[1]):
            pieces += [Piece(name, chunk, view, normalize) for chunk in range(len(x.spans))]
            spans += [slice(start + span.start, start + span.stop) for span in x.spans]
            start += x.shape[0]
    first = next(iter(inputs.values()))
    shape = (start, first.shape[-1])
    return ChunkedRows(ChunkedArray("", shape, first.dtype, tuple(spans), first.like), tuple(pieces))
