"""How InfoNCE falls into an alignment and a uniformity, when that split is exact, and its limit of many negatives."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import info_nce
from nceref.theory.chain import Chain, Name, Step, at_most, equal
from nceref.theory.derivation import Derivation

K, k, n = sp.symbols("K k n", integer=True, positive=True)
tau, M, A, kappa = sp.symbols("tau M A kappa", positive=True)
S = sp.Symbol("S", positive=True)
c, u, v, p, L = sp.symbols("c u v p L", real=True)
s = sp.IndexedBase("s", real=True)
pull, push = sp.exp(c / tau), sp.log(sp.exp(c / tau) + S)
aligned = sp.log(sp.exp(1 / tau) + S)
share = sp.exp(1 / tau) / (sp.exp(1 / tau) + S)
x, y = (sp.cos(u), sp.sin(u)), (sp.cos(v), sp.sin(v))
square = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
inner = sum(a * b for a, b in zip(x, y, strict=True))
many = sp.log(pull + M * A) - sp.log(M)


def _program(read):
    negatives = [[read(s[entry])] for entry in range(1, int(read(K)) + 1)]
    return info_nce.formula(Symbols(), [[1]], [[c]], negatives, temperature=tau, normalize="none")[0]


def _names():
    return (
        Name(c, "similarity of the anchor to its positive, at most 1"),
        Name(s[k], "similarity of the anchor to negative k of K"),
        Name(tau, "temperature"),
        Name(S, "sum over the negatives", sp.Sum(sp.exp(s[n] / tau), (n, 1, K))),
        Name(L, "loss of the anchor", -sp.log(pull / (pull + S))),
        Name(u, "angle of a unit vector on a circle"),
        Name(v, "angle of its positive"),
        Name(M, "many negatives, drawn independently"),
        Name(A, "mean of the exponential over their law"),
        Name(kappa, "inverse temperature, for the sphere"),
        Name(p, "cosine between two random points of the sphere, uniform on (-1, 1)"),
    )  # fmt: skip


def _steps():
    return (
        Step("Start: InfoNCE with one positive.", equal(L, -sp.log(pull / (pull + S))), "program", _program),
        Step("The logarithm of a quotient is a difference: alignment, and the rest. This is exact.",
             equal(L, -c / tau + push)),
        Step("For unit vectors the alignment is a squared distance,",
             equal(-inner / tau, (square - 2) / (2 * tau))),
        Step("a constant at perfect alignment, where both angles are the same.",
             equal(sp.Limit((square - 2) / (2 * tau), v, u), -1 / tau), "limit"),
        Step("The rest depends on the positive too: its slope is the probability of the positive over tau.",
             equal(sp.Derivative(push, c), pull / (pull + S) / tau)),
        Step("It rises with the similarity of the positive, so putting 1 in its place makes it larger,",
             at_most(push, aligned), "numbers", ({c: sp.Integer(1)},)),
        Step("by at most the distance from 1 times the largest slope, which is that at 1: it is convex.",
             at_most(aligned - push, (1 - c) / tau * share), "numbers", ({c: sp.Integer(1)},)),
        Step("Only with perfect alignment does the published third line follow, with a uniformity that depends on"
             " the negatives alone.",
             equal(sp.Limit(-c / tau + push, c, 1, "-"), -1 / tau + aligned), "limit"),
        Step("Many negatives: their sum is M times a mean, by the law of large numbers. Less log M, the uniformity"
             " has a limit without the positive,", equal(sp.Limit(many, M, sp.oo), sp.log(A)), "limit"),
        Step("and the positive leaves a trace of order 1 / M.",
             equal(sp.Limit(M * (many - sp.log(A)), M, sp.oo), pull / A), "limit"),
        Step("For points spread evenly over the sphere in three dimensions the cosine is uniform.",
             equal(sp.Integral(sp.exp(kappa * p) / 2, (p, -1, 1)), sp.sinh(kappa) / kappa)),
        Step("Together: what InfoNCE less log M goes to, the alignment plus the uniformity.",
             equal(sp.Limit(-c / tau + many, M, sp.oo), -c / tau + sp.log(A)), "limit"),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({K: 1}, {K: 3}),
        ranges={tau: (sp.Rational(1, 20), 2), u: (-3, 3), v: (-3, 3)},
    )


DERIVATION = Derivation(
    name="alignment-uniformity",
    title="InfoNCE as alignment plus uniformity",
    sources=("source 002, three lines below `How it Works`", "Wang & Isola 2020, Theorem 1 (as quoted in notes)",
             "bound on the error without perfect alignment: derived here"),
    steps=_chain,
)  # fmt: skip
