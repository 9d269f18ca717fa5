"""InfoNCE in several directions: queries and documents are candidates of one another, and among themselves.

    L_i = log Z_i - q_i.d_i / T

    Z_i = sum_j e^{q_i.d_j / T} + sum_{j != i} e^{q_i.q_j / T} + sum_j e^{q_j.d_i / T} + sum_{j != i} e^{d_j.d_i / T}

`directions` says which of the four sums are there. The first and the third both hold the positive: with both of them no
row is below log 2. For `symmetric` they have a softmax each, and L_i is the mean of both.
"""

import math

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import softmax_one_positive
from nceref.engine.layouts import among_themselves, one_positive, two_towers
from nceref.engine.parameters import (
    DOCUMENTS,
    HARD_NEGATIVES,
    NORMALIZE,
    NORMALIZED,
    QUERIES,
    TEMPERATURE,
    UNNORMALIZED,
)
from nceref.engine.patterns import Everyone, Except, itself, of_query
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import shared
from nceref.engine.similarity import divided_by
from nceref.engine.statistics import LogSumExp, Term
from nceref.spec import Choice, Expectation, Loss, Relation, Source, always

LOG2 = math.log(2)
SUMS = {
    "all": ("qq", "dq", "dd"),
    "qd_qq_dd": ("qq", "dd"),
    "qd_qq": ("qq",),
    "qd_dd": ("dd",),
    "qd_dq": ("dq",),
    "symmetric": ("dq",),
}
"""Pairs that are compared beside a query with all documents: q a query, d a document, that of the row first."""
ONE_SIDED = tuple(name for name, sums in SUMS.items() if "dq" not in sums)
"""Directions in which every logit is of one row."""
TWICE = tuple(name for name in SUMS if name not in (*ONE_SIDED, "symmetric"))
"""Directions that have the positive twice in one denominator."""


def formula(m, queries, documents, negatives, *, temperature, directions, normalize):
    """-log softmax of the own document among the candidates of all directions, or the mean of two of them."""
    q, d = rows(m, queries, normalize), rows(m, documents, normalize)
    hard = [rows(m, own, normalize) for own in negatives] if negatives else [[] for _ in q]
    out = []
    for i in range(len(q)):
        others = [j for j in range(len(q)) if j != i]
        sums = {
            "qd": sum(m.exp(dot(q[i], x) / temperature) for x in (*d, *(x for own in hard for x in own))),
            "qq": sum(m.exp(dot(q[i], q[j]) / temperature) for j in others),
            "dq": sum(m.exp(dot(x, d[i]) / temperature) for x in q),
            "dd": sum(m.exp(dot(x, d[i]) / temperature) for j in others for x in (d[j], *hard[j])),
        }
        positive = m.exp(dot(q[i], d[i]) / temperature)
        if directions == "symmetric":
            out.append(-(m.log(positive / sums["qd"]) + m.log(positive / sums["dq"])) / 2)
        else:
            total = sum(x for name, x in sums.items() if name == "qd" or name in SUMS[directions])
            out.append(-m.log(positive / total))
    return out


def plan(queries, documents, negatives, *, temperature, directions, normalize) -> Plan:
    """Queries against documents along rows and along columns, queries among themselves, documents among themselves."""
    n, factor, also = queries.shape[0], divided_by(temperature), SUMS[directions]
    statistic, others = LogSumExp(), Except(itself(n))
    across = dict(one_positive(n))
    if "dq" in also:
        across["negatives_of_document"] = Term(statistic, others, along="columns")
    comparisons = [Comparison(two_towers(normalize, factor, queries=queries, documents=documents), across)]
    comparisons += among_themselves(also, normalize, factor, queries, documents, lambda _: Term(statistic, others))
    if negatives is not None:
        logits = two_towers(normalize, factor, queries=queries, negatives=negatives)
        comparisons.append(Comparison(logits, {"negatives_of_query": Term(statistic, Everyone())}))
        if "dd" in also:
            not_own = Except(of_query(n, negatives.shape[1]))
            logits = two_towers(normalize, factor, documents=documents, negatives=negatives)
            comparisons.append(Comparison(logits, {"negatives_of_others": Term(statistic, not_own)}))
    if directions == "symmetric":
        return Plan(tuple(comparisons), _symmetric)
    twice = directions in TWICE
    head = _positive_twice if twice else softmax_one_positive
    return Plan(tuple(comparisons), head, constant=LOG2 if twice else 0.0)


