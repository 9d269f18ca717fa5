"""Plain programs in NumPy with hand-written backward passes, as people write them: what the bounds have to admit.

Each takes the canonical inputs in one format, computes in that format, and returns an `Evaluation`. The number `how`
chooses between evaluations that are equally right: a maximum that is subtracted and not detached, a log-sum-exp, one
quotient instead of another. All of them subtract 1 from a probability, and none avoids cancellation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Evaluation(NamedTuple):
    """Rows, their weights, what the weighted sum is divided by in the mean, and gradients for slopes of the rows."""

    rows: Any
    weights: Any
    total: float
    backward: Callable[[Any], dict[str, Any]]


def even(rows, backward):
    """Rows that all count alike."""
    return Evaluation(rows, np.ones_like(rows), rows.size, backward)


def unit(x, normalize, how):
    """Rows of length 1, and the way back to `x`."""
    if normalize == "none":
        return x, lambda g: g
    square = (x * x).sum(-1, keepdims=True)
    if how == 1:
        inverse = 1 / np.sqrt(square)
        return x * inverse, lambda g: g * inverse - x * (inverse**3 * (x * g).sum(-1, keepdims=True))
    length = np.sqrt(square) if how == 0 else np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)
    z = x / length
    return z, lambda g: (g - z * (z * g).sum(-1, keepdims=True)) / length


def product(how, x, y, factor):
    """Similarities times a factor, multiplied before or after; the way back gives slopes of x, y and the factor."""
    dots = x @ y.T
    s = (x * factor) @ y.T if how == 1 else dots * factor
    return s, lambda g: (factor * (g @ y), factor * (g.T @ x), (g * dots).sum())


def cross_entropy_rows(how, s, target):
    """-log softmax of the target, and its slopes; entries of -inf take no part."""
    rows = np.arange(len(s))
    top = s.max(axis=1, keepdims=True)
    exponentials = np.exp(s - top)
    total = exponentials.sum(axis=1, keepdims=True)
    if how == 2:
        level = top + np.log(total)
        out, slope = level[:, 0] - s[rows, target], np.exp(s - level)
    else:
        out, slope = np.log(total[:, 0]) - (s - top)[rows, target], exponentials / total
    slope[rows, target] -= 1
    if how == 1:
        # The maximum is not detached, and gets minus the sum of the slopes.
        slope[rows, s.argmax(axis=1)] -= slope.sum(axis=1)
    return out, slope


def masked(s, pairs):
    return np.where(pairs, -np.inf, s).astype(s.dtype)


def two_views(how, z1, z2, temperature, normalize):
    """Similarities of all rows, the index of each row's partner, and the way back."""
    n = len(z1)
    z, to_input = unit(np.concatenate([z1, z2]), normalize, how)
    s, back = product(how, z, z, 1 / temperature)

    def backward(g):
        anchors, candidates, by_factor = back(g)
        both = to_input(anchors + candidates)
        return {"z1": both[:n], "z2": both[n:], "temperature": -by_factor / temperature**2}

    return s, (np.arange(2 * n) + n) % (2 * n), backward


def nt_xent(how, z1, z2, temperature, normalize="l2"):
    s, partner, back = two_views(how, z1, z2, temperature, normalize)
    rows, slope = cross_entropy_rows(how, masked(s, np.eye(len(s), dtype=bool)), partner)
    return even(rows, lambda c: back(c[:, None] * slope))


def dcl(how, z1, z2, temperature, normalize="l2"):
    s, partner, back = two_views(how, z1, z2, temperature, normalize)
    i = np.arange(len(s))
    pair = np.eye(len(s), dtype=bool)
    pair[i, partner] = True
    negatives = masked(s, pair)
    top = negatives.max(axis=1, keepdims=True)
    level = top + np.log(np.exp(negatives - top).sum(axis=1, keepdims=True))
    slope = np.exp(negatives - level)
    slope[i, partner] = -1
    return even(level[:, 0] - s[i, partner], lambda c: back(c[:, None] * slope))


