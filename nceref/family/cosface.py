"""CosFace: cross-entropy of scaled cosines to class weights, with a margin taken off the target's cosine.

L_i = -log( exp(s (cos theta_y - m)) / (exp(s (cos theta_y - m)) + sum_{k != y} exp(s cos theta_k)) )
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import Head, HeadRows, sigmoid, softplus
from nceref.engine.layouts import two_towers
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import CLASS_WEIGHTS, EMBEDDINGS, NORMALIZE, NORMALIZED, SCALE, TARGET
from nceref.engine.patterns import Except, Index, Only
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import times
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.spec import Expectation, Loss, Relation, Scalar, Source, always


def formula(m, embeddings, class_weights, target, *, margin, scale, normalize):
    """The margin lowers the target's cosine before the softmax."""
    x, w = rows(m, embeddings, normalize), rows(m, class_weights, normalize)
    out = []
    for x_i, y in zip(x, target, strict=True):
        cosines = [dot(x_i, w_k) for w_k in w]
        cosines[y] = cosines[y] - margin
        p = [m.exp(scale * c) for c in cosines]
        out.append(-m.log(p[y] / sum(p)))
    return out


def plan(embeddings, class_weights, target, *, margin, scale, normalize) -> Plan:
    """Scaled cosines; the margin is the head's business, since only the target feels it."""
    logits = two_towers(normalize, times(scale, "scale"), embeddings=embeddings, class_weights=class_weights)
    own = (Index(target),)
    terms = {"negatives": Term(LogSumExp(), Except(own)), "positive": Term(Sum(), Only(own))}
    return Plan((Comparison(logits, terms),), _head(margin, scale), constant=scale * margin)


def _head(margin, scale) -> Head:
    """softplus(negatives - positive + s m)."""

    def head(stats) -> HeadRows:
        gap = stats["negatives"] - stats["positive"] + scale * margin
        missed = sigmoid(gap)

        def vjp(c):
            g = c * missed
            # By the scale only what the margin adds: the rest comes with the factor of the logits.
            return {"negatives": g, "positive": -g, "scale": margin * array_namespace(g).sum(g)}

        return softplus(gap), vjp

    return head


def _no_margin(losses, inputs):
    return losses.cosface(**inputs), losses.arcface(**inputs)


LOSS = Loss(
    name="cosface",
    summary="Cross-entropy of scaled cosines with a margin subtracted from the target's cosine.",
    text="L_i = -log( e^(s (cos theta_y - m)) / (e^(s (cos theta_y - m)) + sum_{k!=y} e^(s cos theta_k)) )",
    latex=r"L_i = -\log\frac{e^{s(\cos\theta_{y_i}-m)}}{e^{s(\cos\theta_{y_i}-m)} + \sum_{k\ne y_i} e^{s\cos\theta_k}}",
    gradient="dL_i/dcos theta_k = s (p_k - [k = y]);"
    "  dL_i/ds = sum_k p_k c_k - c_y,  p = softmax(s c),  c_k = cos theta_k - m [k = y]",
    parameters=(
        EMBEDDINGS,
        CLASS_WEIGHTS,
        TARGET,
        Scalar(
            "margin", "m", "Subtracted from the target's cosine.", default=0.35, low=0.0, low_closed=True,
            constant=True, typical=(0.1, 0.5),
        ),
        SCALE,
        NORMALIZE,
    ),
    sources=(
        Source("deepinsight/insightface", "recognition/arcface_torch/losses.py, CosFace at 2e2e8c9 (m = 0.40 there)",
               "authors' code"),
        Source("own derivation", "ARC-1 with the margin on the cosine", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
        **NORMALIZED,
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation("arcface", "both are the same", _no_margin, given={"margin": 0.0, "normalize": "l2"}),
    ),
    expectations=(
        Expectation(
            "chance", "log(1 + (C-1) e^(s m))", "independent uniform rows as D grows: all cosines 0 (WI-2)",
            lambda s: s.softplus(s.log(s.classes - 1) + s.scale * s.margin), dim=False,
        ),
        Expectation(
            "chance", "E log(e^(s p) + sum_(k != y) e^(s cos theta_k)) - s E p",
            "p = cos theta_y - m, cosines of independent uniform rows in D dimensions (WI-2)",
            lambda s: s.margin_chance(lambda cos, _: cos - s.margin), dim=True,
        ),
        Expectation(
            "collapse", "log(1 + (C-1) e^(s m))", "all cosines equal",
            lambda s: s.softplus(s.log(s.classes - 1) + s.scale * s.margin),
        ),
        Expectation(
            "optimum", "log(1 + (C-1) e^(-s (C/(C-1) - m)))",
            "rows equal to the weights of their class on a simplex, D >= C - 1 (SC-8)",
            lambda s: s.cosface_simplex(), assumes="balanced classes",
        ),
        Expectation(
            "lower bound", "log(1 + (C-1) e^(-s (2 - m)))",
            "any targets: all rows of one class and equal to its weights, the others' weights opposite (WL-1)",
            lambda s: s.cosface_bound(-1),
        ),
        Expectation(
            "upper bound", "log(1 + (C-1) e^(s (2 + m)))",
            "cosine -1 with the weights of the target, 1 with the others: all rows x, w_y = -x, the others x",
            lambda s: s.softplus(s.log(s.classes - 1) + s.scale * (2 + s.margin)),
        ),
    ),
)  # fmt: skip
