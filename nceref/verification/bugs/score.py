"""The score of the checker: every known bug, and every correct variant, through the door that users take.

A mutant is killed when the verdict is ``differs``, and named when the first diagnosis consists of exactly the
conventions that the catalogue says; a correct variant must come out as ``conforms``. What raises, or cannot be run on
some case, counts as missed.
"""

import inspect
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nceref.errors import InputError
from nceref.registry import choose
from nceref.verification.bugs.bug import Mutant, mutants, target, variants

DTYPES = ("float64", "float32")
GROUPS = ("tuning", "held-out", "pairs")
"""Known bugs: those the search was built with, those it was not, and two at once."""
CORRECT = "correct"
NAMED = 0.95
"""The share of the mutants that must be named right."""


@dataclass(frozen=True)
class Trial:
    """One mutant or correct variant in one format.

    Attributes
    ----------
    id, loss, dtype : str
        What was judged, against which reference, in which format.
    group : str
        ``tuning``, ``held-out``, ``pairs`` or ``correct``.
    expected : str
        The right diagnosis, ids joined by ``+``; empty for a correct variant.
    verdict : str
        As `nceref.verify` gave it, ``error`` where it raised.
    said : tuple of str
        Ids of the diagnoses, the first one first.
    reason : str
        The verdict in a sentence.
    right : bool
        Whether the first diagnosis is a right one; `among`: whether any of them is.
    errors : int
        Cases that could not be run.
    seconds : float
    """

    id: str
    loss: str
    dtype: str
    group: str
    expected: str
    verdict: str
    said: tuple[str, ...]
    reason: str
    right: bool
    among: bool
    errors: int
    seconds: float

    @property
    def killed(self) -> bool:
        """Whether it was called different, on cases that all could be run."""
        return self.verdict == "differs" and not self.errors

    @property
    def named(self) -> bool:
        """Whether it was killed, and the first diagnosis is right."""
        return self.killed and self.right

    @property
    def passes(self) -> bool:
        """Whether the checker said what it should."""
        return self.verdict == "conforms" if self.group == CORRECT else self.named


@dataclass(frozen=True)
class Tally:
    """How many of a group, in one format: all, killed, named first, named among the three."""

    total: int
    killed: int
    named: int
    among: int


