"""Which factors on edges of the graph give the gradient of a target: they are solved for, not listed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.conventions import EDGES
from nceref.diagnosis.features import samples, temperature_scalar
from nceref.diagnosis.gradient_fit import EVERY, Factor, GradientFit, names_of, passing, quantities
from nceref.diagnosis.simple_numbers import recognized
from nceref.engine.parameters import at_temperature

Part = tuple[str, Factor]
"""An edge and the factor on it."""
MOST = 3
"""Edges at once."""
SCENES = 4
"""Cases that factors are solved on, to tell a constant from an expression."""
_TRIED = {1: 60, 2: 40, 3: 40}
"""Sets of edges, by their number, that are followed beyond the first step."""
_LEFT = 0.7
"""Of a gradient's departure, what a first step along the right edges leaves at most: two in series bend the way."""
_STEPS = 5
_ALIKE = 1e-9


class Scene:
    """One case, with the graph of a variant and what each edge of it carries."""

    def __init__(self, fit: GradientFit, analysis: CaseAnalysis) -> None:
        self.analysis, self.graph = analysis, fit.graph(analysis)
        self.usual = fit.factors(analysis, self.graph)
        self._gradients = self.graph.varied(self.usual)
        judged = {one.name: one for one in fit.judged if one.analysis is analysis}
        # Each input counts alike, whatever the size of its gradient.
        sizes = {n: _size(fit.expected(o), o.got) for n, o in judged.items()}
        self._weights = [(k, 1 / sizes[n]) for k, n in enumerate(names_of(analysis)) if n in judged]
        self._sizes = [(n, 1 / sizes[n]) for n in names_of(analysis) if n in judged]
        ordered = [judged[n] for n in names_of(analysis) if n in judged]
        self.got = _flat([o.got / sizes[o.name] for o in ordered])
        self.room = _flat([np.broadcast_to(2 * fit.allowed(o), np.shape(o.got)) / sizes[o.name] for o in ordered])
        self.plain = self.gradient({})

    def gradient(self, factors: dict[str, Any]) -> Any:
        """All judged gradients in a row, each divided by its size."""
        found = self._gradients(factors)
        return _flat([found[k] * weight for k, weight in self._weights])

    def distance(self, by_name: Mapping[str, Any]) -> float:
        """The distance of gradients from those of the target, as a share of that of the variant's gradients."""
        found = _flat([weight * by_name[name] for name, weight in self._sizes])
        return float(np.linalg.norm(self.got - found) / (np.linalg.norm(self.got - self.plain) or 1.0))

    def usually(self, edge: str) -> float:
        """The factor of an edge in the variant."""
        return float(self.usual.get(edge, self.graph.edges[edge]))

    def column(self, edge: str) -> Any:
        """The gradient that an edge carries at the factor 1."""
        usual = self.usually(edge)
        moved = self.gradient(passing(self.graph, edge, 0.0 if usual else 1.0))
        return (self.plain - moved) / usual if usual else moved - self.plain

    @property
    def columns(self) -> dict[str, Any]:
        """Gradients that the edges carry; of those that are the same, a convention's, else the nearest to an input."""
        return self._carried[0]

    @property
    def aliases(self) -> dict[str, str]:
        """Edges that carry the same as one of the columns."""
        return self._carried[1]

    @cached_property
    def _carried(self) -> tuple[dict[str, Any], dict[str, str]]:
        named = [name for names, _ in EDGES.values() for name in names]
        leaves = names_of(self.analysis)
        edges = [e for e in self.graph.edges if not e.startswith("past ")]
        edges.sort(key=lambda e: (e not in named, e not in leaves, e == EVERY))
        kept: dict[str, Any] = {}
        aliases: dict[str, str] = {}
        for edge in edges:
            column = self.column(edge)
            size = float(np.max(np.abs(column), initial=0.0))
            if not math.isfinite(size) or size <= 1e-12:
                continue
            same = (name for name, known in kept.items() if np.max(np.abs(column - known)) <= _ALIKE * size)
            if (name := next(same, None)) is None:
                kept[edge] = column
            else:
                aliases[edge] = name
        return kept, aliases

    def fits(self, gradient: Any) -> bool:
        """Whether a gradient is that of the target, but for roundings."""
        return bool(np.all(np.abs(self.got - gradient) <= self.room))

    def solved(self, edges: Sequence[str], start: Sequence[float]) -> tuple[float, ...] | None:
        """Factors on some edges that give the gradient of the target, by steps from others; None where none do.

        The gradient is linear in each factor, so that a step is exact for edges that do not follow one another.
        """
        factors = np.array(start, dtype=float)
        for step in range(_STEPS):
            here = self._with(edges, factors)
            if self.fits(here):
                return tuple(factors)
            if step == _STEPS - 1:
                break
            moved = [self._with(edges, factors + unit) - here for unit in np.eye(len(edges))]
            matrix = np.stack(moved, axis=1)
            if not np.all(np.isfinite(matrix)):
                break
            factors = factors + np.linalg.lstsq(matrix, self.got - here, rcond=1e-12)[0]
        return None

    def _with(self, edges: Sequence[str], factors: Any) -> Any:
        given: dict[str, Any] = {}
        for edge, factor in zip(edges, factors, strict=True):
            given |= passing(self.graph, edge, float(factor))
        return self.gradient(given)


