"""From scenes to row losses, and from row losses to one number, every step as the knobs want it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nceref.verification.dense.denominators import Denominator, denominator, masked
from nceref.verification.dense.scene import Array, Knobs, Rows, Scene, log_add, log_sum_exp, real, transposed
from nceref.verification.dense.temperatures import afterward

FORMS = {"sum-inside-log": "in", "sum-outside-log": "mean", "positives-not-averaged": "sum",
         "positives-averaged": "mean", "positives-summed-inside-log": "total",
         "divided-by-one-more": "one more"}  # fmt: skip


def contrast(scenes: tuple[Scene, ...], knobs: Knobs) -> Rows:
    """Row losses of all directions, one below the other."""
    parts = [_rows(scene, knobs) for scene in scenes]
    values = np.concatenate([part.values for part in parts], axis=-1)
    weights = None if parts[0].weights is None else np.concatenate([part.weights for part in parts])
    pairs = np.concatenate([part.pairs for part in parts])
    size, noise = (max(getattr(part, name) for part in parts) for name in ("size", "noise"))
    values = values * (2.0 if "directions-summed" in knobs else 1.0)
    return Rows(values, weights, pairs, parts[0].skips, size, noise, samples=scenes[0].samples)


def _rows(scene: Scene, knobs: Knobs) -> Rows:
    """Row losses of one scene."""
    scene = _sideways(scene) if "softmax-over-wrong-axis" in knobs else scene
    with np.errstate(all="ignore"):
        found = denominator(scene, knobs)
        values, pairs = _head(scene, found, knobs)
        values = afterward(values, scene.heat, knobs) * scene.factor
    alone = pairs == 0
    size = float(np.max(np.abs(real(scene.logits)), where=np.isfinite(real(scene.logits)), initial=0.0))
    values = np.where(alone, 0.0, values)
    return Rows(values, scene.anchor_weights, pairs, scene.lonely == "skip", size + _largest(values), found.noise)


def _largest(values: Array) -> float:
    return float(np.max(np.abs(real(values)), where=np.isfinite(real(values)), initial=0.0))


def _sideways(scene: Scene) -> Scene:
    """Candidates and anchors exchanged, with each entry still in its place: a softmax down the columns."""
    from dataclasses import replace

    names = ("logits", "numerator", "candidates", "positives", "own", "view", "extra", "spare", "centers")
    turned = {name: transposed(getattr(scene, name)) for name in names if getattr(scene, name) is not None}
    return replace(scene, **turned, pull=1.0, form=scene.form + " sideways")


def _head(scene: Scene, found: Denominator, knobs: Knobs) -> tuple[Array, Array]:
    """Row losses, and the weight of the positives of each row."""
    positives = np.where(scene.candidates, 1.0, 0.0) if scene.positives is None else scene.positives
    numerator = real(scene.numerator) if "positives-detached" in knobs else scene.numerator
    log = found.log if found.log.ndim == scene.logits.ndim else found.log[..., None]
    log_p = np.where(positives > 0, _shaped(scene, numerator, log, found, knobs), 0.0)
    sideways = scene.form.endswith("sideways")
    if sideways:
        log_p, positives = transposed(log_p), positives.T
    total = np.sum(positives, axis=-1)
    weight = np.where(total > 0, total, 1.0)
    form = next((FORMS[id] for id in knobs if id in FORMS), scene.form.removesuffix(" sideways"))
    form = "exponential" if "logarithm-missing" in knobs else "pooled" if "log-of-mean" in knobs else form
    return _FORMS[form](log_p, positives, weight), total


def _joined(log_p: Array, positives: Array) -> Array:
    """The logarithm of the weighted sum of the positives' probabilities."""
    with np.errstate(divide="ignore"):
        return log_sum_exp(np.log(positives) + log_p)


_FORMS: Mapping[str, Callable[[Array, Array, Array], Array]] = {
    "mean": lambda log_p, w, total: -np.sum(w * log_p, axis=-1) / total,
    "one more": lambda log_p, w, total: -np.sum(w * log_p, axis=-1) / (total + 1),
    "sum": lambda log_p, w, total: -np.sum(w * log_p, axis=-1),
    "in": lambda log_p, w, total: np.log(total) - _joined(log_p, w),
    "total": lambda log_p, w, total: -_joined(log_p, w),
    "exponential": lambda log_p, w, total: -np.sum(w * np.exp(log_p), axis=-1) / total,
    "pooled": lambda log_p, w, total: _pooled(log_p, w, total),
}
"""How log-probabilities of the positives become a row, from their weights and the total of these."""


