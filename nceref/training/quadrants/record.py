"""Runs as plain data for JSON; a float32 number is written as the float64 number of the same value."""

from dataclasses import asdict
from typing import Any

from nceref.engine.kernels import kernels
from nceref.errors import InputError
from nceref.training.quadrants import samples
from nceref.training.quadrants.replay import Run, Runs


def record(runs: Runs, seed: int | None = None) -> dict[str, Any]:
    """Samples, initial weights and all runs of one seed, in their order.

    The seed is by default the only one. The record has ``samples``, ``W1`` (10, 2), ``W2`` (2, 10), and ``runs``, a
    list with ``temperature``, ``W1``, ``W2``, ``features``, ``weights_at_500`` ([W1, W2] or None), ``statistics``,
    ``growth`` and more.
    """
    if seed is None and len(runs.setup.seeds) != 1:
        msg = f"`seed` must say which one of {runs.setup.seeds} is wanted"
        raise InputError(msg)
    seed = runs.setup.seeds[0] if seed is None else seed
    drawn, of_seed = samples.draw(seed), runs.of(seed)
    if not of_seed:
        msg = f"`seed` must be one of {runs.setup.seeds}, got {seed}"
        raise InputError(msg)
    return {
        "seed": seed,
        "dtype": runs.setup.dtype,
        "steps": runs.setup.steps,
        "done": runs.done,
        "confounder": runs.setup.confounder,
        "made_with": kernels(),
        "samples": drawn.samples.tolist(),
        "W1": drawn.W1.tolist(),
        "W2": drawn.W2.tolist(),
        "runs": [_run(run) for run in of_seed],
    }


def _run(run: Run) -> dict[str, Any]:
    early = run.weights_at_500
    over_steps = {} if run.over_steps is None else asdict(run.over_steps)
    return {
        "temperature": run.temperature,
        "rate": run.rate,
        "stopped": run.stopped,
        "W1": run.W1.tolist(),
        "W2": run.W2.tolist(),
        "features": run.features.tolist(),
        "weights_at_500": None if early is None else [w.tolist() for w in early],
        "statistics": over_steps | asdict(run.statistics),
        # Infinity, after a twin has diverged, is no JSON.
        "growth": [{"step": step, "apart": apart if apart < float("inf") else None} for step, apart in run.growth],
        "comparable_until": run.comparable_until,
    }
