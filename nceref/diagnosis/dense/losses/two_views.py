"""Two views of every sample below one another: each row is an anchor, all the others are candidates."""

from dataclasses import replace
from functools import partial

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, embed, similarities
from nceref.diagnosis.dense.stages import contrast
from nceref.diagnosis.dense.temperatures import (
    PARTIAL_TEMPERATURES,
    TEMPERATURE_CONVENTIONS,
    inverse_temperature,
    temperature,
    tempered,
)
from nceref.diagnosis.dense.ways.estimates import estimated, weighed
from nceref.diagnosis.dense.ways.lineup import compared, mean_stage, paired, tempered_stage
from nceref.diagnosis.dense.ways.pairs import denominator_stage
from nceref.diagnosis.tape import detached, edge

_NAMES = ("z1", "z2")
ROLES = dict(zip(("first", "second"), _NAMES, strict=True))


def _views(inputs, deviations):
    """All rows against all rows; the positive is the other view of the sample."""
    unit = embed(inputs, ROLES, deviations)
    n = len(unit["first"])
    anchors, candidates = (
        np.concatenate([edge(unit[role], f"the rows of {name} as {what}") for role, name in ROLES.items()])
        for what in ("anchors", "candidates")
    )
    rows = np.arange(2 * n)
    partner = _partner(rows, n, deviations.get("views-interleaved"))
    partner = rows if "anchor-as-positive" in deviations else (partner + deviations.get("labels-shifted", 0)) % (2 * n)
    positives, own = (rows == partner[:, None]).astype(float), np.eye(2 * n, dtype=bool)
    view = (rows[:, None] < n) == (rows < n)
    similar = partial(similarities, anchors, candidates, deviations, positives, view)
    logits, numerator = tempered(similar, positives, inputs, deviations)
    return DenseBatch(
        logits, numerator, ~own, positives, own, same_view=view, temperature=temperature(inputs, deviations), samples=n,
        inputs=inputs, rows=_NAMES, anchors=rows, against=rows, labels=rows % n, kinds=rows % n,
    )  # fmt: skip


def _partner(rows, n, interleaved):
    """The place of the other view of each row; with rows or positives interleaved, of what is taken for it."""
    if interleaved == "positives interleaved":
        return rows ^ 1
    if interleaved is None:
        return (rows + n) % (2 * n)
    # From the place of a row in z1_0, z2_0, z1_1, z2_1, ... to that of its partner there, and back.
    other = (rows % n * 2 + rows // n + n) % (2 * n)
    return other % 2 * n + other // 2


def _with_positive(inputs, deviations):
    return (_views(inputs, deviations),)


def _decoupled(inputs, deviations):
    """The positive is outside of the denominator."""
    batch = _views(inputs, deviations)
    return (replace(batch, candidates=batch.candidates & ~(batch.positives > 0)),)


def _weighted(inputs, deviations):
    """Decoupled, with a weight on each positive that is largest where the views are far from each other."""
    (batch,) = _decoupled(inputs, deviations)
    if "weights-missing" in deviations:
        return (batch,)
    unit = embed(inputs, ROLES, deviations)
    closeness = np.sum(unit["first"] * unit["second"], axis=-1) / inputs["sigma"]
    closeness = edge(closeness, "the weights", passes=0.0)
    mass = np.exp(closeness - np.max(detached(closeness), axis=-1, keepdims=True))
    weight = 2 - mass / np.mean(mass, axis=-1, keepdims=True)
    return (replace(batch, numerator_factor=np.concatenate([weight, weight], axis=-1)),)


def _estimated(inputs, deviations):
    """The denominator holds an estimate of the true negatives."""
    batch = _views(inputs, deviations)
    t = temperature(inputs, deviations)
    # The floor is the smallest sum that unit rows can have; a temperature that is not used is not used here either.
    own = {"temperature-missing", "temperature-ignored", "temperature-off-by-a-factor"} & {*deviations}
    floor = -inverse_temperature(inputs, deviations) if own else -1 / t
    return (replace(batch, estimate=(inputs["positive_prior"], inputs.get("concentration", 0.0), floor)),)


def _without_positive(inputs):
    return _decoupled(inputs, {})


def _coupled_stages(inputs, reduction):
    return paired(_NAMES, "the other view", "all j != i", inputs, reduction)


def _decoupled_stages(inputs, reduction):
    return paired(_NAMES, "the other view", "all j but i and p", inputs, reduction)


def _weighted_stages(inputs, reduction):
    first = *compared(_NAMES, inputs), tempered_stage(inputs), denominator_stage("all j but i and p")
    return *first, *weighed(), mean_stage(reduction)


def _estimated_stages(inputs, reduction):
    return *compared(_NAMES, inputs), tempered_stage(inputs), *estimated(), mean_stage(reduction)


_EVERY = (
    *of_kind("rows", "two inputs", "mean", "softmax", "self", "views"), *TEMPERATURE_CONVENTIONS, *PARTIAL_TEMPERATURES,
    "anchor-as-positive", "other-view-detached", "a-negative-dropped", "similarity-clamped", "first-input-detached",
    "keys-detached", "negatives-detached",
)  # fmt: skip
_PROBABILITY = ("softplus-threshold", "softmax-applied-twice", "negatives-ignored", "positive-dropped-from-denominator")
_OUTSIDE = ("positive-kept-in-denominator", "denominators-added-as-logs", "negatives-ignored")
_CORRECTED = ("correction-missing", "positive-dropped-from-denominator", "softplus-threshold")

DENSE = DenseFamily(
    name="two_views",
    losses={
        "nt_xent": DenseForm(
            _with_positive, contrast, (*_EVERY, *_PROBABILITY, "denominators-added-as-logs"), _coupled_stages
        ),
        "dcl": DenseForm(_decoupled, contrast, (*_EVERY, *_OUTSIDE), _decoupled_stages),
        "dclw": DenseForm(
            _weighted, contrast, (*_EVERY, *_OUTSIDE, "weights-missing", "weights-not-detached"), _weighted_stages
        ),
        "debiased": DenseForm(_estimated, contrast, (*_EVERY, *_CORRECTED), _estimated_stages, _without_positive),
        "hcl": DenseForm(
            _estimated,
            contrast,
            (*_EVERY, *_CORRECTED, "importance-weights-missing", "weights-detached"),
            _estimated_stages,
            _without_positive,
        ),
    },
)
