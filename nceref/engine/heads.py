"""Heads that two or more losses share: row values from row statistics, and their derivative by hand.

A head is a function of the statistics by name. It returns the row values, (n,), and their backward pass, a
vector-Jacobian product: `vjp(c)` maps c = d total / d rows, (n,), to d total / d statistic by name, each in the shape
of the statistic, and to d total / d scalar where the head reads a scalar argument itself.

No digit may be lost where a loss is tiny, as it is for a trained model. Hence softplus(negatives - positive) in place
of log(sum of all) - positive, and expm1 and log1p wherever numbers near 1 meet.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from nceref.engine.namespaces import array_namespace
from nceref.errors import InputError

Array = Any
HeadVjp = Callable[[Array], dict[str, Any]]
HeadRows = tuple[Array, HeadVjp]
"""Row values, and their backward pass."""
Head = Callable[[dict[str, Array]], HeadRows]


def monotone(f: Callable[..., Array], signs: tuple[int, ...], *x: Array) -> Array:
    """The function, said to rise (+1) or to fall (-1) with each argument: intervals of the error analysis rely on it.

    `signs` has one for each argument.
    """
    ends = getattr(x[0], "ends", None)
    return f(*x) if ends is None else ends(f, signs, x)


def cancelling(x: Array) -> Array:
    """A number that is subtracted and added again, so that any one near it would do: of an interval, its middle."""
    return getattr(x, "middle", x)


def softplus_and_sigmoid(x: Array) -> tuple[Array, Array]:
    """log(1 + e^x) and its slope 1 / (1 + e^-x) from one exponential, exact to rounding from e^-745 on.

    For x < 0 the slope is e / (1 + e), which keeps its digits. Intervals of the error analysis have their own.
    """
    of_interval = getattr(x, "softplus_and_sigmoid", None)
    values: tuple[Array, Array] = of_interval(_softplus_and_sigmoid) if of_interval else _softplus_and_sigmoid(x)
    return values


def _softplus_and_sigmoid(x: Array) -> tuple[Array, Array]:
    xp = array_namespace(x)
    e = xp.exp(-xp.abs(x))
    value = xp.log1p(e)
    value += xp.where(x < 0, 0.0, x)
    return value, xp.where(x < 0, e, 1.0) / (1 + e)


def softplus_and_sigmoid_of_block(x: Array, bounded: bool) -> tuple[Array, Array]:
    """`softplus_and_sigmoid` over a block of logits; where they are bounded, without branches and without log1p.

    log(1 + e) is log(u) + (e - (u - 1)) / u with u = 1 + e rounded, what the sum lost comes back to first order; and
    log is vectorized wherever exp is, which log1p is not.

    `bounded` says that neither e^x nor a product of two of them leaves the range of the dtype.
    """
    if not bounded:
        return softplus_and_sigmoid(x)
    xp = array_namespace(x)
    e = xp.exp(x)
    u = 1 + e
    inverse = 1 / u
    value = e - (u - 1)
    value *= inverse
    value += xp.log(u)
    e *= inverse
    return value, e


def softplus(x: Array) -> Array:
    """log(1 + e^x)."""
    return softplus_and_sigmoid(x)[0]


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    return softplus_and_sigmoid(x)[1]


def softmax_one_positive(stats: dict[str, Array]) -> HeadRows:
    """-log softmax at the positive, as softplus(negatives - positive): no digit is lost when the loss is tiny.

    All statistics but `positive` are log-sum-exps of negatives: several are joined to one.
    """
    xp = array_namespace(stats["positive"])
    negatives = {name: x for name, x in stats.items() if name != "positive"}
    total = reduce(xp.logaddexp, negatives.values())
    loss, missed = softplus_and_sigmoid(total - stats["positive"])

    def vjp(c: Array) -> dict[str, Any]:
        g = c * missed
        if len(negatives) == 1:
            return {"positive": -g, **dict.fromkeys(negatives, g)}
        # Without a negative the slope is 0 anyway.
        level = xp.where(total > -xp.inf, total, 0.0)
        return {"positive": -g, **{name: g * xp.exp(x - level) for name, x in negatives.items()}}

    return loss, vjp


def difference(stats: dict[str, Array]) -> HeadRows:
    """Negatives - positive: the positive is not in the denominator."""

    def vjp(c: Array) -> dict[str, Any]:
        return {"negatives": c, "positive": -c}

    return stats["negatives"] - stats["positive"], vjp


def log1mexp(x: Array) -> Array:
    """log(1 - e^x) for x <= 0; -inf at 0. The branch at -log 2 keeps all digits on both sides. It falls with x."""
    return monotone(_log1mexp, (-1,), x)


def _log1mexp(x: Array) -> Array:
    xp = array_namespace(x)
    near = x > -math.log(2)
    # Both branches are evaluated everywhere: where one is not chosen, it gets an argument that it can take.
    gap = xp.where(near & (x < 0), -xp.expm1(x), 1.0)
    return xp.where(near, xp.where(x < 0, xp.log(gap), -xp.inf), xp.log1p(-xp.exp(xp.where(near, -1.0, x))))


def corrected_negatives(temperature: float, prior: float, count: int) -> Head:
    """Head of the debiased family: softplus(log Ng - positive) with Ng clamped from below.

    Ng = (exp(negatives) - prior * count * exp(positive)) / (1 - prior), at least count * exp(-1 / temperature);
    `negatives` is the log of the (importance-weighted) sum over negatives. On the clamp its slope is 0, and the
    temperature keeps the derivative of the floor itself.

    `prior` is the probability that a negative is of the anchor's class, >= 0 and < 1; `count` is the number of an
    anchor's negatives. The head is over "negatives" and "positive".
    """
    log_share = math.log(prior * count) if prior > 0 else -math.inf
    # The smallest sum over `count` negatives: all cosines are -1.
    floor = math.log(count) - 1 / temperature
    excess = 1 - prior - prior * count

    def by_difference(gap: Array) -> Array:
        """Slope of softplus(estimate - positive) by gap = negatives - positive: 1 / (1 + excess e^-gap)."""
        xp = array_namespace(gap)
        e = xp.exp(-xp.abs(gap))
        top, rest = xp.where(gap > 0, 1.0, e), xp.where(gap > 0, e, 1.0)
        return top / (top + excess * rest)

    def head(stats: dict[str, Array]) -> HeadRows:
        xp = array_namespace(stats["positive"])
        negatives, positive = stats["negatives"], stats["positive"]
        # Clipped where more would be removed than is there: the estimate is -inf then, and the floor takes over.
        removed = xp.clip(log_share + positive - negatives, max=0.0)
        estimate = negatives + log1mexp(removed) - math.log(1 - prior)
        free = estimate > floor
        loss, missed = softplus_and_sigmoid(xp.clip(estimate, min=floor) - positive)

        def vjp(c: Array) -> dict[str, Any]:
            g = c * missed
            # Above the floor a row depends on negatives - positive alone, which is log_share where all is removed.
            gap = xp.clip(negatives - positive, min=log_share)
            by_gap = c * monotone(by_difference, (1 if excess > 0 else -1,), gap)
            by_floor = xp.sum(xp.where(free, 0.0, g)) / temperature / temperature
            by_positive = -xp.where(free, by_gap, g)
            return {"negatives": xp.where(free, by_gap, 0.0), "positive": by_positive, "temperature": by_floor}

        return loss, vjp

    return head


def positive_set(policy: str, form: str = "mean") -> Head:
    """Head over "negatives" and a `PositiveSet` named "positives".

    Row value = softplus(negatives - peak) + (peak - level), in the sum form times the mass; 0 for a row without
    positives.

    With the policy "error", a row without positives raises `InputError`; the others differ in the mean, not here.
    `form` is "mean" or "sum": a row is the mean over its positives, or their sum.
    """

    def head(stats: dict[str, Array]) -> HeadRows:
        negatives, positives = stats["negatives"], stats["positives"]
        xp = array_namespace(negatives)
        has = has_positive(stats)
        if policy == "error" and not bool(xp.all(has)):
            # The array standard has no argmax of truth values.
            first = int(xp.argmax(xp.astype(~has, xp.int8)))
            remedy = "drop it, or pass no_positive='skip' or 'zero'"
            msg = f"anchor {first} has no positive: neither `labels` nor `mask` gives it one; {remedy}"
            raise InputError(msg)
        # A row without positives has peak -inf, which times its weight of 0 would be NaN.
        peak, level = xp.where(has, positives[:, 0], 0.0), xp.where(has, positives[:, 1], 0.0)
        outer = xp.where(has, positives[:, 2] if form == "sum" else xp.ones_like(peak), 0.0)

        def vjp(c: Array) -> dict[str, Any]:
            g = c * outer
            missed = sigmoid(negatives - peak)
            return {"negatives": g * missed, "positives": xp.stack([-g * missed, g], axis=1)}

        return outer * monotone(_above_level, (1, 1, -1), negatives, peak, level), vjp

    return head


def _above_level(negatives: Array, peak: Array, level: Array) -> Array:
    """Softplus(negatives - peak) + (peak - level)."""
    return softplus(negatives - peak) + (peak - level)


def has_positive(stats: dict[str, Array]) -> Array:
    """Mask of the rows that have a positive."""
    return stats["positives"][:, 2] > 0
