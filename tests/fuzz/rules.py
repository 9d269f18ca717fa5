"""Which right-looking arguments a loss must refuse, and when a number may leave the range; from the documentation."""

import numpy as np

from nceref.spec import Array, Labels


def refused(loss, plain, reduction):
    """Names of which one has to be in the message; empty for a valid call."""
    for rule in (ranking, guiding, zero_rows, labelling, hits, lengths, widths, classes, too_few, positives, weights):
        names = rule(loss, plain, reduction)
        if names:
            return names
    return set()


def may_be_refused(loss, plain):
    """Names and why: what a format cannot hold, where the format is not known yet."""
    if loss.name == "hcl" and plain["concentration"] >= 2**24:
        return {"concentration": "1 + b rounds to b in float32"}
    return {}


def zero_rows(loss, plain, reduction):
    if plain.get("normalize") != "l2":
        return set()
    arrays = {p.name: plain[p.name] for p in loss.parameters if isinstance(p, Array) and p.embedding}
    return {name for name, x in arrays.items() if x is not None and not np.all(np.any(x != 0, axis=-1))}


def labelling(loss, plain, reduction):
    both = {"labels", "mask"} if plain.get("labels") is not None and plain.get("mask") is not None else set()
    queue = {name for name in ("queue", "queue_labels") if plain.get(name) is not None}
    if "queue_labels" in plain and queue and (len(queue) == 1 or plain["labels"] is None):
        return both | {"queue", "queue_labels"}
    return both


def ranking(loss, plain, reduction):
    """Negatives that are not there: as the only candidates, or as those that a hardness is for."""
    if loss.name != "mnrl":
        return set()
    chosen, hard = plain["hardness_of"] if plain["hardness"] else "", plain["negatives"] is not None
    if plain["candidates"] == "hard" and not hard:
        return {"candidates", "negatives"}
    nobody = (chosen == "hard" and not hard) or (chosen == "in_batch" and plain["candidates"] == "hard")
    return {"hardness_of", "negatives", "candidates"} if nobody else set()


def guiding(loss, plain, reduction):
    """A guide that lacks the rows of an input, or has some of one that is not there."""
    if loss.name != "guided_info_nce":
        return set()
    given = {name for name in plain if name.startswith("guide_") and plain[name] is not None}
    needed = {"guide_queries", "guide_documents"} | ({"guide_negatives"} if plain["negatives"] is not None else set())
    return {*given, *needed, "negatives"} if given and given != needed else set()


def hits(loss, plain, reduction):
    """A weighted row without a negative, which has no weight either."""
    if loss.name != "sampled_softmax" or plain["correction"] != "weighted":
        return set()
    ids = plain["item_ids"]
    alone = len(plain["queries"]) == 1 if ids is None else len({*np.asarray(ids).tolist()}) == 1
    return {"item_ids", "query"} if alone else set()


def lengths(loss, plain, reduction):
    """ArcFace without normalization: an inner product is a cosine only of rows of length 1."""
    if loss.name != "arcface" or plain["normalize"] == "l2":
        return set()
    arrays = ("embeddings", "class_weights")
    with np.errstate(over="ignore"):
        return {name for name in arrays if np.any(np.linalg.norm(plain[name], axis=1) > 1.00001)}


def widths(loss, plain, reduction):
    centers, features = plain.get("centers"), plain.get("center_features")
    if centers is None:
        return set()
    features = plain["embeddings"] if features is None else features
    return {"centers", "center_features"} if centers.shape[1] != features.shape[1] else set()


def classes(loss, plain, reduction):
    for p in loss.parameters:
        y = plain.get(p.name)
        if isinstance(p, Labels) and p.classes and y is not None:
            sizes = (
                plain[q.name].shape[q.shape.index(p.classes)]
                for q in loss.parameters
                if isinstance(q, Array) and p.classes in q.shape and plain[q.name] is not None
            )
            if min(y) < 0 or max(y) >= next(sizes):
                return {p.name}
    return set()


def too_few(loss, plain, reduction):
    """A batch of one that has no negative or no pair."""
    names = {p.name for p in loss.parameters if isinstance(p, Array) and p.required}
    first = next(plain[p.name] for p in loss.parameters if isinstance(p, Array))
    needs_two = {"dcl", "dclw", "debiased", "hcl", "uniformity"}
    return names if loss.name in needs_two and len(first) == 1 else set()


def has_positive(plain):
    """By anchor, of the first view: whether another row is a positive."""
    x = plain["embeddings"]
    n, views = len(x), x.shape[1] if x.ndim == 3 else 1
    if plain["mask"] is not None:
        mask = np.array(plain["mask"]) > 0
    elif plain["labels"] is not None:
        labels = np.array(plain["labels"])
        mask = labels[:, None] == labels
        if plain.get("queue_labels") is not None:
            queued = np.array(plain["queue_labels"])
            return (
                np.any(mask & ~np.eye(n, dtype=bool), axis=1) | np.any(labels[:, None] == queued, axis=1) | (views > 1)
            )
    else:
        mask = np.eye(n, dtype=bool)
    return np.any(mask & (~np.eye(n, dtype=bool) | (views > 1)), axis=1)


NO_POSITIVE = {"labels", "mask", "no_positive", "embeddings"}


def positives(loss, plain, reduction):
    if "no_positive" in plain and plain["no_positive"] == "error" and not np.all(has_positive(plain)):
        return NO_POSITIVE
    return set()


def weights(loss, plain, reduction):
    """A mean over no weight at all."""
    if reduction != "mean" or "anchor_weights" not in plain:
        return set()
    w = plain["anchor_weights"]
    w = np.ones(len(plain["embeddings"])) if w is None else np.asarray(w)
    if plain["no_positive"] == "skip":
        w = np.where(has_positive(plain), w, 0.0)
    return {"anchor_weights", *NO_POSITIVE} if not np.any(w > 0) else set()
