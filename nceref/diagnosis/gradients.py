"""Which convention of the gradient goes with an explanation of the values.

First conventions of the dense forms, which say what is detached; then what is seen input by input; then both at once.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.explanation import Explanation, variant_value
from nceref.diagnosis.gradient_fit import GradientFit, JudgedGradient, judged_gradients
from nceref.diagnosis.gradient_patterns import (
    CARRIED,
    FAR,
    WRONG,
    GradientFinding,
    findings_of,
    is_radial,
    names_of,
    ratio_of,
    words_of,
)
from nceref.diagnosis.options import Option, options
from nceref.spec import Array

EVIDENCE = 8.0
"""Bits by which the fit of a gradient convention must be surprising: there are not 2^8 of them."""
_ALONG_THE_ROWS = frozenset({"normalization-detached", "gradient-radial-only"})


def with_gradients(explanation: Explanation, analyses: list[CaseAnalysis]) -> list[Explanation]:
    """The explanation with the conventions of the gradient that go with it.

    `explanation`: what explains the values; without options where they are those of the reference. `analyses`: all
    finite cases. Result: empty where nothing departs; with ``gradient`` False where the values are explained and the
    gradients are not.
    """
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    fit = GradientFit(explanation.options, judged)
    worst = fit.worst()
    # A convention of the gradient shows in the value by what cancels only, so the gradient has to prove it.
    hidden = [o for o in explanation.options if o.axis == "gradient"]
    if hidden:
        visible = tuple(o for o in explanation.options if o not in hidden)
        if worst > 1 or not _surprising(fit, GradientFit(visible, judged)):
            return []
    if worst <= 1:
        return [replace(explanation, residual=max(explanation.residual, worst))] if explanation.options else []
    return _explained(explanation, fit, analyses)


def gradients_hold(explanation: Explanation, analyses: list[CaseAnalysis]) -> bool:
    """Whether other cases have the gradients of an explanation.

    `explanation`: of `with_gradients`. `analyses`: cases that it was not made from.
    """
    if explanation.holds is not None:
        return explanation.holds(analyses)
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    return GradientFit(explanation.options, judged).worst() <= 1


def _explained(explanation: Explanation, plain: GradientFit, analyses: list[CaseAnalysis]) -> list[Explanation]:
    """Explanations with one convention of the gradient, with what is seen input by input, or with a factor on both."""
    findings = findings_of(plain)
    ids, words = names_of(findings, plain), words_of(findings, plain)
    # The gradients that depart decide first.
    ordered = sorted(plain.judged, key=lambda one: -min(plain.misfit(one), 1e300))
    known = tuple(id for id in analyses[0].form.conventions if id not in explanation.ids)
    fits = [
        GradientFit((*explanation.options, o), ordered)
        for o in options(known)
        if o.axis == "gradient" and o.id != "constants-get-gradient"
    ]
    fits += _with_constants(explanation, ordered)
    worst = [_after(fit, analyses) for fit in fits]
    # A convention alone goes before everything with a factor.
    whole = [(fit, w) for fit, w in zip(fits, worst, strict=True) if w <= 1 and _surprising(fit, plain)]
    if whole:
        return [
            _with(explanation, plain, fit.chosen[-1:], w, words if ids == (fit.chosen[-1].id,) else ())
            for fit, w in whole[:2]
        ]
    residual = max((f.residual for f in findings.values() if f and f.residual is not None), default=0.0)
    own = tuple(sorted((Option(id) for id in ids if id != WRONG), key=lambda o: o.rank))
    by_input = replace(
        _with(explanation, plain, own, residual, words), holds=partial(_patterns_hold, plain.chosen, findings)
    )
    # One pattern is simpler than a convention with a factor, and that is simpler than several patterns.
    if WRONG not in ids and len(ids) == 1 and own[0].axis == "gradient-factor":
        return [by_input]
    both = _with_factor(explanation, plain, fits)
    if both:
        return both[:2]
    if WRONG not in ids:
        return [by_input]
    # A pattern of some inputs does not explain the others; beside a convention of the value words are enough.
    own = () if explanation.value_options else (Option(WRONG),)
    return [replace(_with(explanation, plain, own, residual, words), holds=by_input.holds, gradient=False)]


def _with_factor(explanation: Explanation, plain: GradientFit, fits: Sequence[GradientFit]) -> list[Explanation]:
    """Explanations with a convention of the gradient and a factor, or a difference along the rows."""
    return [
        replace(_with(explanation, plain, (fit.chosen[-1], scaled), w), holds=partial(_scaled_holds, fit))
        for fit in fits
        for scaled, w in _scaled(fit)
        # Both are about the part along the rows: one may be what the other is short of.
        if not {fit.chosen[-1].id, scaled.id} <= _ALONG_THE_ROWS and _surprising(fit, plain)
    ]


def _patterns_hold(
    chosen: tuple[Option, ...], findings: Mapping[str, GradientFinding | None], analyses: list[CaseAnalysis]
) -> bool:
    """Whether the gradients of other cases have the patterns, input by input, and are right where there is none."""
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    fit = GradientFit(chosen, judged)
    return all(
        fit.misfit(one) <= 1 if (finding := findings.get(one.name)) is None else finding.holds(fit, one)
        for one in judged
    )


def _scaled_holds(seen: "GradientFit", analyses: list[CaseAnalysis]) -> bool:
    """Whether a convention with the factors of the corpus, or off along the rows, is what other cases have."""
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    fit = GradientFit(seen.chosen, judged)
    ratios = {name: ratio_of(seen, name) or 0.0 for name in {one.name for one in seen.judged if not one.constant}}
    scaled = all(fit.misfit(one, ratios.get(one.name, 1.0)) <= CARRIED for one in judged)
    return scaled or all(fit.misfit(one) <= 1 or is_radial(fit, one) for one in judged)


def _surprising(fit: GradientFit, plain: GradientFit) -> bool:
    """Whether the fit is no accident of wide bounds: without the convention the gradient would be far away."""
    bits = 0.0
    for one in plain.judged:
        if plain.misfit(one) > 1:
            off = np.abs(fit.expected(one) - plain.expected(one)) / (fit.allowed(one) + 1e-300)
            bits += float(np.log2(max(1.0, np.max(off, initial=0.0))))
    return bits >= EVIDENCE


def _with_constants(explanation: Explanation, judged: list[JudgedGradient]) -> list[GradientFit]:
    """The gradient that constants would have, where they get one at all."""
    loss = judged[0].analysis.probe.loss
    free = {p.name for p in loss.parameters if isinstance(p, Array) and p.like not in ("mask", "weights")}
    touched = any(one.constant and np.any(one.got) for one in judged)
    if not touched or not all(one.name in free for one in judged if one.constant):
        return []
    return [GradientFit((*explanation.options, Option("constants-get-gradient")), judged)]


def _after(fit: GradientFit, analyses: list[CaseAnalysis]) -> float:
    """The worst misfit of the gradients, and of the values where the convention moves them too."""
    worst = fit.worst()
    if worst <= 1 and fit.chosen[-1].id == "gradient-clamped":
        chosen = tuple(sorted(fit.chosen, key=lambda o: o.rank))
        worst = max([worst, *(analysis.misfit(*variant_value(analysis, chosen)) for analysis in analyses)])
    return worst


def _scaled(fit: GradientFit) -> Iterator[tuple[Option, float]]:
    """A factor beside a convention, the same for all inputs that have one; or a difference along the rows."""
    names = {one.name for one in fit.judged if not one.constant}
    ratios = {name: ratio_of(fit, name) for name in names}
    if any(r is None for r in ratios.values()) or any(one.constant and np.any(one.got) for one in fit.judged):
        return
    worst = max(fit.misfit(one, 1.0 if one.constant else ratios[one.name] or 0.0) for one in fit.judged)
    off = {name: round(r, 6) for name, r in ratios.items() if r is not None and abs(r - 1) > 1e-6}
    if worst <= CARRIED and off and len(set(off.values())) == 1:
        factor, whole = next(iter(off.values())), len(off) == len(ratios)
        id = {-1.0: "gradient-sign-flipped", 0.0: "gradient-zero"}.get(factor if whole else math.nan)
        words = f"factor {factor:.6g}" + ("" if whole else f" on {', '.join(sorted(off))}")
        yield Option(id or "gradient-constant-factor", None if id else words), worst / 2
    elif worst > FAR and all(fit.misfit(one) <= 1 or is_radial(fit, one) for one in fit.judged):
        yield Option("gradient-radial-only"), 1.0


def _with(
    explanation: Explanation,
    plain: GradientFit,
    added: tuple[Option, ...],
    worst: float,
    words: tuple[DiagnosisPart, ...] = (),
) -> Explanation:
    """The explanation with conventions of the gradient; without any of the value it counts the gradients' cases."""
    wrong = {id(one.analysis) for one in plain.judged if plain.misfit(one) > 1}
    return replace(
        explanation,
        options=(*explanation.options, *added),
        residual=max(explanation.residual, worst),
        cases=explanation.cases if explanation.options else len(wrong),
        gradient_words=words,
    )
