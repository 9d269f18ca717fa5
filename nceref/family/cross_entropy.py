"""Cross-entropy of a softmax with temperature and label smoothing: the head that the whole family shares.

L_i = log sum_k exp(x_ik / T) - sum_k q_ik x_ik / T,    q = (1 - e) onehot(target) + e / C
"""

from nceref.engine.embeddings import given
from nceref.engine.heads import Head, HeadRows, sigmoid, softplus
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import LOGITS, TARGET
from nceref.engine.patterns import Everyone, Except, Index, Only
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Given, divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.spec import Expectation, Loss, Relation, Scalar, Source, always


def formula(m, logits, target, *, temperature, label_smoothing):
    """-sum_k q_k log softmax_k, row by row."""
    rows = []
    for x, y in zip(logits, target, strict=True):
        p = [m.exp(value / temperature) for value in x]
        log_softmax = [m.log(p_k / sum(p)) for p_k in p]
        smooth = -sum(log_softmax) / len(x)
        rows.append(-(1 - label_smoothing) * log_softmax[y] + label_smoothing * smooth)
    return rows


def plan(logits, target, *, temperature, label_smoothing) -> Plan:
    """Target against the other classes; the smoothed part needs the sum over all classes."""
    own = (Index(target),)
    terms = {"negatives": Term(LogSumExp(), Except(own)), "positive": Term(Sum(), Only(own))}
    if label_smoothing:
        terms["everyone"] = Term(Sum(), Everyone())
    comparison = Comparison(Given(given("logits", logits), divided_by(temperature)), terms)
    return Plan((comparison,), _head(label_smoothing, logits.shape[1]))


def _head(smoothing, classes) -> Head:
    """softplus(negatives - positive) + e (positive - mean over classes)."""

    def head(stats) -> HeadRows:
        gap = stats["negatives"] - stats["positive"]
        missed = sigmoid(gap)
        mean = stats["everyone"] / classes if smoothing else array_namespace(gap).zeros_like(gap)
        drift = smoothing * (stats["positive"] - mean) if smoothing else mean

        def vjp(c):
            slopes = {"negatives": c * missed, "positive": -c * (missed - smoothing)}
            return {**slopes, "everyone": -c * smoothing / classes} if smoothing else slopes

        return softplus(gap) + drift, vjp

    return head


def _one_way(losses, inputs):
    scaled = {**inputs, "logits": inputs["logits"] / inputs["temperature"], "temperature": 1.0}
    return losses.cross_entropy(**inputs), losses.cross_entropy(**scaled)


LOSS = Loss(
    name="cross_entropy",
    summary="Softmax cross-entropy with temperature and label smoothing.",
    text="L_i = log sum_k exp(x_ik/T) - sum_k q_ik x_ik/T,  q = (1-e) onehot(y_i) + e/C",
    latex=r"L_i = \log\sum_{k=1}^{C} e^{x_{ik}/\tau} - \sum_k q_{ik}\frac{x_{ik}}{\tau},\qquad"
    r" q_{ik} = (1-\varepsilon)\,1[k=y_i] + \frac{\varepsilon}{C}",
    gradient="dL_i/dx_ik = (softmax(x_i/T)_k - q_ik) / T;  dL_i/dT = -sum_k x_ik dL_i/dx_ik / T",
    parameters=(
        LOGITS,
        TARGET,
        Scalar("temperature", r"\tau", "Divides the logits.", default=1.0, low=0.0, typical=(0.05, 1.0)),
        Scalar(
            "label_smoothing", r"\varepsilon", "Share of the target spread evenly over all classes.", default=0.0,
            low=0.0, low_closed=True, high=1.0, high_closed=True, constant=True, typical=(0.0, 0.2),
        ),
    ),
    sources=(
        Source("source 001", "CrossEntropyLoss example with t = 1, 0.5, 0.1", "source text"),
        Source("source 002", "S_j and one-hot cross-entropy", "source text"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "convex_in_logits", "nonnegative", "permutation_equivariant", "row_shift_invariant",
            "row_slopes_sum_to_zero",
        ),
        "attracts_positives": {"label_smoothing": 0.0},
        "repels_negatives": {"label_smoothing": 0.0},
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(Relation("cross_entropy", "CE(x, T) = CE(x / T, 1)", _one_way),),
    expectations=(
        Expectation("chance", "log C", "all logits equal (NC-5)", lambda s: s.log(s.classes)),
        Expectation("collapse", "log C", "all logits equal (NC-5)", lambda s: s.log(s.classes)),
        Expectation(
            "optimum", "H(q) = -(1-e+e/C) log(1-e+e/C) - (C-1) (e/C) log(e/C)",
            "the entropy of the target, at softmax(x/T) = q", lambda s: s.smoothed_optimum(),
        ),
        Expectation(
            "lower bound", "H(q), 0 without smoothing", "no cross-entropy is below the entropy of its target (WL-1)",
            lambda s: s.target_entropy(),
        ),
        Expectation("upper bound", "none", "", lambda s: s.absent("any value is possible: logits have no bound")),
    ),
    notes="With label smoothing the target probability is (1-e) + e/C, as in PyTorch; above it the target is repelled.",
    variants=({}, {"label_smoothing": 0.125}),
)  # fmt: skip
