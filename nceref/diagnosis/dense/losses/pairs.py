"""Pairs that are judged one by one: no softmax joins the candidates of a row."""

from functools import partial

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import (
    DenseBatch,
    DenseFamily,
    DenseForm,
    DenseRows,
    embed,
    log_add,
    similarities,
    softplus,
)
from nceref.diagnosis.dense.temperatures import SCALE_CONVENTIONS, inverse_temperature
from nceref.diagnosis.dense.ways.one_by_one import linear_stages, noise_stages, sigmoid_stages
from nceref.diagnosis.tape import detached, edge


def _sigmoids(inputs, deviations):
    """Logits of all pairs, and +1 for a pair that belongs together, -1 for the others."""
    unit = embed(inputs, {"first": "image", "second": "text"}, deviations)
    n = unit["first"].shape[-2]
    together = np.eye(n)[(np.arange(n) + deviations.get("labels-shifted", 0)) % n]
    s = similarities(unit["first"], unit["second"], deviations, together)
    bias = edge(inputs["logit_bias"], "the bias")
    bias = 0 * bias if "bias-missing" in deviations else -bias if "bias-subtracted" in deviations else bias
    scale = inverse_temperature(inputs, deviations)
    for kind, pairs in (("positives", together > 0), ("negatives", together == 0)):
        bias = edge(np.broadcast_to(bias, s.shape), f"the bias of the {kind}", where=pairs)
        scale = edge(np.broadcast_to(scale, s.shape), f"the scale of the {kind}", where=pairs)
    return (s + bias) * scale if "bias-before-scale" in deviations else s * scale + bias, together > 0


def _sigmoid_rows(arranged, deviations):
    logits, together = arranged
    signed = np.where(together, logits, -logits)
    if "positive-sign-flipped" in deviations:
        signed = -logits
    if "negatives-labeled-zero" in deviations:
        signed = np.where(together, logits, 0 * logits)
    terms = _surprise(signed, deviations)
    for kind, pairs in (("positives", together), ("negatives", ~together)):
        terms = edge(terms, f"the terms of the {kind}", where=pairs)
    rows = np.sum(np.where(together, terms, 0.0) if "negatives-ignored" in deviations else terms, axis=-1)
    return DenseRows(rows, size=_size(logits, rows), samples=len(together))


def _surprise(x, deviations):
    """-log sigmoid(x), with what is done to the probability."""
    if "logarithm-missing" in deviations:
        return -np.exp(-softplus(-x))
    surprise = softplus(-x)
    if "softplus-threshold" in deviations:
        return np.where(detached(-x) > deviations["softplus-threshold"], -x, surprise)
    if "epsilon-in-log" in deviations:
        return -log_add(-surprise, np.log(deviations["epsilon-in-log"][1]))
    if "value-saturates" in deviations:
        ceiling = -np.log(deviations["value-saturates"])
        return np.where(detached(surprise) < ceiling, surprise, ceiling)
    return surprise


def _size(*arrays):
    return float(sum(np.max(np.abs(detached(x)), where=np.isfinite(detached(x)), initial=0.0) for x in arrays))


def _similarities(inputs, deviations):
    unit = embed(inputs, {"first": "queries", "second": "keys"}, deviations)
    n = unit["first"].shape[-2]
    together = np.eye(n)[(np.arange(n) + deviations.get("labels-shifted", 0)) % n]
    weight = inputs["negative_weight"]
    weight = 1 / max(n - 1, 1) if weight is None else weight
    weight = 1.0 if "weights-missing" in deviations else weight
    return similarities(unit["first"], unit["second"], deviations, together), together > 0, weight


