"""Memory that value-and-gradient takes beyond inputs and gradients."""

from typing import Any

from benchmarks.cases import Case, views
from benchmarks.clock import OnProgress, fresh
from benchmarks.machine import installed
from benchmarks.programs import measure

MIB = 1 << 20
LIMITS = {8192: 64 * MIB, 65_536: 128 * MIB}
"""Most bytes by rows, at D = 128 in float32."""
BESIDE = 8192
"""Rows at which PyTorch is measured as well."""


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Peak growth of a fresh process by program and size."""
    sizes = dict.fromkeys((64, 128)) if quick else LIMITS
    out = []
    for rows, limit in sizes.items():
        case = views(rows, 16 if quick else 128)
        for program in ("nceref", "baseline", "tuned") if rows in (BESIDE, 64) and installed("torch") else ("nceref",):
            on_progress(f"memory: {program}, {case.name}")
            out.append(
                {
                    "name": case.name,
                    "rows": rows,
                    "program": program,
                    "extra": extra(case, program, threads),
                    "limit": limit if program == "nceref" else None,
                }
            )
    return {"rows": out}


def extra(case: Case, program: str, threads: int) -> int | None:
    """Bytes beyond inputs and gradients at the peak of one call; None where the system does not say."""
    answer = fresh(
        measure, case=case.plain(), program=program, threads=threads, device="cpu", least=0, seconds=0.0
    )  # fmt: skip
    return answer["extra"]
