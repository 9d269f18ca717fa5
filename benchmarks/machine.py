"""The machine: what it is, and the rates at which it does the work that no program gets around."""

import importlib.util
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np

PEERS = ("torch", "cupy")
SIDE = 512
"""Side of the blocks: nceref's own, of a size that stays in a cache."""


def describe(threads: int) -> dict[str, Any]:
    """Hardware, versions and date: nothing that names the computer or who owns it."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "CPU": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads,
        "system": _system(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "BLAS": _blas(),
        "nceref": version("nceref"),
        **{peer: _version(peer) for peer in PEERS},
    }


def installed(peer: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(peer) is not None


def _version(peer: str) -> str | None:
    """Version of a peer, None if it is missing; wheels of CuPy have other names."""
    if not installed(peer):
        return None
    for name in (peer, f"{peer}-cuda12x", f"{peer}-cuda13x"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "of unknown version"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _system() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.machine()}"
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}, {platform.machine()}"


def _blas() -> str:
    from threadpoolctl import threadpool_info

    libraries = [x for x in threadpool_info() if x["user_api"] == "blas"]
    return (
        ", ".join(f"{x['internal_api']} {x['version']} ({x.get('architecture', '?')})" for x in libraries) or "unknown"
    )


@dataclass(frozen=True)
class Busy:
    """Seconds that the processors have worked since the start of the system: for anybody, and for this command."""

    clock: float
    anybody: float
    own: float

    def others(self, before: "Busy") -> float:
        """The share of all processors that other processes took since then, and a host that took them away."""
        worked = (self.anybody - before.anybody) - (self.own - before.own)
        return max(worked / (self.clock - before.clock) / (os.cpu_count() or 1), 0.0)


def busy() -> Busy | None:
    """Busy times of the processors as the system counts them; None where it does not."""
    try:
        ticks = [int(x) for x in Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _waiting, interrupt, soft, stolen = ticks
    anybody = (user + nice + system + interrupt + soft + stolen) / os.sysconf("SC_CLK_TCK")
    return Busy(time.perf_counter(), anybody, sum(os.times()[:4]))


def rates(dtype: str, dim: int, threads: int, seconds: float = 0.25) -> dict[str, float]:
    """Operations of matrix products and exponentials a second, all threads at work, BLAS held to one thread each.

    A block of 512 x 512 meets one of 512 x dim; each of both is measured for so many seconds.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:

        def together(make: Callable[[], Callable[[], Any]]) -> float:
            gate = Barrier(threads)
            times = pool.map(lambda _: _median_time(make(), gate, seconds), range(threads))
            return sum(1 / each for each in times)

        products = together(lambda: _product(dtype, dim))
        exponentials = together(lambda: _exponential(dtype))
    return {"operations": 2 * SIDE * SIDE * dim * products, "exponentials": SIDE * SIDE * exponentials}


def _product(dtype: str, dim: int) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIDE, width), dtype=dtype) for width in (SIDE, dim))
    out = np.empty((SIDE, dim), dtype=dtype)
    return lambda: np.matmul(a, b, out=out)


def _exponential(dtype: str) -> Callable[[], Any]:
    x = np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=dtype)
    out = np.empty_like(x)
    return lambda: np.exp(x, out=out)


def _median_time(work: Callable[[], Any], gate: Barrier, seconds: float) -> float:
    work()
    gate.wait()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
