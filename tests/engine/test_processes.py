"""Callers at once, processes of every kind, an interrupt within a call, and memory that runs out."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from slow import partly_slow

from nceref import config, get_loss
from nceref.engine import passes, settings
from nceref.engine.processes import in_processes

rng = np.random.default_rng(0)
Z = rng.standard_normal((2, 20, 8))
SETTINGS = [
    {"block": block, "threads": threads, "keep": keep}
    for block, threads in ((2, 4), (3, 2), (7, 3), (64, 1))
    for keep in (0, 1 << 20)
]
NAMES = ("nt_xent", "clip", "supcon_out", "siglip")


@pytest.fixture
def eager(monkeypatch):
    """Threads start even where they do not pay."""
    monkeypatch.setattr(settings, "LEAST_PAIRS", 0)


def bits(setting, name="nt_xent"):
    """Value and gradients of a fixed batch, as bytes."""
    arguments = {
        "nt_xent": {"z1": Z[0], "z2": Z[1], "temperature": 0.2},
        "clip": {"image": Z[0], "text": Z[1], "logit_scale": 5.0},
        "supcon_out": {"embeddings": Z[0], "labels": np.arange(20) // 4, "temperature": 0.2},
        "siglip": {"image": Z[0], "text": Z[1], "logit_scale": 5.0, "logit_bias": -2.0},
    }[name]
    with config(**setting):
        value, grads = get_loss(name).value_and_grad(**arguments)
    return value, {key: np.asarray(grad).tobytes() for key, grad in grads.items()}


@pytest.mark.usefixtures("eager")
def test_eight_callers_with_settings_of_their_own_get_the_bits_that_each_gets_alone():
    jobs = [(setting, NAMES[i % len(NAMES)]) for i, setting in enumerate(SETTINGS)]
    alone = [bits(*job) for job in jobs]
    start = threading.Barrier(len(jobs))

    def caller(job):
        start.wait()
        return [bits(*job) for _ in range(3)]

    interval = sys.getswitchinterval()
    # They take turns within a call, not call by call.
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(jobs)) as pool:
            together = list(pool.map(caller, jobs))
    finally:
        sys.setswitchinterval(interval)
    assert together == [[expected] * 3 for expected in alone]


def in_child(setting, queue):
    """What a process started anew computes."""
    settings.LEAST_PAIRS = 0
    queue.put(bits(setting))


@pytest.mark.usefixtures("eager")
def test_a_spawned_process_gets_the_same_bits():
    expected, context = bits(SETTINGS[2]), multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    child = context.Process(target=in_child, args=(SETTINGS[2], queue))
    child.start()
    assert queue.get() == expected
    child.join()
    assert child.exitcode == 0


def worked(x, y):
    """Work of which one piece ends in an error, and others would take longer than any test."""
    if x == "wrong":
        msg = "wrong"
        raise ValueError(msg)
    if x == "slow":
        time.sleep(3600)
    return x * y


def test_results_of_work_that_is_not_shared_come_in_order():
    assert list(in_processes(worked, range(5), range(5), processes=1)) == [0, 1, 4, 9, 16]


def test_results_of_shared_work_come_in_order_and_nobody_waits_for_those_that_are_not_wanted():
    results = in_processes(worked, [*range(5), *["slow"] * 4], range(9), processes=2)
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    results.close()
    assert multiprocessing.active_children() == []


def test_an_error_of_one_process_ends_those_that_share_the_work():
    with pytest.raises(ValueError, match="wrong"):
        list(in_processes(worked, ["wrong", *["slow"] * 4], range(5), processes=2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_fork_amid_a_call_of_another_thread_leaves_both_processes_able_to_compute(monkeypatch):
    """Forked where a worker is inside a block: BLAS is limited, and the child has none of the pool's threads."""
    expected = bits(SETTINGS[2])
    inside, forked, original = threading.Event(), threading.Event(), passes.Tile

    def waiting(*args):
        inside.set()
        assert forked.wait(30)
        return original(*args)

    monkeypatch.setattr(passes, "Tile", waiting)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(bits, SETTINGS[2])
        assert inside.wait(30)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            passes.Tile = original
            os._exit(0 if bits(SETTINGS[2]) == bits(SETTINGS[2]) == expected else 1)
        forked.set()
        assert other.result(30) == expected
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    monkeypatch.undo()
    assert bits(SETTINGS[2])[0] == pytest.approx(expected[0])


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("setting", [SETTINGS[2], SETTINGS[6]], ids=["two threads", "one thread"])
@pytest.mark.parametrize("block", [2, 50], ids=["forward", "backward"])
def test_ctrl_c_within_a_call_arrives_and_leaves_nothing_running(monkeypatch, setting, block):
    setting = {**setting, "block": 5}
    expected, original, blocks = bits(setting), passes.Tile, []

    def interrupted(*args):
        blocks.append(1)
        if len(blocks) == block:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*args)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(passes, "Tile", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            bits(setting)
        made = len(blocks)
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.setattr(passes, "Tile", original)
    assert bits(setting) == expected
    # Whoever was still at work would have counted on.
    assert len(blocks) == made


LIMITED = """
import resource, sys
import numpy as np
from nceref import config, get_loss

loss = get_loss("nt_xent")
small = np.random.default_rng(0).standard_normal((2, 50, 8))
large = np.random.default_rng(0).standard_normal((2, 3000, 8))
with config(threads=int(sys.argv[1])):
    expected = loss.value_and_grad(*small, temperature=0.2)
    loss(*large, temperature=0.2)

def size():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

resource.setrlimit(resource.RLIMIT_AS, (size() + (100 << 20),) * 2)
messages, sizes = [], []
for _ in range(4):
    try:
        with config(threads=int(sys.argv[1]), block=6000, keep=1 << 40):
            loss.value_and_grad(*large, temperature=0.2)
    except MemoryError as error:
        messages.append(str(error))
    sizes.append(size())
with config(threads=int(sys.argv[1])):
    value, grads = loss.value_and_grad(*small, temperature=0.2)
    assert value == expected[0]
    assert all(np.array_equal(grads[name], expected[1][name]) for name in grads)
assert len(messages) == 4, messages
# What a first failure left, such as a stack of a thread, a later one does not leave again.
assert max(sizes[1:]) - sizes[0] < 16 << 20, sizes
print(messages[-1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited and measured on Linux")
@pytest.mark.parametrize("threads", partly_slow([1, 2], (2).__eq__, "a share of the same work on one thread"))
def test_memory_that_runs_out_is_a_clear_error_and_leaves_nothing_behind(threads):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(threads)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "out of memory" in done.stdout
    assert "pass a smaller batch, or set nceref.config" in done.stdout
