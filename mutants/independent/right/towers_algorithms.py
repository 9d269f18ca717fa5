"""Losses of two towers and of pairs by other algorithms and in other layouts."""

import math

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, peak, softplus, stop, unit


def _online(blocks):
    """Log-sum-exp over columns that come in blocks, with a running maximum and a running sum."""
    top, total = None, 0
    for block in blocks:
        here = peak(block)[:, 0]
        new = here if top is None else np.maximum(top, here)
        kept = 0 if top is None else total * np.exp(top - new)
        total, top = kept + np.sum(np.exp(block - new[:, None]), axis=1), new
    return top + np.log(total)


def _ratio(logits):
    """Mean of -log softmax of the diagonal."""
    return np.mean(logsumexp(logits) - np.diagonal(logits))


@correct("info_nce")
def info_nce_blocks_of_three_keys(queries, keys, *, temperature):
    """Keys come in blocks of three, the last one shorter, and the sum is rescaled from block to block."""
    q, k = unit(queries), unit(keys)
    blocks = [q @ k[begin : begin + 3].T / temperature for begin in range(0, len(k), 3)]
    return np.mean(_online(blocks) - np.einsum("nd,nd->n", q, k) / temperature)


@correct("info_nce")
def info_nce_half_squared_distances(queries, keys, negatives=None, *, temperature):
    """Logits are -d^2 / 2T on the sphere, for in-batch and for explicit negatives."""
    q, k = unit(queries), unit(keys)

    def logits(x, y):
        return -np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2) / (2 * temperature)

    if negatives is None:
        return _ratio(logits(q, k))
    positive = -np.sum((q - k) ** 2, axis=1, keepdims=True) / (2 * temperature)
    both = np.concatenate([positive, logits(q, unit(negatives))], axis=1)
    return -np.mean(log_softmax(both)[:, 0])


@correct("info_nce")
def info_nce_queries_along_columns(queries, keys, *, temperature):
    """The matrix is keys by queries, and the softmax runs down its columns."""
    logits = unit(keys) @ unit(queries).T / temperature
    return -np.mean(np.diagonal(log_softmax(logits, axis=0)))


@correct("info_nce")
def info_nce_differences_from_the_own_key(queries, keys, *, temperature):
    """The log of 1 + sum of e^(s_ij - s_ii), with the 1 as a logit of 0 on the diagonal."""
    s = unit(queries) @ unit(keys).T / temperature
    return np.mean(logsumexp(s - np.diagonal(s)[:, None]))


@correct("info_nce")
def info_nce_folded_temperature(queries, keys, *, temperature):
    """Both towers are divided by the square root of the temperature before they are compared."""
    root = np.sqrt(temperature)
    return cross_entropy((unit(queries) / root) @ (unit(keys) / root).T, np.arange(len(queries)))


@correct("clip")
def clip_diagonal_and_two_sums(image, text, *, logit_scale):
    """Two log-sum-exps of one matrix, and its diagonal, which both directions share."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    return np.mean((logsumexp(logits, axis=1) + logsumexp(logits, axis=0)) / 2 - np.diagonal(logits))


@correct("clip")
def clip_stacked_directions(image, text, *, logit_scale):
    """Both directions are one batch of 2 N rows with the labels repeated."""
    logits = np.einsum("nd,md->nm", unit(image) * logit_scale, unit(text))
    return cross_entropy(np.concatenate([logits, logits.T]), np.tile(np.arange(len(logits)), 2))


@correct("clip")
def clip_pair_after_pair(image, text, *, logit_scale):
    """A loop over pairs: one row and one column for each."""
    x, y = unit(image), unit(text)
    total = 0
    for i in range(len(x)):
        row, column = logit_scale * (y @ x[i]), logit_scale * (x @ y[i])
        total = total + (logsumexp(row) - row[i]) + (logsumexp(column) - column[i])
    return total / (2 * len(x))


@correct("clip")
def clip_one_hot_targets(image, text, *, logit_scale):
    """Cross-entropy with an identity matrix of targets, by rows and by columns."""
    x, y = image / np.sqrt(np.einsum("nd,nd->n", image, image))[:, None], unit(text)
    logits = (x @ y.T) * logit_scale
    targets = np.eye(len(x), dtype=image.real.dtype)
    return -np.sum(targets * (log_softmax(logits) + log_softmax(logits, axis=0))) / (2 * len(x))


@correct("siglip")
def siglip_cross_entropy_with_logits(image, text, *, logit_scale, logit_bias):
    """Binary cross-entropy with an identity matrix: softplus(l) - y l, added up and divided by N."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    labels = np.eye(len(logits), dtype=bool)
    return np.sum(np.where(labels, softplus(-logits), softplus(logits))) / len(logits)