def _size(*arrays: Any) -> float:
    return max(float(np.max(np.abs(x), initial=0.0)) for x in arrays) or 1.0


def _flat(arrays: Sequence[Any]) -> Any:
    return np.concatenate([np.ravel(x) for x in arrays])


def ordinary(analyses: Sequence[CaseAnalysis]) -> list[CaseAnalysis]:
    """Cases of ordinary sizes and temperatures first, where no edge carries too little to be seen."""

    def rank(analysis: CaseAnalysis) -> tuple[bool, float]:
        scalar = temperature_scalar(analysis.probe)
        t = 0.3 if scalar is None else float(at_temperature(*scalar))
        return not 4 <= samples(analysis.probe) <= 20, abs(math.log(t / 0.3))

    return sorted((a for a in analyses if not a.probe.is_large), key=rank)


def edge_parts(scenes: Sequence[Scene], size: int) -> list[tuple[Part, ...]]:
    """Factors on so many edges that give the gradients of some cases; the simplest first.

    `scenes`: of the variant that has the values, on `telling` cases.
    """
    every = (_on_others(edges, factors, scenes) for edges, factors in _on_one(scenes[0], size)) if scenes else ()
    return sorted((parts for parts in every if parts is not None), key=_cost)


def telling(failing: Sequence[CaseAnalysis]) -> list[CaseAnalysis]:
    """The first case, and others of other sizes and temperatures, to tell a constant from an expression.

    `failing`: cases with a gradient that departs, as `ordinary` has them.
    """
    chosen: list[CaseAnalysis] = []
    for analysis in failing:
        known = [quantities(a) for a in chosen]
        own = quantities(analysis)
        if all(any(own[s] != k[s] for s in ("T", "S", "N") if s in own) for k in known):
            chosen.append(analysis)
        if len(chosen) == SCENES:
            break
    return chosen


def _on_one(scene: Scene, size: int) -> Iterator[tuple[tuple[str, ...], tuple[float, ...]]]:
    """Sets of edges with factors that give the gradients of one case."""
    columns = scene.columns
    names = list(columns)
    off = scene.got - scene.plain
    whole = float(off @ off)
    if len(names) < size or whole == 0 or not np.all(np.isfinite(off)):
        return
    units = np.stack([c / np.linalg.norm(c) for c in columns.values()], axis=1)
    gram, along = units.T @ units, units.T @ off
    sets = np.array(list(combinations(range(len(names)), size)))
    blocks = gram[sets[:, :, None], sets[:, None, :]] + 1e-13 * np.eye(size)
    steps = np.linalg.solve(blocks, along[sets][..., None])[..., 0]
    left = 1 - np.sum(steps * along[sets], axis=1) / whole
    for k in np.argsort(left, kind="stable")[: _TRIED[size]]:
        if left[k] > (_LEFT if size > 1 else 0.1):
            break
        edges = tuple(names[i] for i in sets[k])
        sizes = [np.linalg.norm(columns[edge]) for edge in edges]
        start = [scene.usually(e) + s / n for e, s, n in zip(edges, steps[k], sizes, strict=True)]
        # Where the first step is not the whole way it may lead astray: the way from the usual factors is the other one.
        for begin in (start, [scene.usually(e) for e in edges])[: 1 if left[k] < _ALIKE else 2]:
            factors = scene.solved(edges, begin)
            if factors is not None and all(_is_possible(scene, e, f) for e, f in zip(edges, factors, strict=True)):
                yield edges, factors
                break


