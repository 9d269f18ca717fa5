"""The score of the verifier: every known bug, and every correct program, through the door that users take.

A bug is killed when the verdict is ``differs``, or when all that is wrong is a limit that the report has: numbers that
are not finite below the temperatures in use. It is named when the first diagnosis consists of exactly the conventions
that the catalogue names; a correct program must come out as ``conforms``. What raises, or cannot be run on
some case, counts as missed.

The second catalogue was written by authors who have not read the search, and its bugs often have no name. There a first
diagnosis counts as useful if it is named right, or if it predicts what the program does on cases of another seed. What
says only where the program is wrong, and is right about that, is counted apart.

So it is with the programs that bring their own gradients, and where the conventions that are the right diagnosis are
left out of the search.
"""

import inspect
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any

from mutants.bug import (
    DTYPES,
    Program,
    bugs,
    correct_programs,
    distributed_programs,
    gradient_programs,
    independent_programs,
    target,
)
from nceref.cases.records import Diagnosis
from nceref.cli.mutants_page import chosen
from nceref.diagnosis import options as search
from nceref.errors import InputError
from nceref.verification.report import Report

GROUPS = ("tuning", "held-out", "pairs", "distributed")
"""Known bugs: those the search was built with, those it was not, and two at once; and bugs of several ranks."""
CORRECT = "correct"
INDEPENDENT = "independent"
"""Bugs of the second catalogue."""
GRADIENTS, TRIPLES = "gradients", "triples"
"""Programs with gradients of their own: a wrong gradient under a right value, and three changes at once."""
LEFT_OUT = "left-out"
"""Known bugs, each searched without the conventions that are its right diagnosis."""
CATALOGUES: Mapping[str, Callable[[], Mapping[str, Program]]] = MappingProxyType(
    {
        "known": lambda: {**bugs(), **correct_programs()},
        "independent": independent_programs,
        "gradients": gradient_programs,
        "distributed": lambda: _distributed(),
    }
)
NAMED = 0.95
"""The share of the bugs that must be named right."""
KILLED, UNCONFIRMED = 0.99, 0.01
"""Limits where a name is not all that counts: shares killed, and at most explained by what is not confirmed."""
USEFUL: Mapping[str, float] = MappingProxyType({INDEPENDENT: 0.75, GRADIENTS: 0.9, TRIPLES: 0.8, LEFT_OUT: 0.0})
"""The groups that are scored so, and the share of each that must be explained."""
_NO_EXPLANATION = ((), ("unexplained",))
_WHERE = frozenset({"value-not-finite", "gradient-not-finite", "value-right-gradient-wrong"})
"""Diagnoses that say where a program is wrong, and not why."""


@dataclass(frozen=True)
class ScoredProgram:
    """The verifier's answer for one program in one format.

    Attributes
    ----------
    id, loss, dtype : str
        The program, the loss of the reference, and the format.
    group : str
        One of `GROUPS` or of `USEFUL`, or ``correct``.
    expected : str
        The right diagnosis, ids joined by ``+``; empty for a correct program.
    verdict : str
        Verdict of `nceref.verify`, ``error`` where it raised.
    diagnoses : tuple of str
        Ids, the first one first.
    reason : str
        The verdict in a sentence.
    right : bool
        Whether the first diagnosis is a right one; `among`: whether any of them is.
    errors : int
        Cases that could not be run.
    seconds : float
        CPU seconds of the verification, in this process.
    explaining : float
        Those of the explanation, after the cases have run.
    limited : bool
        Whether all that is wrong is a limit; `diagnoses` are its explanation.
    confirmed : bool
        In a group of `USEFUL`, whether the first diagnosis predicts what the program does on cases of another seed.
    calls : int
        Calls of the program that the search for an explanation took, beyond the cases.
    """

    id: str
    loss: str
    dtype: str
    group: str
    expected: str
    verdict: str
    diagnoses: tuple[str, ...]
    reason: str
    right: bool
    among: bool
    errors: int
    seconds: float
    explaining: float
    limited: bool = False
    confirmed: bool = False
    calls: int = 0

    @property
    def killed(self) -> bool:
        """Whether it was called different, or has a limit, on cases that all could be run."""
        return (self.verdict == "differs" or self.limited) and not self.errors

    @property
    def named(self) -> bool:
        """Whether it was killed, and the first diagnosis is right."""
        return self.killed and self.right

    @property
    def explanation(self) -> str:
        """The kind of the first diagnosis of a killed bug, one of `EXPLANATIONS`."""
        where = self.confirmed and self.diagnoses[0] in _WHERE
        kinds = {
            "named": self.right,
            "located": where,
            "confirmed": self.confirmed,
        }
        nothing = "none" if self.diagnoses[:1] in _NO_EXPLANATION else "unconfirmed"
        return next((kind for kind, holds in kinds.items() if holds), nothing)

    @property
    def passes(self) -> bool:
        """Whether the verdict and the diagnosis are what they should be."""
        return self.verdict == "conforms" if self.group == CORRECT else self.named


