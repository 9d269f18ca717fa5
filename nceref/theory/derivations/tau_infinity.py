"""InfoNCE as the temperature goes to infinity: three orders, and a bound on what the first leaves out."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import info_nce
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal
from nceref.theory.derivation import Derivation

N, k, i, n = sp.symbols("N k i n", integer=True, positive=True)
beta, t, x = sp.symbols("beta t x", positive=True)
tau, L, a, b, mean, mu, V = sp.symbols("tau L a b sbar mu V", real=True)
m1, m2, m3, k2, k3 = sp.symbols("m_1:4 kappa_2:4", real=True)
s, Q = sp.IndexedBase("s", real=True), sp.IndexedBase("Q")


def _average(entry):
    return sp.Sum(entry, (k, 0, N - 1)) / N


growth = _average(sp.exp(beta * s[k]))
loss = sp.log(N) + sp.log(growth) - beta * s[0]
linear = sp.log(N) + (mean - s[0]) / tau
spread = sp.Sum(Q[k] * (s[k] - mu) ** 2, (k, 0, N - 1))


def _program(read):
    negatives = [[read(s[x])] for x in range(1, int(read(N)))]
    return info_nce.formula(Symbols(), [[1]], [[read(s[0])]], negatives, temperature=1 / beta, normalize="none")[0]


def _entries(size):
    return [s[x] for x in range(size[N])]


def _names():
    return (
        Name(s[k], "similarity of candidate k to the anchor; the positive is candidate 0"),
        Name(beta, "inverse temperature, which goes to 0"),
        Name(tau, "temperature", 1 / beta),
        Name(m1, "first moment of the N similarities", _average(s[k])),
        Name(m2, "second moment", _average(s[k] ** 2)),
        Name(m3, "third moment", _average(s[k] ** 3)),
        Name(mean, "mean similarity", _average(s[k])),
        Name(k2, "variance of the similarities", _average((s[k] - mean) ** 2)),
        Name(k3, "third central moment of the similarities", _average((s[k] - mean) ** 3)),
        Name(L, "loss of the anchor", loss),
        Name(Q[i], "softmax probability of candidate i",
             sp.exp(beta * s[i]) / sp.Sum(sp.exp(beta * s[n]), (n, 0, N - 1))),
        Name(mu, "mean similarity under these probabilities", sp.Sum(Q[k] * s[k], (k, 0, N - 1))),
        Name(V, "variance of the similarity under these probabilities", spread),
        Name(a, "smallest similarity", lambda size: sp.Min(*_entries(size))),
        Name(b, "largest similarity", lambda size: sp.Max(*_entries(size))),
    )  # fmt: skip


def _steps():
    return (*_orders(), *_bounds())


def _orders():
    return (
        Step("Start: write the sum as N times a mean.", equal(L, loss), "program", _program),
        Step("The limit is the constant log N, in every line of the published chain.",
             equal(L, sp.log(N) + sp.O(beta)), "series", (beta, 1)),
        Step("Taylor series of the exponentials, averaged.",
             equal(growth, 1 + m1 * beta + m2 * beta**2 / 2 + m3 * beta**3 / 6 + sp.O(beta**4)), "series",
             (beta, 4)),
        Step("Taylor series of the logarithm around 1.",
             equal(sp.log(1 + m1 * beta + m2 * beta**2 / 2 + m3 * beta**3 / 6),
                   m1 * beta + (m2 - m1**2) * beta**2 / 2 + (m3 - 3 * m1 * m2 + 2 * m1**3) * beta**3 / 6
                   + sp.O(beta**4)), "series", (beta, 4)),
        Step("The second coefficient is the variance,", equal(m2 - m1**2, k2)),
        Step("and the third one the third central moment.", equal(m3 - 3 * m1 * m2 + 2 * m1**3, k3)),
        Step("Put together: the loss to the third order.",
             equal(L, sp.log(N) + (mean - s[0]) * beta + k2 * beta**2 / 2 + k3 * beta**3 / 6 + sp.O(beta**4)),
             "series", (beta, 4)),
        Step("The mean less 1 in place of its logarithm, as published, changes nothing up to the first order.",
             equal(sp.log(N) + growth - 1 - beta * s[0], sp.log(N) + (mean - s[0]) * beta + sp.O(beta**2)),
             "series", (beta, 2)),
        Step("The first-order term has the published coefficients: all negatives weigh the same.",
             equal((mean - s[0]) / tau, (1 - N) / (N * tau) * s[0] + sp.Sum(s[k], (k, 1, N - 1)) / (N * tau))),
    )  # fmt: skip


def _bounds():
    tangent = Step("A logarithm lies below its tangent at 1,", at_most(1 - x, -sp.log(x)), "tangent", (x, 1, 1 / x**2))
    inside = Step("No similarity lies outside of the range, so none of these products is negative.",
                  at_most(0, sp.Sum(Q[k] * (b - s[k]) * (s[k] - a), (k, 0, N - 1))), "sign")  # fmt: skip
    variance = Step("So the variance is at most a product of two distances,",
                    at_most(V, (b - mu) * (mu - a)), "follows", (Use(inside),))  # fmt: skip
    square = Step("A square is not negative,", at_most(0, (mu - (a + b) / 2) ** 2), "sign")
    quarter = Step("so the variance is at most a quarter of the squared range, at every temperature.",
                   at_most(V, (b - a) ** 2 / 4), "follows", (Use(variance), Use(square)))  # fmt: skip
    return (
        tangent,
        Step("and what the linearization leaves out is a mean of logarithms,",
             equal(L - linear, -_average(sp.log(N * Q[k])))),
        Step("of numbers with mean 1.", equal(_average(N * Q[k]), 1)),
        Step("This is Jensen's inequality: the loss is never below its linearization.",
             at_most(linear, L), "follows", (Use(tangent, 1 / N, {x: N * Q[k]}, (k, 0, N - 1)),)),
        Step("For the other side, differentiate once: the mean under the softmax.",
             equal(sp.Derivative(sp.log(growth), beta), sp.Sum(Q[k] * s[k], (k, 0, N - 1)))),
        Step("Differentiate again: the variance under the softmax.",
             equal(sp.Derivative(sp.Sum(Q[k] * s[k], (k, 0, N - 1)), beta), V)),
        Step("Its room below a product of two distances is a mean of such products,",
             equal((b - mu) * (mu - a) - V, sp.Sum(Q[k] * (b - s[k]) * (s[k] - a), (k, 0, N - 1)))),
        inside,
        variance,
        Step("This bound is a square short of a quarter of the squared range.",
             equal((b - mu) * (mu - a), (b - a) ** 2 / 4 - (mu - (a + b) / 2) ** 2)),
        square,
        quarter,
        Step("Taylor's remainder integrates the second derivative.",
             equal(sp.Integral((b - a) ** 2 / 4 * (beta - t), (t, 0, beta)), (b - a) ** 2 / (8 * tau**2))),
        Step("Hoeffding's bound on what the linearization leaves out; 1 / (2 tau^2) for cosines.",
             at_most(L - linear, (b - a) ** 2 / (8 * tau**2)), "tangent",
             (beta, 0, Use(quarter))),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({N: 2, i: 1}, {N: 3, i: 1}),
        given=(at_most(a, s[k]), at_most(s[k], b)),
        indices={k: (0, N - 1)},
        conditions=("one anchor with one positive",),
    )


DERIVATION = Derivation(
    name="tau-infinity",
    title="InfoNCE as the temperature goes to infinity: three orders and a bound",
    sources=("source 000, (6)", "Wang & Liu 2021, eq. (7)", "second and third order, bound: derived here"),
    steps=_chain,
)
