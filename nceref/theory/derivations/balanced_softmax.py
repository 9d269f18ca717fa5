"""Why a long-tailed training set needs class frequencies inside the softmax."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import balanced_softmax, cross_entropy
from nceref.theory.chain import Chain, Name, Step, equal
from nceref.theory.derivation import Derivation

C, i, k, m = sp.symbols("C i k m", integer=True, positive=True)
total, scale = sp.symbols("n a", positive=True)
L = sp.Symbol("L", real=True)
x, y, z = (sp.IndexedBase(name, real=True) for name in "xyz")
q, g, p = (sp.IndexedBase(name, positive=True) for name in "qgp")
odds = {at: sp.exp(x[at]) for at in (0, i, k)}


def _over_classes(entry):
    return sp.Sum(entry, (k, 0, C - 1))


def _program(loss, *counts, **more):
    def theirs(read):
        classes = range(int(read(C)))
        logits, *given = ([read(of[entry]) for entry in classes] for of in (x, *counts))
        return loss.formula(Symbols(), [logits], [0], *given, temperature=1, **more)[0]

    return theirs


def _entropy(logit):
    return -sp.log(sp.exp(logit[0]) / _over_classes(sp.exp(logit[k])))


def _names():
    return (
        Name(x[k], "logit of class k of C; the label is class 0"),
        Name(q[k], "frequency of class k in the training set"),
        Name(g[k], "likelihood of the input in class k"),
        Name(scale, "what all classes have in common"),
        Name(p[i], "model of the training set",
             q[i] * sp.exp(x[i]) / sp.Sum(q[m] * sp.exp(x[m]), (m, 0, C - 1))),
        Name(L, "its cross-entropy", -sp.log(p[0])),
        Name(y[i], "logit shifted by the logarithm of the frequency", x[i] + sp.log(q[i])),
        Name(total, "size of the training set"),
        Name(z[i], "logit shifted by the logarithm of the class count", x[i] + sp.log(total * q[i])),
    )  # fmt: skip


def _steps():
    return (
        Step("Bayes' rule for a balanced test set: equal frequencies cancel.",
             equal(g[i] / C / _over_classes(g[k] / C), g[i] / _over_classes(g[k]))),
        Step("The softmax is to be this posterior: likelihoods are exponentials of logits, up to a common factor.",
             equal(scale * odds[i] / _over_classes(scale * odds[k]), odds[i] / _over_classes(odds[k]))),
        Step("Bayes' rule for the training set, with these likelihoods: the factor cancels, frequencies stay.",
             equal(q[i] * scale * odds[i] / _over_classes(q[k] * scale * odds[k]), p[i])),
        Step("That is a softmax of logits shifted by the logarithms of the frequencies.",
             equal(p[i], sp.exp(y[i]) / _over_classes(sp.exp(y[k])))),
        Step("Its cross-entropy on the training set is the balanced softmax.", equal(L, _entropy(y)), "program",
             _program(balanced_softmax, q)),
        Step("Class counts instead of frequencies give the same.", equal(L, _entropy(z))),
        Step("Equal frequencies cancel: what is left is the plain cross-entropy.",
             equal(-sp.log(scale * odds[0] / _over_classes(scale * odds[k])), _entropy(x)), "program",
             _program(cross_entropy, label_smoothing=0)),
        Step("The slope by the logit of the label,", equal(sp.Derivative(L, x[0]), p[0] - 1)),
        Step("and that by any other logit: as in a softmax, with the shifted probabilities.",
             equal(sp.Derivative(L, x[i]), p[i])),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({C: 2, i: 1}, {C: 3, i: 2}),
        ranges={q: (0, 1), g: (0, 1)},
        indices={i: (1, C - 1)},
        conditions=(
            "C is at least 2",
            "every class has a positive frequency and likelihood",
            "inputs of a class are distributed alike in both sets",
        ),
    )


DERIVATION = Derivation(
    name="balanced-softmax",
    title="Balanced softmax: class frequencies inside the softmax of a long-tailed training set",
    sources=("source 004, section Center Learning Rebalance", "Bayes' rule and gradient: derived here"),
    steps=_chain,
)