def _is_possible(scene: Scene, edge: str, factor: float) -> bool:
    """Whether a factor is another than the usual one, and a stage has its derivative or has not."""
    known = scene.usually(edge)
    return not _is(factor, known) and (f"past {edge}" not in scene.graph.edges or _is(factor, 0.0))


def _on_others(edges: tuple[str, ...], factors: tuple[float, ...], scenes: Sequence[Scene]) -> tuple[Part, ...] | None:
    """The factors as expressions that all cases agree on; None where there are none."""
    solved = [(scenes[0].analysis, factors)]
    for scene in scenes[1:]:
        if not set(edges) <= scene.graph.edges.keys():
            continue
        own = scene.solved(edges, factors)
        if own is None:
            return None
        # An edge that carries nothing on a case has any factor there.
        if all(np.max(np.abs(scene.column(e)), initial=0.0) > 1e-6 for e in edges):
            solved.append((scene.analysis, own))
    within = 10 * math.sqrt(scenes[0].analysis.unit)
    found = [expression([(a, f[k]) for a, f in solved], within) for k in range(len(edges))]
    return tuple(zip(edges, found, strict=True)) if all(found) else None  # type: ignore[arg-type]


_EXPONENTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0)


def expression(values: Sequence[tuple[CaseAnalysis, float]], within: float) -> Factor | None:
    """A number, or a number times powers of the scalar and of a size, that is what was found on every case.

    `within`: relative distance. Result: None where there is no such.
    """
    numbers = np.array([value for _, value in values])
    if np.all(np.abs(numbers) <= within):
        return Factor(0.0)
    known = [quantities(analysis) for analysis, _ in values]
    scalar = next((s for s in ("T", "S") if s in known[0]), "")
    sizes = ["", *(s for s in known[0] if s not in ("T", "S"))]
    tried = sorted(product(_EXPONENTS, _EXPONENTS[:5], sizes), key=lambda p: (abs(p[0]) + abs(p[1]), sizes.index(p[2])))
    for a, b, size in tried:
        powers = tuple((symbol, p) for symbol, p in ((scalar, a), (size, b)) if symbol and p)
        if (a and not scalar) or bool(b) != bool(size):
            continue
        by_case = [math.prod(k[symbol] ** p for symbol, p in powers) for k in known]
        if powers and max(by_case) - min(by_case) <= within * abs(max(by_case)):
            continue
        constants = numbers / np.array(by_case)
        if np.ptp(constants) <= within * np.max(np.abs(constants)):
            simple, _ = recognized(constants[0], within)
            return Factor(simple, powers)
    return None


def _is(x: float, y: float) -> bool:
    return abs(x - y) <= 1e-6 * max(1.0, abs(y))


def _cost(parts: Sequence[Part]) -> tuple[float, ...]:
    """Less for factors 0, then for those that are simple, then for edges that conventions are about, then above 0."""
    named = {name for names, _ in EDGES.values() for name in names}
    plain = sum(
        0.0 if f.constant == 0 else 1.0 if f.constant in (1, -1, 2, 0.5) and not f.powers else
        1.5 if f.powers or recognized(f.constant)[0] in (1, -1, 2, 0.5) else 2.0 if is_simple(f) else 4.0
        for _, f in parts
    )  # fmt: skip
    return plain, sum(edge not in named for edge, _ in parts), sum(f.constant < 0 for _, f in parts)


def is_simple(factor: Factor) -> bool:
    """Whether its number is one that programs are written with."""
    return recognized(factor.constant)[1] != f"{factor.constant:.6g}" or factor.constant == round(factor.constant, 3)
