"""Experiments: their settings, what was published, and statements that the results decide by one rule.

A published result that needs data and machines of another size has an analogue here: the same losses on small data.
Whether a statement shows up is computed. A contrast is a weighted sum of one measure over settings, taken seed by seed;
it stands if the 95 % interval of its mean lies above 0, and is reversed if it lies below.
"""

import math
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, stdev
from typing import Any

from nceref.engine.arguments import integer
from nceref.engine.kernels import kernels
from nceref.engine.processes import in_processes
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.theory.table import Table

FIRST_SEED = 1000
"""The first seed of a run: those below it were looked at while sizes and rates were chosen."""
SHOWN, PARTLY, UNSEEN, REVERSED = "shows up", "shows up in part", "does not show up", "reversed"
UNDECIDED = "one seed: no spread, no verdict"
LEVEL = 0.95
RULE = (
    "Rule: a contrast is taken seed by seed, and ± is half of the 95 % interval of a mean (Student's t), as in the "
    "tables. It stands if the interval lies above 0, and is reversed if it lies below. A "
    "statement shows up if all its contrasts stand, in part if some do, and is reversed if all are. A statement of "
    "equality names a margin, and shows up if all intervals lie within it. Were there no differences at all, about "
    "{chance:.1g} of the {count} contrasts without a margin would stand or be reversed."
)
"""The rule in words, with places for the number of contrasts without a margin and for how many of them chance decides.
"""


@dataclass(frozen=True)
class Measure:
    """A number for each setting and seed; `table` is the title of the table that it is a column of, if of any."""

    name: str
    meaning: str
    digits: int = 3
    table: str = "Measured"


@dataclass(frozen=True)
class Contrast:
    """A sum of one measure over settings, each with its weight: differences are weights 1 and -1."""

    measure: str
    weights: Mapping[str, float]

    def values(self, results: "Results") -> tuple[float, ...]:
        """The contrast of each seed."""
        rows = [[w * x for x in results.values[name][self.measure]] for name, w in self.weights.items()]
        return tuple(map(sum, zip(*rows, strict=True)))

    def __str__(self) -> str:
        terms = [f"{'-' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g} '}{n}" for n, w in self.weights.items()]
        return f"{self.measure}: {' '.join(terms).removeprefix('+ ')}"


def difference(measure: str, higher: str, lower: str) -> Contrast:
    """The contrast of one setting minus another."""
    return Contrast(measure, {higher: 1, lower: -1})


@dataclass(frozen=True)
class Statement:
    """A statement that was published, or is made of what was, as contrasts that are positive if it is right.

    Attributes
    ----------
    text : str
        A sentence.
    source : str
        Where it stands, with published numbers if it has any.
    contrasts : tuple of Contrast
    margin : float, optional
        The sentence says that the contrasts vanish: up to this size.
    """

    text: str
    source: str
    contrasts: tuple[Contrast, ...]
    margin: float | None = None


@dataclass(frozen=True)
class Finding:
    """A statement and what the results say: mean of each contrast with half of its interval, and the verdict."""

    statement: Statement
    numbers: tuple[tuple[float, float], ...]
    verdict: str


@dataclass(frozen=True, eq=False)
class Results:
    """The measurements of an experiment.

    Attributes
    ----------
    seeds : tuple of int
    values : mapping
        By setting and measure, a number for each seed.
    classes : tuple of int
        Training samples of each class.
    curves : mapping
        By setting and seed, a number for each class.
    made_with : str
        The kernels that have trained; empty where that is not known.
    """

    seeds: tuple[int, ...]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    classes: tuple[int, ...] = ()
    curves: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    made_with: str = ""


@dataclass(frozen=True)
class Job:
    """One setting with one seed, for those who show progress."""

    id: str


