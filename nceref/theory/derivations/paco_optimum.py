"""The probabilities at which the PaCo loss of one anchor has its infimum, by a Lagrange multiplier."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import paco
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal, less
from nceref.theory.derivation import Derivation

K, k, i = sp.symbols("K k i", integer=True, positive=True)
alpha, c, u, v, r, multiplier = sp.symbols("alpha c u v r lambda", positive=True)
x, y, w, L = sp.symbols("x y w L", real=True)
E, free = sp.Symbol("E", positive=True), sp.Symbol("F", real=True)
z, q = sp.IndexedBase("z", real=True), sp.IndexedBase("q", positive=True)


def _loss(center, positive):
    return -sp.log(center) - alpha * sp.Sum(sp.log(positive), (k, 1, K))


def _program(read):
    positives = [[read(z[entry])] for entry in range(1, int(read(K)) + 1)]
    rows = [[1], *positives, [w]]
    options = dict.fromkeys(("queue", "queue_labels", "class_prior", "center_bias"))
    return paco.formula(
        Symbols(), rows, [0] * len(positives) + [0, 1], [[x], [y]], alpha=alpha, temperature=1, form="sum",
        normalize="none", center_features=[[1] for _ in rows], **options,
    )[0]  # fmt: skip


def _all_terms(of_positive):
    return sp.exp(x) + sp.Sum(of_positive, (k, 1, K)) + sp.exp(y) + sp.exp(w)


center, positive = sp.exp(x) / E, sp.exp(z[k]) / E
total = 1 + alpha * K
lowest = total * sp.log(total) - alpha * K * sp.log(alpha)
reached = -sp.log(1 / (total + 2 * v)) - alpha * K * sp.log(alpha / (total + 2 * v))
surplus = -sp.log(total * center) - alpha * sp.Sum(sp.log(total / alpha * positive), (k, 1, K))
left_over = total * (1 - center - sp.Sum(positive, (k, 1, K)))
lagrangian = free + multiplier * (c + sp.Sum(q[k], (k, 1, K)) + u - 1)


def _names():
    return (
        Name(x, "logit of the own center"),
        Name(z[k], "logit of positive sample k of K"),
        Name(y, "logit of another center"),
        Name(w, "logit of a negative sample"),
        Name(alpha, "weight of a positive sample beside 1 for the own center"),
        Name(E, "sum of the exponentials of all candidates", _all_terms(sp.exp(z[k]))),
        Name(L, "loss of the anchor, in the sum form", _loss(center, positive)),
        Name(c, "probability of the own center, if it were free"),
        Name(q[k], "probability of positive k, if it were free"),
        Name(u, "probability of all the others, if it were free"),
        Name(v, "exponential of the logits of the two others"),
        Name(free, "the loss as a function of these", _loss(c, q[k])),
        Name(multiplier, "Lagrange multiplier for the sum of all probabilities, which is 1"),
    )  # fmt: skip


def _steps():
    return (*_lagrange(), *_gibbs(), *_published())


def _lagrange():
    return (
        Step("Start: the weighted loss over positives and own center.",
             equal(L, -sp.log(center) - alpha * sp.Sum(sp.log(positive), (k, 1, K))), "program", _program),
        Step("Let the probabilities be free but for their sum. Slope of the Lagrange function by a positive.",
             equal(sp.Derivative(lagrangian, q[i]), multiplier - alpha / q[i])),
        Step("It vanishes at the same probability for every positive.",
             equal(q[i], alpha / multiplier), "solve", (multiplier - alpha / q[i], q[i])),
        Step("Slope by the own center.", equal(sp.Derivative(lagrangian, c), multiplier - 1 / c)),
        Step("It vanishes here.", equal(c, 1 / multiplier), "solve", (multiplier - 1 / c, c)),
        Step("Slope by the probability of the others: positive, so they get nothing.",
             equal(sp.Derivative(lagrangian, u), multiplier)),
        Step("The probabilities add up to 1, which gives the multiplier.",
             equal(multiplier, total), "solve", (1 / multiplier + K * alpha / multiplier - 1, multiplier)),
        Step("That slope rises with its own probability alone:",
             equal(sp.Derivative(-alpha / q[i], q[i]), alpha / q[i] ** 2)),
        Step("by a square with a positive factor,", less(0, alpha / q[i] ** 2), "sign"),
        Step("and so does that by the center. The loss is convex in the probabilities, and this is its lowest point.",
             equal(sp.Derivative(-1 / c, c), c**-2)),
        Step("Its value there.", equal(_loss(1 / total, alpha / total), lowest)),
    )  # fmt: skip


def _gibbs():
    tangent = Step("A logarithm lies below its tangent at 1, so",
                   at_most(1 - r, -sp.log(r)), "tangent", (r, 1, 1 / r**2))  # fmt: skip
    weighed = Step("that sum is at least what the probabilities of these leave over,",
                   at_most(left_over, surplus), "follows",
                   (Use(tangent, 1, {r: total * center}),
                    Use(tangent, alpha, {r: total / alpha * positive}, (k, 1, K))))  # fmt: skip
    others = Step("which the others have.", at_most(0, total * (sp.exp(y) + sp.exp(w)) / E), "sign")
    return (
        Step(
            "No logits give less, which needs no slopes. What is above that value is a weighted sum of logarithms,",
            equal(L - lowest, surplus),
        ),
        tangent,
        weighed,
        others,
        Step("This is Gibbs' inequality.", at_most(lowest, L), "follows", (Use(weighed), Use(others))),
    )


def _published():
    return (
        Step("The value is an infimum: the others have to leave the softmax for it.",
             equal(sp.Limit(reached, v, 0, "+"), lowest), "limit"),
        Step("With the multiplier, the probability of a positive,",
             equal(q[i], alpha / total), "solve", (total - alpha / q[i], q[i])),
        Step("in the form that is published for pairs of classes.", equal(alpha / total, 1 / (1 / alpha + K))),
        Step("Without centers it would be one over the number of positives.",
             equal(sp.Limit(alpha / total, alpha, sp.oo), 1 / K), "limit"),
        Step("And the probability of the own center.",
             equal(c, 1 / total), "solve", (total - 1 / c, c)),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({K: 1, i: 1}, {K: 3, i: 2}),
        ranges={c: (0, 1), q: (0, 1), alpha: (0, 1)},
        indices={i: (1, K)},
        conditions=(
            "the sum form, at temperature 1, of one anchor: per anchor, not per batch",
            "logits are free: no embeddings have to have them",
            "the others count by the sum of their exponentials alone; one center and one sample stand for all of them",
        ),
    )


DERIVATION = Derivation(
    name="paco-optimum",
    title="PaCo: the best probabilities of the center and of a positive",
    sources=("source 004, section Rebalance in Contrastive Learning", "Lagrange multiplier and lowest value: derived"
             " here; K is the number of positives, and these are probabilities, not similarities"),
    steps=_chain,
)  # fmt: skip