@dataclass(frozen=True)
class Tally:
    """Counts of a group in one format: all, killed, named first, named among the three."""

    total: int
    killed: int
    named: int
    among: int


@dataclass(frozen=True, eq=False)
class Score:
    """All programs of a measurement."""

    results: tuple[ScoredProgram, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The formats, in the order of the results."""
        return tuple(dict.fromkeys(result.dtype for result in self.results))

    def of(self, dtype: str, *groups: str) -> tuple[ScoredProgram, ...]:
        """The results of one format and some groups."""
        return tuple(result for result in self.results if result.dtype == dtype and result.group in groups)

    def tally(self, dtype: str, *groups: str) -> Tally:
        """Counts of one format and some groups."""
        results = self.of(dtype, *groups)
        killed = [result for result in results if result.killed]
        return Tally(len(results), len(killed), sum(r.right for r in killed), sum(r.among for r in killed))

    @property
    def missed(self) -> tuple[ScoredProgram, ...]:
        """Bugs that were not killed."""
        return tuple(result for result in self.results if result.group != CORRECT and not result.killed)

    @property
    def false_alarms(self) -> tuple[ScoredProgram, ...]:
        """Correct programs that were not called so."""
        return tuple(result for result in self.results if result.group == CORRECT and not result.passes)

    def explained(self, dtype: str, group: str = INDEPENDENT) -> Mapping[str, int]:
        """Number of killed bugs of a group for each `ScoredProgram.explanation`."""
        kinds = [result.explanation for result in self.of(dtype, group) if result.killed]
        return {kind: kinds.count(kind) for kind in EXPLANATIONS}

    @property
    def met(self) -> bool:
        """Whether all are killed, no correct program is blamed, and in each format at least 95 % are named right.

        In the groups of `USEFUL` enough must be killed and explained, and next to none by what is not confirmed.
        """
        if self.useful:
            met = (self._useful_met(dtype, group) for dtype in self.dtypes for group in self.useful)
            return not self.false_alarms and all(met)
        tallies = [self.tally(dtype, *GROUPS) for dtype in self.dtypes]
        return not self.missed and not self.false_alarms and all(t.named >= NAMED * t.total for t in tallies)

    @property
    def useful(self) -> tuple[str, ...]:
        """The groups of `USEFUL` that were scored."""
        return tuple(group for group in USEFUL if any(result.group == group for result in self.results))

    def _useful_met(self, dtype: str, group: str) -> bool:
        tally, explained = self.tally(dtype, group), self.explained(dtype, group)
        useful = sum(explained[kind] for kind in ("named", "confirmed"))
        enough = tally.killed >= KILLED * tally.total and useful >= USEFUL[group] * tally.total
        return enough and explained["unconfirmed"] <= UNCONFIRMED * tally.total


EXPLANATIONS = ("named", "confirmed", "located", "none", "unconfirmed")
"""Kinds of the first diagnosis: right by its name, or by what it predicts; where alone; none; refuted."""

Job = tuple[str, str]
"""The id of a program, and a format."""


def group(program: Program) -> str:
    """The part of the score that a program belongs to."""
    if program.framework:
        return {"wrong": GRADIENTS, "triples": TRIPLES, "right": CORRECT}[program.function.__module__.split(".")[-2]]
    if not program.named:
        return CORRECT
    if program.distributed:
        return "distributed"
    if program.id in independent_programs():
        return INDEPENDENT
    return "pairs" if len(program.named) > 1 else "held-out" if program.held_out else "tuning"


def expected(program: Program) -> tuple[str, ...]:
    """The conventions that make up a right diagnosis, sorted."""
    return tuple(sorted(program.named))


def programs(catalogue: str = "known") -> Mapping[str, Program]:
    """Bugs and correct programs of a catalogue by id."""
    return CATALOGUES[catalogue]()


def _distributed() -> Mapping[str, Program]:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        msg = "`ranks` runs programs in PyTorch, which is not installed: pip install torch"
        raise InputError(msg)
    return distributed_programs()


def _program(name: str) -> Program:
    """The program with this id, whose catalogue may need a package that others do not."""
    known = {**programs(), **independent_programs()}
    return known[name] if name in known else gradient_programs().get(name) or _distributed()[name]


def jobs(
    ids: Sequence[str] = (),
    dtypes: Sequence[str] = DTYPES,
    catalogue: str = "known",
    ranks: int = 1,
    wrong_alone: bool = False,
) -> tuple[Job, ...]:
    """The programs to verify, each in each format in which it is wrong.

    Without `ids` these are all programs; those whose shards are for another number of ranks are left out, and with
    `wrong_alone` the correct ones. Raises
    `InputError` for an id that does not exist, or if none of the programs is wrong in these formats.
    """
    runnable = [
        one
        for one in chosen(ids, programs(catalogue))
        if len(one.options.get("shards", "").split(",")) in (1, ranks) and not (wrong_alone and group(one) == CORRECT)
    ]
    wanted = tuple((program.id, dtype) for program in runnable for dtype in dtypes if dtype in program.dtypes)
    if not wanted:
        where = f" on {ranks} ranks" if ranks > 1 else ""
        msg = f"nothing to score: in {' and '.join(dtypes)}{where} none of {', '.join(ids)} is wrong"
        raise InputError(msg)
    return wanted


def measure(
    todo: Iterable[Job], suite: str = "quick", processes: int = 0, ranks: int = 1, leave_out: bool = False
) -> Iterator[ScoredProgram]:
    """Verify the programs of `jobs`, group by group; `in_order` puts them in the order of the jobs.

    `suite` is the corpus. `processes` work side by side; 0: as many as there are processors, 1: this one. `ranks` is
    the number of ranks for programs of several. `leave_out`: each is searched without its right diagnosis.
    """
    from nceref.engine.processes import in_processes
    from nceref.engine.settings import process_count

    listed = list(todo)
    workers = min(processes or max(process_count() // ranks, 1), len(listed))
    # Several groups for each worker, so that all are done at about the same time.
    groups = alike(listed, most=math.ceil(len(listed) / (4 * workers)))
    options = (repeat(suite), repeat(ranks), repeat(leave_out))
    yield from chain.from_iterable(in_processes(_score_all, groups, *options, processes=workers))


def alike(todo: Iterable[Job], most: int) -> list[list[Job]]:
    """Jobs by loss and format, the largest group first: what was computed of a case serves all programs of its loss.

    A group has at most `most` jobs; a larger one is split.
    """
    groups: dict[Job, list[Job]] = {}
    for name, dtype in todo:
        groups.setdefault((_program(name).loss, dtype), []).append((name, dtype))
    parts = [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]
    return sorted(parts, key=len, reverse=True)


def in_order(results: Iterable[ScoredProgram], todo: Iterable[Job]) -> tuple[ScoredProgram, ...]:
    """The results of `measure` in the order of the jobs."""
    by_job = {(result.id, result.dtype): result for result in results}
    return tuple(by_job[job] for job in todo)


def _score_all(group: Sequence[Job], suite: str, ranks: int, leave_out: bool) -> list[ScoredProgram]:
    with _kept(group, ranks) as child:
        return [score_program(job, suite, ranks, child, leave_out) for job in group]


def _kept(group: Sequence[Job], ranks: int) -> Any:
    """Processes that run all programs of a group of several ranks; none for others."""
    from contextlib import nullcontext

    if not any(_program(name).distributed for name, _ in group):
        return nullcontext()
    from nceref.targets.ranks.runner import kept_ranks

    return kept_ranks(ranks)


def score_program(job: Job, suite: str, ranks: int = 1, child: Any = None, leave_out: bool = False) -> ScoredProgram:
    """Verify one program, as a caller would who intends what its author did.

    `child` has processes that have run another program of several ranks. `leave_out`: the search goes without the
    conventions of the right diagnosis. The verdict is ``error`` where anything raised.
    """
    name, dtype = job
    program, seconds, explaining, start = _program(name), 0.0, 0.0, time.process_time()
    judged: list[float] = []
    # Sorted on both sides, since a diagnosis gives its conventions in the order of the closed list.
    right = {expected(program), *(tuple(sorted(other.split("+"))) for other in program.also)}
    part = LEFT_OUT if leave_out else group(program)
    before = search.LEFT_OUT.set(frozenset(chain.from_iterable(right)) if leave_out else frozenset())
    try:
        on_verdict = lambda _: judged.append(time.process_time())  # noqa: E731
        report = _verified(program, dtype, suite, ranks, child, on_verdict)
        end = time.process_time()
        seconds, explaining = end - start, end - judged[0] if judged else 0.0
        # The verdict stands without an explanation, but an error of the search is one of the verifier.
        if "error" in report.search:
            report = replace(report, verdict="error", reason=report.search["sentence"])
        explanations = report.diagnosis or report.limits
        fits = [tuple(sorted(one.id.split("+"))) in right for one in explanations]
        confirmed = part in USEFUL and fits[:1] == [False] and _confirmed(program, dtype, suite, explanations[0])
    except Exception as error:  # whatever it is, the bug is missed, and the page gives the reason
        reason = f"{type(error).__name__}: {error}"
        report, explanations, fits, confirmed = Report(name, program.loss, "error", 1, reason), (), [], False
    finally:
        search.LEFT_OUT.reset(before)
    return ScoredProgram(
        id=name,
        loss=program.loss,
        dtype=dtype,
        group=part,
        expected="+".join(expected(program)),
        verdict=report.verdict,
        diagnoses=tuple(one.id for one in explanations),
        reason=report.reason,
        right=fits[:1] == [True],
        among=any(fits),
        errors=sum(result.status == "error" for result in report.results) or int(report.verdict == "error"),
        seconds=seconds,
        explaining=explaining,
        limited=bool(report.limits),
        confirmed=confirmed,
        calls=report.search.get("calls", 0),
    )


def _verified(
    program: Program, dtype: str, suite: str, ranks: int, child: Any, on_verdict: Callable[[Report], Any]
) -> Report:
    from nceref.verification.verifier import verify_with

    # No number of the score is about training.
    options = {"dtype": dtype, "suite": suite, "training": False, "on_verdict": on_verdict, **intended(program)}
    if program.distributed:
        options |= {"framework": "torch", "ranks": ranks, **program.options}
        return verify_with(program.address, program.loss, child=child, **options)
    options["framework"] = program.framework or "numpy"
    return verify_with(target(program), program.loss, **options)


def _confirmed(program: Program, dtype: str, suite: str, diagnosis: Diagnosis) -> bool:
    """Whether a program does what a diagnosis says on cases of another seed."""
    from nceref.verification.verifier import observe

    # What says only where the program is wrong was measured there.
    if diagnosis.predicts is None:
        return diagnosis.id in _WHERE
    options = {"dtype": dtype, "suite": suite, "seed": 1, **intended(program)}
    framework = program.framework or "numpy"
    return diagnosis.predicts(observe(target(program), loss=program.loss, framework=framework, **options))


def intended(program: Program) -> dict[str, Any]:
    """Options of `nceref.verify` for a program: its settings, and ``...`` for each optional array that it takes."""
    from nceref.losses import get_loss
    from nceref.spec import Array, Labels

    declared = get_loss(program.loss).declaration
    taken = inspect.signature(program.function).parameters
    optional = [p.name for p in declared.parameters if isinstance(p, Array | Labels) and not p.required]
    return {**{name: ... for name in optional if name in taken}, **program.settings}
