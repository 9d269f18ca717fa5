"""The published runs from Python: run, or resume from a file, and read what came out.

>>> from nceref.training.quadrants import replay
>>> runs = replay.run(temperatures=(0.05,), steps=20).runs
>>> runs[0].W1.shape, runs[0].features.shape
((10, 2), (100, 2))
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.training.quadrants import batch, samples, storage
from nceref.training.quadrants.batch import PUBLISHED, STEPS, Setup, State
from nceref.training.quadrants.statistics import Statistics, StepStatistics, of_features, of_steps

Array = npt.NDArray[Any]
OnProgress = Callable[[int], Any]
"""A function that is called with the number of steps that are done."""

_BETWEEN = 10
"""Seconds from one saved state to the next."""
LIMIT = 1e-3
"""The growth of one unit in the last place below which two programs can be compared."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run: a seed at a temperature.

    Attributes
    ----------
    seed : int
    temperature, rate : float
    samples : (100, 2) array
    initial : tuple of arrays
        Both weights before the first step.
    W1, W2 : (10, 2) and (2, 10) arrays
        The last sound ones.
    weights_at_500 : tuple of arrays, or None
        After step 500, if the run came so far.
    losses, hits : (steps,) arrays
        Of the steps that were done.
    growth : tuple of (int, float)
        Largest difference from a twin that started one unit in the last place away in every weight, every 250 steps.
    stopped : int or None
        The step at which it diverged, whose result was not kept.
    """

    seed: int
    temperature: float
    rate: float
    samples: Array
    initial: tuple[Array, Array]
    W1: Array
    W2: Array
    weights_at_500: tuple[Array, Array] | None
    losses: Array
    hits: Array
    growth: tuple[tuple[int, float], ...]
    stopped: int | None

    @property
    def features(self) -> Array:
        """The features of all samples, (100, 2), in the dtype of the run."""
        return samples.encoded(self.samples, self.W1, self.W2)

    @property
    def comparable_until(self) -> int:
        """The last step up to which the growth stayed below 1e-3: pointwise comparisons mean something there."""
        sound = 0
        for step, apart in self.growth:
            if not apart < LIMIT:  # also for NaN
                break
            sound = step
        return sound

    @cached_property
    def statistics(self) -> Statistics:
        """Numbers about the features."""
        return of_features(self.features)

    @cached_property
    def over_steps(self) -> StepStatistics | None:
        """Numbers about the steps; None before the first one."""
        return of_steps(self.losses, self.hits) if len(self.losses) else None


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a setup, seed by seed, in the order of the temperatures; `done` is the number of steps done."""

    setup: Setup
    done: int
    runs: tuple[Run, ...]

    def of(self, seed: int) -> tuple[Run, ...]:
        """The runs of one seed."""
        return tuple(run for run in self.runs if run.seed == seed)


def run(
    seeds: Sequence[int] = (0,),
    temperatures: Sequence[float] = PUBLISHED,
    steps: int = STEPS,
    dtype: str = "float32",
    *,
    confounder: bool = False,
    on_progress: OnProgress | None = None,
    save: str | os.PathLike[str] | None = None,
) -> Runs:
    """Train every temperature for every seed.

    With `confounder`, rate over temperature is held at 0.006, instead of the rate at 3e-4. `on_progress` is called with
    the number of steps that are done, every 250. The state is saved to `save` every ten seconds, at the end and when
    the run is interrupted: `resume` goes on from there. Raises `InputError` for a seed, temperature, number of steps or
    dtype that the script could not take, and if `save` names a file that is no saved run. Raises `KeyboardInterrupt`
    after saving.
    """
    if save is not None:
        storage.check_place(save)
    setup = Setup(tuple(seeds), tuple(map(float, temperatures)), steps, dtype, confounder)
    return _finished(setup, batch.begin(setup), on_progress, save)


def resume(path: str | os.PathLike[str], *, on_progress: OnProgress | None = None) -> Runs:
    """Go on from a saved state, to the end, and save there again.

    The runs are the same as without the interruption. Raises `InputError` if the file is not one that `run` saved, or
    is damaged.
    """
    setup, state = storage.load(path)
    return _finished(setup, state, on_progress, path, "")


def saved(path: str | os.PathLike[str]) -> Runs:
    """The runs of a saved state, up to the step at which it was saved."""
    return summed_up(*storage.load(path))


def _finished(
    setup: Setup,
    state: State,
    on_progress: OnProgress | None,
    save: str | os.PathLike[str] | None,
    name: str = "`save`",
) -> Runs:
    # Lists, so that `note` can replace what they hold.
    last, saved_at = [state], [monotonic()]

    def note(new: State) -> None:
        last[0] = new
        # Not every way to end a process can be seen coming.
        if save is not None and monotonic() - saved_at[0] > _BETWEEN:
            storage.save(save, setup, new, name)
            saved_at[0] = monotonic()
        if on_progress is not None:
            on_progress(new.done)

    try:
        batch.advance(setup, state, note)
    finally:
        # Also on Ctrl-C: the last whole block is kept.
        if save is not None:
            storage.save(save, setup, last[0], name)
    return summed_up(setup, last[0])


def summed_up(setup: Setup, state: State) -> Runs:
    """Runs as they are read, from the arrays of a state.

    The state may be one before the end; the twins are left out.
    """
    count = len(setup.temperatures)
    drawn = [samples.draw(seed) for seed in setup.seeds]
    made = (_one(setup, state, i, drawn[i // count]) for i in range(len(drawn) * count))
    return Runs(setup, state.done, tuple(made))


def _one(setup: Setup, state: State, i: int, drawn: samples.Draw) -> Run:
    stopped = int(state.stopped[i])
    # The step that diverged is not kept.
    steps = stopped - 1 if stopped else state.done
    checks = -(-state.done // batch.BLOCK)
    # The last check is at the end, which need not be the end of a whole block.
    at = [min((k + 1) * batch.BLOCK, setup.steps) for k in range(checks)]
    early = state.checkpoint[:, i]
    return Run(
        seed=setup.seeds[i // len(setup.temperatures)],
        temperature=setup.temperatures[i % len(setup.temperatures)],
        rate=float(setup.rates[i]),
        samples=drawn.samples.astype(setup.dtype),
        initial=(drawn.W1.astype(setup.dtype), drawn.W2.astype(setup.dtype)),
        W1=state.weights[0, i],
        W2=state.weights[1, i].T,
        weights_at_500=None if np.isnan(early).any() or 0 < stopped <= batch.CHECKPOINT else (early[0], early[1].T),
        losses=state.losses[:steps, i],
        hits=state.hits[:steps, i],
        growth=tuple(zip(at, map(float, state.growth[:checks, i]), strict=True)),
        stopped=stopped or None,
    )
