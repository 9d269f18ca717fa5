"""Which convention of the gradient goes with an explanation of the values.

First conventions of the dense forms, which say what is detached; then what is seen input by input: zeros, a factor,
some rows, a difference along the rows only; then both at once.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.losses import differentiable
from nceref.output.words import out_of
from nceref.spec import Array, Scalar
from nceref.verification.dense import forms
from nceref.verification.dense.temperatures import temperature
from nceref.verification.diagnosis.case import FACTORS, CaseAnalysis
from nceref.verification.diagnosis.departure import named_part
from nceref.verification.diagnosis.explanation import Explanation, variant_value
from nceref.verification.diagnosis.features import where
from nceref.verification.diagnosis.gaps import listed
from nceref.verification.diagnosis.gradient_parts import PARTS, factors, in_words, is_sum
from nceref.verification.diagnosis.options import Option, options
from nceref.verification.judge import constants
from nceref.verification.simple_numbers import recognized

_CARRIED = 2.0
"""Times the bound: a factor that was read off one case carries the error of that case."""
EVIDENCE = 8.0
"""Bits by which the fit of a gradient convention must be surprising: there are not 2^8 of them."""
FAR = 64.0
"""How many bounds a gradient must be off before what is left along the rows is called radial."""
_ALONG_THE_ROWS = frozenset({"normalization-detached", "gradient-radial-only"})
WRONG = "value-right-gradient-wrong"
"""What is said of a gradient without a pattern."""
ARRAYS = ("first-input-detached", "keys-detached")
"""What it is called where the first array, or a later one, has no gradient."""
_FACTORS: Mapping[str, str] = {
    "T": "outer-factor-temperature",
    "2T": "outer-factor-2-temperature",
    "1/T": "outer-factor-inverse-temperature",
    "T / 0.07": "outer-factor-temperature-over-base",
    "N": "outer-factor-n",
}
"""Factors of a gradient that are other numbers in each case, as they are written."""


@dataclass(frozen=True, eq=False)
class JudgedGradient:
    """One judged gradient of one case."""

    analysis: CaseAnalysis
    name: str
    got: Any
    constant: bool


@dataclass(frozen=True)
class GradientFinding:
    """What is wrong with the gradient of one input.

    Attributes
    ----------
    id, words : str
        Of the pattern, and the rest of a sentence.
    residual : float or None
    holds : callable
        Whether a gradient of another case, with the fit of that case, has the pattern.
    """

    id: str
    words: str
    residual: float | None = None
    holds: "Callable[[GradientFit, JudgedGradient], bool]" = lambda fit, one: True


def with_gradients(explanation: Explanation, analyses: list[CaseAnalysis]) -> list[Explanation]:
    """The explanation with the conventions of the gradient that go with it.

    Parameters
    ----------
    explanation : Explanation
        What explains the values; without options where they are those of the reference.
    analyses : list of CaseAnalysis
        All finite cases.

    Returns
    -------
    list of Explanation
        Empty where nothing departs; with ``gradient`` False where the values are explained and the gradients are not.
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

    Parameters
    ----------
    explanation : Explanation
        Of `with_gradients`.
    analyses : list of CaseAnalysis
        Cases that it was not made from.
    """
    if explanation.holds is not None:
        return explanation.holds(analyses)
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    return GradientFit(explanation.options, judged).worst() <= 1


def patterns(analyses: Sequence[CaseAnalysis]) -> tuple[tuple[str, ...], str]:
    """What is seen of the gradients beside values that are those of the reference.

    Parameters
    ----------
    analyses : sequence of CaseAnalysis

    Returns
    -------
    ids : tuple of str
    words : str
    """
    fit = GradientFit((), [one for analysis in analyses for one in judged_gradients(analysis)])
    findings = _by_input(fit)
    return _named(findings, fit), _words(findings, fit)


def judged_gradients(analysis: CaseAnalysis) -> Iterator[JudgedGradient]:
    """The finite gradients that the reference has too, and those of constants, of which it has none.

    Parameters
    ----------
    analysis : CaseAnalysis

    Yields
    ------
    JudgedGradient
        In float64.
    """
    probe, outcome = analysis.probe, analysis.observation.outcome
    fixed = constants(probe)
    for name, got in outcome.grads.items():
        if name in outcome.unjudged or not np.all(np.isfinite(got)):
            continue
        if name in probe.grads and probe.bounds:
            if np.shape(got) == np.shape(probe.grads[name]):
                yield JudgedGradient(analysis, name, np.asarray(got, dtype=np.float64), False)
        elif name in fixed:
            yield JudgedGradient(analysis, name, np.asarray(got, dtype=np.float64), True)


class GradientFit:
    """Gradients of a variant on all cases, each computed when it is needed first."""

    def __init__(self, chosen: tuple[Option, ...], judged: list[JudgedGradient]) -> None:
        self.chosen, self.judged = chosen, judged
        self.deviations = {o.id: o.value for o in chosen}

    def expected(self, one: JudgedGradient) -> Any:
        """The gradient of the variant."""
        if one.constant and "constants-get-gradient" not in self.deviations:
            return np.zeros_like(one.got)
        if not self.chosen:
            return np.asarray(one.analysis.probe.grads[one.name])
        known, key = one.analysis.variants.gradients, (self.chosen, one.name)
        if key not in known:
            known[key] = np.asarray(self._variant(one))
        return known[key]

    def _variant(self, one: JudgedGradient) -> Any:
        analysis = one.analysis
        reduction, outer = analysis.probe.reduction, self._outer(analysis)
        return forms.gradient(analysis.form, analysis.inputs, self.deviations, one.name, reduction, outer)

    def _outer(self, analysis: CaseAnalysis) -> Any:
        """The factor as a function of the inputs: it may hold the temperature."""
        id = next((id for id in self.deviations if id in FACTORS), None)
        if id is None:
            constant = self.deviations.get("outer-factor-constant", 1.0)
            return None if constant == 1.0 else lambda inputs: constant
        return lambda inputs: FACTORS[id](
            temperature(inputs, self.deviations) if analysis.has_temperature else 1.0, analysis.samples
        )

    def slope(self, one: JudgedGradient, direction: Any) -> float:
        """The derivative of the variant along a direction."""
        analysis = one.analysis
        reduction, outer = analysis.probe.reduction, self._outer(analysis)
        return forms.slope(analysis.form, analysis.inputs, self.deviations, one.name, direction, reduction, outer)

    def allowed(self, one: JudgedGradient, want: Any = None) -> Any:
        """How far the target may be from the variant, or from another array of its size."""
        probe, analysis = one.analysis.probe, one.analysis
        if one.constant or probe.bounds is None:
            others = probe.bounds.grads.values() if probe.bounds and self.chosen else ()
            bound: Any = np.full_like(one.got, max((float(np.max(b)) for b in others), default=0.0))
        else:
            bound = np.asarray(probe.bounds.grads[one.name])
        if not self.chosen:
            return bound
        want = self.expected(one) if want is None else want
        size = float(np.max(np.abs(want), initial=0.0))
        plain = float(np.max(np.abs(probe.grads.get(one.name, want)), initial=0.0))
        inner = tuple(o for o in self.chosen if o.axis not in ("gradient", "gradient-factor", "factor", "offset"))
        rows = analysis.rows(tuple(o for o in inner if o.axis != "reduction"))
        growth = max(1.0, size / plain if plain > 0 else 1.0)
        growth *= max(1.0, (1 + rows.size) / (1 + analysis.rows(()).size))
        own = 16 * analysis.unit * (1 + rows.size) * (1 + rows.noise) * size
        return bound + growth * float(np.max(bound, initial=0.0)) * (growth > 1) + own

    def misfit(self, one: JudgedGradient, factor: float = 1.0) -> float:
        """Distance from `factor` times the variant's gradient, in units of what is allowed."""
        want, allowed = factor * self.expected(one), max(1.0, abs(factor)) * self.allowed(one)
        off = np.abs(one.got - want)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(off == 0, 0.0, off / allowed)
        return float(np.max(ratio, initial=0.0)) if np.all(np.isfinite(want)) else math.inf

    def worst(self, limit: float = 1.0) -> float:
        """Largest misfit; any number above the limit once one is."""
        worst = 0.0
        for one in self.judged:
            worst = max(worst, self.misfit(one))
            if not worst <= limit:
                break
        return worst


