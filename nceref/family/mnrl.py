"""Multiple negatives ranking: InfoNCE over the documents of a batch and the hard negatives of its queries.

    L_i = -log( exp(q_i.d_i / T) / sum_c exp(q_i.c / T) )

The candidates c of a query are all documents and all hard negatives; all documents and its own hard negatives; or its
own document and hard negatives alone. A hardness a adds a (q_i.c), a constant for the gradient, to the logits of the
negatives that are chosen for it.
"""

import math

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import softmax_one_positive
from nceref.engine.layouts import two_towers
from nceref.engine.parameters import (
    DOCUMENTS,
    HARD_NEGATIVES,
    NORMALIZE,
    NORMALIZED,
    QUERIES,
    TEMPERATURE,
    UNNORMALIZED,
)
from nceref.engine.patterns import Except, Only, itself, of_query
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import shared
from nceref.engine.similarity import divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.errors import InputError
from nceref.spec import Choice, Expectation, Loss, Relation, Scalar, Source, always

OTHERS, OWN = ("in_batch", "all"), ("hard", "all")
"""Values of `hardness_of` that are for negatives of other queries, and for hard negatives of the query itself."""


def formula(m, queries, documents, negatives, *, temperature, candidates, hardness, hardness_of, normalize):
    """-log softmax of the own document among the candidates."""
    q, d = rows(m, queries, normalize), rows(m, documents, normalize)
    hard = [rows(m, own, normalize) for own in negatives] if negatives else [[] for _ in q]

    def exponential(s, weighted):
        return m.exp(s / temperature + hardness * m.detach(s) if weighted else s / temperature)

    out = []
    for i, q_i in enumerate(q):
        positive = exponential(dot(q_i, d[i]), False)
        total = positive + sum(exponential(dot(q_i, c), hardness_of in OWN) for c in hard[i])
        if candidates != "hard":
            total += sum(exponential(dot(q_i, c), hardness_of in OTHERS) for j, c in enumerate(d) if j != i)
        if candidates == "joined":
            others = [c for j, own in enumerate(hard) if j != i for c in own]
            total += sum(exponential(dot(q_i, c), hardness_of in OTHERS) for c in others)
        out.append(-m.log(positive / total))
    return out


def plan(queries, documents, negatives, *, temperature, candidates, hardness, hardness_of, normalize) -> Plan:
    """Queries against documents, and the same queries against hard negatives: those of query i are on n diagonals."""
    n, factor = queries.shape[0], divided_by(temperature)
    _check(negatives, candidates, hardness, hardness_of)

    def mass(weighted):
        # In a logit s / T, a weight e^(a s) is a factor of the exponent: constant, so that its slope stays 1.
        return LogSumExp(1 + hardness * temperature, slope=1.0) if weighted and hardness else LogSumExp()

    in_batch = {} if candidates == "hard" else {"negatives": Term(mass(hardness_of in OTHERS), Except(itself(n)))}
    positive = {"positive": Term(Sum(), Only(itself(n)))}
    pairs = Comparison(two_towers(normalize, factor, queries=queries, documents=documents), {**in_batch, **positive})
    if negatives is None:
        return Plan((pairs,), softmax_one_positive)
    own = of_query(n, negatives.shape[1])
    terms = {"own_negatives": Term(mass(hardness_of in OWN), Only(own))}
    if candidates == "joined":
        terms["others_negatives"] = Term(mass(hardness_of in OTHERS), Except(own))
    logits = two_towers(normalize, factor, queries=queries, negatives=negatives)
    return Plan((pairs, Comparison(logits, terms)), softmax_one_positive)


def _check(negatives, candidates, hardness, hardness_of):
    if candidates == "hard" and negatives is None:
        msg = "candidates='hard' leaves a query its own document alone; pass `negatives`, or candidates='joined'"
        raise InputError(msg)
    if hardness and hardness_of == "hard" and negatives is None:
        msg = "hardness_of='hard' is for hard negatives, and there are none; pass `negatives`, or hardness=0"
        raise InputError(msg)
    if hardness and hardness_of == "in_batch" and candidates == "hard":
        msg = "hardness_of='in_batch' is for negatives of other queries, which candidates='hard' leaves out; pass 'all'"
        raise InputError(msg)


