"""Integrals over the cosine of two independent uniform rows in D dimensions, whose law is (1 - s^2)^((D - 3) / 2)."""

import math
from collections.abc import Callable
from typing import Any

_STEP = 0.25


def log_0f1(b: float, z: float) -> float:
    """Log of the confluent hypergeometric limit function 0F1(; b; z)."""
    import mpmath

    if math.isinf(z):
        msg = "the exponents leave the range of 64-bit floats"
        raise OverflowError(msg)
    try:
        return float(mpmath.log(mpmath.hyp0f1(b, z)))
    except mpmath.libmp.NoConvergence as error:
        msg = "the series takes too long for so large an exponent and D"
        raise OverflowError(msg) from error


def distance_power(exponent: float, dim: int) -> tuple[float, float]:
    """Mean and standard deviation of r^a, r the distance of two independent uniform rows in D dimensions.

    Own derivation: r^2 = 2 - 2s = 4b, and b = (1 - s) / 2 has the beta law with both parameters (D - 1) / 2. Its moment
    of order a / 2, by Legendre's duplication of Gamma(D - 1), makes

        E r^a = 2^(D - 2 + a) Gamma(D/2) Gamma((D - 1 + a) / 2) / (sqrt(pi) Gamma(D - 1 + a/2))

    for every a > 0 and D > 1. For D = 1 that is 2^(a - 1), which is right too: r is 0 or 2. As D grows, r tends to
    sqrt(2).
    """
    import mpmath

    # The logarithms grow up to 1e17, and a variance is smaller than the square of its mean by up to 1e15.
    with mpmath.workdps(60):
        d = mpmath.mpf(dim)

        def moment(a: Any) -> Any:
            logs = (d - 2 + a) * mpmath.log(2) + mpmath.loggamma(d / 2) + mpmath.loggamma((d - 1 + a) / 2)
            return mpmath.exp(logs - mpmath.loggamma(d - 1 + a / 2)) / mpmath.sqrt(mpmath.pi)

        a = mpmath.mpf(exponent)
        mean = moment(a)
        out = float(mean), float(mpmath.sqrt(moment(2 * a) - mean**2))
    if math.isinf(out[0]):
        msg = "the mean leaves the range of 64-bit floats"
        raise OverflowError(msg)
    return out


def mean_log_sum(
    terms: int,
    kappa: float,
    dim: int,
    own: Callable[[Any, Any], Any] | None = None,
    plus: float = 0.0,
    jump: float | None = None,
) -> float:
    """E log(plus + e^(kappa s_1) + ... + e^(kappa s_m)) for independent cosines s_j of uniform rows.

    By log x = integral over u of exp(-e^u) - exp(-x e^u), the mean is that of exp(-e^u) - exp(-plus e^u) phi(u)^m with
    phi(u) = E exp(-e^(u + kappa s)). Both integrands are analytic and fall off exponentially, so that the trapezoidal
    rule with these steps is exact to rounding.

    `terms`: m, at least 1. `kappa`: inverse temperature, or scale, of the cosines. `dim`: features of a row. `own`: a
    function of cosine and sine: own(s_1) stands in the place of s_1. `plus`: a constant term of the sum, at least 0.
    `jump`: the angle at which `own` jumps. Result: in nats.
    """
    import numpy as np

    cosines, weights = cosine_law(kappa, dim)
    every = _law(kappa * cosines, weights)
    if own is not None:
        cosines, weights = cosine_law(kappa, dim, jump)
    first = None if own is None else _law(kappa * own(cosines, sines(cosines)), weights)
    reach = kappa if first is None else max(kappa, float(np.max(np.abs(first[0]))))
    equal, total = terms - (first is not None), 0.0
    for u in _grid(reach, terms + plus):
        # phi^m through log1p: 1 - phi has its digits where phi is nearly 1.
        power = _power(_missing(u, *every), equal)
        power *= 1.0 if first is None else 1 - _missing(u, *first)
        # exp(-e^5) is 4e-65, that is, 0; the cap keeps e^u finite.
        level = math.exp(min(u, 5.0))
        total += math.exp(-level) - power * math.exp(-plus * level)
    return total * _STEP


