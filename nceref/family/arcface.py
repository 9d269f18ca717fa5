"""ArcFace: cross-entropy of scaled cosines to class weights, with an angle added to the target's.

    L_i = -log( exp(s cos(theta_y + m)) / (exp(s cos(theta_y + m)) + sum_{k != y} exp(s cos theta_k)) )

cos(theta + m) rises again for theta > pi - m; `fallback` names what happens there.
"""

import math

from nceref.engine.chunks import ChunkedRows
from nceref.engine.distances import chord
from nceref.engine.formulas import dot, rows
from nceref.engine.heads import Head, HeadRows, sigmoid, softplus
from nceref.engine.layouts import two_towers
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import CLASS_WEIGHTS, EMBEDDINGS, NORMALIZE, NORMALIZED, SCALE, TARGET
from nceref.engine.patterns import Everyone, Except, Index, Only
from nceref.engine.plan import Comparison, Plan
from nceref.engine.scaling import shifted
from nceref.engine.sides import compared
from nceref.engine.similarity import times
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.errors import InputError
from nceref.spec import Choice, Expectation, Kink, Loss, Relation, Scalar, Source, always


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


def plan(embeddings, class_weights, target, *, margin, scale, normalize, fallback) -> Plan:
    """Scaled cosines; the margin is the head's business, since only the target feels it.

    The target's angle is taken from the chords |x - w| and |x + w|: near a pole, 1 - cos^2 has no digits left.
    """
    logits = two_towers(normalize, times(scale, "scale"), embeddings=embeddings, class_weights=class_weights)
    if normalize == "none":
        _check_lengths(logits)
    own = (Index(target),)
    terms = {"negatives": Term(LogSumExp(), Except(own)), "positive": Term(Sum(), Only(own))}
    # Chords carry no gradient: the head returns all of it as a slope by the target's cosine.
    near, far = (chord(logits.anchors, logits.candidates, target, sign) for sign in (1.0, -1.0))
    chords = (
        Comparison(near, {"chord": Term(Sum(), Everyone())}),
        Comparison(far, {"antichord": Term(Sum(), Everyone())}),
    )
    missing = 0.0 if normalize == "l2" else 2 - _squares(near.x) - _squares(near.y)
    return Plan((Comparison(logits, terms), *chords), _head(margin, scale, fallback, missing), constant=scale, shown=1)


def _head(margin, scale, fallback, missing) -> Head:
    """softplus(negatives - s psi(cos theta)), psi = cos(theta + m); psi' = sin(theta + m) / sin theta."""

    def head(stats) -> HeadRows:
        xp = array_namespace(stats["positive"])
        # |x - w|^2 + missing = 2 - 2 cos and |x + w|^2 + missing = 2 + 2 cos, also for lengths that are 1 only nearly.
        near, far = stats["chord"] * stats["chord"], stats["antichord"] * stats["antichord"]
        cosine = (far - near) / 4
        sine = xp.sqrt(xp.clip((near + missing) * (far + missing), min=0.0)) / 2
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

        def vjp(c):
            g = c * missed
            # By the scale what is missing: slope * cosine comes with the factor of the logits.
            return {"negatives": g, "positive": -g * slope, "scale": -xp.sum(g * (with_margin - slope * cosine))}

        return softplus(gap), vjp

    return head


def _squares(rows):
    """Squared lengths of rows."""
    return array_namespace(rows.values).sum(rows.values * rows.values, axis=1)


def _check_lengths(logits):
    """Raise an `InputError` for rows longer than 1, whose products are no cosines."""
    if isinstance(logits.anchors, ChunkedRows):
        msg = "arcface of arrays in chunks needs normalize='l2', got 'none': lengths are measured in whole arrays"
        raise InputError(msg)
    xp = array_namespace(logits.like)
    for side in (logits.anchors, logits.candidates):
        # Numbers of float32 are as near to length 1 as that format comes, in whatever format they are given.
        single = xp.astype(xp.astype(side.values, xp.float32), side.values.dtype)
        resolution = xp.finfo(xp.float32 if bool(xp.all(single == side.values)) else side.values.dtype).eps
        longest = shifted(side.longest, side.balanced[1])
        if longest > 1 + 64 * resolution:
            name = side.parts[0].name
            msg = f"rows of `{name}` must have length 1 with normalize='none', got {longest!r}; pass normalize='l2'"
            raise InputError(msg)


def _angles(inputs, eps):
    """Angle of every row to its target's weights, and the resolution at a precision."""
    import numpy as np

    x, w = (np.asarray(inputs[name], dtype=np.float64) for name in ("embeddings", "class_weights"))
    x, w = x / np.linalg.norm(x, axis=1, keepdims=True), w / np.linalg.norm(w, axis=1, keepdims=True)
    own = w[np.asarray(inputs["target"])]
    angle = 2 * np.arctan2(np.linalg.norm(x - own, axis=1), np.linalg.norm(x + own, axis=1))
    # Near a pole, products of rows lose half of the digits; a 16-bit format would have no case left by that measure.
    return angle, max(1024 * min(eps, 2.0**-23), 8 * eps)


def _at_a_pole(inputs, eps):
    angle, resolution = _angles(inputs, eps)
    return bool((abs(angle) < resolution).any() or (abs(angle - math.pi) < resolution).any())


