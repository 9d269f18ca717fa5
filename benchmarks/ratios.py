"""Ratios of one run, compared with stored ranges: `python -m benchmarks.ratios`.

A time says nothing on another machine, so each is divided by one of the same run. The ranges in ``ratios.json`` are
generous: a busy machine moves a ratio by a half.
"""

import json
import sys
from pathlib import Path

from benchmarks.cases import views
from benchmarks.clock import fresh
from benchmarks.machine import installed, rates
from benchmarks.memory import extra
from benchmarks.speed import row, sample
from benchmarks.startup import CHECKED, LOSS, process_per_call, timed, warm
from nceref.output.terminal import overwrite

RANGES = Path(__file__).with_name("ratios.json")
CASE = views(4096)
COMMANDS = {
    "numpy": ["-c", "import numpy"],
    "nceref": ["-c", "import nceref"],
    "verify": ["-m", "nceref", "verify", CHECKED, "--loss", LOSS],
}


def measured(threads: int = 1) -> dict[str, float]:
    """The ratios by name; those to PyTorch where it is installed."""
    out, memory = {}, extra(CASE, "nceref", threads)
    if installed("torch"):
        of_torch = extra(CASE, "baseline", threads)
        samples = sample([CASE], threads, "cpu", 3, overwrite, rates)
        out["time of value and gradients, PyTorch / nceref"] = row(CASE, samples, samples.rates["float32", 128][0])[
            "ratio"
        ]
        if memory and of_torch:
            out["memory of value and gradients, PyTorch / nceref"] = of_torch / memory
    started = timed({name: [sys.executable, *words] for name, words in COMMANDS.items()}, 5, overwrite)
    seconds = {name: times["median"] for name, times in started.items()}
    out["import nceref / import numpy"] = seconds["nceref"] / seconds["numpy"]
    out["cold verify / import numpy"] = seconds["verify"] / seconds["numpy"]
    out["warm verify / cold verify"] = fresh(warm) / seconds["verify"]
    out["call in a process / call in this one"] = fresh(process_per_call)
    overwrite("")
    return out


def main() -> int:
    """Print each ratio with its range; 1 where one is outside."""
    ranges, outside = json.loads(RANGES.read_text(encoding="utf-8")), 0
    for name, ratio in measured().items():
        low, high = ranges[name]
        outside += not low <= ratio <= high
        print(f"{name}: {ratio:.3g}, {'in' if low <= ratio <= high else 'OUTSIDE OF'} {low:g} to {high:g}")  # noqa: T201
    return bool(outside)


if __name__ == "__main__":
    sys.exit(main())
