"""Probabilistic bounds: how far a right program is off if its roundings are a random walk, and not all of one sign.

A worst-case bound adds up the largest effect of every rounding. If roundings are random, their sum is much smaller.
Assumed of them: each has mean 0 given those before it, and is at most as large as the worst-case analysis says. To
first order the error of a result is a sum of c_k d_k, with |d_k| <= F_k and coefficients c_k of the exact computation.
By Hoeffding's lemma E exp(t c_k d_k) <= exp(t^2 c_k^2 F_k^2 / 2) given the ones before, and so by Markov's inequality,
at the best t, for s^2 = sum of c_k^2 F_k^2

    P(|error| >= x s) <= 2 exp(-x^2 / 2),                                                                     (1)

Azuma's inequality. It is the step that N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41 (2019) A2815, take for inner
products, where s is u sqrt(n) in place of n u; the derivation here is our own.

The sum s^2 is not computed coefficient by coefficient. A run of the computation in which d_k is replaced by F_k times a
standard normal number, times a tiny step, is off by a normal number of variance s^2, times the step. Of PROBES such
runs the mean square y falls short of s^2 by

    P(y <= r s^2) <= (r e^(1 - r))^(PROBES / 2),   0 < r < 1,                                                 (2)

Chernoff's bound for the chi-squared distribution. Half of FAILURE goes to each of (1) and (2), for each number of a
result.

What the worst-case analysis counts as n roundings of one size is s = sqrt(n) of them; other parts count as one each.
Terms of second order are covered as in the worst case, by a factor exp(2 |ds|) with the probabilistic bound on the
logits' errors; where that gives no less than the worst case, the worst case it is. The assumption itself is not proved
for any program, and may fail: numbers that are all alike are all rounded to one side.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from nceref.engine.bound_loss import BoundLoss
from nceref.engine.distances import PairedDistance
from nceref.engine.embeddings import Rows
from nceref.engine.plan import Comparison
from nceref.tolerance.analysis import Analysis, Bounds
from nceref.tolerance.forward import (
    LARGE,
    MovedRows,
    RoundingFormat,
    covered,
    entry_costs,
    logits_error,
)
from nceref.tolerance.implementation import FORMATS, implementation_bounds, walk

Array = Any
FAILURE = 1e-4
"""The probability that a number of a result is beyond its bound, under the assumption."""
PROBES = 64
_STEP = 2.0**-24
"""The size of a random step: far below 1, so that effects are linear, and far above the roundings of the walk."""


def confidence() -> float:
    """The factor of the root mean square of the probes: x / sqrt(r) of (1) and (2)."""
    x = math.sqrt(2 * math.log(4 / FAILURE))
    # Newton's method for log r + 1 - r = 2 log(FAILURE / 2) / PROBES, from below.
    goal, r = 2 * math.log(FAILURE / 2) / PROBES, 1e-3
    for _ in range(60):
        r -= (math.log(r) + 1 - r - goal) / (1 / r - 1)
    return x / math.sqrt(r)


class RandomRoundings(RoundingFormat):
    """An arithmetic of random roundings: n of them are as large as sqrt(n), by (1)."""

    def count(self, n: Any) -> Any:
        """The size of n roundings together, in units of one."""
        return np.sqrt(n)


class RandomWalk(Analysis):
    """A walk whose errors are not added up: each stage's own ones move its results at random, and the next sees that.

    Without `rng` nothing moves.

    Attributes
    ----------
    moved : dict of array
        After `finish`: value, under the empty name, and gradients.
    """

    def __init__(self, plan: Any, fmt: RoundingFormat, reduction: str, rng: np.random.Generator | None) -> None:
        super().__init__(plan, fmt, reduction)
        self.rng, self.repeats = rng, _repeats(plan)
        self.moved: dict[str, Any] = {}

    def _noise(self, size: Any) -> Any:
        return 0.0 if self.rng is None else _STEP * size * self.rng.standard_normal(np.shape(size))

    def passed_on(self, x: Any, error: Any) -> tuple[Any, Any]:
        """Numbers that moved by their errors, and errors of 0."""
        return x + self._noise(error), np.zeros_like(x)

    def logits_of(self, comparison: Comparison) -> tuple[Array, Array]:
        """Logits that moved."""
        s, ds = logits_error(comparison.logits, self.fmt)
        # Those of pairs have the errors of their own rows in them.
        return self.passed_on(s, ds * self.repeats if isinstance(comparison.logits, PairedDistance) else ds)

    def fold(self) -> None:
        """Normalized rows, logits and statistics."""
        moved = {id(rows): self._moved(rows) for c in self.plan.comparisons for rows in _shared_rows(c.logits)}
        self.plan = replace(
            self.plan, comparisons=tuple(replace(c, logits=_with_rows(c.logits, moved)) for c in self.plan.comparisons)
        )
        super().fold()

    def _moved(self, rows: Rows) -> Rows:
        cost = self.repeats * self.fmt.u * self.fmt.count(entry_costs(rows, self.fmt))
        # Of the roundings of an entry all but its own two are those of the length, which a row shares.
        own = np.minimum(self.repeats * self.fmt.count(2) * self.fmt.u, cost) * np.abs(rows.values)
        moved = self._noise(own) + self._noise(cost) * rows.values
        return MovedRows(rows.values + moved, rows.parts, rows.order)

    def spread_of_statistics(self) -> dict[str, Array]:
        """Errors of 0, as the statistics move instead, all but the mass of a set of positives, which is exact."""
        for name, size in super().spread_of_statistics().items():
            x = self.stats[name]
            self.stats[name], self.errors[name] = self.passed_on(
                x, size * (np.arange(x.shape[1]) < 2 if x.ndim == 2 else 1.0)
            )
        return dict(self.errors)

    def _value(self) -> None:
        parts = self.weighted(self.rows + self._noise(self.row_errors))
        if self.reduction == "none":
            self.moved[""] = parts + self._noise(self.summing(0) * np.abs(parts))
        else:
            size = self.summing(self.rows.size) * np.sum(np.abs(parts))
            self.moved[""] = np.sum(parts) + self._noise(size)

    def lose(self, lost: Array) -> None:
        """Move the value at random by the errors that rows of the head have beside the stages."""
        noise = self.weighted(self._noise(lost))
        self.moved[""] = self.moved[""] + (noise if self.reduction == "none" else np.sum(noise))

    def _add(self, name: str, size: Any, error: Any) -> None:
        error = error + 2 * self.fmt.u * np.abs(size) + 4 * self.fmt.tiny
        self.moved[name] = self.moved.get(name, 0.0) + size + self._noise(error)


def _repeats(plan: Any) -> float:
    """The root of the uses of an input: its roundings are the same each time, n effects sqrt(n) those of others."""
    rows = [x for c in plan.comparisons for x in vars(c.logits).values() if isinstance(x, Rows)]
    return math.sqrt(max([1, *Counter(part.name for x in rows for part in x.parts).values()]))


def _shared_rows(logits: Any) -> list[Rows]:
    """The rows whose entries take part in many logits."""
    return [] if isinstance(logits, PairedDistance) else [x for x in vars(logits).values() if isinstance(x, Rows)]


def _with_rows(logits: Any, moved: Mapping[int, Rows]) -> Any:
    rows = {f.name: moved.get(id(getattr(logits, f.name))) for f in fields(logits)}
    return replace(logits, **{name: x for name, x in rows.items() if x is not None})


def likely_bounds(bound: BoundLoss, dtype: str, reduction: str = "mean", algorithm: str = "textbook") -> Bounds:
    """Probabilistic bounds on the errors of a right program in `dtype`, against the float64 reference.

    Arguments are those of `implementation_bounds`, and no bound is larger than the worst case. Each number is beyond
    its bound with probability FAILURE at most, to first order in the unit roundoff, if roundings are random as the
    module says.
    """
    worst = implementation_bounds(bound, dtype, reduction, algorithm)
    fmt, rng = RandomRoundings(**vars(FORMATS[dtype].arithmetic(algorithm == "textbook"))), np.random.default_rng(0)
    probes = [RandomWalk(bound.plan, fmt, reduction, rng if i else None) for i in range(PROBES + 1)]
    with np.errstate(all="ignore"):
        for probe in probes:
            probe.lose(walk(probe, bound.arguments))
        likely = _deviations(probes)
    # The reference is a float64 program of that kind.
    reference = implementation_bounds(bound, "float64", reduction, "log1p")
    value = np.fmin(likely.pop("") + reference.value, worst.value)
    grads = {name: np.fmin(x + reference.grads[name], worst.grads[name]) for name, x in likely.items()}
    grads = {name: x if np.ndim(worst.grads[name]) else float(x) for name, x in grads.items()}
    return Bounds(value if reduction == "none" else float(value), grads, {"random walk": value})


def _deviations(probes: list[RandomWalk]) -> dict[str, Array]:
    """Root mean square by which probes move value and gradients, times `confidence` and the terms of second order."""
    still, *others = probes
    places = list(zip(still.plan.comparisons, still.logits, strict=True))
    # Of logits that take part; an infinite one is no number here, and bounds nothing.
    squares = [
        sum(((p.logits[i][0] - s) / _STEP) ** 2 for p in others) / PROBES for i, (_, (s, _)) in enumerate(places)
    ]
    most = max(
        float(np.max(np.where(covered(c, s), np.sqrt(x), 0.0))) for (c, (s, _)), x in zip(places, squares, strict=True)
    )
    factor = confidence() * math.exp(min(2 * confidence() * most, LARGE))
    return {
        name: factor * np.sqrt(sum(((p.moved[name] - x) / _STEP) ** 2 for p in others) / PROBES)
        for name, x in still.moved.items()
    }
