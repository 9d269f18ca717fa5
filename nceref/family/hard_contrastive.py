"""InfoNCE restricted to the hardest negatives: the upper quantile of each row.

L_i = -log( exp(s_ii / T) / (exp(s_ii / T) + sum_{j in top k} exp(s_ij / T)) ),    k = max(1, ceil(fraction (N - 1)))
"""

import math

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import softmax_one_positive
from nceref.engine.layouts import two_towers
from nceref.engine.parameters import KEYS, NORMALIZE, NORMALIZED, QUERIES, TEMPERATURE, UNNORMALIZED
from nceref.engine.patterns import Hardest, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import compared, shared
from nceref.engine.similarity import divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.engine.ties import ranked
from nceref.spec import Expectation, Kink, Loss, Relation, Scalar, Source, always


def kept(fraction, negatives):
    """The number of negatives that stay: ceil(fraction * negatives), at least one if there is one."""
    # Rounding to 9 digits first: 0.07 * 100 is 7.000000000000001 in floating point.
    return min(negatives, max(1, math.ceil(round(float(fraction) * negatives, 9))))


def formula(m, queries, keys, *, temperature, fraction, normalize):
    """-log softmax of the own key among itself and the hardest negatives; ties go to the lower index."""
    q, k = rows(m, queries, normalize), rows(m, keys, normalize)
    out = []
    for i, q_i in enumerate(q):
        s = [dot(q_i, k_j) for k_j in k]
        # By real parts, so that a complex step ranks as the numbers themselves do.
        negatives = sorted((j for j in range(len(k)) if j != i), key=lambda j: (-m.real(s[j]), j))
        hardest = negatives[: kept(m.real(fraction), len(negatives))]
        p = [m.exp(s[j] / temperature) for j in (i, *hardest)]
        out.append(-m.log(p[0] / sum(p)))
    return out


def plan(queries, keys, *, temperature, fraction, normalize) -> Plan:
    """InfoNCE with another pattern of negatives."""
    n = queries.shape[0]
    logits = ranked(two_towers(normalize, divided_by(temperature), queries=queries, keys=keys))
    hardest = Hardest(itself(n), kept(fraction, n - 1), logits.copies)
    terms = {"negatives": Term(LogSumExp(), hardest), "positive": Term(Sum(), Only(itself(n)))}
    return Plan((Comparison(logits, terms),), softmax_one_positive)


def _tied(inputs, eps):
    """Whether the last kept and the first dropped negative of a row are equal to rounding."""
    import numpy as np

    q, k = compared(inputs, "queries", "keys")
    s = q @ k.T
    count = kept(inputs["fraction"], len(s) - 1)
    if count >= len(s) - 1:
        return False
    ranked = -np.sort(-s[~np.eye(len(s), dtype=bool)].reshape(len(s), -1), axis=1)
    scale = np.linalg.norm(q, axis=1) * np.max(np.linalg.norm(k, axis=1))
    # Logits below the smallest number are all 0.
    resolution = 64 * eps * scale + np.finfo(np.float64).tiny * inputs["temperature"]
    return bool(np.any(ranked[:, count - 1] - ranked[:, count] <= resolution))


def _info_nce(losses, inputs):
    return losses.hard_contrastive(**inputs), losses.info_nce(**shared(losses.info_nce, inputs))


def _chance(s):
    k = kept(s.fraction, s.n - 1)
    return s.sampled_chance(s.n - 1, {"negatives": 1.0}, softmax_one_positive, hardest=k) if k else 0.0


LOSS = Loss(
    name="hard_contrastive",
    summary="InfoNCE over the hardest negatives only: an upper quantile of each row.",
    text="L_i = -log( exp(s_ii/T) / (exp(s_ii/T) + sum_{j in top k} exp(s_ij/T)) ),"
    "  k = max(1, ceil(round(fraction (N-1), 9))), s_ij = q_i.k_j",
    latex=r"L_i = -\log\frac{e^{s_{ii}/\tau}}{e^{s_{ii}/\tau}"
    r" + \sum_{j\ne i,\ s_{ij}\ge s_i^{(\alpha)}} e^{s_{ij}/\tau}}",
    gradient="as InfoNCE on the kept set, 0 on the other negatives",
    parameters=(
        QUERIES,
        KEYS,
        TEMPERATURE,
        Scalar(
            "fraction", r"\alpha", "Share of the negatives that is kept, the most similar ones.", low=0.0, high=1.0,
            high_closed=True, constant=True, typical=(0.2, 0.8),
        ),
        NORMALIZE,
    ),
    sources=(Source("Wang & Liu 2021", "eq. (8), (9)", "paper"),),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "nonnegative", "permutation_equivariant", "repels_negatives", "rotation_invariant",
            "row_shift_invariant", "row_slopes_sum_to_zero", "convex_in_logits",
        ),
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED,
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation("info_nce", "it is InfoNCE", _info_nce, given={"fraction": 1.0}),
        Relation("info_nce", "never above InfoNCE at the same temperature", _info_nce, "<="),
    ),
    expectations=(
        Expectation(
            "chance", "log(1 + k)", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(1 + kept(s.fraction, s.n - 1)), dim=False,
        ),
        Expectation(
            "chance", "E log(e^(p/T) + sum of the k largest of N-1 terms e^(s/T))",
            "p and s cosines of independent uniform rows in D dimensions, drawn (WI-2)", lambda s: _chance(s), dim=True,
        ),
        Expectation(
            "collapse", "log(1 + k)", "all similarities equal (NC-5)", lambda s: s.log(1 + kept(s.fraction, s.n - 1)),
        ),
        Expectation(
            "optimum", "log(1 + k e^(-N / ((N-1) T)))",
            "aligned simplex, D >= N - 1: the hardest negatives are at least as similar as all in the mean (SC-8)",
            lambda s: s.simplex(s.n, kept(s.fraction, s.n - 1)),
        ),
        Expectation(
            "lower bound", "log(1 + k e^(-2/T))", "cosines in [-1, 1] (WL-1)",
            lambda s: s.cosine_bound(kept(s.fraction, s.n - 1), -2),
        ),
        Expectation(
            "upper bound", "log(1 + k e^(2/T))", "cosines in [-1, 1] (WL-1); need not be reached",
            lambda s: s.cosine_bound(kept(s.fraction, s.n - 1), 2),
        ),
    ),
    kinks=(
        Kink(
            "quantile tie", "the last kept and the first dropped negative are equally similar",
            "the one with the lower index is kept", _tied,
        ),
    ),
    variants=({"fraction": 0.5}, {"fraction": 1.0}),
)  # fmt: skip