def _explained(explanation: Explanation, plain: GradientFit, analyses: list[CaseAnalysis]) -> list[Explanation]:
    """Explanations with one convention of the gradient, with what is seen input by input, or with a factor on both."""
    findings = _by_input(plain)
    ids, words = _named(findings, plain), _words(findings, plain)
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
            _with(explanation, plain, fit.chosen[-1:], w, words if ids == (fit.chosen[-1].id,) else "")
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
    ratios = {name: _ratio(seen, name) or 0.0 for name in {one.name for one in seen.judged if not one.constant}}
    scaled = all(fit.misfit(one, ratios.get(one.name, 1.0)) <= _CARRIED for one in judged)
    return scaled or all(fit.misfit(one) <= 1 or _is_radial(fit, one) for one in judged)


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
    ratios = {name: _ratio(fit, name) for name in names}
    if any(r is None for r in ratios.values()) or any(one.constant and np.any(one.got) for one in fit.judged):
        return
    worst = max(fit.misfit(one, 1.0 if one.constant else ratios[one.name] or 0.0) for one in fit.judged)
    off = {name: round(r, 6) for name, r in ratios.items() if r is not None and abs(r - 1) > 1e-6}
    if worst <= _CARRIED and off and len(set(off.values())) == 1:
        factor, whole = next(iter(off.values())), len(off) == len(ratios)
        id = {-1.0: "gradient-sign-flipped", 0.0: "gradient-zero"}.get(factor if whole else math.nan)
        words = f"factor {factor:.6g}" + ("" if whole else f" on {', '.join(sorted(off))}")
        yield Option(id or "gradient-constant-factor", None if id else words), worst / 2
    elif worst > FAR and all(fit.misfit(one) <= 1 or _is_radial(fit, one) for one in fit.judged):
        yield Option("gradient-radial-only"), 1.0


