"""Losses over classes, over points and over densities, written in the ways in which people write them correctly."""

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, softplus, unit


def _column_of_the_target(class_weights, target):
    return target[:, None] == np.arange(len(class_weights))


@correct("arcface")
def arcface_angle(embeddings, class_weights, target, *, margin, scale):
    """Through the angle itself, as cos(arccos(c) + m)."""
    cosine = unit(embeddings) @ unit(class_weights).T
    cosine = np.where(np.real(cosine) > 1, 1, np.where(np.real(cosine) < -1, -1, cosine))
    moved = np.cos(np.arccos(cosine) + margin)
    return cross_entropy(scale * np.where(_column_of_the_target(class_weights, target), moved, cosine), target)


@correct("arcface")
def arcface_addition_theorem(embeddings, class_weights, target, *, margin, scale):
    """Cosine of the sum, as c cos m - sqrt(1 - c^2) sin m."""
    cosine = unit(embeddings) @ unit(class_weights).T
    own = cosine[np.arange(len(target)), target]
    square = (1 - own) * (1 + own)
    sine = np.sqrt(np.where(np.real(square) > 0, square, 0))
    gain = own * (np.cos(margin) - 1) - sine * np.sin(margin)
    hot = _column_of_the_target(class_weights, target)
    return cross_entropy(scale * (cosine + np.where(hot, gain[:, None], 0)), target)


@correct("cosface")
def cosface_margin_in_logits(embeddings, class_weights, target, *, margin, scale):
    """The product s m is subtracted from the target's logit."""
    logits = scale * (unit(embeddings) @ unit(class_weights).T)
    return cross_entropy(logits - scale * margin * _column_of_the_target(class_weights, target), target)


@correct("cross_entropy")
def cross_entropy_nll(logits, target, *, temperature):
    """The negative log-likelihood of the log-softmax."""
    return -np.mean(log_softmax(logits / temperature)[np.arange(len(target)), target])


@correct("cross_entropy")
def cross_entropy_log_softmax_twice(logits, target, *, temperature):
    """Log-softmax is idempotent."""
    return cross_entropy(log_softmax(logits / temperature), target)


@correct("cross_entropy")
def cross_entropy_one_hot(logits, target, *, temperature):
    """One-hot targets."""
    hot = (target[:, None] == np.arange(logits.shape[1])).astype(logits.real.dtype)
    return np.mean(logsumexp(logits / temperature) - np.sum(hot * logits, axis=1) / temperature)


@correct("balanced_softmax")
def balanced_softmax_frequencies(logits, target, class_counts, *, temperature):
    """Shares in place of counts."""
    return cross_entropy(logits / temperature + np.log(class_counts / np.sum(class_counts)), target)


@correct("uniformity")
def uniformity_pairs(x, *, t):
    """The list of pairs."""
    x = unit(x)
    i, j = np.triu_indices(len(x), 1)
    return np.log(np.mean(np.exp(-t * np.sum((x[i] - x[j]) ** 2, axis=1))))


@correct("uniformity")
def uniformity_log_sum_exp(x, *, t):
    """A log-sum-exp minus log of the count."""
    x = unit(x)
    i, j = np.triu_indices(len(x), 1)
    potentials = -t * np.sum((x[i] - x[j]) ** 2, axis=1)
    return logsumexp(potentials) - np.log(x.real.dtype.type(len(i)))


@correct("uniformity")
def uniformity_both_triangles(x, *, t):
    """The full matrix without its diagonal."""
    x = unit(x)
    squared = np.sum((x[:, None] - x[None, :]) ** 2, axis=-1)
    return np.log(np.mean(np.exp(-t * squared[~np.eye(len(x), dtype=bool)])))


@correct("alignment")
def alignment_squares(x, y, *, exponent):
    """Squared distances to the power alpha / 2."""
    return np.mean(np.sum((unit(x) - unit(y)) ** 2, axis=1) ** (exponent / 2))


@correct("nce")
def nce_logistic(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """Two softplus terms."""
    on_data = data_logits - (data_log_noise + np.log(noise_ratio))
    on_noise = noise_logits - (noise_log_noise + np.log(noise_ratio))
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


@correct("simple")
def simple_trace(queries, keys, *, negative_weight=None):
    """Minus the trace, and the rest of the matrix over N (N - 1)."""
    similarity = unit(queries) @ unit(keys).T
    n, own = len(similarity), np.eye(len(similarity), dtype=bool)
    rest = np.sum(np.where(own, 0, similarity)) / queries.dtype.type(max(n - 1, 1))
    return (rest - np.sum(np.diagonal(similarity))) / queries.dtype.type(n)


@correct("hard_contrastive")
def hard_contrastive_ranked(queries, keys, *, temperature, fraction):
    """Each row sorted."""
    similarity = unit(queries) @ unit(keys).T
    n = len(similarity)
    negatives = similarity[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    order = np.argsort(-np.real(negatives), axis=1, kind="stable")
    kept = np.take_along_axis(negatives, order, axis=1)[:, : int(np.ceil(np.round(float(fraction) * (n - 1), 9)))]
    logits = np.concatenate([np.diagonal(similarity)[:, None], kept], axis=1) / temperature
    return cross_entropy(logits, np.zeros(n, dtype=int))


@correct("paco")
def paco_one_matrix(embeddings, labels, centers, *, alpha, temperature):
    """Samples and centers in one matrix."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    samples = np.where(own, -np.inf, z @ z.T / temperature)
    log_prob = log_softmax(np.concatenate([samples, embeddings @ centers.T], axis=1))
    positive = np.concatenate(
        [(labels[:, None] == labels) & ~own, np.zeros((len(z), len(centers)), dtype=bool)], axis=1
    )
    target = log_prob[np.arange(len(z)), len(z) + labels]
    return -np.mean(target + alpha * np.sum(np.where(positive, log_prob, 0), axis=1))
