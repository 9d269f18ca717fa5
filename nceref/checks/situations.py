"""Closed forms and integrals for what a loss reads at chance, at collapse and at the optimum, given a run's sizes.

`Sizes` is the argument of `Expectation.at`: the declaration of a loss computes from it what the loss reads.

Cosines are those of rows of length 1 (``normalize="l2"``); k counts the negatives of an anchor, T is the temperature.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.checks.integrals import (
    cosine_law,
    distance_power,
    log_0f1,
    mean_log_sum,
    mean_softmax_cosine,
    sines,
)
from nceref.checks.optima import (
    debiased_optimum,
    largest_margin_logit,
    margin_gap,
    sigmoid_optimum,
    target_entropy,
)
from nceref.checks.optimal_points import least_potential
from nceref.checks.random_rows import MOST_NEGATIVES, Estimate, mean_log_potential, mean_of_pairs, mean_of_rows

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
        """Note why there is no value, one reason of perhaps several: ``known for D >= 255``."""
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

        `k`: negatives of an anchor. `own`: 1 if the positive stands in the denominator, else 0.
        """
        if self.dim is None or k + own <= 0:
            return self.log(k + own)
        if self.temperature < _COLDEST:
            self.absent(f"the integral takes too long for T < {_COLDEST}")
            return None
        return mean_log_sum(k + own, 1 / self.temperature, int(self.dim))

    def sampled_chance(
        self, k: int, exponents: Mapping[str, float], head: Callable[[Any], Any], hardest: int | None = None
    ) -> Estimate | None:
        """Mean of a head over log-sum-exps of k negatives, with D: see `mean_of_rows`."""
        if k > MOST_NEGATIVES or self.temperature < _COLDEST:
            self.absent(f"drawing takes too long for more than {MOST_NEGATIVES:,} negatives or T < {_COLDEST}")
            return None
        return mean_of_rows(k, 1 / self.temperature, int(self.dim), exponents, head, hardest)

    def chance_of_pairs(self, own: int, one: int, both: int) -> Estimate | float | None:
        """Mean of -log softmax where other rows meet one row of the pair or both, with D: see `mean_of_pairs`."""
        if own == 1 and not both:
            return self.chance(one)
        if one + both > MOST_NEGATIVES or self.temperature < _COLDEST:
            self.absent(f"drawing takes too long for more than {MOST_NEGATIVES:,} rows or T < {_COLDEST}")
            return None
        return mean_of_pairs(own, one, both, 1 / self.temperature, int(self.dim))

    def weighted_chance(self) -> float | None:
        """Mean of DCLW: that of DCL, and 1 / T times that of sum_k s_k e^(s_k/sigma) / sum_k e^(s_k/sigma).

        The mean of -w_i s_i is that of -2 s_i, which is 0, plus the one of s_i e^(s_i/sigma) over the batch mean.
        """
        if self.sigma < _COLDEST:
            self.absent(f"the integral takes too long for sigma < {_COLDEST}")
            return None
        temperature, decoupled = float(self.temperature), self.chance(2 * self.n - 2, own=0)
        if decoupled is None or not math.isfinite(decoupled):
            return decoupled
        return decoupled + mean_softmax_cosine(int(self.n), 1 / self.sigma, int(self.dim)) / temperature

    def paco_chance(self) -> float | None:
        """(1 + a K) E log(C + sum of e^(s/T) over the other rows), K positives, all center logits 0."""
        others, factor = self.views * self.n + self.queue - 1, 1 + self.alpha * self.positives
        known = self.form == "normalized" or self._positives_known()
        if self.dim is None or others < 1:
            level = math.log(others + self.classes)
        elif self.temperature < _COLDEST:
            self.absent(f"the integral takes too long for T < {_COLDEST}")
            return None
        else:
            level = mean_log_sum(int(others), 1 / self.temperature, int(self.dim), plus=float(self.classes))
        if self.form == "normalized":
            return level
        return float(factor * level) if known else None

    def paco_collapse(self) -> float | None:
        """(1 + a K) log(C + (n + M - 1) e^(1/T)) - a K / T, divided by 1 + a K in the normalized form.

        All similarities are 1 and all center logits 0.
        """
        if not self._positives_known():
            return None
        mass, others = self.alpha * self.positives, self.views * self.n + self.queue - 1
        top = 1 / self.temperature if others > 0 else 0.0
        # Both terms are measured from the positives, and a level of 1 / T cancels but for the center.
        level = math.log(others + self.classes * math.exp(-top))
        out = (1 + mass) * level + top
        return float(out / (1 + mass) if self.form == "normalized" else out)

    def _positives_known(self) -> bool:
        """Whether every anchor has the same number of positives, or the mean is given."""
        if self.values.get("positives") is None and self.n % self.classes:
            # The mean of K over unbalanced labels depends on them.
            self.absent(f"known for balanced classes ({self.n} is not a multiple of {self.classes}) or `positives`")
            return False
        return True

    def inside_chance(self) -> float | None:
        """The reading at chance with a mean over l - 1 positives inside the logarithm; classes have l rows each."""
        everyone, same = self.chance(self.views * self.n - 1, own=0), self._class_size()
        positives = None if same is None else self.chance(same - 1, own=0)
        if everyone is None or same is None or positives is None:
            return None
        return everyone - positives + self.log(same - 1)

    def margin_chance(self, own: Callable[[Any, Any], Any], jump: float | None = None) -> float | None:
        """Mean cross-entropy of `scale` times C cosines of a random row with random class weights, D given.

        `own`: what a margin makes of the target's cosine: a function of cosine and sine. `jump`: the angle at which
        that function jumps.
        """
        if self.scale > 1 / _COLDEST:
            self.absent(f"the integral takes too long for s > {1 / _COLDEST:.0f}")
            return None
        cosines, weights = cosine_law(self.scale, int(self.dim), jump)
        target = own(cosines, sines(cosines))
        if self.scale * max(abs(target)) > 2 / _COLDEST:
            self.absent(f"the integral takes too long for s m > {1 / _COLDEST:.0f}")
            return None
        total = mean_log_sum(int(self.classes), self.scale, int(self.dim), own, jump=jump)
        return total - float(self.scale * (weights @ target))

    def distance_chance(self) -> Estimate:
        """E |x - y|^a for independent uniform rows, D given; a batch is the mean of n independent ones."""
        mean, spread = distance_power(float(self.exponent), int(self.dim))
        n = self.values.get("n")
        return Estimate(mean, spread=spread / math.sqrt(n) if n and math.isfinite(spread) else None)

    def pair_chance(self) -> Estimate | None:
        """E softplus(-t s - b) + (n - 1) E softplus(t s + b), s the cosine of independent uniform rows, D given.

        Any two of the n^2 cosines are independent, also those with a row in common: the variances add up.
        """
        import numpy as np

        scale, bias = self.logit_scale, self.logit_bias
        if scale > 1 / _COLDEST:
            self.absent(f"the integral takes too long for t > {1 / _COLDEST:.0f}")
            return None
        cosines, weights = cosine_law(scale, int(self.dim))
        z = scale * cosines + bias
        own, other = np.logaddexp(0.0, -z), np.logaddexp(0.0, z)
        means = weights @ own, weights @ other
        variance = weights @ (own - means[0]) ** 2 + (self.n - 1) * (weights @ (other - means[1]) ** 2)
        return Estimate(means[0] + (self.n - 1) * means[1], spread=math.sqrt(variance / self.n))

    def similarity_chance(self) -> Estimate:
        """0; the variance of one batch is that of n cosines of pairs and, each weighed w, of n (n - 1) others."""
        n, dim, push = int(self.n), self.values.get("dim"), self.simple_push()
        return Estimate(0.0, spread=None if dim is None else math.sqrt((1 + push**2 / max(1, n - 1)) / n / dim))

    def simple_push(self) -> float:
        """The weight of all negatives of a row together, w (n - 1): 1 by default."""
        weight = self.negative_weight
        if self.n < 2:
            return 0.0
        return 1.0 if weight is None else float(weight * (self.n - 1))

    def simple_bound(self) -> float:
        """The most that |L| can be, L = -s_ii + w sum s_ij in the mean.

        With the rows x, y less their means x0, y0, and a, b the mean squares of what is left,

            L = -(1 + w) mean x.y + (w (n - 1) - 1) x0.y0,  |x0|^2 = 1 - a, |y0|^2 = 1 - b,

        so that |L| <= (1 + w) sqrt(a b) + |w (n - 1) - 1| sqrt((1 - a) (1 - b)), which is at most the larger factor.
        """
        push = self.simple_push()
        return float(max(1 + push / max(1, self.n - 1), push - 1))

    def simple_optimum(self) -> float | None:
        """The bound, which an odd number of rows +-1 cannot read: they do not add up to 0."""
        if self.values.get("dim") == 1 and self.n > 1 and self.n % 2 and -self.simple_bound() < 1 - self.simple_push():
            self.absent("known for D >= 2 if N is odd")
            return None
        return -self.simple_bound()

    def set_bound(self, gap: float) -> float | None:
        """`cosine_bound` of an anchor with any positives among n - 1 rows, for the mean in and outside the logarithm.

        Every candidate counts e^(gap / T) of a positive at most (gap = 2) or at least (-2), but the positive itself: 1.
        With the mean inside, that is said of the least (most) similar positive, which the mean is above (below).
        """
        others = self.views * self.n - 2
        if others < 0:
            self.absent("needs 2 rows, or there is no positive")
            return None
        return self.cosine_bound(others, gap)

    def weighted_bound(self) -> float:
        """No batch has a larger mean of -w s than 1 + 4 (1-r)^2 / (2-r^2), r = min(1, sqrt(2) e^(-1/sigma)).

        It is -2 mean(s) + sum s e^(s/sigma) / sum e^(s/sigma). Where the last sum is given, that is convex in each
        e^(s/sigma), and so is largest for laws of s on -1 and 1. With a share p at 1 and q = e^(2/sigma) it is
        1 - 4 p + 2 p q / (1 + p (q - 1)), which is largest at p = 0 or 1 + p (q - 1) = sqrt(q / 2) = 1/r.
        """
        r = min(1.0, math.sqrt(2) * math.exp(-1 / self.sigma))
        return 1 + 4 * (1 - r) ** 2 / (2 - r * r)

    def debiased_bound(self) -> float:
        """log(1 + n (e^(2/T) - prior) / (1 - prior)) for n negatives, also of weighted ones: means are at most e^(1/T).

        On the clamp n e^(-1/T) / e^+ is at most n, which is less.
        """
        prior, gap = self.positive_prior, 2 / self.temperature
        corrected = math.log1p(-prior * math.exp(-gap)) - math.log1p(-prior)
        return self.softplus(self.log(2 * self.n - 2) + gap + corrected)

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
        """The value at the simplex as a bound of the batch mean in every dimension.

        By Jensen the mean is at least log k + g, g the mean of (s_negative - s_positive) / T, and that gap is at least
        -n / (n - 1) / T: similarities add up to |sum of rows|^2 >= 0.
        """
        return self.log(k) - n / ((n - 1) * float(self.temperature)) if n > 1 else -math.inf

    def class_simplex(self) -> float | None:
        """Floor of balanced SupCon: classes collapsed to the C corners of a simplex, l = rows / C (SC-8).

        None unless C divides the n samples, every row has a positive (l >= 2), and D >= C - 1 if D is given.
        """
        same, c, t = self._class_size(), int(self.classes), self.temperature
        fits = c == 1 or self._fits(c)
        if same is None or not fits:
            return None
        others = -math.inf if c == 1 else self.log((c - 1) * same) - c / ((c - 1) * t)
        inside = self.log(same - 1)
        return inside + self.softplus(others - inside)

    def cosface_bound(self, others: float) -> float:
        """log(1 + (C-1) e^(-s (1 - m - others))): the target's cosine is 1, those of the other classes `others`."""
        return self.softplus(self.log(self.classes - 1) - self.scale * (1 - self.margin - others))

    def cosface_simplex(self) -> float | None:
        """Class weights on a simplex, every row equal to the weights of its class; see `margin_gap`, psi = cos - m."""
        return self.cosface_bound(-1 / max(1, self.classes - 1)) if self._fits_classes() else None

    def arcface_bound(self) -> float:
        """log(1 + (C-1) e^(-s (1 + psi))) with the largest psi: the cosines of the other classes are -1."""
        largest = largest_margin_logit(self.margin, linear=self.fallback == "linear")
        return self.softplus(self.log(self.classes - 1) - self.scale * (1 + largest))

    def arcface_optimum(self) -> float | None:
        """log(1 + (C-1) e^(-s gap)) for balanced classes, see `margin_gap`."""
        if self.classes == 1:
            return 0.0
        best = margin_gap(self.margin, int(self.classes), linear=self.fallback == "linear")
        if best is None:
            self.absent("approached where the linear fallback jumps, never attained")
        fits = self._fits_classes(simplex=best is not None and best[1])
        if best is None or not fits:
            return None
        gap, _ = best
        return self.softplus(self.log(self.classes - 1) - self.scale * gap)

    def _fits_classes(self, *, simplex: bool = True) -> bool:
        """Whether so many classes can be balanced, and stand on a simplex if they have to."""
        # The size of a batch of which only the classes matter may be missing, and is not asked for.
        balanced = self._balanced(self.values.get("n") or 0)
        fits = not simplex or self.classes == 1 or self._fits(int(self.classes))
        return balanced and fits

    def sigmoid_optimum(self) -> float | None:
        """The least value over all rows for this scale and bias, see `optima`."""
        value, dim = sigmoid_optimum(float(self.logit_scale), float(self.logit_bias), int(self.n))
        if self.dim is not None and self.dim < dim:
            self.absent(f"known for D >= {dim}")
            return None
        return value

    def debiased_optimum(self) -> float | None:
        """The least value over all rows, see `optima`."""
        fits = self._fits(int(self.n))
        if self.n < 2:
            return None
        value = debiased_optimum(float(self.temperature), float(self.positive_prior), int(self.n))
        if value is None:
            self.absent("known for prior <= 1/(2N-1), or where the clamp acts on a simplex")
        return value if fits else None

    def target_entropy(self) -> float:
        """Entropy of the smoothed target."""
        return target_entropy(float(self.label_smoothing), int(self.classes))

    def smoothed_optimum(self) -> float | None:
        """The entropy of the target where logits attain it: with no smoothing that takes an infinite one."""
        return self.target_entropy() if self.label_smoothing else self.infimum(self.classes == 1)

    def infimum(self, attained: bool = False) -> float | None:
        """0 where it is attained, and else the reason why there is no optimum."""
        if attained:
            return 0.0
        self.absent("the infimum 0 is approached as logits grow, never attained")
        return None

    def _class_size(self) -> int | None:
        """Rows of a class, all views of it, if classes are balanced and every row has a positive."""
        n, c = int(self.n), int(self.classes)
        if not self._balanced(n):
            return None
        same = int(self.views) * n // c
        if same < 2:
            self.absent("needs 2 rows of a class, or there is no positive")
            return None
        return same

    def _balanced(self, n: int) -> bool:
        """Whether so many samples can be of classes that are equally many."""
        balanced = bool(n % self.classes == 0)
        if not balanced:
            self.absent(f"known for balanced classes ({n} is not a multiple of {self.classes})")
        return balanced

    def uniform(self) -> float | None:
        """U = log E exp(-t |u - v|^2) = log 0F1(; D/2; t^2) - 2t, for uniform u, v (WI-3). None without D."""
        if self.dim is None:
            return None  # and `dim` is recorded as looked up
        t = float(self.t)
        return log_0f1(self.dim / 2, t * t) - 2 * t

    def potential_chance(self) -> Estimate | None:
        """Mean over n independent uniform points, which is below U: the logarithm is concave."""
        if self.dim is None or self.n < 2:
            return None
        return mean_log_potential(int(self.n), self.t, int(self.dim), self.potential_bound() or -math.inf)

    def potential_bound(self) -> float | None:
        """No n points have less uniformity L than the larger of -2 t n / (n - 1) and log((n e^U - 1) / (n - 1)).

        The first is Jensen's: the mean of |x_i - x_j|^2 over pairs is at most 2 n / (n - 1), as |sum of rows|^2 >= 0.
        The second: of all laws on the sphere, the uniform one has the least mean potential e^U (WI-3), hence also
        among laws of n points. Over all n^2 ordered pairs, n of which are a point with itself and count 1,

            (n (n - 1) e^L + n) / n^2 >= e^U.

        It needs n e^U > 1. The least L is at most U, for random points have e^L = e^U in the mean; and as n grows, the
        bound comes up to U: it is U + log(1 - (e^-U - 1) / (n - 1)).
        """
        n, t = int(self.n), float(self.t)
        if n < 2:
            return None
        simplex, uniform = -2 * t * n / (n - 1), self.uniform()
        # Less what rounding may add to e^U, where U is a difference of numbers near 2t.
        excess = 0.0 if uniform is None else n * math.exp(uniform) * (1 - 2.0**-48 * (1 + t)) - 1
        return max(simplex, math.log(excess / (n - 1))) if excess > 0 else simplex

    def least_potential(self) -> float | None:
        """Uniformity of the points that minimize it, where they are known: see `optimal_points`."""
        if self.dim is None or self.n < 2:
            return None
        value, bound = least_potential(int(self.n), float(self.t), int(self.dim)), self.potential_bound()
        if value is None or bound is None:
            self.absent("known for N <= D + 1, N = 2 D, D <= 2 and 14 more sizes; else from the lower bound to chance")
            return None
        # For a tiny t both are equal but for their last digit.
        return max(value, bound)

    def paco_bound(self) -> float:
        """(1 + a K) log(1 + a K) - a K log a with K positives; in the normalized form divided by 1 + a K (PC-5).

        K is `positives`. Without it, the anchors of a class of m rows have m - 1: the sum over them is convex in m, so
        that no labels are below those whose classes differ by one row at most. A queue can only add positives.
        """
        if self.values.get("positives") is not None:
            return self._paco_row(self.positives)
        rows, more = divmod(int(self.n), int(self.classes))
        larger, smaller = (rows + 1) * more * self._paco_row(rows), rows * (self.classes - more)
        return float((larger + (smaller * self._paco_row(rows - 1) if smaller else 0.0)) / self.n)

    def _paco_row(self, positives: float) -> float:
        """The least value of an anchor with so many positives."""
        mass = self.alpha * positives
        bound: float = (1 + mass) * math.log1p(mass) - (mass * math.log(self.alpha) if mass else 0.0)
        return bound / (1 + mass) if self.form == "normalized" else bound

    def _fits(self, corners: int) -> bool:
        """Whether a simplex with so many corners exists in D dimensions; an unknown D is large enough."""
        if corners < 2:
            self.absent("needs N >= 2")
        elif self.dim is not None and self.dim < corners - 1:
            self.absent(f"known for D >= {corners - 1}")
        else:
            return True
        return False