def _ratio(fit: GradientFit, name: str) -> float | None:
    """The factor of one input, from the case that has the largest gradient in units of its bound."""
    own = [one for one in fit.judged if one.name == name and not one.constant]
    size = [float(np.max(np.abs(fit.expected(one)) / (fit.allowed(one) + 1e-300), initial=0.0)) for one in own]
    best = own[int(np.argmax(size))]
    want = fit.expected(best)
    # Least squares over the entries of the case.
    square = float(np.sum(want * want))
    return None if not math.isfinite(square) or square == 0 else float(np.sum(best.got * want)) / square


def _by_input(fit: GradientFit) -> dict[str, GradientFinding | None]:
    """The first pattern that fits all cases of an input; None where its gradient is right on all of them."""
    by_name: dict[str, list[JudgedGradient]] = {}
    for one in fit.judged:
        by_name.setdefault(one.name, []).append(one)
    return {name: _finding(fit, judged) for name, judged in by_name.items()}


def _finding(fit: GradientFit, judged: list[JudgedGradient]) -> GradientFinding | None:
    failing = [one for one in judged if fit.misfit(one) > 1]
    if not failing:
        return None
    if judged[0].constant:
        return GradientFinding("constants-get-gradient", f"is not 0 {_where(failing, judged)}, and it is a constant")
    # The first that fits is named, the simplest first.
    for pattern in (_zero, _factor, _missing_rows, _radial, _sum_of_parts):
        finding = pattern(fit, judged, failing)
        if finding is not None:
            return finding
    return GradientFinding(
        WRONG, f"is wrong {_where(failing, judged)}{_right_rows(fit, failing)}{_example(fit, failing)}"
    )


def _right_rows(fit: GradientFit, failing: Sequence[JudgedGradient]) -> str:
    """The rows that are right on every failing case of several, where they have a name."""
    parts = {
        named_part(np.all(np.abs(one.got - fit.expected(one)) <= fit.allowed(one), axis=1), len(one.got))
        for one in failing
        if one.got.ndim == 2 and len(one.got) > 1
    }
    return f", and right in {parts.pop()} only" if len(parts) == 1 and "" not in parts else ""


def _where(failing: Sequence[JudgedGradient], judged: Sequence[JudgedGradient]) -> str:
    return where([one.analysis.observation for one in failing], [one.analysis.observation for one in judged])


def _example(fit: GradientFit, failing: list[JudgedGradient]) -> str:
    """By how much the first case is off whose right gradient is not 0."""
    for one in failing:
        want = fit.expected(one)
        size = float(np.max(np.abs(want)))
        if size > float(np.max(fit.allowed(one))):
            share = float(np.max(np.abs(one.got - want))) / size
            return f", and off by {share:.2g} of its largest entry on {one.analysis.probe.id}"
    return ""


def _zero(fit: GradientFit, judged: list[JudgedGradient], failing: list[JudgedGradient]) -> GradientFinding | None:
    if any(np.any(one.got != 0) for one in judged):
        return None
    words = f"is 0 on {out_of(len(judged), len(judged), 'case')}"
    return GradientFinding("gradient-zero", words, holds=lambda fit, one: not np.any(one.got))


