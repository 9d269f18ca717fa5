"""The time and the memory that programs take for one large batch, as ratios."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nceref.cases.corpus.corpus import designed_inputs
from nceref.cases.corpus.resizing import Resizing
from nceref.cases.records import Probe
from nceref.diagnosis.gaps import listed
from nceref.targets.process import tree
from nceref.verification.request import Request

ROWS, FEATURES = 1024, 128
"""Sizes of the batch: products of rows take most of the time of a program with in-batch negatives."""
_CALLS, _ENOUGH = 50, 20
"""Most calls of one program, and ticks of the clock after which they are enough."""
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def costs_of(request: Request, run: Any) -> dict[str, float]:
    """CPU seconds of a call, and bytes at its peak; empty where a call fails, or the system does not tell them."""
    if not os.access("/proc/self/clear_refs", os.W_OK) or request.contracts or request.isolate:
        return {}
    small, large = _probes(request, run)
    # What is loaded at the first call is no cost of it.
    if run(small).trouble:
        return {}
    pids = run.processes()
    before = _resident(pids, "VmRSS")
    for pid in pids:
        # One that the target has started may have ended.
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    if run(large).trouble:
        return {}
    memory = _resident(pids, "VmHWM") - before
    return {"CPU time": _seconds(run, large), "peak memory": float(memory)}


def compared(costs: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """The sentence about the cost of a program in units of the second one's; empty where not both are known."""
    if len(costs) != 2 or not all(each for _, each in costs):
        return ""
    (_, new), (name, old) = costs
    words = [f"{new[what] / old[what]:.2g} times its {what}" for what in old if new[what] > 0 < old[what]]
    at = f"cost of a call with {ROWS} rows of {FEATURES} features"
    return f"{at}, in units of {name}: {listed(words)}" if words else ""


def _probes(request: Request, run: Any) -> tuple[Probe, Probe]:
    """A small case, with which a program gets ready, and the large one."""
    dtype = request.dtypes[0]
    made = []
    for sizes in (request.resizing, Resizing(1, ROWS, FEATURES)):
        about = (request.loss, request.settings, "quick", dtype, request.seed, run.target.fixed, run.forms, sizes)
        _, inputs = next(iter(designed_inputs(*about)))
        made.append(Probe("cost", request.loss, inputs, dtype, request.reduction))
    return made[0], made[1]


def _seconds(run: Any, probe: Probe) -> float:
    """CPU seconds of a call, from enough calls for the clock of the system; 0 where that does not see them."""
    pids = run.processes()
    before = sum(map(tree.cpu_ticks, pids))
    for calls in range(1, _CALLS + 1):
        run(probe)
        passed = sum(map(tree.cpu_ticks, pids)) - before
        if passed >= _ENOUGH:
            return passed / calls / _TICKS
    return 0.0


def _resident(pids: Sequence[int], field: str) -> int:
    return sum(tree.resident(pid, field) or 0 for pid in pids)
