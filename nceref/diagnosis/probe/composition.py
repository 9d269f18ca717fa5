"""The formula of a target whose stages were found: its lines beside those of the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.diagnosis.dense.forms import batches, stages
from nceref.diagnosis.dense.ways.way import Stage
from nceref.diagnosis.probe.design import Design
from nceref.diagnosis.probe.expressions import value_of
from nceref.diagnosis.probe.search import Replacement, TargetCall
from nceref.diagnosis.probe.words import MARK, Difference, Lines, written


@dataclass(frozen=True, eq=False)
class Composition:
    """A loss of which some stages are done otherwise, at every size and every value of the scalars.

    Attributes
    ----------
    reduction : str
    choice : Replacement
    """

    reduction: str
    choice: Replacement

    def value(self, design: Design, xs: Any) -> Any:
        """Values at rows or logits (calls, ...) of a design; NaN where the formula does not say."""
        c = 1.0 if self.choice.constant is None else value_of(self.choice.constant, design.quantities)
        out = []
        for x in xs:
            inputs = design.call(x)
            made = batches(design.loss, inputs)
            if made is None:
                return np.full(len(xs), np.nan)
            batch = TargetCall(stages(design.loss, inputs, self.reduction), made, 0.0, 0.0, {})
            with np.errstate(all="ignore"):
                out.append(batch.tried(dict(self.choice.changes), c))
        return np.array(out)


def lines(made: Sequence[Stage], choice: Replacement) -> Lines:
    """The target's formula and the reference's, with what differs marked, and the differences."""
    changes: Mapping[int, int] = dict(choice.changes)
    number = written(choice.constant) if choice.constant is not None else ""
    constant = f"({number})" if " " in number or "/" in number else number
    # One negative term is subtracted.
    negative = number.startswith("-") and len(choice.constant or ()) == 1
    yours, reference, words = [], [], []
    for k, part in reversed(list(enumerate(made))):
        usual = part.symbol + part.ways[0].text
        if not part.symbol:
            continue
        if k in changes:
            text = part.ways[changes[k]].text
            text = text.replace("+ {c}", f"- {number[1:]}") if negative else text
            other = part.symbol + text.replace("{c}", constant)
            words.append(Difference(other, usual))
            other, usual = (MARK[0] + x + MARK[1] for x in (other, usual))
        else:
            other = usual
        yours.append(other)
        reference.append(usual)
    return "; ".join(yours), "; ".join(reference), tuple(words)
