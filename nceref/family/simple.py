"""The simple loss: the positive pulls, all negatives push with the same constant weight.

    L_i = -s_ii + w sum_{j != i} s_ij,    w = 1 / (N - 1) by default

The limit of InfoNCE at infinite temperature, up to scale and a constant; hard and easy negatives weigh the same.
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import HeadRows
from nceref.engine.layouts import two_towers
from nceref.engine.parameters import KEYS, NORMALIZE, NORMALIZED, QUERIES
from nceref.engine.patterns import Except, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Factor
from nceref.engine.statistics import Sum, Term
from nceref.spec import Expectation, Loss, Relation, Scalar, Source, always


def formula(m, queries, keys, *, negative_weight, normalize):
    """Similarities added up."""
    q, k = rows(m, queries, normalize), rows(m, keys, normalize)
    out = []
    for i, q_i in enumerate(q):
        s = [dot(q_i, k_j) for k_j in k]
        pushed = sum(s[:i] + s[i + 1 :])
        mean = pushed / max(len(k) - 1, 1)
        out.append(-s[i] + (mean if negative_weight is None else negative_weight * pushed))
    return out


def plan(queries, keys, *, negative_weight, normalize) -> Plan:
    """Two sums a row."""
    n = queries.shape[0]
    logits = two_towers(normalize, Factor(), queries=queries, keys=keys)
    terms = {"negatives": Term(Sum(), Except(itself(n))), "positive": Term(Sum(), Only(itself(n)))}
    # One pair has no negatives, and any weight will do.
    weight = 1 / max(n - 1, 1) if negative_weight is None else negative_weight
    return Plan((Comparison(logits, terms),), lambda stats: _head(stats, weight))


def _head(stats, weight) -> HeadRows:
    """-positive + weight * negatives."""

    def vjp(c):
        return {"negatives": weight * c, "positive": -c}

    return weight * stats["negatives"] - stats["positive"], vjp


def _default(losses, inputs):
    negatives = len(inputs["queries"]) - 1
    both = [losses.simple(**{**inputs, "negative_weight": weight}) for weight in (None, 1 / negatives)]
    return both[0], both[1]


LOSS = Loss(
    name="simple",
    summary="Linear loss: positives attract, all negatives repel with one constant weight.",
    text="L_i = -s_ii + w sum_{j!=i} s_ij,  w = 1/(N-1) unless given, s_ij = q_i.k_j",
    latex=r"L_i = -s_{ii} + \lambda\sum_{j\ne i} s_{ij},\qquad \lambda = \frac1{N-1}",
    gradient="dL_i/ds_ii = -1,  dL_i/ds_ij = w",
    parameters=(
        QUERIES,
        KEYS,
        Scalar(
            "negative_weight", r"\lambda", "Weight of every negative; None: 1 / (N - 1).", default=None, low=0.0,
            low_closed=True, constant=True, optional=True, typical=(0.1, 1.0),
        ),
        NORMALIZE,
    ),
    sources=(Source("Wang & Liu 2021", "eq. (3)", "paper"), Source("source 000", "(2)", "source text")),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "view_swap_invariant",
        ),
        **NORMALIZED,
        "row_shift_invariant": {"negative_weight": None},
        "row_slopes_sum_to_zero": {"negative_weight": None},
    },
    rows="(N,)",
    relations=(Relation("simple", "the default weight is 1 / (N - 1)", _default),),
    expectations=(
        Expectation(
            "chance", "0", "independent uniform rows have mean similarity 0", lambda s: s.similarity_chance()
        ),
        Expectation(
            "collapse", "w (N-1) - 1, -1 for N = 1", "all similarities equal; 0 with the default weight (WL-5)",
            lambda s: s.simple_push() - 1,
        ),
        Expectation(
            "optimum", "-1 - w, or 1 - w (N-1) if that is less",
            "aligned rows that add up to 0, or queries all e and keys all -e (WL-5)", lambda s: s.simple_optimum(),
        ),
        Expectation(
            "lower bound", "-1 - w, or 1 - w (N-1) if that is less", "minus the upper bound (WL-5)",
            lambda s: -s.simple_bound(),
        ),
        Expectation(
            "upper bound", "1 + w, or w (N-1) - 1 if that is more; w = 1/(N-1) unless given, 0 for N = 1",
            "Cauchy-Schwarz on rows less their mean, and on the means; for 1 + w keys = -queries that add up to 0",
            lambda s: s.simple_bound(),
        ),
    ),
    unit="",
    sign="either sign: the optimum is negative",
    notes="For N = 1 there is no negative and the default weight has no value: the program takes their part as 0, and "
    "`nceref verify` does not judge such a batch. "
    "With a weight above 2 / (N - 2) the minimum is anti-aligned collapse: queries all e, keys all -e.",
    single=False,
    variants=({}, {"negative_weight": 0.5}),
)  # fmt: skip
