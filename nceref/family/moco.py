"""MoCo: InfoNCE whose negatives are a queue of keys from earlier batches; keys and queue are constants.

L_i = -log( exp(q_i.k_i / T) / (exp(q_i.k_i / T) + sum_{k in queue} exp(q_i.k / T)) )
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import softmax_one_positive
from nceref.engine.layouts import two_towers
from nceref.engine.parameters import NORMALIZE, NORMALIZED, QUERIES, TEMPERATURE, UNNORMALIZED
from nceref.engine.patterns import Everyone, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import shared
from nceref.engine.similarity import divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.spec import Array, Expectation, Loss, Relation, Source, always


def formula(m, queries, keys, queue, *, temperature, normalize):
    """-log softmax of the own key among itself and the queue."""
    q, k = rows(m, queries, normalize), rows(m, keys, normalize)
    negatives = rows(m, queue, normalize)
    out = []
    for q_i, k_i in zip(q, k, strict=True):
        p = [m.exp(dot(q_i, k_j) / temperature) for k_j in (k_i, *negatives)]
        out.append(-m.log(p[0] / sum(p)))
    return out


def plan(queries, keys, queue, *, temperature, normalize) -> Plan:
    """Own pairs, and queries against the queue; only the queries and the temperature get a gradient."""
    factor, constants = divided_by(temperature), ("keys", "queue")
    own = two_towers(normalize, factor, constants=constants, queries=queries, keys=keys)
    others = two_towers(normalize, factor, constants=constants, queries=queries, queue=queue)
    # Of this comparison only blocks on the diagonal are computed: no statistic touches another one.
    positive = Comparison(own, {"positive": Term(Sum(), Only(itself(queries.shape[0])))})
    return Plan((positive, Comparison(others, {"negatives": Term(LogSumExp(), Everyone())})), softmax_one_positive)


def _explicit(losses, inputs):
    same = shared(losses.info_nce, inputs)
    return losses.moco(**inputs), losses.info_nce(**same, negatives=inputs["queue"])


LOSS = Loss(
    name="moco",
    summary="InfoNCE against a queue of old keys; no gradient through keys or queue.",
    text="L_i = -log( exp(q_i.k_i/T) / (exp(q_i.k_i/T) + sum_{k in queue} exp(q_i.k/T)) )",
    latex=r"L_i = -\log\frac{e^{q_i\cdot k_i/\tau}}{e^{q_i\cdot k_i/\tau}"
    r" + \sum_{k\in\text{queue}} e^{q_i\cdot k/\tau}}",
    gradient="dL_i/ds_ij = (P_ij - [j is the own key]) / T, passed on to the query only,"
    "  s_ij the products of q_i with the own key and the queue,  P_i = softmax(s_i/T);"
    "  dL_i/dT = (s_own - sum_j P_ij s_ij) / T^2",
    parameters=(
        QUERIES,
        Array(
            "keys", ("N", "D"), "Key i is the positive of query i, from the momentum encoder; a constant.",
            constant=True,
        ),
        Array("queue", ("K", "D"), "Keys of earlier batches, the negatives; a constant.", constant=True),
        TEMPERATURE,
        NORMALIZE,
    ),
    sources=(
        Source("facebookresearch/moco", "moco/builder.py, forward", "authors' code"),
        Source("source 001", "first form of the loss", "source text"),
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
    relations=(Relation("info_nce", "the value of InfoNCE with the queue as explicit negatives", _explicit),),
    expectations=(
        Expectation(
            "chance", "log(K + 1)", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(s.queue + 1), dim=False,
        ),
        Expectation(
            "chance", "E log sum of K + 1 terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions;"
            " at most log(K + 1) + log 0F1(; D/2; 1/(4 T^2)) (WI-2, WI-3)",
            lambda s: s.chance(s.queue), dim=True,
        ),
        Expectation("collapse", "log(K + 1)", "all similarities equal (NC-5)", lambda s: s.log(s.queue + 1)),
        Expectation(
            "optimum", "log(1 + K e^(-2/T))", "all queries and keys equal, the queue opposite",
            lambda s: s.cosine_bound(s.queue, -2),
        ),
        Expectation(
            "lower bound", "log(1 + K e^(-2/T))", "cosines in [-1, 1] (WL-1)", lambda s: s.cosine_bound(s.queue, -2)
        ),
        Expectation(
            "upper bound", "log(1 + K e^(2/T))", "cosines in [-1, 1] (WL-1)", lambda s: s.cosine_bound(s.queue, 2)
        ),
    ),
    notes="If the queue holds a query's own key, that key is a negative as well as the positive.",
)  # fmt: skip
