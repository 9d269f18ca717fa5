"""The formula of a target whose stages were found: its lines beside those of the reference."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nceref.diagnosis.dense.ways.way import Stage
from nceref.diagnosis.expressions import Expression, Product, joined, written
from nceref.diagnosis.probe.search import ONE, Replacement, TargetCall

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


@dataclass(frozen=True, eq=False)
class Composition:
    """A loss of which some stages are done otherwise, at every size and every value of the scalars.

    Attributes
    ----------
    choice : Replacement
    """

    choice: Replacement

    def value(self, call: TargetCall) -> float:
        """The value at a call; NaN where the formula does not say."""
        with np.errstate(all="ignore"):
            return call.tried(dict(self.choice.changes), self.choice.constant or ONE)


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
