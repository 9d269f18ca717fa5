"""DCL with von Mises-Fisher weights on the positives: well-aligned pairs pull less.

    L_i = -w_i s_ip / T + log sum_{j not in {i, p}} exp(s_ij / T),
    w_i = 2 - exp(s_ip / sigma) / mean_k exp(s_kp / sigma)

The weights are constants: no gradient flows through them.
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import HeadRows, cancelling
from nceref.engine.layouts import two_views
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import NORMALIZE, NORMALIZED, TEMPERATURE, Z1, Z2
from nceref.engine.plan import Plan
from nceref.engine.sides import shared
from nceref.spec import Expectation, Loss, Relation, Scalar, Source, always


def formula(m, z1, z2, *, temperature, sigma, normalize):
    """DCL whose positive is multiplied by a detached weight."""
    z, n = rows(m, z1 + z2, normalize), len(z1)
    mass = [m.exp(m.detach(dot(z[i], z[i + n])) / sigma) for i in range(n)]
    weights = [2 - mass_i / (sum(mass) / n) for mass_i in mass]
    out = []
    for i, z_i in enumerate(z):
        partner = (i + n) % (2 * n)
        negatives = [m.exp(dot(z_i, z_j) / temperature) for j, z_j in enumerate(z) if j not in (i, partner)]
        out.append(-m.detach(weights[i % n]) * dot(z_i, z[partner]) / temperature + m.log(sum(negatives)))
    return out


def plan(z1, z2, *, temperature, sigma, normalize) -> Plan:
    """The plan of DCL with weighted positives."""
    comparison = two_views("dclw", z1, z2, temperature, normalize, least=2)
    return Plan((comparison,), lambda stats: _head(stats, temperature, sigma))


def _head(stats, temperature, sigma) -> HeadRows:
    """Negatives - w positive; the weights have no slope."""
    negatives, positive = stats["negatives"], stats["positive"]
    xp = array_namespace(positive)
    # Each pair stands twice among the 2N rows, but for rounding, which a small sigma magnifies: once is enough.
    own = positive[: positive.shape[0] // 2]
    # The common factor cancels in the quotient.
    mass = xp.exp((own - cancelling(xp.max(own))) * temperature / sigma)
    # Each is a part of the sum, and at most N times the mean.
    weights = xp.concat([2 - xp.clip(mass / xp.mean(mass), min=0.0, max=float(own.shape[0]))] * 2)

    def vjp(c):
        return {"negatives": c, "positive": -c * weights}

    return negatives - weights * positive, vjp


def _flat(losses, inputs):
    return losses.dclw(**{**inputs, "sigma": 1e18}), losses.dcl(**shared(losses.dcl, inputs))


LOSS = Loss(
    name="dclw",
    summary="DCL with positives weighted down where they already agree; the weights are constants.",
    text="L_i = -w_i s_ip/T + log sum_{j not in {i,p}} exp(s_ij/T),"
    "  w_i = 2 - exp(s_ip/sigma) / mean_k exp(s_kp/sigma),"
    "  p the other view of i, s_ij = z_i.z_j",
    latex=r"L_i = -w_i\frac{z_i\cdot z_{p(i)}}{\tau} + \log\sum_{j\notin\{i,p(i)\}} e^{z_i\cdot z_j/\tau},\qquad"
    r" w_i = 2 - \frac{e^{z_i\cdot z_{p(i)}/\sigma}}{\frac1N\sum_k e^{z_k\cdot z_{p(k)}/\sigma}}",
    gradient="dL_i/ds_ip = -w_i/T,  dL_i/ds_ij = softmax over negatives / T,  none through w;"
    "  dL_i/dT = -sum_j s_ij dL_i/ds_ij / T;  dL/dz = (G + G^T) z,  G = dL/ds",
    parameters=(
        Z1,
        Z2,
        TEMPERATURE,
        Scalar("sigma", r"\sigma", "Width of the weighting.", default=0.5, low=0.0, constant=True, typical=(0.3, 1.0)),
        NORMALIZE,
    ),
    sources=(
        Source(
            "raminnakhli/Decoupled-Contrastive-Learning", "loss/dcl.py at 50991ef (2 - softmax, not 2 - N softmax)",
            "third-party code",
        ),
        Source(
            "lightly-ai/lightly", "lightly/loss/dcl_loss.py, DCLWLoss (2 - N softmax, detached)", "third-party code",
        ),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always("permutation_equivariant", "repels_negatives", "rotation_invariant", "view_swap_invariant"),
        **NORMALIZED,
    },
    unit="nats",
    rows="(2N,), view 1 first",
    relations=(Relation("dcl", "a flat weighting (sigma to infinity) is DCL", _flat),),
    expectations=(
        Expectation(
            "chance", "log(2N - 2)", "independent uniform rows as D grows: all similarities 0, weights 1 (WI-2)",
            lambda s: s.log(2 * s.n - 2), dim=False,
        ),
        Expectation(
            "chance", "E log sum of 2N - 2 terms e^(s/T) + E (sum s e^(s/sigma) / sum e^(s/sigma)) / T over N terms",
            "s cosines of independent uniform rows in D dimensions: -w s has the mean of the second part (WI-2)",
            lambda s: s.weighted_chance(), dim=True,
        ),
        Expectation(
            "collapse", "log(2N - 2)", "all similarities equal: every weight is 1 (NC-5)", lambda s: s.log(2 * s.n - 2)
        ),
        Expectation(
            "optimum", "log(2N - 2) - N / ((N-1) T)", "aligned views on a simplex; weights average to 1 (SC-8, DCL-1)",
            lambda s: s.decoupled_simplex(s.n, 2 * s.n - 2),
        ),
        Expectation(
            "lower bound", "log(2N - 2) - N / ((N-1) T)", "as DCL: by Chebyshev, weighting lowers no mean (SC-8)",
            lambda s: s.decoupled_bound(s.n, 2 * s.n - 2),
        ),
        Expectation(
            "upper bound", "log(2N - 2) + (2 + 4 (1-r)^2 / (2-r^2)) / T, r = min(1, sqrt(2) e^(-1/sigma))",
            "cosines in [-1, 1]: the mean of -w s is largest where each s is -1 or 1; need not be reached",
            lambda s: s.log(2 * s.n - 2) + (1 + s.weighted_bound()) / s.temperature,
        ),
    ),
    sign="either sign: a well-trained batch is negative, and that is no bug",
    notes="A weight may be negative: a pair much better aligned than the batch mean is pushed apart.",
    single=False,
)  # fmt: skip
