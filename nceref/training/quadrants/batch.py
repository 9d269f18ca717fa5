"""The published training runs: all temperatures and seeds as one batch, each beside a twin that starts an ulp away.

The runs are independent once their indices are known. The twins cost little and measure how far rounding is blown up:
where a change of one unit in the last place grows to the size of the weights, no two programs end alike.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import integer
from nceref.errors import InputError
from nceref.training.quadrants import fused, indices, plain, samples

Array = npt.NDArray[Any]

PUBLISHED = (0.05, 0.99, 0.5, 0.05, 0.01, 0.001)
"""Temperatures of the six runs, in their order."""
STEPS, RATE = 10_000, 3e-4
PER_TEMPERATURE = 0.006
"""Rate over temperature of the published runs at 0.05, which `confounder` holds fixed."""
CHECKPOINT = 500
"""The step after which `Run.weights_at_500` is kept: there the tests compare runs with the framework's."""
BLOCK = 250
"""Steps from one check, and one call of `on_progress`, to the next; the checkpoint is the end of a block."""
_MOST = 10_000_000
"""The most steps: the indices of more do not fit into memory."""
_SHORTEST = 2**0.5 * plain.CLAMP
"""The |f0| |f| above which no length is clamped, since features are at most 2**0.5 long."""


@dataclass(frozen=True)
class Setup:
    """The settings of the runs; checked when they are made.

    Attributes
    ----------
    seeds : tuple of int
        Each draws samples, weights and indices of its own.
    temperatures : tuple of float
        > 0, in the order in which the script would run them: the indices go on from run to run.
    steps : int
        >= 1, of each run.
    dtype : {"float32", "float64"}
    confounder : bool
        Whether the rate over the temperature is held at 0.006, instead of the rate at 3e-4.
    """

    seeds: tuple[int, ...] = (0,)
    temperatures: tuple[float, ...] = PUBLISHED
    steps: int = STEPS
    dtype: str = "float32"
    confounder: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(map(samples.checked_seed, self.seeds)))
        for t in self.temperatures:
            # Below, the temperature or its inverse leaves the range of float32.
            if not 1e-37 <= t <= 1e37:
                msg = f"`temperatures` must be > 0, from 1e-37 to 1e37, got {t!r}"
                raise InputError(msg)
        integer("`steps`", self.steps, 1, _MOST)
        if self.dtype not in ("float32", "float64"):
            msg = f"`dtype` must be 'float32' or 'float64', got {self.dtype!r}"
            raise InputError(msg)
        if len(set(self.seeds)) < len(self.seeds):
            msg = f"`seeds` must be different ones, got {self.seeds!r}"
            raise InputError(msg)
        if not self.seeds or not self.temperatures:
            msg = f"`seeds` and `temperatures` must not be empty, got {self.seeds!r} and {self.temperatures!r}"
            raise InputError(msg)

    @property
    def rates(self) -> Array:
        """The learning rates of the runs, seed by seed."""
        rates = [PER_TEMPERATURE * t if self.confounder else RATE for t in self.temperatures]
        return np.tile(rates, len(self.seeds))


@dataclass(frozen=True, eq=False)
class State:
    """The state of the R runs; nothing in it is changed later, but for rows of steps that are not done yet.

    Attributes
    ----------
    done : int
        Steps.
    weights : (2, 2R, 10, 2) array
        The first layer and the transposed second one; the twins come after the runs.
    checkpoint : (2, R, 10, 2) array
        After step 500, NaN before it.
    losses, hits : (steps, R) arrays
        The loss of each step, and whether the positive had the largest cosine; NaN and False after a divergence.
    growth : (checks, R) array
        Largest difference between a run and its twin after every 250 steps and at the end.
    stopped : (2R,) array
        The step at which a run diverged, whose result is not kept; 0: none.
    """

    done: int
    weights: Array
    checkpoint: Array
    losses: Array
    hits: Array
    growth: Array
    stopped: Array


OnProgress = Callable[[State], Any]
"""A function that is called with the state after every block of steps."""