def _factor(fit: GradientFit, judged: list[JudgedGradient], failing: list[JudgedGradient]) -> GradientFinding | None:
    """A constant that the best-conditioned case has, or a number of the case such as 1/N."""
    measured = _ratio(fit, judged[0].name)
    if measured is None:
        return None
    for words, factor in _factors(measured):
        carried = _CARRIED if words == f"{measured:.6g}" else 1.0
        by_case = [factor(one.analysis) for one in judged]
        if any(number is None for number in by_case):
            continue
        residual = max(fit.misfit(one, number or 0.0) for one, number in zip(judged, by_case, strict=True)) / carried
        if residual <= 1:
            flipped = words == "-1"
            count = f"on {out_of(len(judged), len(judged), 'case')}"
            text = f"has the other sign {count}" if flipped else f"is {words} times what it should be {count}"
            id = "gradient-sign-flipped" if flipped else "gradient-constant-factor"
            return GradientFinding(id, text, residual, partial(_has_factor, factor))
    return None


def _has_factor(factor: Callable[[CaseAnalysis], float | None], fit: GradientFit, one: JudgedGradient) -> bool:
    return fit.misfit(one, factor(one.analysis) or 0.0) <= _CARRIED


def _factors(measured: float) -> Iterator[tuple[str, Callable[[CaseAnalysis], float | None]]]:
    """How a factor is written, and what it is in a case; None where a case has no such number."""
    constant, words = recognized(measured)
    if constant:
        yield words, lambda analysis: constant
    for words, id in _FACTORS.items():
        yield words, partial(_known_factor, id)
    yield "1/N", lambda analysis: 1 / analysis.samples


def _known_factor(id: str, analysis: CaseAnalysis) -> float | None:
    return analysis.factors.get(id)


def _missing_rows(
    fit: GradientFit, judged: list[JudgedGradient], failing: list[JudgedGradient]
) -> GradientFinding | None:
    """Rows whose gradient is exactly 0 where it should not be, on every failing case, the rest being right."""
    parts = {_missing_part(fit, one) for one in failing}
    if None in parts:
        return None
    which = (parts.pop() if len(parts) == 1 else "") or "some rows"
    words = f"is 0 in {which} {_where(failing, judged)}"
    return GradientFinding("gradient-missing-rows", words, holds=partial(_misses, which))


def _missing_part(fit: GradientFit, one: JudgedGradient) -> str | None:
    """The name of the rows that are 0, empty for rows without a name; None where that is not all that is wrong."""
    if one.got.ndim < 1:
        return None
    axes = tuple(range(1, one.got.ndim))
    want, allowed = fit.expected(one), fit.allowed(one)
    missing = np.all(one.got == 0, axis=axes) & np.any(np.abs(want) > allowed, axis=axes)
    fits = np.all(np.abs(one.got - want) <= allowed, axis=axes)
    return None if not np.all(missing | fits) or np.all(missing) else named_part(missing, len(missing))


def _misses(which: str, fit: GradientFit, one: JudgedGradient) -> bool:
    if fit.misfit(one) <= 1:
        return True
    part = _missing_part(fit, one)
    return part == which or (part is not None and which == "some rows")


def _radial(fit: GradientFit, judged: list[JudgedGradient], failing: list[JudgedGradient]) -> GradientFinding | None:
    """A difference that is parallel to each row of the input."""
    if max(fit.misfit(one) for one in failing) < FAR or not all(_is_radial(fit, one) for one in judged):
        return None
    cases = _where(failing, judged)
    if "normalization-detached" in judged[0].analysis.form.conventions:
        detached = GradientFit((*fit.chosen, Option("normalization-detached")), judged)
        if detached.worst() <= 1:
            words = f"is what comes out where the lengths of the rows are constants, {cases}"
            return GradientFinding("normalization-detached", words, holds=_is_unprojected)
    words = f"is off along the rows only {cases}; normalizing the rows before hides it"
    return GradientFinding("gradient-radial-only", words, holds=lambda fit, one: _is_radial(fit, one))


def _is_unprojected(fit: GradientFit, one: JudgedGradient) -> bool:
    return GradientFit((*fit.chosen, Option("normalization-detached")), [one]).worst() <= 1


