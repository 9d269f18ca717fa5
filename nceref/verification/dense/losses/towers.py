"""Two towers: queries against keys, images against texts, with or without a queue of more negatives."""

import math
from dataclasses import replace

import numpy as np

from nceref.verification.dense.scene import Dense, Member, Scene, beside, embed, real, similarities
from nceref.verification.dense.stages import contrast
from nceref.verification.dense.temperatures import PLACES, SCALES, TEMPERATURES, heat, tempered


def _square(inputs, roles, knobs):
    """All keys of the batch are candidates; both directions where they are asked for."""
    unit = embed(inputs, roles, knobs)
    towers = unit["first"], unit["second"]
    first = _one_way(*towers, inputs, knobs)
    second = _one_way(*towers[::-1], inputs, knobs)
    if "one-direction-only" in knobs:
        return (first,)
    if "other-direction-only" in knobs:
        return (second,)
    return first, second


def _one_way(anchors, keys, inputs, knobs):
    n = anchors.shape[-2]
    positives = np.eye(n)[(np.arange(n) + knobs.get("labels-shifted", 0)) % n]
    s = similarities(anchors, keys, knobs, positives)
    logits, numerator = tempered(s, positives, inputs, knobs)
    nobody, everyone = np.zeros((n, n), dtype=bool), np.ones((n, n), dtype=bool)
    return Scene(logits, numerator, everyone, positives, nobody, heat=heat(inputs, knobs), samples=n)


def _queries(inputs, knobs):
    if inputs["negatives"] is not None:
        return _queued(inputs, {"first": "queries", "second": "keys", "queue": "negatives"}, knobs)
    scenes = _square(inputs, {"first": "queries", "second": "keys"}, knobs)
    return scenes if "both-directions-averaged" in knobs else scenes[:1]


def _momentum(inputs, knobs):
    return _queued(inputs, {"first": "queries", "second": "keys", "queue": "queue"}, knobs)


def _queued(inputs, roles, knobs):
    """Columns: the own key, the queue, and the other keys of the batch, which are no candidates."""
    unit = embed(inputs, roles, knobs)
    q, k, queue = unit["first"], unit["second"], unit["queue"]
    n, m = q.shape[-2], queue.shape[-2]
    kind = np.repeat((0, 1, 2), (1, m, n))
    own, extra, spare = (np.tile(kind == which, (n, 1)) for which in range(3))
    spare[:, 1 + m :] &= ~np.eye(n, dtype=bool)
    positives = np.tile(np.arange(1 + m + n) == knobs.get("labels-shifted", 0) % (1 + m), (n, 1)).astype(float)
    pair = np.sum(q * k, axis=-1)[..., None]
    s = beside(pair, similarities(q, queue, knobs, np.zeros((n, m))), similarities(q, k, knobs, np.zeros((n, n))))
    logits, numerator = tempered(s, positives, inputs, knobs)
    nobody = np.zeros_like(own)
    return (
        Scene(
            logits, numerator, own | extra, positives, nobody, extra=extra, spare=spare, heat=heat(inputs, knobs),
            samples=n,
        ),
    )  # fmt: skip


def _hardest(inputs, knobs):
    """The own key and the most similar of the others, ties to the lower index."""
    scenes = _square(inputs, {"first": "queries", "second": "keys"}, knobs)
    scenes = scenes if "both-directions-averaged" in knobs else scenes[:1]
    down = "count-rounded-down" in knobs
    return tuple(replace(scene, candidates=_kept(scene, inputs["fraction"], down)) for scene in scenes)


def _kept(scene, fraction, down):
    # All batch entries are the same point, apart from the step.
    s = real(scene.logits).reshape(-1, *scene.logits.shape[-2:])[0]
    n = len(s)
    count = (math.floor if down else math.ceil)(round(fraction * (n - 1), 9))
    count = min(n - 1, max(1, count))
    order = np.argsort(-np.where(np.eye(n, dtype=bool), -np.inf, s), axis=1, kind="stable")
    hard = np.zeros((n, n), dtype=bool)
    np.put_along_axis(hard, order[:, :count], True, axis=1)
    return hard | np.eye(n, dtype=bool)


def _symmetric(inputs, knobs):
    return _square(inputs, {"first": "image", "second": "text"}, knobs)


_EVERY = (
    "rows-not-normalized", "rows-normalized", "first-input-not-normalized", "second-input-not-normalized",
    "columns-normalized", "matrix-normalized", "epsilon-in-norm", "softplus-threshold",
    "positive-dropped-from-denominator", "positive-counted-twice",
    "phantom-candidate", "labels-shifted", "softmax-applied-twice", "logarithm-missing", "log-of-mean",
    "epsilon-in-log", "value-saturates", "similarity-clamped", "negatives-ignored", "sum-instead-of-mean",
    "mean-instead-of-sum", "mean-over-nonzero-rows", "divided-by-n-twice", "last-row-missing", "first-input-detached",
    "temperature-detached", "positives-detached", "denominator-detached", "negatives-detached",
    "normalization-detached",
)  # fmt: skip
_WARM = (*_EVERY, *TEMPERATURES, *PLACES)
_EXTRA = ("label-smoothing", "softmax-over-wrong-axis",
          "queue-not-normalized", "queue-dropped", "in-batch-negatives-added")  # fmt: skip

DENSE = Dense(
    name="towers",
    losses={
        "info_nce": Member(
            _queries, contrast,
            (*_WARM, *_EXTRA, "both-directions-averaged", "keys-detached", "a-negative-dropped"),
        ),
        "moco": Member(_momentum, contrast, (*_WARM, *_EXTRA, "constants-get-gradient", "a-negative-dropped")),
        "hard_contrastive": Member(
            _hardest, contrast,
            (*_WARM, "both-directions-averaged", "softmax-over-wrong-axis", "keys-detached", "count-rounded-down"),
        ),
        "clip": Member(
            _symmetric, contrast,
            (*_EVERY, *SCALES, "one-direction-only", "other-direction-only", "directions-summed", "label-smoothing",
             "a-negative-dropped", "keys-detached", "gradient-clamped"),
        ),
    },
)  # fmt: skip
