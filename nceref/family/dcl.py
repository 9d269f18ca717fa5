"""Decoupled contrastive loss: NT-Xent with the positive taken out of the denominator.

L_i = -s_ip / T + log sum_{j not in {i, p}} exp(s_ij / T)
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import difference
from nceref.engine.layouts import two_views
from nceref.engine.parameters import NORMALIZE, NORMALIZED, TEMPERATURE, UNNORMALIZED, Z1, Z2
from nceref.engine.plan import Plan
from nceref.spec import Expectation, Loss, Relation, Source, always


def formula(m, z1, z2, *, temperature, normalize):
    """-log of the positive's exponential over the sum of the negatives' exponentials."""
    z, n = rows(m, z1 + z2, normalize), len(z1)
    out = []
    for i, z_i in enumerate(z):
        p = [m.exp(dot(z_i, z_j) / temperature) for z_j in z]
        partner = (i + n) % (2 * n)
        out.append(-m.log(p[partner] / sum(p_j for j, p_j in enumerate(p) if j not in (i, partner))))
    return out


def plan(z1, z2, *, temperature, normalize) -> Plan:
    """The plan of NT-Xent with a difference for a head."""
    return Plan((two_views("dcl", z1, z2, temperature, normalize, least=2),), difference)


def _unit_weights(losses, inputs):
    return losses.dcl(**inputs), losses.dclw(**inputs, sigma=1e18)


def _below(losses, inputs):
    return losses.dcl(**inputs), losses.nt_xent(**inputs)


LOSS = Loss(
    name="dcl",
    summary="NT-Xent without the positive in the denominator: the positive's pull does not fade.",
    text="L_i = -s_ip/T + log sum_{j not in {i,p}} exp(s_ij/T),  p the other view of i, s_ij = z_i.z_j",
    latex=r"L_i = -\frac{z_i\cdot z_{p(i)}}{\tau} + \log\sum_{j\notin\{i,p(i)\}} e^{z_i\cdot z_j/\tau}",
    gradient="dL_i/ds_ip = -1/T,  dL_i/ds_ij = softmax over negatives / T;  dL_i/dT = -sum_j s_ij dL_i/ds_ij / T;"
    "  dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(Z1, Z2, TEMPERATURE, NORMALIZE),
    sources=(
        Source(
            "raminnakhli/Decoupled-Contrastive-Learning", "loss/dcl.py at 50991ef (adds the two one-way means)",
            "third-party code",
        ),
        Source("own derivation", "DCL-1", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "row_shift_invariant", "row_slopes_sum_to_zero", "view_swap_invariant",
        ),
        **NORMALIZED,
        "temperature_homogeneous": UNNORMALIZED,
    },
    unit="nats",
    rows="(2N,), view 1 first",
    relations=(
        Relation("dclw", "DCLW with a flat weighting (sigma to infinity)", _unit_weights),
        Relation("nt_xent", "never above NT-Xent at the same temperature", _below, "<="),
    ),
    expectations=(
        Expectation(
            "chance", "log(2N - 2)", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(2 * s.n - 2), dim=False,
        ),
        Expectation(
            "chance", "E log sum of 2N - 2 terms e^(s/T)",
            "s cosines of independent uniform rows in D dimensions;"
            " at most log(2N - 2) + log 0F1(; D/2; 1/(4 T^2)) (WI-2, WI-3)",
            lambda s: s.chance(2 * s.n - 2, own=0), dim=True,
        ),
        Expectation("collapse", "log(2N - 2)", "all similarities equal (NC-5)", lambda s: s.log(2 * s.n - 2)),
        Expectation(
            "optimum", "log(2N - 2) - N / ((N-1) T)", "aligned views on a simplex, D >= N - 1 (SC-8, DCL-1)",
            lambda s: s.decoupled_simplex(s.n, 2 * s.n - 2),
        ),
        Expectation(
            "lower bound", "log(2N - 2) - 2/T", "cosines in [-1, 1] (DCL-1)",
            lambda s: s.log(2 * s.n - 2) - 2 / s.temperature,
        ),
        Expectation(
            "upper bound", "log(2N - 2) + 2/T", "cosines in [-1, 1] (DCL-1); need not be reached",
            lambda s: s.log(2 * s.n - 2) + 2 / s.temperature,
        ),
    ),
    sign="either sign: a well-trained batch is negative, and that is no bug",
    single=False,
)  # fmt: skip