def info_nce(how, queries, keys, temperature, negatives=None, normalize="l2"):
    q, to_queries = unit(queries, normalize, how)
    k, to_keys = unit(keys, normalize, how)
    if negatives is None:
        s, back = product(how, q, k, 1 / temperature)
        rows, slope = cross_entropy_rows(how, s, np.arange(len(q)))

        def backward(c):
            by_q, by_k, by_factor = back(c[:, None] * slope)
            return {"queries": to_queries(by_q), "keys": to_keys(by_k), "temperature": -by_factor / temperature**2}

        return even(rows, backward)
    other, to_negatives = unit(negatives, normalize, how)
    dots = np.concatenate([(q * k).sum(axis=1, keepdims=True), q @ other.T], axis=1)
    rows, slope = cross_entropy_rows(how, dots / temperature, np.zeros(len(q), dtype=int))

    def backward_of_both(c):
        g = c[:, None] * slope / temperature
        return {
            "queries": to_queries(g[:, :1] * k + g[:, 1:] @ other),
            "keys": to_keys(g[:, :1] * q),
            "negatives": to_negatives(g[:, 1:].T @ q),
            "temperature": -(g * dots).sum() / temperature,
        }

    return even(rows, backward_of_both)


def clip(how, image, text, logit_scale, normalize="l2"):
    x, to_image = unit(image, normalize, how)
    y, to_text = unit(text, normalize, how)
    s, back = product(how, x, y, logit_scale)
    both = [cross_entropy_rows(how, logits, np.arange(len(x))) for logits in (s, s.T)]

    def backward(c):
        by_x, by_y, by_scale = back(c[0][:, None] * both[0][1] + (c[1][:, None] * both[1][1]).T)
        return {"image": to_image(by_x), "text": to_text(by_y), "logit_scale": by_scale}

    return even(np.stack([rows for rows, _ in both]), backward)


def siglip(how, image, text, logit_scale, logit_bias=0.0, normalize="l2"):
    x, to_image = unit(image, normalize, how)
    y, to_text = unit(text, normalize, how)
    s, back = product(how, x, y, logit_scale)
    sign = (2 * np.eye(len(x)) - 1).astype(s.dtype)
    u = (s + logit_bias) * sign
    if how == 1 and np.abs(u).max() < 10:
        # A sigmoid before its logarithm, and subtracted from 1.
        odds = 1 / (1 + np.exp(-u))
        terms, slope = -np.log(odds), odds - 1
    elif how == 2:
        terms = np.logaddexp(u.dtype.type(0), -u)
        slope = -np.exp(-u - terms)
    else:
        terms, slope = np.maximum(-u, 0) + np.log1p(np.exp(-np.abs(u))), -1 / (1 + np.exp(u))

    def backward(c):
        g = c[:, None] * slope * sign
        by_x, by_y, by_scale = back(g)
        return {"image": to_image(by_x), "text": to_text(by_y), "logit_scale": by_scale, "logit_bias": g.sum()}

    return even(terms.sum(axis=1), backward)


def contrast(how, embeddings, labels, mask, queue, queue_labels, normalize, anchor_mode):
    """Anchors, candidates, weights of the positives, the anchors themselves, and the way back to the embeddings."""
    n, views = len(embeddings), embeddings.shape[1] if embeddings.ndim == 3 else 1
    flat = np.concatenate([embeddings[:, v] for v in range(views)]) if embeddings.ndim == 3 else embeddings
    z, to_rows = unit(flat, normalize, how)
    names = np.tile(np.arange(n) if labels is None else labels, views)
    weight = names[:, None] == names[None] if mask is None else np.tile(mask, (views, views))
    candidates = z
    if queue is not None:
        candidates = np.concatenate([z, unit(queue, normalize, how)[0]])
        weight = np.concatenate([weight, names[:, None] == queue_labels[None]], axis=1)
    count = n if anchor_mode == "one" else n * views
    own = np.eye(len(z), len(candidates), dtype=bool)[:count]

    def to_embeddings(by_anchors, by_candidates):
        g = by_candidates[: len(z)].copy()
        g[:count] += by_anchors
        g = to_rows(g)
        return g if embeddings.ndim == 2 else np.stack(np.split(g, views), axis=1)

    return z[:count], candidates, np.where(own, 0, weight[:count]).astype(z.dtype), own, to_embeddings


