"""Scores of classes: the candidates of a row are the classes, and its positive is its target."""

import math

import numpy as np

from nceref.verification.dense.scene import Dense, Member, Scene, embed, real, similarities
from nceref.verification.dense.stages import contrast
from nceref.verification.dense.temperatures import SCALES, TEMPERATURES, factor, heat


def _onehot(inputs, knobs, classes):
    target = (np.asarray(inputs["target"]) + knobs.get("labels-shifted", 0)) % classes
    return np.eye(classes)[target]


def _scored(logits, target, inputs, knobs):
    nobody = np.zeros(target.shape, dtype=bool)
    return Scene(
        logits, logits, ~nobody, target, nobody, form="sum", heat=heat(inputs, knobs), samples=len(target)
    )  # fmt: skip


def _given(inputs, knobs):
    """Scores as they are, divided by the temperature, and a target that may be smoothed."""
    x = real(inputs["logits"]) if "first-input-detached" in knobs else inputs["logits"]
    classes = x.shape[-1]
    share = inputs["label_smoothing"]
    target = (1 - share) * _onehot(inputs, knobs, classes) + share / classes
    return (_scored(x * factor(inputs, knobs), target, inputs, knobs),)


def _balanced(inputs, knobs):
    """The logarithm of the class counts is added to the scores."""
    x = real(inputs["logits"]) if "first-input-detached" in knobs else inputs["logits"]
    counts = inputs["class_counts"][..., None, :]
    prior = counts if "prior-without-log" in knobs else np.log(counts)
    sign = 0 if "prior-missing" in knobs else -1 if "prior-subtracted" in knobs else 1
    sign = factor(inputs, knobs) if "prior-divided-by-temperature" in knobs else sign
    return (_scored(x * factor(inputs, knobs) + sign * prior, _onehot(inputs, knobs, x.shape[-1]), inputs, knobs),)


def _cosines(inputs, knobs):
    unit = embed(inputs, {"first": "embeddings", "centers": "class_weights"}, knobs)
    cosines = similarities(unit["first"], unit["centers"], knobs)
    return cosines, _onehot(inputs, knobs, cosines.shape[-1])


def _angular(inputs, knobs):
    """The margin is added to the angle of the target."""
    cosines, target = _cosines(inputs, knobs)
    margin = _margin(inputs, knobs)
    if {"margin-multiplied", "margin-not-scaled"} & {*knobs}:
        return (_subtracted(cosines, target, margin, inputs, knobs),)
    sine = np.sqrt(1 - cosines * cosines)
    moved = cosines * np.cos(margin) - sine * np.sin(margin)
    if inputs["fallback"] == "linear":
        beyond = real(cosines) < np.cos(np.pi - margin)
        moved = np.where(beyond, cosines - margin * np.sin(margin), moved)
    where = np.ones_like(target) if "margin-on-every-class" in knobs else target
    return (_scored(np.where(where > 0, moved, cosines) * factor(inputs, knobs), target, inputs, knobs),)


def _margin(inputs, knobs):
    margin = 0.0 if "margin-missing" in knobs else inputs["margin"]
    margin = -margin if "margin-added" in knobs else margin
    return math.radians(margin) if "margin-in-degrees" in knobs else margin


def _lowered(inputs, knobs):
    """The margin is subtracted from the cosine of the target."""
    cosines, target = _cosines(inputs, knobs)
    return (_subtracted(cosines, target, _margin(inputs, knobs), inputs, knobs),)


def _subtracted(cosines, target, margin, inputs, knobs):
    where = np.ones_like(target) if "margin-on-every-class" in knobs else target
    scale = factor(inputs, knobs)
    logits = cosines * scale - margin * where * (1.0 if "margin-not-scaled" in knobs else scale)
    return _scored(logits, target, inputs, knobs)


_EVERY = (
    "positive-dropped-from-denominator", "positive-counted-twice", "phantom-candidate", "a-negative-dropped",
    "softmax-over-wrong-axis", "labels-shifted", "softmax-applied-twice", "logarithm-missing", "log-of-mean",
    "epsilon-in-log", "value-saturates", "negatives-ignored", "sum-instead-of-mean", "mean-instead-of-sum",
    "mean-over-nonzero-rows", "divided-by-n-twice", "last-row-missing", "first-input-detached",
    "temperature-detached", "positives-detached", "denominator-detached",
)  # fmt: skip
_ROWS = (
    "label-smoothing", "epsilon-in-norm",
    "rows-not-normalized", "rows-normalized", "first-input-not-normalized", "second-input-not-normalized",
    "columns-normalized", "matrix-normalized", "similarity-clamped", "margin-missing", "margin-on-every-class",
    "margin-added", "margin-not-scaled", *SCALES, "normalization-detached", "centers-detached", "gradient-clamped",
)  # fmt: skip
_PRIOR = (
    "prior-missing", "prior-subtracted", "prior-without-log", "prior-divided-by-temperature", "label-smoothing",
)  # fmt: skip

DENSE = Dense(
    name="classes",
    losses={
        "cross_entropy": Member(_given, contrast, (*_EVERY, *TEMPERATURES)),
        "balanced_softmax": Member(_balanced, contrast, (*_EVERY, *TEMPERATURES, *_PRIOR)),
        "arcface": Member(_angular, contrast, (*_EVERY, *_ROWS, "margin-in-degrees", "margin-multiplied")),
        "cosface": Member(_lowered, contrast, (*_EVERY, *_ROWS)),
    },
)  # fmt: skip
