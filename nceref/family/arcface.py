"""ArcFace: cross-entropy of scaled cosines to class weights, with an angle added to the target's.

    L_i = -log( exp(s cos(theta_y + m)) / (exp(s cos(theta_y + m)) + sum_{k != y} exp(s cos theta_k)) )

cos(theta + m) rises again for theta > pi - m; `fallback` names what happens there.
"""

import math

from array_api_compat import array_namespace

from nceref.comparisons import two_towers
from nceref.errors import InputError
from nceref.formulas import dot, rows
from nceref.heads import sigmoid, softplus
from nceref.layouts import Except, Index, Only
from nceref.parameters import CLASS_WEIGHTS, EMBEDDINGS, NORMALIZE, SCALE, TARGET
from nceref.plan import Comparison, Plan
from nceref.rows import LogSumExp, Sum, Term
from nceref.similarity import times
from nceref.spec import Choice, Expectation, Kink, Loss, Relation, Scalar, Source


def formula(m, embeddings, class_weights, target, *, margin, scale, normalize, fallback):
    """The margin is added to the target's angle before the softmax."""
    x, w = rows(m, embeddings, normalize), rows(m, class_weights, normalize)
    out = []
    for x_i, y in zip(x, target, strict=True):
        cosines = [dot(x_i, w_k) for w_k in w]
        theta = m.acos(cosines[y])
        if fallback == "linear" and m.real(theta) > math.pi - m.real(margin):
            cosines[y] = cosines[y] - margin * m.sin(margin)
        else:
            cosines[y] = m.cos(theta + margin)
        p = [m.exp(scale * c) for c in cosines]
        out.append(-m.log(p[y] / sum(p)))
    return out


def plan(embeddings, class_weights, target, *, margin, scale, normalize, fallback):
    """Scaled cosines; the margin is the head's business, since only the target feels it."""
    logits = two_towers(normalize, times(scale, "scale"), embeddings=embeddings, class_weights=class_weights)
    _check_lengths(logits)
    own = (Index(target),)
    terms = {"negatives": Term(LogSumExp(), Except(own)), "positive": Term(Sum(), Only(own))}
    return Plan((Comparison(logits, terms),), _head(margin, scale, fallback), constant=scale)


def _head(margin, scale, fallback):
    """Softplus(negatives - s psi(cos theta)), psi = cos(theta + m); psi' = sin(theta + m) / sin theta."""

    def head(stats):
        xp = array_namespace(stats["positive"])
        cosine = xp.clip(stats["positive"] / scale, min=-1.0, max=1.0)
        sine = xp.sqrt((1 - cosine) * (1 + cosine))
        with_margin = cosine * math.cos(margin) - sine * math.sin(margin)
        # On the kink the tangential part is 0: no direction is preferred where the sphere has a pole.
        inside = xp.where(sine > 0, sine, 1.0)
        slope = xp.where(sine > 0, math.cos(margin) + cosine / inside * math.sin(margin), 0.0)
        if fallback == "linear":
            past = cosine < math.cos(math.pi - margin)
            with_margin = xp.where(past, cosine - margin * math.sin(margin), with_margin)
            slope = xp.where(past, 1.0, slope)
        gap = stats["negatives"] - scale * with_margin
        missed = sigmoid(gap)

        def pull(c):
            g = c * missed
            return {"negatives": g, "positive": -g * slope, "scale": -xp.sum(g * (with_margin - slope * cosine))}

        return softplus(gap), pull

    return head


def _check_lengths(logits):
    """Without normalization the rows must not be longer than 1, or their products are no cosines."""
    xp = array_namespace(logits.like)
    squares = [xp.max(xp.sum(rows.values * rows.values, axis=1)) for rows in (logits.anchors, logits.candidates)]
    longest = float(xp.max(xp.stack(squares))) ** 0.5
    if longest > 1 + 64 * xp.finfo(logits.like.dtype).eps:
        msg = f"with normalize='none' rows must have length 1, but one has length {longest:.6g}; pass normalize='l2'"
        raise InputError(msg)


def _at_a_pole(inputs):
    import numpy as np

    x, w = (np.asarray(inputs[name], dtype=np.float64) for name in ("embeddings", "class_weights"))
    x, w = x / np.linalg.norm(x, axis=1, keepdims=True), w / np.linalg.norm(w, axis=1, keepdims=True)
    cosine = np.sum(x * w[np.asarray(inputs["target"])], axis=1)
    past = np.abs(np.arccos(np.clip(cosine, -1, 1)) - (math.pi - inputs["margin"]))
    return bool(np.any(1 - np.abs(cosine) < 1e-6) or (inputs["fallback"] == "linear" and np.any(past < 1e-6)))


def _no_margin(losses, rng):
    x, w, y = rng.standard_normal((5, 3)), rng.standard_normal((4, 3)), rng.integers(0, 4, 5)
    unit = [a / (a * a).sum(axis=1, keepdims=True) ** 0.5 for a in (x, w)]
    return losses.arcface(x, w, y, margin=0.0, scale=8.0), losses.cross_entropy(8.0 * unit[0] @ unit[1].T, y)


LOSS = Loss(
    name="arcface",
    summary="Cross-entropy of scaled cosines with an additive angular margin on the target class.",
    text="L_i = -log( e^(s cos(theta_y + m)) / (e^(s cos(theta_y + m)) + sum_{k!=y} e^(s cos theta_k)) )",
    latex=r"L_i = -\log\frac{e^{s\cos(\theta_{y_i}+m)}}{e^{s\cos(\theta_{y_i}+m)} + \sum_{k\ne y_i} e^{s\cos\theta_k}}",
    gradient="dL_i/dcos theta_y = (p_y - 1) s sin(theta_y + m) / sin(theta_y),  dL_i/dcos theta_k = p_k s",
    parameters=(
        EMBEDDINGS,
        CLASS_WEIGHTS,
        TARGET,
        Scalar(
            "margin", "m", "Added to the target's angle, in radians.", default=0.5, low=0.0, low_closed=True,
            high=math.pi, constant=True, typical=(0.1, 0.5),
        ),
        SCALE,
        NORMALIZE,
        Choice(
            "fallback", ("none", "linear"), "none",
            "Past theta = pi - m: cos(theta + m) as printed, which rises again, or cos(theta) - m sin(m).",
        ),
    ),
    sources=(
        Source("deepinsight/insightface", "recognition/arcface_torch losses (a copy)", "third-party code"),
        Source("nceref claims", "ARC-1, gradient", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties=frozenset({
        "nonnegative", "permutation_equivariant", "radial_slope_zero", "repels_negatives", "rotation_invariant",
        "scale_invariant",
    }),
    relations=(Relation("cross_entropy", "margin 0 is cross-entropy of the scaled cosines", _no_margin),),
    expectations=(
        Expectation(
            "collapse", "log(1 + (C-1) e^(s (1 - cos m)))", "all cosines equal 1 (ARC-1)",
            lambda s: s.softplus(s.log(s.classes - 1) + s.scale * (1 - math.cos(s.margin))),
        ),
        Expectation("lower bound", "0", "-log of a probability (WL-1)", lambda s: 0.0),
    ),
    kinks=(
        Kink(
            "poles", "cos(theta_y) = +-1, and theta_y = pi - m with the linear fallback",
            "tangential part 0: the target's cosine passes no gradient on at a pole", _at_a_pole,
        ),
    ),
    notes="`fallback` is the policy past theta = pi - m, where cos(theta + m) as printed is not monotone in theta.",
    variants=({}, {"fallback": "linear", "margin": 0.25}),
)  # fmt: skip
