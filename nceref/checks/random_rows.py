"""Means over independent uniform rows that have no closed form: drawn, with half of their 95 % interval.

A control variate, a quantity with a known mean that moves with the loss, takes most of the scatter away. The draws are
always the same ones.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Self

from nceref.checks.integrals import log_0f1, mean_log_sum

_NUMBERS = 500_000
"""That many are drawn: less than a second."""
_AT_ONCE = 100_000
_FEWEST = 64
"""Draws, at least."""
MOST_NEGATIVES = 100_000
_MOST_POINTS = 256
_RARE, _HIGHEST = 0.1, 700.0


class Estimate(float):
    """A mean over random rows that need not be exact; `how` says what `error` is.

    `spread` is the standard deviation of one batch around the mean, None where it is not known.
    """

    error: float
    how: str
    spread: float | None

    def __new__(cls, value: float, error: float = 0.0, how: str = "", spread: float | None = None) -> Self:
        """Make it of the number, its error, what that is, and the scatter of one batch."""
        self = super().__new__(cls, value)
        self.error, self.how, self.spread = error, how, spread
        return self


def mean_of_rows(
    count: int,
    kappa: float,
    dim: int,
    exponents: Mapping[str, float],
    head: Callable[[Any], Any],
    hardest: int | None = None,
) -> Estimate:
    """Mean of a row whose loss is a head over log-sum-exps of the anchor's negatives.

    Given the anchor, its cosines with independent uniform rows are independent, each of the same law: a row takes
    `count` + 1 draws, not a batch. The control variates are the positive's cosine, of mean 0, and log sum e^(kappa s)
    over all of them (`mean_log_sum`).

    `count`: negatives of an anchor. `kappa`: inverse temperature. `dim`: features of a row. `exponents`: factor on the
    logits by name of the statistic. `head`: head of the loss: statistics by name, "positive" among them, to row values.
    `hardest`: so many negatives count, the most similar ones. Result: with half of the 95 % interval of the mean.
    """
    import numpy as np

    def draw(rng: Any, stack: int) -> tuple[Any, Any]:
        logits = kappa * _cosines(rng, (stack, count + 1), dim)
        negatives = logits[:, 1:]
        kept = negatives if hardest is None else np.sort(negatives, axis=1)[:, count - hardest :]
        stats = {name: np.logaddexp.reduce(factor * kept, axis=1) for name, factor in exponents.items()}
        return head({**stats, "positive": logits[:, 0]})[0], logits

    return _mean_of_draws(draw, count + 1, mean_log_sum(count + 1, kappa, dim))


def mean_of_pairs(own: int, one: int, both: int, kappa: float, dim: int) -> Estimate:
    """Mean of -log softmax of a pair of rows at `own` logits of their cosine, among logits of other rows.

    Of `one` independent uniform rows the cosine with either row of the pair counts, of `both` those with each: given
    the pair, these two are no longer independent. The control variates are as in `mean_of_rows`, the second over one
    cosine of every row.

    `kappa`: inverse temperature. `dim`: features of a row. Result: with half of the 95 % interval of the mean.
    """
    import numpy as np

    def draw(rng: Any, stack: int) -> tuple[Any, Any]:
        first = _cosines(rng, (stack, 1 + one + both), dim)
        positive, shared = first[:, :1], first[:, 1 + one :]
        # A uniform row across the first of the pair has its cosine with the rest of the second by the same law.
        across = _cosines(rng, shared.shape, dim - 1) if dim > 1 else 0 * shared
        second = positive * shared + np.sqrt(1 - positive**2) * np.sqrt(1 - shared**2) * across
        logits = kappa * np.concatenate([positive] * (own - 1) + [first, second], axis=1)
        return np.logaddexp.reduce(logits, axis=1) - kappa * positive[:, 0], kappa * first

    return _mean_of_draws(draw, 1 + one + 2 * both, mean_log_sum(1 + one + both, kappa, dim))


def _mean_of_draws(draw: Callable[[Any, int], tuple[Any, Any]], numbers: int, level: float) -> Estimate:
    """Mean of rows that are drawn a stack at a time.

    `draw`: the values of so many rows, and logits of independent cosines, the positive's first. `numbers`: drawn a row.
    `level`: the mean of the log-sum-exp of these logits.
    """
    import numpy as np

    rng, stack, rows, zero = np.random.default_rng(0), max(_FEWEST, _AT_ONCE // numbers), [], []
    for _ in range(0, max(_FEWEST, _NUMBERS // numbers), stack):
        values, logits = draw(rng, stack)
        rows.append(values)
        zero.append(np.stack([logits[:, 0], np.logaddexp.reduce(logits, axis=1) - level], axis=1))
    return _controlled(np.concatenate(rows), np.concatenate(zero))


def _cosines(rng: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Cosines of uniform rows: (1 + s) / 2 has a beta law; on a line it is 0 or 1."""
    return rng.integers(0, 2, shape) * 2.0 - 1 if dim == 1 else 2 * rng.beta((dim - 1) / 2, (dim - 1) / 2, shape) - 1