def _sum_of_parts(
    fit: GradientFit, judged: list[JudgedGradient], failing: list[JudgedGradient]
) -> GradientFinding | None:
    """Parts of the right gradient, each with a factor of its own, such as that through the positives."""
    ordered = sorted(judged, key=lambda one: -float(np.max(np.abs(fit.expected(one)) / (fit.allowed(one) + 1e-300))))
    for id, which in PARTS.items():
        if id not in judged[0].analysis.form.conventions or id in fit.deviations:
            continue
        rest = GradientFit((*fit.chosen, Option(id)), judged)
        top = ordered[:3]
        weights = factors([o.got for o in top], [_parts(fit, rest, o) for o in top], [fit.allowed(o) for o in top])
        if weights is not None and all(
            is_sum(one.got, _parts(fit, rest, one), weights, fit.allowed(one)) for one in ordered
        ):
            words = f"is {in_words(which, weights)} {_where(failing, judged)}"
            return GradientFinding("gradient-parts-scaled", words, holds=partial(_has_parts, id, weights))
    return None


def _parts(fit: GradientFit, rest: GradientFit, one: JudgedGradient) -> tuple[Any, Any]:
    return fit.expected(one) - rest.expected(one), rest.expected(one)


def _has_parts(id: str, weights: tuple[float, float], fit: GradientFit, one: JudgedGradient) -> bool:
    rest = GradientFit((*fit.chosen, Option(id)), [one])
    return is_sum(one.got, _parts(fit, rest, one), weights, fit.allowed(one))


def _is_radial(fit: GradientFit, one: JudgedGradient) -> bool:
    """Whether the gradient is right but for a multiple of each row; in one dimension every gradient would be."""
    declared = next((p for p in one.analysis.probe.loss.parameters if p.name == one.name), None)
    x = np.asarray(one.analysis.inputs.get(one.name))
    if one.constant or not isinstance(declared, Array) or not declared.embedding or x.ndim < 2 or x.shape[-1] < 2:
        return False
    x = x.reshape(-1, x.shape[-1])
    off, room = (np.reshape(a, x.shape) for a in (one.got - fit.expected(one), fit.allowed(one)))
    square = np.sum(x * x, axis=1, keepdims=True)
    along = np.sum(off * x, axis=1, keepdims=True) * x / np.where(square > 0, square, 1.0)
    # The bound, roundings of the projection, and what errors within the bound add along the row (Cauchy-Schwarz).
    slack = room + 8 * np.finfo(np.float64).eps * np.max(np.abs(off), axis=1, keepdims=True)
    tilt = np.abs(x) * np.linalg.norm(room, axis=1, keepdims=True) / np.sqrt(np.where(square > 0, square, 1.0))
    return bool(np.all(np.abs(off - along) <= 2 * slack + tilt))


def _named(findings: Mapping[str, GradientFinding | None], fit: GradientFit) -> tuple[str, ...]:
    """The ids of what is wrong; zeros are named by the inputs that get them."""
    wrong = {name: finding.id for name, finding in findings.items() if finding}
    zeros = [name for name, id in wrong.items() if id == "gradient-zero"]
    judged = {one.name for one in fit.judged if not one.constant}
    loss = fit.judged[0].analysis.probe.loss
    kinds: dict[str, str] = {}
    arrays = [p for p in loss.parameters if isinstance(p, Array) and p.name in differentiable(loss)]
    for number, p in enumerate(arrays):
        kinds[p.name] = "centers-detached" if p.like == "center" else ARRAYS[min(number, 1)]
    for q in loss.parameters:
        if isinstance(q, Scalar):
            kinds[q.name] = "temperature-detached" if q.name in INVERSE_TEMPERATURES else "bias-detached"
    # Where no input has a gradient none of them is detached: the graph is missing.
    kinds = {} if set(zeros) == judged else kinds
    return tuple(dict.fromkeys(kinds.get(name, id) if name in zeros else id for name, id in wrong.items()))


def _words(findings: Mapping[str, GradientFinding | None], fit: GradientFit) -> str:
    """What is wrong with which gradient, and which are right."""
    by_words: dict[str, list[str]] = {}
    for name, finding in findings.items():
        if finding:
            by_words.setdefault(finding.words, []).append(name)
    residuals = [f.residual for f in findings.values() if f and f.residual is not None]
    words = "; ".join(f"the gradient of {listed(names)} {text}" for text, names in by_words.items())
    words += f" (largest residual {max(residuals):.2g} of the bound)" if residuals else ""
    # Where a gradient is not finite somewhere, what is left of it is not called right.
    outcomes = [one.analysis.observation.outcome for one in fit.judged]
    nonfinite = {name for o in outcomes for name, grad in o.grads.items() if not np.all(np.isfinite(grad))}
    fine = [name for name, finding in findings.items() if finding is None and name not in nonfinite]
    return f"{words}; the gradient of {listed(fine)} is right" if fine else words


def _with(
    explanation: Explanation, plain: GradientFit, added: tuple[Option, ...], worst: float, words: str = ""
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
