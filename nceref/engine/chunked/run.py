"""A graph computed: here, or by the cluster of the caller's client; with one clear error where it ends early."""

import sys
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nceref.engine.arguments import check_cotangent, checked_cotangent
from nceref.engine.arrays import RangeError
from nceref.engine.bound_loss import BoundLoss, bound_loss
from nceref.engine.chunked import tasks
from nceref.engine.chunked.arguments import ChunkedLoss, chunked_loss, read
from nceref.engine.chunked.graph import Graph
from nceref.engine.chunks import is_chunked
from nceref.errors import ClusterError, InputError
from nceref.output.text import reason
from nceref.spec import Array, Loss


@dataclass(frozen=True, eq=False)
class LossInChunks:
    """A loss with the arguments of a call, of which at least one is an array of Dask; none has been read.

    One of vectors alone reads them, and is computed in this process. With `compute` the value is a number, and
    gradients are arrays whose chunks are there; else all are collections of Dask that nothing has computed.
    """

    loss: Loss
    given: Mapping[str, Any]
    compute: bool

    def in_memory(self) -> BoundLoss:
        """The loss with all of its arguments read."""
        return bound_loss(self.loss, (), {name: read(name, x) for name, x in self.given.items()})

    def value(self, reduction: str) -> Any:
        """The value, or the rows; errors as for `value_and_grad`."""
        if self._vectors_alone:
            value = self.in_memory().value(reduction)
            return value if self.compute else _in_chunks(value)
        bound, graph = self._graph(reduction)
        lazy = _Collections(bound, graph, graph.head(None), {}).value(reduction)
        return _finished(bound, lazy, {})[0] if self.compute else lazy

    def value_and_grad(self, reduction: str, cotangent: Any) -> tuple[Any, dict[str, Any]]:
        """The value and the gradients: of an input in chunks an array of Dask in the same chunks, of a scalar a float.

        Raises `InputError` for an argument that the loss cannot take, and `ClusterError` if workers or their scheduler
        are lost for good.
        """
        check_cotangent(self.loss, reduction, cotangent)
        if self._vectors_alone:
            value, grads = self.in_memory().value_and_grad(reduction, read("cotangent", cotangent))
            out = {name: _in_chunks(grad, self.given.get(name), self.compute) for name, grad in grads.items()}
            return (value if self.compute else _in_chunks(value)), out
        bound, graph = self._graph(reduction)
        checked = None if cotangent is None else partial(checked_cotangent, self.loss, read("cotangent", cotangent))
        head = graph.head(checked)
        collections = _Collections(bound, graph, head, graph.gradients(head))
        lazy, grads = collections.value(reduction), {name: collections.gradient(name) for name in collections.keys}
        return _finished(bound, lazy, grads) if self.compute else (lazy, grads)

    @property
    def _vectors_alone(self) -> bool:
        return not any(isinstance(p, Array) and len(p.shape) > 1 for p in self.loss.parameters)

    def _graph(self, reduction: str) -> tuple[ChunkedLoss, Graph]:
        bound = chunked_loss(self.loss, self.given)
        _advise(bound)
        return bound, Graph(bound, reduction)


def _in_chunks(x: Any, like: Any = None, in_memory: bool = False) -> Any:
    """An array of Dask, in the chunks of another one; what has none stays `in_memory` if it may."""
    import dask.array as da

    if is_chunked(like):
        return da.from_array(x, chunks=like.chunks)
    return x if in_memory else da.from_array(np.asarray(x))


FEWEST_ROWS, MOST_CHUNKS = 1024, 128
"""Of a chunk that is worth its tasks, and of a batch that is worth its scheduler's time."""