def mean_log_potential(n: int, t: float, dim: int, least: float) -> Estimate:
    """E log mean_(i < j) exp(-t |x_i - x_j|^2) over n independent uniform points.

    Let q be the mean potential over e^U, U = log 0F1(; D/2; t^2) - 2t. The potentials of two pairs are uncorrelated,
    also where they share a point, for E k(x, y) given x is the same for every x. Hence E q = 1 and the variance of q
    is v / P, P = n (n - 1) / 2, v = 0F1(; D/2; 4 t^2) / 0F1(; D/2; t^2)^2 - 1: two control variates. By

        q - 1 - log q = (q - 1)^2 integral from 0 to 1 of s / (1 + s (q - 1)) ds,

    where the integral falls with q, 0 <= U - E log q <= c v / P with its value c at the least q: for many points that
    is a number.

    `n`: points, at least 2. `t`: sharpness of the potential. `dim`: features of a point. `least`: a lower bound of the
    log of the mean potential. Result: with half of the 95 % interval of the mean; for more points than can be drawn,
    with half of the interval above. Its spread is that of the draws, exact for two points, and that of q where its
    variance is small.
    """
    import numpy as np

    flat = log_0f1(dim / 2, t * t)
    pairs, uniform = n * (n - 1) / 2, flat - 2 * t
    power = log_0f1(dim / 2, 4 * t * t) - 2 * flat
    variance = math.expm1(power) / pairs if power < _HIGHEST else math.inf
    if n == 2:
        # The mean of -t |x - y|^2 = -2t + 2t s, where s has variance 1 / D.
        return Estimate(-2.0 * t, spread=2 * t / math.sqrt(dim))
    if n > _MOST_POINTS:
        gap = math.expm1(least - uniform)
        # Its limit for a gap of 0 is 1 / 2, which 1e-6 changes by 3e-7: a part of a number that is tiny there.
        c = 0.5 if abs(gap) < 1e-6 else (gap - (least - uniform)) / gap**2
        half = (uniform - max(uniform - c * variance, least)) / 2
        how = "within ± for certain, as log q >= q - 1 - c (q - 1)^2"
        return Estimate(uniform - half, half, how, None if variance > _RARE else math.sqrt(variance))
    rng, (row, column) = np.random.default_rng(0), np.triu_indices(n, 1)
    stack, rounds = max(1, _AT_ONCE // n**2), max(_FEWEST, 2 * _NUMBERS // n**2)
    logs = []
    for _ in range(0, rounds, stack):
        x = points(rng, stack, n, dim)
        logs.append(_log_means(-2 * t * (1 - (x @ np.swapaxes(x, 1, 2))[:, row, column])))
    drawn = np.concatenate(logs)
    # Rare close pairs make up a large variance: the draws then lack them, and q is no control variate.
    zero, excess = np.empty((len(drawn), 0)), np.expm1(drawn - uniform)
    if variance <= _RARE:
        zero = np.stack([excess, excess**2 - variance], axis=1)
    mean = _controlled(drawn, zero)
    return Estimate(mean, mean.error, mean.how, float(np.std(drawn)))


def _log_means(exponents: Any) -> Any:
    """Log of the mean of e^x over each row; near 0 of what it lacks to 1, which keeps the digits of tiny exponents."""
    import numpy as np

    if np.min(exponents) > -1:
        return np.log1p(np.mean(np.expm1(exponents), axis=1))
    return np.logaddexp.reduce(exponents, axis=1) - math.log(exponents.shape[1])


def points(rng: Any, stack: int, n: int, dim: int) -> Any:
    """Sets of uniform points; of more than n coordinates, those in the span of the points before (Bartlett)."""
    import numpy as np

    x = rng.standard_normal((stack, n, min(n, dim)))
    if dim > n:
        x = np.tril(x, -1) + np.eye(n) * np.sqrt(rng.chisquare(dim - np.arange(n), (stack, n)))[:, :, None]
    return x / np.linalg.norm(x, axis=2, keepdims=True)


def _controlled(values: Any, zero: Any) -> Estimate:
    """Mean of values less their regression on columns whose means are known to be 0."""
    import numpy as np

    slopes = np.linalg.lstsq(zero - zero.mean(axis=0), values - values.mean(), rcond=None)[0]
    rest = values - zero @ slopes
    # Twice the standard error: Student's t for the fewest draws.
    error = 2 * float(np.std(rest, ddof=1 + zero.shape[1])) / math.sqrt(len(rest))
    return Estimate(float(np.mean(rest)), error, f"± is half of the 95 % interval over {len(rest):,} draws")
