"""Losses over classes, over points and over densities, written in the ways in which people write them correctly."""

from typing import Any

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, softplus, unit


def _column_of_the_target(class_weights, target):
    return target[:, None] == np.arange(len(class_weights))


def _angle_plus_margin(embeddings, class_weights, target, *, margin, scale):
    """Through the angle itself."""
    cosine = unit(embeddings) @ unit(class_weights).T
    cosine = np.where(np.real(cosine) > 1, 1, np.where(np.real(cosine) < -1, -1, cosine))
    moved = np.cos(np.arccos(cosine) + margin)
    return cross_entropy(scale * np.where(_column_of_the_target(class_weights, target), moved, cosine), target)


def _addition_theorem(embeddings, class_weights, target, *, margin, scale):
    """Cosine and sine of the sum, without the angle."""
    cosine = unit(embeddings) @ unit(class_weights).T
    own = cosine[np.arange(len(target)), target]
    square = (1 - own) * (1 + own)
    sine = np.sqrt(np.where(np.real(square) > 0, square, 0))
    gain = own * (np.cos(margin) - 1) - sine * np.sin(margin)
    hot = _column_of_the_target(class_weights, target)
    return cross_entropy(scale * (cosine + np.where(hot, gain[:, None], 0)), target)


def _margin_in_logits(embeddings, class_weights, target, *, margin, scale):
    logits = scale * (unit(embeddings) @ unit(class_weights).T)
    return cross_entropy(logits - scale * margin * _column_of_the_target(class_weights, target), target)


def _negative_log_likelihood(logits, target, *, temperature):
    return -np.mean(log_softmax(logits / temperature)[np.arange(len(target)), target])


def _log_softmax_twice(logits, target, *, temperature):
    """A log-softmax of log-probabilities changes nothing."""
    return cross_entropy(log_softmax(logits / temperature), target)


def _one_hot(logits, target, *, temperature):
    hot = (target[:, None] == np.arange(logits.shape[1])).astype(logits.real.dtype)
    return np.mean(logsumexp(logits / temperature) - np.sum(hot * logits, axis=1) / temperature)


def _frequencies(logits, target, class_counts, *, temperature):
    """Shares in place of counts: a constant in every logit."""
    return cross_entropy(logits / temperature + np.log(class_counts / np.sum(class_counts)), target)


def _pairs_of_points(x, *, t):
    x = unit(x)
    i, j = np.triu_indices(len(x), 1)
    return np.log(np.mean(np.exp(-t * np.sum((x[i] - x[j]) ** 2, axis=1))))


def _log_sum_exp_of_distances(x, *, t):
    x = unit(x)
    i, j = np.triu_indices(len(x), 1)
    potentials = -t * np.sum((x[i] - x[j]) ** 2, axis=1)
    return logsumexp(potentials) - np.log(x.real.dtype.type(len(i)))


def _both_triangles(x, *, t):
    """The full matrix without its diagonal."""
    x = unit(x)
    squared = np.sum((x[:, None] - x[None, :]) ** 2, axis=-1)
    return np.log(np.mean(np.exp(-t * squared[~np.eye(len(x), dtype=bool)])))


def _squared_distances(x, y, *, exponent):
    return np.mean(np.sum((unit(x) - unit(y)) ** 2, axis=1) ** (exponent / 2))


def _logistic_regression(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    on_data = data_logits - (data_log_noise + np.log(noise_ratio))
    on_noise = noise_logits - (noise_log_noise + np.log(noise_ratio))
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


def _trace(queries, keys, *, negative_weight=None):
    """Minus the trace, and the rest of the matrix over N (N - 1)."""
    similarity = unit(queries) @ unit(keys).T
    n, own = len(similarity), np.eye(len(similarity), dtype=bool)
    rest = np.sum(np.where(own, 0, similarity)) / queries.dtype.type(max(n - 1, 1))
    return (rest - np.sum(np.diagonal(similarity))) / queries.dtype.type(n)


def _ranked_negatives(queries, keys, *, temperature, fraction):
    """A sort of each row; the hardest share of it stays."""
    similarity = unit(queries) @ unit(keys).T
    n = len(similarity)
    negatives = similarity[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    order = np.argsort(-np.real(negatives), axis=1, kind="stable")
    kept = np.take_along_axis(negatives, order, axis=1)[:, : int(np.ceil(np.round(float(fraction) * (n - 1), 9)))]
    logits = np.concatenate([np.diagonal(similarity)[:, None], kept], axis=1) / temperature
    return cross_entropy(logits, np.zeros(n, dtype=int))


def _centers_and_samples(embeddings, labels, centers, *, alpha, temperature):
    """One matrix of logits: samples, then centers."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    samples = np.where(own, -np.inf, z @ z.T / temperature)
    log_prob = log_softmax(np.concatenate([samples, embeddings @ centers.T], axis=1))
    positive = np.concatenate(
        [(labels[:, None] == labels) & ~own, np.zeros((len(z), len(centers)), dtype=bool)], axis=1
    )
    target = log_prob[np.arange(len(z)), len(z) + labels]
    return -np.mean(target + alpha * np.sum(np.where(positive, log_prob, 0), axis=1))


_PROGRAMS: dict[str, tuple[str, str, Any]] = {
    "arcface-angle": ("cos(arccos(c) + m).", "arcface", _angle_plus_margin),
    "arcface-addition-theorem": ("c cos m - sqrt(1 - c^2) sin m.", "arcface", _addition_theorem),
    "cosface-margin-in-logits": ("s m is subtracted from the target's logit.", "cosface", _margin_in_logits),
    "cross-entropy-nll": ("nll of the log-softmax.", "cross_entropy", _negative_log_likelihood),
    "cross-entropy-log-softmax-twice": ("Log-softmax is idempotent.", "cross_entropy", _log_softmax_twice),
    "cross-entropy-one-hot": ("One-hot targets.", "cross_entropy", _one_hot),
    "balanced-softmax-frequencies": ("Shares in place of counts.", "balanced_softmax", _frequencies),
    "uniformity-pairs": ("The list of pairs.", "uniformity", _pairs_of_points),
    "uniformity-log-sum-exp": ("A log-sum-exp minus log of the count.", "uniformity", _log_sum_exp_of_distances),
    "uniformity-both-triangles": ("The full matrix without its diagonal.", "uniformity", _both_triangles),
    "alignment-squares": ("Squared distances to the power alpha / 2.", "alignment", _squared_distances),
    "nce-logistic": ("Two softplus terms.", "nce", _logistic_regression),
    "simple-trace": ("Trace and rest of the matrix.", "simple", _trace),
    "hard-contrastive-ranked": ("Each row sorted.", "hard_contrastive", _ranked_negatives),
    "paco-one-matrix": ("Samples and centers in one matrix.", "paco", _centers_and_samples),
}

VARIANTS = tuple(
    Mutant(id=name, sentence=sentence, thread="", losses=(loss,), named=(), program=program)
    for name, (sentence, loss, program) in _PROGRAMS.items()
)
