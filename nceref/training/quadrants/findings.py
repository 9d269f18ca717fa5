"""Findings of the replayed runs on the published statements: rules behind the summary, and evidence for the ledger."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nceref.training.quadrants import replay
from nceref.training.quadrants.batch import PUBLISHED
from nceref.training.quadrants.replay import Run
from nceref.training.quadrants.samples import SIGNS, encoded
from nceref.training.quadrants.statistics import Statistics, of_features

Array = npt.NDArray[Any]

NEAR = 0.25
"""The distance from a corner of the square, along each axis, up to which a feature counts as in it."""
UNIFORM_LAW = float(np.log(np.i0(4.0))) - 4
"""The uniformity (t = 2) of the uniform law on the circle: log(exp(-4) I0(4)), about -1.57503."""
_SEEDS = tuple(range(32))
_LOWEST = PUBLISHED[-1]
"""The lowest temperature: for most seeds rounding decides where its run ends, so statements count over all of them."""
_COMPARED = PUBLISHED[:-1]
_AT = {temperature: column for column, temperature in enumerate(_COMPARED)}
"""The column of each temperature: of two equal ones the last."""
_UNBALANCED, _CLEARLY, _NEARLY_ALL = 10, 0.1, 28
"""Features that opposite corners may differ by; a clear difference of shares of neighbors; nearly all of the seeds."""
RISES = {False: (0.088, 0.012), True: (0.008, 0.023)}
"""The quoted rise of the cosine within classes from 0.99 to 0.01, mean of 32 seeds and half of its 95 % interval, with
the published rate, and with rate over temperature held at 0.006.
"""
MOST = 31
"""The quoted number of seeds, of 32, with the best run at the stated temperatures."""
BEFORE, AFTER = 0.98, 0.98
"""Quoted shares with a nearest neighbor by cosine of their class, before training and after it at 0.05, 32 seeds."""
_HALF_INTERVAL = 2.0395
"""Half of the 95 % interval in standard errors: Student's t with 31 degrees of freedom."""


class Corners(NamedTuple):
    """The counts of features in each corner, in the order of `SIGNS`, and in none."""

    counts: tuple[int, ...]
    elsewhere: int

    @property
    def hold_nearly_all(self) -> bool:
        """Whether at least nine in ten features are in corners."""
        return self.elsewhere * 10 <= sum(self.counts) + self.elsewhere

    @property
    def are_opposite(self) -> bool:
        """Whether every corner holds nearly as many features as the opposite one."""
        upper_right, upper_left, lower_left, lower_right = self.counts
        return max(abs(upper_right - lower_left), abs(upper_left - lower_right)) <= _UNBALANCED


def corners(features: Array) -> Corners:
    """Count the features in the corners of the square [-1, 1]^2."""
    near = np.abs(features[:, None] - SIGNS).max(axis=2) <= NEAR
    counts = tuple(map(int, near.sum(axis=0)))
    return Corners(counts, len(features) - sum(counts))


def untrained(run: Run) -> Statistics:
    """The numbers about the features before the first step."""
    return of_features(encoded(run.samples, *run.initial))


def merged(run: Run) -> bool:
    """Whether training lost classes: the nearest neighbor shares the class clearly less often than before training."""
    return run.statistics.neighbor_accuracy < untrained(run).neighbor_accuracy - _CLEARLY


def is_reproducible(run: Run) -> bool:
    """Whether the run went to its end, and rounding does not decide how it ended."""
    return run.stopped is None and run.comparable_until >= len(run.losses)


def by_temperature(runs: tuple[Run, ...]) -> list[Run]:
    """Runs from the highest temperature to the lowest; of equal ones the last, as in the comparison of the source."""
    last = {run.temperature: run for run in runs}
    return [last[t] for t in sorted(last, reverse=True)]


def spread_more_evenly() -> bool:
    """Whether both runs of nearly every seed at 0.05 end more even than they start, on the circle and in the square.

    At 0.001 at most a quarter may do so.
    """
    counts = {temperature: _more_even_than_untrained(temperature) for temperature in (0.05, _LOWEST)}
    return bool((counts[0.05] >= _NEARLY_ALL).all() and (counts[_LOWEST] <= len(_SEEDS) / 4).all())


