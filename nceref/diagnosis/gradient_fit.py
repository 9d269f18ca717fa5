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


@dataclass(frozen=True, eq=False)
class JudgedGradient:
    """One judged gradient of one case."""

    analysis: CaseAnalysis
    name: str
    got: Any
    constant: bool


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
        known = one.analysis.variants.gradients
        if self.chosen not in known:
            known[self.chosen] = self._variant(one.analysis)
        return known[self.chosen][one.name]

    def _variant(self, analysis: CaseAnalysis) -> dict[str, Any]:
        """Gradients of the variant on a case, by all inputs that may have one."""
        probe = analysis.probe
        names = sorted({*probe.grads, *constants(probe)})
        outer = self._outer(analysis)
        return forms.gradients(analysis.form, analysis.inputs, self.deviations, names, probe.reduction, outer)

    def _outer(self, analysis: CaseAnalysis) -> Any:
        """The factor as a function of the inputs: it may hold the temperature."""
        id = next((id for id in self.deviations if id in FACTORS), None)
        if id is None:
            constant = self.deviations.get("outer-factor-constant", 1.0)
            return None if constant == 1.0 else lambda inputs: constant
        return lambda inputs: FACTORS[id](
            temperature(inputs, self.deviations) if analysis.has_temperature else 1.0, analysis.samples
        )

    def allowed(self, one: JudgedGradient) -> Any:
        """How far the target may be from the variant."""
        probe, analysis = one.analysis.probe, one.analysis
        if one.constant or probe.bounds is None:
            others = probe.bounds.grads.values() if probe.bounds and self.chosen else ()
            bound: Any = np.full_like(one.got, max((float(np.max(b)) for b in others), default=0.0))
        else:
            bound = np.asarray(probe.bounds.grads[one.name])
        if not self.chosen:
            return bound
        want = self.expected(one)
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
