"""Time that the command line takes to start, against importing the library that parses its arguments."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import ROOT, OnProgress, spread

ROUNDS = 15
CHECKED, LOSS = "tests/programs/plain.py:with_gradients", "info_nce"
"""A target, and its loss."""


def commands() -> dict[str, list[str]]:
    """Commands that are started, by name."""
    script = Path(sys.executable).with_name("nceref")
    nceref = [str(script)] if script.is_file() else [sys.executable, "-m", "nceref"]
    return {
        "python": [sys.executable, "-c", "pass"],
        "click": [sys.executable, "-c", "import click"],
        "nceref": [*nceref, "--help"],
    }


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Seconds of each command from start to end, and the ratio."""
    spreads = timed(commands(), 2 if quick else ROUNDS, on_progress)
    return {**spreads, "ratio": spreads["nceref"]["median"] / spreads["click"]["median"]}


def timed(commands: dict[str, list[str]], rounds: int, on_progress: OnProgress) -> dict[str, dict[str, float]]:
    """Seconds of each command from start to end, in alternating rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(1 + rounds):
        on_progress(f"startup, round {turn}")
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
            if turn:  # the first one reads files from the disk
                seconds[name].append(time.perf_counter() - start)
    return {name: spread(times) for name, times in seconds.items()}


def warm() -> float:
    """Seconds of a verification in a process that has made one."""
    from nceref import verify

    verify(CHECKED, LOSS)
    start = time.perf_counter()
    verify(CHECKED, LOSS)
    return time.perf_counter() - start


def process_per_call(calls: int = 200) -> float:
    """Time of a call of a target in a process of its own, in units of one in this process; on 256 rows.

    Of each the quickest call counts: who waits for another process is late by whatever else the machine does.
    """
    from nceref.cases.corpus.corpus import evaluate
    from nceref.losses import get_loss
    from nceref.targets.runner import in_child, in_process

    loss = get_loss(LOSS).declaration
    queries, keys = np.random.default_rng(0).normal(size=(2, 256, 64))
    probe = evaluate(loss, {"queries": queries, "keys": keys, "temperature": 0.1})
    seconds = {"there": np.inf, "here": np.inf}
    with in_child(CHECKED, loss) as there, in_process(CHECKED, loss) as here:
        for _ in range(calls):
            for name, run in (("there", there), ("here", here)):
                start = time.perf_counter()
                run(probe)
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    return float(seconds["there"] / seconds["here"])
