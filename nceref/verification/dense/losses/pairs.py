"""Pairs that are judged one by one: no softmax joins the candidates of a row."""

import numpy as np

from nceref.verification.dense.scene import Dense, Member, Rows, embed, log_add, real, similarities, softplus
from nceref.verification.dense.temperatures import SCALES, factor


def _sigmoids(inputs, knobs):
    """Logits of all pairs, and +1 for a pair that belongs together, -1 for the others."""
    unit = embed(inputs, {"first": "image", "second": "text"}, knobs)
    n = unit["first"].shape[-2]
    together = np.eye(n)[(np.arange(n) + knobs.get("labels-shifted", 0)) % n]
    s = similarities(unit["first"], unit["second"], knobs, together)
    bias = real(inputs["logit_bias"]) if "bias-detached" in knobs else inputs["logit_bias"]
    bias = 0 * bias if "bias-missing" in knobs else -bias if "bias-subtracted" in knobs else bias
    scale = factor(inputs, knobs)
    return (s + bias) * scale if "bias-before-scale" in knobs else s * scale + bias, together > 0


def _sigmoid_rows(arranged, knobs):
    logits, together = arranged
    signed = np.where(together, logits, -logits)
    if "positive-sign-flipped" in knobs:
        signed = -logits
    if "negatives-labeled-zero" in knobs:
        signed = np.where(together, logits, 0 * logits)
    terms = _surprise(signed, knobs)
    terms = np.where(together, real(terms), terms) if "positives-detached" in knobs else terms
    terms = np.where(together, terms, real(terms)) if "negatives-detached" in knobs else terms
    rows = np.sum(np.where(together, terms, 0.0) if "negatives-ignored" in knobs else terms, axis=-1)
    return Rows(rows, size=_size(logits, rows), samples=len(together))


def _surprise(x, knobs):
    """-log sigmoid(x), with what is done to the probability."""
    if "logarithm-missing" in knobs:
        return -np.exp(-softplus(-x))
    surprise = softplus(-x)
    if "softplus-threshold" in knobs:
        return np.where(real(-x) > knobs["softplus-threshold"], -x, surprise)
    if "epsilon-in-log" in knobs:
        return -log_add(-surprise, np.full((1, 1), np.log(knobs["epsilon-in-log"][1])))
    if "value-saturates" in knobs:
        ceiling = -np.log(knobs["value-saturates"])
        return np.where(real(surprise) < ceiling, surprise, ceiling)
    return surprise


def _size(*arrays):
    return float(sum(np.max(np.abs(real(x)), where=np.isfinite(real(x)), initial=0.0) for x in arrays))


def _similarities(inputs, knobs):
    unit = embed(inputs, {"first": "queries", "second": "keys"}, knobs)
    n = unit["first"].shape[-2]
    together = np.eye(n)[(np.arange(n) + knobs.get("labels-shifted", 0)) % n]
    weight = inputs["negative_weight"]
    weight = 1 / max(n - 1, 1) if weight is None else weight
    weight = 1.0 if "weights-missing" in knobs else weight
    return similarities(unit["first"], unit["second"], knobs, together), together > 0, weight


def _similarity_rows(arranged, knobs):
    """The positive pulls, the mean of the negatives pushes."""
    s, together, weight = arranged
    pull, pushed = np.sum(np.where(together, s, 0.0), axis=-1), np.where(together, 0.0, s)
    pull = real(pull) if "positives-detached" in knobs else pull
    pushed = s if "diagonal-included" in knobs else pushed
    push = weight * np.sum(pushed, axis=-1)
    push = 0 * push if "negatives-ignored" in knobs else push
    rows = (pull if "positive-sign-flipped" in knobs else -pull) + push
    return Rows(rows, size=_size(s, rows), samples=len(together))


def _densities(inputs, knobs):
    """Logits of data against noise, at the data and at the noise."""
    sign = 0 if "prior-missing" in knobs else -1 if "prior-subtracted" in knobs else 1
    ratio = inputs["noise_ratio"]
    inside = 0.0 if knobs.get("noise-ratio-missing") in ("in the logit", "everywhere") else np.log(ratio)
    outside = 1.0 if knobs.get("noise-ratio-missing") in ("in the mean", "everywhere") else ratio
    found = []
    for name in ("data", "noise"):
        x, prior = inputs[f"{name}_logits"], inputs[f"{name}_log_noise"]
        x = real(x) if name == "data" and "first-input-detached" in knobs else x
        x = real(x) if name == "noise" and "negatives-detached" in knobs else x
        found.append(x - sign * (np.exp(prior) if "prior-without-log" in knobs else prior) - inside)
    return found[0], found[1], outside


def _density_rows(arranged, knobs):
    data, noise, ratio = arranged
    n, m = data.shape[-1], noise.shape[-1]
    on_data = _surprise(-data if "positive-sign-flipped" in knobs else data, knobs)
    on_noise = ratio * n / m * _surprise(-noise, knobs)
    on_noise = 0 * on_noise if "negatives-ignored" in knobs else on_noise
    lead = np.broadcast_shapes(on_data.shape[:-1], on_noise.shape[:-1])
    rows = np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (on_data, on_noise)], axis=-1)
    return Rows(rows, size=_size(data, noise, rows), divisor=n, samples=n)


_ROWS = (
    "rows-not-normalized", "rows-normalized", "first-input-not-normalized", "second-input-not-normalized",
    "columns-normalized", "matrix-normalized", "epsilon-in-norm",
    "similarity-clamped", "labels-shifted", "normalization-detached",
    "keys-detached",
)  # fmt: skip
_EVERY = (
    "negatives-ignored", "positive-sign-flipped", "sum-instead-of-mean", "mean-instead-of-sum", "divided-by-n-twice",
    "last-row-missing", "first-input-detached", "negatives-detached", "positives-detached",
)  # fmt: skip
_LOGARITHM = ("logarithm-missing", "epsilon-in-log", "value-saturates", "softplus-threshold")
_BIAS = ("bias-missing", "bias-subtracted", "bias-before-scale", "bias-detached", "temperature-detached")
_NOISE = ("prior-missing", "prior-subtracted", "prior-without-log", "noise-ratio-missing")

DENSE = Dense(
    name="pairs",
    losses={
        "siglip": Member(
            _sigmoids, _sigmoid_rows, (*_ROWS, *_EVERY, *_LOGARITHM, *SCALES, *_BIAS, "gradient-clamped",
             "negatives-labeled-zero")
        ),
        "simple": Member(_similarities, _similarity_rows, (*_ROWS, *_EVERY, "diagonal-included", "weights-missing")),
        "nce": Member(_densities, _density_rows, (*_EVERY, *_LOGARITHM, *_NOISE)),
    },
)  # fmt: skip