def _more_even_than_untrained(temperature: float) -> Array:
    """The counts of seeds, (runs at this temperature, 2), more even on the circle and in the square."""
    more = [
        [(after.uniformity < before.uniformity, after.square_distance < before.square_distance) for after in each]
        for each, before in (
            ([run.statistics for run in runs if run.temperature == temperature], untrained(runs[0]))
            for runs in map(_several(False).of, _SEEDS)
        )
    ]
    counts: Array = np.sum(more, axis=0)
    return counts


def in_opposite_corners() -> bool:
    """Whether at 0.001, for nearly all seeds, nearly all features are in corners, as many in each as in the opposite.

    Which corners they are depends on rounding, and so on the machine.
    """
    ends = [corners(run.features) for run in _several(False).runs if run.temperature == _LOWEST]
    return sum(each.hold_nearly_all and each.are_opposite for each in ends) >= _NEARLY_ALL


def rate_over_temperature_contrasts() -> bool:
    """Whether the rate over the temperature is what tightens the classes from 0.99 to 0.01, over 32 seeds.

    The cosine within classes rises by many standard errors; with that ratio held at 0.006, by less than two of them and
    by less than a fifth, and at 0.05 the classes are looser than at 0.99. Both rises are those quoted, to a quarter of
    the interval: at 0.01 rounding decides some of the runs, and so the machine does.
    """
    rises, quoted = np.array([rise("cosine_within", confounder) for confounder in RISES]), np.array([*RISES.values()])
    (gained, error), (left, doubt) = rises
    as_quoted = np.all(np.abs(rises * [1, _HALF_INTERVAL] - quoted) <= quoted[:, 1:] / 4)
    # Two bounds on `left`: the standard error alone lets a noisy rise pass, the fifth alone a small but certain one.
    held = _all("cosine_within", True).mean(axis=0)
    cleared = gained > 5 * error and abs(left) < min(2 * doubt, gained / 5)
    return bool(as_quoted and cleared and held[_AT[0.05]] < held[_AT[0.99]])


def rise(name: str, confounder: bool) -> tuple[float, float]:
    """The growth of a number from 0.99 to 0.01: its mean over 32 seeds, and the standard error.

    The name is that of an attribute of `Statistics`; with `confounder`, rate over temperature is held at 0.006.
    """
    values = _all(name, confounder)
    each = values[:, _AT[0.01]] - values[:, _AT[0.99]]
    return float(each.mean()), float(each.std(ddof=1) / len(each) ** 0.5)


def moderate_only_in_the_square() -> bool:
    """A run at 0.05 is best in the square for 31 of 32 seeds; on the circle, one at 0.5 or 0.99 is, for as many.

    In the mean, with the rate over the temperature held at 0.006, distances in the square differ by less than a third.
    """
    square, circle, held = (_all(*which) for which in _EVENNESS)
    best = [np.take(_COMPARED, distances.argmin(axis=1)) for distances in (square, circle)]
    counts = np.sum(best[0] == 0.05), np.sum(best[1] > 0.05)
    spread, left = (np.ptp(values.mean(axis=0)) for values in (square, held))
    return counts == (MOST, MOST) and bool(left < spread / 3)


def neighbors_are_as_often_right_untrained() -> bool:
    """Whether training at 0.05 does not raise the share of nearest neighbors of the same class, over 32 seeds.

    Both means are those quoted, by two digits.
    """
    before = np.mean([untrained(_several(False).of(seed)[0]).neighbor_accuracy for seed in _SEEDS])
    after = _all("neighbor_accuracy", False)[:, np.equal(_COMPARED, 0.05)].mean()
    return (round(float(before), 2), round(float(after), 2)) == (BEFORE, AFTER) and bool(before > after - 0.01)


_EVENNESS = ("square_distance", False), ("uniformity", False), ("square_distance", True)


@cache
def _several(confounder: bool) -> replay.Runs:
    """The published runs; without the last one, at 0.001, where the rate over the temperature is held fixed."""
    return replay.run(_SEEDS, _COMPARED if confounder else PUBLISHED, confounder=confounder)


def _all(name: str, confounder: bool) -> Array:
    """One number of every seed and of every run above 0.001, (seeds, runs)."""
    runs = _several(confounder)
    return np.array([[getattr(run.statistics, name) for run in runs.of(seed)[: len(_COMPARED)]] for seed in _SEEDS])
