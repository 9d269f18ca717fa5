"""Closed forms and integrals for what a loss reads at chance, at collapse and at the optimum, given a run's sizes.

`Sizes` is the argument of `Expectation.at`: the declaration of a loss computes from it what the loss reads.

Cosines are those of rows of length 1 (``normalize="l2"``); k counts the negatives of an anchor, T is the temperature.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_COLDEST = 1e-4

# Stands in for a value that is missing, so that one evaluation finds all that are.
_ANY = 2


@dataclass(frozen=True)
class Sizes:
    """Sizes and scalars as attributes, each recorded in `read` when it is looked up.

    Attributes
    ----------
    values : mapping
        What was given, and the defaults.
    scaled : bool
        Whether the loss has a logit scale: then `temperature` is 1 / `logit_scale`.
    read : set of str
        Names of the values that were looked up, there or not.
    reasons : list of str
        Why a situation does not arise.
    """

    values: Mapping[str, Any]
    scaled: bool = False
    read: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        # Names such as __deepcopy__, which Python looks up by itself, are no sizes.
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "temperature" and self.scaled:
            return 1 / self.logit_scale
        # Recorded even where it is missing: `missing` is made of that.
        self.read.add(name)
        return self.values.get(name, _ANY)

    @property
    def missing(self) -> set[str]:
        """Names that were looked up and are not there; nothing computed from them means anything."""
        return self.read - self.values.keys()

    def absent(self, reason: str) -> None:
        """Note why there is no value: ``needs D >= 255``."""
        self.reasons.append(reason)

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
            self.absent(f"the integral takes too long for T < {_COLDEST}")
            return None
        return mean_log_sum(k + own, 1 / self.temperature, int(self.dim))

    def inside_chance(self) -> float | None:
        """The same with a mean over l - 1 positives inside the logarithm, for balanced classes of l rows."""
        everyone, same = self.chance(self.views * self.n - 1, own=0), self._class_size()
        positives = None if same is None else self.chance(same - 1, own=0)
        if everyone is None or same is None or positives is None:
            return None
        return everyone - positives + self.log(same - 1)

    def margin_chance(self, own: Callable[[Any, Any], Any]) -> float | None:
        """Mean cross-entropy of `scale` times C cosines of a random row with random class weights, D given.

        Parameters
        ----------
        own : callable
            What a margin makes of the target's cosine: a function of cosine and sine.
        """
        if self.scale > 1 / _COLDEST:
            self.absent(f"the integral takes too long for s > {1 / _COLDEST:.0f}")
            return None
        cosines, weights = _cosines(self.scale, int(self.dim))
        target = own(cosines, _sines(cosines))
        total = mean_log_sum(int(self.classes), self.scale, int(self.dim), own)
        return total - float(self.scale * (weights @ target))

    def pair_chance(self) -> float | None:
        """E softplus(-t s - b) + (n - 1) E softplus(t s + b), s the cosine of independent uniform rows, D given."""
        import numpy as np

        scale, bias = self.logit_scale, self.logit_bias
        if scale > 1 / _COLDEST:
            self.absent(f"the integral takes too long for t > {1 / _COLDEST:.0f}")
            return None
        cosines, weights = _cosines(scale, int(self.dim))
        z = scale * cosines + bias
        return float(weights @ (np.logaddexp(0.0, -z) + (self.n - 1) * np.logaddexp(0.0, z)))

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
        same, c, t = self._class_size(), int(self.classes), self.temperature
        if same is None or (c > 1 and not self._fits(c)):
            return None
        others = -math.inf if c == 1 else self.log((c - 1) * same) - c / ((c - 1) * t)
        inside = self.log(same - 1)
        return inside + self.softplus(others - inside)

    def _class_size(self) -> int | None:
        """Rows of a class, all views of it, if classes are balanced and every row has a positive."""
        n, c = int(self.n), int(self.classes)
        if n % c:
            self.absent(f"{n} is not a multiple of {c} classes")
            return None
        same = int(self.views) * n // c
        if same < 2:
            self.absent("needs 2 rows of a class, or there is no positive")
            return None
        return same

    def uniform(self, t: float) -> float | None:
        """Log E exp(-t |u - v|^2) = log 0F1(; D/2; t^2) - 2t for independent uniform u, v (WI-3). None without D."""
        if self.dim is None:
            return None  # and `dim` is recorded as looked up
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
        if corners < 2:
            self.absent("needs N >= 2")
        elif self.dim is not None and self.dim < corners - 1:
            self.absent(f"needs D >= {corners - 1}")
        else:
            return True
        return False


def log_0f1(b: float, z: float) -> float:
    """Log of the confluent hypergeometric limit function 0F1(; b; z)."""
    import mpmath

    if math.isinf(z):
        msg = "the exponents leave the range of 64-bit floats"
        raise OverflowError(msg)
    return float(mpmath.log(mpmath.hyp0f1(b, z)))


def mean_log_sum(terms: int, kappa: float, dim: int, own: Callable[[Any, Any], Any] | None = None) -> float:
    """E log(e^(kappa s_1) + ... + e^(kappa s_m)) for independent cosines s_j of uniform rows in `dim` dimensions.

    By log x = integral over u of exp(-e^u) - exp(-x e^u), the mean is that of exp(-e^u) - phi(u)^m with
    phi(u) = E exp(-e^(u + kappa s)). Both integrands are analytic and fall off exponentially, so that the trapezoidal
    rule with these steps is exact to rounding.

    Parameters
    ----------
    terms : int
        m, at least 1.
    kappa : float
        Inverse temperature, or scale, of the cosines.
    dim : int
        Features of a row.
    own : callable, optional
        A function of cosine and sine: own(s_1) stands in the place of s_1.

    Returns
    -------
    float
        In nats.
    """
    import numpy as np

    cosines, weights = _cosines(kappa, dim)
    every = _law(kappa * cosines, weights)
    first = None if own is None else _law(kappa * own(cosines, _sines(cosines)), weights)
    reach = kappa if first is None else max(kappa, float(np.max(np.abs(first[0]))))
    # Left of the range of u both terms are 1 to rounding (e^-40 is 4e-18), right of it both are 0.
    equal, step, total = terms - (first is not None), 0.25, 0.0
    for u in np.arange(-(reach + math.log(terms) + 40), reach + 4, step):
        missing = _missing(u, *every)
        # phi^m through log1p: 1 - phi has its digits where phi is nearly 1.
        power = math.exp(equal * math.log1p(-missing)) if missing < 1 else float(equal == 0)
        power *= 1.0 if first is None else 1 - _missing(u, *first)
        # exp(-e^5) is 4e-65, that is, 0; the cap keeps e^u finite.
        total += math.exp(-math.exp(min(u, 5.0))) - power
    return total * step


def _law(values: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Values, rising, with their weights, and the weight of each and all above it: `_missing` needs no full sum."""
    import numpy as np

    order = np.argsort(values)
    return values[order], weights[order], np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)


