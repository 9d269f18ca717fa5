"""Speed of value-and-gradient, against PyTorch and against the work that no program gets around."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.cases import QUICK, SPEED, TUNED, Case
from benchmarks.clock import OnProgress, fresh, ratio_quartiles, spread
from benchmarks.machine import installed, rates
from benchmarks.programs import check_agreement, measure

ROUNDS, LEAST, SECONDS = 3, 2, 0.5
Rates = dict[str, float]


@dataclass
class Samples:
    """Times so far: seconds by case and program, rates by dtype and dimension."""

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    rates: dict[tuple[str, int], list[Rates]] = field(default_factory=lambda: defaultdict(list))


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Rows for all cases; `quick` ones are small and judge nothing."""
    cases = QUICK if quick else SPEED
    samples = sample(cases, threads, "cpu", 1 if quick else ROUNDS, on_progress, rates)
    return rows(cases, samples)


def programs(case: Case, device: str) -> list[str]:
    """Names of the programs that can run a case on a device; nceref comes last."""
    peers = ["baseline", "tuned"] if case.loss in TUNED else ["baseline"]
    return [*(peers if _torch_runs_on(device) else []), "nceref"]


def _torch_runs_on(device: str) -> bool:
    if not installed("torch") or device == "cpu":
        return installed("torch")
    import torch

    return bool(torch.cuda.is_available())


def sample(
    cases: Sequence[Case], threads: int, device: str, rounds: int, on_progress: OnProgress, rates: Callable[..., Rates]
) -> Samples:
    """Run every program on every case, in rounds; their answers must agree before a time counts."""
    samples = Samples()
    for turn in range(rounds):
        new = {}
        for case in cases:
            on_progress(f"speed, round {turn + 1} of {rounds}: {case.name}")
            key = case.dtype, case.dim
            if key not in new:
                new[key] = fresh(rates, dtype=case.dtype, dim=case.dim, threads=threads)
                samples.rates[key].append(new[key])
            for program, seconds in _round(case, threads, device, rounds).items():
                samples.seconds[case.name, program] += seconds
    return samples


def _round(case: Case, threads: int, device: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each program on one case, each in its own process."""
    least, seconds = (LEAST, SECONDS) if rounds > 1 else (2, 0.0)
    times = {}
    with TemporaryDirectory() as folder:
        paths = {program: str(Path(folder, f"{program}.npz")) for program in programs(case, device)}
        for program, path in paths.items():
            times[program] = fresh(
                measure, case=case.plain(), program=program, threads=threads, device=device, least=least,
                seconds=seconds, answers=path,
            )["seconds"]  # fmt: skip
        loaded = {program: dict(np.load(path)) for program, path in paths.items()}
    for program in loaded:
        check_agreement(case, loaded["nceref"], loaded[program])
    return times


def rows(cases: Sequence[Case], samples: Samples) -> dict[str, Any]:
    """The JSON of all cases and of the rates."""
    best = {key: fastest(rounds) for key, rounds in samples.rates.items()}
    return {
        "rates": [{"dtype": dtype, "dim": dim, **rate} for (dtype, dim), rate in best.items()],
        "rows": [row(case, samples, best[case.dtype, case.dim]) for case in cases],
    }


def fastest(samples: Sequence[Rates]) -> Rates:
    """The fastest round of each rate: what disturbs a round does not lower a floor."""
    return {name: max(sample[name] for sample in samples) for name in samples[0]}


def row(case: Case, samples: Samples, rate: Rates) -> dict[str, Any]:
    """Times of the programs, the floor, and their ratios; None where a program did not run."""
    spreads = {
        program: spread(samples.seconds[case.name, program]) if samples.seconds[case.name, program] else None
        for program in ("nceref", "baseline", "tuned")
    }
    floor, times = case.floor(rate), {program: s and s["median"] for program, s in spreads.items()}
    mine = times["nceref"]
    return {
        "name": case.name,
        "target": case.target,
        "within": case.within,
        **spreads,
        "floor": floor,
        "ratio": times["baseline"] and times["baseline"] / mine,
        "ratio_quartiles": ratio_quartiles(spreads["baseline"], spreads["nceref"]),
        "tuned_ratio": times["tuned"] and times["tuned"] / mine,
        "of_floor": mine / floor,
        "baseline_of_floor": times["baseline"] and times["baseline"] / floor,
    }
