"""NT-Xent and its relatives, written in the ways in which people write them correctly."""

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, peak, softplus, unit


def _others(n):
    """The index of each anchor's other view, rows of view 1 first."""
    return np.roll(np.arange(2 * n), n)


@correct("nt_xent")
def nt_xent_masked_cross_entropy(z1, z2, *, temperature):
    """Cross-entropy with -inf on the diagonal."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, _others(n))


@correct("nt_xent")
def nt_xent_large_constant_for_a_mask(z1, z2, *, temperature):
    """1e9 subtracted on the diagonal: its exponential is 0 in every format."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature - 1e9 * np.eye(2 * n, dtype=z1.real.dtype)
    return cross_entropy(logits, _others(n))


@correct("nt_xent")
def nt_xent_diagonal_deleted(z1, z2, *, temperature):
    """The diagonal is cut out of the matrix."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = (z @ z.T / temperature)[~np.eye(2 * n, dtype=bool)].reshape(2 * n, 2 * n - 1)
    positive = np.concatenate([np.arange(n) + n - 1, np.arange(n)])
    return cross_entropy(logits, positive)


@correct("nt_xent")
def nt_xent_maximum_in_the_graph(z1, z2, *, temperature):
    """The shift is not detached: its derivative cancels."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    rows = np.arange(2 * n)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    logits = logits - logits[rows, np.argmax(np.real(logits), axis=1)][:, None]
    return np.mean(np.log(np.sum(np.exp(logits), axis=1)) - logits[rows, _others(n)])


@correct("nt_xent")
def nt_xent_positive_first(z1, z2, *, temperature):
    """The positive is column 0."""
    # [positive, negatives], and label 0 for all.
    n = len(z1)
    a, b, off = unit(z1), unit(z2), ~np.eye(n, dtype=bool)
    pairs = np.sum(a * b, axis=1, keepdims=True)
    negatives = [(x @ y.T)[off].reshape(n, n - 1) for x, y in ((a, a), (a, b), (b, b), (b, a))]
    logits = np.concatenate(
        [np.concatenate([pairs, *negatives[:2]], axis=1), np.concatenate([pairs, *negatives[2:]], axis=1)]
    )
    return cross_entropy(logits / temperature, np.zeros(2 * n, dtype=int))


@correct("nt_xent")
def nt_xent_softplus(z1, z2, *, temperature):
    """The softplus of the gap to the negatives."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    positive = logits[np.arange(2 * n), _others(n)]
    negatives = np.where(np.tile(np.eye(n, dtype=bool), (2, 2)), -np.inf, logits)
    return np.mean(softplus(logsumexp(negatives) - positive)) if n > 1 else 0 * np.mean(positive)


@correct("nt_xent")
def nt_xent_online(z1, z2, *, temperature):
    """Online softmax, one candidate at a time."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    top, total = np.full(2 * n, -np.inf, dtype=z1.real.dtype), np.zeros(2 * n, dtype=logits.dtype)
    for column in logits.T:
        higher = np.maximum(top, np.real(column))
        finite = np.where(np.isfinite(higher), higher, 0)
        total = total * np.exp(top - finite) + np.exp(column - finite)
        top = higher
    return np.mean(top + np.log(total) - logits[np.arange(2 * n), _others(n)])


@correct("nt_xent")
def nt_xent_chunks_of_anchors(z1, z2, *, temperature):
    """Three anchors at a time, the last chunk shorter, weighted by its size."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    labels, total = _others(n), 0
    for start in range(0, 2 * n, 3):
        rows = np.arange(start, min(start + 3, 2 * n))
        logits = np.where(rows[:, None] == np.arange(2 * n), -np.inf, z[rows] @ z.T / temperature)
        total = total + cross_entropy(logits, labels[rows]) * z1.dtype.type(len(rows))
    return total / z1.dtype.type(2 * n)


@correct("nt_xent")
def nt_xent_sorted(z1, z2, *, temperature):
    """Candidates sorted by their similarity."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    ranked = np.take_along_axis(logits, np.argsort(np.real(logits), axis=1), axis=1)
    return np.mean(logsumexp(ranked) - logits[np.arange(2 * n), _others(n)])


@correct("nt_xent")
def nt_xent_in_double(z1, z2, *, temperature):
    """float64 inside, whatever comes in."""
    wide = [x.astype(np.result_type(x, np.float64)) for x in (z1, z2)]
    return nt_xent_masked_cross_entropy(*wide, temperature=temperature)


@correct("nt_xent")
def nt_xent_interleaved(z1, z2, *, temperature):
    """Views interleaved, and labels to match."""
    z, n = unit(np.stack([z1, z2], axis=1).reshape(2 * len(z1), -1)), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, np.arange(2 * n) ^ 1)


@correct("dcl")
def dcl_by_halves(z1, z2, *, temperature):
    """The mean of both ways, each with one log-sum-exp over both views."""
    a, b, own = unit(z1), unit(z2), np.eye(len(z1), dtype=bool)

    def one_way(x, y):
        cross = x @ y.T / temperature
        both = np.concatenate([x @ x.T / temperature, cross], axis=1)
        return np.mean(logsumexp(np.where(np.tile(own, (1, 2)), -np.inf, both)) - np.diagonal(cross))

    return 0.5 * (one_way(a, b) + one_way(b, a))


@correct("dcl")
def dcl_by_exponentials(z1, z2, *, temperature):
    """Shifted exponentials times a mask of ones and zeros."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    mask = 1 - np.tile(np.eye(n, dtype=z1.real.dtype), (2, 2))
    top = peak(np.where(mask > 0, logits, -np.inf))
    # Masked before the exponential as well: there it may overflow, and infinity times 0 is no number.
    total = np.sum(mask * np.exp(np.where(mask > 0, logits - top, 0)), axis=1)
    return np.mean(np.log(total) + top[:, 0] - logits[np.arange(2 * n), _others(n)])


@correct("dclw")
def dclw_weights_of_pairs(z1, z2, *, temperature, sigma):
    """One detached weight for each pair."""
    a, b, n = unit(z1), unit(z2), len(z1)
    cosine = np.real(np.sum(a * b, axis=1))
    weight = 2 - z1.dtype.type(n) * np.exp(np.real(log_softmax(cosine / sigma)))
    z = np.concatenate([a, b])
    negatives = np.where(np.tile(np.eye(n, dtype=bool), (2, 2)), -np.inf, z @ z.T / temperature)
    pull = weight * np.sum(a * b, axis=1) / temperature
    return np.mean(logsumexp(negatives)) - np.mean(pull)