def _positive_twice(stats):
    """log(2 e^p + e^negatives) - p = log 2 + softplus(negatives - (p + log 2))."""
    loss, vjp = softmax_one_positive({**stats, "positive": stats["positive"] + LOG2})
    return LOG2 + loss, vjp


def _symmetric(stats):
    """The mean of a softmax over documents and one over queries; both have the same positive."""
    second = ("positive", "negatives_of_document")
    first = [name for name in stats if name not in second[1:]]
    (one, forth), (other, back) = (softmax_one_positive({name: stats[name] for name in x}) for x in (first, second))

    def vjp(c):
        slopes, more = forth(c / 2), back(c / 2)
        return {**slopes, **more, "positive": slopes["positive"] + more["positive"]}

    return (one + other) / 2, vjp


def _clip(losses, inputs):
    same = {**shared(losses.clip, inputs), "logit_scale": 1 / inputs["temperature"]}
    return losses.multi_direction(**inputs), losses.clip(inputs["queries"], inputs["documents"], **same)


def _nt_xent(losses, inputs):
    q, d = inputs["queries"], inputs["documents"]
    both = [losses.multi_direction(**{**inputs, "queries": x, "documents": y}) for x, y in ((q, d), (d, q))]
    return sum(both) / 2, losses.nt_xent(q, d, **shared(losses.nt_xent, inputs))


def _mnrl(losses, inputs):
    return losses.mnrl(**shared(losses.mnrl, inputs)), losses.multi_direction(**inputs)


def _below(losses, inputs):
    return losses.multi_direction(**inputs), losses.multi_direction(**{**inputs, "directions": "all"})


def _denominators(s):
    """The count of the positive in each denominator, and other rows that meet one row of the pair there, or both.

    A document meets the query in qd and the own document in dd, a query in qq and dq.
    """
    queries, hard = s.n - 1, s.hard_negatives
    documents = queries * (1 + hard)
    if s.directions == "symmetric":
        return [(1, documents + hard, 0), (1, queries, 0)]
    # The own hard negatives meet the query alone.
    sums, one, both = {"qd", *SUMS[s.directions]}, hard, 0
    for count, meet in ((documents, {"qd", "dd"}), (queries, {"qq", "dq"})):
        one += count * (len(meet & sums) == 1)
        both += count * (len(meet & sums) == 2)
    return [(2 if s.directions in TWICE else 1, one, both)]


def _mean(value):
    """The mean over denominators of log own + value(negatives / own): the value is known for one positive."""

    def at(s):
        parts = [(own, value(s, (one + 2 * both) / own)) for own, one, both in _denominators(s)]
        known = [s.log(own) + x for own, x in parts if x is not None]
        return sum(known) / len(known) if len(known) == len(parts) else None

    return at


def _chance(s):
    parts = [s.chance_of_pairs(*counts) for counts in _denominators(s)]
    if len(parts) == 1 or None in parts:
        return parts[0]
    return sum(parts) / len(parts)


def _simplex(s, count):
    if s.hard_negatives:
        s.absent("known without hard negatives")
        return None
    return s.simplex(s.n, count)


