"""NT-Xent (SimCLR): two views of N samples, 2N anchors, each with one positive and 2N - 2 negatives.

L_i = -log( exp(s_ip / T) / sum_{j != i} exp(s_ij / T) ),    p the other view of i
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import softmax_one_positive, softplus
from nceref.engine.layouts import two_views
from nceref.engine.parameters import NORMALIZE, NORMALIZED, TEMPERATURE, UNNORMALIZED, Z1, Z2
from nceref.engine.plan import Plan
from nceref.engine.sides import shared
from nceref.spec import Expectation, Loss, Relation, Source, always


def formula(m, z1, z2, *, temperature, normalize):
    """-log softmax of the other view among everything but the anchor itself."""
    z, n = rows(m, z1 + z2, normalize), len(z1)
    out = []
    for i, z_i in enumerate(z):
        p = [m.exp(dot(z_i, z_j) / temperature) for z_j in z]
        out.append(-m.log(p[(i + n) % (2 * n)] / sum(p[:i] + p[i + 1 :])))
    return out


def plan(z1, z2, *, temperature, normalize) -> Plan:
    """The plan: all rows against all rows."""
    return Plan((two_views("nt_xent", z1, z2, temperature, normalize),), softmax_one_positive)


def _decoupled(losses, inputs):
    return losses.nt_xent(**inputs, reduction="none"), softplus(losses.dcl(**inputs, reduction="none"))


def _unlabelled(losses, inputs):
    import numpy as np

    views = np.stack([inputs["z1"], inputs["z2"]], axis=1)
    return losses.nt_xent(**inputs), losses.supcon_out(views, **shared(losses.supcon_out, inputs))


def _homogeneous(losses, inputs):
    _, g = losses.nt_xent.value_and_grad(**inputs)
    along = sum((inputs[name] * g[name]).sum() for name in ("z1", "z2"))
    return along, -2 * inputs["temperature"] * g["temperature"]


LOSS = Loss(
    name="nt_xent",
    summary="NT-Xent of SimCLR: the other view among all rows of both views but the anchor.",
    text="L_i = -log( exp(s_ip/T) / sum_{j!=i} exp(s_ij/T) ),  p the other view of i, s_ij = z_i.z_j, 2N anchors",
    latex=r"L_i = -\log\frac{e^{z_i\cdot z_{p(i)}/\tau}}{\sum_{j\ne i} e^{z_i\cdot z_j/\tau}},\qquad i=1,\dots,2N",
    gradient="dL_i/ds_ij = (P_ij - [j = p]) / T,  P_i = softmax of s_ij/T over j != i;"
    "  dL_i/dT = (s_ip - sum_j P_ij s_ij) / T^2;"
    "  a row is anchor and candidate: dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(Z1, Z2, TEMPERATURE, NORMALIZE),
    sources=(
        Source("google-research/simclr", "objective.py (returns the sum of both directions)", "authors' code"),
        Source("Khosla et al. 2020", "eq. (1)", "paper"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "row_shift_invariant", "row_slopes_sum_to_zero", "view_swap_invariant",
        ),
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED,
    },
    sign=">= 0",
    unit="nats",
    rows="(2N,), view 1 first",
    relations=(
        Relation("dcl", "row = softplus(DCL row)", _decoupled),
        Relation("supcon_out", "SupCon of two views without labels", _unlabelled),
        Relation("nt_xent", "<z, dL/dz> = -2 T dL/dT", _homogeneous, given={"normalize": "none"}),
    ),
    expectations=(
        Expectation(
            "chance", "log(2N - 1)", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(2 * s.n - 1), dim=False,
        ),
        Expectation(
            "chance", "E log sum of 2N - 1 terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions;"
            " at most log(2N - 1) + log 0F1(; D/2; 1/(4 T^2)) (WI-2, WI-3)",
            lambda s: s.chance(2 * s.n - 2), dim=True,
        ),
        Expectation("collapse", "log(2N - 1)", "all similarities equal (NC-5)", lambda s: s.log(2 * s.n - 1)),
        Expectation(
            "optimum", "log(1 + 2(N-1) e^(-N / ((N-1) T)))", "aligned views on a simplex, D >= N - 1 (SC-8)",
            lambda s: s.simplex(s.n, 2 * s.n - 2),
        ),
        Expectation(
            "lower bound", "log(1 + (2N-2) e^(-2/T))", "cosines in [-1, 1] (WL-1)",
            lambda s: s.cosine_bound(2 * s.n - 2, -2),
        ),
        Expectation(
            "upper bound", "log(1 + (2N-2) e^(2/T))", "cosines in [-1, 1] (WL-1); need not be reached",
            lambda s: s.cosine_bound(2 * s.n - 2, 2),
        ),
    ),
    notes="The mean runs over 2N anchors; the authors' TensorFlow code returns twice that. One pair alone gives 0.",
)  # fmt: skip
