"""PaCo as a cross-entropy, a contrastive loss, and a term that divides the probability between both."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import paco
from nceref.theory.chain import Chain, Name, Step, at_most, equal
from nceref.theory.derivation import Derivation

C, A, K, k, i, n = sp.symbols("C A K k i n", integer=True, positive=True)
alpha, E_c, E_a = sp.symbols("alpha E_C E_A", positive=True)
L, L_sup, L_con, P_sup, P_con = sp.symbols("L L_sup L_supcon P_sup P_supcon", positive=True)
c, z = sp.IndexedBase("c", real=True), sp.IndexedBase("z", real=True)
own, E = sp.exp(c[0]), E_c + E_a


def _positives(entry):
    return sp.Sum(entry, (k, 1, K))


def _program(read):
    samples = [[read(z[entry])] for entry in range(1, int(read(A)) + 1)]
    labels = [0] * (int(read(K)) + 1) + [1] * int(read(A) - read(K))
    rows, centers = [[1], *samples], [[read(c[entry])] for entry in range(int(read(C)))]
    options = dict.fromkeys(("queue", "queue_labels", "class_prior", "center_bias"))
    return paco.formula(
        Symbols(), rows, labels, centers, alpha=alpha, temperature=1, form="sum", normalize="none",
        center_features=[[1] for _ in rows], **options,
    )[0]  # fmt: skip


loss = -sp.log(own / E) - alpha * _positives(sp.log(sp.exp(z[k]) / E))


def _names():
    return (
        Name(c[k], "logit of center k of C; the own one is center 0"),
        Name(z[k], "logit of sample k of A; samples 1 to K are the positives"),
        Name(alpha, "weight of a positive"),
        Name(E_c, "sum over the centers", sp.Sum(sp.exp(c[n]), (n, 0, C - 1))),
        Name(E_a, "sum over the samples", sp.Sum(sp.exp(z[n]), (n, 1, A))),
        Name(L, "loss of the anchor, in the sum form", loss),
        Name(P_sup, "probability of all centers together", E_c / E),
        Name(P_con, "probability of all samples together", E_a / E),
        Name(L_sup, "cross-entropy among the centers alone", -sp.log(own / E_c)),
        Name(L_con, "contrastive loss among the samples alone, a sum", -_positives(sp.log(sp.exp(z[k]) / E_a))),
    )  # fmt: skip


def _steps():
    return (
        Step("Start: the weighted loss over positives and own center.", equal(L, loss), "program", _program),
        Step("The probability of the own center is that among the centers, times that of the centers.",
             equal(own / E, own / E_c * P_sup)),
        Step("The probability of a positive is that among the samples, times that of the samples.",
             equal(sp.exp(z[i]) / E, sp.exp(z[i]) / E_a * P_con)),
        Step("Products become sums under the logarithm: the first term,",
             equal(-sp.log(own / E), L_sup - sp.log(P_sup))),
        Step("and the K others.",
             equal(-_positives(sp.log(sp.exp(z[k]) / E)), L_con - K * sp.log(P_con))),
        Step("Added up with their weights.",
             equal(L, L_sup + alpha * L_con - (sp.log(P_sup) + alpha * K * sp.log(P_con)))),
        Step("Every candidate is a center or a sample.", equal(P_con, 1 - P_sup)),
        Step("The published form. No step needed classes of equal size.",
             equal(L, L_sup + alpha * L_con - (sp.log(P_sup) + alpha * K * sp.log(1 - P_sup)))),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({C: 2, A: 3, K: 1, i: 1}, {C: 3, A: 4, K: 2, i: 2}),
        indices={i: (1, K)},
        given=(at_most(K, A),),
        conditions=("there is a positive", "the sum form, at temperature 1, of one anchor"),
    )


DERIVATION = Derivation(
    name="paco-decomposition",
    title="PaCo as a cross-entropy, a contrastive loss, and a term between them",
    sources=("source 004, section PaCo under Balanced Setting", "that it holds without balance: derived here"),
    steps=_chain,
)
