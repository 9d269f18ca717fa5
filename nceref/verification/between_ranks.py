"""Explanations of several ranks: faults between them, and whether other numbers of ranks have the same."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from nceref.cases.records import Diagnosis, Observation
from nceref.targets.ranks.contract import Contract
from nceref.targets.search import NoCallsLeft
from nceref.verification.modes import only_modes_fail
from nceref.verification.request import Request
from nceref.verification.target_run import RunSetup, TargetRun, observed

Observed = tuple[Sequence[Observation], Contract]


def other_ranks(
    request: Request, run: Any, runs: Sequence[TargetRun], setup: RunSetup
) -> Callable[[], Observed | None]:
    """A function for the answers on another number of ranks, from a run that is there, or called once.

    `run` is the target, ready to run; `runs` are all that there are; `setup` is that of the run that is explained. The
    function returns None for shards, and where no calls are left.
    """
    contract = setup.contract

    @cache
    def observe() -> Observed | None:
        if contract is None or contract.shards:
            return None
        others = (each for each in runs if each.setup.several and each.dtype == setup.dtype)
        for each in others:
            if each.setup.contract is not None and each.setup.contract.world_size != contract.world_size:
                return each.observations, each.setup.contract
        other = replace(contract, world_size=2 if contract.world_size > 2 else 3)
        try:
            return observed(request, replace(setup, contract=other), run), other
        except NoCallsLeft:
            return None

    return observe


def between_ranks(
    request: Request, runs: Sequence[TargetRun], failing: TargetRun, other: Callable[[], Observed | None]
) -> tuple[Diagnosis, ...]:
    """Explanations of what is wrong between ranks; empty where one process computes all of the batch.

    `runs` are all that there are, `failing` is one of several ranks, and `other` is the result of `other_ranks`.
    """
    contract = failing.setup.contract
    if contract is None or not failing.setup.several or not request.is_the_loss or only_modes_fail(failing.results):
        return ()
    from nceref.diagnosis.gaps import gaps, usable
    from nceref.diagnosis.ranks.diagnose import diagnose_ranks

    alone = (each for each in runs if not each.setup.several and each.dtype == failing.dtype)
    wrong = (o for each in alone for o in usable(each.observations) if not all(gap.right for gap in gaps(o).values()))
    return diagnose_ranks(failing.observations, contract, other, frozenset(o.probe.id for o in wrong))


def on_ranks(
    failing: TargetRun, diagnoses: tuple[Diagnosis, ...], other: Callable[[], Observed | None]
) -> tuple[Diagnosis, ...]:
    """The explanations of the joined batch, with what is known of the ranks: one alone is right.

    `diagnoses` are those of the joined batch on one rank; `other` is the result of `other_ranks`.
    """
    from nceref.diagnosis.ranks.by_rank import ranks_apart

    contract = failing.setup.contract
    if contract is None or not failing.setup.several or not diagnoses:
        return diagnoses
    first, *rest = diagnoses
    words = [f"one {contract.part} alone is right"]
    if first.predicts is not None and (again := other()) is not None:
        holds = "the same" if first.predicts(again[0]) else "something else, which depends on their number"
        words.append(f"checked {again[1].words} too: it is {holds}")
    return comparing_ranks(first, contract).noting(*words, ranks_apart(failing.observations, contract)), *rest


def comparing_ranks(diagnosis: Diagnosis, contract: Contract) -> Diagnosis:
    """The diagnosis with what to do where nothing explains several ranks, or steps."""
    if diagnosis.id != "unexplained":
        return diagnosis
    parts = f"Compare what the {contract.part}s compute: print their parts on one case, --case ID."
    return replace(diagnosis, fix=parts)
