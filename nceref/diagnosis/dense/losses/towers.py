"""Two towers: queries against keys, images against texts, with or without a queue of more negatives."""

import math
from dataclasses import replace

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, embed, similarities
from nceref.diagnosis.dense.stages import contrast
from nceref.diagnosis.dense.temperatures import (
    PARTIAL_TEMPERATURES,
    SCALE_CONVENTIONS,
    TEMPERATURE_CONVENTIONS,
    temperature,
    tempered,
)
from nceref.diagnosis.tape import detached, edge
from nceref.engine.parameters import INVERSE_TEMPERATURES


def _square(inputs, roles, deviations):
    """All keys of the batch are candidates; both directions, or the one that a deviation leaves."""
    unit = embed(inputs, roles, deviations)
    one, other = ((unit[role], roles[role]) for role in ("first", "second"))
    first = _one_way(one, other, _in_direction("first", inputs), deviations)
    second = _one_way(other, one, _in_direction("second", inputs), deviations)
    if "one-direction-only" in deviations:
        return (first,)
    if "other-direction-only" in deviations:
        return (second,)
    return first, second


def _in_direction(which, inputs):
    """The inputs, whose temperature or scale has a name in each direction."""
    names = {name: f"the {name.replace('_', ' ')} in the {which} direction" for name in INVERSE_TEMPERATURES}
    return {name: edge(x, names[name]) if name in names else x for name, x in inputs.items()}


def _one_way(rows, columns, inputs, deviations):
    anchors, keys = (
        edge(x, f"the rows of {name} as {what}")
        for (x, name), what in zip((rows, columns), ("anchors", "candidates"), strict=True)
    )
    n = len(anchors)
    positives = np.eye(n)[(np.arange(n) + deviations.get("labels-shifted", 0)) % n]
    s = similarities(anchors, keys, deviations, positives)
    logits, numerator = tempered(s, positives, inputs, deviations)
    nobody, everyone = np.zeros((n, n), dtype=bool), np.ones((n, n), dtype=bool)
    return DenseBatch(
        logits, numerator, everyone, positives, nobody, temperature=temperature(inputs, deviations), samples=n
    )


def _queries(inputs, deviations):
    if inputs["negatives"] is not None:
        return _queued(inputs, {"first": "queries", "second": "keys", "queue": "negatives"}, deviations)
    batches = _square(inputs, {"first": "queries", "second": "keys"}, deviations)
    return batches if "both-directions-averaged" in deviations else batches[:1]


def _momentum(inputs, deviations):
    return _queued(inputs, {"first": "queries", "second": "keys", "queue": "queue"}, deviations)


def _queued(inputs, roles, deviations):
    """Columns: the own key, the queue, and the other keys of the batch, which are no candidates."""
    unit = embed(inputs, roles, deviations)
    q, k, queue = unit["first"], unit["second"], unit["queue"]
    n, m = q.shape[-2], queue.shape[-2]
    kind = np.repeat((0, 1, 2), (1, m, n))
    own, in_queue, excluded = (np.tile(kind == which, (n, 1)) for which in range(3))
    # The own key is a candidate already, in the first column.
    excluded[:, 1 + m :] &= ~np.eye(n, dtype=bool)
    positives = np.tile(np.arange(1 + m + n) == deviations.get("labels-shifted", 0) % (1 + m), (n, 1)).astype(float)
    pair = np.sum(edge(q, "the anchors of the positives") * k, axis=-1)[:, None]
    others = (similarities(q, x, deviations, np.zeros((n, len(x)))) for x in (queue, k))
    s = np.concatenate([pair, *others], axis=1)
    logits, numerator = tempered(s, positives, inputs, deviations)
    nobody = np.zeros_like(own)
    return (
        DenseBatch(
            logits,
            numerator,
            own | in_queue,
            positives,
            nobody,
            in_queue=in_queue,
            excluded=excluded,
            temperature=temperature(inputs, deviations),
            samples=n,
        ),
    )


def _hardest(inputs, deviations):
    """The own key and the most similar of the others, ties to the lower index."""
    batches = _square(inputs, {"first": "queries", "second": "keys"}, deviations)
    batches = batches if "both-directions-averaged" in deviations else batches[:1]
    down = "count-rounded-down" in deviations
    return tuple(replace(batch, candidates=_kept(batch, inputs["fraction"], down)) for batch in batches)


def _kept(batch, fraction, down):
    s = detached(batch.logits)
    n = len(s)
    # A product such as 0.07 * 100 lies just above the integer that is meant.
    count = (math.floor if down else math.ceil)(round(fraction * (n - 1), 9))
    count = min(n - 1, max(1, count))
    order = np.argsort(-np.where(np.eye(n, dtype=bool), -np.inf, s), axis=1, kind="stable")
    hard = np.zeros((n, n), dtype=bool)
    np.put_along_axis(hard, order[:, :count], True, axis=1)
    return hard | np.eye(n, dtype=bool)


def _symmetric(inputs, deviations):
    return _square(inputs, {"first": "image", "second": "text"}, deviations)


_EVERY = (
    *of_kind("rows", "two inputs", "mean", "softmax"), "softplus-threshold", "positive-dropped-from-denominator",
    "softmax-applied-twice", "similarity-clamped", "negatives-ignored", "first-input-detached", "negatives-detached",
)  # fmt: skip
_WARM = (*_EVERY, *TEMPERATURE_CONVENTIONS, *PARTIAL_TEMPERATURES)
_EXTRA = ("label-smoothing", "softmax-over-wrong-axis",
          "queue-not-normalized", "queue-dropped", "in-batch-negatives-added")  # fmt: skip

DENSE = DenseFamily(
    name="towers",
    losses={
        "info_nce": DenseForm(
            _queries,
            contrast,
            (*_WARM, *_EXTRA, "both-directions-averaged", "keys-detached", "a-negative-dropped"),
        ),
        "moco": DenseForm(_momentum, contrast, (*_WARM, *_EXTRA, "constants-get-gradient", "a-negative-dropped")),
        "hard_contrastive": DenseForm(
            _hardest,
            contrast,
            (*_WARM, "both-directions-averaged", "softmax-over-wrong-axis", "keys-detached", "count-rounded-down"),
        ),
        "clip": DenseForm(
            _symmetric,
            contrast,
            (
                *_EVERY,
                *SCALE_CONVENTIONS,
                "one-direction-only",
                "other-direction-only",
                "directions-summed",
                "label-smoothing",
                "a-negative-dropped",
                "keys-detached",
                "gradient-clamped",
            ),
        ),
    },
)
