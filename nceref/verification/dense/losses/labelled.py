"""Rows with labels or a mask: several positives an anchor, views, a queue, class centers."""

from dataclasses import replace
from typing import Any

import numpy as np

from nceref.verification.dense.scene import Dense, Member, Scene, beside, embed, similarities, stack, transposed
from nceref.verification.dense.stages import contrast
from nceref.verification.dense.temperatures import PLACES, TEMPERATURES, heat, tempered


def _flat(x):
    """Views below one another: all samples of the first view first."""
    if x is None or x.ndim < 3:
        return x
    x = np.swapaxes(x, -3, -2)
    return x.reshape(*x.shape[:-3], x.shape[-3] * x.shape[-2], x.shape[-1])


def _shape(inputs, views):
    """Samples and views of the embeddings as they are given, a batch axis of the complex step apart."""
    x = inputs["embeddings"]
    return (x.shape[-3], x.shape[-2]) if views else (x.shape[-2], 1)


def _samples(inputs, knobs):
    """Anchors and candidates, with the weight of each as a positive."""
    views = inputs.get("views", 0)
    n, v = _shape(inputs, views)
    given = {**inputs, "embeddings": _flat(inputs["embeddings"]) if views else inputs["embeddings"]}
    given = {"queue": None, **given}
    unit = embed(given, {"first": "embeddings", "queue": "queue"}, knobs)
    z = unit["first"]
    anchors = z[..., :n, :] if inputs.get("anchor_mode") == "one" else z
    candidates = stack(z, unit["queue"]) if "queue" in unit else z
    positives, extra, view = _positives(inputs, knobs, n, v, candidates.shape[-2])
    rows = anchors.shape[-2]
    own = np.eye(rows, candidates.shape[-2], dtype=bool)
    positives = _chosen(positives[:rows], own, knobs)
    logits, numerator = tempered(similarities(anchors, candidates, knobs, positives), positives, inputs, knobs)
    weights = inputs.get("anchor_weights")
    return Scene(
        logits, numerator, ~own, positives, own, view=view[:rows], extra=extra[:rows], heat=heat(inputs, knobs),
        anchor_weights=None if weights is None else np.tile(weights, rows // n), samples=n,
        lonely=inputs.get("no_positive", "zero"),
    )  # fmt: skip


def _positives(inputs, knobs, n, v, m):
    """Weight of every pair of rows, itself included; which are of the queue, and which of the anchor's view."""
    place = np.arange(n * v)
    sample = place // v if "views-interleaved" in knobs else place % n
    names = sample if inputs["labels"] is None else np.asarray(inputs["labels"])[sample]
    if m > n * v:
        names = np.concatenate([names, inputs["queue_labels"]])
    weights = (names[:, None] == names).astype(float)
    if inputs.get("mask") is not None:
        weights = np.asarray(inputs["mask"])[np.ix_(sample, sample)]
        weights = np.pad(weights, ((0, m - n * v), (0, m - n * v)))
    weights = (weights > 0).astype(float) if "weights-missing" in knobs else weights
    weights = np.roll(weights, knobs.get("labels-shifted", 0), axis=1)
    which = np.concatenate([place // n, np.full(m - n * v, v)])
    return weights, np.tile(np.arange(m) >= n * v, (m, 1)), which[:, None] == which


def _chosen(weights, own, knobs):
    """Which of the positives are used."""
    if "self-counted-as-positive" not in knobs:
        weights = np.where(own, 0.0, weights)
    if "first-positive-only" in knobs:
        weights = weights * (np.cumsum(weights > 0, axis=1) == 1)
    return weights


def _outside(inputs, knobs):
    """The mean over positives is outside of the logarithm."""
    base = inputs["base_temperature"]
    factor: Any = 1.0 if base is None else heat(inputs, knobs) / base
    factor = factor[..., 0] if np.ndim(factor) > 2 else factor
    return (replace(_samples(inputs, knobs), form=inputs["form"], factor=factor),)


def _inside(inputs, knobs):
    return (replace(_samples(inputs, knobs), form="in"),)


def _with_centers(inputs, knobs):
    """Class centers are candidates too, and the own one is a positive of weight 1; samples weigh alpha."""
    scene = _samples(inputs, knobs)
    n, alpha = scene.samples, 1.0 if "weights-missing" in knobs else inputs["alpha"]
    features = inputs["embeddings"] if inputs["center_features"] is None else inputs["center_features"]
    centers = np.real(inputs["centers"]) if "centers-detached" in knobs else inputs["centers"]
    if "centers-normalized" in knobs:
        centers = centers / np.sqrt(np.sum(centers * centers, axis=-1, keepdims=True))
    logits = features @ transposed(centers)
    logits = (logits / heat(inputs, knobs) if "temperature-on-centers" in knobs else logits) + _offset(inputs, knobs)
    c = logits.shape[-1]
    own_center = np.arange(c) == np.asarray(inputs["labels"])[:, None]
    inside = np.concatenate([np.zeros_like(scene.candidates), np.ones((n, c), dtype=bool)], axis=1)

    def wider(mask, fill=False):
        return np.pad(mask, ((0, 0), (0, c)), constant_values=fill)

    return (
        replace(
            scene, logits=beside(scene.logits, logits), numerator=beside(scene.numerator, logits), centers=inside,
            candidates=wider(scene.candidates, True), own=wider(scene.own), extra=wider(scene.extra), view=None,
            positives=np.concatenate([alpha * scene.positives, own_center], axis=1),
            form="sum" if inputs["form"] == "sum" else "mean",
        ),
    )  # fmt: skip


def _offset(inputs, knobs):
    """Log-prior and bias of the centers."""
    prior, bias = inputs["class_prior"], inputs["center_bias"]
    offset = 0.0
    if prior is not None and "prior-missing" not in knobs:
        offset = np.log(prior) if "prior-without-log" not in knobs else prior
        offset = -offset if "prior-subtracted" in knobs else offset
    if bias is not None and "bias-missing" not in knobs:
        bias = np.real(bias) if "bias-detached" in knobs else bias
        offset = offset + (-1 if "bias-subtracted" in knobs else 1) * bias[..., None, :]
    return offset


_EVERY = (
    "epsilon-in-norm", "candidates-detached",
    "rows-not-normalized", "rows-normalized", "columns-normalized", "matrix-normalized", *TEMPERATURES, *PLACES,
    "self-contrast-kept", "self-contrast-subtracted-as-e", "masked-entries-count-one", "mask-leaks",
    "self-mask-shifted", "positive-dropped-from-denominator", "other-positives-dropped", "phantom-candidate",
    "a-negative-dropped", "labels-shifted", "first-positive-only", "self-counted-as-positive",
    "positives-summed-inside-log", "softmax-applied-twice", "logarithm-missing", "log-of-mean", "epsilon-in-log",
    "value-saturates", "similarity-clamped", "negatives-ignored", "weights-missing", "sum-instead-of-mean",
    "mean-instead-of-sum", "mean-over-pairs", "lonely-anchors-counted", "lonely-anchors-skipped",
    "mean-over-nonzero-rows", "divided-by-n-twice", "last-row-missing", "temperature-detached", "positives-detached",
    "denominator-detached", "negatives-detached", "normalization-detached", "self-contrast-in-gradient",
    "positive-counted-twice",
)  # fmt: skip
_VIEWS = ("views-interleaved", "cross-view-only", "same-view-only", "first-view-only")
_QUEUE = ("queue-not-normalized", "queue-dropped", "constants-get-gradient")
_FORMS = ("divided-by-one-more", "positives-not-averaged", "positives-averaged", "sum-inside-log")
_CENTERS = ("centers-dropped", "centers-detached", "prior-missing", "prior-subtracted", "prior-without-log",
            "bias-missing", "bias-subtracted", "bias-detached",
            "centers-normalized", "temperature-on-centers")  # fmt: skip

DENSE = Dense(
    name="labelled",
    losses={
        "supcon_out": Member(_outside, contrast, (*_EVERY, *_VIEWS, *_QUEUE, *_FORMS)),
        "supcon_in": Member(_inside, contrast, (*_EVERY, *_VIEWS, "sum-outside-log")),
        "paco": Member(_with_centers, contrast, (*_EVERY, *_QUEUE, *_FORMS, *_CENTERS)),
    },
)  # fmt: skip
