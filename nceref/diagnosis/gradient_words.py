"""What is done to a gradient on its way back, in words: the edges, and what each of them should carry."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import listed
from nceref.diagnosis.gradient_fit import EVERY, OF_VARIANT, Factor, GradientFit
from nceref.diagnosis.options import Option

_OF_ITS_OWN: Mapping[tuple[str, float], str] = {
    (
        "the transpose by the candidates",
        0.0,
    ): "the gradient of the rows as candidates is that by the similarities"
    " times the anchors; it takes the transpose of the former",
    (
        "the transpose by the anchors",
        0.0,
    ): "the gradient of the rows as anchors takes the transpose of that by the"
    " similarities; it takes the matrix itself",
    ("the maximum that is subtracted", 1.0): "the gradient passes through the maximum that is subtracted, and not"
    " through the same maximum where it is added again",
    ("the maximum that is added again", 1.0): "the gradient passes through the maximum that is added again, and not"
    " through the same maximum where it is subtracted",
}
"""Edges and factors that have a sentence of their own."""


def in_words(done: Sequence[Any], usual: Mapping[str, float]) -> str:
    """The conventions, or factors on edges, as sentences.

    `usual`: the factor that each edge of the loss has.
    """
    if isinstance(done[0], Option):
        return _of_option(done[0])
    alike: dict[str, list[str]] = {}
    for edge, factor in done:
        alike.setdefault(_pattern(edge, factor, usual), []).append("every input" if edge == EVERY else edge)
    return "; ".join(pattern.replace("@", listed(names)) for pattern, names in alike.items())


def _of_option(option: Option) -> str:
    if option.id != OF_VARIANT:
        return f"the gradient is that with {CONVENTIONS[option.id].phrase}"
    if not option.value:
        return "the gradient is that of the reference, not of this value"
    setting = ", ".join(o.setting for o in option.value if o.setting)
    phrases = listed([CONVENTIONS[o.id].phrase for o in option.value])
    return f"the gradient is that of the loss with {phrases}{f' ({setting})' if setting else ''}"


def _pattern(edge: str, factor: Factor, usual: Mapping[str, float]) -> str:
    """A sentence about an edge, in whose place it has an @."""
    if (own := _OF_ITS_OWN.get((edge, factor.constant))) and not factor.powers:
        return own
    rows = f" in {factor.rows}" if factor.rows else ""
    is_input = edge == EVERY or not edge.startswith("the ")
    if factor.constant == 0:
        if is_input:
            return f"the gradient of @ is 0{rows}"
        if f"past {edge}" in usual:
            return "the gradient passes straight through @, without its derivative"
        return "no gradient passes through @; it should"
    if usual.get(edge, 1.0) == 0:
        times = "" if factor == Factor(1.0) else f", {factor} times"
        return f"a gradient passes through @{times}; none should"
    what = "of @" if is_input else "through @"
    if factor == Factor(-1.0):
        return f"the gradient {what} has the other sign"
    return f"the gradient {what} is {factor} times what it should be{rows}"


def right_ones(plain: GradientFit, misfits: Mapping[int, float]) -> Iterator[DiagnosisPart]:
    """The inputs whose gradient is right on all cases."""
    names = dict.fromkeys(one.name for one in plain.judged)
    wrong = {one.name for one in plain.judged if misfits[id(one)] > 1}
    # Where a gradient is not finite somewhere, what is left of it is not called right.
    outcomes = [one.analysis.observation.outcome for one in plain.judged]
    wrong |= {name for o in outcomes for name, grad in o.grads.items() if not np.all(np.isfinite(grad))}
    fine = [name for name in names if name not in wrong]
    # Beside a value that is another one, what fits is the gradient of that.
    like = "is that of this value" if plain.chosen else "is right"
    if fine:
        yield DiagnosisPart(f"the gradient of {listed(fine)} {like}", "", "right")
