"""Measuring in fresh processes, in alternating rounds, and what is said about the times.

PyTorch's threads spin for a while after their work and take time from whoever runs next, so no two programs share a
process. The rounds alternate between the programs: a noisy minute hits both sides of a ratio.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RefusedError

ROOT = Path(__file__).parents[1]
_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NCEREF_THREADS")

OnProgress = Callable[[str], Any]
"""A function that takes a line about the progress."""


def fresh(function: Callable[..., Any], **arguments: Any) -> Any:
    """The result of a function of this package in a process of its own; arguments and result are JSON.

    `threads`, where it is among the arguments, is what the libraries of the process may start.
    """
    address = f"{function.__module__}:{function.__name__}"
    counts = {name: str(arguments["threads"]) for name in _COUNTS} if "threads" in arguments else {}
    command = [sys.executable, "-m", "benchmarks.clock", address, json.dumps(arguments)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | counts, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        msg = f"{address} failed: {reason}; run it by itself: {' '.join(command[1:4])} '{command[4]}'"
        raise RefusedError(msg)
    return json.loads(done.stdout)


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median and quartiles of some times, and how many there are."""
    low, median, high = (float(x) for x in np.quantile(seconds, (0.25, 0.5, 0.75)))
    return {"median": median, "low": low, "high": high, "samples": len(seconds)}


def ratio_quartiles(slow: dict[str, float] | None, fast: dict[str, float]) -> list[float] | None:
    """The ratio of two times at the unfavorable and at the favorable quartile of both."""
    return None if slow is None else [slow["low"] / fast["high"], slow["high"] / fast["low"]]


if __name__ == "__main__":
    module, name = sys.argv[1].split(":")
    answer = getattr(import_module(module), name)(**json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(answer))
