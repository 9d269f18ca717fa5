"""A bug of one rank alone: what all other ranks answer is right, on two numbers of ranks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart
from nceref.diagnosis.gaps import diagnosis, gaps
from nceref.diagnosis.ranks.by_rank import best_share, wrong_values
from nceref.diagnosis.ranks.explanation import IN_STEPS
from nceref.diagnosis.ranks.fits import UNSEEN, ValueFit, fitted_powers, parts_from, shares
from nceref.diagnosis.ranks.parts import JOINED, RankCase
from nceref.diagnosis.ranks.words import ALONE
from nceref.diagnosis.simple_numbers import recognized
from nceref.output.words import counted
from nceref.targets.ranks.contract import Contract

ID = "one-rank-apart"


@dataclass(frozen=True)
class OneRank:
    """The fault of one rank, seen on one number of ranks.

    Attributes
    ----------
    contract : Contract
    rank : int
        The one that is wrong.
    value : bool
        Whether its value is; otherwise the gradient that it leaves, or the one that its value makes of others' rows.
    wrong, cases : int
        On how many cases, of how many.
    factor : float or None
        What its values are multiplied with, if that is one number.
    gradient : bool
        Whether the joined gradient is right on all cases.
    """

    contract: Contract
    rank: int
    value: bool
    wrong: int
    cases: int
    factor: float | None
    gradient: bool

    @property
    def is_last(self) -> bool:
        """Whether no rank follows."""
        return self.rank == self.contract.world_size - 1


def one_rank_apart(cases: Sequence[RankCase], other: Callable[[], Sequence[RankCase]]) -> tuple[Diagnosis, ...]:
    """Name a bug of one rank alone.

    `cases`: those that the target has right with one rank. `other`: such cases of another number of ranks. Result:
    empty unless both numbers of ranks have the same rank wrong, by its number or as the last one, on most cases.
    """
    first = _seen(cases)
    second = first and _seen(other())
    if not first or not second or first.value != second.value:
        return ()
    if first.rank != second.rank and not (first.is_last and second.is_last):
        return ()
    id = IN_STEPS[ID] if first.contract.in_turn else ID
    return (diagnosis(id, *_parts(*sorted((first, second), key=lambda seen: seen.contract.world_size))),)


def _seen(cases: Sequence[RankCase]) -> OneRank | None:
    """The one rank that is wrong; None where there is no such."""
    if not cases:
        return None
    contract, wrong = cases[0].contract, wrong_values(cases)
    bad = [rank for rank, each in enumerate(wrong) if any(each)]
    gradient = all(gap.right for case in cases for name, gap in gaps(case.observation).items() if name != "value")
    if len(bad) == 1 and 2 * sum(wrong[bad[0]]) > len(cases):
        return OneRank(contract, bad[0], True, sum(wrong[bad[0]]), len(cases), _factor(cases, bad[0]), gradient)
    if bad or gradient:
        return None
    small = [case for case in cases if not case.probe.is_large and case.probe.grads]
    rank = _by_gradient(small)
    return None if rank is None else OneRank(contract, rank, False, len(small), len(small), None, gradient)


def _factor(cases: Sequence[RankCase], rank: int) -> float | None:
    """The number by which a rank's values are the right ones multiplied; None where there is none."""
    for share in ("all", "own"):
        right = np.array([shares(case, JOINED, rank, share) @ case.rows(JOINED, 0).values for case in cases])
        got = np.array([float(case.answers[rank].value) for case in cases])
        factor = float(got @ right / (right @ right))
        if np.all(np.abs(got - factor * right) <= 1e-6 * np.abs(right)) and factor != 0:
            return factor
    return None


def _by_gradient(cases: Sequence[RankCase]) -> int | None:
    """The rank without which all gradients by rows are right: that leaves wrong ones, or whose value makes them so."""
    if not cases:
        return None
    count = cases[0].contract.world_size
    fit = ValueFit((JOINED,) * count, best_share(cases), 0)
    names = sorted(cases[0].split & cases[0].probe.grads.keys())
    suspects = [each for name in names for rank in range(count) for each in _suspects(cases, fit, name, rank)]
    common = set.intersection(*suspects) if suspects else set()
    return common.pop() if len(common) == 1 else None


def _suspects(cases: Sequence[RankCase], fit: ValueFit, name: str, rank: int) -> Iterator[set[int]]:
    """The ranks of which one is to blame, for each part of the gradient of a rank's rows that is wrong."""
    others = [other for other in range(len(fit.readings)) if other != rank]
    left = []
    for case in cases:
        own, *from_others = (parts_from(case, fit, name, rank, other) for other in (rank, *others))
        shared = sum(each[0] for each in from_others)
        left.append((case, rank, (own[0] + shared, own[1], *(each[2] for each in from_others))))
    powers = fitted_powers(left, name) or (None,)
    blamed = [{rank}, {rank}, *({rank, other} for other in others)]
    yield from (ranks for power, ranks in zip(powers, blamed, strict=False) if power not in (0, UNSEEN))


def _parts(first: OneRank, second: OneRank) -> tuple[DiagnosisPart, ...]:
    """Sentences on what was measured on the fewer and on the more ranks."""
    part = first.contract.part
    which = f"{part} {first.rank}" if first.rank == second.rank else f"the last {part}"
    if not first.value:
        counts = " and ".join(
            f"{seen.contract.world_size} {part}s ({counted(seen.cases, 'case')})" for seen in (first, second)
        )
        words = (
            f"the values are right, and so are the gradients of the rows but for what {which} leaves, or what its value"
            " adds to those of the others"
        )
        effect = DiagnosisPart(f"training goes by another gradient of one {part}", "", "training")
        return DiagnosisPart(words), DiagnosisPart(f"measured on {counts}", "", "note"), effect
    counts = " and ".join(
        f"{'all' if seen.wrong == seen.cases else f'{seen.wrong} of'} {counted(seen.cases, 'case')} of"
        f" {seen.contract.world_size} {part}s"
        for seen in (first, second)
    )
    same = first.factor and second.factor and abs(first.factor - second.factor) <= 1e-5 * abs(first.factor)
    times = f", and {recognized(first.factor)[1]} times what it should be" if same else ""
    where = "in that step" if first.contract.in_turn else "on that rank"
    other = DiagnosisPart(f"training goes by another loss {where}", "", "training")
    return (
        DiagnosisPart(f"the value of {which} is wrong", f"on {counts}{times}"),
        DiagnosisPart(f"that of every other {part} is right on all", "", "right"),
        ALONE if first.gradient and second.gradient else other,
    )
