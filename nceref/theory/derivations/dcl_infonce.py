"""InfoNCE as a function of the decoupled loss: the factor by which its gradient is smaller."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import dcl, info_nce
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal, less
from nceref.theory.derivation import Derivation

N, i, k, m = sp.symbols("N i k m", integer=True, positive=True)
tau, count = sp.symbols("tau n", positive=True)
x = sp.Symbol("x", real=True)
L, L_D = sp.symbols("L L_D", real=True)
s, P = sp.IndexedBase("s", real=True), sp.IndexedBase("P", positive=True)
negatives = sp.log(sp.Sum(sp.exp(s[k] / tau), (k, 1, N - 1)))
decoupled = negatives - s[0] / tau
everyone = sp.Sum(sp.exp(s[m] / tau), (m, 0, N - 1))
# No exponent is negative for cosines.
raised = (s[k] - s[0] + 2) / tau
cosines = at_most(s[0], 1), at_most(-1, s[i])


def _others(read):
    return [[read(s[entry])] for entry in range(1, int(read(N)))]


def _coupled(read):
    keys = [[read(s[0])]]
    return info_nce.formula(Symbols(), [[1]], keys, _others(read), temperature=tau, normalize="none")[0]


def _in_batch(read):
    rest = _others(read)
    half = len(rest) // 2
    z1, z2 = [[1], *rest[:half]], [[read(s[0])], *rest[half:]]
    return dcl.formula(Symbols(), z1, z2, temperature=tau, normalize="none")[0]


def _names():
    return (
        Name(s[k], "similarity of candidate k to the anchor; the positive is candidate 0"),
        Name(tau, "temperature"),
        Name(L, "InfoNCE", sp.log(everyone) - s[0] / tau),
        Name(L_D, "decoupled loss: the positive is not in the denominator", decoupled),
        Name(P[i], "softmax probability of candidate i", sp.exp(s[i] / tau) / everyone),
        Name(x, "any number"),
    )  # fmt: skip


def _steps():
    share = Step("and the positive has some probability too,", less(0, P[0]), "sign")
    tangent = Step(
        "An exponential lies above its tangent at 0.", at_most(1 + x, sp.exp(x)), "tangent", (x, 0, sp.exp(x))
    )
    counted = Step("For cosines, none of these exponents is negative, and no exponential below 1:",
                   at_most(N - 1, sp.Sum(sp.exp(raised), (k, 1, N - 1))), "follows",
                   (Use(tangent, 1, {x: raised}, (k, 1, N - 1)), Use(cosines[0], (N - 1) / tau),
                    Use(cosines[1], 1 / tau, {i: k}, (k, 1, N - 1))))  # fmt: skip
    return (
        Step("Start: InfoNCE.", equal(L, sp.log(everyone) - s[0] / tau), "program", _coupled),
        Step("Start: the decoupled loss.", equal(L_D, decoupled), "program", _in_batch),
        Step("The exponential of the decoupled loss is the sum over the negatives, relative to the positive.",
             equal(sp.exp(L_D), sp.Sum(sp.exp((s[k] - s[0]) / tau), (k, 1, N - 1)))),
        Step("InfoNCE has the same sum, and the 1 of the positive.", equal(L, sp.log(1 + sp.exp(L_D)))),
        Step("This function has the sigmoid for a slope,",
             equal(sp.Derivative(sp.log(1 + sp.exp(x)), x), 1 / (1 + sp.exp(-x)))),
        Step("which is the probability of all negatives.", equal(1 / (1 + sp.exp(-L_D)), 1 - P[0])),
        Step("Slope of the decoupled loss by the positive: constant.", equal(sp.Derivative(L_D, s[0]), -1 / tau)),
        Step("Chain rule: the slope of InfoNCE by the positive is smaller by the probability of all negatives,",
             equal(sp.Derivative(L, s[0]), (1 - P[0]) * sp.Derivative(L_D, s[0]))),
        Step("which is positive, because there are negatives,", less(0, sp.Sum(P[k], (k, 1, N - 1))), "sign"),
        share,
        Step("so the factor is below 1.", less(1 - P[0], 1), "follows", (Use(share),)),
        Step("The losses differ by its logarithm.", equal(L - L_D, -sp.log(1 - P[0]))),
        tangent,
        counted,
        Step("so the decoupled loss is at least this: it has no bound at 0.",
             at_most(sp.log(N - 1) - 2 / tau, L_D), "increasing", (sp.log(count) - 2 / tau, count, Use(counted))),
        Step("The bound is attained where the positive is at 1 and every negative at -1.",
             equal(sp.log(sp.Sum(sp.exp((-1 - 1) / tau), (k, 1, N - 1))), sp.log(N - 1) - 2 / tau)),
        Step("Chain rule for a negative: the same factor, so both gradients of one anchor have one direction. Those of"
             " a batch need not, because each anchor has a factor of its own.",
             equal(sp.Derivative(L, s[i]), (1 - P[0]) * sp.Derivative(L_D, s[i]))),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({N: 3, i: 1}, {N: 5, i: 2}),
        ranges={tau: (sp.Rational(1, 10), 2)},
        given=(less(1, N), *cosines),
        indices={i: (1, N - 1)},
        conditions=(
            "one anchor with one positive: per anchor, not per batch",
            "that similarities are cosines is used for the bound alone",
        ),
    )


DERIVATION = Derivation(
    name="dcl-infonce",
    title="InfoNCE and the decoupled loss: one direction, another length of the gradient",
    sources=("Yeh et al., decoupled contrastive learning (an unofficial implementation)", "identity: derived here"),
    steps=_chain,
)
