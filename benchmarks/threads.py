"""Speedup of two threads over one."""

from typing import Any

from benchmarks.cases import views
from benchmarks.clock import OnProgress, fresh, ratio_quartiles, spread
from benchmarks.machine import rates
from benchmarks.programs import measure
from benchmarks.speed import fastest

ROUNDS = 3
TARGET = 1.7


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Times of a batch with one and two threads, and the machine's own gain in matrix products and exponentials."""
    case = views(64, 16) if quick else views(8192)
    times: dict[int, list[float]] = {1: [], 2: []}
    speeds: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for turn in range(1 if quick else ROUNDS):
        for count in times:
            on_progress(f"threads, round {turn + 1}: {count}")
            options = {"program": "nceref", "device": "cpu", "least": 3, "seconds": 0.0}
            times[count] += fresh(measure, case=case.plain(), threads=count, **options)["seconds"]
            speeds[count].append(fresh(rates, dtype=case.dtype, dim=case.dim, threads=count))
    spreads = {count: spread(seconds) for count, seconds in times.items()}
    return {
        "name": case.name,
        "one": spreads[1],
        "two": spreads[2],
        "ratio": spreads[1]["median"] / spreads[2]["median"],
        "ratio_quartiles": ratio_quartiles(spreads[1], spreads[2]),
        "machine": case.floor(fastest(speeds[1])) / case.floor(fastest(speeds[2])),
        "target": None if quick else TARGET,
    }
