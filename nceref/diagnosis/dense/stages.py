"""From batches to row losses, and from row losses to one number, every step as the deviations set it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import (
    Array,
    DenseBatch,
    DenseRows,
    Deviations,
    log_add,
    log_sum_exp,
)
from nceref.diagnosis.dense.denominators import Denominator, kinds, masked, row_denominators
from nceref.diagnosis.dense.temperatures import afterward
from nceref.diagnosis.features import parts_of_rows
from nceref.diagnosis.tape import Variable, detached, edge, edges, recorded, stage

FORMS = {
    "sum-inside-log": "in",
    "sum-outside-log": "mean",
    "positives-not-averaged": "sum",
    "positives-averaged": "mean",
    "positives-summed-inside-log": "total",
    "divided-by-one-more": "one more",
}


def contrast(batches: tuple[DenseBatch, ...], deviations: Deviations) -> DenseRows:
    """Row losses of all directions, one below the other.

    `batches`: one a direction.
    """
    parts = [_rows(batch, deviations) for batch in batches]
    # One direction alone has no name.
    ways = [f"the {ordinal} direction" for ordinal in ("first", "second")] if len(parts) > 1 else [""]
    values = np.concatenate([edge(part.values, way) for part, way in zip(parts, ways, strict=True)])
    weights = None if parts[0].weights is None else np.concatenate([part.weights for part in parts])
    pairs = np.concatenate([part.pairs for part in parts])
    size, noise = (max(getattr(part, name) for part in parts) for name in ("size", "noise"))
    values = values * (2.0 if "directions-summed" in deviations else 1.0)
    return DenseRows(values, weights, pairs, parts[0].skips, size, noise, samples=batches[0].samples)


def _rows(batch: DenseBatch, deviations: Deviations) -> DenseRows:
    """Row losses of one batch."""
    batch = _sideways(batch) if "softmax-over-wrong-axis" in deviations else batch
    with np.errstate(all="ignore"):
        denominator = row_denominators(batch, deviations)
        values, pairs = _head(batch, denominator, deviations)
        values = afterward(values, batch.temperature, deviations) * batch.factor
    values = edges(values, partial(parts_of_rows, len(pairs)), "the loss of {}")
    values = _weighted_on_the_way_back(values, pairs)
    # Without a positive the head may have made NaN or inf of the row.
    alone = pairs == 0
    size = float(np.max(np.abs(detached(batch.logits)), where=np.isfinite(detached(batch.logits)), initial=0.0))
    values = np.where(alone, 0.0, values)
    return DenseRows(
        values,
        batch.anchor_weights,
        pairs,
        batch.without_positive == "skip",
        size + _largest(values),
        denominator.noise,
    )


def _weighted_on_the_way_back(values: Array, pairs: Array) -> Array:
    """Row losses, whose gradient may weigh them otherwise than the value does."""
    if isinstance(values, Variable):
        p = np.exp(-values.value)
        for name, weights in {"1 - p": 1 - p, "p": p, "the number of its positives": pairs}.items():
            other = recorded(values.value, [(values, partial(np.multiply, weights))])
            values = stage(values, other, f"the rows weighted by {name}")
    return values


def _largest(values: Array) -> float:
    return float(np.max(np.abs(detached(values)), where=np.isfinite(detached(values)), initial=0.0))


def _sideways(batch: DenseBatch) -> DenseBatch:
    """Candidates and anchors exchanged, with each entry still in its place: a softmax down the columns."""
    names = ("logits", "numerator", "candidates", "positives", "own", "same_view", "in_queue", "excluded", "centers")
    turned = {name: getattr(batch, name).T for name in names if getattr(batch, name) is not None}
    return replace(batch, **turned, numerator_factor=1.0, form=batch.form + " sideways")


def _head(batch: DenseBatch, denominator: Denominator, deviations: Deviations) -> tuple[Array, Array]:
    """Row losses, and the weight of the positives of each row."""
    positives = np.where(batch.candidates, 1.0, 0.0) if batch.positives is None else batch.positives
    form = next((FORMS[id] for id in deviations if id in FORMS), batch.form.removesuffix(" sideways"))
    form = "exponential" if "logarithm-missing" in deviations else "pooled" if "log-of-mean" in deviations else form
    numerator = edge(batch.numerator, "the numerator")
    if form == "mean" and isinstance(numerator, Variable):
        # A gradient by hand may lack the division that the mean over the positives is.
        total = np.sum(positives, axis=-1, keepdims=True)
        counted = recorded(numerator.value, [(numerator, partial(np.multiply, total))])
        numerator = stage(numerator, counted, "the mean over the positives")
    log = denominator.log if denominator.log.ndim == batch.logits.ndim else denominator.log[..., None]
    log_p = np.where(positives > 0, _shaped(batch, numerator, log, denominator, deviations), 0.0)
    log_p = edges(log_p, partial(_kinds_of_positives, batch, positives), "{} among the positives")
    if batch.form.endswith("sideways"):
        log_p, positives = log_p.T, positives.T
    total = np.sum(positives, axis=-1)
    weight = np.where(total > 0, total, 1.0)
    return _FORMS[form](log_p, positives, weight), total


def _kinds_of_positives(batch: DenseBatch, positives: Array) -> dict[str, Array]:
    largest = positives == np.max(positives, axis=-1, keepdims=True, initial=0.0)
    return {**kinds(batch), "those of the largest weight": largest, "the others": ~largest}


def _joined(log_p: Array, positives: Array) -> Array:
    """The logarithm of the weighted sum of the positives' probabilities."""
    with np.errstate(divide="ignore"):
        return log_sum_exp(np.log(positives) + log_p, of="the positives")


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


