"""Scores of classes: the candidates of a row are the classes, and its positive is its target."""

import math
from functools import partial

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, embed, similarities
from nceref.diagnosis.dense.stages import contrast
from nceref.diagnosis.dense.temperatures import (
    SCALE_CONVENTIONS,
    TEMPERATURE_CONVENTIONS,
    inverse_temperature,
    log_counts,
    temperature,
)
from nceref.diagnosis.dense.ways.lineup import compared, over_temperature, softmaxed
from nceref.diagnosis.dense.ways.logits import curves, numbered_ways, tempered_ways
from nceref.diagnosis.dense.ways.smoothing import smoothed
from nceref.diagnosis.dense.ways.way import Stage, Way
from nceref.diagnosis.tape import detached, edge, recorded, stage


def _onehot(inputs, deviations, classes):
    target = (np.asarray(inputs["target"]) + deviations.get("labels-shifted", 0)) % classes
    return np.eye(classes)[target]


def _scored(logits, target, inputs, deviations):
    # The weights of a target add up to 1, so that their sum is their mean.
    nobody = np.zeros(target.shape, dtype=bool)
    return DenseBatch(
        logits,
        logits,
        ~nobody,
        target,
        nobody,
        form="sum",
        temperature=temperature(inputs, deviations),
        samples=len(target),
        inputs=inputs,
        rows=("embeddings", "class_weights") if "class_weights" in inputs else (),
        anchors=np.arange(len(target)),
        against=len(target) + np.arange(target.shape[1]),
        labels=np.asarray(inputs["target"]),
        kinds=np.arange(target.shape[1]),
    )


def _given(inputs, deviations):
    """Scores as they are, divided by the temperature, and a target that may be smoothed."""
    x = edge(inputs["logits"], "the first input")
    classes = x.shape[-1]
    share = inputs["label_smoothing"]
    target = (1 - share) * _onehot(inputs, deviations, classes) + share / classes
    return (_scored(x * inverse_temperature(inputs, deviations), target, inputs, deviations),)


def _balanced(inputs, deviations):
    """The logarithm of the class counts is added to the scores."""
    x = edge(inputs["logits"], "the first input")
    scores = x * inverse_temperature(inputs, deviations)
    prior = log_counts(inputs["class_counts"][..., None, :], inputs, deviations, "prior")
    return (_scored(scores + prior, _onehot(inputs, deviations, x.shape[-1]), inputs, deviations),)


def _cosines(inputs, deviations):
    unit = embed(inputs, {"first": "embeddings", "centers": "class_weights"}, deviations)
    target = _onehot(inputs, deviations, len(unit["centers"]))
    return similarities(unit["first"], unit["centers"], deviations, target), target


def _angular(inputs, deviations):
    """The margin is added to the angle of the target."""
    cosines, target = _cosines(inputs, deviations)
    margin = _margin(inputs, deviations)
    if {"margin-multiplied", "margin-not-scaled"} & {*deviations}:
        return (_subtracted(cosines, target, margin, inputs, deviations),)
    # By the addition theorem, whose gradient is finite where that of the angle is not.
    square = 1 - cosines * cosines
    # A cosine may be rounded beyond 1.
    sine = edge(np.sqrt(np.where(square > 0, square, 0.0)), "the sine of the angle")
    moved = cosines * np.cos(margin) - sine * np.sin(margin)
    slope = -(detached(sine) * np.cos(detached(margin)) + detached(cosines) * np.sin(detached(margin)))
    moved = stage(moved, recorded(detached(moved), [(cosines, lambda g: g * slope)]), "the arccosine")
    if inputs["fallback"] == "linear":
        # From there on cos(angle + margin) rises again with the angle.
        beyond = cosines < np.cos(np.pi - margin)
        moved = np.where(beyond, cosines - margin * np.sin(margin), moved)
    where = np.ones_like(target) if "margin-on-every-class" in deviations else target
    harder = np.where(where > 0, stage(moved, cosines, "the margin"), cosines)
    return (_scored(harder * inverse_temperature(inputs, deviations), target, inputs, deviations),)


def _margin(inputs, deviations):
    margin = 0.0 if "margin-missing" in deviations else inputs["margin"]
    margin = -margin if "margin-added" in deviations else margin
    return math.radians(margin) if "margin-in-degrees" in deviations else margin


def _lowered(inputs, deviations):
    """The margin is subtracted from the cosine of the target."""
    cosines, target = _cosines(inputs, deviations)
    return (_subtracted(cosines, target, _margin(inputs, deviations), inputs, deviations),)


def _subtracted(cosines, target, margin, inputs, deviations):
    where = np.ones_like(target) if "margin-on-every-class" in deviations else target
    scale = inverse_temperature(inputs, deviations)
    logits = cosines * scale - margin * where * (1.0 if "margin-not-scaled" in deviations else scale)
    return _scored(logits, target, inputs, deviations)


def _unsmoothed(inputs):
    """The batches with the target alone: a way of the positives smooths it."""
    return _given({**inputs, "label_smoothing": 0.0}, {})


def _margin_stages(curve, inputs, reduction):
    below = ("cos theta - m sin m",) if inputs.get("fallback") == "linear" else ()
    first = compared(("embeddings", "class_weights"), inputs)
    return softmaxed(first, curves(curve, *below), *_TEXTS, reduction)


def _score_stages(logits, inputs, reduction):
    given = Stage("similarities", "", (Way("x_ik", lambda batch, c: batch.inputs["logits"]),))
    share = float(inputs.get("label_smoothing") or 0.0)
    positives = smoothed(share) if share else _TEXTS[0]
    return softmaxed((given,), Stage("logits", "l_ik = ", logits()), positives, _TEXTS[1], reduction, "sum")


def _tempered_scores():
    return tempered_ways(over_temperature, "x_ik/T")


_TEXTS = ("the target", "all classes")

_EVERY = (
    *of_kind("mean", "softmax"), "positive-dropped-from-denominator", "a-negative-dropped", "softmax-over-wrong-axis",
    "softmax-applied-twice", "negatives-ignored", "first-input-detached",
)  # fmt: skip
_ROWS = (
    *of_kind("rows", "two inputs"), *SCALE_CONVENTIONS, "label-smoothing", "similarity-clamped", "margin-missing",
    "margin-on-every-class", "margin-added", "margin-not-scaled", "centers-detached", "gradient-clamped",
)  # fmt: skip
_PRIOR = (
    "prior-missing", "prior-subtracted", "prior-without-log", "prior-divided-by-temperature", "label-smoothing",
)  # fmt: skip

DENSE = DenseFamily(
    name="classes",
    losses={
        "cross_entropy": DenseForm(
            _given,
            contrast,
            (*_EVERY, *TEMPERATURE_CONVENTIONS),
            partial(_score_stages, _tempered_scores),
            _unsmoothed,
        ),
        "balanced_softmax": DenseForm(
            _balanced, contrast, (*_EVERY, *TEMPERATURE_CONVENTIONS, *_PRIOR), partial(_score_stages, numbered_ways)
        ),
        "arcface": DenseForm(
            _angular,
            contrast,
            (*_EVERY, *_ROWS, "margin-in-degrees", "margin-multiplied"),
            partial(_margin_stages, "cos(theta + m)"),
        ),
        "cosface": DenseForm(_lowered, contrast, (*_EVERY, *_ROWS), partial(_margin_stages, "cos theta - m")),
    },
)
