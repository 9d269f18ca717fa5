"""Compares cases on several ranks with the formulas: the joined batch, and that the ranks add up to it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from nceref.losses import get_loss
from nceref.targets.ranks.contract import split_inputs
from nceref.verification.vectors.check import CheckedVectors, check_vectors
from nceref.verification.vectors.ranks import RanksCase
from nceref.verification.vectors.ranks_file import joined_rows
from nceref.verification.vectors.records import VectorCase, VectorOutput


def check_cases(loss: str, cases: Sequence[VectorCase | RanksCase]) -> CheckedVectors:
    """Check all cases of a loss, those of one process and those on several ranks."""
    one = check_vectors(loss, [case for case in cases if isinstance(case, VectorCase)])
    several = check_ranks(loss, [case for case in cases if isinstance(case, RanksCase)])
    wrong = (*one.wrong, *several.wrong)
    return replace(one, cases=one.cases + several.cases, numbers=one.numbers + several.numbers, wrong=wrong)


def check_ranks(loss: str, cases: Sequence[RanksCase], chosen: str = "") -> CheckedVectors:
    """Enclose the outputs of the joined batches of some cases anew, and add up what the ranks have of them.

    `chosen` is as for `check_vectors`.
    """
    joined = check_vectors(loss, [case.joined for case in cases], chosen)
    wrong = (f"{case.id}, {name}: the ranks do not add up to the joined batch" for case in cases for name in _off(case))
    return replace(joined, wrong=(*joined.wrong, *wrong))


def _off(case: RanksCase) -> Iterator[str]:
    """Names of outputs whose parts do not add up to the whole."""
    # Values are joined as gradients are.
    divisor, rows = case.contract.divisor, case.contract.rows(joined_rows(case.joined))
    whole, split = case.joined.outputs, split_inputs(get_loss(case.joined.loss).declaration, case.joined.inputs)
    if not _adds_up(whole["value"], case.values, divisor):
        yield "value"
    for name in case.grads[0]:
        parts, output = [each[name] for each in case.grads], whole[f"grad.{name}"]
        if name in split:
            parts = [_spread(part, own, output) for part, own in zip(parts, rows, strict=True)]
        if not _adds_up(output, parts, divisor):
            yield name


def _spread(part: VectorOutput, own: Any, output: VectorOutput) -> VectorOutput:
    """The rows of one rank in their places, 0 elsewhere."""
    numbers = np.zeros(output.shape)
    np.add.at(numbers, own, part.numbers)
    return replace(part, numbers=numbers)


def _adds_up(whole: VectorOutput, parts: Sequence[VectorOutput], divisor: int) -> bool:
    room = divisor * Fraction(whole.radius) + sum(Fraction(part.radius) for part in parts)
    columns = zip(whole.numbers.flat, *(part.numbers.flat for part in parts), strict=True)
    return all(abs(divisor * Fraction(x) - sum(map(Fraction, each))) <= room for x, *each in columns)
