"""Time and memory of processes of Dask, beside the engine in memory on the same two cores, and the largest batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks import RefusedError, interrupted, programs
from benchmarks.cases import Case, inputs
from benchmarks.clock import OnProgress, fresh, ratio_quartiles, spread
from benchmarks.machine import describe, installed
from benchmarks.memory import MIB

DIM = 128
MEMORY_LIMIT = "2GiB"
"""Memory of a worker, beyond which Dask ends it."""
MOST_ROWS = 8192
"""Most rows of a chunk."""
ROUNDS = dict.fromkeys((8192, 16_384, 32_768, 65_536), 3)
"""Rounds of measurement by number of rows, in memory and on two workers in turn."""
ALONE = (8192, 16_384, 32_768)
"""Rows at which one worker is measured as well, once."""
CUT, CHUNKS = 32_768, (1024, 2048, 4096, 8192, 16_384)
"""Rows that are cut into chunks of different sizes."""
LARGEST, SAMPLE = 262_144, 8
"""Rows of the largest batch, and how many of them have their gradients compared with those in memory."""
JUDGED, TARGET, LIMIT = 65_536, 1.25, 1536 * MIB
"""Rows with a target: at most how many times as long as in memory, and the most bytes of a worker."""


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Time and memory by rows, workers and chunks, and of a batch whose logits would take 256 GiB."""
    if not installed("distributed"):
        msg = "chunked: Dask is not installed; pip install 'nceref[dask]'"
        raise RefusedError(msg)
    dim, rounds, alone = (16, {256: 1, 512: 1}, (256,)) if quick else (DIM, ROUNDS, ALONE)
    cut, chunks, largest = (256, (64, 128), 1024) if quick else (CUT, CHUNKS, LARGEST)
    sizes, by_chunk = [], []
    for rows, count in rounds.items():
        with stored(rows, dim, on_progress) as batch:
            sizes.append(batch.beside_memory(threads, count))
            if rows in alone:
                sizes.append(batch.on_workers(1, default_chunk(rows)))
    with stored(cut, dim, on_progress) as batch:
        by_chunk += [batch.on_workers(2, chunk) for chunk in chunks]
        given_up = None if quick else batch.interrupt()
    with stored(largest, dim, on_progress) as batch:
        most = batch.on_workers(2, default_chunk(largest), sample=True)
    return {
        "machine": describe(threads),
        "versions": {name: version(name) for name in ("dask", "distributed")},
        "dim": dim,
        "sizes": sizes,
        "chunks": by_chunk,
        "largest": most,
        "interrupted": given_up,
        "judged": None if quick else JUDGED,
    }