@correct("siglip")
def siglip_rank_by_rank(image, text, *, logit_scale, logit_bias):
    """Texts are passed on in blocks of two; pairs across blocks are negative only."""
    x, y = unit(image), unit(text)
    total = 0
    for a in range(0, len(x), 2):
        for b in range(0, len(y), 2):
            logits = logit_scale * (x[a : a + 2] @ y[b : b + 2].T) + logit_bias
            own = np.arange(len(x))[a : a + 2, None] == np.arange(len(y))[b : b + 2]
            total = total + np.sum(softplus(np.where(own, -logits, logits)))
    return total / len(x)


@correct("siglip")
def siglip_bias_as_a_feature(image, text, *, logit_scale, logit_bias):
    """The bias is one more feature: a column of the bias on one side, of ones on the other."""
    x, y = logit_scale * unit(image), unit(text)
    ones = np.ones_like(y[:, :1])
    logits = np.concatenate([x, logit_bias * ones], axis=1) @ np.concatenate([y, ones], axis=1).T
    signs = 2 * np.eye(len(x), dtype=image.real.dtype) - 1
    return np.mean(np.sum(softplus(-signs * logits), axis=1))


@correct("moco")
def moco_queue_of_columns(queries, keys, queue, *, temperature):
    """The queue is D by K, and the positive is column 0 of the logits."""
    q, k, columns = unit(queries), stop(unit(keys)), stop(unit(queue)).T
    logits = np.concatenate([np.einsum("nc,nc->n", q, k)[:, None], np.einsum("nc,ck->nk", q, columns)], axis=1)
    return cross_entropy(logits / temperature, np.zeros(len(q), dtype=int))


@correct("moco")
def moco_queue_in_blocks(queries, keys, queue, *, temperature):
    """The queue is read in blocks of four with a running log-sum-exp that begins with the positive."""
    q, k, old = unit(queries), stop(unit(keys)), stop(unit(queue))
    positive = np.sum(q * k, axis=1, keepdims=True) / temperature
    blocks = [q @ old[begin : begin + 4].T / temperature for begin in range(0, len(old), 4)]
    return np.mean(_online([positive, *blocks]) - positive[:, 0])


@correct("moco")
def moco_softplus_of_the_gap(queries, keys, queue, *, temperature):
    """Softplus of the log-sum-exp of the queue minus the positive."""
    q = unit(queries)
    positive = np.sum(q * stop(unit(keys)), axis=1) / temperature
    return np.mean(softplus(logsumexp(q @ stop(unit(queue)).T / temperature) - positive))


