"""What is done to a gradient on its way back, in words: the edges, and what each of them should carry."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import listed
from nceref.diagnosis.gradient_fit import EVERY, OF_VARIANT, Factor, GradientFit
from nceref.diagnosis.options import Option

FLIPPED = "gradient-sign-flipped"
_SCALAR = "scalar-ignored"
WORDED = frozenset({"gradient-parts-scaled", "gradient-constant-factor", FLIPPED, OF_VARIANT})
"""Conventions whose remedy depends on what is done to the gradient."""
_SYMBOLS = {"N": "samples", "S": "the logit scale", "|x|": "the length of each row"}
"""What a factor is made of, but for T, the temperature."""
_WEIGHTED = "the rows weighted by "
_TRANSPOSED = "the transpose for "
_TRANSPOSE = "Transpose the gradient by the similarities for the candidates, and not for the anchors."
_MAXIMUM = "Let the gradient pass through the maximum in both places, or in none."
_OF_ITS_OWN: Mapping[tuple[str, float], tuple[str, str]] = {
    ("the transpose by the candidates", 0.0): (
        "the gradient of the rows as candidates is G A in place of G^T A (A: the anchors; G: the gradient by the"
        " similarities)",
        _TRANSPOSE,
    ),
    ("the transpose by the anchors", 0.0): (
        "the gradient of the rows as anchors is G^T C in place of G C (C: the candidates; G: the gradient by the"
        " similarities)",
        _TRANSPOSE,
    ),
    ("the mean over the positives", 0.0): (
        "the gradient by each positive lacks the division by the number of positives of its anchor",
        "Divide the gradient by each positive by the number of positives of its anchor.",
    ),
    ("the maximum that is subtracted", 1.0): (
        "the gradient passes through the maximum that is subtracted, and not through the same maximum where it is added"
        " again",
        _MAXIMUM,
    ),
    ("the maximum that is added again", 1.0): (
        "the gradient passes through the maximum that is added again, and not through the same maximum where it is"
        " subtracted",
        _MAXIMUM,
    ),
}
"""Edges and factors that have a sentence of their own, and a remedy."""


def in_words(done: Sequence[Any], usual: Mapping[str, float]) -> str:
    """The conventions, or factors on edges, as sentences.

    `usual`: the factor that each edge of the loss has.
    """
    return "; ".join(said for said, _ in _sentences(done, usual))


def remedies(done: Sequence[Any], usual: Mapping[str, float]) -> str:
    """Advice what to change, a sentence for each thing that is done to the gradient; parameters as for `in_words`."""
    return " ".join(dict.fromkeys(remedy for _, remedy in _sentences(done, usual)))


_TOGETHER: Mapping[frozenset[tuple[str, float]], tuple[str, str]] = {
    frozenset({("the floor of the estimate", 0.0), ("the estimate at its floor", 1.0)}): (
        "where the estimate is held at its floor, a gradient passes through it as if it were not; none should",
        "Return the maximum of both as it is (torch.maximum, clamp): no estimate plus a detached difference.",
    ),
}
"""Factors on several edges that are one change."""


def _sentences(done: Sequence[Any], usual: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Sentences on what is done to the gradient, each with its remedy; edges with one factor share both."""
    parts = {(one[0], one[1].constant) for one in done if not isinstance(one, Option)}
    for several, sentence in _TOGETHER.items():
        if several <= parts:
            yield sentence
            done = [one for one in done if isinstance(one, Option) or (one[0], one[1].constant) not in several]
    alike: dict[tuple[str, str], list[str]] = {}
    for one in done:
        if isinstance(one, Option):
            yield _of_option(one)
        else:
            edge, factor = one
            alike.setdefault(_patterns(edge, factor, usual), []).append("every input" if edge == EVERY else edge)
    for (said, remedy), names in alike.items():
        yield said.replace("@", listed(names)), remedy.replace("@", listed(names))