def _pooled(log_p: Array, positives: Array, total: Array) -> Array:
    """-log of the mean probability, the same for every row."""
    alone = np.sum(positives, axis=-1) == 0
    rows = np.where(alone, -np.inf, _joined(log_p, positives) - np.log(total))
    pooled = log_sum_exp(rows) - np.log(np.sum(~alone))
    return np.broadcast_to(-pooled[..., None], rows.shape)


def _shaped(scene: Scene, numerator: Array, log: Array, found: Denominator, knobs: Knobs) -> Array:
    """Log p of every entry, with what is done to the probability."""
    if "negatives-ignored" in knobs:
        return numerator
    if "softmax-applied-twice" in knobs:
        return _twice(scene, log, found, knobs["softmax-applied-twice"])
    where, epsilon = knobs.get("epsilon-in-log", ("", 1.0))
    pull = scene.pull if np.ndim(scene.pull) == 0 else scene.pull[..., None]
    if where == "the denominator":
        log = log_add(log, np.full((1, 1), np.log(epsilon)))
    elif where:
        top = np.max(real(scene.logits + _ALL[where](scene, found)), axis=-1, keepdims=True)
        log = log_add(log, top + np.log(epsilon)) if where != "the ratio" else log
    log_p = pull * numerator - log
    if where == "the ratio":
        return log_add(log_p, np.full((1, 1), np.log(epsilon)))
    if "label-smoothing" in knobs:
        share = knobs["label-smoothing"]
        inside = np.isfinite(found.inside)
        spread = np.sum(np.where(inside, scene.logits - log, 0.0), axis=-1) / np.sum(inside, axis=-1)
        return (1 - share) * log_p + share * spread[..., None]
    if "softplus-threshold" in knobs:
        # -log p = softplus(x), and x is what comes out beyond the threshold.
        steep = -real(log_p) > knobs["softplus-threshold"]
        return np.where(steep, log_p - np.log1p(-np.exp(np.where(steep, log_p, -1.0))), log_p)
    if "value-saturates" in knobs:
        ceiling = np.log(knobs["value-saturates"])
        return np.where(real(log_p) > ceiling, log_p, ceiling)
    return log_p


_ALL: Mapping[str, Callable[[Scene, Denominator], Array]] = {
    "the ratio": lambda scene, found: 0.0,
    "the denominator after a shift by the maximum": lambda scene, found: 0.0,
    "the denominator after a shift by the maximum of the candidates": lambda scene, found: found.inside,
}
"""Which entries the row maximum is taken over."""


def _twice(scene: Scene, log: Array, found: Denominator, how: str) -> Array:
    """Log-softmax of probabilities; a masked entry has the probability 0, which counts exp(0) = 1 in the second one."""
    p = np.exp(scene.logits + found.inside - log)
    outside = masked(scene) if how == "with masked entries" else np.zeros_like(scene.candidates)
    second = np.where(np.isfinite(found.inside) | outside, p, -np.inf)
    return p - log_sum_exp(second)[..., None]


def reduced(rows: Rows, knobs: Knobs, reduction: str, unit: float = 0.0) -> Array:
    """One number, or the rows under the reduction ``none``."""
    values = rows.values
    weights = np.ones(values.shape[-1]) if rows.weights is None else rows.weights
    if reduction == "none":
        return values * weights
    skips = (rows.skips and "lonely-anchors-counted" not in knobs) or "lonely-anchors-skipped" in knobs
    weights = np.where(rows.pairs == 0, 0.0, weights) if skips and rows.pairs is not None else weights
    total: Any = np.sum(weights) if rows.divisor is None else rows.divisor
    weights, total = _other_mean(rows, weights, total, knobs, unit)
    total = 1.0 if (reduction == "sum") != bool({"sum-instead-of-mean", "mean-instead-of-sum"} & {*knobs}) else total
    result = np.sum(weights * values, axis=-1) / np.where(total == 0, 1.0, total)
    return result / rows.samples if "divided-by-n-twice" in knobs else result


def _other_mean(rows: Rows, weights: Array, total: Any, knobs: Knobs, unit: float) -> tuple[Array, Any]:
    """Which rows the mean is over, and what it divides by."""
    n = len(weights)
    if "mean-over-pairs" in knobs and rows.pairs is not None:
        return weights * rows.pairs, np.sum(weights * rows.pairs)
    if "last-row-missing" in knobs:
        left = np.where(np.arange(n) < n - 1, weights, 0.0)
        return left, total if knobs["last-row-missing"] == "divided by all" else np.sum(left)
    if "first-view-only" in knobs:
        left = np.where(np.arange(n) < rows.samples, weights, 0.0)
        return left, np.sum(left)
    if "mean-over-nonzero-rows" in knobs:
        left = np.where(real(rows.values) > 4 * unit * rows.size, weights, 0.0)
        return left, np.sum(left, axis=-1)
    return weights, total