def _advise(bound: ChunkedLoss) -> None:
    """One sentence where other chunks would do better."""
    name, x = next(iter(bound.arrays.items()))
    client, (count, rows) = _client(), (len(x.chunks[0]), x.shape[0])
    workers = 1 if client is None else len(client.scheduler_info()["workers"])
    if count > MOST_CHUNKS and max(x.chunks[0]) < 8 * FEWEST_ROWS:
        better = max(FEWEST_ROWS, -(-rows // (MOST_CHUNKS // 2)))
        what = f"make about {8 * count**2:,} tasks; chunks of {better:,} make {8 * (-(-rows // better)) ** 2:,}"
    elif workers > 1 and count < 2 * workers and rows >= 2 * workers * FEWEST_ROWS:
        what = f"keep {workers} workers waiting for one another; pass chunks of at most {rows // (2 * workers):,}"
    else:
        return
    warnings.warn(f"`{name}`: {count} chunks of {max(x.chunks[0]):,} rows {what}", stacklevel=6)


class _Collections:
    """Collections that Dask computes, over a graph with all of its tasks.

    `head` is the task of the head; `keys` has those of the gradients, as `Graph.gradients` returns them.
    """

    def __init__(
        self, bound: ChunkedLoss, graph: Graph, head: Hashable, keys: Mapping[str, Mapping[Hashable, Hashable]]
    ) -> None:
        from dask.highlevelgraph import HighLevelGraph

        self.bound, self.name, self.head, self.keys = bound, graph.name, head, keys
        arrays = list(bound.arrays.values())
        self.graph = HighLevelGraph.from_collections(graph.name, graph.tasks, dependencies=arrays)

    def _with(self, name: str, layer: Mapping[Hashable, Any]) -> Any:
        from dask.highlevelgraph import HighLevelGraph

        return HighLevelGraph({**self.graph.layers, name: layer}, {**self.graph.dependencies, name: {self.name}})

    def value(self, reduction: str) -> Any:
        """The value: an array of one number; rows, whose shape is the head's, as one object."""
        import dask.array as da
        from dask.delayed import Delayed

        name = f"{self.name}-value"
        if reduction == "none":
            return Delayed(name, self._with(name, {name: (tasks.value_of, self.head)}))
        graph = self._with(name, {(name,): (tasks.value_of, self.head)})
        return da.Array(graph, name, (), dtype=self.bound.dtype)

    def gradient(self, name: str) -> Any:
        """The gradient by one input; by one in chunks, in those of the caller."""
        import dask.array as da

        own, x, keys = f"{self.name}-by-{name}", self.bound.arguments[name], self.keys[name]
        if name not in self.bound.arrays:
            shape = getattr(x, "shape", ())
            graph = self._with(own, {(own, *(0 for _ in shape)): keys[()]})
            grad = da.Array(graph, own, tuple((n,) for n in shape), dtype=getattr(x, "dtype", float))
            return self._as_given(name, grad)
        array = self.bound.arrays[name]
        rest = [0] * (array.ndim - 1)
        graph = self._with(own, {(own, chunk, *rest): key for chunk, key in keys.items()})
        grad = da.Array(graph, own, array.chunks, dtype=x.dtype, meta=array._meta)
        return self._as_given(name, grad)

    def _as_given(self, name: str, grad: Any) -> Any:
        given = self.bound.given.get(name)
        return grad if given is None else grad.rechunk(given.chunks)


def _finished(bound: ChunkedLoss, lazy: Any, grads: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The value as a number or rows, and gradients: arrays of Dask whose chunks are there, or numbers."""
    with _one_error(bound):
        value, *computed = _persisted([lazy, *grads.values()])
        out = dict(zip(grads, computed, strict=True))
        return _held(value), {name: x if name in bound.given else _held(x) for name, x in out.items()}


def _held(x: Any) -> Any:
    """The content of a collection; a float where it is one number."""
    held = x.compute()
    return float(held) if getattr(held, "shape", None) == () else held


def _persisted(collections: list[Any]) -> list[Any]:
    """The collections with everything computed; a cluster's tasks are given up where the caller is interrupted."""
    import dask

    client = _client()
    if client is None:
        from dask.diagnostics import ProgressBar

        with ProgressBar() if sys.stderr.isatty() else nullcontext():
            return list(dask.persist(*collections))
    from distributed import as_completed, futures_of, progress

    persisted = client.persist(collections)
    try:
        if sys.stderr.isatty():
            progress(persisted, notebook=False)
        for future in as_completed(futures_of(persisted)):
            # The first that failed ends it; what has finished stays where it is.
            if future.status != "finished":
                future.result()
    except BaseException:
        client.cancel(persisted, force=True)
        raise
    return list(persisted)


def _client() -> Any:
    """The client that Dask computes with, None where it is a local scheduler."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def _one_error(bound: ChunkedLoss) -> Iterator[None]:
    """Within it, what workers raise is raised as it would be in memory, and what they die of as a `ClusterError`."""
    try:
        yield
    except RangeError as error:
        given = "float64 arrays" if str(error).endswith("float32") else "a larger temperature or smaller rows"
        msg = f"{error}: pass {given}"
        raise InputError(msg) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        why = f"the cluster gave up on {bound.loss.name}: {reason(error)}"
        alone = getattr(error, "reason", "") == "scheduler-connection-lost"
        msg = f"{why}; see {'the log of its scheduler' if alone else 'the logs of its workers, or pass smaller chunks'}"
        raise ClusterError(msg) from error
