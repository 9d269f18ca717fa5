"""InfoNCE at a high temperature and the simple loss: their common part, and the rest between them."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import simple
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal, less
from nceref.theory.derivation import Derivation
from nceref.theory.derivations import tau_infinity

N, k, i, n = sp.symbols("N k i n", integer=True, positive=True)
tau, beta, x = sp.symbols("tau beta x", positive=True)
weight, L, L_simple, L_1, L_m, S, R = sp.symbols("lambda L L_simple L_1 L_m S R", real=True)
s, P = sp.IndexedBase("s", real=True), sp.IndexedBase("P")
meeting, right_weight = (N - 1) / N, 1 / (N - 1)
met = right_weight * S - s[0]


def _line(temperature):
    return sp.log(N) + ((1 - N) * s[0] + S) / (N * temperature)


def _total(inverse):
    return sp.Sum(sp.exp(s[n] * inverse), (n, 0, N - 1))


def _program(read):
    keys = [[read(s[entry])] for entry in range(int(read(N)))]
    return simple.formula(Symbols(), [[1]], keys, negative_weight=weight, normalize="none")[0]


def _spread(size):
    entries = [s[entry] for entry in range(size[N])]
    return sp.Max(*entries) - sp.Min(*entries)


def _names():
    return (
        Name(s[k], "similarity of candidate k to the anchor; the positive is candidate 0"),
        Name(weight, "weight of the negatives in the simple loss, which is published without a value"),
        Name(S, "sum over the negatives", sp.Sum(s[k], (k, 1, N - 1))),
        Name(L_simple, "simple loss", weight * S - s[0]),
        Name(beta, "inverse temperature"),
        Name(L, "InfoNCE", sp.log(_total(beta)) - beta * s[0]),
        Name(tau, "temperature"),
        Name(L_1, "InfoNCE to the first order in the inverse temperature", _line(tau)),
        Name(L_m, "InfoNCE at the temperature (N - 1) / N", sp.log(_total(1 / meeting)) - s[0] / meeting),
        Name(P[i], "softmax probability of candidate i at that temperature",
             sp.exp(s[i] / meeting) / _total(1 / meeting)),
        Name(R, "largest minus smallest similarity", _spread),
    )  # fmt: skip


def _steps():
    other = tau_infinity.DERIVATION.steps()
    at, topic = {tau_infinity.beta: 1 / meeting}, (tau_infinity.DERIVATION.name, other)
    jensen = next(step for step in other.steps if step.relation == at_most(tau_infinity.linear, tau_infinity.L))
    hoeffding = other.steps[-1]
    return (
        Step("Start: the simple loss.", equal(L_simple, weight * S - s[0]), "program", _program),
        Step("InfoNCE for a high temperature, to the first order (see tau-infinity).",
             equal(L, sp.log(N) + ((1 - N) * s[0] + S) / N * beta + sp.O(beta**2)), "series", (beta, 2)),
        Step("Slope of the linear part by the positive.", equal(sp.Derivative(L_1, s[0]), (1 - N) / (N * tau))),
        Step("Slope of the linear part by a negative.", equal(sp.Derivative(L_1, s[i]), 1 / (N * tau))),
        Step("The simple loss has slope -1 by the positive; the linear part has it at one temperature.",
             equal(tau, meeting), "solve", (sp.Derivative(L_1, s[0]) - sp.Derivative(L_simple, s[0]), tau)),
        Step("At that temperature the slopes by the negatives agree for one weight.",
             equal(weight, right_weight), "solve",
             (sp.Derivative(_line(meeting), s[i]) - sp.Derivative(L_simple, s[i]), weight)),
        Step("With that weight a constant is left of the linear part, at that temperature,",
             equal(_line(meeting) - met, sp.log(N))),
        Step("and at any other one a multiple of the simple loss.", equal(L_1, sp.log(N) + meeting / tau * met)),
        Step("InfoNCE itself is not linear there: it is above the simple loss by log N at least,",
             at_most(sp.log(N) + met, L_m), "follows", (Use(jensen, at=at, topic=topic),)),
        Step("and what remains has Hoeffding's bound (see tau-infinity).",
             at_most(L_m - sp.log(N) - met, R**2 / (8 * meeting**2)), "follows",
             (Use(hoeffding, at={**at, tau_infinity.b: tau_infinity.a + R}, topic=topic),)),
        Step("That bound does not vanish for many negatives; with cosines, R = 2, it goes to 1/2.",
             equal(sp.Limit(2**2 / (8 * ((x - 1) / x) ** 2), x, sp.oo), sp.Rational(1, 2)), "limit"),
        Step("Nor are the negatives pushed alike: the weights of two of them have a ratio,",
             equal(P[i] / P[2], sp.exp((s[i] - s[2]) / meeting))),
        Step("up to e^2 with cosines and many negatives, where the simple loss has 1.",
             equal(sp.Limit(sp.exp(2 * x / (x - 1)), x, sp.oo), sp.exp(2)), "limit"),
        Step("Example: similarities spread evenly from -1 to 1, so many that the temperature is 1. Their mean is 0,"
             " and the mean of the exponentials is this.",
             equal(sp.Integral(sp.exp(x) / 2, (x, -1, 1)), sp.sinh(1))),
        Step("Its logarithm is what remains: more than 0.16.", less(sp.Rational("0.16"), sp.log(sp.sinh(1))),
             "numbers"),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({N: 3, i: 1}, {N: 5, i: 3}),
        given=(less(1, N),),
        indices={i: (1, N - 1)},
        conditions=("one anchor with one positive; the ratio of two negatives wants N at least 3",),
    )


DERIVATION = Derivation(
    name="simple-loss",
    title="InfoNCE and the simple loss: the temperature and the weight at which they meet, and what remains",
    sources=(
        "source 000, (2), and its remark after (6) on tau = (N - 1) / N", "Wang & Liu 2021, eq. (3)",
        "the weight 1 / (N - 1) and the remainder: derived here",
    ),
    steps=_chain,
)  # fmt: skip