def _shaped(batch: DenseBatch, numerator: Array, log: Array, denominator: Denominator, deviations: Deviations) -> Array:
    """Log p of every entry, with what is done to the probability."""
    if "negatives-ignored" in deviations:
        return numerator
    if "softmax-applied-twice" in deviations:
        return _twice(batch, log, denominator, deviations["softmax-applied-twice"])
    where, epsilon = deviations.get("epsilon-in-log", ("", 1.0))
    factor = batch.numerator_factor if np.ndim(batch.numerator_factor) == 0 else batch.numerator_factor[..., None]
    # A constant inside the logarithm, before any shift: log(x + eps) from log x.
    if where == "the denominator":
        log = log_add(log, np.log(epsilon))
    elif where:
        # After a shift by the maximum the same constant weighs e^max times as much.
        top = np.max(detached(batch.logits + _ALL[where](batch, denominator)), axis=-1, keepdims=True)
        log = log_add(log, top + np.log(epsilon)) if where != "the ratio" else log
    log_p = factor * numerator - log
    if where == "the ratio":
        return log_add(log_p, np.log(epsilon))
    if "label-smoothing" in deviations:
        share = deviations["label-smoothing"]
        inside = np.isfinite(denominator.inside)
        spread = np.sum(np.where(inside, batch.logits - log, 0.0), axis=-1) / np.sum(inside, axis=-1)
        return (1 - share) * log_p + share * spread[..., None]
    if "softplus-threshold" in deviations:
        # -log p = softplus(x), and x is what comes out beyond the threshold.
        steep = -detached(log_p) > deviations["softplus-threshold"]
        return np.where(steep, log_p - np.log1p(-np.exp(np.where(steep, log_p, -1.0))), log_p)
    if "value-saturates" in deviations:
        ceiling = np.log(deviations["value-saturates"])
        return np.where(detached(log_p) > ceiling, log_p, ceiling)
    return log_p


_ALL: Mapping[str, Callable[[DenseBatch, Denominator], Array]] = {
    "the ratio": lambda batch, denominator: 0.0,
    "the denominator after a shift by the maximum": lambda batch, denominator: 0.0,
    "the denominator after a shift by the maximum of the candidates": lambda batch, denominator: denominator.inside,
}
"""Which entries the row maximum is taken over."""


def _twice(batch: DenseBatch, log: Array, denominator: Denominator, how: str) -> Array:
    """Log-softmax of probabilities; a masked entry has the probability 0, which counts exp(0) = 1 in the second one."""
    p = np.exp(batch.logits + denominator.inside - log)
    outside = masked(batch) if how == "with masked entries" else np.zeros_like(batch.candidates)
    second = np.where(np.isfinite(denominator.inside) | outside, p, -np.inf)
    return p - log_sum_exp(second)[..., None]


def reduced(rows: DenseRows, deviations: Deviations, reduction: str, unit: float = 0.0) -> Array:
    """One number, or the rows under the reduction ``none``.

    `unit`: unit roundoff of the run: what is 0 but for rounding.
    """
    values = rows.values
    weights = np.ones(values.shape[-1]) if rows.weights is None else rows.weights
    if reduction == "none":
        return values * weights
    skips = (rows.skips and "lonely-anchors-counted" not in deviations) or "lonely-anchors-skipped" in deviations
    weights = np.where(rows.pairs == 0, 0.0, weights) if skips and rows.pairs is not None else weights
    total: Any = np.sum(weights) if rows.divisor is None else rows.divisor
    weights, total = _other_mean(rows, weights, total, deviations, unit)
    total = (
        # Each of the two conventions turns a sum into a mean and a mean into a sum.
        1.0 if (reduction == "sum") != bool({"sum-instead-of-mean", "mean-instead-of-sum"} & {*deviations}) else total
    )
    result = np.sum(weights * values, axis=-1) / np.where(total == 0, 1.0, total)
    return result / rows.samples if "divided-by-n-twice" in deviations else result


def _other_mean(rows: DenseRows, weights: Array, total: Any, deviations: Deviations, unit: float) -> tuple[Array, Any]:
    """The weights of the rows in the mean, and its divisor."""
    n = len(weights)
    if "mean-over-pairs" in deviations and rows.pairs is not None:
        return weights * rows.pairs, np.sum(weights * rows.pairs)
    if "last-row-missing" in deviations:
        left = np.where(np.arange(n) < n - 1, weights, 0.0)
        return left, total if deviations["last-row-missing"] == "divided by all" else np.sum(left)
    if "first-view-only" in deviations:
        left = np.where(np.arange(n) < rows.samples, weights, 0.0)
        return left, total if deviations["first-view-only"] == "divided by all" else np.sum(left)
    if "mean-over-nonzero-rows" in deviations:
        # A row that is 0 but for rounding counts as 0.
        left = np.where(detached(rows.values) > 4 * unit * rows.size, weights, 0.0)
        return left, np.sum(left, axis=-1)
    return weights, total
