"""Where along the temperature the numbers of a case stop being finite, by bisection with its own rows.

A way of writing exponentials is named only if its exponent stands at the limit of the format there: two programs that
fail on the same cases may begin to fail at different temperatures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nceref.cases.records import Observation
from nceref.diagnosis.dependence import bisected
from nceref.diagnosis.features import temperature_scalar
from nceref.diagnosis.fresh import FreshCalls, Template, judged
from nceref.diagnosis.gaps import VALUE, gaps, not_finite, usable
from nceref.diagnosis.ranges import REACHED, CaseExponents, exponents, is_softmax, limit_in_words, limits
from nceref.engine.parameters import at_temperature
from nceref.errors import InputError

CASES = 2
"""Of different geometries, on which it is looked for: each takes some ten calls."""
NEAR = 0.03
"""How far the exponent may be from the limit of the format, relative to it: sums overflow before their terms do."""
_STEP, _STEPS, _CLOSE = 2.0, 12, 1.01
_SAFE = 0.9
"""Share of the range within which a value must be right."""
_OVER, _UNDER = ("largest", "masked", "positive", "least"), ("row", "below", "spread", "under", "deepest", "drop")
"""Exponents of a case that overflow, and those of which minus the number underflows; the simplest program first."""


@dataclass(frozen=True)
class Edge:
    """Two neighboring temperatures of one case, the first with numbers and the second without.

    Attributes
    ----------
    case, scalar : str
        The case whose rows these are, and the name of what was changed.
    right, wrong : float
        Its settings.
    before, beyond : CaseExponents
        How far exponents reach there.
    """

    case: str
    scalar: str
    right: float
    wrong: float
    before: CaseExponents
    beyond: CaseExponents

    @property
    def words(self) -> str:
        """The edge, the rest of a sentence."""
        what = self.scalar.replace("_", " ")
        return f"with the rows of {self.case} it begins between {what} {self.right:.4g} and {self.wrong:.4g}"


@dataclass(frozen=True)
class TestedRange:
    """Exponents that stand at the limit of a format wherever numbers stop being finite.

    Attributes
    ----------
    exponents : tuple of str
        Attributes of `CaseExponents`, one at least of which is at its limit at each edge; that of `edge` first.
    edge : Edge
    dtype : str
    """

    exponents: tuple[str, ...]
    edge: Edge
    dtype: str

    @property
    def id(self) -> str:
        """The convention."""
        return "exp-overflows" if self.exponents[0] in _OVER else "exp-underflows"

    @property
    def words(self) -> str:
        """The measurement in words, the rest of a sentence."""
        what = self.exponents[0]
        reached = f"{REACHED[what]} {getattr(self.edge.beyond, what):.4g}"
        return f"{self.edge.words}, where {reached}, and {limit_in_words(self.id, self.dtype)}"

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether the values of other cases are finite exactly within the range, and right well within it."""
        return all(self._holds(o) for o in usable(observations))

    def _holds(self, observation: Observation) -> bool:
        gap, reach = gaps(observation)[VALUE], exponents(observation.probe)
        top, low = limits(self.dtype)
        share = max(getattr(reach, what) / (top if what in _OVER else low) for what in self.exponents)
        if share > 1 + NEAR:
            return not gap.finite or not_finite(observation) != ()
        # In between, digits are lost before the number is.
        return gap.right if share < _SAFE else gap.finite or share > 1 - NEAR


def edges(failing: Sequence[Observation], fine: Sequence[Observation], calls: FreshCalls) -> tuple[Edge, ...] | None:
    """The settings at which some of the failing cases stop being finite, and where rows that are all alike do.

    `failing` and `fine`: cases with and without a number that is not finite. Result: empty where some failing case has
    no number at any temperature; None for a loss without a temperature or scale that can be passed.
    """
    varied = {name for name, *_ in calls.like.ranges} if calls.like else set()
    scalar = temperature_scalar(failing[0].probe)
    if scalar is None or scalar[0] not in varied:
        return None
    by_geometry = {o.probe.id.partition("-")[0]: o for o in reversed(failing) if not o.probe.is_large}
    chosen = list(by_geometry.values())[-CASES:]
    found = [edge for o in chosen if (edge := _edge(o, calls, _STEP)) is not None]
    if len(found) < len(chosen):
        return ()
    # Of rows that are all alike no quotient underflows: only logits that nothing is subtracted from leave the range.
    alike = [o for o in fine if o.probe.id.startswith("collapsed")][:1]
    return (*found, *(edge for o in alike if (edge := _edge(o, calls, 1 / _STEP)) is not None))


def _edge(observation: Observation, calls: FreshCalls, step: float) -> Edge | None:
    """The edge between temperatures at which a case has a number and has none, found by steps from its own."""
    scalar, like = temperature_scalar(observation.probe), calls.like
    if scalar is None or like is None:
        return None
    name, start = scalar[0], at_temperature(*scalar)
    values = step < 1 or not gaps(observation)[VALUE].finite

    def fails(temperature: float) -> bool | None:
        probe = judged(like, {**observation.probe.inputs, name: at_temperature(name, temperature)}, "edge")
        seen = calls.on(replace(probe, mode="no-grad") if values else probe) if probe is not None else None
        if seen is None:
            return None
        return not gaps(seen)[VALUE].finite if values else bool(not_finite(seen))

    last, ends = start, None
    for _ in range(_STEPS):
        last, there = last * step, fails(last * step)
        if there is None:
            return None
        if there is (step < 1):
            ends = (last / step, last) if there else (last, last / step)
            break
    if ends is None:
        return None
    found = bisected(*ends, lambda a, b: None if a / b < _CLOSE else math.sqrt(a * b), fails)
    return None if found is None else _with_exponents(observation, like, name, *found)


def _with_exponents(observation: Observation, like: Template, name: str, right: float, wrong: float) -> Edge | None:
    before, beyond = (at_temperature(name, t) for t in (right, wrong))
    first, second = (judged(like, {**observation.probe.inputs, name: x}, "edge") for x in (before, beyond))
    if first is None or second is None:
        return None
    try:
        return Edge(observation.probe.id, name, before, beyond, exponents(first), exponents(second))
    except InputError:
        return None


def tested_range(found: Sequence[Edge], observation: Observation) -> TestedRange | None:
    """The exponents that stand at the limit of the format, one at each edge; None where an edge has none.

    `observation`: any of the run.
    """
    own = observation.probe.dtype
    # Half formats are commonly computed with in float32. In float64 nothing in float32 would be right elsewhere.
    for dtype in (own,) if own == "float64" else dict.fromkeys((own, "float32")):
        top, low = limits(dtype)
        ends = dict.fromkeys(_OVER, top) | dict.fromkeys(_UNDER if is_softmax(observation.probe) else (), low)
        at = [(edge, [what for what, end in ends.items() if _is_at(edge, what, end)]) for edge in found]
        if not at or not all(whats for _, whats in at):
            continue
        # One exponent for all edges where there is one. What overflows anywhere is not shifted by a maximum.
        every = [what for what in ends if all(what in whats for _, whats in at)]
        pairs = [(edge, every[0] if every else whats[0]) for edge, whats in at]
        pairs.sort(key=lambda pair: pair[1] not in _OVER)
        return TestedRange(tuple(dict.fromkeys(what for _, what in pairs)), pairs[0][0], dtype)
    return None


def _is_at(edge: Edge, what: str, limit: float) -> bool:
    before, beyond = float(getattr(edge.before, what)), float(getattr(edge.beyond, what))
    return before < limit * (1 + NEAR) and beyond > limit * (1 - NEAR)
