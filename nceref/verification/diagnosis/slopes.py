"""Which convention of the gradient goes with a reading of the values: what is detached, scaled, flipped or missing."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.spec import Array
from nceref.verification.dense import forms
from nceref.verification.dense.temperatures import temperature
from nceref.verification.diagnosis.case import FACTORS, CaseAnalysis
from nceref.verification.diagnosis.options import Option, options
from nceref.verification.diagnosis.search import Reading, answer
from nceref.verification.judge import constants

EVIDENCE = 8.0
"""Bits by which the fit of a gradient convention must be surprising: there are not 2^8 of them."""
FAR = 64.0
"""How many bounds a gradient must be off before what is left along the rows is called radial."""
_ALONG_THE_ROWS = frozenset({"normalization-detached", "gradient-radial-only"})


@dataclass(frozen=True, eq=False)
class Slope:
    """One judged gradient of one case."""

    analysis: CaseAnalysis
    name: str
    got: Any
    constant: bool


def with_gradients(reading: Reading, analyses: list[CaseAnalysis]) -> list[Reading]:
    """The reading with the conventions of the gradient that go with it.

    Parameters
    ----------
    reading : Reading
        What explains the values; without ids where they are those of the reference.
    analyses : list of CaseAnalysis
        All finite cases.

    Returns
    -------
    list of Reading
        Empty where nothing departs; with ``gradient`` False where the values are explained and the gradients are not.
    """
    slopes = [slope for analysis in analyses for slope in _judged(analysis)]
    quantities = ("value", *sorted({f"grad.{slope.name}" for slope in slopes}))
    reading = replace(reading, quantities=quantities)
    fit = Fit(reading.options, slopes)
    worst = fit.worst()
    hidden = [o for o in reading.options if o.axis == "gradient"]
    if hidden and not (
        worst <= 1 and _surprising(fit, Fit(tuple(o for o in reading.options if o not in hidden), slopes))
    ):
        return []
    if worst <= 1:
        return [replace(reading, residual=max(reading.residual, worst))] if reading.ids else []
    found = list(_explained(reading, slopes, analyses))
    if found:
        return found[:2]
    unexplained = replace(reading, gradient=False)
    return [unexplained if reading.ids else _only(unexplained, (Option("value-right-gradient-wrong"),), slopes, 0.0)]


def _judged(analysis: CaseAnalysis) -> Iterator[Slope]:
    """The finite gradients that the reference has too, and those of constants, of which it has none."""
    probe, outcome = analysis.probe, analysis.observation.outcome
    fixed = constants(probe)
    for name, got in outcome.grads.items():
        if name in outcome.unjudged or not np.all(np.isfinite(got)):
            continue
        if name in probe.grads and probe.bounds:
            if np.shape(got) == np.shape(probe.grads[name]):
                yield Slope(analysis, name, np.asarray(got, dtype=np.float64), False)
        elif name in fixed:
            yield Slope(analysis, name, np.asarray(got, dtype=np.float64), True)


class Fit:
    """Gradients of a variant on all cases, computed when they are asked for."""

    def __init__(self, chosen: tuple[Option, ...], slopes: list[Slope]) -> None:
        self.chosen, self.slopes = chosen, slopes
        self.deviations = {o.id: o.value for o in chosen}
        self._known: dict[Slope, Any] = {}

    def expected(self, slope: Slope) -> Any:
        """The gradient of the variant."""
        if slope.constant and "constants-get-gradient" not in self.deviations:
            return np.zeros_like(slope.got)
        if slope not in self._known:
            if not self.chosen:
                self._known[slope] = np.asarray(slope.analysis.probe.grads[slope.name])
            else:
                self._known[slope] = np.asarray(self._variant(slope))
        return self._known[slope]

    def _variant(self, slope: Slope) -> Any:
        analysis = slope.analysis
        reduction, outer = analysis.probe.reduction, self._outer(analysis)
        return forms.slope(analysis.form, analysis.inputs, self.deviations, slope.name, reduction, outer)

    def _outer(self, analysis: CaseAnalysis) -> Any:
        """The factor as a function of the inputs: it may hold the temperature."""
        id = next((id for id in self.deviations if id in FACTORS), None)
        if id is None:
            constant = self.deviations.get("outer-factor-constant", 1.0)
            return None if constant == 1.0 else lambda inputs: constant
        return lambda inputs: FACTORS[id](
            temperature(inputs, self.deviations) if analysis.has_temperature else 1.0, analysis.samples
        )

    def allowed(self, slope: Slope) -> Any:
        """How far the target may be from the variant."""
        probe, analysis = slope.analysis.probe, slope.analysis
        if slope.constant or probe.bounds is None:
            others = probe.bounds.grads.values() if probe.bounds and self.chosen else ()
            bound: Any = np.full_like(slope.got, max((float(np.max(b)) for b in others), default=0.0))
        else:
            bound = np.asarray(probe.bounds.grads[slope.name])
        if not self.chosen:
            return bound
        want = self.expected(slope)
        size = float(np.max(np.abs(want), initial=0.0))
        plain = float(np.max(np.abs(probe.grads.get(slope.name, want)), initial=0.0))
        inner = tuple(o for o in self.chosen if o.axis not in ("gradient", "gradient-factor", "factor", "offset"))
        rows = analysis.rows(tuple(o for o in inner if o.axis != "reduction"))
        growth = max(1.0, size / plain if plain > 0 else 1.0)
        growth *= max(1.0, (1 + rows.size) / (1 + analysis.rows(()).size))
        own = 16 * analysis.unit * (1 + rows.size) * (1 + rows.noise) * size
        return bound + growth * float(np.max(bound, initial=0.0)) * (growth > 1) + own

    def misfit(self, slope: Slope, factor: float = 1.0) -> float:
        """Distance from `factor` times the variant's gradient, in units of what is allowed."""
        want, allowed = factor * self.expected(slope), max(1.0, abs(factor)) * self.allowed(slope)
        off = np.abs(slope.got - want)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(off == 0, 0.0, off / allowed)
        return float(np.max(ratio, initial=0.0)) if np.all(np.isfinite(want)) else math.inf

    def worst(self, limit: float = 1.0) -> float:
        """Largest misfit; any number above the limit once one is."""
        worst = 0.0
        for slope in self.slopes:
            worst = max(worst, self.misfit(slope))
            if not worst <= limit:
                break
        return worst


