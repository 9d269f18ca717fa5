"""Balanced softmax: cross-entropy with the logarithm of the class counts added to the logits.

    L_i = -log( n_y exp(x_iy / T) / sum_k n_k exp(x_ik / T) )

Only ratios of the counts matter: frequencies give the same loss.
"""

from nceref.engine.embeddings import given
from nceref.engine.heads import softmax_one_positive
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import LOGITS, TARGET
from nceref.engine.patterns import Except, Index, Only
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import shared
from nceref.engine.similarity import Given, Offset, divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.spec import Array, Expectation, Loss, Relation, Scalar, Source, always


def formula(m, logits, target, class_counts, *, temperature):
    """-log of the count-weighted softmax at the target."""
    rows = []
    for x, y in zip(logits, target, strict=True):
        mass = [n * m.exp(value / temperature) for n, value in zip(class_counts, x, strict=True)]
        rows.append(-m.log(mass[y] / sum(mass)))
    return rows


def plan(logits, target, class_counts, *, temperature) -> Plan:
    """The counts are a constant offset of every class."""
    own = (Index(target),)
    prior = Offset(array_namespace(class_counts).log(class_counts))
    source = Given(given("logits", logits), divided_by(temperature), prior)
    terms = {"negatives": Term(LogSumExp(), Except(own)), "positive": Term(Sum(), Only(own))}
    return Plan((Comparison(source, terms),), softmax_one_positive)


def _equal_counts(losses, inputs):
    equal = {**inputs, "class_counts": 0 * inputs["class_counts"] + 7.0}
    return losses.balanced_softmax(**equal), losses.cross_entropy(**shared(losses.cross_entropy, inputs))


def _frequencies(losses, inputs):
    counts = inputs["class_counts"]
    frequencies = {**inputs, "class_counts": counts / counts.sum()}
    return losses.balanced_softmax(**inputs), losses.balanced_softmax(**frequencies)


LOSS = Loss(
    name="balanced_softmax",
    summary="Cross-entropy whose softmax is weighted by class counts, for long-tailed training sets.",
    text="L_i = -log( n_y exp(x_iy/T) / sum_k n_k exp(x_ik/T) )",
    latex=r"L_i = -\log\frac{n_{y_i}\, e^{x_{iy_i}/\tau}}{\sum_{k=1}^{C} n_k\, e^{x_{ik}/\tau}}",
    gradient="dL_i/dx_ik = (p_ik - [k = y_i]) / T,  p_ik = n_k exp(x_ik/T) / sum_l n_l exp(x_il/T);"
    "  dL_i/dT = -sum_k x_ik dL_i/dx_ik / T",
    parameters=(
        LOGITS,
        TARGET,
        Array(
            "class_counts", ("C",), "Number of training samples of each class, or its frequency; a constant.",
            constant=True, embedding=False, low=0.0, like="counts",
        ),
        Scalar(
            "temperature", r"\tau", "Divides the logits, not the counts.", default=1.0, low=0.0, typical=(0.05, 1.0)
        ),
    ),
    sources=(
        Source("jiawei-ren/BalancedMetaSoftmax-Classification", "balanced_softmax_loss (copies)", "third-party code"),
        Source("source 004", "Center Learning Rebalance", "source text"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation("cross_entropy", "with equal counts it is cross-entropy at the same temperature", _equal_counts),
        Relation("balanced_softmax", "counts and frequencies give the same loss", _frequencies),
    ),
    expectations=(
        Expectation("chance", "log C", "all logits equal and balanced counts (NC-5)", lambda s: s.log(s.classes)),
        Expectation(
            "collapse", "log C", "all logits equal and balanced counts; a row else reads -log(n_y / sum_k n_k) (NC-5)",
            lambda s: s.log(s.classes), assumes="balanced counts",
        ),
        Expectation("optimum", "0", "one class", lambda s: s.infimum(s.classes == 1)),
        Expectation("lower bound", "0", "-log of a probability (WL-1)", lambda s: 0.0),
        Expectation("upper bound", "none", "", lambda s: s.absent("any value is possible: logits have no bound")),
    ),
    notes="A temperature other than 1 divides the logits only; PaCo's code divides the log-prior as well.",
)  # fmt: skip