def mean_softmax_cosine(terms: int, kappa: float, dim: int) -> float:
    """E sum_j s_j e^(kappa s_j) / sum_j e^(kappa s_j), the derivative by kappa of `mean_log_sum` for m terms.

    By 1 / x = integral over u of e^u exp(-x e^u), it is m times that of phi(u)^(m - 1) E s y e^-y with
    y = e^(u + kappa s).
    """
    import numpy as np

    cosines, weights = cosine_law(kappa, dim)
    every = _law(kappa * cosines, weights)
    total = 0.0
    for u in _grid(kappa, terms):
        # y e^-y is below 1e-170 beyond e^6.
        y = np.exp(np.minimum(u + kappa * cosines, 6.0))
        total += _power(_missing(u, *every), terms - 1) * float(weights @ (cosines * y * np.exp(-y)))
    return terms * total * _STEP


def _grid(reach: float, terms: float) -> Any:
    """Nodes in u: left of them both integrands are 1 to rounding (e^-40 is 4e-18), right of them both are 0."""
    import numpy as np

    return np.arange(-(reach + math.log(terms) + 40), reach + 4, _STEP)


def _power(missing: float, exponent: int) -> float:
    """(1 - missing)^exponent."""
    return math.exp(exponent * math.log1p(-missing)) if missing < 1 else float(exponent == 0)


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


def sines(cosines: Any) -> Any:
    """Sines of the angles with these cosines."""
    import numpy as np

    return np.sqrt((1 - cosines) * (1 + cosines))


def cosine_law(kappa: float, dim: int, jump: float | None = None) -> tuple[Any, Any]:
    """Nodes and weights of the cosine's law (1 - s^2)^((D - 3) / 2), by s = tanh v; for an integrand that jumps, too.

    `jump`: the angle of the jump: what is integrated is analytic on both sides of it.
    """
    import numpy as np

    # On a line the cosine is a sign, without a density.
    if dim == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    if jump is not None:
        return _law_with_jump(kappa, dim, jump)
    # The weight cosh(v)^-(D - 1) has a width of 1 / sqrt(D) and falls below e^-40 within the reach: like
    # exp(-(D - 1) v^2 / 2) near 0, like (2 e^-v)^(D - 1) far out.
    step = min(0.3 / max(kappa, 1.0), 0.2 / math.sqrt(dim))
    reach = 40 / (dim - 1) + math.sqrt(80 / (dim - 1))
    v = np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step
    weights = np.exp(-(dim - 1) * np.log(np.cosh(v)))
    return np.tanh(v), weights / weights.sum()


_NODES = 16
"""Of Gauss and Legendre, in each panel."""


def _law_with_jump(kappa: float, dim: int, jump: float) -> tuple[Any, Any]:
    """Nodes and weights in panels of the angle, whose law is sin^(D - 2): the jump is the border of two panels."""
    import numpy as np

    # An exponent of up to kappa and a weight like exp(-(D - 2) x^2 / 2) each change by little within a panel.
    width, reach = min(2 / max(kappa, 1.0), 0.7 / math.sqrt(dim), 0.5), math.pi / 2
    if dim > 2:
        # The weight is below e^-45 beyond: cos x <= exp(-x^2 / 2).
        reach = min(reach, math.sqrt(90 / (dim - 2)))
    low, high = math.pi / 2 - reach, math.pi / 2 + reach
    borders = np.linspace(low, high, math.ceil(2 * reach / width) + 1)
    if low < jump < high:
        borders = np.unique(np.append(borders, jump))
    half, (nodes, parts) = np.diff(borders)[:, None] / 2, np.polynomial.legendre.leggauss(_NODES)
    angles = (borders[:-1, None] + half * (1 + nodes)).ravel()
    weights = (half * parts).ravel() * np.exp((dim - 2) * np.log(np.sin(angles)))
    return np.cos(angles), weights / weights.sum()
