"""Scores of classes: the candidates of a row are the classes, and its positive is its target."""

from functools import partial

import numpy as np

from nceref.diagnosis.probe.parts import logits
from nceref.diagnosis.probe.parts.layouts import (
    PartedFamily,
    PartedLoss,
    Texts,
    compared,
    softmaxed,
    warm,
    work,
)
from nceref.diagnosis.probe.parts.smoothing import smoothed
from nceref.diagnosis.probe.parts.work import LossPart, PartWay

_TEXTS = Texts("the target", "all classes")


def _works(inputs):
    y = np.asarray(inputs["target"])
    given = inputs.get("logits")
    c = given.shape[1] if given is not None else len(inputs["class_weights"])
    blocks = [] if given is not None else [inputs["embeddings"], inputs["class_weights"]]
    n = len(y)
    onehot = np.eye(c)[y]
    counts = inputs.get("class_counts")
    return [work(inputs, blocks, np.arange(n), n + np.arange(c), onehot, np.ones((n, c), dtype=bool), labels=y,
                  kinds=np.arange(c), given=given,
                  counts=None if counts is None else np.asarray(counts, dtype=float))]  # fmt: skip


def _margins(curve, inputs, reduction):
    curve = (*curve, "cos theta - m sin m") if inputs.get("fallback") == "linear" else curve
    first = compared(("embeddings", "class_weights"), inputs)
    return softmaxed(first, logits.curves(*curve), _TEXTS, "mean", reduction)


def _scores(logit, inputs, reduction):
    given = LossPart("similarities", "", (PartWay("x_ik", lambda w, c: w.given),))
    made = softmaxed((given,), LossPart("logits", "l_ik = ", logit()), _TEXTS, "sum", reduction)
    share = float(inputs.get("label_smoothing") or 0.0)
    return tuple(smoothed(part, share) if part.name == "positives" and share else part for part in made)


PARTED = PartedFamily(
    "classes",
    {
        "arcface": PartedLoss(_works, partial(_margins, ("cos(theta + m)",))),
        "cosface": PartedLoss(_works, partial(_margins, ("cos theta - m",))),
        "cross_entropy": PartedLoss(_works, partial(_scores, lambda: logits.tempered_ways(warm, "x_ik/T"))),
        "balanced_softmax": PartedLoss(_works, partial(_scores, logits.numbered_ways)),
    },
)
