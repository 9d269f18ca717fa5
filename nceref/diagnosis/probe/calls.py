"""Calls of a target on rows that are made for it, and what they give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.records import Outcome, Probe
from nceref.cases.rounding import rounded
from nceref.diagnosis.probe.design import Design
from nceref.targets.search import NoCallsLeft
from nceref.tolerance.implementation import FORMATS

MOST = 1000
"""Calls of one target: a count, since seconds would make what is found depend on the machine. No program of the
catalogues takes 700."""
_UNIT = 2.0**-53
_ROOM, _FLOAT32 = 4096.0, 64.0
"""Roundings that a value may be off by, in units of the larger of 1 and itself; of coarser formats than float64."""


_WIDE = 3


class NoNumber(Exception):  # noqa: N818 - it is what the target gives
    """The target gives no finite number for what is asked, or has been asked too often."""


@dataclass
class Calls:
    """A target and how often it was called; values come in float64, those of rows as their sum.

    `limit` says which count has ended a search for its formula, if one did.
    """

    call: Callable[[Probe], Outcome]
    dtype: str = "float64"
    reduction: str = "mean"
    count: int = 0
    limit: str = ""

    @property
    def unit(self) -> float:
        """The unit roundoff of the format."""
        return FORMATS[self.dtype].storage.u

    def noise(self, y: Any) -> float:
        """The distance by which roundings may move values of this size."""
        return max(_ROOM * _UNIT, _FLOAT32 * self.unit) * max(1.0, float(np.max(np.abs(y))))

    def value(self, design: Design, x: Any) -> float:
        """The value at rows that are numbers of the format.

        Raises `NoNumber` if there is none.
        """
        if self.count >= MOST:
            self.limit = f"{MOST:,} calls of the target"
            raise NoNumber
        self.count += 1
        inputs: Mapping[str, Any] = {k: rounded(v, self.dtype) for k, v in design.call(x).items()}
        try:
            outcome = self.call(Probe("probe", design.loss, inputs, self.dtype, self.reduction, mode="no-grad"))
        except NoCallsLeft as error:
            raise NoNumber from error
        if outcome.trouble or outcome.value is None or not np.all(np.isfinite(outcome.value)):
            raise NoNumber
        return float(np.sum(outcome.value))

    def rows(self, xs: Any) -> Any:
        """Rows rounded to the format."""
        return rounded(np.asarray(xs), self.dtype)


def random_rows(design: Design, dim: int, rng: np.random.Generator, lengths: tuple[float, float] = (1.0, 1.0)) -> Any:
    """Random rows of random lengths within a range, or random logits."""
    n = len(design.rows)
    if design.logits:
        rows = sum(row.block == design.blocks[0][0] for row in design.rows)
        return rng.standard_normal((rows, n - rows)) * 0.8
    # In many dimensions random rows are almost orthogonal: most of each lies in few of them.
    x = rng.standard_normal((n, dim)) * 0.3 + rng.standard_normal((n, _WIDE)) @ rng.standard_normal((_WIDE, dim))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * rng.uniform(*lengths, (n, 1))


def drawn_together(design: Design, x: Any, rng: np.random.Generator) -> Any:
    """Rows of which each is moved towards another one, or away from it, as far as chance will: no angle is rare."""
    if design.logits or not len(design.rows):
        return x
    out = x.copy()
    for u in range(len(x)):
        own = [v for v in range(len(x)) if v != u and design.together(u, v)]
        v = int(rng.choice(own)) if own and rng.random() < 0.7 else int(rng.integers(len(x)))
        length, share = np.linalg.norm(x[u]), rng.random() ** 0.5
        mixed = (1 - share) * x[u] / length + rng.choice((1.0, 1.0, -1.0)) * share * x[v] / np.linalg.norm(x[v])
        out[u] = length * mixed / np.linalg.norm(mixed)
    return out


def drawn_as_trained(design: Design, x: Any, rng: np.random.Generator) -> Any:
    """Rows of which those that belong together are near each other, as after training."""
    if design.logits or not len(design.rows):
        return x
    out = x.copy()
    for u in range(len(x)):
        before = [v for v in range(u) if design.together(u, v)]
        if before:
            noise = 0.2 * rng.standard_normal(x.shape[1]) / np.sqrt(x.shape[1])
            near = out[before[0]] / np.linalg.norm(out[before[0]]) + noise
            out[u] = np.linalg.norm(x[u]) * near / np.linalg.norm(near)
    return out