OnProgress = Callable[[Job], Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment, named like its file in `nceref.experiments.studies`.

    Attributes
    ----------
    about : tuple of str
        What data, network and training are; the first sentence says what it is an analogue of.
    published : Table
        The numbers beside which it stands, with their source.
    measures : tuple of Measure
        Columns of its table.
    settings : tuple of str
        Rows of its table.
    statements : tuple of Statement
    run : callable
        `run(seed, on_progress)` returns the `Results` of one seed; the same for the same seed on the same platform.
    draw : callable
        `draw(canvas, results)` puts the figure on an empty matplotlib canvas.
    caption : str
    seeds : int
        How many it takes by default, from `FIRST_SEED` on.
    height : float
        Of the figure, inches.
    """

    name: str
    title: str
    about: tuple[str, ...]
    published: Table
    measures: tuple[Measure, ...]
    settings: tuple[str, ...]
    statements: tuple[Statement, ...]
    run: Callable[[int, OnProgress], Results]
    draw: Callable[[Any, Results], None]
    caption: str
    seeds: int
    height: float

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that it concerns, as in ``WL-3``: those that its sources name."""
        sources = [self.published.source, *(statement.source for statement in self.statements)]
        named = set(re.findall(r"\b[A-Z]{2,4}-\d+\b", " ".join(sources)))
        return tuple(sorted(named, key=lambda one: (one.partition("-")[0], int(one.partition("-")[2]))))


def judge(statement: Statement, results: Results) -> Finding:
    """Decide a statement by the rule that the module states.

    The results of a single seed get the verdict that nothing is decided.
    """
    contrasts = [contrast.values(results) for contrast in statement.contrasts]
    if len(results.seeds) < 2:
        return Finding(statement, tuple((x[0], float("nan")) for x in contrasts), UNDECIDED)
    numbers = tuple((fmean(x), half_interval(x)) for x in contrasts)
    return Finding(statement, numbers, _verdict(numbers, statement.margin))


def half_interval(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of two or more values, by Student's t."""
    from scipy.special import stdtrit

    count = len(values)
    return float(stdtrit(count - 1, (1 + LEVEL) / 2)) * stdev(values) / math.sqrt(count)


def _verdict(numbers: Sequence[tuple[float, float]], margin: float | None) -> str:
    if margin is not None:
        # The whole interval has to lie within: a mean near 0 with a wide interval shows nothing.
        within = sum(abs(mean) + half < margin for mean, half in numbers)
        return SHOWN if within == len(numbers) else PARTLY if within else UNSEEN
    up = sum(mean > half for mean, half in numbers)
    down = sum(-mean > half for mean, half in numbers)
    if up == len(numbers):
        return SHOWN
    return REVERSED if down == len(numbers) else PARTLY if up else UNSEEN


def run(
    experiment: Experiment, seeds: int | None = None, on_progress: OnProgress = lambda job: job, *,
    first: int = FIRST_SEED, processes: int = 1,
) -> Results:  # fmt: skip
    """Run an experiment, each seed on one thread: its sums have the same order every time.

    `seeds` is their number, by default that of the experiment; they begin with `first`. `on_progress` is called with
    each job that is done; with several processes once a seed is done. `processes` seeds are run at the same time. Each
    process imports the main module anew, so a script that runs several must have its work below ``if __name__ ==
    "__main__"``. Results are in the order of the seeds, the same for any number of processes. Raises `InputError` if
    there is no seed.
    """
    of_kind = {"an Experiment": isinstance(experiment, Experiment), "a function": callable(on_progress)}
    for (what, right), name in zip(of_kind.items(), ("experiment", "on_progress"), strict=True):
        if not right:
            msg = f"`{name}` must be {what}, got {shown(experiment if name == 'experiment' else on_progress)}"
            raise InputError(msg)
    count = integer("`seeds`", experiment.seeds if seeds is None else seeds, least=1)
    first = integer("`first`", first, least=0)
    processes = integer("`processes`", processes, least=1)
    chosen = range(first, first + count)
    if min(processes, count) == 1:
        return _joined([_one(experiment.run, on_progress, seed) for seed in chosen])
    parts = []
    run_one = partial(_one, experiment.run, _unreported)
    for results in in_processes(run_one, chosen, processes=min(processes, count), first=_ignore_interrupts):
        parts.append(results)
        for name in experiment.settings:
            on_progress(Job(f"{name}, seed {results.seeds[0]}"))
    return _joined(parts)


def _one(run: Callable[[int, OnProgress], Results], on_progress: OnProgress, seed: int) -> Results:
    from threadpoolctl import threadpool_limits

    from nceref.engine.settings import config

    with config(threads=1), threadpool_limits(1, user_api="blas"):
        return run(seed, on_progress)


def _unreported(job: Job) -> None:
    """Report nothing: jobs of another process are reported when all of a seed is done."""


def _ignore_interrupts() -> None:
    """Leave Ctrl-C, which reaches every process of the terminal, to the parent, who ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _joined(parts: Sequence[Results]) -> Results:
    """The results of several seeds as those of one run."""
    first = parts[0]
    values = {
        name: {m: tuple(x for part in parts for x in part.values[name][m]) for m in rows}
        for name, rows in first.values.items()
    }
    curves = {name: tuple(x for part in parts for x in part.curves[name]) for name in first.curves}
    return Results(tuple(seed for part in parts for seed in part.seeds), values, first.classes, curves, kernels())