def default_chunk(rows: int) -> int:
    """Rows of a chunk, for at least four chunks, so that no worker waits for long."""
    return min(MOST_ROWS, rows // 4)


def share(point: dict[str, Any]) -> int:
    """Bytes of a worker's share of two inputs, their normalized rows and their gradients, in float32."""
    return 3 * 2 * point["rows"] * point["dim"] * 4 // point["workers"]


@dataclass(frozen=True)
class Batch:
    """Inputs on the disk, and where programs write their answers."""

    case: Case
    folder: Path
    on_progress: OnProgress

    def beside_memory(self, threads: int, rounds: int) -> dict[str, Any]:
        """Times of two workers and of the engine in memory, in turn; their answers are compared."""
        answers = {name: str(self.folder / f"{name}.npz") for name in ("memory", "workers")}
        mine: list[float] = []
        busy: list[float] = []
        runs = []
        for turn in range(rounds):
            self.on_progress(f"chunked, round {turn + 1}: {self.case.name}, in memory")
            given = {"program": "nceref", "threads": threads, "device": "cpu", "seconds": 0.0}
            once = {"least": 0, "answers": answers["memory"]}
            one = fresh(programs.measure, case=self.case.plain(), **given, **once)
            mine += one["seconds"]
            busy.append(one["processor"])
            runs.append(self.on_workers(2, default_chunk(self.case.sizes["N"]), answers["workers"]))
            both = [dict(np.load(path)) for path in answers.values()]
            programs.check_agreement(self.case, both[1], both[0], ("two workers", "memory"))
        theirs = [x for one in runs for x in one["times"]]
        memory, workers = spread(mine), spread(theirs)
        most = max(runs, key=lambda one: max(one["peaks"]))
        return most | {
            "times": theirs,
            "memory": memory,
            "ratio": workers["median"] / memory["median"],
            "ratio_of_fastest": min(theirs) / min(mine),
            "processor_ratio": min(one["processor"] for one in runs) / min(busy),
            "ratio_quartiles": ratio_quartiles(workers, memory),
        }

    def on_workers(self, workers: int, chunk: int, answers: str = "", sample: bool = False) -> dict[str, Any]:
        """One run on a cluster of its own."""
        self.on_progress(f"chunked: {self.case.name}, {workers} workers, chunks of {chunk} rows")
        given = {"workers": workers, "chunk": chunk, "folder": str(self.folder), "threads": 1}
        more = {"answers": answers, "sample": SAMPLE if sample else 0}
        return fresh(measure, case=self.case.plain(), **given, **more)

    def interrupt(self) -> dict[str, Any]:
        """Measure the tasks that Ctrl-C leaves behind."""
        self.on_progress(f"chunked: {self.case.name}, interrupted")
        paths = [str(self.folder / f"{name}.npy") for name in self.case.call.arrays]
        return fresh(interrupted.measure, paths=paths, chunk=default_chunk(self.case.sizes["N"]), threads=1)


@contextmanager
def stored(rows: int, dim: int, on_progress: OnProgress) -> Iterator[Batch]:
    """A batch of InfoNCE whose inputs are files, which are gone at the end."""
    case = Case("info_nce", {"N": rows, "D": dim})
    with TemporaryDirectory() as folder:
        for name, x in inputs(case).items():
            if name in case.call.arrays:
                np.save(Path(folder, f"{name}.npy"), x)
        yield Batch(case, Path(folder), on_progress)


def measure(
    case: dict[str, Any], workers: int, chunk: int, folder: str, threads: int, answers: str, sample: int
) -> dict[str, Any]:
    """Time and memory of one call on a local cluster, whose workers read the inputs from files.

    `case` has the fields of a `Case`. `workers` are processes of one thread each; a chunk has `chunk` rows, and
    `folder` has the inputs. `threads` is for the libraries of this process and of each worker. `answers` is the path of
    an .npz file, or empty. `sample` gradients are compared with those of the engine in memory, in float64. The result
    has "times" of the call; "processor" seconds of workers, scheduler and caller; for every worker its bytes before the
    call, "idle", and at most, "peaks", interpreter included; "caller", the most bytes of the process with the
    scheduler.
    """
    from distributed import Client, LocalCluster

    from nceref import losses

    wanted = Case(**case)
    rows, dim = wanted.sizes["N"], wanted.dim
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "local_directory": folder}
    with LocalCluster(memory_limit=MEMORY_LIMIT, **options) as cluster, Client(cluster) as client:
        given = {name: in_chunks(str(Path(folder, f"{name}.npy")), chunk) for name in wanted.call.arrays}
        settings = wanted.call.settings
        # Workers have imported and BLAS has its buffers.
        losses.info_nce.value_and_grad(*(x[: min(512, rows)] for x in given.values()), **settings)
        idle = client.run(programs.resident, "VmRSS")
        start, busy = perf_counter(), processor(client)
        value, grads = losses.info_nce.value_and_grad(**given, **settings)
        seconds, busy = perf_counter() - start, processor(client) - busy
        peaks = client.run(programs.resident, "VmHWM")
        caller = programs.resident("VmHWM")
        if answers:
            np.savez(answers, value=value, **{name: np.asarray(grad) for name, grad in grads.items()})
        if sample:
            compare(wanted, folder, grads["queries"], sample)
    return {
        "rows": rows,
        "dim": dim,
        "workers": workers,
        "chunk": chunk,
        "times": [seconds],
        "processor": busy,
        "idle": sorted(idle.values()),
        "peaks": sorted(peaks.values()),
        "caller": caller,
    }


def processor(client: Any) -> float:
    """Processor seconds so far: of this process, which has the scheduler, and of all workers."""
    return process_time() + sum(client.run(process_time).values())


def in_chunks(path: str, rows: int) -> Any:
    """A matrix of a .npy file in row chunks; every worker opens the file by itself."""
    import dask.array as da

    whole = np.load(path, mmap_mode="r")
    chunks = da.core.normalize_chunks((rows, -1), shape=whole.shape, dtype=whole.dtype)
    return da.map_blocks(read, path, chunks=chunks, dtype=whole.dtype, meta=np.empty((0, 0), whole.dtype))


def read(path: str, block_info: Any = None) -> Any:
    """One chunk of a file."""
    (start, stop), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def compare(case: Case, folder: str, grad: Any, count: int) -> None:
    """Refuse gradients by some queries that differ from those in memory, of one query with all keys at a time."""
    from nceref import losses

    queries, keys = (np.load(Path(folder, f"{name}.npy"), mmap_mode="r") for name in case.call.arrays)
    picked = np.sort(np.random.default_rng(1).choice(len(keys), count, replace=False))
    expected = []
    for row in picked:
        own = (x[row : row + 1].astype(np.float64) for x in (queries, keys))
        others = np.delete(keys, row, axis=0).astype(np.float64)
        _, by = losses.info_nce.value_and_grad(*own, negatives=others, **case.call.settings)
        # The mean of the batch is over all rows.
        expected.append(by["queries"] / len(keys))
    mine = {"queries": grad[picked].compute()}
    programs.check_agreement(case, mine, {"queries": np.concatenate(expected)}, ("two workers", "memory"))
