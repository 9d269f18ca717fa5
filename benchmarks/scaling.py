"""Growth of time and memory of NT-Xent with the number of rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.cases import views
from benchmarks.clock import OnProgress, fresh, spread
from benchmarks.machine import installed
from benchmarks.programs import measure

FITTED = (4096, 8192, 16_384, 32_768, 65_536)
LARGEST = 131_072
SMALL = (1024, 2048)
BESIDE = (1024, 2048, 4096, 8192, 16_384)
MOST_BYTES = 8 << 30
"""Bytes above which PyTorch is not run, judged by four times what half as many rows took."""
EXPONENT, AWAY = 2.0, 0.1


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Time and memory by rows, for nceref and PyTorch, the exponent of the time, and the largest batch."""
    dim, fitted, beside = (16, (64, 128, 256), (64, 128)) if quick else (128, FITTED, BESIDE)
    mine = [point(m, dim, "nceref", threads, on_progress) for m in (*(() if quick else SMALL), *fitted)]
    out = {
        "nceref": mine,
        "baseline": _baseline(beside, dim, threads, on_progress) if installed("torch") else [],
        "fitted": list(fitted),
        "exponent": exponent(fitted, [p["seconds"]["median"] for p in mine if p["rows"] in fitted]),
    }
    largest = 512 if quick else LARGEST
    return out | {"largest": point(largest, dim, "nceref", threads, on_progress)}


def _baseline(sizes: Sequence[int], dim: int, threads: int, on_progress: OnProgress) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for m in sizes:
        if out and 4 * (out[-1]["extra"] or 0) > MOST_BYTES:
            break
        out.append(point(m, dim, "baseline", threads, on_progress))
    return out


def point(rows: int, dim: int, program: str, threads: int, on_progress: OnProgress) -> dict[str, Any]:
    """Times and peak memory of one program at one size; a batch that takes seconds is timed once."""
    case = views(rows, dim)
    on_progress(f"scaling: {program}, {case.name}")
    # From 65,536 rows on a call takes so long that a first one, with cold caches, is as good as a second.
    least = 0 if rows >= 65_536 else 1 if rows >= 16_384 else 3
    answer = fresh(
        measure, case=case.plain(), program=program, threads=threads, device="cpu", least=least, seconds=0.0
    )  # fmt: skip
    return {"rows": rows, "seconds": spread(answer["seconds"]), "extra": answer["extra"]}


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of log time on log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
