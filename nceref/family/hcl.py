"""Contrastive loss with hard negative samples: debiased, with negatives weighted by exp(concentration s / T).

    Ng = max( (n sum_j e^{(1+b) s_ij/T} / sum_j e^{b s_ij/T} - prior n e^+) / (1 - prior), n e^{-1/T} )

The weights are not constants: the gradient flows through them, so an easy negative may even be attracted.
"""

import math

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import Head, HeadRows, corrected_negatives
from nceref.engine.layouts import two_views
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import L2, NORMALIZE, PRIOR, TEMPERATURE, Z1, Z2
from nceref.engine.plan import Plan
from nceref.engine.sides import shared
from nceref.errors import InputError
from nceref.family.debiased import PROPERTIES, expectations, on_clamp
from nceref.spec import Kink, Loss, Relation, Scalar, Source


def formula(m, z1, z2, *, temperature, positive_prior, concentration, normalize):
    """Importance weights of the negatives have mean 1; the estimate is clamped from below."""
    z, n = rows(m, z1 + z2, normalize), len(z1)
    out = []
    for i, z_i in enumerate(z):
        partner = (i + n) % (2 * n)
        s = [dot(z_i, z_j) / temperature for z_j in z]
        negatives = [s_j for j, s_j in enumerate(s) if j not in (i, partner)]
        count, positive = len(negatives), m.exp(s[partner])
        importance = [m.exp(concentration * s_j) for s_j in negatives]
        weighted = sum(w * m.exp(s_j) for w, s_j in zip(importance, negatives, strict=True)) / (sum(importance) / count)
        estimate = (weighted - positive_prior * count * positive) / (1 - positive_prior)
        floor = count * m.exp(-1 / temperature)
        kept = estimate if m.above(estimate, floor) else floor
        out.append(-m.log(positive / (positive + kept)))
    return out


def plan(z1, z2, *, temperature, positive_prior, concentration, normalize) -> Plan:
    """Two log-sum-exps over the same negatives."""
    most = 2 / float(array_namespace(z1).finfo(z1.dtype).eps)
    if concentration >= most:
        msg = f"`concentration` must be < {most:.0f} for {z1.dtype} rows, got {concentration:g}: 1 + b would round to b"
        raise InputError(msg)
    exponents = {"negatives": 1 + concentration, "negatives_level": concentration}
    comparison = two_views("hcl", z1, z2, temperature, normalize, least=2, **exponents)
    count = 2 * z1.shape[0] - 2
    head = _head(corrected_negatives(temperature, positive_prior, count), count)
    return Plan((comparison,), head, constant=1 / temperature)


def _head(debiased, count) -> Head:
    """The debiased head on log n + lse((1 + b) s) - lse(b s)."""

    def head(stats) -> HeadRows:
        weighted = math.log(count) + stats["negatives"] - stats["negatives_level"]
        rows, inner = debiased({"negatives": weighted, "positive": stats["positive"]})

        def vjp(c):
            slopes = inner(c)
            return {**slopes, "negatives_level": -slopes["negatives"]}

        return rows, vjp

    return head


_MOST_DRAWN = 2.0**36
"""The largest b / T that is drawn: statistics are then rounded by 1e-5, less than what is drawn is off."""


def _plain(losses, inputs):
    return losses.hcl(**inputs), losses.nt_xent(**shared(losses.nt_xent, inputs))


def _chance(s):
    count, b = 2 * s.n - 2, s.concentration
    if count < 1:
        return None
    if b >= _MOST_DRAWN * s.temperature:
        s.absent("drawn for a concentration < 2^36 T: above, rounding hides the mean")
        return None
    head = _head(corrected_negatives(s.temperature, s.positive_prior, count), count)
    return s.sampled_chance(count, {"negatives": 1 + b, "negatives_level": b}, head)


LOSS = Loss(
    name="hcl",
    summary="Debiased contrastive loss with importance weights on hard negatives.",
    text="L_i = -log( e^+ / (e^+ + Ng) ),  Ng = max( (n sum_j e^((1+b)s_ij/T) / sum_j e^(b s_ij/T) - prior n e^+)"
    " / (1 - prior), n e^(-1/T) ),"
    "  e^+ = exp(s_ip/T), p the other view of i, j over the n = 2N - 2 others, s_ij = z_i.z_j,"
    "  b the concentration",
    latex=r"L_i = -\log\frac{e^{s_{ip}/\tau}}{e^{s_{ip}/\tau}+N_g},\qquad N_g = \max\Big\{\frac1{1-\tau^+}\Big(n"
    r"\frac{\sum_j e^{(1+\beta)s_{ij}/\tau}}{\sum_j e^{\beta s_{ij}/\tau}} "
    r" - \tau^+ n\, e^{s_{ip}/\tau}\Big),\ n\, e^{-1/\tau}\Big\}",
    gradient="dL_i/ds_ij = W ((1+b) r^(1+b)_j - b r^(b)_j) / ((e^+ + Ng) T), 0 on the clamp,"
    "  W = n sum e^((1+b)s/T) / sum e^(bs/T) / (1 - prior),"
    "  r^(b) = softmax of b s/T over the negatives;"
    "  dL_i/ds_ip = -(Ng + prior n e^+ / (1 - prior)) / ((e^+ + Ng) T), on the clamp -Ng / ((e^+ + Ng) T);"
    "  dL_i/dT = -sum_j s_ij dL_i/ds_ij / T, p among the j, on the clamp Ng (1 + s_ip) / ((e^+ + Ng) T^2);"
    "  dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(
        Z1,
        Z2,
        TEMPERATURE,
        PRIOR,
        Scalar(
            "concentration", r"\beta", "How much harder negatives count; 0: debiased.", default=1.0, low=0.0,
            high=2.0**53, low_closed=True, constant=True, typical=(0.5, 1.5),
        ),
        NORMALIZE,
    ),
    sources=(
        Source("joshr17/HCL", "image/main.py, criterion, estimator 'hard'", "authors' code"),
        Source("own derivation", "HCL-1, G-6", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **PROPERTIES,
        "convex_in_logits": {"positive_prior": 0.0, "concentration": 0.0},
        "repels_negatives": {"concentration": 0.0},
        "row_slopes_sum_to_zero": {"positive_prior": 0.0, **L2},
    },
    sign=">= 0",
    unit="nats",
    rows="(2N,), view 1 first",
    relations=(
        Relation(
            "nt_xent", "it is NT-Xent", _plain,
            given={"concentration": 0.0, "positive_prior": 0.0, "normalize": "l2"},
        ),
    ),
    expectations=expectations(_chance),
    kinks=(
        Kink(
            "clamp", "the estimate equals its floor n e^(-1/T)", "slope 0 of the clamp",
            lambda inputs, eps: on_clamp(inputs, eps, inputs["concentration"]),
        ),
    ),
    notes="On the clamp the negatives get no gradient: with well-aligned views whole batches sit on it. "
    "A concentration b multiplies the rounding of the similarities by b/T. At T = 0.5 the value has six digits at "
    "b = 1e10 in float64, three at b = 1e4 in float32. From b = 2^53 (2^24) on 1 + b is rounded to b and refused. "
    "Error bounds of gradients grow with b^2: from about b = 1e7 in float64, 300 in float32, they are wider than the "
    "gradients, and `nceref verify` is inconclusive.",
    variants=({}, {"positive_prior": 0.0, "concentration": 0.5}),
    single=False,
)  # fmt: skip