LOSS = Loss(
    name="multi_direction",
    summary="InfoNCE with queries and documents as candidates of one another and among themselves.",
    text="L_i = log Z_i - q_i.d_i/T,  Z_i = sum_j e^(q_i.d_j/T) + sum_{j != i} e^(q_i.q_j/T)"
    " + sum_j e^(q_j.d_i/T) + sum_{j != i} e^(d_j.d_i/T), with the sums that `directions` names;"
    "  symmetric: the mean of one with the first sum and one with the third",
    latex=r"L_i = -\log\frac{e^{q_i\cdot d_i/\tau}}{\sum_j e^{q_i\cdot d_j/\tau}"
    r" + \sum_{j\ne i} e^{q_i\cdot q_j/\tau} + \sum_j e^{q_j\cdot d_i/\tau}"
    r" + \sum_{j\ne i} e^{d_j\cdot d_i/\tau}}",
    gradient="dL_i/ds = (P - [positive]) / T for every candidate of row i, P its share of Z_i, of the positive 2 shares"
    " where it stands twice;  dL_i/dT = (s_ii - sum P s) / T^2",
    parameters=(
        QUERIES,
        DOCUMENTS,
        HARD_NEGATIVES,
        TEMPERATURE,
        Choice(
            "directions", tuple(SUMS), "all",
            "Sums in the denominator: qd, a query with all documents; qq, with the other queries; dq, its document with"
            " all queries; dd, with the other documents. all: the four of them; symmetric: qd and dq, a softmax each.",
        ),
        NORMALIZE,
    ),
    sources=(
        Source(
            "huggingface/sentence-transformers",
            "losses/multiple_negatives_ranking.py, `directions` and `partition_mode` in compute_loss_from_embeddings",
            "third-party code",
        ),
        Source("own derivation", "the optimum, by Jensen's inequality and the means of both towers", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant",
        ),
        **NORMALIZED,
        "row_shift_invariant": {"directions": ONE_SIDED},
        "row_slopes_sum_to_zero": {"directions": ONE_SIDED},
        "temperature_homogeneous": UNNORMALIZED,
        "view_swap_invariant": {"negatives": None, "directions": (*TWICE, "symmetric")},
    },
    rows="(N,)",
    sign=">= 0, and >= log 2 where the positive stands twice",
    unit="nats",
    relations=(
        Relation("clip", "it is CLIP", _clip, given={"negatives": None, "directions": "symmetric"}),
        Relation(
            "nt_xent", "NT-Xent is half the sum of both directions", _nt_xent,
            given={"negatives": None, "directions": "qd_qq"},
        ),
        Relation(
            "mnrl", "never below multiple negatives ranking with the same hard negatives", _mnrl, "<=",
            given={"directions": (*ONE_SIDED, *TWICE)},
        ),
        Relation("multi_direction", "never above itself with all four sums", _below, "<="),
    ),
    expectations=(
        Expectation(
            "chance", "log(own + count of negatives)",
            "independent uniform rows as D grows: all similarities 0 (WI-2)",
            _mean(lambda s, count: s.log(1 + count)), dim=False,
        ),
        Expectation(
            "chance", "E log(own e^(p/T) + sum of e^(s/T)) - E p/T",
            "p and s cosines of independent uniform rows in D dimensions (WI-2, WI-3); drawn but for 'symmetric' and"
            " 'qd_qq'", _chance, dim=True,
        ),
        Expectation(
            "collapse", "log(own + count of negatives)", "all similarities equal (NC-5)",
            _mean(lambda s, count: s.log(1 + count)),
        ),
        Expectation(
            "optimum", "log(own + count e^(-N / ((N-1) T)))",
            "documents aligned with queries on a simplex, D >= N - 1 (SC-8)",
            _mean(_simplex),
        ),
        Expectation(
            "lower bound", "log(own + count e^(-2/T))", "cosines in [-1, 1] (WL-1); log 2 where the positive is twice",
            _mean(lambda s, count: s.cosine_bound(count, -2)),
        ),
        Expectation(
            "upper bound", "log(own + count e^(2/T))", "cosines in [-1, 1] (WL-1); need not be reached",
            _mean(lambda s, count: s.cosine_bound(count, 2)),
        ),
    ),
    notes="directions='all' is the loss of GTE. With it and with 'qd_dq' the positive counts as a candidate from both"
    " sides: the least value is log 2, and its slope half of what it is elsewhere.",
    variants=tuple({**hard, "directions": x} for hard in ({}, {"negatives": ...}) for x in SUMS),
)  # fmt: skip
