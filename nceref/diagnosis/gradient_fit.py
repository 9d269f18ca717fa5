"""The gradients of a variant on every case, beside those of a target."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.judge import constants
from nceref.diagnosis.case import FACTORS, CaseAnalysis
from nceref.diagnosis.dense import forms
from nceref.diagnosis.dense.temperatures import temperature
from nceref.diagnosis.options import Option

ENTRIES = 5000
"""Entries of a gradient up to which that of a variant is computed entry by entry: the steps are a square of this."""
DIRECTIONS = 2
"""Along which larger ones are compared."""


@dataclass(frozen=True, eq=False)
class JudgedGradient:
    """One judged gradient of one case."""

    analysis: CaseAnalysis
    name: str
    got: Any
    constant: bool

    @property
    def is_long(self) -> bool:
        """Whether it is compared along directions."""
        return bool(self.analysis.probe.is_large and self.got.size > ENTRIES)

    @property
    def directions(self) -> list[Any]:
        """Signs, and nothing else: no entry weighs more than another."""
        rng = np.random.default_rng(self.got.size)
        return [rng.choice([-1.0, 1.0], np.shape(self.got)) for _ in range(DIRECTIONS)]


def judged_gradients(analysis: CaseAnalysis) -> Iterator[JudgedGradient]:
    """The finite gradients that the reference has too, and those of constants, of which it has none.

    Each: in float64.
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

    def fits(self, one: JudgedGradient) -> bool:
        """Whether a gradient of a large case is that of the variant, along directions."""
        if one.constant and "constants-get-gradient" not in self.deviations:
            return not np.any(one.got)
        if not self.chosen:
            return self.misfit(one) <= 1
        room = float(np.sum(self.allowed(one, one.got)))
        return all(abs(float(np.sum(one.got * to)) - self.slope(one, to)) <= room for to in one.directions)

    def worst(self, limit: float = 1.0) -> float:
        """Largest misfit; any number above the limit once one is."""
        worst = 0.0
        for one in self.judged:
            along = one.is_long and bool(self.chosen)
            worst = max(worst, (0.0 if self.fits(one) else math.inf) if along else self.misfit(one))
            if not worst <= limit:
                break
        return worst
