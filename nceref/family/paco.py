"""PaCo: supervised contrast with class centers among the candidates, samples weighted by alpha.

    L_i = -sum_{p in P(i)} alpha log( e^{s_ip/T} / E_i ) - log( q_y e^{c_y.f_i + b_y} / E_i )
    E_i = sum_{a != i} e^{s_ia/T} + sum_k q_k e^{c_k.f_i + b_k},    q = 1 and b = 0 unless given

The sum form is as source 004 prints it; the normalized form divides by 1 + alpha |P(i)|, as the authors' code does.
"""

import math

from nceref.engine.embeddings import embed
from nceref.engine.formulas import dot, rows
from nceref.engine.heads import HeadRows, sigmoid, softplus, softplus_and_sigmoid
from nceref.engine.label_patterns import OtherLabel, SameLabel
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import EMBEDDINGS, L2, LABELS, NORMALIZE, QUEUE, TEMPERATURE, UNNORMALIZED
from nceref.engine.patterns import Except, Index, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Dot, Offset, divided_by
from nceref.engine.statistics import LogSumExp, PositiveSet, Sum, Term
from nceref.errors import InputError
from nceref.spec import Array, Choice, Expectation, Labels, Loss, Relation, Scalar, Source, always


def formula(
    m,
    embeddings,
    labels,
    centers,
    *,
    alpha,
    temperature,
    queue,
    queue_labels,
    class_prior,
    center_features,
    center_bias,
    form,
    normalize,
):
    """Weighted -log softmax over positives and the own center, among everything."""
    z = rows(m, embeddings + (queue or []), normalize)
    names = labels + (queue_labels or [])
    features, classes = center_features or embeddings, range(len(centers))
    prior, bias = class_prior or [1 for _ in classes], center_bias or [0 for _ in classes]
    out = []
    for i, y in enumerate(labels):
        contrast = [m.exp(dot(z[i], z_a) / temperature) for z_a in z]
        center = [prior[k] * m.exp(dot(centers[k], features[i]) + bias[k]) for k in classes]
        everyone = sum(contrast[:i] + contrast[i + 1 :]) + sum(center)
        positives = [a for a in range(len(z)) if a != i and names[a] == y]
        row = -m.log(center[y] / everyone) - sum(alpha * m.log(contrast[p] / everyone) for p in positives)
        out.append(row if form == "sum" else row / (1 + alpha * len(positives)))
    return out


def plan(
    embeddings,
    labels,
    centers,
    *,
    alpha,
    temperature,
    queue,
    queue_labels,
    class_prior,
    center_features,
    center_bias,
    form,
    normalize,
) -> Plan:
    """Contrast and centers are two comparisons of the same anchors."""
    contrast = _contrast(embeddings, labels, queue, queue_labels, temperature, normalize)
    named = {"embeddings": embeddings} if center_features is None else {"center_features": center_features}
    _check_width(named, centers)
    logits = Dot(embed("none", **named), embed("none", centers=centers), offset=_offset(class_prior, center_bias))
    own = (Index(labels),)
    terms = {"center_negatives": Term(LogSumExp(), Except(own)), "center_positive": Term(Sum(), Only(own))}
    # The head adds the logarithm of 1 + alpha |P(i)|, which is below this.
    constant = math.log1p(alpha) + math.log(contrast.logits.shape[1])
    return Plan((contrast, Comparison(logits, terms)), lambda stats: _head(stats, alpha, form), constant=constant)


def _contrast(embeddings, labels, queue, queue_labels, temperature, normalize):
    xp = array_namespace(embeddings)
    if (queue is None) != (queue_labels is None):
        msg = "`queue` and `queue_labels` go together; pass both or neither"
        raise InputError(msg)
    anchors = embed(normalize, embeddings=embeddings)
    candidates, names = anchors, labels
    if queue is not None:
        candidates = embed(normalize, ("queue",), embeddings=embeddings, queue=queue)
        names = xp.concat([labels, xp.astype(queue_labels, labels.dtype)])
    positives = SameLabel(labels, names, itself(embeddings.shape[0]))
    terms = {
        "negatives": Term(LogSumExp(), OtherLabel(labels, names)),
        "positives": Term(PositiveSet(), positives),
    }
    return Comparison(Dot(anchors, candidates, divided_by(temperature)), terms)


def _check_width(features, centers):
    for name, x in features.items():
        if x.shape[1] != centers.shape[1]:
            msg = f"`centers` must be (C, {x.shape[1]}) to match `{name}`, got {centers.shape}"
            raise InputError(msg)


def _offset(prior, bias):
    """Log prior + bias on every center; only the bias gets a gradient."""
    if prior is None:
        return None if bias is None else Offset(bias, "center_bias")
    xp = array_namespace(prior)
    total = float(xp.sum(prior))
    if abs(total - 1) > 1e-3:
        msg = f"`class_prior` must add up to 1, got {total:.6g}; divide counts by their sum (here it matters)"
        raise InputError(msg)
    log_prior = xp.log(prior)
    return Offset(log_prior) if bias is None else Offset(log_prior + bias, "center_bias")


