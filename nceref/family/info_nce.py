"""InfoNCE: one direction, in-batch or explicit negatives.

    L_i = -log( exp(q_i.k_i / T) / sum_j exp(q_i.k_j / T) )

With explicit negatives the sum runs over the own key and the negatives only: other samples' keys are left out.
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import softmax_one_positive
from nceref.engine.layouts import one_positive, two_towers
from nceref.engine.parameters import KEYS, NORMALIZE, NORMALIZED, QUERIES, TEMPERATURE, UNNORMALIZED
from nceref.engine.patterns import Everyone, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import compared, shared
from nceref.engine.similarity import divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.spec import Array, Expectation, Loss, Relation, Source, always


def formula(m, queries, keys, negatives, *, temperature, normalize):
    """-log softmax of the own key among the candidates."""
    q, k = rows(m, queries, normalize), rows(m, keys, normalize)
    others = None if negatives is None else rows(m, negatives, normalize)
    out = []
    for i, q_i in enumerate(q):
        candidates = k if others is None else [k[i], *others]
        p = [m.exp(dot(q_i, k_j) / temperature) for k_j in candidates]
        out.append(-m.log(p[i if others is None else 0] / sum(p)))
    return out


def plan(queries, keys, negatives, *, temperature, normalize) -> Plan:
    """Queries against keys; with explicit negatives, two comparisons of the same queries."""
    n, factor = queries.shape[0], divided_by(temperature)
    own = two_towers(normalize, factor, queries=queries, keys=keys)
    if negatives is None:
        return Plan((Comparison(own, one_positive(n)),), softmax_one_positive)
    others = two_towers(normalize, factor, queries=queries, negatives=negatives)
    # Of this comparison only blocks on the diagonal are computed: no statistic touches another one.
    positive = Comparison(own, {"positive": Term(Sum(), Only(itself(n)))})
    return Plan((positive, Comparison(others, {"negatives": Term(LogSumExp(), Everyone())})), softmax_one_positive)


def _softmax(losses, inputs):
    q, k = compared(inputs, "queries", "keys")
    same = shared(losses.cross_entropy, inputs)
    return losses.info_nce(**inputs), losses.cross_entropy(q @ k.T, range(len(q)), **same)


def _queue(losses, inputs):
    return losses.info_nce(**inputs), losses.moco(**shared(losses.moco, inputs), queue=inputs.get("negatives"))


LOSS = Loss(
    name="info_nce",
    summary="InfoNCE: each query must pick its own key among all keys, or among explicit negatives.",
    text="L_i = -log( exp(q_i.k_i/T) / sum_j exp(q_i.k_j/T) ),"
    "  j over all keys, or over the own key and the negatives",
    latex=r"L_i = -\log\frac{e^{q_i\cdot k_i/\tau}}{\sum_{j=1}^{N} e^{q_i\cdot k_j/\tau}}",
    gradient="dL_i/ds_ij = (P_ij - [j = i]) / T,  s_ij = q_i.k_j,  P_i = softmax(s_i/T);"
    "  dL_i/dT = (s_ii - sum_j P_ij s_ij) / T^2",
    parameters=(
        QUERIES,
        KEYS,
        Array("negatives", ("M", "D"), "Candidates that are nobody's positive; None: the other keys.", required=False),
        TEMPERATURE,
        NORMALIZE,
    ),
    sources=(
        Source("Wang & Liu 2021", "eq. (1), (2), (4)", "paper"),
        Source("source 001", "second form of the loss", "source text"),
        Source("source 002", "L_contrast", "source text"),
        Source("source 004", "(1)", "source text"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED,
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation(
            "cross_entropy", "cross-entropy of the similarities with target i, at the same temperature", _softmax,
            given={"negatives": None},
        ),
        Relation("moco", "the value of MoCo with the negatives as its queue", _queue, given={"negatives": ...}),
    ),
    expectations=(
        Expectation(
            "chance", "log N", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(s.n), dim=False,
        ),
        Expectation(
            "chance", "E log sum of N terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions;"
            " at most log N + log 0F1(; D/2; 1/(4 T^2)) (WI-2, WI-3)",
            lambda s: s.chance(s.n - 1), dim=True,
        ),
        Expectation("collapse", "log N", "all similarities equal (NC-5)", lambda s: s.log(s.n)),
        Expectation(
            "optimum", "log(1 + (N-1) e^(-N / ((N-1) T)))", "aligned simplex, D >= N - 1 (SC-8, GR-2)",
            lambda s: s.simplex(s.n, s.n - 1),
        ),
        Expectation(
            "lower bound", "log(1 + (N-1) e^(-2/T))", "cosines in [-1, 1] (WL-1)",
            lambda s: s.cosine_bound(s.n - 1, -2),
        ),
        Expectation(
            "upper bound", "log(1 + (N-1) e^(2/T))",
            "cosines in [-1, 1] (WL-1); need not be reached by more than 2 pairs",
            lambda s: s.cosine_bound(s.n - 1, 2),
        ),
    ),
    notes="The expected numbers are for in-batch negatives. One pair without negatives has one candidate and loss 0.",
    variants=({}, {"negatives": ...}),
)  # fmt: skip