def _of_option(option: Option) -> tuple[str, str]:
    if option.id != OF_VARIANT:
        return f"the gradient is that with {CONVENTIONS[option.id].phrase}", CONVENTIONS[option.id].fix
    derive = "Derive the gradient from the formula of the value."
    if not option.value:
        return "the gradient is otherwise that of the reference", "Leave the rest of the gradient as it is."
    # A scalar is named by its value alone.
    setting = ", ".join(o.setting for o in option.value if o.setting and o.id != _SCALAR)
    phrases = listed(
        [f"{o.setting} whatever is passed" if o.id == _SCALAR else CONVENTIONS[o.id].phrase for o in option.value]
    )
    said = f"the gradient is that of the loss with {phrases}{f' ({setting})' if setting else ''}"
    return said, " ".join([derive, "In backward:", *(CONVENTIONS[o.id].fix for o in option.value)])


def _patterns(edge: str, factor: Factor, usual: Mapping[str, float]) -> tuple[str, str]:
    """A sentence about an edge and its remedy, in whose place both have an @."""
    if (own := _OF_ITS_OWN.get((edge, factor.constant))) and not factor.powers:
        return own
    rows = f" in {factor.rows}" if factor.rows else ""
    is_input = edge == EVERY or not edge.startswith("the ")
    if factor.constant == 0:
        if is_input:
            return f"the gradient of @ is 0{rows}", f"Let the gradient reach @{rows}."
        if edge.startswith(_WEIGHTED):
            by = edge.removeprefix(_WEIGHTED)
            of = " (p: the probability of its positive)" if "p" in by.split() else ""
            return f"the gradient of each row is multiplied by {by}{of}", f"Do not weigh the rows by {by} in backward."
        if edge.startswith(_TRANSPOSED):
            name = edge.removeprefix(_TRANSPOSED)
            return (
                f"the gradient of {name} is taken with G for G^T, or G^T for G (G: the gradient by the similarities)",
                "Multiply G by the other input for the input of the rows, and G^T by it for the input of the columns.",
            )
        if f"past {edge}" in usual:
            said = "the gradient passes straight through @, without its derivative"
            fix = "Let the gradient pass through @ itself: no part of it under no_grad or detach, and its derivative in"
            return said, f"{fix} a backward by hand."
        fix = "Let the gradient pass through @: no detach there, and its part in a backward by hand."
        return "no gradient passes through @; it should", fix
    if usual.get(edge, 1.0) == 0:
        times = "" if factor == Factor(1.0) else f", {factor} times"
        said = f"a gradient reaches @{times}" if is_input else f"a gradient passes through @{times}"
        return f"{said}; none should", "Detach @."
    what = f"{'of' if is_input else 'through'} @"
    if factor == Factor(-1.0):
        flipped = CONVENTIONS[FLIPPED].fix if edge == EVERY else f"Turn the sign of the gradient {what}."
        return f"the gradient {what} has the other sign", flipped
    meant = "; ".join(f"{symbol}: {words}" for symbol, words in _SYMBOLS.items() if symbol in str(factor))
    said = f"the gradient {what} is {factor} times what it should be{rows}{f' ({meant})' * bool(meant)}"
    mend = f"Multiply @ by {factor.inverse}" if str(factor).startswith("1/") else f"Divide @ by {factor}"
    mend = mend.replace("@", f"the gradient {what}{rows}", 1)
    return said, f"{mend}: look for a factor that value and gradient do not share."


def right_ones(plain: GradientFit, misfits: Mapping[int, float]) -> Iterator[DiagnosisPart]:
    """The inputs whose gradient is right on all cases."""
    names = dict.fromkeys(one.name for one in plain.judged)
    wrong = {one.name for one in plain.judged if misfits[id(one)] > 1}
    # Where a gradient is not finite somewhere, what is left of it is not called right.
    outcomes = [one.analysis.observation.outcome for one in plain.judged]
    wrong |= {name for o in outcomes for name, grad in o.grads.items() if not np.all(np.isfinite(grad))}
    fine = [name for name in names if name not in wrong]
    # Beside a value that is another one, what fits is the gradient of that.
    like = "is that of this value" if plain.chosen and plain.deviations.get(OF_VARIANT) != () else "is right"
    if fine:
        yield DiagnosisPart(f"the gradient of {listed(fine)} {like}", "", "right")