def log_softmax(how, s, own):
    """Logarithms of probabilities, 0 for the anchor itself, and the probabilities; the shift may see the anchor."""
    rest = masked(s, own)
    top = (s if how == 1 else rest).max(axis=1, keepdims=True)
    shifted = s - top
    exponentials = np.where(own, 0, np.exp(shifted)).astype(s.dtype)
    total = exponentials.sum(axis=1, keepdims=True)
    log_p = np.where(own, 0, shifted - np.log(total)).astype(s.dtype)
    return log_p, exponentials / total if how else np.where(own, 0, np.exp(log_p)).astype(s.dtype)


def supcon_out(
    how, embeddings, temperature, labels=None, mask=None, anchor_mode="all", queue=None, queue_labels=None,
    form="mean", base_temperature=None, anchor_weights=None, normalize="l2", no_positive="error",
):  # fmt: skip
    a, b, weight, own, to_embeddings = contrast(
        how, embeddings, labels, mask, queue, queue_labels, normalize, anchor_mode
    )
    s, back = product(how, a, b, 1 / temperature)
    log_p, p = log_softmax(how, s, own)
    mass = weight.sum(axis=1)
    share = weight if form == "sum" else weight / np.where(mass > 0, mass, 1)[:, None].astype(s.dtype)
    rows, slope = -(share * log_p).sum(axis=1), p * share.sum(axis=1, keepdims=True) - share
    if how == 2:
        # The maximum is not detached.
        slope[np.arange(len(s)), masked(s, own).argmax(axis=1)] -= slope.sum(axis=1)
    factor = 1 if base_temperature is None else temperature / base_temperature
    scale = np.ones_like(rows) if anchor_weights is None else np.tile(anchor_weights, len(rows) // len(anchor_weights))
    scale = scale * (mass > 0) if no_positive == "skip" else scale

    def backward(c):
        by_anchors, by_candidates, by_factor = back(factor * c[:, None] * slope)
        by_temperature = -by_factor / temperature**2
        if base_temperature is not None:
            by_temperature = by_temperature + (c * rows).sum() / base_temperature
        return {"embeddings": to_embeddings(by_anchors, by_candidates), "temperature": by_temperature}

    return Evaluation(factor * rows, scale.astype(rows.dtype), scale.sum(), backward)


def margins(how, embeddings, class_weights, target, scale, normalize, moved):
    """Cross-entropy of scaled cosines, of which the target's is moved: `moved` gives the cosine and its derivative."""
    x, to_embeddings = unit(embeddings, normalize, how)
    w, to_weights = unit(class_weights, normalize, how)
    cosines, back = product(0, x, w, 1)
    i = np.arange(len(x))
    logits = cosines.copy()
    logits[i, target], derivative = moved(cosines[i, target])
    rows, slope = cross_entropy_rows(how, scale * logits, target)

    def backward(c):
        g = c[:, None] * slope
        by_scale = (g * logits).sum()
        g = scale * g
        g[i, target] *= derivative
        by_x, by_w, _ = back(g)
        return {"embeddings": to_embeddings(by_x), "class_weights": to_weights(by_w), "scale": by_scale}

    return even(rows, backward)


def cosface(how, embeddings, class_weights, target, margin=0.35, scale=64.0, normalize="l2"):
    return margins(how, embeddings, class_weights, target, scale, normalize, lambda c: (c - margin, np.ones_like(c)))


def arcface(how, embeddings, class_weights, target, margin=0.5, scale=64.0, normalize="l2", fallback="none"):
    def moved(cosine):
        kind = cosine.dtype.type
        c = np.clip(cosine, -1, 1)
        sine = np.sqrt(1 - c * c)
        if how == 0:
            angle = np.arccos(c) + margin
            out, derivative = np.cos(angle), np.sin(angle) / sine
        else:
            out = c * kind(np.cos(margin)) - sine * kind(np.sin(margin))
            derivative = kind(np.cos(margin)) + c / sine * kind(np.sin(margin))
        if fallback == "linear":
            past = c < -kind(np.cos(margin))
            out = np.where(past, c - margin * kind(np.sin(margin)), out)
            derivative = np.where(past, kind(1), derivative)
        return out, derivative

    return margins(how, embeddings, class_weights, target, scale, normalize, moved)


def cross_entropy(how, logits, target, temperature=1.0, label_smoothing=0.0):
    s = logits / temperature
    rows, slope = cross_entropy_rows(how, s, target)
    # (1 - e) of the target and e of the mean over classes: the gap between the two is linear in the logits.
    i, classes = np.arange(len(s)), s.shape[1]
    rows = rows + label_smoothing * (s[i, target] - s.mean(axis=1))
    slope = slope - label_smoothing / classes
    slope[i, target] += label_smoothing

    def backward(c):
        g = c[:, None] * slope
        return {"logits": g / temperature, "temperature": -(g * s).sum() / temperature}

    return even(rows, backward)


def nce(how, data_logits, noise_logits, data_log_noise, noise_log_noise, noise_ratio):
    shift = data_logits.dtype.type(np.log(noise_ratio))
    data, noise = (
        x - (p + shift) if how else x - p - shift
        for x, p in ((data_logits, data_log_noise), (noise_logits, noise_log_noise))
    )
    share = noise_ratio * len(data) / len(noise)
    zero = data.dtype.type(0)
    rows = np.concatenate([np.logaddexp(zero, -data), share * np.logaddexp(zero, noise)])

    def backward(c):
        n = len(data)
        return {
            "data_logits": -c[:n] / (1 + np.exp(data)),
            "noise_logits": share * c[n:] / (1 + np.exp(-noise)),
        }

    return Evaluation(rows, np.ones_like(rows), len(data), backward)


def alignment(how, x, y, exponent=2.0, normalize="l2"):
    x, to_x = unit(x, normalize, how)
    y, to_y = unit(y, normalize, how)
    if how == 2:
        square = (x * x).sum(axis=1) + (y * y).sum(axis=1) - 2 * (x * y).sum(axis=1)
    else:
        square = ((x - y) ** 2).sum(axis=1)
    distance = np.sqrt(np.maximum(square, 0))
    rows = distance**exponent if how == 0 else np.maximum(square, 0) ** (exponent / 2)

    def backward(c):
        apart = np.where(distance > 0, distance, 1)
        slope = np.where(distance > 0, exponent * apart ** (exponent - 2), 2.0 * (exponent == 2)).astype(x.dtype)
        g = (c * slope)[:, None] * (x - y)
        return {"x": to_x(g), "y": to_y(-g)}

    return even(rows, backward)


def uniformity(how, x, t=2.0, include_diagonal=False, normalize="l2"):
    z, to_x = unit(x, normalize, how)
    if how == 0:
        square = ((z[:, None] - z[None]) ** 2).sum(axis=-1)
    else:
        square = (z * z).sum(axis=1)[:, None] + (z * z).sum(axis=1)[None] - 2 * z @ z.T
    s = -t * square
    keep = np.ones(s.shape, dtype=bool) if include_diagonal else ~np.eye(len(s), dtype=bool)
    top = 0 if how == 2 else s[keep].max()
    exponentials = np.where(keep, np.exp(s - top), 0).astype(s.dtype)
    total = exponentials.sum()
    value = top + np.log(total / s.dtype.type(keep.sum()))

    def backward(c):
        g = c * exponentials / total
        both = g + g.T
        by_z = -2 * t * (both.sum(axis=1, keepdims=True) * z - both @ z)
        return {"x": to_x(by_z), "t": -(g * square).sum()}

    return Evaluation(value, np.ones_like(value), 1, backward)


PROGRAMS = {
    program.__name__: program
    for program in (
        alignment, arcface, clip, cosface, cross_entropy, dcl, info_nce, nce, nt_xent, siglip, supcon_out, uniformity,
    )
}  # fmt: skip
