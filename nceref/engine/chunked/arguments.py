"""From a caller's arrays in chunks to a bound loss that has not read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from nceref.engine.arguments import checked_arguments, converted
from nceref.engine.arrays import as_plain, check_chunks, plain, promoted
from nceref.engine.chunked.tasks import checked_chunk, largest_weights
from nceref.engine.chunks import ChunkedArray, ChunkedTable, is_chunked
from nceref.engine.plan import Plan
from nceref.spec import Array, Loss


@dataclass(frozen=True, eq=False)
class ChunkedLoss:
    """A declaration with checked arguments, of which matrices are chunks that were not read.

    `arguments` has every parameter by name: matrices as `ChunkedArray`, all else as in memory. `arrays` are the
    matrices as arrays of Dask, in chunks of whole rows; `given` is what the caller passed in chunks, vectors as well.
    """

    loss: Loss
    arguments: Mapping[str, Any]
    arrays: Mapping[str, Any]
    given: Mapping[str, Any]

    @cached_property
    def plan(self) -> Plan:
        """The plan: who is compared with whom, in the format that computes."""
        plan: Plan = self.loss.plan(**promoted(self.arguments))
        return plan

    @cached_property
    def dtype(self) -> Any:
        """The dtype of the computation."""
        return next(x.dtype for x in promoted(self.arguments).values() if isinstance(x, ChunkedArray))

    @cached_property
    def like(self) -> Any:
        """An array by library and dtype of the computation."""
        return next(iter(self.plan.comparisons)).logits.like

    def parameter(self, name: str) -> Array:
        """The declaration of an array."""
        return next(p for p in self.loss.parameters if isinstance(p, Array) and p.name == name)


def chunked_loss(loss: Loss, caller: Mapping[str, Any]) -> ChunkedLoss:
    """Check the arguments of a loss, by name, of which at least one is an array of Dask.

    Vectors, one number a row, tables of weights and rows of a guide are read now; other matrices of rows are not.
    Raises `InputError` for an argument that the loss refuses, as far as shape and dtype tell; for masked chunks and
    unknown sizes.
    """
    # Rows of a guide stay in memory: a pattern that asks them has no chunk in hand.
    matrices = {p.name: p for p in loss.parameters if isinstance(p, Array) and len(p.shape) > 1 and p.like != "guide"}
    passed = {name: checked(name, x) if is_chunked(x) else x for name, x in caller.items()}
    passed |= _own_guides(loss, passed)
    passed |= {name: _in_memory(name, x) for name, x in passed.items() if name in matrices and not is_chunked(x)}
    # Another number of axes is refused later, with the words of that.
    least = {name: 1 if is_chunked(x) else 2 for name, x in passed.items()}
    given = {name: x for name, x in passed.items() if name in matrices and getattr(x, "ndim", 0) >= least[name]}
    arrays = _aligned({name: matrices[name] for name in given}, given)
    described = {
        name: _table(name, x) if matrices[name].like == "mask" else _described(name, x) for name, x in arrays.items()
    }
    read_now = {name: _computed(x) for name, x in passed.items() if name not in arrays}
    in_chunks = {name: x for name, x in passed.items() if is_chunked(x)}
    return ChunkedLoss(loss, checked_arguments(loss, described | read_now), arrays, in_chunks)


def _own_guides(loss: Loss, caller: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a loss that is given no guide, which are their own."""
    guides = [p.name for p in loss.parameters if isinstance(p, Array) and p.like == "guide"]
    if any(caller.get(name) is not None for name in guides):
        return {}
    rows = {name: caller.get(name.removeprefix("guide_")) for name in guides}
    return {name: x for name, x in rows.items() if x is not None}


def checked(name: str, x: Any) -> Any:
    """An array of Dask, each chunk of which is refused where it is computed unless it is what Dask says."""
    check_chunks(name, x)
    # What has no axes is read, and checked as a number.
    return x.map_blocks(partial(checked_chunk, name, x.dtype), dtype=x.dtype, meta=x._meta) if x.ndim else x


def read(name: str, x: Any) -> Any:
    """An argument in memory, chunk by chunk checked where it is an array of Dask."""
    return _computed(checked(name, x)) if is_chunked(x) else x


def _computed(x: Any) -> Any:
    if not is_chunked(x):
        return x
    held = x.compute()
    # A number may be masked, which is seen where it is checked.
    return np.asarray(held) if x.ndim else held


def _in_memory(name: str, x: Any) -> Any:
    """A matrix that is no array of Dask, beside one that is; it becomes chunks of plain arrays."""
    return x if x is None else converted(name, x, plain if is_array_api_obj(x) else as_plain, name, x)


def _aligned(parameters: Mapping[str, Array], given: Mapping[str, Any]) -> dict[str, Any]:
    """Chunks of whole rows, the same for all arrays with equally many of the same letter."""
    import dask.array as da

    rows: dict[str, tuple[int, ...]] = {}
    for name, x in given.items():
        if is_chunked(x) and x.ndim:
            # A selection of rows may leave none of a chunk, which has nothing to compare.
            rows.setdefault(parameters[name].shape[0], tuple(size for size in x.chunks[0] if size) or (0,))
    out = {}
    for name, x in given.items():
        chunks = rows.get(parameters[name].shape[0], (x.shape[0],))
        # Another size is refused later, with the words of that.
        first = chunks if sum(chunks) == x.shape[0] else (x.shape[0],)
        square = parameters[name].like == "mask" and x.shape[1] == x.shape[0]
        whole = (first, first) if square else (first, *((size,) for size in x.shape[1:]))
        out[name] = x.rechunk(whole) if is_chunked(x) else da.from_array(x, chunks=whole)
    return out


def _described(name: str, x: Any) -> ChunkedArray:
    ends = np.cumsum(x.chunks[0]).tolist()
    spans = tuple(slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True))
    like = x._meta if x._meta.ndim else np.empty(0, x.dtype)
    return ChunkedArray(name, tuple(map(int, x.shape)), x.dtype, spans, like)


def _table(name: str, x: Any) -> ChunkedArray:
    """A table of weights, of which the largest of each row are read."""
    import dask

    described = _described(name, x)
    if x.ndim != 2 or x.chunks[0] != x.chunks[1]:
        # Of another shape, which is refused later.
        return described
    starts = [span.start for span in described.spans]
    blocks = x.to_delayed()
    maxima = dask.compute(
        [
            [dask.delayed(largest_weights)((start, first), blocks[i, j]) for j, first in enumerate(starts)]
            for i, start in enumerate(starts)
        ]
    )[0]
    both = [np.concatenate([np.max([block[k] for block in row], axis=0) for row in maxima]) for k in (0, 1)]
    return ChunkedTable(name, described.shape, x.dtype, described.spans, described.like, both[0], both[1])