def begin(setup: Setup) -> State:
    """The state before the first step."""
    drawn = [samples.draw(seed) for seed in setup.seeds for _ in setup.temperatures]
    own = np.stack([[d.W1 for d in drawn], [d.W2.T for d in drawn]]).astype(setup.dtype)
    runs, checks = len(drawn), -(-setup.steps // BLOCK)
    return State(
        done=0,
        weights=np.concatenate([own, _nudged(own)], axis=1),
        checkpoint=np.full_like(own, np.nan),
        losses=np.full((setup.steps, runs), np.nan, setup.dtype),
        hits=np.zeros((setup.steps, runs), np.bool_),
        growth=np.full((checks, runs), np.nan),
        stopped=np.zeros(2 * runs, np.int64),
    )


def advance(setup: Setup, state: State, on_progress: OnProgress | None = None) -> State:
    """Train to the end, block by block.

    The state is that of `begin`, or a saved one; its rows of losses and hits are filled in. `on_progress` is called
    with the state after each block. The last state has fewer steps if every run and every twin has diverged.
    """
    points = np.concatenate([samples.draw(seed).samples for seed in setup.seeds]).astype(setup.dtype)
    size, count = samples.LABELS.size, len(setup.temperatures)
    drawn = [indices.draw(seed, count, setup.steps) + size * i for i, seed in enumerate(setup.seeds)]
    # Step by step, the runs side by side; each seed has its own points, one set after the other.
    rows = np.swapaxes(np.concatenate(drawn), 0, 1)
    while state.done < setup.steps and not state.stopped.all():
        state = _block(setup, state, points[rows[state.done : state.done + BLOCK]])
        if on_progress is not None:
            on_progress(state)
    return state


def _block(setup: Setup, state: State, x: Array) -> State:
    """The next steps of the runs that have not diverged; `x` is (steps, R, 5, 2)."""
    # Entries runs to 2 runs are the twins, which see the samples of their runs: hence alive % runs.
    runs, done = x.shape[1], state.done + len(x)
    alive = np.flatnonzero(state.stopped == 0)
    temperature, rate = np.tile(setup.temperatures, 2 * len(setup.seeds))[alive], np.tile(setup.rates, 2)[alive]
    # Not by indexing, which may return another memory layout.
    weights, both = np.take(state.weights, alive, axis=1), np.take(x, alive % runs, axis=1)
    logits, lengths = fused.advance(weights, both, temperature, rate)
    stopped = state.stopped.copy()
    parameters = weights[0], np.swapaxes(weights[1], 1, 2)
    if not (plain.in_range(parameters).all() and np.isfinite(logits).all() and (lengths >= _SHORTEST).all()):
        # The block once more from its start, with copies of the weights: the fast steps changed theirs in place.
        weights, logits, at = _carefully(np.take(state.weights, alive, axis=1), both, temperature, rate)
        stopped[alive] = np.where(at > 0, state.done + at, 0)
    merged = state.weights.copy()
    merged[:, alive] = weights
    own = alive < runs
    state.losses[state.done : done, alive[own]] = losses_of(logits[:, own])
    state.hits[state.done : done, alive[own]] = _hits(logits[:, own])
    # In float64: a difference of float32 numbers may overflow, and would be infinite without a divergence.
    apart = np.abs(merged[:, :runs].astype(np.float64) - merged[:, runs:]).max(axis=(0, 2, 3))
    state.growth[(done - 1) // BLOCK] = np.where(stopped.reshape(2, runs).any(axis=0), np.inf, apart)
    checkpoint = merged[:, :runs] if done == CHECKPOINT else state.checkpoint
    return replace(state, done=done, weights=merged, checkpoint=checkpoint, stopped=stopped)


def _carefully(weights: Array, x: Array, temperature: Array, rate: Array) -> tuple[Array, Array, Array]:
    """The same steps one by one: a run stops before the step that takes its weights or logits out of their range."""
    parameters: tuple[Array, ...] = (weights[0], np.swapaxes(weights[1], 1, 2))
    logits = np.full((*x.shape[:2], fused.CANDIDATES), np.nan, x.dtype)
    at = np.zeros(x.shape[1], np.int64)
    with np.errstate(all="ignore"):
        for number, batch in enumerate(x, 1):
            moved, step_logits = plain.step(parameters, batch, temperature, rate)
            sound = np.isfinite(step_logits).all(axis=1)
            sound &= plain.in_range(moved)
            at[~sound & (at == 0)] = number
            # A stopped run goes on from weights that stay, so that all arrays keep their shapes.
            going = at == 0
            logits[number - 1, going] = step_logits[going]
            parameters = tuple(
                np.where(going[:, None, None], new, old) for new, old in zip(moved, parameters, strict=True)
            )
    return np.stack([parameters[0], np.swapaxes(parameters[1], 1, 2)]), logits, at


def losses_of(logits: Array) -> Array:
    """Minus the log of the probability of the positive, which comes first, in nats."""
    top = logits.max(axis=-1)
    losses: Array = top - logits[..., 0] + np.log(np.exp(logits - top[..., None]).sum(axis=-1))
    return losses


def _hits(logits: Array) -> Array:
    return np.asarray(logits.argmax(axis=-1) == 0)


def _nudged(weights: Array) -> Array:
    """Every weight one unit in the last place away, up and down in turns."""
    # The same pattern in every run, wherever it stands in the batch.
    layer, _, row, column = np.indices(weights.shape)
    up = (layer + row + column) % 2 == 0
    return np.asarray(np.nextafter(weights, np.where(up, np.inf, -np.inf).astype(weights.dtype)))
