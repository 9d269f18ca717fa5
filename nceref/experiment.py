"""What an experiment is: its settings, what was published, and statements that the results decide by one rule.

A published result that needs data and machines of another size has an analogue here: the same losses on small data.
Whether a published statement shows up is computed. A contrast is a weighted sum of one measure over settings, taken
seed by seed; it stands if its mean over the seeds is above its standard deviation, and is reversed if it is below minus
that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from nceref.errors import InputError
from nceref.spec import Table

SHOWN, PARTLY, UNSEEN, REVERSED = "shows up", "shows up in part", "does not show up", "reversed"
UNDECIDED = "one seed: no spread, no verdict"
RULE = (
    "Rule: a contrast is taken seed by seed; it stands if its mean exceeds its standard deviation over the seeds, and "
    "is reversed if minus its mean does. A statement shows up if all its contrasts stand, in part if some do, and is "
    "reversed if all are. A statement of equality shows up if no contrast stands or is reversed. By chance alone a "
    "contrast stands in about one of nine cases with three seeds, in one of twenty-two with five. Sizes and rates were "
    "chosen on seeds 0 and 1, so other seeds are the better witnesses: see the README."
)


@dataclass(frozen=True)
class Measure:
    """A number for each setting and seed; `digits` are printed, or it has no column and serves statements only."""

    name: str
    meaning: str
    digits: int = 3
    printed: bool = True


@dataclass(frozen=True)
class Contrast:
    """A sum of one measure over settings, each with its weight: differences are weights 1 and -1."""

    measure: str
    weights: Mapping[str, float]

    def values(self, results: "Results") -> tuple[float, ...]:
        """The contrast of each seed."""
        rows = [[w * x for x in results.values[name][self.measure]] for name, w in self.weights.items()]
        return tuple(map(sum, zip(*rows, strict=True)))


def difference(measure: str, higher: str, lower: str) -> Contrast:
    """One setting minus another."""
    return Contrast(measure, {higher: 1, lower: -1})


@dataclass(frozen=True)
class Statement:
    """What was published, or is said of it, as contrasts that are positive if it is right.

    Attributes
    ----------
    text : str
        A sentence.
    source : str
        Where it stands, with published numbers if it has any.
    contrasts : tuple of Contrast
    equal : bool
        The sentence says that the contrasts vanish.
    """

    text: str
    source: str
    contrasts: tuple[Contrast, ...]
    equal: bool = False


@dataclass(frozen=True)
class Finding:
    """A statement and what the results say: mean and spread of each contrast, and the verdict."""

    statement: Statement
    numbers: tuple[tuple[float, float], ...]
    verdict: str


@dataclass(frozen=True, eq=False)
class Results:
    """What an experiment measured.

    Attributes
    ----------
    seeds : tuple of int
    values : mapping
        By setting and measure, a number for each seed.
    classes : tuple of int
        Training samples of each class; empty where all have about the same.
    curves : mapping
        By setting and seed, a number for each class.
    """

    seeds: tuple[int, ...]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    classes: tuple[int, ...] = ()
    curves: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One setting with one seed, for those who show progress."""

    id: str


Noted = Callable[[Job], Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment, named like its file in `nceref.experiments`.

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
        `run(seeds, noted)` returns the `Results`; the same for the same seeds on the same platform.
    draw : callable
        `draw(canvas, results)` puts the figure on an empty matplotlib canvas.
    caption : str
    seeds : int
        How many it takes by default.
    height : float
        Of the figure, inches.
    claims : tuple of str
        The claims that it concerns, as in ``WL-3``.
    """

    name: str
    title: str
    about: tuple[str, ...]
    published: Table
    measures: tuple[Measure, ...]
    settings: tuple[str, ...]
    statements: tuple[Statement, ...]
    run: Callable[[Sequence[int], Noted], Results]
    draw: Callable[[Any, Results], None]
    caption: str
    seeds: int
    height: float
    claims: tuple[str, ...]


def judge(statement: Statement, results: Results) -> Finding:
    """Decide a statement by the rule that the module states.

    Parameters
    ----------
    statement : Statement
    results : Results
    """
    found = [contrast.values(results) for contrast in statement.contrasts]
    if len(results.seeds) < 2:
        return Finding(statement, tuple((x[0], float("nan")) for x in found), UNDECIDED)
    numbers = tuple((fmean(x), stdev(x)) for x in found)
    return Finding(statement, numbers, _verdict(numbers, statement.equal))


def _verdict(numbers: Sequence[tuple[float, float]], equal: bool) -> str:
    up = sum(mean > spread for mean, spread in numbers)
    down = sum(-mean > spread for mean, spread in numbers)
    if equal:
        return UNSEEN if up + down == len(numbers) else PARTLY if up + down else SHOWN
    if up == len(numbers):
        return SHOWN
    return REVERSED if down == len(numbers) else PARTLY if up else UNSEEN


def run(experiment: Experiment, seeds: int | None = None, noted: Noted = lambda job: job) -> Results:
    """Run an experiment, on one thread: its sums have the same order every time.

    Parameters
    ----------
    experiment : Experiment
    seeds : int, optional
        Take seeds 0 to seeds - 1; None: as many as it takes by default.
    noted : callable, optional
        Is told each job that is done.

    Raises
    ------
    InputError
        If there is no seed.
    """
    from threadpoolctl import threadpool_limits

    from nceref.settings import config

    count = experiment.seeds if seeds is None else seeds
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        msg = f"`seeds` must be an integer >= 1, got {seeds!r}; with 1 there is no spread and no verdict"
        raise InputError(msg)
    with config(threads=1), threadpool_limits(1, user_api="blas"):
        return experiment.run(range(count), noted)
