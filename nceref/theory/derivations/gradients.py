"""The slopes of InfoNCE by every similarity and by the temperature."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import info_nce
from nceref.theory.chain import Chain, Name, Step, equal
from nceref.theory.derivation import Derivation

N, i, k, m = sp.symbols("N i k m", integer=True, positive=True)
tau, Z, L = sp.Symbol("tau", positive=True), sp.Symbol("Z", positive=True), sp.Symbol("L", real=True)
s, P = sp.IndexedBase("s", real=True), sp.IndexedBase("P")
loss = sp.log(Z) - s[0] / tau
others = sp.Sum(P[k], (k, 1, N - 1))
mean = sp.Sum(P[k] * s[k], (k, 0, N - 1))


def _program(c):
    negatives = [[c(s[n])] for n in range(1, int(c(N)))]
    return info_nce.formula(Symbols(), [[1]], [[c(s[0])]], negatives, temperature=tau, normalize="none")[0]


def _names():
    return (
        Name(s[k], "similarity of candidate k to the anchor; the positive is candidate 0"),
        Name(tau, "temperature"),
        Name(Z, "sum of the exponentials of all N candidates", sp.Sum(sp.exp(s[m] / tau), (m, 0, N - 1))),
        Name(P[i], "softmax probability of candidate i", sp.exp(s[i] / tau) / Z),
        Name(L, "loss of the anchor", loss),
    )  # fmt: skip


def _steps():
    return (
        Step("Start: minus the logarithm of the probability of the positive.", equal(L, -sp.log(P[0])), "program",
             _program),
        Step("The logarithm of a quotient is a difference.", equal(-sp.log(sp.exp(s[0] / tau) / Z), loss)),
        Step("Chain rule for the logarithm of the sum, by a negative.",
             equal(sp.Derivative(sp.log(Z), s[i]), P[i] / tau)),
        Step("The second term depends on the positive alone, so a negative keeps this slope.",
             equal(sp.Derivative(L, s[i]), P[i] / tau)),
        Step("The positive gets one more part, from the second term.",
             equal(sp.Derivative(L, s[0]), (P[0] - 1) / tau)),
        Step("The probabilities add up to 1.", equal(P[0] - 1, -others)),
        Step("Hence the pull on the positive is the sum of the pushes on all negatives.",
             equal(sp.Derivative(L, s[0]), -others / tau)),
        Step("All slopes together vanish: equal shifts of all similarities do not change the loss.",
             equal((P[0] - 1) / tau + sp.Sum(P[k] / tau, (k, 1, N - 1)), 0)),
        Step("Second slope by a negative: how fast the push rises.",
             equal(sp.Derivative(P[i] / tau, s[i]), P[i] * (1 - P[i]) / tau**2)),
        Step("It is a square short of a quarter: fastest where its probability is one half.",
             equal(P[i] * (1 - P[i]) / tau**2, (sp.Rational(1, 4) - (P[i] - sp.Rational(1, 2)) ** 2) / tau**2)),
        Step("Chain rule by the temperature: the mean similarity under P appears.",
             equal(sp.Derivative(sp.log(Z), tau), -mean / tau**2)),
        Step("With the second term, the slope by the temperature.",
             equal(sp.Derivative(L, tau), (s[0] - mean) / tau**2)),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({N: 2, i: 1}, {N: 4, i: 2}),
        indices={i: (1, N - 1)},
        conditions=(
            "N is at least 2",
            "one anchor with one positive",
            "each similarity is free: slopes by embeddings are others",
        ),
    )


DERIVATION = Derivation(
    name="gradients",
    title="Gradients of InfoNCE by the similarities and by the temperature",
    sources=("source 000, gradients after (2)", "Wang & Liu 2021, eq. (4)", "slope by the temperature: derived here"),
    steps=_chain,
)