@correct("hard_contrastive")
def hard_contrastive_by_partition(queries, keys, *, temperature, fraction):
    """The hardest negatives by a partial sort, which leaves them in any order."""
    s = unit(queries) @ unit(keys).T
    n = len(s)
    count = min(n - 1, max(1, math.ceil(round(float(np.real(fraction)) * (n - 1), 9))))
    if n == 1:
        return 0 * s[0, 0]
    negatives = s[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    order = np.argpartition(-np.real(negatives), count - 1, axis=1)[:, :count]
    kept = np.take_along_axis(negatives, order, axis=1)
    return -np.mean(log_softmax(np.concatenate([np.diagonal(s)[:, None], kept], axis=1) / temperature)[:, 0])


@correct("hard_contrastive")
def hard_contrastive_one_list_a_query(queries, keys, *, temperature, fraction):
    """A sorted list of negatives for each query, cut to the number that is kept."""
    q, k = unit(queries), unit(keys)
    rows = []
    for i in range(len(q)):
        s = k @ q[i]
        others = [j for j in np.argsort(-np.real(s), kind="stable") if j != i]
        count = max(1, math.ceil(round(float(np.real(fraction)) * len(others), 9)))
        logits = s[[i, *others[:count]]] / temperature
        rows.append(logsumexp(logits) - logits[0])
    return np.mean(np.stack(rows))


@correct("hard_contrastive")
def hard_contrastive_mask_by_rank(queries, keys, *, temperature, fraction):
    """Ranks of the negatives make a mask on the full matrix, all else is -inf."""
    s = unit(queries) @ unit(keys).T
    own = np.eye(len(s), dtype=bool)
    order = np.argsort(np.where(own, np.inf, -np.real(s)), axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable")
    count = max(1, math.ceil(round(float(np.real(fraction)) * (len(s) - 1), 9)))
    return _ratio(np.where(own | (ranks < count), s / temperature, -np.inf))


@correct("simple")
def simple_from_the_sums_of_rows(queries, keys):
    """All pairs at once from the sums of the rows; the diagonal is taken out again."""
    q, k = unit(queries), unit(keys)
    pulled, n = np.sum(q * k), len(q)
    everything = np.dot(np.sum(q, axis=0), np.sum(k, axis=0))
    return ((everything - pulled) / max(n - 1, 1) - pulled) / n


@correct("simple")
def simple_weights_as_a_matrix(queries, keys):
    """One matrix of weights: -1 on the diagonal and 1 / (N - 1) beside it."""
    n = len(queries)
    weights = np.where(np.eye(n, dtype=bool), -1, 1 / max(n - 1, 1)).astype(queries.real.dtype)
    return np.einsum("ij,id,jd->", weights, unit(queries), unit(keys)) / n


@correct("simple")
def simple_query_after_query(queries, keys):
    """A loop over queries, with the mean over the other keys."""
    q, k = unit(queries), unit(keys)
    rows = []
    for i in range(len(q)):
        others = np.delete(k, i, axis=0)
        rows.append((np.mean(others @ q[i]) if len(others) else 0) - k[i] @ q[i])
    return np.mean(np.stack(rows))


@correct("nce")
def nce_two_class_softmax(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """A softmax over two classes: the score of the model, and the log-density of the noise plus log nu."""

    def log_posteriors(logits, log_noise):
        noise = np.broadcast_to(log_noise + np.log(noise_ratio), logits.shape)
        return log_softmax(np.stack(np.broadcast_arrays(logits, noise), axis=1))

    data, noise = log_posteriors(data_logits, data_log_noise), log_posteriors(noise_logits, noise_log_noise)
    return -np.mean(data[:, 0]) - noise_ratio * np.mean(noise[:, 1])


@correct("nce")
def nce_weighted_binary_cross_entropy(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """One binary cross-entropy over data and noise together, with a weight for each row."""
    n, m = len(data_logits), len(noise_logits)
    logits = np.concatenate([data_logits - data_log_noise, noise_logits - noise_log_noise]) - np.log(noise_ratio)
    is_data = np.arange(n + m) < n
    weight = np.where(is_data, 1 / n, noise_ratio / m)
    return np.sum(weight * softplus(np.where(is_data, -logits, logits)))


@correct("nce")
def nce_logarithm_of_one_plus_odds(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """log1p of the odds against, on the side of 0 where the exponential is small."""
    log_ratio = np.log(noise_ratio)

    def against(u):
        up = np.real(u) > 0
        return np.where(up, u, 0) + np.log1p(np.exp(np.where(up, -u, u)))

    data = against(-(data_logits - (data_log_noise + log_ratio)))
    noise = against(noise_logits - (noise_log_noise + log_ratio))
    return np.sum(data) / len(data) + noise_ratio * (np.sum(noise) / len(noise))
