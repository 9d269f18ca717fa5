"""Debiased contrastive loss: the positives that hide among the negatives are subtracted in expectation.

    L_i = -log( e^+ / (e^+ + Ng) ),    Ng = max( (sum_j e^{s_ij/T} - prior n e^+) / (1 - prior), n e^{-1/T} )

with e^+ = exp(s_ip / T) and n = 2N - 2 negatives.
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import corrected_negatives
from nceref.engine.layouts import two_views
from nceref.engine.parameters import L2, NORMALIZE, NORMALIZED, PRIOR, TEMPERATURE, Z1, Z2
from nceref.engine.plan import Plan
from nceref.engine.sides import shared
from nceref.spec import Expectation, Kink, Loss, Relation, Source, always


def formula(m, z1, z2, *, temperature, positive_prior, normalize):
    """The estimate of the true negatives is clamped from below at n e^(-1/T)."""
    z, n = rows(m, z1 + z2, normalize), len(z1)
    out = []
    for i, z_i in enumerate(z):
        partner = (i + n) % (2 * n)
        p = [m.exp(dot(z_i, z_j) / temperature) for z_j in z]
        negatives = [p_j for j, p_j in enumerate(p) if j not in (i, partner)]
        count = len(negatives)
        estimate = (sum(negatives) - positive_prior * count * p[partner]) / (1 - positive_prior)
        floor = count * m.exp(-1 / temperature)
        kept = estimate if m.above(estimate, floor) else floor
        out.append(-m.log(p[partner] / (p[partner] + kept)))
    return out


def plan(z1, z2, *, temperature, positive_prior, normalize) -> Plan:
    """The plan of NT-Xent with the correction in the head."""
    comparison = two_views("debiased", z1, z2, temperature, normalize, least=2)
    head = corrected_negatives(temperature, positive_prior, 2 * z1.shape[0] - 2)
    return Plan((comparison,), head, constant=1 / temperature)


def on_clamp(inputs, eps, concentration=0.0):
    """Whether the estimate of a row is within rounding of its floor; for `hcl` with its concentration."""
    import numpy as np

    z = np.concatenate([inputs["z1"], inputs["z2"]]).astype(np.float64)
    if inputs["normalize"] == "l2":
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
    n, t, prior = len(z) // 2, inputs["temperature"], inputs["positive_prior"]
    s = z @ z.T / t
    partner = (np.arange(2 * n) + n) % (2 * n)
    own = (np.arange(2 * n)[:, None] == np.arange(2 * n)) | (partner[:, None] == np.arange(2 * n))
    s_p, negatives = s[np.arange(2 * n), partner], np.where(own, -np.inf, s)
    up, level = ((negatives * k if k else np.where(own, -np.inf, 0.0)) for k in (1 + concentration, concentration))
    log_mass = np.log(2 * n - 2) + np.logaddexp.reduce(up, axis=1) - np.logaddexp.reduce(level, axis=1)
    # The clamp begins where the sum is (1 - prior) floor + prior n e^+: as logarithms, neither side overflows.
    left = log_mass - np.logaddexp(
        np.log(2 * n - 2) - 1 / t + np.log1p(-prior), (np.log(prior) if prior else -np.inf) + np.log(2 * n - 2) + s_p
    )
    return bool(np.any(np.abs(left) < 256 * eps * (1 + np.max(np.abs(s)))))


def _no_prior(losses, inputs):
    return losses.debiased(**inputs), losses.nt_xent(**shared(losses.nt_xent, inputs))


def _no_concentration(losses, inputs):
    return losses.debiased(**inputs), losses.hcl(**inputs, concentration=0.0)


def _chance(s):
    count = 2 * s.n - 2
    if count < 1:
        return None
    return s.sampled_chance(count, {"negatives": 1.0}, corrected_negatives(s.temperature, s.positive_prior, count))


def expectations(chance):
    """Values at chance, collapse and the optimum, and the bounds; `hcl` has the same, with a chance of its own."""
    return (
        Expectation(
            "chance", "log(2N - 1)", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(2 * s.n - 1), dim=False,
        ),
        Expectation(
            "chance", "E log(1 + Ng / e^+)", "cosines of independent uniform rows in D dimensions, drawn (WI-2)",
            chance, dim=True,
        ),
        Expectation(
            "collapse", "log(2N - 1)", "all similarities equal: Ng = (2N - 2) e^+ (NC-5)", lambda s: s.log(2 * s.n - 1)
        ),
        Expectation(
            "optimum", "log(1 + (2N-2) max((e^(-N / ((N-1) T)) - prior) / (1 - prior), e^(-2/T)))",
            "aligned views on a simplex, D >= N - 1, if prior <= 1/(2N-1) or the clamp acts there (SC-8)",
            lambda s: s.debiased_optimum(),
        ),
        Expectation(
            "lower bound", "log(1 + (2N-2) e^(-2/T))",
            "Ng >= (2N-2) e^(-1/T) by the clamp, s_ip <= 1; attained by aligned views where the clamp acts on each row",
            lambda s: s.cosine_bound(2 * s.n - 2, -2),
        ),
        Expectation(
            "upper bound", "log(1 + (2N-2) (e^(2/T) - prior) / (1 - prior))",
            "cosines in [-1, 1]: s_ip = -1, negatives at 1, where no clamp acts; need not be reached",
            lambda s: s.debiased_bound(),
        ),
    )  # fmt: skip


PROPERTIES = {
    **always(
        "attracts_positives", "nonnegative", "permutation_equivariant", "rotation_invariant", "view_swap_invariant",
    ),
    **NORMALIZED,
}  # fmt: skip
"""Properties of this loss and of `hcl`, which may attract a negative."""

LOSS = Loss(
    name="debiased",
    summary="NT-Xent whose negatives are corrected for samples of the anchor's own class among them.",
    text="L_i = -log( e^+ / (e^+ + Ng) ),  Ng = max( (sum_j e^(s_ij/T) - prior n e^+) / (1 - prior), n e^(-1/T) ),"
    "  e^+ = exp(s_ip/T), p the other view of i, j over the n = 2N - 2 others, s_ij = z_i.z_j",
    latex=r"L_i = -\log\frac{e^{s_{ip}/\tau}}{e^{s_{ip}/\tau} + N_g},\qquad"
    r" N_g = \max\Big\{\frac{\sum_j e^{s_{ij}/\tau}"
    r" - \tau^+ n\, e^{s_{ip}/\tau}}{1-\tau^+},\ n\, e^{-1/\tau}\Big\},\quad n = 2N-2",
    gradient="dL_i/ds_ij = e^(s_ij/T) / ((1 - prior) (e^+ + Ng) T), 0 on the clamp;"
    "  dL_i/ds_ip = -(Ng + prior n e^+ / (1 - prior)) / ((e^+ + Ng) T), on the clamp -Ng / ((e^+ + Ng) T);"
    "  dL_i/dT = -sum_j s_ij dL_i/ds_ij / T, p among the j, on the clamp Ng (1 + s_ip) / ((e^+ + Ng) T^2);"
    "  dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(Z1, Z2, TEMPERATURE, PRIOR, NORMALIZE),
    sources=(
        Source("chingyaoc/DCL", "main.py, train, debiased", "authors' code"),
        Source("own derivation", "DEB-1", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **PROPERTIES,
        **always("repels_negatives"),
        "convex_in_logits": {"positive_prior": 0.0},
        "row_slopes_sum_to_zero": {"positive_prior": 0.0, **L2},
    },
    sign=">= 0",
    unit="nats",
    rows="(2N,), view 1 first",
    relations=(
        Relation("nt_xent", "it is NT-Xent", _no_prior, given={"positive_prior": 0.0, "normalize": "l2"}),
        Relation("hcl", "HCL with concentration 0", _no_concentration),
    ),
    expectations=expectations(_chance),
    kinks=(Kink("clamp", "the estimate equals its floor n e^(-1/T)", "slope 0 of the clamp", on_clamp),),
    notes="On the clamp the negatives get no gradient; the temperature keeps the derivative of the floor.",
    variants=({}, {"positive_prior": 0.0}),
    single=False,
)  # fmt: skip
