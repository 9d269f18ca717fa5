"""A stage of a loss, and the ways in which programs do it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.tape import Variable, edge

REAL, INTEGER = "real", "integer"


@dataclass(frozen=True, eq=False)
class Way:
    """One way of doing a part.

    Attributes
    ----------
    text : str
        How it is written; ``{c}`` stands for its constant.
    of : callable
        ``of(batch, c)``: what the part gives.
    constant : str
        ``real`` or ``integer`` where it has a constant, which is solved for; empty without.
    plain : bool
        Whether it is one of the few that are tried beside another part that differs.
    linear : bool
        Whether it adds the rows up with weights that do not depend on them.
    """

    text: str
    of: Callable[["DenseBatch", float], Any]
    constant: str = ""
    plain: bool = True
    linear: bool = False


@dataclass(frozen=True, eq=False)
class Switch:
    """Ways of a part of which one holds for some rows and another for the others, by a condition.

    Attributes
    ----------
    single : tuple of int
        Numbers of the ways that stand alone.
    above : tuple of callable
        ``above(batch)``: the rows for which the first of two ways holds, (n,); one for each condition.
    start : int
        Number of the first combined way; they go by the first way, the second, and the condition.
    """

    single: tuple[int, ...]
    above: tuple[Callable[["DenseBatch"], Any], ...]
    start: int

    def number(self, first: int, second: int, condition: int) -> int:
        """The number of a combined way, from places in `single` and in `above`."""
        return self.start + (first * len(self.single) + second) * len(self.above) + condition


@dataclass(frozen=True, eq=False)
class Stage:
    """A part of a loss: what it gives is kept under its name.

    Attributes
    ----------
    name : str
    symbol : str
        What stands before its text in the formula, such as ``l_ij = ``.
    ways : tuple of Way
        That of the reference first.
    switch : Switch or None
        Where two ways share the rows.
    """

    name: str
    symbol: str
    ways: tuple[Way, ...]
    switch: Switch | None = None

    @cached_property
    def alone(self) -> tuple[tuple[int, Way], ...]:
        """The ways but the combined ones, with their numbers."""
        return tuple(enumerate(self.ways if self.switch is None else self.ways[: self.switch.start]))


def log_of(weights: Any) -> Any:
    """Logarithm of weights, -inf where they are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(weights if isinstance(weights, Variable) else np.asarray(weights, dtype=float))


def unit(x: Any, axis: Any = -1) -> Any:
    """Divided by the length."""
    return x / np.sqrt(np.sum(x * x, axis=axis, keepdims=True))


def largest(x: Any, axis: Any = None) -> Any:
    """The largest logit, along an axis that stays, or of all; programs often detach it."""
    return edge(np.max(x) if axis is None else np.max(x, axis=axis, keepdims=True), "the largest logit")
