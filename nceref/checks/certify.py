"""How far the program of each loss is from proven enclosures of its formula, in units of the derived bound."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.checks.cases import Case, cases
from nceref.checks.run import compare, on_kink
from nceref.engine.arguments import bind
from nceref.errors import InputError
from nceref.exact.certified import NotProvenError, certified, numbers
from nceref.exact.decimal_intervals import along, decimal_along, decimal_enclosures, direction_of
from nceref.losses import get_loss
from nceref.output.limits import share
from nceref.output.words import counted
from nceref.spec import Loss

GEOMETRIES = ("random", "aligned", "opposed", "duplicate", "unnormalized", "lonely", "odd", "wide")
TEMPERATURES = (1.0, 0.3, 0.07, 0.005, 0.001, 0.0001)
DIGITS = 60
"""Of the second engine."""


@dataclass(frozen=True)
class Certified:
    """One loss in one format.

    Attributes
    ----------
    loss, dtype : str
    cases, numbers : int
        How many inputs, and how many values, rows and gradient entries were enclosed on them.
    undecided : int
        Inputs without enclosures: what the formula compares there is equal, or a divisor is 0.
    unsettled : int
        Enclosures that may round to more than one float64.
    apart : int or None
        Numbers on which the two engines contradict each other; None where one was run.
    of_bound : float
        A part of the bound that no error of the program is above, see `nceref.output.limits.share`.
    worst : str
        The case and quantity where the largest error is, if that is above its bound.
    """

    loss: str
    dtype: str
    cases: int
    numbers: int
    undecided: int
    unsettled: int
    apart: int | None
    of_bound: float
    worst: str

    @property
    def holds(self) -> bool:
        """Whether every number is settled, both engines agree, and the program keeps its bound."""
        return self.unsettled == 0 and not self.apart and self.of_bound <= 1


def certify(name: str, dtypes: tuple[str, ...], second: bool) -> Iterator[Certified]:
    """Compare the program of a loss with enclosures of its formula on small cases.

    `name`: of the loss, or FILE.py:NAME. `dtypes`: formats of the program. `second`: whether the decimal engine is run
    as well. Each: one for each format. Raises `InputError` for a loss of which no case has a proof.
    """
    loss = get_loss(name).declaration
    smooth = [case for case in cases(loss, GEOMETRIES, TEMPERATURES) if not on_kink(loss, dict(case.inputs))]
    proven = [(case, out) for case in smooth if (out := _proven(loss, case))]
    if not proven:
        msg = (
            f"none of {counted(len(smooth), 'case')} of {name} has a proof: "
            "its formula compares or divides by what is equal or 0"
        )
        raise InputError(msg)
    everything = [one for _, out in proven for _, one in numbers(out)]
    unsettled = sum(not one.settled() for one in everything)
    apart = sum(_apart(loss, case, out) for case, out in proven) if second else None
    counts = (len(proven), len(everything), len(smooth) - len(proven), unsettled, apart)
    for dtype in dtypes:
        errors = {case.name: compare(loss, case, dtype, _floats(out)) for case, out in proven}
        worst = max(errors, key=lambda case: errors[case].of_bound)
        limit = share(errors[worst].of_bound)
        yield Certified(name, dtype, *counts, limit, f"{worst}, {errors[worst].worst}" if limit > 1 else "")


def _proven(loss: Loss, case: Case) -> dict[str, Any]:
    try:
        return certified(loss, **case.inputs)
    except NotProvenError:
        return {}


def _floats(out: Mapping[str, Any]) -> dict[str, Any]:
    """Value and gradients rounded to float64, under the names of the inputs."""
    nearest = np.vectorize(float, otypes=[np.float64])
    return {name.removeprefix("grad."): nearest(x)[()] for name, x in out.items() if name != "rows"}


def _apart(loss: Loss, case: Case, out: Mapping[str, Any]) -> int:
    """The count of numbers on which decimals, or forward mode along one direction, contradict the enclosures."""
    inputs = bind(loss, (), case.inputs)
    theirs = numbers(decimal_enclosures(loss, inputs, DIGITS))
    apart = sum(not one.overlaps(other) for (_, one), (_, other) in zip(numbers(out), theirs, strict=True))
    return apart + (not forward_agrees(loss, inputs, out))


def forward_agrees(loss: Loss, inputs: Mapping[str, Any], out: Mapping[str, Any]) -> bool:
    """Whether enclosures overlap those of value and one derivative by forward mode in decimals.

    `inputs`: what `bind` returned. `out`: enclosures: ``value``, and ``grad.NAME`` for each input with a gradient.
    """
    gradients = {name.removeprefix("grad."): x for name, x in out.items() if name.startswith("grad.")}
    direction = direction_of(gradients)
    value, slope = decimal_along(loss, inputs, DIGITS, direction)
    return value.overlaps(np.ravel(out["value"])[0]) and slope.overlaps(along(gradients, direction))
