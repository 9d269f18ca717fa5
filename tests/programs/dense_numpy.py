"""Three losses as dense textbook code with gradients by hand; the variable BUG makes them wrong."""

import os

import numpy as np

BUG = os.environ.get("BUG", "")


def _softmax(x, y, temperature, counted, positives):
    """Mean cross entropy of the rows of x against those of y: the value, and its gradients."""
    (u, v), t = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y)), temperature
    t = t / t if BUG == "temperature" else t
    s = u @ v.T / t
    shifted = np.where(counted, s, -np.inf)
    top = shifted.max(axis=1, keepdims=True)
    p = np.exp(shifted - top)
    total = p.sum(axis=1, keepdims=True)
    value = np.mean(np.log(total) + top - np.sum(positives * s, axis=1, keepdims=True))
    slopes = (p / total - positives) / len(x)
    by_x, by_y = slopes @ v / t, slopes.T @ u / t
    if BUG == "gradient":
        by_y = np.zeros_like(by_y)
    by_x, by_y = (
        (g - np.sum(g * w, axis=1, keepdims=True) * w) / np.linalg.norm(a, axis=1, keepdims=True)
        for a, w, g in ((x, u, by_x), (y, v, by_y))
    )
    factor = 2 if BUG == "factor" else 1
    return factor * value, factor * by_x, factor * by_y, factor * -np.sum(slopes * s) / t


def nt_xent(z1, z2, temperature):
    """Of SimCLR."""
    z, n = np.concatenate([z1, z2]), len(z1)
    rest = ~np.eye(2 * n, dtype=bool)
    value, by_x, by_y, by_t = _softmax(z, z, temperature, rest, np.roll(np.eye(2 * n, dtype=z.dtype), n, axis=1))
    grad = by_x + by_y
    return value, {"z1": grad[:n], "z2": grad[n:], "temperature": by_t}


def info_nce(queries, keys, temperature):
    """With the other keys of the batch as negatives."""
    same = np.eye(len(queries), dtype=queries.dtype)
    value, by_x, by_y, by_t = _softmax(queries, keys, temperature, np.ones(same.shape, dtype=bool), same)
    return value, {"queries": by_x, "keys": by_y, "temperature": by_t}


def supcon_out(embeddings, labels, temperature):
    """Supervised, with the sum over positives outside of the logarithm."""
    rest = ~np.eye(len(labels), dtype=bool)
    positives = (rest & (labels[:, None] == labels)).astype(embeddings.dtype)
    positives /= positives.sum(axis=1, keepdims=True)
    value, by_x, by_y, by_t = _softmax(embeddings, embeddings, temperature, rest, positives)
    return value, {"embeddings": by_x + by_y, "temperature": by_t}