def _explained(reading: Reading, slopes: list[Slope], analyses: list[CaseAnalysis]) -> Iterator[Reading]:
    """Readings with one convention of the gradient, with a factor on it, or with both."""
    plain = Fit(reading.options, slopes)
    # The gradients that depart decide first.
    ordered = sorted(slopes, key=lambda s: -min(plain.misfit(s), 1e300))
    ids = tuple(id for id in analyses[0].form.conventions if id not in reading.ids)
    listed = [o for o in options((*ids, "constants-get-gradient")) if o.axis == "gradient"]
    fits = [(o, Fit((*reading.options, o), ordered)) for o in listed if _meant(o, ordered)]
    for option, fit in fits:
        worst = _after(fit, analyses)
        if worst <= 1 and _surprising(fit, plain):
            yield _only(reading, (option,), slopes, worst)
    for scaled in _scaled(plain):
        yield _only(reading, scaled[:1], slopes, scaled[1])
    for option, fit in fits:
        for scaled in _scaled(fit):
            # Both are about the part along the rows: one may be what the other is short of.
            if {option.id, scaled[0].id} <= _ALONG_THE_ROWS:
                continue
            if _surprising(fit, plain):
                yield _only(reading, (option, scaled[0]), slopes, scaled[1])


def _surprising(fit: Fit, plain: Fit) -> bool:
    """Whether the fit is no accident of wide bounds: without the convention the gradient would be far away."""
    bits = 0.0
    for slope in plain.slopes:
        if plain.misfit(slope) > 1:
            off = np.abs(fit.expected(slope) - plain.expected(slope)) / (fit.allowed(slope) + 1e-300)
            bits += float(np.log2(max(1.0, np.max(off, initial=0.0))))
    return bits >= EVIDENCE


def _meant(option: Option, slopes: list[Slope]) -> bool:
    if option.id != "constants-get-gradient":
        return True
    loss = slopes[0].analysis.probe.loss
    free = {p.name for p in loss.parameters if isinstance(p, Array) and p.like not in ("mask", "weights")}
    return any(s.constant and np.any(s.got) for s in slopes) and all(s.name in free for s in slopes if s.constant)