def _info_nce(losses, inputs):
    same = shared(losses.info_nce, inputs)
    return losses.mnrl(**inputs), losses.info_nce(keys=inputs["documents"], **same)


def _one_by_one(losses, inputs):
    same = shared(losses.info_nce, inputs)
    hard = inputs.get("negatives", [None] * len(inputs["queries"]))
    rows = zip(inputs["queries"], inputs["documents"], hard, strict=True)
    alone = [
        losses.info_nce(**{**same, "queries": q[None, :], "keys": d[None, :], "negatives": own}) for q, d, own in rows
    ]
    return losses.mnrl(**inputs), sum(alone) / len(alone)


def _clip(losses, inputs):
    q, d = inputs["queries"], inputs["documents"]
    both = [losses.mnrl(**{**inputs, "queries": x, "documents": y}) for x, y in ((q, d), (d, q))]
    same = {**shared(losses.clip, inputs), "logit_scale": 1 / inputs["temperature"]}
    return sum(both) / 2, losses.clip(q, d, **same)


def _below(losses, inputs):
    return losses.mnrl(**{**inputs, "candidates": "own"}), losses.mnrl(**inputs)


def _groups(s):
    """Negatives of a query, its own hard ones and others: how many, and the factor of their cosines beside 1 / T."""
    own, others = (s.hardness if s.hardness_of in chosen else 0.0 for chosen in (OWN, OTHERS))
    each = 1 + s.hard_negatives if s.candidates == "joined" else 1
    in_batch = 0 if s.candidates == "hard" else (s.n - 1) * each
    return (s.hard_negatives, own), (in_batch, others)


def _count(s):
    return sum(count for count, _ in _groups(s))


def _mass(s, cosine):
    """Log sum of the weights of the negatives, all of one cosine."""
    return s.log(sum(count * math.exp(a * cosine) for count, a in _groups(s)))


def _chance(s):
    if s.hardness:
        s.absent("known for hardness 0")
        return None
    return s.chance(_count(s))


def _optimum(s):
    (hard, a_own), (in_batch, a) = _groups(s)
    if s.candidates == "joined" and hard and in_batch:
        s.absent("known without hard negatives, and for candidates='own' or 'hard'")
        return None
    if in_batch and s.n > 2 and a * (s.n - 2) * s.temperature > s.n:
        s.absent("known for hardness <= N / ((N - 2) T)")
        return None
    if in_batch and s.simplex(s.n, in_batch) is None:
        return None
    # Above a gap of -1 / T to the positive: own negatives are opposite, other documents the corners of a simplex.
    own = hard * math.exp(-1 / s.temperature - a_own)
    others = in_batch * math.exp(-(1 / s.temperature + a) / (s.n - 1)) if in_batch else 0.0
    return s.softplus(s.log(own + others) - 1 / s.temperature)


