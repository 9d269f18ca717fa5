"""A loss of which some stages are done otherwise: its value on any inputs, and its lines beside the reference's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, DenseRows
from nceref.diagnosis.dense.forms import batches, stages
from nceref.diagnosis.dense.ways.way import Stage, Way
from nceref.diagnosis.expressions import Expression, Product, joined, value_of, written
from nceref.diagnosis.probe.search import REFUSED, Replacement
from nceref.diagnosis.probe.symbols import symbols
from nceref.diagnosis.tape import Variable, detached, edge
from nceref.spec import Loss

MARK = "<<", ">>"
"""Around what is not in the other formula."""


@dataclass(frozen=True)
class Difference:
    """A stage of the formula in the place of that of the reference."""

    yours: str
    reference: str

    @property
    def sentence(self) -> str:
        """The difference in words."""
        return f"{self.yours}, in the reference {self.reference}"

    @property
    def remedy(self) -> str:
        """The change that makes it the reference's, as an imperative."""
        return f"write {self.reference} in the place of {self.yours}"


Lines = tuple[str, str, tuple[Difference, ...]]


_CARRYING: Mapping[str, tuple[tuple[str, float], ...]] = {
    "logits": (("the denominator", 1.0), ("the numerator", 1.0)),
    "weights": (("the weights", 0.0),),
}
"""By stage, the edges of what it gives and what passes them, under the names that the dense forms have for them."""


_NOISE = 7.0
"""Roundings beside those of the reference: a stage may be computed in other steps than a target has."""
_DRAWS = 3
"""Times that the inputs are moved to see what roundings do."""


@dataclass(frozen=True, eq=False)
class Composition:
    """A loss of which some stages are done otherwise, at every size and every value of the scalars.

    Attributes
    ----------
    loss : Loss
    reduction : str
        Of the run; rows are added up.
    stages : sequence of Stage
        Those that it was found on: options of a loss may choose others.
    choice : Replacement
    unit : float
        Unit roundoff of the run.
    """

    loss: Loss
    reduction: str
    stages: Sequence[Stage]
    choice: Replacement
    unit: float

    def rows(self, inputs: Mapping[str, Any]) -> DenseRows:
        """The value as one row, NaN where the stages have no arrays; on a tape where inputs are variables."""
        directions = batches(self.loss, inputs)
        if directions is None:
            return DenseRows(np.array([np.nan]), divisor=1)
        if any(isinstance(x, Variable) for x in inputs.values()):
            return DenseRows(self._value(directions, inputs)[0], divisor=1)
        try:
            value, size = self._value(directions, inputs)
        except REFUSED:
            return DenseRows(np.array([np.nan]), divisor=1)
        error = self._error(inputs, float(value[0]))
        return DenseRows(value, size=size, noise=_NOISE, divisor=1, error=error, samples=directions[0].samples)

    def _value(self, directions: Sequence[DenseBatch], inputs: Mapping[str, Any]) -> tuple[Any, float]:
        """The value, and the largest of the numbers that it was made of."""
        c = value_of(self.choice.constant or (Product(1.0),), symbols(self.loss, inputs, directions))
        *ways, last_way = self._ways(inputs)
        done = list(directions)
        for name, way in ways:
            done = [one.after(name, _carried(name, way.of(one, c))) for one in done]
        batch = done[0].above(*done[1:])
        value = np.reshape(last_way[1].of(batch, c), (1,))
        last = np.abs(detached(batch.done.get("rows", 0.0)))
        return value, float(np.max(last, where=np.isfinite(last), initial=0.0))

    def _ways(self, inputs: Mapping[str, Any]) -> list[tuple[str, Way]]:
        """The way of each stage with its name; `ValueError` where the inputs choose other stages."""
        made, chosen = stages(self.loss, inputs, self.reduction), dict(self.choice.changes)
        ways = [(stage.name, stage.ways[chosen.get(k, 0)]) for k, stage in enumerate(made)]
        known = (stage.ways[chosen[k]].text for k, stage in enumerate(self.stages) if k in chosen)
        if [ways[k][1].text for k in sorted(chosen)] != [*known]:
            msg = "a stage is another one here"
            raise ValueError(msg)
        return ways

    def _error(self, inputs: Mapping[str, Any], value: float) -> float:
        """The distance by which a few roundings of the inputs move the value: much where it has a root or a branch."""
        rng = np.random.default_rng(0)
        error = 0.0
        for _ in range(_DRAWS):
            moved = {n: x * (1 + 4 * self.unit * rng.choice((-1.0, 1.0), x.shape)) if _is_real(x) else x
                     for n, x in inputs.items()}  # fmt: skip
            directions = batches(self.loss, moved)
            other = value if directions is None else float(self._value(directions, moved)[0][0])
            error = max(error, abs(other - value)) if np.isfinite(other) else error
        return 4 * error

    @cached_property
    def lines(self) -> "Lines":
        """The formula and the reference's, with what differs marked, and the differences."""
        return lines(self.stages, self.choice)

    def __str__(self) -> str:
        return "; ".join(one.sentence for one in self.lines[2])

    @property
    def remedy(self) -> str:
        """The changes that make it the reference, a sentence."""
        fix = "; ".join(one.remedy for one in self.lines[2])
        return f"{fix[0].upper()}{fix[1:]}."


def _carried(stage: str, result: Any) -> Any:
    """The result of a stage, as edges that its gradient passes."""
    known = _CARRYING.get(stage, ())
    if not known:
        return result
    if not isinstance(result, tuple):
        return edge(result, known[0][0], passes=known[0][1])
    return tuple(edge(x, name, passes=passes) for x, (name, passes) in zip(result, known, strict=True))


def _is_real(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def lines(made: Sequence[Stage], choice: Replacement) -> Lines:
    """The target's formula and the reference's, with what differs marked, and the differences."""
    changes: Mapping[int, int] = dict(choice.changes)
    yours, reference, words = [], [], []
    for k, part in reversed(list(enumerate(made))):
        usual = part.symbol + part.ways[0].text
        if not part.symbol:
            continue
        if k in changes:
            other = part.symbol + _with_constant(part.ways[changes[k]].text, choice.constant or ())
            words.append(Difference(other, usual))
            other, usual = (MARK[0] + x + MARK[1] for x in (other, usual))
        else:
            other = usual
        yours.append(other)
        reference.append(usual)
    return "; ".join(yours), "; ".join(reference), tuple(words)


def _with_constant(text: str, constant: Expression) -> str:
    """A way with its constant; a negative term is subtracted, and what a number leaves of 1 is a number."""
    if "{c}/T larger" in text:
        text = text.replace("{c}/T larger", "{c} larger")
        constant = tuple(Product(term.number, joined(term.factors, (("T", -1.0),))) for term in constant)
    number, one_term = written(constant), len(constant) == 1
    if one_term and number.startswith("-"):
        text = text.replace("+ {c}", f"- {number[1:]}")
        for larger in re.findall(r"\{c\}\S* larger", text):
            text = text.replace(larger, larger.replace("{c}", number[1:]).replace("larger", "smaller"))
    if one_term and not constant[0].factors:
        rest = _bracketed(written((Product(1 - constant[0].number),)))
        text = text.replace("(1 - {c})", rest).replace("1 - {c}", rest)
    return text.replace("{c} larger", f"{number} larger").replace("{c}", _bracketed(number))


def _bracketed(number: str) -> str:
    return f"({number})" if " " in number or "/" in number else number
