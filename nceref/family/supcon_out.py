"""Supervised contrastive loss, sum over positives outside the logarithm (L_out).

    L_i = -(1/|P(i)|) sum_{p in P(i)} log( exp(s_ip / T) / sum_{a != i} exp(s_ia / T) )

The sum form leaves out 1/|P(i)|. A mask of weights w replaces the sum over P(i) by a weighted one.
"""

import sys

from nceref.engine.formulas import dot, labelled_rows
from nceref.engine.heads import Head, HeadRows, positive_set
from nceref.engine.layouts import counted_rows, labelled, per_anchor
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import (
    ANCHOR_MODE,
    ANCHOR_WEIGHTS,
    LABELS,
    MASK,
    NO_POSITIVE,
    NORMALIZE,
    NORMALIZED,
    QUEUE,
    QUEUE_LABELS,
    TEMPERATURE,
    UNNORMALIZED,
    VIEWS,
)
from nceref.engine.plan import Plan
from nceref.engine.sides import shared
from nceref.errors import InputError
from nceref.family.supcon_in import BOUNDS, CLASS_SIMPLEX, INSIDE_OUTSIDE, below_outside
from nceref.spec import Choice, Expectation, Labels, Loss, Relation, Scalar, Source, always


def formula(
    m,
    embeddings,
    labels,
    *,
    mask,
    anchor_mode,
    queue,
    queue_labels,
    form,
    base_temperature,
    anchor_weights,
    temperature,
    normalize,
    no_positive,
):
    """Mean over the positives of -log softmax among all others."""
    z, anchors, weight = labelled_rows(m, embeddings, labels, mask, anchor_mode, queue, queue_labels, normalize)
    out = []
    for i in anchors:
        positives = [j for j in range(len(z)) if j != i and weight(i, j) > 0]
        if not positives:
            out.append(None if no_positive == "skip" else m.number(0.0))
            continue
        p = [m.exp(dot(z[i], z_j) / temperature) for z_j in z]
        everyone = sum(p[:i] + p[i + 1 :])
        total = -sum(weight(i, j) * m.log(p[j] / everyone) for j in positives)
        row = total if form == "sum" else total / sum(weight(i, j) for j in positives)
        out.append(row if base_temperature is None else row * temperature / base_temperature)
    return out


def plan(
    embeddings,
    labels,
    *,
    mask,
    anchor_mode,
    queue,
    queue_labels,
    form,
    base_temperature,
    temperature,
    normalize,
    no_positive,
    anchor_weights,
) -> Plan:
    """Positives and negatives by label, by mask, or by view."""
    comparison = labelled(
        embeddings,
        labels,
        mask,
        queue,
        queue_labels,
        anchor_mode=anchor_mode,
        normalize=normalize,
        temperature=temperature,
        inside=False,
    )
    unit = comparison.terms["positives"].pattern.unit if form == "sum" else None
    head = positive_set(no_positive, form)
    if base_temperature is not None:
        head = _rescaled(head, temperature, base_temperature)
    weights, counted = per_anchor(anchor_weights, comparison), counted_rows(no_positive)
    return Plan((comparison,), head, weights, counted, row_unit=per_anchor(unit, comparison))


def _rescaled(inner, temperature, base) -> Head:
    """Rows times temperature / base, whose own derivative by the temperature is 1 / base."""
    ratio = temperature / base
    if not sys.float_info.min <= ratio <= sys.float_info.max:
        msg = (
            f"`base_temperature` must be nearer to the temperature: {temperature} / {base} leaves the range of float64"
        )
        raise InputError(msg)

    def head(stats) -> HeadRows:
        rows, inner_vjp = inner(stats)

        def vjp(c):
            return {**inner_vjp(ratio * c), "temperature": array_namespace(rows).sum(c * rows) / base}

        return ratio * rows, vjp

    return head


def _unlabelled(losses, inputs):
    import numpy as np

    z = np.asarray(inputs["embeddings"])
    # Where the rows are no views, each sample and the next one are.
    views = z[:, :2] if z.ndim == 3 else np.stack([z, np.roll(z, 1, axis=0)], axis=1)
    same = shared(losses.nt_xent, inputs)
    return losses.supcon_out(**{**inputs, "embeddings": views}), losses.nt_xent(views[:, 0], views[:, 1], **same)


