"""Scalars of a loss that are trained along with the encoder: temperatures, scales, biases.

A positive one is trained by its logarithm, as in CLIP and SigLIP: no step can make it negative.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import spec
from nceref.engine.arguments import checked_number
from nceref.errors import InputError
from nceref.registry import pick
from nceref.training.batch import Member
from nceref.training.supply import temperature

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Learned:
    """One scalar: its value is exp(weight) if it is `positive`, else the weight itself."""

    name: str
    positive: bool

    def value(self, weight: Any) -> Any:
        """The scalar that the loss gets, from the trained weight."""
        return np.exp(weight) if self.positive else weight

    def weight(self, value: float) -> float:
        """The other way."""
        return math.log(value) if self.positive else value

    def slope(self, weight: Any, grad: Any) -> Any:
        """The derivative by the weight, of that by the value."""
        return grad * np.exp(weight) if self.positive else grad


def learned(loss: spec.Loss, names: Sequence[str]) -> tuple[Learned, ...]:
    """The scalars with these names.

    They are in the order of the names; one that is named twice counts once. Raises `InputError` if the loss has no such
    scalar, or no gradient by it.
    """
    known = {p.name: p for p in loss.parameters if isinstance(p, spec.Scalar) and not p.constant}
    what, command = f"scalar of {loss.name} that can be learned", f"nceref losses {loss.name}"
    # A domain that begins at 0 makes a scalar positive.
    return tuple(Learned(name, pick(what, name, known, command).low == 0) for name in dict.fromkeys(names))


def started(loss: spec.Loss, one: Learned, member: Member, settings: Mapping[str, Any]) -> float:
    """The weight that a member starts from.

    `settings` are arguments of the loss that stay the same. The weight is the logarithm of the value, if that is
    positive by its declaration. Raises `InputError` if there is no number to start from, or it is not positive as it
    must be.
    """
    parameter = next(p for p in loss.parameters if isinstance(p, spec.Scalar) and p.name == one.name)
    # The later wins: settings over the member's temperature, that over the default.
    value = {one.name: parameter.default, **temperature(loss, member, settings), **settings}[one.name]
    if value is ... or value is None:
        msg = f"`{one.name}` of {loss.name} needs a number to start from, got nothing; pass it in the settings"
        raise InputError(msg)
    return one.weight(checked_number(parameter, value))
