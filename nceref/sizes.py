"""The sizes and scalars of a training run, and what follows from them: the argument of `Expectation.at`.

Cosines are those of rows of length 1 (``normalize="l2"``); k counts the negatives of an anchor, T is the temperature.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_COLDEST = 1e-4

# Stands in for a value that is missing, so that one evaluation finds all that are.
_ANY = 2


@dataclass(frozen=True)
class Sizes:
    """Sizes and scalars as attributes, each noted in `read` when somebody asks for it.

    Attributes
    ----------
    values : mapping
        What was given, and the defaults.
    scaled : bool
        Whether the loss has a logit scale: then `temperature` is 1 / `logit_scale`.
    read : set of str
        Names of the values that were asked for, there or not.
    """

    values: Mapping[str, Any]
    scaled: bool = False
    read: set[str] = field(default_factory=set)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "temperature" and self.scaled:
            return 1 / self.logit_scale
        self.read.add(name)
        return self.values.get(name, _ANY)

    @property
    def missing(self) -> set[str]:
        """Names that were asked for and are not there; nothing computed from them means anything."""
        return self.read - self.values.keys()

    @property
    def positives(self) -> float:
        """Positives of an anchor: as given, or the mean over labels that are balanced in batch and queue."""
        if self.values.get("positives") is not None:
            self.read.add("positives")
            return float(self.values["positives"])
        return float(max(0.0, (self.views * self.n + self.queue) / self.classes - 1))

    @staticmethod
    def log(x: float) -> float:
        """Logarithm, minus infinity at 0."""
        return math.log(x) if x > 0 else -math.inf

    @staticmethod
    def softplus(x: float) -> float:
        """log(1 + e^x) without overflow, and without cancellation where it is tiny."""
        return max(x, 0.0) + math.log1p(math.exp(-abs(x)))

    def chance(self, k: int, own: int = 1) -> float | None:
        """Mean of log sum e^(s / T) over k + own cosines of independent uniform rows: the positive itself has mean 0.

        With D, the exact mean for this many terms. It is never above log(k + own) + log 0F1(; D/2; 1/(4 T^2)), by
        Jensen's inequality, and tends to it as k grows; the distance is near (0F1(; D/2; 1/T^2) / 0F1(; D/2;
        1/(4 T^2))^2 - 1) / (2 k), so that low temperatures need many negatives. Without D, its limit for large D:
        all cosines are 0. None with D and T < 1e-4, where the integral has too many nodes.

        Parameters
        ----------
        k : int
            Negatives of an anchor.
        own : int
            1 if the positive stands in the denominator, else 0.
        """
        if self.dim is None or k + own <= 0:
            return self.log(k + own)
        if self.temperature < _COLDEST:
            return None
        return mean_log_sum(k + own, 1 / self.temperature, int(self.dim))

    def cosine_bound(self, k: int, gap: float) -> float:
        """log(1 + k e^(gap / T)): every negative is more similar than the positive by `gap` (WL-1: gap = -2, 2)."""
        return self.softplus(self.log(k) + gap / self.temperature)

    def simplex(self, n: int, k: int) -> float | None:
        """log(1 + k e^(-n / ((n - 1) T))): aligned pairs on the corners of a simplex, which need D >= n - 1 (SC-8)."""
        return self.softplus(self.decoupled_bound(n, k)) if self._fits(n) else None

    def decoupled_simplex(self, n: int, k: int) -> float | None:
        """The simplex without the positive in the denominator: log k - n / ((n - 1) T)."""
        return self.decoupled_bound(n, k) if self._fits(n) else None

    def decoupled_bound(self, n: int, k: int) -> float:
        """The same as a bound of the batch mean in every dimension.

        By Jensen the mean is at least log k + g, g the mean of (s_negative - s_positive) / T, and that gap is at least
        -n / (n - 1) / T: similarities add up to |sum of rows|^2 >= 0.
        """
        return self.log(k) - n / ((n - 1) * float(self.temperature)) if n > 1 else -math.inf

    def class_simplex(self) -> float | None:
        """Floor of balanced SupCon: classes collapsed to the C corners of a simplex, l = rows / C (SC-8).

        None unless C divides the n samples, every row has a positive (l >= 2), and D >= C - 1 if D is given.
        """
        n, c, rows = self.n, int(self.classes), self.views * self.n
        if n % c or rows < 2 * c or (c > 1 and not self._fits(c)):
            return None
        others = -math.inf if c == 1 else self.log(rows - rows // c) - c / ((c - 1) * self.temperature)
        inside = self.log(rows // c - 1)
        return inside + self.softplus(others - inside)

    def uniform(self, t: float) -> float | None:
        """Log E exp(-t |u - v|^2) = log 0F1(; D/2; t^2) - 2t for independent uniform u, v (WI-3). None without D."""
        if self.dim is None:
            return None
        return log_0f1(self.dim / 2, t * t) - 2 * t

    def paco_bound(self) -> float:
        """(1 + a K) log(1 + a K) - a K log a with K positives; in the normalized form divided by 1 + a K (PC-5).

        K is `positives`. The bound is convex and increasing in K, hence below the mean over unbalanced labels too.
        """
        mass = self.alpha * self.positives
        bound: float = (1 + mass) * math.log1p(mass) - (mass * math.log(self.alpha) if mass else 0.0)
        return bound / (1 + mass) if self.form == "normalized" else bound

    def _fits(self, corners: int) -> bool:
        """Whether a simplex with so many corners exists in D dimensions; an unknown D is large enough."""
        return corners >= 2 and (self.dim is None or self.dim >= corners - 1)


def log_0f1(b: float, z: float) -> float:
    """Log of the confluent hypergeometric limit function 0F1(; b; z)."""
    import mpmath

    return float(mpmath.log(mpmath.hyp0f1(b, z)))


def mean_log_sum(terms: int, kappa: float, dim: int) -> float:
    """E log(e^(kappa s_1) + ... + e^(kappa s_m)) for independent cosines s_j of uniform rows in `dim` dimensions.

    By log x = integral over u of exp(-e^u) - exp(-x e^u), the mean is that of exp(-e^u) - phi(u)^m with
    phi(u) = E exp(-e^(u + kappa s)). Both integrands are analytic and fall off exponentially, so that the trapezoidal
    rule with these steps is exact to rounding.
    """
    import numpy as np

    cosines, weights = _cosines(kappa, dim)
    beyond = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    step, total = 0.25, 0.0
    for u in np.arange(-(kappa + math.log(terms) + 40), kappa + 4, step):
        # 1 - exp(-e^x) is below 1e-17 left of x = -40 and 1 to rounding right of x = 4.
        low, high = np.searchsorted(cosines, ((-40 - u) / kappa, (4 - u) / kappa))
        inside = weights[low:high] @ -np.expm1(-np.exp(u + kappa * cosines[low:high]))
        missing = float(inside + beyond[high])
        power = math.exp(terms * math.log1p(-missing)) if missing < 1 else 0.0
        total += math.exp(-math.exp(min(u, 5.0))) - power
    return total * step


def _cosines(kappa: float, dim: int) -> tuple[Any, Any]:
    """Nodes, rising, and weights of the cosine's law (1 - s^2)^((D - 3) / 2), by s = tanh v."""
    import numpy as np

    if dim == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    step = min(0.3 / max(kappa, 1.0), 0.2 / math.sqrt(dim))
    reach = 40 / (dim - 1) + math.sqrt(80 / (dim - 1))
    v = np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step
    weights = np.exp(-(dim - 1) * np.log(np.cosh(v)))
    return np.tanh(v), weights / weights.sum()
