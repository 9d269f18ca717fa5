"""One finite observation on the analysis: what any variant of the loss would have answered, and how closely it fits."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Probe
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.dense.batch import DenseRows
from nceref.diagnosis.dense.forms import FORMULA, evaluated, form_of, prepared, substituted
from nceref.diagnosis.dense.stages import reduced
from nceref.diagnosis.dense.temperatures import temperature
from nceref.diagnosis.options import Option
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.tolerance.implementation import FORMATS

EARLY = frozenset({
    "scalar", "normalization", "temperature", "hardness", "bias", "positives", "margin", "prior", "weights",
    "direction", "guide",
})  # fmt: skip
"""Axes that are decided before the denominator."""
_EARLY_TOO = frozenset({
    "similarity-clamped", "diagonal-included", "correction-missing", "importance-weights-missing", "count-rounded-down",
})  # fmt: skip
REDUCED = "reduction"
SMALLEST = 1e-300
LITTLE = 1e-3
"""Relative error of a value that products in 10 bits have left."""
Array = Any
_Structure = tuple[Option, ...]

FACTORS = {id: c.factor for id, c in CONVENTIONS.items() if c.axis == "factor" and c.factor}
"""What may multiply the result, from the temperature (the inverse of a scale) and the number of samples."""
_SIZES: Mapping[str, Callable[[int], float]] = {
    "log N": lambda n: n, "log 2N": lambda n: 2 * n, "log(2N - 1)": lambda n: 2 * n - 1, "log(N - 1)": lambda n: n - 1,
    "log(2N - 2)": lambda n: 2 * n - 2,
}  # fmt: skip
OFFSETS = {f"{sign} {name}": (1.0 if sign == "+" else -1.0, size) for name, size in _SIZES.items() for sign in "+-"}
"""What may be added to the result, in words: a sign, and what the logarithm is of."""


@dataclass(frozen=True, eq=False)
class Variants:
    """Results of variants of the loss on one case, the same for every target: filled as they are computed."""

    arranged: dict[_Structure, Any] = field(default_factory=dict)
    rows: dict[_Structure, DenseRows] = field(default_factory=dict)
    answers: dict[_Structure, tuple[Array, Array]] = field(default_factory=dict)
    gradients: dict[_Structure, tuple[dict[str, Array], ...]] = field(default_factory=dict)
    on_grids: dict[tuple[_Structure, _Structure], Array] = field(default_factory=dict)


# Enough probes for four standard suites.
@lru_cache(maxsize=256)
def _variants(probe: Probe) -> Variants:
    return Variants()


class CaseAnalysis:
    """A finite observation, with all that was computed for it."""

    def __init__(self, observation: Observation) -> None:
        probe = observation.probe
        self.observation, self.probe = observation, probe
        self.unit = FORMATS[probe.dtype].storage.u
        self.form = form_of(probe.loss)
        self.inputs = prepared(probe)
        self.target = np.atleast_1d(np.asarray(observation.outcome.value, dtype=np.float64)).ravel()
        self.reference = np.atleast_1d(np.asarray(probe.value, dtype=np.float64)).ravel()
        bound = np.asarray(probe.bounds.value if probe.bounds else 0.0)
        # Rows of two directions come as (2, N): the dense form has them one below the other.
        self.bound = np.broadcast_to(bound, np.shape(probe.value)).ravel()
        self.variants = _variants(probe)

    @property
    def departs(self) -> bool:
        """Whether the value is not that of the reference."""
        return bool(np.any(np.abs(self.target - self.reference) > self.bound))

    @property
    def differs_much(self) -> bool:
        """Whether the value is off by more than low precision explains; less than that is not two conventions."""
        return bool(np.any(np.abs(self.target - self.reference) > LITTLE * np.abs(self.reference) + self.bound))

    @cached_property
    def has_temperature(self) -> bool:
        """Whether there is a temperature or a scale."""
        return not INVERSE_TEMPERATURES.keys().isdisjoint(self.inputs)

    @cached_property
    def samples(self) -> int:
        """The number of samples."""
        return self.rows(()).samples

    @cached_property
    def factors(self) -> dict[str, float]:
        """Recognized factors of this case."""
        t = temperature(self.inputs, {}) if self.has_temperature else None
        return {id: float(f(t, self.samples)) for id, f in FACTORS.items() if t is not None or "temperature" not in id}

    @cached_property
    def offsets(self) -> dict[str, float]:
        """Recognized offsets of this case."""
        return {name: sign * math.log(max(size(self.samples), 1)) for name, (sign, size) in OFFSETS.items()}

    def rows(self, structure: tuple[Option, ...]) -> DenseRows:
        """Row losses under a structure: options in the order of the closed list."""
        if structure not in self.variants.rows and any(o.id == FORMULA for o in structure):
            self.variants.rows[structure] = self.rows_once(structure)
        elif structure not in self.variants.rows:
            early = tuple(o for o in structure if o.axis in EARLY or o.id in _EARLY_TOO)
            deviations = {o.id: o.value for o in structure}
            with np.errstate(all="ignore"):
                # Most options change only what comes after the arrangement, so it is shared.
                if early not in self.variants.arranged:
                    self.variants.arranged[early] = self.form.arrange(substituted(self.inputs, deviations), deviations)
                self.variants.rows[structure] = self.form.rows(self.variants.arranged[early], deviations)
        return self.variants.rows[structure]

    def answer(self, structure: tuple[Option, ...]) -> tuple[Array, Array]:
        """Value of a variant and the bound of its error, flat; options of the reduction included."""
        if structure not in self.variants.answers:
            inner = tuple(o for o in structure if o.axis != REDUCED)
            rows = self.rows(inner)
            value = self.reduced(rows, structure)
            self.variants.answers[structure] = value, self._allowed(rows, value)
        return self.variants.answers[structure]

    def reduced(self, rows: DenseRows, structure: tuple[Option, ...]) -> Array:
        """Value of a variant from its rows, flat."""
        with np.errstate(all="ignore"):
            return np.atleast_1d(reduced(rows, {o.id: o.value for o in structure}, self.probe.reduction, self.unit))

    def rows_once(self, structure: tuple[Option, ...]) -> DenseRows:
        """Row losses of a variant; not kept, since solving for a setting goes through hundreds."""
        return evaluated(self.form, self.inputs, {o.id: o.value for o in structure})

    def _allowed(self, rows: DenseRows, value: Array) -> Array:
        """The bound of the reference, as much larger as the numbers of the variant are."""
        plain = self.rows(())
        # A mean is as large as its rows at most, a sum may be larger, and so may its roundings.
        spread = float(np.max(np.abs(value), initial=0.0)) / max(1.0, rows.size)
        growth = max(1.0, (1 + rows.size) / (1 + plain.size)) * max(1.0, spread)
        own = 16 * self.unit * (1 + rows.size) * max(1.0, spread) * (1 + rows.noise)
        # One direction has fewer rows than two; it fits nothing then.
        bound = self.bound if np.shape(value) == np.shape(self.bound) else np.max(self.bound, initial=0.0)
        allowed = growth * bound + own + rows.error
        return allowed if np.shape(allowed) == np.shape(value) else np.broadcast_to(allowed, np.shape(value))

    @cached_property
    def usual(self) -> Array:
        """The allowed error of a variant whose numbers are as large as those of the reference."""
        return self.answer(())[1]

    def misfit(self, value: Array, allowed: Array) -> float:
        """Largest distance between target and value, in units of what is allowed."""
        if value.shape != self.target.shape:
            return math.inf
        # Of numbers near the end of the range the distance is infinite.
        with np.errstate(over="ignore"):
            off = np.abs(self.target - value)
            return float(np.max(off / (allowed + SMALLEST))) if np.all(np.isfinite(value)) else math.inf

    def discriminates(self, value: Array, allowed: Array) -> bool:
        """Whether the variant can be told from the reference here."""
        return bool(np.any(np.abs(value - self.reference) > 2 * (allowed + self.bound)))

    def bits(self, allowed: Array) -> float:
        """The surprise of a fit within what is allowed, in bits, for a target that is this far from the reference."""
        off = np.abs(self.target - self.reference)
        # Where nothing is allowed, any distance surprises without limit.
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.log2(np.maximum(off / allowed, 1.0)), initial=0.0))
