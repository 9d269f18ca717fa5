"""Cases of losses on several ranks: what each rank has, its value, and the gradient that is left on its shard.

There are three formulations of one loss, of which a record has the numbers of one:

    joined  each rank gathers the shards with their gradient, and computes the loss of the joined batch
    local   each rank takes the mean over its own anchors, among the candidates of all ranks; shards are equal
    share   each rank adds up its own anchors and divides by the anchors of all ranks; shards may be uneven

The gather adds up the gradients of all ranks. Rows that a sampler repeated are left out of the joined batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nceref.cases.judge import judge
from nceref.cases.records import Diagnosis, Observation, Outcome, Probe, Result
from nceref.diagnosis.ranks.diagnose import diagnose_ranks
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.output.words import counted
from nceref.targets.frameworks.call import Trouble, call_request
from nceref.targets.json_answer import answer_of, refusal
from nceref.targets.ranks.contract import Contract, listed_ranks
from nceref.verification.vectors.records import VectorCase, VectorOutput, probe_of

VALUES = {"joined": "mean", "local": "mean", "share": "sum"}
"""Formulations, and how the values of the ranks are joined; gradients are synchronized in the same way."""


@dataclass(frozen=True, eq=False)
class RanksCase:
    """A case of the joined batch, and what each rank has of it: values, and gradients by input.

    The formulation is ``joined``, ``local`` or ``share``. Gradients are as automatic differentiation leaves them on the
    rank.
    """

    joined: VectorCase
    contract: Contract
    formulation: str
    values: tuple[VectorOutput, ...]
    grads: tuple[Mapping[str, VectorOutput], ...]

    @property
    def id(self) -> str:
        """Formulation, ranks, temperature and a hash of the contents, such as ``joined-2-ranks-0.3-1a2b3c4d``."""
        return self.joined.id


def contract_of(formulation: str, shards: Any) -> Contract:
    """The contract of the rows of the joined batch that each rank has; raises `InputError` where there is none.

    The formulation is that of a `RanksCase`, `shards` a list of rows for each rank.
    """
    nested = isinstance(shards, list | tuple) and all(isinstance(own, list | tuple) for own in shards)
    rows = [list(own) for own in shards] if nested else []
    sizes, count = tuple(map(len, rows)), len({repr(row) for own in rows for row in own})
    uneven = sizes if len(set(sizes)) > 1 else ()
    joined = VALUES.get(formulation, "")
    if joined and count and not (formulation == "local" and uneven):
        contract = Contract(len(rows), joined, joined, uneven, duplicate=sum(sizes) > count)
        if count % contract.unit == 0 and rows == [own.tolist() for own in contract.rows(count)]:
            return contract
    msg = f"the shards {shown(shards)} are none of the formulation {formulation!r}"
    raise InputError(msg)


def label(contract: Contract, formulation: str) -> str:
    """The beginning of the id of a case."""
    return f"{formulation}-{contract.label}{'-repeated' if contract.duplicate else ''}"


# The judge.


def ranks_results(case: RanksCase, answers: Any, dtype: str) -> list[Result]:
    """Judge what the ranks of an implementation, in its format, answered, joined as the record says.

    `answers` has one a rank, ``{"value": x, "grad": {NAME: [...]}}``, gradients as they were left on the rank. Raises
    `Trouble` where an answer has not the shape of one.
    """
    return judge(ranks_observation(case, answers, dtype))


def ranks_observation(case: RanksCase, answers: Any, dtype: str) -> Observation:
    """The joined case with the joined answer; parameters as for `ranks_results`."""
    probe, contract = probe_of(case.joined, dtype), case.contract
    if not isinstance(answers, list) or len(answers) != contract.world_size:
        has = counted(len(answers), "rank") if isinstance(answers, list) else "no ranks"
        msg = f"answers for {has}, but the case has {counted(contract.world_size, 'rank')}"
        raise Trouble(msg, "wrong-shape")
    if probe.skip:
        return Observation(probe, Outcome(trouble="raises", sentence=probe.skip))
    outcomes = [_outcome(contract.shard(probe, rank), answers[rank], rank) for rank in range(contract.world_size)]
    for rank, outcome in enumerate(outcomes):
        if outcome.trouble:
            words = f"{outcome.sentence} on {listed_ranks([rank], len(outcomes))}"
            return Observation(probe, replace(outcome, sentence=words, ranks=tuple(outcomes)))
    return Observation(probe, contract.joined(outcomes, probe))


def _outcome(shard: Probe, answer: Any, rank: int) -> Outcome:
    if not isinstance(answer, dict):
        msg = f"answers for rank {rank} with something else than an object with `value` and `grad`"
        raise Trouble(msg, "wrong-shape")
    if "error" in answer or "unsupported" in answer:
        return refusal(answer)
    try:
        read = answer_of(answer, call_request(shard))
    except Trouble as error:
        msg = f"{error} (rank {rank})"
        raise Trouble(msg, error.name) from None
    return Outcome(read.value, read.grads, read.unjudged)


def ranks_diagnoses(seen: Sequence[tuple[RanksCase, Observation]]) -> tuple[Diagnosis, ...]:
    """Explain what ranks do otherwise, from the cases of one number of them and of another, all of one loss.

    Observations are those of `ranks_observation`. The result is empty where nothing between ranks predicts all cases of
    both numbers.
    """
    runs: dict[Contract, list[Observation]] = {}
    for case, observation in seen:
        runs.setdefault(case.contract, []).append(observation)
    for contract, observations in runs.items():
        plain = Contract(contract.world_size, contract.value, contract.sync)
        alike = [one for one in runs if one == replace(plain, world_size=one.world_size) and one != plain]
        if contract != plain or not alike:
            continue
        if diagnoses := diagnose_ranks(observations, contract, partial(_run, runs, alike[0])):
            return diagnoses
    return ()


def _run(runs: Mapping[Contract, Sequence[Observation]], contract: Contract) -> tuple[Sequence[Observation], Contract]:
    return runs[contract], contract
