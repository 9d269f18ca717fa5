"""Supervised contrastive loss, sum over positives inside the logarithm (L_in).

L_i = -log( (1/|P(i)|) sum_{p in P(i)} exp(s_ip / T) / sum_{a != i} exp(s_ia / T) )
"""

from nceref.engine.formulas import dot, labelled_rows
from nceref.engine.heads import positive_set
from nceref.engine.layouts import counted_rows, labelled, per_anchor
from nceref.engine.parameters import (
    ANCHOR_MODE,
    ANCHOR_WEIGHTS,
    EQUAL_WEIGHTS,
    LABELS,
    MASK,
    NO_POSITIVE,
    NORMALIZE,
    NORMALIZED,
    TEMPERATURE,
    UNNORMALIZED,
    VIEWS,
)
from nceref.engine.plan import Plan
from nceref.engine.sides import shared
from nceref.spec import Expectation, Labels, Loss, Relation, Source, always


def formula(m, embeddings, labels, *, mask, anchor_mode, anchor_weights, temperature, normalize, no_positive):
    """-log of the positives' mean softmax among all others."""
    z, anchors, weight = labelled_rows(m, embeddings, labels, mask, anchor_mode, None, None, normalize)
    out = []
    for i in anchors:
        positives = [j for j in range(len(z)) if j != i and weight(i, j) > 0]
        if not positives:
            out.append(None if no_positive == "skip" else m.number(0.0))
            continue
        p = [m.exp(dot(z[i], z_j) / temperature) for z_j in z]
        share = sum(weight(i, j) * p[j] for j in positives) / sum(weight(i, j) for j in positives)
        out.append(-m.log(share / sum(p[:i] + p[i + 1 :])))
    return out


def plan(embeddings, labels, *, mask, anchor_mode, temperature, normalize, no_positive, anchor_weights) -> Plan:
    """Positives and negatives by label, by mask, or by view."""
    comparison = labelled(
        embeddings,
        labels,
        mask,
        None,
        None,
        anchor_mode=anchor_mode,
        normalize=normalize,
        temperature=temperature,
        inside=True,
    )
    return Plan(
        (comparison,), positive_set(no_positive), per_anchor(anchor_weights, comparison), counted_rows(no_positive)
    )


def below_outside(losses, inputs):
    """L_in and L_out of the arguments that both take."""
    same = shared(losses.supcon_in, inputs)
    return losses.supcon_in(**same), losses.supcon_out(**same)


INSIDE_OUTSIDE = "L_in <= L_out of form='mean', without queue and base temperature"


def _one_positive(losses, inputs):
    import numpy as np

    z = np.asarray(inputs["embeddings"])
    z = z.reshape(-1, z.shape[-1])
    same = {name: inputs[name] for name in ("temperature", "normalize") if name in inputs}
    same |= {"mask": np.roll(np.eye(len(z)), 1, axis=1)}
    return losses.supcon_in(z, **same), losses.supcon_out(z, **same)


CLASS_SIMPLEX = Expectation(
    "optimum", "log(l - 1 + (n - l) e^(-C / ((C-1) T)))", "collapsed classes on a simplex, l = n / C, D >= C - 1 "
    "(SC-8, GR-1)", lambda s: s.class_simplex(), assumes="balanced classes",
)  # fmt: skip
"""The optimum of both supervised losses, which are equal for collapsed classes.

The mean inside: e^(s/T) of a positive is at most e^(1/T), and by Jensen's inequality the mean of a row is at least that
of the mean similarity of other classes, which is at least -1 / (C - 1), as |sum of rows|^2 >= 0.
"""

BOUNDS = (
    Expectation(
        "lower bound", "log(1 + (n - 2) e^(-2/T))",
        "cosines in [-1, 1]: a positive and n - 2 others, any labels (WL-1)", lambda s: s.set_bound(-2),
    ),
    Expectation(
        "upper bound", "log(1 + (n - 2) e^(2/T))",
        "cosines in [-1, 1]: a positive and n - 2 others, any labels (WL-1); need not be reached",
        lambda s: s.set_bound(2),
    ),
)  # fmt: skip
"""The bounds of both supervised losses, which hold for any labels."""

LOSS = Loss(
    name="supcon_in",
    summary="Supervised contrastive loss, log of the mean softmax over positives (L_in of Khosla et al.).",
    text="L_i = -log( (1/|P|) sum_{p in P(i)} w_ip exp(s_ip/T) / sum_{a!=i} exp(s_ia/T) ),  |P| = sum_{p in P} w_ip,"
    "  w = 1 or the weights of `mask`, a over all rows of all views, s_ia = z_i.z_a",
    latex=r"L_i = -\log\Big\{\frac1{|P(i)|}"
    r"\sum_{p\in P(i)}\frac{e^{z_i\cdot z_p/\tau}}{\sum_{a\ne i} e^{z_i\cdot z_a/\tau}}\Big\}",
    gradient="dL_i/ds_ia = (P_ia - w_ia e^(s_ia/T) / sum_{p in P} w_ip e^(s_ip/T)) / T,  w = 0 off P,"
    "  P_ia = exp(s_ia/T) / sum_{b!=i} exp(s_ib/T);"
    "  dL_i/dT = -sum_a s_ia dL_i/ds_ia / T;  dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(
        VIEWS,
        Labels(LABELS.name, LABELS.shape, LABELS.meaning, required=False),
        TEMPERATURE,
        MASK,
        ANCHOR_MODE,
        ANCHOR_WEIGHTS,
        NORMALIZE,
        NO_POSITIVE,
    ),
    sources=(
        Source("Khosla et al. 2020", "eq. (3), gradient eq. (4)-(6)", "paper"),
        Source("google-research/google-research", "supcon/losses.py, summation inside", "authors' code"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "nonnegative", "permutation_equivariant", "repels_negatives", "rotation_invariant", "row_shift_invariant",
            "row_slopes_sum_to_zero",
        ),
        "attracts_positives": {"mask": EQUAL_WEIGHTS},
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED,
    },
    sign=">= 0",
    unit="nats",
    rows="(V N,), view 1 first; (N,) with anchor_mode='one'",
    relations=(
        Relation("supcon_out", INSIDE_OUTSIDE, below_outside, "<="),
        Relation("supcon_out", "equal to L_out of form='mean' with one positive an anchor", _one_positive),
    ),
    expectations=(
        Expectation(
            "chance", "log(n - 1) for n rows", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(s.views * s.n - 1), dim=False,
        ),
        Expectation(
            "chance", "E log sum of n - 1 terms e^(s/T) - E log mean of l - 1 terms",
            "s cosines of independent uniform rows in D dimensions, balanced classes, l = n / C rows in each (WI-2)",
            lambda s: s.inside_chance(), dim=True,
        ),
        Expectation(
            "collapse", "log(n - 1) for n rows", "all similarities equal (NC-5)", lambda s: s.log(s.views * s.n - 1)
        ),
        CLASS_SIMPLEX,
        *BOUNDS,
    ),
    notes="Not convex in the logits. Leaving out 1/|P| lowers every row by log |P|.",
    variants=(
        {"labels": ...},
        {"mask": ...},
        {"embeddings": "views"},
        {"embeddings": "views", "labels": ..., "anchor_mode": "one", "anchor_weights": ...},
        {"labels": ..., "no_positive": "skip"},
        {"labels": ..., "no_positive": "zero"},
    ),
    single=False,
)  # fmt: skip
