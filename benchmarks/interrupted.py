"""Time after Ctrl-C until a cluster has no task left of the call that was interrupted."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import RefusedError
from benchmarks.clock import ROOT

TIMES = 5
TARGET = 2.0
"""Most seconds until then."""
_CALLER = """
import signal, sys
from distributed import Client
from benchmarks.chunked import in_chunks
from nceref import losses

# A shell that runs a command in the background has it ignore the signal, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Client(sys.argv[1]):
    queries, keys = (in_chunks(path, int(sys.argv[2])) for path in sys.argv[3:])
    losses.info_nce.value_and_grad(queries, keys, temperature=0.1)
"""


def measure(paths: list[str], chunk: int, threads: int) -> dict[str, Any]:
    """Seconds from Ctrl-C, during a call, until the scheduler has no task left, and until no worker computes one.

    `paths` are two matrices in .npy files, and a chunk has `chunk` rows. `threads` is for the libraries of this process
    and of each worker.
    """
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    given, idle = [], []
    with (
        LocalCluster(local_directory=str(Path(paths[0]).parent), **options) as cluster,
        Client(cluster) as client,
    ):
        for _ in range(TIMES):
            command = [sys.executable, "-c", _CALLER, cluster.scheduler_address, str(chunk), *paths]
            with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as caller:
                _wait(lambda: sum(map(len, client.processing().values())) > 2)
                # In the midst of the windows.
                time.sleep(1.0)
                if caller.poll() is not None or not cluster.scheduler.tasks:
                    msg = "chunked: the call ended before it was interrupted; pass more rows"
                    raise RefusedError(msg)
                caller.send_signal(signal.SIGINT)
                start = time.perf_counter()
                _wait(lambda: not cluster.scheduler.tasks)
                given.append(time.perf_counter() - start)
                _wait(lambda: not any(client.run(_computing).values()))
                idle.append(time.perf_counter() - start)
    return {"given_up": given, "idle": idle}


def _wait(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(0.01)


def _computing(dask_worker: Any) -> int:
    return len(dask_worker.state.executing)
