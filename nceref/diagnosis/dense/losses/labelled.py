"""Rows with labels or a mask: several positives an anchor, views, a queue, class centers."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import (
    DenseBatch,
    DenseFamily,
    DenseForm,
    embed,
    flat,
    similarities,
)
from nceref.diagnosis.dense.stages import contrast
from nceref.diagnosis.dense.temperatures import (
    PARTIAL_TEMPERATURES,
    TEMPERATURE_CONVENTIONS,
    temperature,
    tempered,
)
from nceref.diagnosis.dense.ways.centers import logits_stage, positives_stage
from nceref.diagnosis.dense.ways.lineup import compared, paired, softmaxed
from nceref.diagnosis.tape import edge


def _shape(inputs, views):
    """Samples and views of the embeddings as they are given."""
    x = inputs["embeddings"]
    return x.shape[:2] if views else (len(x), 1)


def _samples(inputs, deviations):
    """Anchors and candidates, with the weight of each as a positive."""
    views = inputs.get("views", 0)
    n, v = _shape(inputs, views)
    given = {**inputs, "embeddings": flat(inputs["embeddings"]) if views else inputs["embeddings"]}
    given = {"queue": None, **given}
    unit = embed(given, {"first": "embeddings", "queue": "queue"}, deviations)
    z = unit["first"]
    anchors = z[:n] if inputs.get("anchor_mode") == "one" else z
    batch = edge(z, "the rows of the batch as candidates")
    candidates = np.concatenate([batch, unit["queue"]]) if "queue" in unit else batch
    positives, in_queue, view, names = _positives(inputs, deviations, n, v, candidates.shape[-2])
    rows = anchors.shape[-2]
    own = np.eye(rows, candidates.shape[-2], dtype=bool)
    positives = _chosen(positives[:rows], own, deviations)
    logits, numerator = tempered(
        partial(similarities, anchors, candidates, deviations, positives, view[:rows]), positives, inputs, deviations
    )
    weights = inputs.get("anchor_weights")
    return DenseBatch(
        logits,
        numerator,
        ~own,
        positives,
        own,
        same_view=view[:rows],
        in_queue=in_queue[:rows],
        temperature=temperature(inputs, deviations),
        anchor_weights=None if weights is None else np.tile(weights, rows // n),
        samples=n,
        without_positive=inputs.get("no_positive", "zero"),
        inputs=inputs,
        rows=_names(inputs),
        anchors=np.arange(rows),
        against=np.arange(len(candidates)),
        labels=names[:rows],
        kinds=names,
    )


def _names(inputs):
    return ("embeddings", *(name for name in ("queue",) if inputs.get(name) is not None))


def _positives(inputs, deviations, n, v, m):
    """Weight of every pair of rows, itself included; which are of the queue, and of the anchor's view; classes."""
    place = np.arange(n * v)
    sample = {
        "positives interleaved": place // v,
        "rows interleaved": (place % n * v + place // n) % n,
    }.get(deviations.get("views-interleaved"), place % n)
    names = sample if inputs["labels"] is None else np.asarray(inputs["labels"])[sample]
    if m > n * v:
        names = np.concatenate([names, inputs["queue_labels"]])
    weights = (names[:, None] == names).astype(float)
    if inputs.get("mask") is not None:
        weights = np.asarray(inputs["mask"])[np.ix_(sample, sample)]
        # The mask is of the samples only: rows of the queue are nobody's positives beside it.
        weights = np.pad(weights, ((0, m - n * v), (0, m - n * v)))
    weights = (weights > 0).astype(float) if "weights-missing" in deviations else weights
    weights = np.roll(weights, deviations.get("labels-shifted", 0), axis=1)
    # The queue counts as one more view, to which no anchor belongs.
    which = np.concatenate([place // n, np.full(m - n * v, v)])
    return weights, np.tile(np.arange(m) >= n * v, (m, 1)), which[:, None] == which, names


def _chosen(weights, own, deviations):
    """The positives that are used."""
    if "self-counted-as-positive" not in deviations:
        weights = np.where(own, 0.0, weights)
    if "first-positive-only" in deviations:
        weights = weights * (np.cumsum(weights > 0, axis=1) == 1)
    return weights


def _outside(inputs, deviations):
    """The mean over positives is outside of the logarithm."""
    base = inputs["base_temperature"]
    outside = edge(temperature(inputs, deviations), "the temperature before the mean")
    factor: Any = 1.0 if base is None else outside / base
    return (replace(_samples(inputs, deviations), form=inputs["form"], factor=factor),)


def _inside(inputs, deviations):
    return (replace(_samples(inputs, deviations), form="in"),)


def _with_centers(inputs, deviations):
    """Class centers are candidates too, and the own one is a positive of weight 1; samples weigh alpha."""
    batch = _samples(inputs, deviations)
    n, alpha = batch.samples, 1.0 if "weights-missing" in deviations else inputs["alpha"]
    features = inputs["embeddings"] if inputs["center_features"] is None else inputs["center_features"]
    centers = edge(inputs["centers"], "the centers")
    if "centers-normalized" in deviations:
        centers = centers / np.sqrt(np.sum(centers * centers, axis=-1, keepdims=True))
    logits = edge(edge(features, "the features beside the centers") @ centers.T, "the similarities to the centers")
    logits = (logits / temperature(inputs, deviations) if "temperature-on-centers" in deviations else logits) + _offset(
        inputs, deviations
    )
    c = logits.shape[-1]
    own_center = np.arange(c) == np.asarray(inputs["labels"])[:, None]
    inside = np.concatenate([np.zeros_like(batch.candidates), np.ones((n, c), dtype=bool)], axis=1)

    def wider(mask, fill=False):
        return np.pad(mask, ((0, 0), (0, c)), constant_values=fill)

    return (
        replace(
            batch,
            logits=np.concatenate([batch.logits, logits], axis=1),
            numerator=np.concatenate([batch.numerator, logits], axis=1),
            centers=inside,
            kinds=np.concatenate([batch.kinds, np.arange(c)]),
            candidates=wider(batch.candidates, True),
            own=wider(batch.own),
            in_queue=wider(batch.in_queue),
            same_view=wider(batch.same_view),
            positives=np.concatenate([alpha * batch.positives, own_center], axis=1),
            form="sum" if inputs["form"] == "sum" else "mean",
        ),
    )


def _offset(inputs, deviations):
    """Log-prior and bias of the centers."""
    prior, bias = inputs["class_prior"], inputs["center_bias"]
    offset = 0.0
    if prior is not None and "prior-missing" not in deviations:
        offset = np.log(prior) if "prior-without-log" not in deviations else prior
        offset = -offset if "prior-subtracted" in deviations else offset
    if bias is not None and "bias-missing" not in deviations:
        bias = edge(bias, "the bias")
        offset = offset + (-1 if "bias-subtracted" in deviations else 1) * bias[..., None, :]
    return offset


def _whole(arrange, inputs):
    """The batch; none where rows have weights or are left out, for which means have no ways."""
    (batch,) = arrange(inputs, {})
    lonely = batch.without_positive == "skip" and not np.all(np.any(batch.together, axis=1))
    return None if lonely or batch.anchor_weights is not None else (batch,)


def _stages(form, inputs, reduction):
    base = inputs.get("base_temperature")
    factor = None if base is None else (lambda batch: 1 / (batch.scale * base))
    form = form or inputs.get("form") or "mean"
    texts = "the other candidates of the label", "all j != i"
    return paired(_names(inputs), *texts, inputs, reduction, base=form, factor=factor)


def _center_stages(inputs, reduction):
    form = "mean" if inputs.get("form") == "normalized" else "sum"
    first = compared(_names(inputs), inputs)
    return softmaxed(first, logits_stage(), positives_stage(), "all j != i and all centers", reduction, form)


_EVERY = (
    *of_kind("rows", "mean", "softmax", "self"), *TEMPERATURE_CONVENTIONS, *PARTIAL_TEMPERATURES,
    "positive-dropped-from-denominator", "other-positives-dropped", "a-negative-dropped", "first-positive-only",
    "self-counted-as-positive", "positives-summed-inside-log", "softmax-applied-twice", "similarity-clamped",
    "negatives-ignored", "weights-missing", "mean-over-pairs", "lonely-anchors-counted", "lonely-anchors-skipped",
    "negatives-detached",
)  # fmt: skip
_VIEWS = of_kind("views")
_QUEUE = ("queue-not-normalized", "queue-dropped", "constants-get-gradient")
_FORMS = ("divided-by-one-more", "positives-not-averaged", "positives-averaged", "sum-inside-log")
_CENTERS = ("centers-dropped", "centers-detached", "prior-missing", "prior-subtracted", "prior-without-log",
            "bias-missing", "bias-subtracted", "bias-detached",
            "centers-normalized", "temperature-on-centers")  # fmt: skip

DENSE = DenseFamily(
    name="labelled",
    losses={
        "supcon_out": DenseForm(
            _outside, contrast, (*_EVERY, *_VIEWS, *_QUEUE, *_FORMS), partial(_stages, ""), partial(_whole, _outside)
        ),
        "supcon_in": DenseForm(
            _inside, contrast, (*_EVERY, *_VIEWS, "sum-outside-log"), partial(_stages, "in"), partial(_whole, _inside)
        ),
        "paco": DenseForm(
            _with_centers,
            contrast,
            (*_EVERY, *_QUEUE, *_FORMS, *_CENTERS),
            _center_stages,
            partial(_whole, _with_centers),
        ),
    },
)
