"""What is seen of the gradient of one input: zeros, a factor, some rows, a difference along the rows, parts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.departure import named_part
from nceref.diagnosis.features import where
from nceref.diagnosis.gaps import listed
from nceref.diagnosis.gradient_fit import GradientFit, JudgedGradient
from nceref.diagnosis.gradient_parts import PARTS, factors, in_words, is_sum
from nceref.diagnosis.options import Option
from nceref.diagnosis.simple_numbers import recognized
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.output.limits import of_the_bound
from nceref.output.words import out_of
from nceref.spec import Array, Scalar

CARRIED = 2.0
"""Times the bound: a factor that was read off one case carries the error of that case."""
FAR = 64.0
"""How many bounds a gradient must be off before what is left along the rows is called radial."""
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


@dataclass(frozen=True)
class GradientFinding:
    """What is wrong with the gradient of one input.

    Attributes
    ----------
    id, words, cases : str
        Of the pattern, the rest of a sentence, and where it is seen.
    residual : float or None
    holds : callable
        Whether a gradient of another case, with the fit of that case, has the pattern.
    """

    id: str
    words: str
    cases: str
    residual: float | None = None
    holds: "Callable[[GradientFit, JudgedGradient], bool]" = lambda fit, one: True


def ratio_of(fit: GradientFit, name: str) -> float | None:
    """The factor of one input, from the case that has the largest gradient in units of its bound."""
    own = [one for one in fit.judged if one.name == name and not one.constant]
    size = [float(np.max(np.abs(fit.expected(one)) / (fit.allowed(one) + 1e-300), initial=0.0)) for one in own]
    best = own[int(np.argmax(size))]
    want = fit.expected(best)
    # Least squares over the entries of the case.
    square = float(np.sum(want * want))
    return None if not math.isfinite(square) or square == 0 else float(np.sum(best.got * want)) / square


def findings_of(fit: GradientFit) -> dict[str, GradientFinding | None]:
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
        return GradientFinding("constants-get-gradient", "is not 0", f"{_where(failing, judged)}, and it is a constant")
    # The first that fits is named, the simplest first.
    for pattern in (_zero, _factor, _missing_rows, _radial, _sum_of_parts):
        finding = pattern(fit, judged, failing)
        if finding is not None:
            return finding
    cases = f"{_where(failing, judged)}{_right_rows(fit, failing)}{_example(fit, failing)}"
    return GradientFinding(WRONG, "is wrong", cases)


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
    return GradientFinding("gradient-zero", "is 0", _on_all(judged), holds=lambda fit, one: not np.any(one.got))


def _on_all(judged: Sequence[JudgedGradient]) -> str:
    return f"on {out_of(len(judged), len(judged), 'case')}"


def _factor(fit: GradientFit, judged: list[JudgedGradient], failing: list[JudgedGradient]) -> GradientFinding | None:
    """A constant that the best-conditioned case has, or a number of the case such as 1/N."""
    measured = ratio_of(fit, judged[0].name)
    if measured is None:
        return None
    for words, factor in _factors(measured):
        carried = CARRIED if words == f"{measured:.6g}" else 1.0
        by_case = [factor(one.analysis) for one in judged]
        if any(number is None for number in by_case):
            continue
        residual = max(fit.misfit(one, number or 0.0) for one, number in zip(judged, by_case, strict=True)) / carried
        if residual <= 1:
            flipped = words == "-1"
            text = "has the other sign" if flipped else f"is {words} times what it should be"
            id = "gradient-sign-flipped" if flipped else "gradient-constant-factor"
            return GradientFinding(id, text, _on_all(judged), residual, partial(_has_factor, factor))
    return None


def _has_factor(factor: Callable[[CaseAnalysis], float | None], fit: GradientFit, one: JudgedGradient) -> bool:
    return fit.misfit(one, factor(one.analysis) or 0.0) <= CARRIED


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
    cases = _where(failing, judged)
    return GradientFinding("gradient-missing-rows", f"is 0 in {which}", cases, holds=partial(_misses, which))


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
    if max(fit.misfit(one) for one in failing) < FAR or not all(is_radial(fit, one) for one in judged):
        return None
    cases = _where(failing, judged)
    if "normalization-detached" in judged[0].analysis.form.conventions:
        detached = GradientFit((*fit.chosen, Option("normalization-detached")), judged)
        if detached.worst() <= 1:
            words = "takes the lengths of the rows for constants"
            return GradientFinding("normalization-detached", words, cases, holds=_is_unprojected)
    cases += ", and normalizing the rows before hides it"
    return GradientFinding(
        "gradient-radial-only", "is off along the rows only", cases, holds=lambda fit, one: is_radial(fit, one)
    )


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
        if weights is not None and all(_is_sum(fit, rest, one, weights) for one in judged):
            words, cases = f"is {in_words(which, weights)}", _where(failing, judged)
            return GradientFinding("gradient-parts-scaled", words, cases, holds=partial(_has_parts, id, weights))
    return None


def _parts(fit: GradientFit, rest: GradientFit, one: JudgedGradient) -> tuple[Any, Any]:
    return fit.expected(one) - rest.expected(one), rest.expected(one)


def _has_parts(id: str, weights: tuple[float, float], fit: GradientFit, one: JudgedGradient) -> bool:
    rest = GradientFit((*fit.chosen, Option(id)), [one])
    return _is_sum(fit, rest, one, weights)


def _is_sum(fit: GradientFit, rest: GradientFit, one: JudgedGradient, weights: tuple[float, float]) -> bool:
    return is_sum(one.got, _parts(fit, rest, one), weights, fit.allowed(one))


def is_radial(fit: GradientFit, one: JudgedGradient) -> bool:
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


def names_of(findings: Mapping[str, GradientFinding | None], fit: GradientFit) -> tuple[str, ...]:
    """The ids of what is wrong; zeros are named by the inputs that get them."""
    wrong = {name: finding.id for name, finding in findings.items() if finding}
    zeros = [name for name, id in wrong.items() if id == "gradient-zero"]
    judged = {one.name for one in fit.judged if not one.constant}
    loss = fit.judged[0].analysis.probe.loss
    kinds: dict[str, str] = {}
    arrays = [p for p in loss.parameters if isinstance(p, Array) and p.name in loss.differentiable]
    for number, p in enumerate(arrays):
        kinds[p.name] = "centers-detached" if p.like == "center" else ARRAYS[min(number, 1)]
    for q in loss.parameters:
        if isinstance(q, Scalar):
            kinds[q.name] = "temperature-detached" if q.name in INVERSE_TEMPERATURES else "bias-detached"
    # Where no input has a gradient none of them is detached: the graph is missing.
    kinds = {} if set(zeros) == judged else kinds
    return tuple(dict.fromkeys(kinds.get(name, id) if name in zeros else id for name, id in wrong.items()))


def words_of(findings: Mapping[str, GradientFinding | None], fit: GradientFit) -> tuple[DiagnosisPart, ...]:
    """What is wrong with which gradient, and which are right."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, finding in findings.items():
        if finding:
            alike.setdefault((finding.words, finding.cases), []).append(name)
    residuals = [f.residual for f in findings.values() if f and f.residual is not None]
    wrong = [DiagnosisPart(f"the gradient of {listed(names)} {text}", cases) for (text, cases), names in alike.items()]
    if residuals:
        worst = f" (errors {of_the_bound(max(residuals))})"
        wrong[-1] = replace(wrong[-1], cases=wrong[-1].cases + worst)
    # Where a gradient is not finite somewhere, what is left of it is not called right.
    outcomes = [one.analysis.observation.outcome for one in fit.judged]
    nonfinite = {name for o in outcomes for name, grad in o.grads.items() if not np.all(np.isfinite(grad))}
    fine = [name for name, finding in findings.items() if finding is None and name not in nonfinite]
    # Beside a value that is another one, what fits is the gradient of that.
    like = "is that of this value" if fit.chosen else "is right"
    right = [DiagnosisPart(f"the gradient of {listed(fine)} {like}", "", "right")] if fine else []
    return *wrong, *right