def _missing(u: float, values: Any, weights: Any, beyond: Any) -> float:
    """1 - E exp(-e^(u + x)): it is below 1e-17 left of u + x = -40 and 1 to rounding right of 4."""
    import numpy as np

    low, high = np.searchsorted(values, (-40 - u, 4 - u))
    return float(weights[low:high] @ -np.expm1(-np.exp(u + values[low:high])) + beyond[high])


def _sines(cosines: Any) -> Any:
    import numpy as np

    return np.sqrt((1 - cosines) * (1 + cosines))


def _cosines(kappa: float, dim: int) -> tuple[Any, Any]:
    """Nodes, rising, and weights of the cosine's law (1 - s^2)^((D - 3) / 2), by s = tanh v."""
    import numpy as np

    # On a line the cosine is a sign, without a density.
    if dim == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    # The weight cosh(v)^-(D - 1) has a width of 1 / sqrt(D) and falls below e^-40 within the reach: like
    # exp(-(D - 1) v^2 / 2) near 0, like (2 e^-v)^(D - 1) far out.
    step = min(0.3 / max(kappa, 1.0), 0.2 / math.sqrt(dim))
    reach = 40 / (dim - 1) + math.sqrt(80 / (dim - 1))
    v = np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step
    weights = np.exp(-(dim - 1) * np.log(np.cosh(v)))
    return np.tanh(v), weights / weights.sum()
