"""One explanation of what a target returns, and the value that it predicts."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.dense.forms import FORMULA
from nceref.diagnosis.options import Option

GRADIENT_AXES = ("gradient", "gradient-factor")
"""Conventions of these axes leave the value as it is."""


@dataclass(frozen=True)
class Explanation:
    """Conventions that explain what was observed.

    Attributes
    ----------
    options : tuple of Option
        Conventions and what they are set to, values first, then gradients; none where the values are the reference's.
    cases, of : int
        Cases on which it can be told from the reference, and it fits; finite cases, all of which it fits.
    residual : float
        Largest distance, in units of the bound of the variant.
    gradient : bool
        Whether it explains the gradients too.
    gradient_words : tuple of DiagnosisPart
        What is wrong with the gradient of which input.
    remedy : str
        What to change, where that depends on what is done to the gradient; empty: what the conventions say.
    fresh : int
        Fresh calls that it has predicted as well; `of` is without them.
    apart : str
        Which cases are not explained by it, and what happens on them; empty where all are.
    holds : callable or None
        Whether judged gradients of other cases are as is said; None: those of the options.
    """

    options: tuple[Option, ...]
    cases: int
    of: int
    residual: float
    gradient: bool = True
    gradient_words: tuple[DiagnosisPart, ...] = ()
    remedy: str = ""
    fresh: int = 0
    apart: str = ""
    holds: Callable[[list[Any]], bool] | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The conventions."""
        return tuple(option.id for option in self.options)

    @property
    def is_formula(self) -> bool:
        """Whether a formula is what explains the values."""
        return FORMULA in self.ids

    @property
    def value_options(self) -> tuple[Option, ...]:
        """The options that change the value."""
        return tuple(option for option in self.options if option.axis not in GRADIENT_AXES)


def variant_value(analysis: CaseAnalysis, options: tuple[Option, ...]) -> tuple[Any, Any]:
    """Value of a variant on one case, with its factor and offset.

    `analysis`: the case. `options`: in the order of the closed list, so that a factor comes before an offset. `value,
    allowed`: flat, and how far a target with these conventions may be from it.
    """
    outside = [o for o in options if o.axis in ("factor", "offset")]
    value, allowed = analysis.answer(tuple(o for o in options if o not in outside))
    for option in outside:
        value, allowed = scaled_or_shifted(analysis, option, value, allowed)
    return value, allowed


def scaled_or_shifted(analysis: CaseAnalysis, option: Option, value: Any, allowed: Any) -> tuple[Any, Any]:
    """A value and what is allowed, with a factor or an offset.

    `option`: of the axis ``factor`` or ``offset``. `value` and `allowed`: of the variant without it; leading axes may
    hold several variants.
    """
    # The sum or product rounds once more, in the target and here.
    if option.axis == "offset":
        offset = analysis.offsets[option.value] if option.id == "offset-log-n" else option.value
        return value + offset, allowed + 4 * analysis.unit * abs(offset)
    factor = option.value if option.id == "outer-factor-constant" else analysis.factors.get(option.id, math.nan)
    return value * factor, abs(factor) * allowed + 4 * analysis.unit * abs(value * factor)