def _head(stats, alpha, form) -> HeadRows:
    """W (softplus(others - positives) + positives - their weighted mean), with all positives in one log-sum-exp.

    Of the samples and the center, the larger one is where both parts of the difference are measured from: both are
    then sums of numbers >= 0, and nothing cancels.
    """
    positives, center = stats["positives"], stats["center_positive"]
    xp = array_namespace(center)
    count, has = positives[:, 2], positives[:, 2] > 0
    mass = 1 + alpha * count
    share = alpha * count / mass
    top = xp.maximum(positives[:, 0], center)
    peak = xp.logaddexp(positives[:, 0], center)
    level = share * (top - xp.where(has, positives[:, 1], 0.0)) + (top - center) / mass
    lead = positives[:, 0] - center
    odds = softplus(-xp.log(xp.where(share > 0, alpha * count, 1.0)))
    others = xp.logaddexp(stats["negatives"], stats["center_negatives"])
    loss, missed = softplus_and_sigmoid(others - peak)
    outer = mass if form == "sum" else xp.ones_like(mass)

    # The slope of a weight w is a probability minus w / W, which is 0 at the optimum: near it, w / W expm1(log ratio).
    # Column 1 of "positives" takes the slope by peak - level, so that column 0 has the difference.
    def vjp(c):
        g = c * outer
        ratio = odds - softplus(-lead) - loss
        near = (share > 0) & (xp.abs(ratio) < 1)
        by_positives = xp.where(
            near, share * xp.expm1(xp.clip(ratio, min=-1.0, max=1.0)), sigmoid(lead) * sigmoid(peak - others) - share
        )
        # Shares of the sum that an entry is part of: whatever rounding does, none is larger than 1.
        others_or_none = xp.where(others == -xp.inf, 0.0, others)
        return {
            "negatives": g * missed * xp.exp(stats["negatives"] - others_or_none),
            "center_negatives": g * missed * xp.exp(stats["center_negatives"] - others_or_none),
            "positives": xp.stack([g * by_positives, g * share], axis=1),
            "center_positive": g / mass * xp.expm1(xp.log1p(alpha * count) - softplus(lead) - loss),
        }

    return outer * (loss + (softplus(-xp.abs(lead)) + level)), vjp


def decomposition(stats, arguments):
    """Rows of L_sup, L_supcon (a sum over positives) and L_extra: L = L_sup + alpha L_supcon + L_extra.

    L_extra = -log P_sup - alpha K log P_supcon. In the normalized form each part is divided by 1 + alpha K.
    """
    positives, center, alpha = stats["positives"], stats["center_positive"], arguments["alpha"]
    xp = array_namespace(center)
    count, has = positives[:, 2], positives[:, 2] > 0
    peak, level = xp.where(has, positives[:, 0], 0.0), xp.where(has, positives[:, 1], 0.0)
    log_contrast = xp.logaddexp(stats["negatives"], positives[:, 0])
    log_odds = log_contrast - xp.logaddexp(stats["center_negatives"], center)
    rows = {
        "L_sup": softplus(stats["center_negatives"] - center),
        "L_supcon": count * (softplus(stats["negatives"] - peak) + (peak - level)),
        "L_extra": softplus(log_odds) + alpha * count * softplus(-xp.where(has, log_odds, 0.0)),
    }
    mass = 1 + alpha * count if arguments["form"] == "normalized" else 1.0
    return {name: row / mass for name, row in rows.items()}


def _normalized(losses, inputs):
    import numpy as np

    y = inputs["labels"]
    same = y[:, None] == np.concatenate([y, inputs.get("queue_labels", y[:0])])
    both = [losses.paco(**{**inputs, "form": form}, reduction="none") for form in ("normalized", "sum")]
    # An anchor is no positive of itself.
    return both[0], both[1] / (1 + inputs["alpha"] * (same.sum(axis=1) - 1))


def _parts(losses, inputs):
    parts = losses.paco.decompose(**inputs)
    return losses.paco(**inputs), parts["L_sup"] + inputs["alpha"] * parts["L_supcon"] + parts["L_extra"]


_ENDING = "; K positives; divided by 1 + aK in the normalized form"

