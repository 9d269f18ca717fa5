"""Rows with labels: several positives an anchor, views, a queue."""

from functools import partial

import numpy as np

from nceref.diagnosis.probe.parts.layouts import PartedFamily, PartedLoss, Texts, paired, work


def names(inputs):
    """Inputs with rows."""
    return ("embeddings", *(x for x in ("queue",) if inputs.get(x) is not None))


def works(inputs):
    """What the parts work on: rows and labels, views below one another; None beside a mask or weights."""
    x, labels = inputs["embeddings"], inputs.get("labels")
    if inputs.get("mask") is not None or inputs.get("anchor_mode") == "one" or inputs.get("anchor_weights") is not None:
        return None
    n, v = (x.shape[0], x.shape[1]) if x.ndim == 3 else (len(x), 1)
    flat = np.swapaxes(x, 0, 1).reshape(n * v, -1) if x.ndim == 3 else x
    kinds = np.tile(np.arange(n) if labels is None else np.asarray(labels), v)
    blocks, queue = [flat], inputs.get("queue")
    if queue is not None:
        blocks.append(queue)
        kinds = np.concatenate([kinds, np.asarray(inputs["queue_labels"])])
    r, m = np.arange(n * v), len(kinds)
    own = np.eye(n * v, m, dtype=bool)
    positives = ((kinds[: n * v, None] == kinds) & ~own).astype(float)
    view = np.where(np.arange(m) < n * v, np.arange(m) // n, -1) == (r // n)[:, None]
    made = work(inputs, blocks, r, np.arange(m), positives, ~own, own=own, view=view,
                 labels=kinds[: n * v], kinds=kinds, samples=n)  # fmt: skip
    return [made]


def _parts(form, inputs, reduction):
    base = inputs.get("base_temperature")
    factor = None if base is None else (lambda w: 1 / (w.sharp * base))
    form = form or inputs.get("form") or "mean"
    texts = Texts("the other candidates of the label", "all j != i")
    return paired(names(inputs), texts, inputs, reduction, form, factor)


PARTED = PartedFamily(
    "labelled",
    {
        "supcon_out": PartedLoss(works, partial(_parts, "")),
        "supcon_in": PartedLoss(works, partial(_parts, "in")),
    },
)