def _at_the_jump(inputs, eps):
    angle, resolution = _angles(inputs, eps)
    return inputs["fallback"] == "linear" and bool((abs(angle - math.pi + inputs["margin"]) < resolution).any())


def _falls_back(s):
    """Whether the linear fallback is what an angle of pi / 2 meets."""
    return s.fallback == "linear" and s.margin > math.pi / 2


def _chance(s):
    def own(cos, sin):
        with_margin = cos * math.cos(s.margin) - sin * math.sin(s.margin)
        if s.fallback == "none":
            return with_margin
        past = cos < math.cos(math.pi - s.margin)
        return array_namespace(cos).where(past, cos - s.margin * math.sin(s.margin), with_margin)

    return s.margin_chance(own, math.pi - s.margin if s.fallback == "linear" else None)


def _no_margin(losses, inputs):
    x, w = compared(inputs, "embeddings", "class_weights")
    return losses.arcface(**inputs), losses.cross_entropy(x @ w.T, inputs["target"], temperature=1 / inputs["scale"])


LOSS = Loss(
    name="arcface",
    summary="Cross-entropy of scaled cosines with an additive angular margin on the target class.",
    text="L_i = -log( e^(s cos(theta_y + m)) / (e^(s cos(theta_y + m)) + sum_{k!=y} e^(s cos theta_k)) )",
    latex=r"L_i = -\log\frac{e^{s\cos(\theta_{y_i}+m)}}{e^{s\cos(\theta_{y_i}+m)} + \sum_{k\ne y_i} e^{s\cos\theta_k}}",
    gradient="dL_i/dcos theta_y = (p_y - 1) s sin(theta_y + m) / sin(theta_y), (p_y - 1) s past the linear fallback;"
    "  dL_i/dcos theta_k = p_k s;"
    "  dL_i/ds = sum_k p_k c_k - c_y,  p = softmax(s c),  c the cosines with the margin: c_y = cos(theta_y + m) or its "
    "fallback",
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
        Source("deepinsight/insightface", "recognition/arcface_torch/losses.py, ArcFace at 2e2e8c9", "authors' code"),
        Source("own derivation", "ARC-1, gradient", "derived here"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always("nonnegative", "permutation_equivariant", "repels_negatives", "rotation_invariant"),
        **NORMALIZED,
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation(
            "cross_entropy", "cross-entropy of the cosines at temperature 1 / scale", _no_margin, given={"margin": 0.0},
        ),
    ),
    expectations=(
        Expectation(
            "chance", "log(1 + (C-1) e^(s sin m))",
            "independent uniform rows as D grows: all cosines 0 (WI-2); m sin m for sin m past the linear fallback",
            lambda s: s.softplus(
                s.log(s.classes - 1) + s.scale * math.sin(s.margin) * (s.margin if _falls_back(s) else 1)
            ), dim=False,
        ),
        Expectation(
            "chance", "E log(e^(s p) + sum_(k != y) e^(s cos theta_k)) - s E p",
            "p = cos(theta_y + m) or its fallback, cosines of independent uniform rows in D dimensions (WI-2)",
            lambda s: _chance(s), dim=True,
        ),
        Expectation(
            "collapse", "log(1 + (C-1) e^(s (1 - cos m)))", "all cosines equal 1 (ARC-1)",
            lambda s: s.softplus(s.log(s.classes - 1) + s.scale * (1 - math.cos(s.margin))),
        ),
        Expectation(
            "optimum", "log(1 + (C-1) e^(-s max(cos m + 1/(C-1), 1 - cos m))); with the linear fallback the first",
            "rows equal to the weights of their class on a simplex, D >= C - 1; for a cos m < (C-2) / (2C-2) opposite "
            "to all weights, and with the linear fallback none if 2 cos m + m sin m < (1 + cos m) (C-2) / (2C-2)",
            lambda s: s.arcface_optimum(), assumes="balanced classes",
        ),
        Expectation(
            "lower bound", "log(1 + (C-1) e^(-s (1 + max(cos m, -cos m)))), with the linear fallback -cos m - m sin m",
            "any targets: all rows of one class, the others' weights opposite to them (WL-1)",
            lambda s: s.arcface_bound(),
        ),
        Expectation(
            "upper bound", "log(1 + (C-1) e^(2s)), with the linear fallback log(1 + (C-1) e^(s (2 + m sin m)))",
            "all rows x, the others' weights x, and those of the target at the least psi: -1 at theta = pi - m, for "
            "which D = 1 has no room, or -1 - m sin m at pi",
            lambda s: s.softplus(
                s.log(s.classes - 1) + s.scale * (2 + (s.fallback == "linear") * s.margin * math.sin(s.margin))
            ),
        ),
    ),
    kinks=(
        Kink(
            "poles", "cos(theta_y) = +-1",
            "tangential part 0: the target's cosine passes no gradient on at a pole", _at_a_pole,
        ),
        Kink(
            "jump", "theta_y = pi - m with the linear fallback, where psi jumps from -1 to -cos m - m sin m",
            "that of cos(theta + m), which is used up to and including the jump", _at_the_jump, jumps=True,
        ),
    ),
    notes="`fallback` is the policy past theta = pi - m, where cos(theta + m) as printed is not monotone in theta.",
    variants=({}, {"fallback": "linear", "margin": 0.25}),
)  # fmt: skip
