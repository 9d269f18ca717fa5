"""What is on hand while the parts of a loss are evaluated, and what one way of doing a part is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

REAL, INTEGER = "real", "integer"


@dataclass(frozen=True, eq=False)
class PartWay:
    """One way of doing a part.

    Attributes
    ----------
    text : str
        How it is written; ``{c}`` stands for its constant.
    of : callable
        ``of(work, c)``: what the part gives.
    constant : str
        ``real`` or ``integer`` where it has a constant, which is solved for; empty without.
    plain : bool
        Whether it is one of the few that are tried beside another part that differs.
    linear : bool
        Whether it adds the rows up with weights that do not depend on them.
    """

    text: str
    of: Callable[["Work", float], Any]
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
        ``above(work)``: the rows for which the first of two ways holds, (n,); one for each condition.
    start : int
        Number of the first combined way; they go by the first way, the second, and the condition.
    """

    single: tuple[int, ...]
    above: tuple[Callable[["Work"], Any], ...]
    start: int

    def number(self, first: int, second: int, condition: int) -> int:
        """The number of a combined way, from places in `single` and in `above`."""
        return self.start + (first * len(self.single) + second) * len(self.above) + condition


@dataclass(frozen=True, eq=False)
class LossPart:
    """A part of a loss: what it gives is kept under its name.

    Attributes
    ----------
    name : str
    symbol : str
        What stands before its text in the formula, such as ``l_ij = ``.
    ways : tuple of PartWay
        That of the reference first.
    switch : Switch or None
        Where two ways share the rows.
    """

    name: str
    symbol: str
    ways: tuple[PartWay, ...]
    switch: Switch | None = None

    @property
    def alone(self) -> tuple[tuple[int, PartWay], ...]:
        """The ways but the combined ones, with their numbers."""
        return tuple(enumerate(self.ways if self.switch is None else self.ways[: self.switch.start]))


@dataclass(eq=False)
class Work:
    """One direction of a batch: who is compared with whom, and what the parts have given so far.

    Attributes
    ----------
    scalars : mapping
        ``sharp``, the inverse temperature or the scale, and the others by name.
    blocks : sequence of array
        Inputs with rows, as they are.
    anchors, candidates : array of int
        Which rows of the blocks below one another.
    own, positives, inside : array, (n, m)
        The anchor itself; weights of positives; who is in the denominator.
    view : array of bool, (n, m)
        Pairs of one view, or of one input.
    labels, kinds : array of int
        Class of each anchor and of each candidate, -1 where there is none.
    samples : int
        N.
    counts : array or None
        Number of each class.
    given : array or None
        Logits where there are no rows.
    """

    scalars: Mapping[str, float]
    blocks: Sequence[Any]
    anchors: Any
    candidates: Any
    own: Any
    positives: Any
    inside: Any
    view: Any
    labels: Any
    kinds: Any
    samples: int
    counts: Any = None
    given: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)
    done: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, part: str) -> Any:
        return self.done[part]

    def after(self, part: str, result: Any) -> "Work":
        """With what a part has given."""
        other = object.__new__(Work)
        vars(other).update(vars(self))
        other.done = {**self.done, part: result}
        return other

    @property
    def sharp(self) -> float:
        """What multiplies similarities."""
        return self.scalars["sharp"]

    @property
    def i(self) -> Any:
        """Numbers of anchors, a column."""
        return np.arange(self.own.shape[0])[:, None]

    @property
    def j(self) -> Any:
        """Numbers of candidates, a row."""
        return np.arange(self.own.shape[1])[None, :]

    @property
    def together(self) -> Any:
        """Pairs that belong together."""
        return self.positives > 0

    @property
    def negatives(self) -> Any:
        """Candidates that are no positives, and not the anchor."""
        return (self.positives <= 0) & self.inside & ~self.own


def log_sum(x: Any) -> Any:
    """Logarithm of the sum of exponentials along rows."""
    top = np.max(x, axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.sum(np.exp(x - top), axis=-1)) + top[..., 0]


def log_of(weights: Any) -> Any:
    """Logarithm of weights, -inf where they are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.asarray(weights, dtype=float))


def unit(x: Any, axis: Any = -1) -> Any:
    """Divided by the length."""
    return x / np.sqrt(np.sum(x * x, axis=axis, keepdims=True))


def joined(works: Sequence[Work]) -> Work:
    """Directions below one another: rows, and the weights and labels that a mean may need."""
    if len(works) == 1:
        return works[0]
    first = works[0]
    other = object.__new__(Work)
    vars(other).update(vars(first))
    for name in ("own", "positives", "inside", "view"):
        setattr(other, name, np.concatenate([getattr(w, name) for w in works]))
    other.labels = np.concatenate([w.labels for w in works])
    other.done = {
        k: np.concatenate([w.done[k] for w in works]) for k in ("similarities", "positives", "rows") if k in first.done
    }
    return other
