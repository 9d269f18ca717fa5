"""InfoNCE as an alignment and a uniformity: when that split is exact, and its limit of many negatives."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import info_nce
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal, less
from nceref.theory.derivation import Derivation

K, D, k, n, m = sp.symbols("K D k n m", integer=True, positive=True)
tau, M, A, V, kappa = sp.symbols("tau M A V kappa", positive=True)
S, X, Y, epsilon, fourth = sp.symbols("S X Y epsilon mu_4", positive=True)
c, p, t, w, third, L, U = sp.symbols("c p t w mu_3 L U", real=True)
s, x, y = (sp.IndexedBase(name, real=True) for name in "sxy")
pull, push = sp.exp(c / tau), sp.log(sp.exp(c / tau) + S)
aligned = sp.log(sp.exp(1 / tau) + S)
share = sp.exp(1 / tau) / (sp.exp(1 / tau) + S)
bend = pull * S / (tau**2 * (pull + S) ** 2)
many = sp.log(pull + M * A) - sp.log(M)
perfect = at_most(c, 1)


def _coordinates(entry):
    return sp.Sum(entry, (n, 1, D))


cosine = _coordinates(x[n] * y[n]) / (X * Y)
square = _coordinates((x[n] / X - y[n] / Y) ** 2)


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
        Name(x[n], "coordinate n of D of the anchor, before it is divided by its length"),
        Name(y[n], "that of its positive"),
        Name(X, "length of the anchor", sp.sqrt(sp.Sum(x[m] ** 2, (m, 1, D)))),
        Name(Y, "length of the positive", sp.sqrt(sp.Sum(y[m] ** 2, (m, 1, D)))),
        Name(M, "many negatives, drawn independently"),
        Name(A, "mean of the exponential over their law"),
        Name(V, "its variance"),
        Name(third, "its third central moment"),
        Name(fourth, "its fourth"),
        Name(epsilon, "1 / M"),
        Name(w, "deviation of the mean of M exponentials from A"),
        Name(t, "w + e^(c / tau) / M: with the part of the positive"),
        Name(U, "expected uniformity less log M, of the first three orders in t", sp.log(A) + _expected()),
        Name(kappa, "inverse temperature, for the sphere"),
        Name(p, "cosine between two random points of the sphere, uniform on (-1, 1)"),
    )  # fmt: skip


def _moments():
    """E t^n for n = 1 to 4, where t = w + e^(c / tau) / M, by the moments of w."""
    central = (1, 0, V * epsilon, third * epsilon**2, fourth * epsilon**3 + 3 * (1 - epsilon) * epsilon**2 * V**2)
    part = pull * epsilon
    return [sum(sp.binomial(n, j) * part ** (n - j) * central[j] for j in range(n + 1)) for n in range(1, 5)]


def _expected():
    first, second, cubed, _ = _moments()
    return first / A - second / (2 * A**2) + cubed / (3 * A**3)


def _steps():
    return (*_split(), *_many_negatives(), *_finite(), *_sphere())


def _split():
    rising = Step("It rises with the similarity of the positive,", less(0, pull / (pull + S) / tau), "sign")
    return (
        Step("Start: InfoNCE with one positive.", equal(L, -sp.log(pull / (pull + S))), "program", _program),
        Step("The logarithm of a quotient is a difference: alignment, and the rest. This is exact.",
             equal(L, -c / tau + push)),
        Step("For a cosine the alignment is a squared distance of unit vectors,",
             equal(-cosine / tau, (square - 2) / (2 * tau))),
        Step("which is 0 at perfect alignment, where the alignment is a constant.",
             equal(sp.Limit(-c / tau, c, 1, "-"), -1 / tau), "limit"),
        Step("The rest depends on the positive too: its slope is the probability of the positive over tau.",
             equal(sp.Derivative(push, c), pull / (pull + S) / tau)),
        rising,
        Step("so putting 1 in its place makes it larger,",
             at_most(push, aligned), "increasing", (push, c, Use(perfect))),
        Step("by at most the distance from 1 times the largest slope, which is that at 1: it is convex.",
             at_most(aligned - push, (1 - c) / tau * share), "tangent", (c, 1, bend)),
        Step("With perfect alignment the published third line follows, with a uniformity that depends on the negatives"
             " alone.",
             equal(sp.Limit(-c / tau + push, c, 1, "-"), -1 / tau + aligned), "limit"),
    )  # fmt: skip


def _many_negatives():
    return (
        Step("Many negatives: their sum is M times a mean, by the law of large numbers. Less log M, the uniformity"
             " has a limit without the positive,", equal(sp.Limit(many, M, sp.oo), sp.log(A)), "limit"),
        Step("and the positive leaves a trace of order 1 / M, if the mean is A.",
             equal(sp.Limit(M * (many - sp.log(A)), M, sp.oo), pull / A), "limit"),
    )  # fmt: skip


def _finite():
    """The term of order 1 / M, in which the spread of the mean counts as well."""
    law = 1 + V * (t / M) ** 2 / 2 + third * (t / M) ** 3 / 6 + fourth * (t / M) ** 4 / 24
    return (
        Step("But it deviates from A. The moments of a mean of M independent draws, by their generating function: 0,"
             " V / M, the third over M^2, and a fourth one of order 1 / M^2.",
             equal(law**M, 1 + V * t**2 / (2 * M) + third * t**3 / (6 * M**2)
                   + (fourth / M**3 + 3 * (M - 1) * V**2 / M**3) * t**4 / 24 + sp.O(t**5)), "series", (t, 5)),
        Step("Taylor series of the logarithm around A.",
             equal(sp.log(A + t), sp.log(A) + t / A - t**2 / (2 * A**2) + t**3 / (3 * A**3) + sp.O(t**4)), "series",
             (t, 4)),
        Step("Its expectation, term by term, is U: the spread of the mean leaves as much as the positive.",
             equal(U, sp.log(A) + (pull / A - V / (2 * A**2)) * epsilon + sp.O(epsilon**2)), "series", (epsilon, 2)),
        Step("What is left out is at most the fourth power of t, times the largest fourth slope of the logarithm over"
             " 24. This is that slope; A + t is never below e^(-1 / tau), so that it has a bound.",
             equal(sp.Derivative(2 / (A + t) ** 3, t), -6 / (A + t) ** 4)),
        Step("The expectation of that power is of order 1 / M^2, and so is all that is left out.",
             equal(_moments()[3], 3 * V**2 * epsilon**2 + sp.O(epsilon**3)), "series", (epsilon, 3)),
        Step("Together: the expected loss less log M, to the order 1 / M.",
             equal(-c / tau + U, -c / tau + sp.log(A) + (pull / A - V / (2 * A**2)) * epsilon + sp.O(epsilon**2)),
             "series", (epsilon, 2)),
    )  # fmt: skip


def _sphere():
    return (
        Step("For points spread evenly over the sphere in three dimensions the cosine is uniform, which gives A.",
             equal(sp.Integral(sp.exp(kappa * p) / 2, (p, -1, 1)), sp.sinh(kappa) / kappa)),
        Step("Without the order 1 / M: what InfoNCE less log M goes to, the alignment plus the uniformity.",
             equal(sp.Limit(-c / tau + many, M, sp.oo), -c / tau + sp.log(A)), "limit"),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({K: 1, D: 2}, {K: 3, D: 4}),
        ranges={tau: (sp.Rational(1, 20), 2)},
        given=(perfect,),
        conditions=(
            "one anchor with one positive",
            "similarities are cosines",
            "for many negatives: these are drawn independently from one law, with the anchor and the positive fixed",
        ),
    )


DERIVATION = Derivation(
    name="alignment-uniformity",
    title="InfoNCE as alignment plus uniformity",
    sources=("source 002, three lines below `How it Works`", "Wang & Isola 2020, Theorem 1 (as quoted in notes)",
             "bound on the error without perfect alignment, and the order 1 / M: derived here"),
    steps=_chain,
)  # fmt: skip
