"""Batches of `hard_contrastive` with equal and nearly equal keys, and the loss of ranks that are known."""

from fractions import Fraction

import numpy as np

from nceref.family.hard_contrastive import kept
from nceref.losses import hard_contrastive
from nceref.tolerance import bounds


def equal_keys(seed, dtype=np.float64):
    """A batch of 3 to 69 pairs, and for each key a number that equal keys share."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 70)), int(rng.integers(1, 40))
    queries, keys = rng.standard_normal((2, n, d))
    same = rng.integers(0, rng.integers(1, n + 1), n)
    keys = keys[same]
    if seed % 3 == 0:
        # Both zeros are one number.
        keys[:, 0] = rng.choice([0.0, -0.0], n)
        queries[:, 0] = 1.0
        keys[:, -1] += (d == 1) * 1.0
    if seed % 2:
        keys *= 2.0 ** rng.integers(-8, 9, (n, 1))
    inputs = {"queries": queries.astype(dtype), "keys": keys.astype(dtype), "temperature": float(rng.uniform(0.05, 1))}
    return {**inputs, "fraction": float(rng.uniform(0.05, 0.95)), "normalize": ("none", "l2")[seed % 2]}, same


def nearly_equal_logits(seed):
    """A batch of 3 to 11 pairs: of most keys, two have the same logit for a query but for rounding."""
    rng = np.random.default_rng(seed)
    n, d, dtype = int(rng.integers(3, 12)), int(rng.integers(2, 9)), (np.float64, np.float32)[seed % 4 > 1]
    queries, keys = rng.standard_normal((2, n, d))
    for i in range(0, n - 1, 2):
        query = queries[rng.integers(n)]
        along = query / np.linalg.norm(query)
        if seed % 2:
            keys[i + 1] = (2 * (keys[i] @ along) * along - keys[i]) * rng.uniform(0.5, 2)
        else:
            across = rng.standard_normal(d) * 10.0 ** rng.integers(0, 5)
            keys[i + 1] = keys[i] + across - (across @ along) * along
    inputs = {"queries": queries.astype(dtype), "keys": rng.permutation(keys).astype(dtype)}
    inputs["temperature"] = float(10 ** rng.uniform(-5, 0))
    return {**inputs, "fraction": float(rng.uniform(0.05, 0.95)), "normalize": ("none", "l2")[seed % 2]}


def rounded_by_place(s):
    """What another BLAS may give: the last bits depend on where a pair stands in its block."""
    i, j = np.indices(s.shape)
    up = np.where((3 * i + 5 * j) % 7 < 3, np.inf, -np.inf).astype(s.dtype)
    return np.where((i + j) % 3 == 0, s, np.nextafter(s, up))


def _logits(inputs):
    """Rows, their lengths, and logits before the temperature."""
    rows = [inputs[name].astype(np.longdouble) for name in ("queries", "keys")]
    lengths = [np.sqrt(np.sum(x * x, axis=1, keepdims=True)) for x in rows]
    if inputs["normalize"] == "none":
        lengths = [np.ones_like(x) for x in lengths]
    q, k = (x / length for x, length in zip(rows, lengths, strict=True))
    return q, k, lengths, q @ k.T


def ranks_of_equal(inputs, same):
    """The keys from the most to the least similar for each query, of equal ones the lower index first."""
    _, first, which = np.unique(same, return_index=True, return_inverse=True)
    s = _logits(inputs)[-1][:, first[which]]
    return [sorted(range(len(same)), key=lambda j, row=row: (-row[j], j)) for row in s]


def exact_ranks(inputs):
    """The same by fractions: signed squares of the cosines, for normalized keys."""
    queries, keys = ([[Fraction(float(x)) for x in row] for row in inputs[name]] for name in ("queries", "keys"))
    ranks = []
    for q in queries:
        s = [sum(x * y for x, y in zip(q, k, strict=True)) for k in keys]
        if inputs["normalize"] == "l2":
            s = [x * abs(x) / sum(y * y for y in k) for x, k in zip(s, keys, strict=True)]
        ranks.append(sorted(range(len(keys)), key=lambda j, s=s: (-s[j], j)))
    return ranks


def by_ranks(inputs, ranks):
    """Value and gradients of the batch whose keys are ranked so."""
    q, k, (of_q, of_k), s = _logits(inputs)
    t, n = np.longdouble(inputs["temperature"]), len(s)
    g, value = np.zeros_like(s), 0
    for i, order in enumerate(ranks):
        negatives = [j for j in order if j != i][: kept(inputs["fraction"], n - 1)]
        x = (s[i, negatives] - s[i, i]) / t
        value += np.logaddexp.reduce(np.append(x, 0)) / n
        g[i, negatives] = np.exp(x - np.logaddexp.reduce(np.append(x, 0))) / n
        g[i, i] = -np.sum(g[i, negatives])
    by_q, by_k = g @ k / t, g.T @ q / t
    if inputs["normalize"] == "l2":
        by_q, by_k = (
            (x - np.sum(x * z, axis=1, keepdims=True) * z) / length
            for x, z, length in ((by_q, q, of_q), (by_k, k, of_k))
        )
    return value, {"queries": by_q, "keys": by_k, "temperature": -np.sum(g * s) / t**2}


def worst(inputs, ranks, answer=None):
    """The largest error of value and gradients over its bound."""
    value, grads = hard_contrastive.value_and_grad(**inputs) if answer is None else answer
    right, truth = by_ranks(inputs, ranks)
    allowed = bounds(hard_contrastive, **inputs)
    of_grads = [np.max(np.abs(np.asarray(grads[name]) - truth[name]) / allowed.grads[name]) for name in truth]
    return float(max(abs(float(value) - right) / allowed.value, *of_grads))
