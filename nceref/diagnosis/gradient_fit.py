"""The gradients of a variant on every case, beside those of a target."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.judge import constants
from nceref.diagnosis.case import FACTORS, CaseAnalysis
from nceref.diagnosis.dense import forms
from nceref.diagnosis.dense.forms import FORMULA
from nceref.diagnosis.dense.temperatures import temperature
from nceref.diagnosis.explanation import GRADIENT_AXES
from nceref.diagnosis.expressions import Product, written
from nceref.diagnosis.features import parts_of_rows
from nceref.diagnosis.options import Option
from nceref.diagnosis.simple_numbers import recognized
from nceref.diagnosis.tape import TO_THE_FIRST, Graph, edge
from nceref.engine.parameters import INVERSE_TEMPERATURES

OF_VARIANT = "gradient-of-a-variant"
"""What it is called where the gradient is that of other conventions than the value."""
TRAINED = "constants-get-gradient"
EVERY = "all inputs"
"""The edge of the gradient of every input."""


@dataclass(frozen=True)
class Factor:
    """A factor of the gradient on an edge, as an expression in the sizes and the scalar of a case.

    Attributes
    ----------
    constant : float
    powers : tuple
        Symbols of `quantities`, each with its exponent.
    rows : str
        The rows of an input that it is for, as they are called; empty: all.
    """

    constant: float
    powers: tuple[tuple[str, float], ...] = ()
    rows: str = ""

    def of(self, analysis: CaseAnalysis, edge: str) -> Any:
        """The factor of a case, or that of each row of it."""
        known = quantities(analysis)
        if any(symbol == LENGTH for symbol, _ in self.powers):
            known[LENGTH] = lengths(analysis.inputs[edge])
        factor = self.constant * math.prod(known[symbol] ** power for symbol, power in self.powers)
        if not self.rows:
            return factor
        n = len(analysis.inputs[edge])
        return np.where(parts_of_rows(n).get(self.rows, np.zeros(n, dtype=bool)), factor, 1.0)

    def __str__(self) -> str:
        return written((Product(recognized(self.constant)[0], self.powers),))

    @property
    def inverse(self) -> "Factor":
        """The factor that takes it away again."""
        return Factor(1 / self.constant, tuple((symbol, -power) for symbol, power in self.powers), self.rows)


LENGTH = "|x|"
"""The symbol of the length of each row."""


def lengths(x: Any) -> Any:
    """The length of each row of an input."""
    return np.sqrt(np.sum(np.asarray(x) ** 2, axis=-1))


def quantities(analysis: CaseAnalysis) -> dict[str, float]:
    """Numbers of a case that a factor may be made of, by symbol."""
    n = analysis.samples
    scalars = {name: analysis.inputs[name] for name in INVERSE_TEMPERATURES if name in analysis.inputs}
    symbols = {"T" if name == "temperature" else "S": float(x) for name, x in scalars.items()}
    return {**symbols, "N": n, "N - 1": max(n - 1, 1), "2N - 1": 2 * n - 1, "2N - 2": max(2 * n - 2, 1)}


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
        if not self.chosen:
            return np.zeros_like(one.got) if one.constant else np.asarray(one.analysis.probe.grads[one.name])
        return self._gradients(one.analysis)[0][one.name]

    def _gradients(self, analysis: CaseAnalysis) -> tuple[dict[str, Any], ...]:
        """The gradients of the variant by input; second, where some maxima are equal, those by the first of these."""
        known = analysis.variants.gradients
        if self.chosen not in known:
            graph = self.graph(analysis)
            factors = self.factors(analysis, graph)
            found = [graph.gradients(factors)]
            if graph.tied:
                before = TO_THE_FIRST.set(True)
                try:
                    found.append(graph.gradients(factors))
                finally:
                    TO_THE_FIRST.reset(before)
            known[self.chosen] = tuple(dict(zip(names_of(analysis), one, strict=True)) for one in found)
        return known[self.chosen]

    def graph(self, analysis: CaseAnalysis) -> Graph:
        """The way back through the variant, on which nothing has another factor yet."""
        other = self.deviations.get(OF_VARIANT)
        beside = {o.id: o.value for o in self.chosen if o.axis in GRADIENT_AXES}
        deviations = self.deviations if other is None else {**{o.id: o.value for o in other}, **beside}
        outer = _outer(analysis, deviations)
        return forms.graph_of(
            analysis.form, analysis.inputs, deviations, names_of(analysis), analysis.probe.reduction, outer
        )

    def factors(self, analysis: CaseAnalysis, graph: Graph) -> dict[str, Any]:
        """The factors on the edges of the variant."""
        out: dict[str, Any] = {} if TRAINED in self.deviations else dict.fromkeys(constants(analysis.probe), 0.0)
        out |= forms.factors_of(graph, {o.id: None for o in self.chosen if o.value is None})
        parts = (o.value for o in self.chosen if o.axis in GRADIENT_AXES and isinstance(o.value, tuple))
        for name, factor in (pair for value in parts for pair in value if not isinstance(pair, Option)):
            out |= passing(graph, name, factor.of(analysis, name))
        return out

    def allowed(self, one: JudgedGradient) -> Any:
        """The largest distance of a target from the variant."""
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
        inner = tuple(o for o in self.chosen if o.axis not in (*GRADIENT_AXES, "factor", "offset"))
        rows = analysis.rows(tuple(o for o in inner if o.axis != "reduction"))
        growth = max(1.0, size / plain if plain > 0 else 1.0)
        growth *= max(1.0, (1 + rows.size) / (1 + analysis.rows(()).size))
        own = 16 * analysis.unit * (1 + rows.size) * (1 + rows.noise) * size
        # Where roundings move the value as its root does, they move the derivative as that of the root.
        own += size * analysis.unit * (rows.error / analysis.unit / (1 + rows.size)) ** 2
        return bound + growth * float(np.max(bound, initial=0.0)) * (growth > 1) + own

    def misfit(self, one: JudgedGradient) -> float:
        """Distance from the variant's gradient, in units of what is allowed."""
        others = self._gradients(one.analysis)[1:] if self.chosen else ()
        allowed = self.allowed(one)
        return min(self._off(one, want, allowed) for want in (self.expected(one), *(each[one.name] for each in others)))

    def _off(self, one: JudgedGradient, want: Any, allowed: Any) -> float:
        off = np.abs(one.got - want)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(off == 0, 0.0, off / allowed)
        if not np.all(np.isfinite(want)):
            # A formula has no derivative there, as at the root of 0.
            return 0.0 if FORMULA in self.deviations else math.inf
        return float(np.max(ratio, initial=0.0))

    def wrong(self) -> set[str]:
        """The inputs whose gradient departs on some case."""
        return {one.name for one in self.judged if self.misfit(one) > 1}

    def worst(self, limit: float = 1.0) -> float:
        """Largest misfit; any number above the limit once one is."""
        worst = 0.0
        for one in self.judged:
            worst = max(worst, self.misfit(one))
            if not worst <= limit:
                break
        return worst


def names_of(analysis: CaseAnalysis) -> list[str]:
    """All inputs of a case that may have a gradient."""
    return sorted({*analysis.probe.grads, *constants(analysis.probe)})


def passing(graph: Graph, edge: str, factor: Any) -> dict[str, Any]:
    """The factors that give one edge a factor; a stage passes straight through what its derivative does not take."""
    past = f"past {edge}"
    return {edge: factor, past: 1 - factor} if past in graph.edges else {edge: factor}


def _outer(analysis: CaseAnalysis, deviations: Mapping[str, Any]) -> Any:
    """The factor of the value as a function of the inputs: it may hold the temperature."""
    id = next((id for id in deviations if id in FACTORS), None)
    if id is None:
        constant = deviations.get("outer-factor-constant", 1.0)
        return None if constant == 1.0 else lambda inputs: constant

    def factor(inputs: Mapping[str, Any]) -> Any:
        t = temperature(inputs, deviations) if analysis.has_temperature else 1.0
        return FACTORS[id](edge(t, "the temperature of the factor"), analysis.samples)

    return factor