@dataclass(frozen=True, eq=False)
class Score:
    """All trials of a measurement."""

    trials: tuple[Trial, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The formats, in the order of the trials."""
        return tuple(dict.fromkeys(trial.dtype for trial in self.trials))

    def of(self, dtype: str, *groups: str) -> tuple[Trial, ...]:
        """The trials of one format and some groups."""
        return tuple(trial for trial in self.trials if trial.dtype == dtype and trial.group in groups)

    def tally(self, dtype: str, *groups: str) -> Tally:
        """Counts of one format and some groups."""
        found = self.of(dtype, *groups)
        killed = [trial for trial in found if trial.killed]
        return Tally(len(found), len(killed), sum(t.right for t in killed), sum(t.among for t in killed))

    @property
    def missed(self) -> tuple[Trial, ...]:
        """Mutants that were not killed."""
        return tuple(trial for trial in self.trials if trial.group != CORRECT and not trial.killed)

    @property
    def false_alarms(self) -> tuple[Trial, ...]:
        """Correct variants that were not called so."""
        return tuple(trial for trial in self.trials if trial.group == CORRECT and not trial.passes)

    @property
    def met(self) -> bool:
        """Whether all are killed, no variant is blamed, and in each format at least 95 % are named right."""
        tallies = [self.tally(dtype, *GROUPS) for dtype in self.dtypes]
        return not self.missed and not self.false_alarms and all(t.named >= NAMED * t.total for t in tallies)


Job = tuple[str, str, str]
"""Id, loss and format of a trial."""


def group(mutant: Mutant) -> str:
    """Which part of the score a mutant or variant belongs to."""
    if not mutant.named:
        return CORRECT
    return "pairs" if len(expected(mutant)) > 1 else "held-out" if mutant.held_out else "tuning"


def expected(mutant: Mutant) -> tuple[str, ...]:
    """The conventions that make up a right diagnosis, sorted."""
    return tuple(sorted(part for name in mutant.named for part in name.split("+")))


def programs() -> Mapping[str, Mutant]:
    """Mutants and correct variants by id."""
    return {**mutants(), **variants()}


def chosen(ids: Sequence[str]) -> list[Mutant]:
    """The mutants and variants with these ids, or all if none is given."""
    return choose("mutant", ids, programs(), "nceref mutants")


def jobs(ids: Sequence[str] = (), dtypes: Sequence[str] = DTYPES) -> tuple[Job, ...]:
    """What there is to do: each program, for each of its losses, in each format in which it is wrong."""
    wanted = [(mutant, dtype) for mutant in chosen(ids) for dtype in dtypes if dtype in mutant.dtypes]
    if not wanted:
        msg = f"nothing to score: in {' and '.join(dtypes)} none of {', '.join(ids)} is wrong"
        raise InputError(msg)
    return tuple((mutant.id, loss, dtype) for mutant, dtype in wanted for loss in mutant.losses)


def measure(todo: Iterable[Job], suite: str = "quick", processes: int = 0) -> Iterator[Trial]:
    """Run the trials.

    Parameters
    ----------
    todo : iterable of Job
        See `jobs`.
    suite : {"quick", "standard", "full"}
        The corpus.
    processes : int
        How many work side by side; 0: as many as there are processors, 1: this one.

    Yields
    ------
    Trial
        In the order of `todo`.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from nceref.engine.settings import thread_count

    listed = list(todo)
    workers = min(processes or thread_count(), len(listed))
    if workers == 1:
        yield from (trial(job, suite) for job in listed)
        return
    # A fresh interpreter for each worker: a fork of a process with threads, such as a progress bar's, may hang.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(trial, listed, [suite] * len(listed), chunksize=4)


def trial(job: Job, suite: str) -> Trial:
    """Verify one program, as a caller would who intends what its author did."""
    name, loss, dtype = job
    mutant, start = programs()[name], time.perf_counter()
    right = {expected(mutant), *(tuple(sorted(other.split("+"))) for other in mutant.also)}
    try:
        verdict, said, reason, errors = _asked(mutant, loss, dtype, suite)
    except Exception as error:  # whatever it is, the mutant is missed, and the page says why
        verdict, said, reason, errors = "error", (), f"{type(error).__name__}: {error}", 1
    fits = [tuple(sorted(one.split("+"))) in right for one in said]
    return Trial(
        name, loss, dtype, group(mutant), "+".join(expected(mutant)), verdict, said, reason, bool(fits) and fits[0],
        any(fits), errors, time.perf_counter() - start,
    )  # fmt: skip


def _asked(mutant: Mutant, loss: str, dtype: str, suite: str) -> tuple[str, tuple[str, ...], str, int]:
    """Verdict, diagnoses, reason and number of cases that could not be run."""
    from nceref.verification.verifier import verify

    report: Any = verify(
        target(mutant, loss), loss=loss, framework="numpy", dtype=dtype, suite=suite, **intended(mutant, loss)
    )
    errors = sum(result.status == "error" for result in report.results)
    return report.verdict, tuple(diagnosis.id for diagnosis in report.diagnosis), report.reason, errors


def intended(mutant: Mutant, loss: str) -> dict[str, Any]:
    """The settings of a mutant, and ``...`` for each optional array that its program takes."""
    from nceref.losses import get_loss
    from nceref.spec import Array, Labels

    declared = get_loss(loss).declaration
    taken = inspect.signature(mutant.program).parameters
    optional = [p.name for p in declared.parameters if isinstance(p, Array | Labels) and not p.required]
    return {**{name: ... for name in optional if name in taken}, **mutant.settings}