LOSS = Loss(
    name="mnrl",
    summary="Multiple negatives ranking: InfoNCE over the documents of a batch and hard negatives.",
    text="L_i = -log( exp(q_i.d_i/T) / sum_c exp(q_i.c/T + a_c q_i.c) ),  c over all documents and hard negatives"
    " (joined), all documents and the own hard negatives (own), or the own document and hard negatives (hard);"
    "  a_c the hardness for the negatives of hardness_of, else 0, and a_c q_i.c a constant for the gradient",
    latex=r"L_i = -\log\frac{e^{q_i\cdot d_i/\tau}}"
    r"{\sum_{c\in C_i} e^{q_i\cdot c/\tau + a_c\,\mathrm{sg}(q_i\cdot c)}}",
    gradient="dL_i/ds_ic = (P_ic - [c = d_i]) / T,  s_ic = q_i.c,  P_i = softmax(s_i/T + a s_i);"
    "  dL_i/dT = (s_ii - sum_c P_ic s_ic) / T^2",
    parameters=(
        QUERIES,
        DOCUMENTS,
        HARD_NEGATIVES,
        TEMPERATURE,
        Choice(
            "candidates", ("joined", "own", "hard"), "joined",
            "Beside its document, a query has all documents and everyone's hard negatives, all documents and its own"
            " hard negatives, or its own hard negatives alone.",
        ),
        Scalar(
            "hardness", "a", "Multiplies the similarity that is added to the logits of chosen negatives, a constant.",
            default=0.0, low=0.0, low_closed=True, high=2.0**53, constant=True, typical=(1.0, 9.0),
        ),
        Choice(
            "hardness_of", ("all", "in_batch", "hard"), "all",
            "Negatives that the hardness is for: all, those of other queries, or the query's own hard ones.",
        ),
        NORMALIZE,
    ),
    sources=(
        Source(
            "huggingface/sentence-transformers", "losses/multiple_negatives_ranking.py, compute_loss_from_embeddings",
            "third-party code",
        ),
        Source("own derivation", "the optimum under hardness, by Jensen's inequality", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "row_slopes_sum_to_zero",
        ),
        **NORMALIZED,
        "row_shift_invariant": {"hardness": 0.0},
        "temperature_homogeneous": {"hardness": 0.0, **UNNORMALIZED},
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation("info_nce", "it is InfoNCE", _info_nce, given={"negatives": None, "hardness": 0.0}),
        Relation(
            "info_nce", "the mean of InfoNCE of each query alone with its hard negatives", _one_by_one,
            given={"candidates": "hard", "hardness": 0.0},
        ),
        Relation(
            "clip", "CLIP is half the sum of both directions", _clip, given={"negatives": None, "hardness": 0.0},
        ),
        Relation(
            "mnrl", "never below itself with fewer candidates", _below, "<=",
            given={"candidates": ("joined", "own")},
        ),
    ),
    expectations=(
        Expectation(
            "chance", "log(1 + count of negatives)",
            "independent uniform rows as D grows: all similarities 0 (WI-2)", lambda s: s.log(1 + _count(s)), dim=False,
        ),
        Expectation(
            "chance", "E log sum of 1 + count terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions (WI-2, WI-3)", _chance, dim=True,
        ),
        Expectation(
            "collapse", "log(1 + sum of e^a over negatives)", "all similarities equal (NC-5)",
            lambda s: s.softplus(_mass(s, 1)),
        ),
        Expectation(
            "optimum", "log(1 + (N-1) e^(-(1/T + a)/(N-1) - 1/T) + V e^(-2/T - a))",
            "documents aligned with queries on a simplex, D >= N - 1, own hard negatives opposite; each term is the"
            " least by Jensen's inequality (SC-8)", _optimum,
        ),
        Expectation(
            "lower bound", "log(1 + sum of e^(-2/T - a) over negatives)", "cosines in [-1, 1] (WL-1)",
            lambda s: s.softplus(_mass(s, -1) - 2 / s.temperature),
        ),
        Expectation(
            "upper bound", "log(1 + sum of e^(2/T + a) over negatives)",
            "cosines in [-1, 1] (WL-1); need not be reached by more than 2 pairs",
            lambda s: s.softplus(_mass(s, 1) + 2 / s.temperature),
        ),
    ),
    notes="The other documents of the batch are in-batch negatives. A query that is its own document, and a document"
    " that is another query's negative, are counted as they stand: nothing is left out.",
    known_as=("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss"),
    variants=(
        {},
        {"negatives": ...},
        {"negatives": ..., "candidates": "own"},
        {"negatives": ..., "candidates": "hard"},
        {"hardness": 2.0},
        {"negatives": ..., "hardness": 2.0, "hardness_of": "in_batch"},
        {"negatives": ..., "candidates": "hard", "hardness": 2.0, "hardness_of": "hard"},
        {"negatives": ..., "candidates": "own", "hardness": 2.0, "hardness_of": "all"},
    ),
)  # fmt: skip
