"""What a loss of arrays in chunks takes: tasks, operations, bytes moved, memory and time, before it is run.

Tasks and pairs are counted in the graph itself, which is made without data. Time is

    seconds = pairs * seconds a pair / workers + tasks * seconds a task + bytes moved * seconds a byte,

with rates that `measure_rates` measures on this machine, or that come from another.
"""

import socket
import threading
import time
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from nceref.engine.chunked import run
from nceref.engine.chunked.arguments import chunked_loss, vectors_alone
from nceref.engine.chunked.graph import Graph
from nceref.engine.distances import SquaredDistance
from nceref.engine.settings import thread_count
from nceref.engine.similarity import Dot
from nceref.errors import FileError, InputError, UnavailableError
from nceref.output import files
from nceref.output.json_text import json_object
from nceref.output.text import shown
from nceref.spec import Array, Labels, Loss, Scalar

SIZES = {"C": 1000, "K": 65536}
"""Classes, and rows of a queue."""
TOO_MANY = 512
"""Chunks: two million tasks or so."""
LARGEST_CHUNK, MOST_CHUNKS = 8192, 64
"""Chunks have that many rows by default, more where there would be too many chunks."""


@dataclass(frozen=True)
class Rates:
    """How fast one worker is.

    Attributes
    ----------
    seconds_per_pair : float
        Of the value and the gradient together, for one loss, width and dtype.
    seconds_per_task : float
        Of the scheduler.
    bytes_per_second : float
        From one worker to another.
    """

    seconds_per_pair: float
    seconds_per_task: float
    bytes_per_second: float


@dataclass(frozen=True)
class Prediction:
    """What one run takes.

    Attributes
    ----------
    rows, chunk, workers : int
    tasks : int
    pairs : int
        Of anchors and candidates, over all comparisons; of symmetric logits, half.
    operations : int
        Floating-point operations in products of matrices.
    moved : int
        Bytes that a worker receives: of every window, one piece for each pass, and a chain.
    memory : int
        Bytes of a worker's share of inputs, normalized rows and gradients, and of what one window holds besides.
    seconds : float
    """

    rows: int
    chunk: int
    workers: int
    tasks: int
    pairs: int
    operations: int
    moved: int
    memory: int
    seconds: float


