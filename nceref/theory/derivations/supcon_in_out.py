"""Why the mean inside the logarithm is never above the mean outside, for several positives."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import supcon_in, supcon_out
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal
from nceref.theory.derivation import Derivation

n, A, k, m, i = sp.symbols("n A k m i", integer=True, positive=True)
tau, x, a, b = sp.symbols("tau x a b", positive=True)
L_in, L_out = sp.symbols("L_in L_out", real=True)
mean = sp.Symbol("pbar", positive=True)
s, P = sp.IndexedBase("s", real=True), sp.IndexedBase("P")
options = {"mask": None, "anchor_mode": "all", "anchor_weights": None, "no_positive": "skip"}
queue = {"queue": None, "queue_labels": None, "form": "mean", "base_temperature": None}


def _over_positives(entry):
    return sp.Sum(entry, (k, 1, n)) / n


def _program(loss, **more):
    def theirs(read):
        z = [[1], *([read(s[entry])] for entry in range(1, int(read(A)) + 1))]
        labels = [0] * (int(read(n)) + 1) + [1] * int(read(A) - read(n))
        return loss.formula(Symbols(), z, labels, temperature=tau, normalize="none", **options, **more)[0]

    return theirs


def _names():
    return (
        Name(s[k], "similarity of the anchor to candidate k of A; candidates 1 to n are its positives"),
        Name(tau, "temperature"),
        Name(P[i], "softmax probability of candidate i",
             sp.exp(s[i] / tau) / sp.Sum(sp.exp(s[m] / tau), (m, 1, A))),
        Name(mean, "mean probability of the positives", _over_positives(P[k])),
        Name(L_out, "loss with the mean outside of the logarithm", -_over_positives(sp.log(P[k]))),
        Name(L_in, "loss with the mean inside", -sp.log(mean)),
    )  # fmt: skip


def _steps():
    tangent = Step("For any positive number: a logarithm lies below its tangent at 1,",
                   at_most(1 - x, -sp.log(x)), "tangent", (x, 1, 1 / x**2))  # fmt: skip
    summed = Step("with the ratios as arguments, averaged,",
                  at_most(_over_positives(1 - P[k] / mean), -_over_positives(sp.log(P[k] / mean))), "follows",
                  (Use(tangent, 1 / n, {x: P[k] / mean}, (k, 1, n)),))  # fmt: skip
    difference = Step("Their difference is a mean of logarithms of ratios.",
                      equal(L_out - L_in, -_over_positives(sp.log(P[k] / mean))))  # fmt: skip
    ratios = Step("and the ratios have mean 1.", equal(_over_positives(1 - P[k] / mean), 0))
    return (
        Step("Start: the mean outside.", equal(L_out, -_over_positives(sp.log(P[k]))), "program",
             _program(supcon_out, **queue)),
        Step("Start: the mean inside.", equal(L_in, -sp.log(mean)), "program", _program(supcon_in)),
        difference,
        Step("For two positives with probabilities a and b: arithmetic against geometric mean.",
             equal(((a + b) / 2) ** 2 - a * b, (a - b) ** 2 / 4)),
        tangent,
        summed,
        ratios,
        Step("Positives that are all alike, with one probability a, attain it.",
             equal(-_over_positives(sp.log(a)) + sp.log(_over_positives(a)), 0)),
        Step("Hence the loss with the mean inside is a lower bound of the other one.",
             at_most(L_in, L_out), "follows", (Use(difference), Use(summed), Use(ratios))),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({n: 2, A: 3, i: 1}, {n: 3, A: 4, i: 1}),
        ranges={tau: (sp.Rational(1, 5), 2)},
        given=(at_most(n, A),),
        conditions=("there is a positive", "one anchor, with the mean over its own positives"),
    )


DERIVATION = Derivation(
    name="supcon-in-out",
    title="The two supervised contrastive losses: the mean inside is never above the mean outside",
    sources=("Khosla et al. 2020, eq. (2), (3) and section 3.2.2", "source 002, supervised contrastive loss"),
    steps=_chain,
)
