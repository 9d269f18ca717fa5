"""On a cluster of processes: the same bits, a worker that is killed, a caller that gives up, workers without memory."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from nceref import InputError, losses
from nceref.errors import ClusterError

pytestmark = pytest.mark.slow
RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((2, 240, 8))


@pytest.fixture(autouse=True, scope="module")
def packages():
    """Imported by the tests alone: it takes seconds, and `make test` collects this file and runs none of it."""
    global da, dask, distributed
    da, dask, distributed = (
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'nceref[dask]'")
        for name in ("dask.array", "dask", "distributed")
    )


@pytest.fixture
def cluster():
    """Two workers of one thread each, and a client."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": True}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield cluster, client


def in_chunks(x, size=30):
    return da.from_array(x, chunks=(size, *x.shape[1:]))


def bits(result):
    value, grads = result
    return value, [np.asarray(grad).tobytes() for grad in grads.values()]


def slow_rows(block, folder, seconds):
    """A block, after a while; a file says that somebody has begun."""
    Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(seconds)
    return block


def slowed(x, folder, seconds=0.5):
    return in_chunks(x).map_blocks(slow_rows, str(folder), seconds, dtype=x.dtype, meta=np.empty((0, 0)))


def test_any_number_of_workers_gives_the_same_bits(cluster):
    cluster, client = cluster
    two = bits(losses.nt_xent.value_and_grad(in_chunks(X), in_chunks(Y), temperature=0.1))
    cluster.scale(1)
    client.wait_for_workers(1)
    assert bits(losses.nt_xent.value_and_grad(in_chunks(X), in_chunks(Y), temperature=0.1)) == two
    assert two[0] == pytest.approx(losses.nt_xent(X, Y, temperature=0.1), rel=1e-13)
    assert list(client.futures) == []


@pytest.mark.usefixtures("cluster")
def test_chunks_that_are_too_few_are_said_to_be():
    x = da.zeros((6000, 2), chunks=(3000, 2))
    with pytest.warns(UserWarning, match="`queries`: 2 chunks of 3,000 rows keep 2 workers waiting .* at most 1,500"):
        losses.info_nce(x, x, temperature=0.1, compute=False)


def test_a_killed_worker_costs_no_digit(cluster, tmp_path):
    _, client = cluster
    expected = bits(losses.info_nce.value_and_grad(in_chunks(X), in_chunks(Y), temperature=0.1))
    lazy, grads = losses.info_nce.value_and_grad(slowed(X, tmp_path), in_chunks(Y), temperature=0.1, compute=False)
    running = client.persist([lazy, *grads.values()])
    while not list(tmp_path.iterdir()):
        time.sleep(0.01)
    victim = int(next(tmp_path.iterdir()).name.partition("-")[0])
    unfinished = [future for future in distributed.futures_of(running) if not future.done()]
    os.kill(victim, signal.SIGKILL)
    assert unfinished
    value, *gradients = (np.asarray(one) for one in running)
    assert (float(value), [g.tobytes() for g in gradients]) == (expected[0], expected[1])


@pytest.mark.usefixtures("cluster")
def test_an_error_of_one_chunk_names_its_row_and_leaves_nothing():
    wrong = X.copy()
    wrong[77, 3] = np.inf
    with pytest.raises(InputError, match=r"`z1` must be finite everywhere, got inf at index \(77, 3\)"):
        losses.nt_xent.value_and_grad(in_chunks(wrong), in_chunks(Y), temperature=0.1)
    assert losses.nt_xent(in_chunks(X), in_chunks(Y), temperature=0.1) > 0


@pytest.mark.usefixtures("cluster")
def test_workers_that_die_again_and_again_are_one_error():
    def end(block):
        os._exit(1)

    rows = in_chunks(X).map_blocks(end, dtype=X.dtype, meta=np.empty((0, 0)))
    with pytest.raises(ClusterError, match="the cluster gave up on nt_xent"):
        losses.nt_xent(rows, in_chunks(Y), temperature=0.1)


INTERRUPTED = """
import sys, time, numpy as np, dask.array as da
from distributed import Client
from nceref import losses

def slow(block):
    print("computing", flush=True)
    time.sleep(30)
    return block

def main():
    client = Client(sys.argv[1])
    x = da.zeros((240, 8), chunks=(30, 8)).map_blocks(slow, dtype=float, meta=np.empty((0, 0)))
    print("ready", flush=True)
    losses.nt_xent(x, x, temperature=0.1)

main()
"""


def test_ctrl_c_gives_up_the_tasks_and_leaves_the_cluster(cluster, tmp_path):
    cluster, client = cluster
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, str(script), cluster.scheduler_address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as caller:
        assert caller.stdout.readline() == "ready\n"
        while not any(client.processing().values()):
            time.sleep(0.01)
        caller.send_signal(signal.SIGINT)
        _, errors = caller.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    while any(client.processing().values()):
        time.sleep(0.01)
    # The workers may sleep on; the next loss is computed as soon as one is free.
    assert len(client.scheduler_info()["workers"]) == 2


@contextmanager
def started(program, folder, *options):
    """A process of Dask's command line; whoever joins it reads its address from a file."""
    command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", str(folder / "scheduler.json")]
    with subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, cwd=folder) as process:
        yield process
        process.kill()


def test_a_lost_scheduler_is_one_error(tmp_path):
    begun = tmp_path / "begun"
    begun.mkdir()
    quickly = {"distributed.comm.timeouts.connect": "1s", "distributed.client.heartbeat": "1s"}
    with started("dask_scheduler", tmp_path, "--port", "0", "--no-dashboard") as scheduler:
        while not (tmp_path / "scheduler.json").exists():
            time.sleep(0.05)
        with (
            dask.config.set(quickly),
            started("dask_worker", tmp_path, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
            distributed.Client(scheduler_file=tmp_path / "scheduler.json") as client,
        ):
            client.wait_for_workers(1)
            rows = slowed(X, begun, seconds=30)

            def kill():
                while not list(begun.iterdir()):
                    time.sleep(0.01)
                scheduler.kill()

            killer = threading.Thread(target=kill)
            killer.start()
            with pytest.raises(ClusterError, match=r"the cluster gave up on nt_xent: .* log of its scheduler"):
                losses.nt_xent(rows, in_chunks(Y), temperature=0.1)
            killer.join()