def _after(fit: Fit, analyses: list[CaseAnalysis]) -> float:
    """The worst misfit of the gradients, and of the values where the convention moves them too."""
    worst = fit.worst()
    if worst <= 1 and fit.chosen[-1].id in ("gradient-clamped",):
        chosen = tuple(sorted(fit.chosen, key=lambda o: o.rank))
        worst = max([worst, *(analysis.misfit(*answer(analysis, chosen)) for analysis in analyses)])
    return worst


def _scaled(fit: Fit) -> Iterator[tuple[Option, float]]:
    """A constant factor on the gradients: the same for all inputs that have one."""
    ratios = {name: _ratio(fit, name) for name in {s.name for s in fit.slopes if not s.constant}}
    if any(r is None for r in ratios.values()) or any(s.constant and np.any(s.got) for s in fit.slopes):
        return
    worst = max(fit.misfit(s, 1.0 if s.constant else ratios[s.name] or 0.0) for s in fit.slopes)
    off = {name: round(r, 6) for name, r in ratios.items() if r is not None and abs(r - 1) > 1e-6}
    if worst <= 2 and off and len(set(off.values())) == 1:
        factor = next(iter(off.values()))
        # Of single inputs without a gradient, or with the other sign, `backward` knows more: which they are.
        alone = all(o.axis == "gradient" for o in fit.chosen)
        if alone and len(off) < len(ratios) and factor in ((0.0,) if fit.chosen else (0.0, -1.0)):
            return
        told = f"factor {factor:.6g}" + ("" if len(off) == len(ratios) else f" on {', '.join(sorted(off))}")
        whole = len(off) == len(ratios)
        id = {-1.0: "gradient-sign-flipped", 0.0: "gradient-zero"}.get(factor if whole else math.nan)
        yield Option(id or "gradient-constant-factor", None if id else told), worst / 2
    elif fit.chosen and worst > FAR:
        along = max(_radial(fit, s) for s in fit.slopes)
        if along <= 1:
            yield Option("gradient-radial-only"), along


def _ratio(fit: Fit, name: str) -> float | None:
    """The factor of one input, from the case that has the largest gradient in units of its bound."""
    own = [s for s in fit.slopes if s.name == name and not s.constant]
    size = [float(np.max(np.abs(fit.expected(s)) / (fit.allowed(s) + 1e-300), initial=0.0)) for s in own]
    best = own[int(np.argmax(size))]
    want = fit.expected(best)
    square = float(np.sum(want * want))
    return None if not math.isfinite(square) or square == 0 else float(np.sum(best.got * want)) / square


def _radial(fit: Fit, slope: Slope) -> float:
    """How far the gradient is from right but for a multiple of each row, in units of what is allowed."""
    rows = slope.analysis.inputs.get(slope.name)
    embedding = any(
        isinstance(p, Array) and p.embedding and p.name == slope.name for p in slope.analysis.probe.loss.parameters
    )
    off = slope.got - fit.expected(slope)
    if slope.constant or not embedding or rows is None:
        return fit.misfit(slope)
    along = np.sum(off * rows, axis=-1, keepdims=True) / np.sum(rows * rows, axis=-1, keepdims=True)
    room = 4 * fit.allowed(slope) + 16 * slope.analysis.unit * np.abs(along * rows)
    return float(np.max(np.abs(off - along * rows) / (room + 1e-300), initial=0.0))


def _only(reading: Reading, added: tuple[Option, ...], slopes: list[Slope], worst: float) -> Reading:
    """The reading with conventions of the gradient; without any of the value it counts the cases of the gradients."""
    chosen = (*reading.options, *added)
    told = ", ".join(t for t in (reading.detail, *(o.told for o in added)) if t)
    wrong = {id(s.analysis) for s in slopes if Fit(reading.options, [s]).worst() > 1}
    return replace(
        reading, ids=tuple(o.id for o in chosen), options=chosen, detail=told, residual=max(reading.residual, worst),
        cases=reading.cases if reading.ids else len(wrong),
    )  # fmt: skip