def _similarity_rows(arranged, deviations):
    """The positive pulls, the mean of the negatives pushes."""
    s, together, weight = arranged
    pull, pushed = np.sum(np.where(together, s, 0.0), axis=-1), np.where(together, 0.0, s)
    pull = edge(pull, "the terms of the positives")
    pushed = s if "diagonal-included" in deviations else pushed
    push = edge(weight * np.sum(pushed, axis=-1), "the mean of the negatives")
    push = 0 * push if "negatives-ignored" in deviations else push
    rows = (pull if "positive-sign-flipped" in deviations else -pull) + push
    return DenseRows(rows, size=_size(s, rows), samples=len(together))


def _densities(inputs, deviations):
    """Logits of data against noise, at the data and at the noise."""
    sign = 0 if "prior-missing" in deviations else -1 if "prior-subtracted" in deviations else 1
    ratio = inputs["noise_ratio"]
    inside = 0.0 if deviations.get("noise-ratio-missing") in ("in the logit", "everywhere") else np.log(ratio)
    outside = 1.0 if deviations.get("noise-ratio-missing") in ("in the mean", "everywhere") else ratio
    logits = []
    for name in ("data", "noise"):
        x, prior = inputs[f"{name}_logits"], inputs[f"{name}_log_noise"]
        x = edge(x, "the first input" if name == "data" else "the terms of the negatives")
        logits.append(x - sign * (np.exp(prior) if "prior-without-log" in deviations else prior) - inside)
    return logits[0], logits[1], outside


def _density_rows(arranged, deviations):
    data, noise, ratio = arranged
    n, m = data.shape[-1], noise.shape[-1]
    on_data = _surprise(-data if "positive-sign-flipped" in deviations else data, deviations)
    on_data = edge(on_data, "the terms of the positives")
    on_noise = ratio * n / m * _surprise(-noise, deviations)
    on_noise = 0 * on_noise if "negatives-ignored" in deviations else on_noise
    rows = np.concatenate([on_data, on_noise])
    return DenseRows(rows, size=_size(data, noise, rows), divisor=n, samples=n)


def _matrix(names, inputs):
    n = len(inputs[names[0]])
    r, everyone = np.arange(n), np.ones((n, n), dtype=bool)
    return (DenseBatch(None, None, everyone, np.eye(n), ~everyone, samples=n, inputs=inputs, rows=names, anchors=r,
                       against=n + r, labels=r, kinds=r),)  # fmt: skip


def _column(inputs):
    """No pairs: data and noise are judged one by one."""
    nobody = np.zeros((len(inputs["data_logits"]), 1), dtype=bool)
    return (DenseBatch(None, None, nobody, nobody * 1.0, nobody, samples=len(nobody), inputs=inputs),)


_ROWS = (*of_kind("rows", "two inputs"), "similarity-clamped", "labels-shifted", "keys-detached")
_EVERY = (
    *of_kind("mean"), "negatives-ignored", "positive-sign-flipped", "first-input-detached", "negatives-detached",
    "positives-detached",
)  # fmt: skip
_LOGARITHM = ("logarithm-missing", "epsilon-in-log", "value-saturates", "softplus-threshold")
_BIAS = ("bias-missing", "bias-subtracted", "bias-before-scale", "bias-detached", "temperature-detached")
_NOISE = ("prior-missing", "prior-subtracted", "prior-without-log", "noise-ratio-missing")

DENSE = DenseFamily(
    name="pairs",
    losses={
        "siglip": DenseForm(
            _sigmoids,
            _sigmoid_rows,
            (*_ROWS, *_EVERY, *_LOGARITHM, *SCALE_CONVENTIONS, *_BIAS, "gradient-clamped", "negatives-labeled-zero"),
            sigmoid_stages,
            partial(_matrix, ("image", "text")),
        ),
        "simple": DenseForm(
            _similarities,
            _similarity_rows,
            (*_ROWS, *_EVERY, "diagonal-included", "weights-missing"),
            linear_stages,
            partial(_matrix, ("queries", "keys")),
        ),
        "nce": DenseForm(_densities, _density_rows, (*_EVERY, *_LOGARITHM, *_NOISE), noise_stages, _column),
    },
)
