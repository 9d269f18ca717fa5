"""What a worker does: one function for each kind of task, of arrays that another task left.

No task writes into what it was given: a task that is done again, on another worker, finds it as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj

from nceref.engine.arrays import check_entries, check_finite, plain
from nceref.engine.embeddings import Part, Rows, row_words, unit
from nceref.engine.namespaces import array_namespace, as_scalar, device
from nceref.engine.passes import joined, merged
from nceref.engine.patterns import Least
from nceref.engine.plan import Plan
from nceref.engine.scaling import times_power
from nceref.engine.settings import config
from nceref.engine.threads import keep_freed_blocks, one_blas_thread
from nceref.engine.ties import Copies, copies, fingerprints
from nceref.engine.windows import Extras, Window, fold, hardest, most_similar, pull
from nceref.errors import InputError
from nceref.spec import Array as Declared

Array = Any
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Quiet:
    """A function as a task: with one thread of its own and of BLAS, and no warnings of NumPy.

    `block` is the caller's block size, as of `nceref.config`.
    """

    function: Callable[..., Any]
    block: int | None = None

    def __call__(self, *args: Any) -> Any:
        """The function of what other tasks left."""
        keep_freed_blocks()
        with np.errstate(all="ignore"), one_blas_thread(), config(threads=1, block=self.block):
            return self.function(*args)


def checked_chunk(name: str, dtype: Any, chunk: Any, block_info: Any) -> Array:
    """A chunk of an argument, if it is the array that Dask says it is; no task after it would see that it is not.

    `dtype` and `block_info`, as `dask.array.map_blocks` has it, are what Dask says of the chunk that the caller's tasks
    made. Raises `InputError` for a masked array, anything that is no array, another shape, and another dtype.
    """
    place = block_info[0]["array-location"]
    shape = tuple(stop - start for start, stop in place)
    if is_array_api_obj(chunk):
        x = plain(name, chunk)
        # A dtype that the library of the chunk does not have is refused by its name.
        if tuple(x.shape) == shape and x.dtype == getattr(array_namespace(x), np.dtype(dtype).name, x.dtype):
            return x
        got = f"shape {tuple(x.shape)} and dtype {x.dtype}"
    else:
        got = f"an object of type {type(chunk).__name__}"
    where = f"the chunk of `{name}` that begins at index {tuple(start for start, _ in place)}"
    remedy = "mend the function that makes the chunks, or the shape and dtype that it was declared with"
    msg = f"{where} must be an array of shape {shape} and dtype {dtype}, as Dask has it, got {got}; {remedy}"
    raise InputError(msg)


def load(parameter: Declared, view: int, normalize: str, start: int, dtype: Any, chunk: Array) -> Rows:
    """The rows of one view of a chunk, checked, in the dtype of the computation, and normalized.

    The chunk is (n, D), whose view is 0, or (n, V, D); `start` is the number of its first row among all. With
    `normalize` of ``l2`` each row is scaled to length 1, with ``none`` not. Raises `InputError` for entries or rows
    that the loss cannot take.
    """
    own = chunk if chunk.ndim == 2 else chunk[:, view : view + 1, :]
    check_entries(parameter, own, (start,) if chunk.ndim == 2 else (start, view))
    x = _cast(own if chunk.ndim == 2 else own[:, 0, :], dtype)
    length = scale = None
    if normalize == "l2":
        words = partial(row_words, None, start=start) if chunk.ndim == 2 else partial(_view_words, view, start)
        x, length, scale = unit(x, parameter.name, words)
    return Rows(x, (Part(parameter.name, x, slice(0, x.shape[0]), length, False, scale),))


def load_table(parameter: Declared, start: tuple[int, int], has_diagonal: bool, dtype: Any, block: Array) -> Array:
    """A block (n, m) of a table of weights that begins at `start`, checked, in the dtype of the computation.

    `has_diagonal`: whether weights of a sample with itself count.
    """
    weights = _cast(block, dtype)
    check_entries(parameter, weights, start)
    return weights if has_diagonal else _off_diagonal(weights, start)


def _off_diagonal(block: Array, start: tuple[int, int]) -> Array:
    xp = array_namespace(block)
    i, j = (xp.arange(size) + first for size, first in zip(block.shape, start, strict=True))
    return xp.where(i[:, None] == j[None, :], xp.zeros_like(block), block)


def largest_weights(start: tuple[int, int], block: Array) -> tuple[Array, Array]:
    """The largest weight of each row of a block, and the same without samples with themselves."""
    xp = array_namespace(block)
    block = xp.astype(block, xp.float64)
    return xp.max(block, axis=1), xp.max(_off_diagonal(block, start), axis=1)


def _cast(x: Array, dtype: Any) -> Array:
    """The array in a dtype that is named as NumPy names it."""
    xp = array_namespace(x)
    return xp.astype(x, getattr(xp, np.dtype(dtype).name), copy=False)


def _view_words(view: int, start: int, row: int) -> str:
    return f"sample {start + row}, view {view},"


def first_row(rows: Rows) -> Array:
    """The row that distances are measured from."""
    return rows.values[:1, :]


def handed_on(rows: Rows, done: Any) -> Rows:
    """The rows once a window is done with them, for the next one."""
    del done
    return rows


def fold_window(window: Window, rows: Any, extras: Any) -> Any:
    """States of a window."""
    return fold(window, tuple(rows), Extras(*extras))


def fingerprints_of(rows: Rows) -> Array:
    """The fingerprints of the rows of a piece."""
    return fingerprints(rows.values)


def copies_of(rows: Rows, prints: Array, twice: Array) -> Copies | None:
    """A mask of the rows of a piece that come more than once among those of all pieces."""
    return copies(rows.values, prints, twice)


def hardest_of(window: Window, rows: Any, equal: Copies | None) -> Least:
    """The most similar candidates of a window."""
    return hardest(window, tuple(rows), Extras(copies=equal))


def merge_hardest(count: int, parts: Sequence[Least]) -> Least:
    """The most similar candidates of several windows of the same anchors, in the order of their columns."""
    return most_similar(parts, count)


def merge_states(statistics: Mapping[str, Any], sides: Sequence[str], parts: Sequence[Any]) -> dict[str, Any]:
    """One state of each statistic of a piece, by name under "rows", from those of several windows, in their order.

    `parts` are what `fold_window` and this function returned; each has the states of the piece under its side.
    """
    states = [part[side] for side, part in zip(sides, parts, strict=True)]
    own = {name: [state[name] for state in states if name in state] for name in statistics}
    return {"rows": {name: merged(statistics[name], several) for name, several in own.items() if several}}


def finish_states(statistics: Mapping[str, Any], sides: Sequence[str], parts: Sequence[Any]) -> dict[str, Array]:
    """The statistics of a piece by name; parameters as for `merge_states`."""
    states = merge_states(statistics, sides, parts)["rows"]
    return {name: statistics[name].finish(state) for name, state in states.items()}


@dataclass(frozen=True, eq=False)
class Head:
    """The result of the head of a loss: the value, and what the second pass needs.

    `stats` has the statistics of all rows by name. Slopes are d value / d statistic by name, and / d scalar where the
    head reads one; divided by 2^exponent.
    """

    value: Any
    stats: dict[str, Array]
    slopes: dict[str, Any]
    exponent: int

    def __sizeof__(self) -> int:
        arrays = (self.value, *self.stats.values(), *self.slopes.values())
        return object.__sizeof__(self) + sum(getattr(x, "nbytes", 0) for x in arrays)


def head(
    plan: Plan, reduction: str, unbounded: tuple[str, ...], cotangent: Callable[[Array], Array] | None, parts: Any
) -> Head:
    """Value and slopes, from the statistics of all pieces in their order.

    The plan is without comparisons; `parts` has the statistics of each piece by name. `unbounded` are statistics whose
    logits may have left the range; `cotangent` maps the rows to the checked cotangent.
    """
    names = dict.fromkeys(name for part in parts for name in part)
    stats = {name: _stacked([part[name] for part in parts if name in part]) for name in names}
    evaluation = joined(plan, stats, reduction, unbounded)
    value = evaluation.value(reduction)
    slopes, exponent = evaluation.magnified_slopes(None if cotangent is None else cotangent(evaluation.rows))
    return Head(value, stats, slopes, exponent)


def _stacked(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else array_namespace(*parts).concat(parts, axis=0)


def value_of(result: Head) -> Any:
    """The value: rows, or an array of one number."""
    return result.value if hasattr(result.value, "shape") else np.asarray(result.value)


def cut(names: tuple[str, ...], span: slice, result: Head) -> dict[str, tuple[Array, Array]]:
    """Statistics and slopes of a piece."""
    return {
        name: (result.stats[name][span, ...], result.slopes[name][span, ...]) for name in names if name in result.slopes
    }


@dataclass(frozen=True, eq=False)
class Sums:
    """Gradients that a chain of windows has added up: by the rows of a piece, and by scalars and by offsets of columns.

    `others` has the latter by name and first column.
    """

    by_rows: Array | None
    others: dict[tuple[str, int], Any]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(getattr(x, "nbytes", 0) for x in (self.by_rows, *self.others.values()))

    def plus(self, by_rows: Array | None, others: Mapping[tuple[str, int], Any]) -> "Sums":
        """The sum with what one window adds; the arrays that were there stay as they are."""
        rows = by_rows if self.by_rows is None else self.by_rows if by_rows is None else self.by_rows + by_rows
        both = {key: self.others[key] + x if key in self.others else x for key, x in others.items()}
        return Sums(rows, {**self.others, **both})


NO_SUMS = Sums(None, {})


def pull_window(window: Window, wanted: tuple[bool, ...], rows: Any, extras: Any, slopes: Any, sums: Any) -> Any:
    """The chains of a window's pieces, one link longer.

    `wanted` says which pieces get a gradient. `rows` are the `Rows` of the pieces, `extras` fields of `Extras`,
    `slopes` those of the anchors' piece and of the candidates'; `sums` has for each piece what its chain has so far,
    None for nothing.
    """
    by_side = dict(zip(("rows", "columns"), slopes, strict=True))
    by_rows, others = pull(window, tuple(rows), by_side, Extras(*extras))
    so_far = [x or NO_SUMS for x in sums]
    return tuple(
        so_far[side].plus(by_rows[side] if wanted[side] else None, others if side == 0 else {})
        for side in range(len(by_rows))
    )


def pick(side: int, chains: tuple[Sums, ...]) -> Sums:
    """The chain of one piece."""
    return chains[side]


def others_of(sums: Sums) -> dict[tuple[str, int], Any]:
    """Gradients by all but rows."""
    return sums.others


def input_gradient(
    name: str, shape: tuple[int, ...], views: tuple[int, ...], dtype: Any, result: Head, rows: Any, sums: Any
) -> Array:
    """The gradient by one chunk of an input, of the shape and the dtype of that.

    `rows` are the pieces that the chunk was made into, `views` the view that each of them holds, `sums` the chains of
    each. The exponent of the head's result comes last: tiny gradients keep their digits.
    """
    like = rows[0].values
    xp = array_namespace(like)
    total = xp.zeros(shape, dtype=like.dtype, device=device(like))
    for piece, view, chains in zip(rows, views, sums, strict=True):
        ended = [chain.by_rows for chain in chains if chain is not None and chain.by_rows is not None]
        if not ended:
            continue
        # A fresh array: the way back through the normalization uses it up.
        own = piece.vjp(sum(ended[1:], start=1.0 * ended[0]), result.exponent)[name]
        if len(shape) == 2:
            total += own
        else:
            total[:, view, :] += own
    grad = _cast(total, dtype)
    check_finite(grad, f"the gradient of `{name}`")
    return grad


def other_gradient(name: str, dtype: Any, result: Head, sums: Any) -> Array:
    """The gradient by a scalar, or by an offset of the columns: what the head and all chains have of it."""
    total: dict[int, Any] = {}
    for others in sums:
        for (key, start), grad in others.items():
            if key == name:
                total[start] = total[start] + grad if start in total else grad
    parts = [total[start] for start in sorted(total)]
    # Of a scalar every window has a share, whatever its columns are.
    total_of_all = sum(parts, start=result.slopes.get(name, 0.0)) if dtype is None else _cast(_stacked(parts), dtype)
    grad = times_power(as_scalar(total_of_all), result.exponent)
    check_finite(grad, f"the gradient of `{name}`")
    return np.asarray(grad)