LOSS = Loss(
    name="supcon_out",
    summary="Supervised contrastive loss, mean over positives of the log-softmax (L_out of Khosla et al.).",
    text="L_i = -(1/|P|) sum_{p in P(i)} w_ip log( exp(s_ip/T) / sum_{a!=i} exp(s_ia/T) ),  |P| = sum_{p in P} w_ip,"
    "  w = 1 or the weights of `mask`;  form='sum': without 1/|P|;"
    "  a over all rows of all views and of the queue, s_ia = z_i.z_a",
    latex=r"L_i = \frac{-1}{|P(i)|}"
    r"\sum_{p\in P(i)}\log\frac{e^{z_i\cdot z_p/\tau}}{\sum_{a\ne i} e^{z_i\cdot z_a/\tau}}",
    gradient="dL_i/ds_ia = (P_ia - w_ia / |P|) / T,  w = 0 off P; sum form: (|P| P_ia - w_ia) / T,"
    "  P_ia = exp(s_ia/T) / sum_{b!=i} exp(s_ib/T);"
    "  dL_i/dT = -sum_a s_ia dL_i/ds_ia / T;"
    "  with a base temperature T0 both times T/T0, and dL_i/dT + L_i/T of the L_i that has this factor;"
    "  dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(
        VIEWS,
        Labels(LABELS.name, LABELS.shape, LABELS.meaning, required=False),
        TEMPERATURE,
        MASK,
        ANCHOR_MODE,
        QUEUE,
        QUEUE_LABELS,
        Choice("form", ("mean", "sum"), "mean", "Whether a row is divided by the weight of its positives."),
        Scalar(
            "base_temperature", r"\tau_0", "Multiplies the loss by temperature / base_temperature; None: by 1.",
            default=None, low=0.0, constant=True, optional=True, typical=(0.05, 0.5),
        ),
        ANCHOR_WEIGHTS,
        NORMALIZE,
        NO_POSITIVE,
    ),
    sources=(
        Source("Khosla et al. 2020", "eq. (2), gradient eq. (4)-(6)", "paper"),
        Source("source 002", "SupConLoss and its formula", "source text"),
        Source("source 004", "(3), (4): queue and sum form", "source text"),
        Source("HobbitLong/SupContrast", "losses.py: mask, anchor mode, base temperature", "authors' code"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives", "rotation_invariant",
            "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED | {"base_temperature": None},
    },
    sign=">= 0",
    unit="nats",
    rows="(V N,), view 1 first; (N,) with anchor_mode='one'",
    relations=(
        Relation(
            "nt_xent", "NT-Xent of two views", _unlabelled,
            given={
                "labels": None, "mask": None, "anchor_mode": "all", "anchor_weights": None, "base_temperature": None,
            },
        ),
        Relation("supcon_in", INSIDE_OUTSIDE, below_outside, "<="),
    ),
    expectations=(
        Expectation(
            "chance", "log(n - 1)", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(s.views * s.n - 1), dim=False,
        ),
        Expectation(
            "chance", "E log sum of n - 1 terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions;"
            " at most log(n - 1) + log 0F1(; D/2; 1/(4 T^2)) (WI-2, WI-3)",
            lambda s: s.chance(s.views * s.n - 1, own=0), dim=True,
        ),
        Expectation(
            "collapse", "log(n - 1) for n rows", "all similarities equal (NC-5)", lambda s: s.log(s.views * s.n - 1)
        ),
        CLASS_SIMPLEX,
        *BOUNDS,
    ),
    notes="It does push a positive away that has more than its share of the softmax: attraction is not declared.",
    known_as=("SupConLoss",),
    variants=(
        {"labels": ...},
        {"mask": ...},
        {"embeddings": "views"},
        {"embeddings": "views", "labels": ..., "anchor_mode": "one", "anchor_weights": ...},
        {"labels": ..., "queue": ..., "queue_labels": ..., "form": "sum"},
        {"labels": ..., "base_temperature": 0.25, "no_positive": "skip"},
        {"labels": ..., "no_positive": "zero"},
    ),
    single=False,
)  # fmt: skip
