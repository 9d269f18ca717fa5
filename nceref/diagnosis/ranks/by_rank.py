"""What each rank answered, rank by rank: which are right, which are not, and which gave no number."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.gaps import gaps, listed, usable
from nceref.diagnosis.ranks.fits import fits_value
from nceref.diagnosis.ranks.parts import JOINED, RankCase
from nceref.targets.ranks.contract import Contract

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ROWS = 300
"""Of a batch that is looked at."""
LEAST = 3
"""At least that many cases must be explained."""


@dataclass(frozen=True)
class RankRecord:
    """One rank of one run.

    Attributes
    ----------
    run : str
        What stands before the ids of the run's results.
    world_size, rank : int
    cases : int
        On how many cases it was called.
    wrong : tuple of str
        Ids of the cases whose joined value is wrong, and on which the rank's own is neither that of all rows nor that
        of its own.
    not_finite : tuple of str
        Ids of the cases on which its value is not finite, where the reference is; or a gradient, if all values are.
    trouble : mapping
        Id of a case to what went wrong there on this rank.
    """

    run: str
    world_size: int
    rank: int
    cases: int
    wrong: tuple[str, ...] = ()
    not_finite: tuple[str, ...] = ()
    trouble: Mapping[str, str] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether it was called, and nothing is said against it."""
        return self.cases > 0 and not (self.wrong or self.not_finite or self.trouble)

    def record(self) -> dict[str, Any]:
        """The results of a rank as plain data."""
        return {**asdict(self), "right": self.right, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """The fault in words."""
        words = [f"value wrong on {listed(self.wrong)}"] if self.wrong else []
        words += [f"not finite on {listed(self.not_finite)}"] if self.not_finite else []
        words += [f"{next(iter(self.trouble.values()))} on {listed(self.trouble)}"] if self.trouble else []
        return "; ".join(words) or ("nothing is wrong on this rank alone" if self.cases else "no case was judged")


def rank_records(run: str, observations: Sequence[Observation], contract: Contract) -> tuple[RankRecord, ...]:
    """A record of each rank of a run.

    Result: in the order of the ranks.
    """
    judged = [o for o in observations if not o.probe.skip and len(_answers(o, contract)) == contract.world_size]
    cases = predicted(answered(observations, contract), contract)
    wrong = wrong_values(cases) or [[]] * contract.world_size
    joined_wrong = [not gaps(case.observation)["value"].right for case in cases]
    out = []
    for rank in range(contract.world_size):
        own = [(o.probe.id, _answers(o, contract)[rank]) for o in judged]
        off = (case.probe.id for case, *both in zip(cases, wrong[rank], joined_wrong, strict=False) if all(both))
        not_finite = tuple(o.probe.id for o in judged if _is_source(_answers(o, contract), rank))
        # One that waits for another is not to blame.
        trouble = {id: a.sentence for id, a in own if a.trouble and a.trouble != "waits"}
        out.append(RankRecord(run, contract.world_size, rank, len(own), tuple(off), not_finite, trouble))
    return tuple(out)


def _answers(observation: Observation, contract: Contract) -> Sequence[Outcome]:
    """Answers by rank; devices of one process fail together."""
    outcome = observation.outcome
    together = outcome.trouble and len(outcome.ranks) < contract.world_size
    return (outcome,) * contract.world_size if together else outcome.ranks


def _is_source(answers: Sequence[Outcome], rank: int) -> bool:
    """Whether a rank has a number that is not finite: the value, from which it reaches the gradients of others."""
    if any(answer.trouble for answer in answers):
        return False
    if not all(np.isfinite(answer.value) for answer in answers):
        return not np.isfinite(answers[rank].value)
    return not _finite(answers[rank])


def ranks_apart(observations: Sequence[Observation], contract: Contract) -> str:
    """The ranks that have a right value on all cases, where others have not; empty where that says nothing.

    Result: such as "the value of rank 0 is right on all 27 cases, that of rank 1 is not".
    """
    cases = predicted(answered(observations, contract), contract)
    right = [not any(each) for each in wrong_values(cases)]
    if not any(right) or all(right):
        return ""
    good, bad = ([k for k, fine in enumerate(right) if fine == wanted] for wanted in (True, False))
    named = (f"{contract.part}{'s' * (len(ranks) > 1)} {listed(map(str, ranks))}" for ranks in (good, bad))
    return f"the value of {next(named)} is right on all {len(cases)} cases, that of {next(named)} is not"


def answered(observations: Sequence[Observation], contract: Contract) -> list[Observation]:
    """The observations in which every rank gave numbers."""
    return [
        o
        for o in usable(observations)
        if len(o.outcome.ranks) == contract.world_size > 1
        and o.probe.reduction != "none"
        and contract.fits(o.probe)
        and all(map(_finite, o.outcome.ranks))
    ]


def _finite(answer: Outcome) -> bool:
    return all(np.all(np.isfinite(x)) for x in (answer.value, *answer.grads.values()))


def predicted(
    seen: Sequence[Observation], contract: Contract, deviations: Mapping[str, Any] = _NOTHING
) -> list[RankCase]:
    """The cases of which what each rank computes can be predicted; none where they are too few.

    `seen`: see `answered`. `deviations`: conventions of the joined loss.
    """
    cases = [case for o in seen if (case := RankCase(o, contract, deviations)).count <= _ROWS]
    # Where the dense form has no number, nothing can be predicted.
    cases = [case for case in cases if np.all(np.isfinite(case.rows(JOINED, 0).values))]
    return cases if len(cases) >= LEAST else []


def wrong_values(cases: Sequence[RankCase]) -> list[list[bool]]:
    """The cases on which the value of each rank is wrong, as a value of all rows or of its own: what fits better.

    Result: by rank; empty without cases.
    """
    return _wrong(cases, best_share(cases)) if cases else []


def best_share(cases: Sequence[RankCase]) -> str:
    """Whether the values are those of all rows, or those of the own rows, what fits better."""
    return min(("all", "own"), key=lambda share: sum(map(sum, _wrong(cases, share))))


def _wrong(cases: Sequence[RankCase], share: str) -> list[list[bool]]:
    ranks = range(cases[0].contract.world_size)
    return [[not fits_value(case, rank, JOINED, share, 0) for case in cases] for rank in ranks]