LOSS = Loss(
    name="paco",
    summary="Parametric contrastive loss: SupCon weighted by alpha, with class centers among the candidates.",
    text="L_i = -log(q_y e^(c_y.f_i + b_y) / E_i) - alpha sum_{p in P(i)} log(e^(s_ip/T) / E_i),"
    "  E_i = sum_{a!=i} e^(s_ia/T) + sum_k q_k e^(c_k.f_i + b_k),  q = 1, b = 0 unless given,"
    "  s_ia = z_i.z_a with z normalized, a over batch and queue",
    latex=r"L_i = \sum_{z_+\in P(i)\cup\{c_y\}} -w(z_+)"
    r"\log\frac{e^{z_+\cdot T(x_i)}}{\sum_{z_k\in A(i)\cup C} e^{z_k\cdot T(x_i)}},"
    r"\qquad w = \alpha \text{ on } P(i),\ 1 \text{ on } c_y",
    gradient="dL_i/dlogit_k = W p_k - w_k,  W = 1 + alpha |P(i)|,  w_k = alpha on P(i), 1 on c_y, else 0,"
    "  p the softmax over all logits of E_i;"
    "  normalized form: divided by W;"
    "  dL_i/dT = -sum_a s_ia dL_i/dlogit_a / T^2 over the rows a, whose logit is s_ia/T;  dL_i/db_k = dL_i/dlogit_k",
    parameters=(
        EMBEDDINGS,
        Labels(LABELS.name, LABELS.shape, LABELS.meaning, classes="C"),
        Array("centers", ("C", "E"), "One learnable center a class; never normalized.", embedding=False, like="center"),
        Scalar(
            "alpha", r"\alpha", "Weight of each positive sample.", low=0.0, low_closed=True, constant=True,
            typical=(0.01, 0.5),
        ),
        TEMPERATURE,
        QUEUE,
        Labels("queue_labels", ("K",), "Labels of the queue.", required=False, positional=False, classes="C"),
        Array(
            "class_prior", ("C",), "Class frequencies, which add up to 1: center rebalance; a constant.",
            required=False, positional=False, constant=True, embedding=False, low=0.0, like="prior",
        ),
        Array(
            "center_features", ("N", "E"),
            "Features that meet the centers, never normalized; None: the embeddings as given.", required=False,
            positional=False, embedding=False, like="embedding",
        ),
        Array(
            "center_bias", ("C",), "Bias of the center logits.", required=False, positional=False, embedding=False,
            like="vector",
        ),
        Choice(
            "form", ("sum", "normalized"), "sum",
            "The sum as printed, or divided by 1 + alpha |P(i)| as in the authors' code.",
        ),
        NORMALIZE,
    ),
    sources=(
        Source("source 004", "weighted loss with centers, and Center Learning Rebalance", "source text"),
        Source(
            "dvlab-research/Parametric-Contrastive-Learning", "PaCo/LT/losses.py, PaCoLoss",
            "authors' code",
        ),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives", "rotation_invariant",
            "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
        "radial_slope_zero": {"center_features": ..., **L2},
        "scale_invariant": {"center_features": ..., **L2},
        "temperature_homogeneous": {"center_features": ..., **UNNORMALIZED},
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation("paco", "the normalized form divides each row by 1 + alpha |P|", _normalized),
        Relation("paco", "L = L_sup + alpha L_supcon + L_extra for any labels", _parts),
    ),
    expectations=(
        Expectation(
            "chance", f"(1 + aK) log(n + M - 1 + C), M rows in the queue{_ENDING}",
            "independent uniform rows as D grows, and centers 0: all logits 0 (WI-2)",
            lambda s: s.paco_chance(), dim=False,
        ),
        Expectation(
            "chance", f"(1 + aK) E log(C + sum of n + M - 1 terms e^(s/T)), M in the queue{_ENDING}",
            "s cosines of independent uniform rows in D dimensions, centers 0 (WI-2)",
            lambda s: s.paco_chance(), dim=True,
        ),
        Expectation(
            "collapse", f"(1 + aK) log(C + (n + M - 1) e^(1/T)) - aK / T, M in the queue{_ENDING}",
            "all rows equal, and centers 0 (NC-5)", lambda s: s.paco_collapse(),
        ),
        Expectation(
            "lower bound", f"(1 + aK) log(1 + aK) - aK log a{_ENDING}",
            "optimal probabilities 1/(1 + aK), a/(1 + aK) (PC-5); without `positives`, the mean over C classes as equal"
            " as n rows make them, which positives in a queue only raise",
            lambda s: s.paco_bound(),
        ),
        Expectation(
            "upper bound", "none", "", lambda s: s.absent("any value is possible: centers are not normalized")
        ),
    ),
    notes="The temperature divides the contrast logits only. Momentum keys belong in `queue`. Without"
    " centers the bound would be alpha k log k for k positives: that of SupCon's sum form, times alpha.",
    decomposition=decomposition,
    variants=(
        {"alpha": 0.0625},
        {"alpha": 0.5, "queue": ..., "queue_labels": ..., "class_prior": ..., "form": "normalized"},
        {"alpha": 0.0625, "center_features": ..., "center_bias": ...},
    ),
)  # fmt: skip
