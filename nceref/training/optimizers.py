"""Gradient descent with momentum, and Adam: plain data in, plain data out, for all members of an ensemble at once."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import checked_number, real_array
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.spec import Scalar

Array = npt.NDArray[Any]
Parameters = tuple[Array, ...]
State = tuple[Parameters, ...]
Rate = float | tuple[float, ...]
"""One number, or one for each member of the ensemble."""


class Optimizer(Protocol):
    """An optimizer, which moves parameters along their gradients."""

    def start(self, parameters: Parameters) -> State:
        """The memory of the optimizer before the first step."""

    def step(self, parameters: Parameters, gradients: Parameters, state: State, count: int) -> tuple[Parameters, State]:
        """Parameters and memory after step number `count`, from 1 on.

        Parameters and gradients have equal shapes, with a leading axis of members, and are not changed. `state` is what
        `start` or the last step returned.
        """


@dataclass(frozen=True)
class SGD:
    """w - rate v with v = momentum v + g: plain gradient descent without momentum.

    Attributes
    ----------
    rate : float, or one for each member
        > 0.
    momentum : float
        0 <= momentum < 1.
    """

    rate: Rate = 1e-3
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        _check(self, _share("momentum"))

    def start(self, parameters: Parameters) -> State:
        """The velocity before the first step, which is 0; without momentum there is none."""
        _check_members(self.rate, parameters)
        return (tuple(np.zeros_like(w) for w in parameters),) if self.momentum else ()

    def step(self, parameters: Parameters, gradients: Parameters, state: State, count: int) -> tuple[Parameters, State]:
        """One step down the slope, or down the velocity."""
        velocity = gradients
        if self.momentum:
            velocity = tuple(self.momentum * v + g for v, g in zip(state[0], gradients, strict=True))
            state = (velocity,)
        moved = (w - _shaped(self.rate, w) * v for w, v in zip(parameters, velocity, strict=True))
        return tuple(moved), state


@dataclass(frozen=True)
class Adam:
    """w - rate m / (sqrt(v) + epsilon), m and v means of g and g^2 corrected for their start at 0 (Kingma & Ba 2015).

    Attributes
    ----------
    rate : float, or one for each member
        > 0.
    first, second : float
        What the means keep at each step, beta_1 and beta_2.
    epsilon : float
        > 0.
    """

    rate: Rate = 1e-3
    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        _check(self, _share("first"), _share("second"), Scalar("epsilon", "", "", low=0.0))

    def start(self, parameters: Parameters) -> State:
        """The two means before the first step, which are 0."""
        _check_members(self.rate, parameters)
        return tuple(tuple(np.zeros_like(w) for w in parameters) for _ in range(2))

    def step(self, parameters: Parameters, gradients: Parameters, state: State, count: int) -> tuple[Parameters, State]:
        """One step of about the rate in every entry."""
        first, second, epsilon = self.first, self.second, self.epsilon
        means = tuple(first * m + (1 - first) * g for m, g in zip(state[0], gradients, strict=True))
        squares = tuple(second * v + (1 - second) * g * g for v, g in zip(state[1], gradients, strict=True))
        # m / start and sqrt(v) / root are the corrected means; as two numbers they cost no pass over the arrays.
        root, start = (1 - second**count) ** 0.5, 1 - first**count
        moved = (
            w - _shaped(self.rate, w) / start * m / (np.sqrt(v) / root + epsilon)
            for w, m, v in zip(parameters, means, squares, strict=True)
        )
        return tuple(moved), (means, squares)


def _shaped(rate: Rate, w: Array) -> Array:
    """The rate as it multiplies parameters with a leading axis of members, in their dtype."""
    rates = np.asarray(rate, w.dtype)
    return rates.reshape(-1, *[1] * (w.ndim - 1)) if rates.ndim else rates


def _check_rate(rate: Rate) -> None:
    rates = real_array("rate", rate)
    if rates.dtype.kind == "b" or rates.ndim > 1 or not rates.size or not np.all(np.isfinite(rates) & (rates > 0)):
        msg = f"`rate` must be > 0 and finite, got {shown(rate)}; give one number, or one for each member"
        raise InputError(msg)


def _check_members(rate: Rate, parameters: Parameters) -> None:
    members = len(parameters[0])
    if np.ndim(rate) and np.shape(rate) != (members,):
        msg = f"`rate` must be one number, or one for each of {members} members, got {shown(rate)}"
        raise InputError(msg)


def _share(name: str) -> Scalar:
    return Scalar(name, "", "", low=0.0, low_closed=True, high=1.0)


def _check(optimizer: Any, *numbers: Scalar) -> None:
    """Set each attribute to a Python float in its domain: NumPy's own scalars would turn float32 into float64."""
    for number in numbers:
        object.__setattr__(optimizer, number.name, checked_number(number, getattr(optimizer, number.name)))
