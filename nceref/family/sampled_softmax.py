"""Sampled softmax with in-batch negatives, corrected for how often each item is sampled (logQ).

    all:        L_i = -log( e^{x_ii} / sum_j e^{x_ij} ),                    x_ij = q_i.v_j / T - log m_j
    negatives:  L_i = -log( e^{s_ii} / (e^{s_ii} + sum_{j != i} e^{x_ij}) ),  s_ij = q_i.v_j / T
    weighted:   L_i = (1 - P_i) ( log sum_{j != i} e^{x_ij} - s_ii ),       P_i the probability in `negatives`, constant

m_j is the expected number of times that item j is among the negatives: n Q_j for n draws with probability Q_j. Items
with the id of the positive are accidental hits, and are left out.
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import sigmoid, softmax_one_positive
from nceref.engine.label_patterns import OtherLabel
from nceref.engine.layouts import two_towers
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import NORMALIZE, NORMALIZED, QUERIES, TEMPERATURE, UNNORMALIZED
from nceref.engine.patterns import Except, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import shared
from nceref.engine.similarity import Offset, divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.errors import InputError
from nceref.spec import Array, Choice, Expectation, Labels, Loss, Relation, Source, always

BOTH = ("all", "negatives")
"""Corrections under which a row is -log of a probability."""


def formula(m, queries, items, expected_counts, *, item_ids, temperature, correction, normalize):
    """The positive against the other items of the batch, each over its expected count."""
    q, v = rows(m, queries, normalize), rows(m, items, normalize)
    names = item_ids or range(len(v))
    out = []
    for i, q_i in enumerate(q):
        e = [m.exp(dot(q_i, v_j) / temperature) for v_j in v]
        positive = e[i] / expected_counts[i] if correction == "all" else e[i]
        negatives = sum(e[j] / expected_counts[j] for j in range(len(v)) if names[j] != names[i])
        if correction == "weighted":
            weight = m.detach(negatives / (positive + negatives))
            out.append(weight * (m.log(negatives) - m.log(positive)))
        else:
            out.append(-m.log(positive / (positive + negatives)))
    return out


def plan(queries, items, expected_counts, *, item_ids, temperature, correction, normalize) -> Plan:
    """Logits with a constant offset by item; but for `all` the positive is compared without it."""
    own, factor = itself(queries.shape[0]), divided_by(temperature)
    offset = Offset(-array_namespace(expected_counts).log(expected_counts))
    others = Except(own) if item_ids is None else OtherLabel(item_ids, item_ids)
    corrected = two_towers(normalize, factor, offset, queries=queries, items=items)
    negatives, positive = {"negatives": Term(LogSumExp(), others)}, {"positive": Term(Sum(), Only(own))}
    if correction == "all":
        return Plan((Comparison(corrected, {**negatives, **positive}),), softmax_one_positive)
    # Of this comparison only blocks on the diagonal are computed: no statistic touches another one.
    pairs = Comparison(two_towers(normalize, factor, queries=queries, items=items), positive)
    head = _weighted if correction == "weighted" else softmax_one_positive
    return Plan((pairs, Comparison(corrected, negatives)), head)


def _weighted(stats):
    """The gap of negatives and positive, weighted by the probability of a mistake, which is a constant."""
    xp = array_namespace(stats["positive"])
    has = stats["negatives"] > -xp.inf
    if not bool(xp.all(has)):
        # The array standard has no argmax of truth values.
        row = int(xp.argmax(xp.astype(~has, xp.int8)))
        reason = "every item has the id of its own in `item_ids`"
        remedy = "drop it, or pass correction='negatives', where it counts as 0"
        msg = f"query {row} has no negative: {reason}; {remedy}"
        raise InputError(msg)
    gap = stats["negatives"] - stats["positive"]
    weight = sigmoid(gap)

    def vjp(c):
        g = c * weight
        return {"negatives": g, "positive": -g}

    return weight * gap, vjp


def _uncorrected(losses, inputs):
    equal = {**inputs, "expected_counts": 0 * inputs["expected_counts"] + 1.0}
    return losses.sampled_softmax(**equal), losses.info_nce(keys=inputs["items"], **shared(losses.info_nce, inputs))


def _frequencies(losses, inputs):
    counts = inputs["expected_counts"]
    frequencies = {**inputs, "expected_counts": counts / counts.sum()}
    return losses.sampled_softmax(**inputs), losses.sampled_softmax(**frequencies)


def _same_gradient(losses, inputs):
    ours, theirs = (
        losses.sampled_softmax.value_and_grad(**{**inputs, "correction": correction})[1]["queries"]
        for correction in ("weighted", "negatives")
    )
    return ours, theirs


def _of_all(known):
    """A value that is known for the correction of all logits alone."""
    return lambda s: known(s) if s.correction == "all" else s.absent("known for correction='all'")


LOSS = Loss(
    name="sampled_softmax",
    summary="Softmax over items of which a batch is sampled, each corrected for how often it is (logQ).",
    text="L_i = -log( e^(x_ii) / sum_j e^(x_ij) ),  x_ij = q_i.v_j/T - log m_j (all);"
    "  -log( e^(s_ii) / (e^(s_ii) + sum_{j != i} e^(x_ij)) ),  s_ij = q_i.v_j/T (negatives);"
    "  (1 - P_i) (log sum_{j != i} e^(x_ij) - s_ii),  P_i the probability in negatives, a constant (weighted)",
    latex=r"L_i = -\log\frac{e^{q_i\cdot v_i/\tau}}{e^{q_i\cdot v_i/\tau}"
    r" + \sum_{j\ne i} e^{q_i\cdot v_j/\tau - \log m_j}}",
    gradient="dL_i/ds_ij = (P_ij - [j = i]) / T,  s_ij = q_i.v_j,  P_i = softmax over the corrected logits;"
    "  dL_i/dT = (s_ii - sum_j P_ij s_ij) / T^2",
    parameters=(
        QUERIES,
        Array("items", ("N", "D"), "Item i is the positive of query i."),
        Array(
            "expected_counts", ("N",),
            "How often item j is expected among the negatives, n Q_j for n draws of probability Q_j; for the correction"
            " of all, probabilities do as well; a constant.",
            constant=True, embedding=False, low=0.0, like="counts",
        ),
        Labels(
            "item_ids", ("N",), "Ids of the items: of those with the id of the positive none is a negative.",
            required=False, positional=False,
        ),
        TEMPERATURE,
        Choice(
            "correction", ("all", "negatives", "weighted"), "all",
            "Which logits are corrected: all, or those of the negatives alone; or of the negatives, weighted by the"
            " probability of a mistake.",
        ),
        NORMALIZE,
    ),
    sources=(
        Source("tensorflow/recommenders", "layers/loss.py: SamplingProbabilityCorrection", "third-party code"),
        Source("Khrylchenko et al. 2025, arXiv:2507.09331", "abstract: the positive is not sampled (LQ-1)", "paper"),
        Source("own derivation", "both refined forms have one gradient, (1 - P) (d log S - d s_ii)", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "permutation_equivariant", "repels_negatives", "rotation_invariant",
            "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
        "convex_in_logits": {"correction": BOTH},
        "nonnegative": {"correction": BOTH},
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED,
    },
    rows="(N,)",
    sign=">= 0, either sign for the weighted correction",
    unit="nats",
    relations=(
        Relation(
            "info_nce", "with counts of 1 it is InfoNCE", _uncorrected, given={"item_ids": None, "correction": BOTH},
        ),
        Relation(
            "sampled_softmax", "counts and probabilities give the same loss", _frequencies, given={"correction": "all"},
        ),
        Relation(
            "sampled_softmax", "the weighted correction has the gradient of that of the negatives", _same_gradient,
        ),
    ),
    expectations=(
        Expectation(
            "chance", "log N", "independent uniform rows as D grows, counts of 1: all similarities 0 (WI-2)",
            _of_all(lambda s: s.log(s.n)), dim=False,
            assumes="equal counts",
        ),
        Expectation(
            "chance", "E log sum of N terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions, equal counts (WI-2, WI-3)",
            _of_all(lambda s: s.chance(s.n - 1)), dim=True,
            assumes="equal counts",
        ),
        Expectation(
            "collapse", "log N", "all similarities and counts equal (NC-5)",
            _of_all(lambda s: s.log(s.n)),
            assumes="equal counts",
        ),
        Expectation(
            "optimum", "log(1 + (N-1) e^(-N / ((N-1) T)))", "aligned simplex, D >= N - 1, equal counts (SC-8, GR-2)",
            _of_all(lambda s: s.simplex(s.n, s.n - 1)),
            assumes="equal counts",
        ),
        Expectation(
            "lower bound", "0", "-log of a probability (WL-1)",
            lambda s: s.absent("none: the weighted gap may be negative") if s.correction == "weighted" else 0.0,
        ),
        Expectation("upper bound", "none", "", lambda s: s.absent("any value is possible: counts have no bound")),
    ),
    notes="The loss of two-tower recommenders. Accidental hits that are left out bias the correction of all: the"
    " positive stands for none of its draws.",
    variants=(
        {},
        {"item_ids": ...},
        {"correction": "negatives"},
        {"correction": "negatives", "item_ids": ...},
        {"correction": "weighted"},
    ),
    single=False,
)  # fmt: skip