def default_chunk(rows: int) -> int:
    """Rows of a chunk that keeps the number of tasks small."""
    return min(rows, max(LARGEST_CHUNK, -(-rows // MOST_CHUNKS)))


@cache
def _graph(loss: Loss, rows: int, dim: int, chunk: int, dtype: str) -> Graph:
    bound = chunked_loss(loss, (), arguments(loss, rows, dim, chunk, dtype, empty=True))
    graph = Graph(bound, "mean")
    graph.gradients(graph.head(None))
    return graph


def arguments(loss: Loss, rows: int, dim: int, chunk: int, dtype: str, *, empty: bool = False) -> dict[str, Any]:
    """Random arguments of a loss, matrices of rows in chunks.

    Parameters
    ----------
    loss : Loss
    rows, dim : int
        N and D; there are 1000 classes, and 65,536 rows in a queue.
    chunk : int
        Rows of a chunk.
    dtype : str
    empty : bool
        Whether the numbers are never looked at.
    """
    import dask.array as da

    sizes = {**SIZES, "N": rows, "M": rows}
    out: dict[str, Any] = {}
    for p in loss.parameters:
        if isinstance(p, Scalar) and p.default is ...:
            out[p.name] = p.typical[0] if p.typical else 0.5
        elif isinstance(p, Labels) and (p.required or p.name == "labels"):
            out[p.name] = np.arange(sizes[p.shape[0]]) % sizes["C"]
        elif isinstance(p, Array) and p.required:
            shape = tuple(sizes.get(letter, dim) for letter in p.shape)
            whole = (min(chunk, rows) if p.shape[0] == "N" else shape[0], *shape[1:])
            if len(shape) == 1:
                out[p.name] = np.ones(shape, dtype)
            elif empty:
                out[p.name] = da.empty(shape, dtype=dtype, chunks=whole)
            else:
                rng = da.random.default_rng(len(out))
                out[p.name] = rng.standard_normal(shape, dtype=dtype, chunks=whole).persist()
    return out


def predict(
    loss: Loss, rows: int, dim: int, workers: int, rates: Rates, chunk: int | None = None, dtype: str = "float32"
) -> Prediction:
    """What value and gradient of a loss take.

    Parameters
    ----------
    loss : Loss
    rows, dim : int
        N and D.
    workers : int
        Of one thread each.
    rates : Rates
    chunk : int, optional
        Rows of a chunk.
    dtype : str
    """
    chunk = default_chunk(rows) if chunk is None else min(chunk, rows)
    graph = _graph(loss, rows, dim, chunk, dtype)
    itemsize = np.dtype(dtype).itemsize
    pairs = operations = moved = 0
    for place in graph.places:
        comparison = graph.loss.plan.comparisons[place.comparison]
        spans = [side.values.spans[k] for side, k in zip(comparison.logits.sides, place.window.pieces, strict=True)]
        heights = [span.stop - span.start for span in spans]
        width = comparison.logits.shape[1] if comparison.logits.paired else heights[-1]
        pairs += heights[0] * width
        if isinstance(comparison.logits, Dot | SquaredDistance):
            # One product in the first pass; in the second one it is computed again, and multiplied with both sides.
            operations += 2 * heights[0] * width * dim * 4
            # A piece for either pass, and its chain there and back, unless the worker has them.
            moved += round(4 * heights[-1] * dim * itemsize * (1 - 1 / workers) / workers)
    held = sum(int(np.prod(x.shape)) for x in graph.loss.arrays.values()) * itemsize
    memory = 3 * held // workers + 8 * chunk * dim * itemsize
    seconds = pairs * rates.seconds_per_pair / workers + len(graph.tasks) * rates.seconds_per_task
    seconds += moved / rates.bytes_per_second
    return Prediction(rows, chunk, workers, len(graph.tasks), pairs, operations, moved, memory, seconds)


def measured(loss: Loss, rows: int, dim: int, workers: int, chunk: int, dtype: str) -> float:
    """Seconds that value and gradient take here, on so many threads."""
    import dask

    given = arguments(loss, rows, dim, chunk, dtype)
    with dask.config.set(scheduler="threads", num_workers=workers):
        begin = time.perf_counter()
        run.value_and_grad(_Declared(loss), (), given, "mean", None, True)
        return time.perf_counter() - begin


@dataclass(frozen=True)
class _Declared:
    declaration: Loss


def measure_rates(loss: Loss, dim: int, dtype: str) -> Rates:
    """Rates of one worker on this machine: the same pairs in few tasks and in many, and bytes through a socket."""
    rows = 2048
    measured(loss, 256, dim, 1, 128, dtype)  # what is imported and cached once
    few, many = (measured(loss, rows, dim, 1, chunk, dtype) for chunk in (1024, 128))
    counts = [predict(loss, rows, dim, 1, Rates(0.0, 0.0, 1.0), chunk, dtype) for chunk in (1024, 128)]
    per_task = max(many - few, 0.0) / (counts[1].tasks - counts[0].tasks)
    per_pair = max(few - counts[0].tasks * per_task, 0.5 * few) / counts[0].pairs
    return Rates(per_pair, per_task, _through_a_socket())


def _through_a_socket(size: int = 1 << 26) -> float:
    """Bytes per second between two threads of this process."""
    sender, receiver = socket.socketpair()
    with sender, receiver:
        thread = threading.Thread(target=sender.sendall, args=(bytes(size),))
        begin = time.perf_counter()
        thread.start()
        left = size
        while left:
            left -= len(receiver.recv(min(left, 1 << 20)))
        thread.join()
        return size / (time.perf_counter() - begin)


def read_rates(path: str) -> Rates:
    """Rates of another machine, from the JSON that `nceref scale --json` prints under "rates".

    Raises
    ------
    FileError
        If the file cannot be read.
    InputError
        For anything but three positive numbers by name.
    """
    text = files.read_text(path, "`rates`")
    try:
        content = json_object(path, text)
    except FileError as error:
        msg = f'`rates`: {error}; pass what `nceref scale --json` prints under "rates"'
        raise InputError(msg) from error
    names = [field.name for field in fields(Rates)]
    given = content.get("rates", content)
    numbers = list(given.values()) if isinstance(given, dict) and set(given) == set(names) else []
    if not numbers or not all(type(x) in (int, float) and 0 < x < float("inf") for x in numbers):
        msg = f"`rates`: {shown(path)} must have {', '.join(names)}, each a number > 0, got {shown(given)}"
        raise InputError(msg)
    return Rates(**{name: float(given[name]) for name in names})


@dataclass(frozen=True)
class Published:
    """A published run of a contrastive loss on several devices.

    Attributes
    ----------
    rows, devices : str
        As published.
    method : str
    source : str
    """

    rows: str
    devices: str
    method: str
    source: str


PUBLISHED = (
    Published("256k", "8 A800 80GB", "Inf-CL, 1.45 GB for the loss", "Cheng et al. 2024, arXiv 2410.17243, table 1"),
    Published("196K", "64 A100 40GB GPUs", "DisCo-CLIP, ViT-B/32", "Chen et al. 2023, arXiv 2304.08480, abstract"),
    Published("4M", "8 A800 80GB", "Inf-CL, CLIP-ViT-L/14", "Cheng et al. 2024, arXiv 2410.17243, abstract"),
    Published("12M", "32 A800 80GB", "Inf-CL, CLIP-ViT-L/14", "Cheng et al. 2024, arXiv 2410.17243, abstract"),
)
"""They train a model as well; the loss is a part of it."""


@dataclass(frozen=True)
class Outlook:
    """What `nceref scale` prints.

    Attributes
    ----------
    loss : str
    dim : int
    dtype : str
    rates : Rates
    rates_of : str
        Where they were measured.
    requested : Prediction
        Of the run that was requested.
    measured : tuple of (Prediction, float)
        Of the sizes that run here in a few seconds, with the seconds that they took.
    others : tuple of Prediction
        Of larger sizes and other numbers of workers.
    """

    loss: str
    dim: int
    dtype: str
    rates: Rates
    rates_of: str
    requested: Prediction
    measured: tuple[tuple[Prediction, float], ...]
    others: tuple[Prediction, ...]


RUN_HERE, SECONDS_HERE = (1024, 2048, 4096, 8192), 5.0
"""Rows that are measured, as long as they are predicted to take no longer."""
TABULATED, WORKERS = tuple(1 << power for power in range(17, 22)), (1, 4, 16, 64)


def outlook(
    loss: Loss,
    *,
    rows: int,
    dim: int,
    workers: int = 1,
    chunk: int | None = None,
    dtype: str = "float32",
    rates: str | None = None,
) -> Outlook:
    """What a run takes, how good such predictions are here, and what other sizes take.

    Parameters
    ----------
    loss : Loss
    rows, dim, workers, chunk, dtype
        As for `predict`.
    rates : str, optional
        File with the rates of another machine; nothing is measured then.

    Raises
    ------
    InputError
        For a loss of vectors alone, more chunks than a scheduler takes, or rates that are none.
    UnavailableError
        Without Dask.
    """
    if find_spec("dask") is None:
        msg = "`scale` counts the tasks of Dask, which is not installed; pip install 'nceref[dask]'"
        raise UnavailableError(msg)
    if vectors_alone(loss):
        msg = f"`loss`: {loss.name} has vectors alone, which are not computed in chunks; pass a loss of embeddings"
        raise InputError(msg)
    if chunk is not None and -(-rows // chunk) > TOO_MANY:
        least = -(-rows // TOO_MANY)
        msg = f"`chunk`: {chunk} rows cut {rows:,} into {-(-rows // chunk):,} chunks; pass at least {least:,}"
        raise InputError(msg)
    own = measure_rates(loss, dim, dtype) if rates is None else read_rates(rates)
    requested = predict(loss, rows, dim, workers, own, chunk, dtype)
    runs: list[tuple[Prediction, float]] = []
    for size in RUN_HERE if rates is None else ():
        here = predict(loss, size, dim, thread_count(), own, size // 4, dtype)
        if here.seconds <= SECONDS_HERE:
            runs.append((here, measured(loss, size, dim, here.workers, here.chunk, dtype)))
    others = tuple(predict(loss, n, dim, w, own, None, dtype) for n in TABULATED for w in WORKERS)
    where = "measured here" if rates is None else f"of {shown(rates)}"
    return Outlook(loss.name, dim, dtype, own, where, requested, tuple(runs), others)
