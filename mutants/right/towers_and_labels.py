"""Losses of two towers and losses with labels, written in the ways in which people write them correctly."""

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, softplus, stop, unit


@correct("info_nce")
def info_nce_indexed(queries, keys, *, temperature):
    """Log-softmax, read at the diagonal."""
    log_prob = log_softmax(unit(queries) @ unit(keys).T / temperature)
    return -np.sum(np.diagonal(log_prob)) / queries.dtype.type(len(queries))


@correct("info_nce")
def info_nce_one_tower(queries, keys, *, temperature):
    """The temperature divides the queries."""
    logits = (unit(queries) / temperature) @ unit(keys).T
    return cross_entropy(logits, np.arange(len(logits)))


@correct("info_nce")
def info_nce_shifted(queries, keys, *, temperature):
    """The largest logit that there can be is subtracted from all of them."""
    logits = (unit(queries) @ unit(keys).T - 1) / temperature
    return np.mean(logsumexp(logits) - np.diagonal(logits))


@correct("info_nce")
def info_nce_reversed(queries, keys, *, temperature):
    """Keys in reversed order, labels to match."""
    order = np.arange(len(keys))[::-1]
    logits = unit(queries) @ unit(keys[order]).T / temperature
    return cross_entropy(logits, order)


@correct("info_nce")
def info_nce_explicit(queries, keys, negatives, *, temperature):
    """The positive first, then the negatives."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1, keepdims=True)
    logits = np.concatenate([positive, q @ unit(negatives).T], axis=1) / temperature
    return cross_entropy(logits, np.zeros(len(q), dtype=int))


@correct("moco")
def moco_in_parts(queries, keys, queue, *, temperature):
    """The queue in two parts, merged."""
    q, old = unit(queries), unit(queue)
    positive = np.sum(q * unit(keys), axis=1) / temperature
    parts = [positive] + [logsumexp(q @ part.T / temperature) for part in (old[:2], old[2:]) if len(part)]
    return np.mean(logsumexp(np.stack(parts, axis=1)) - positive)


@correct("clip")
def clip_one_tower(image, text, *, logit_scale):
    """(t A) B' where t (A B') is written."""
    x, y = logit_scale * unit(image), unit(text)
    labels = np.arange(len(x))
    return 0.5 * cross_entropy(x @ y.T, labels) + 0.5 * cross_entropy(y @ x.T, labels)


@correct("clip")
def clip_two_axes(image, text, *, logit_scale):
    """One matrix, log-softmax along both axes."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    rows, columns = np.diagonal(log_softmax(logits, axis=1)), np.diagonal(log_softmax(logits, axis=0))
    return -np.mean(rows + columns) / 2


@correct("clip")
def clip_concatenated(image, text, *, logit_scale):
    """2N rows of logits, one cross-entropy."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    n = len(logits)
    return cross_entropy(np.concatenate([logits, logits.T]), np.tile(np.arange(n), 2))


@correct("clip")
def clip_log_scale(image, text, *, logit_scale):
    """The scale as exp(log(scale))."""
    return clip_two_axes(image, text, logit_scale=np.exp(np.log(logit_scale)))


@correct("siglip")
def siglip_signs(image, text, *, logit_scale, logit_bias):
    """The softplus of -y l, summed by rows."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return np.mean(np.sum(softplus(-sign * logits), axis=1))


@correct("siglip")
def siglip_positives_apart(image, text, *, logit_scale, logit_bias):
    """All pairs as negatives, and then the diagonal put right: softplus(-l) - softplus(l) = -l."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    own = np.eye(len(logits), dtype=bool)
    terms = np.where(own, softplus(-logits), softplus(logits))
    return np.sum(terms) / image.dtype.type(len(logits))


@correct("siglip")
def siglip_in_chunks(image, text, *, logit_scale, logit_bias):
    """One text after the other."""
    x, y, total = unit(image), unit(text), 0
    for j in range(len(y)):
        logits = logit_scale * (x @ y[j]) + logit_bias
        total = total + np.sum(softplus(np.where(np.arange(len(x)) == j, -logits, logits)))
    return total / image.dtype.type(len(x))


def _pairs(embeddings, labels, temperature):
    z, own = unit(embeddings), np.eye(len(embeddings), dtype=bool)
    return np.where(own, -np.inf, z @ z.T / temperature), (labels[:, None] == labels) & ~own


@correct("supcon_out")
def supcon_out_log_softmax(embeddings, labels, *, temperature):
    """Masked log-softmax, mean over positives."""
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_softmax(logits), 0), axis=1) / count)


@correct("supcon_out")
def supcon_out_mean_logit(embeddings, labels, *, temperature):
    """Mean logit of the positives."""
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    return np.mean(logsumexp(logits) - np.sum(np.where(positive, logits, 0), axis=1) / count)


@correct("supcon_out")
def supcon_out_anchor_by_anchor(embeddings, labels, *, temperature):
    """A loop over anchors."""
    z, rows = unit(embeddings), []
    for i in range(len(z)):
        others = np.arange(len(z)) != i
        log_prob = log_softmax(z[others] @ z[i] / temperature)
        rows.append(-np.mean(log_prob[labels[others] == labels[i]]))
    return np.mean(np.array(rows))


@correct("supcon_out", settings={"no_positive": "skip"})
def supcon_out_skipping(embeddings, labels, *, temperature):
    """Anchors without a positive are left out, as the settings have it."""
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    rows = -np.sum(np.where(positive, log_softmax(logits), 0), axis=1) / np.maximum(count, 1)
    return np.sum(rows) / max(np.sum(count > 0), 1).astype(logits.real.dtype)


@correct("supcon_in")
def supcon_in_two_log_sum_exps(embeddings, labels, *, temperature):
    """Two log-sum-exps and log |P|."""
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    return np.mean(logsumexp(logits) - logsumexp(np.where(positive, logits, -np.inf)) + np.log(count))


@correct("mnrl")
def mnrl_joined(queries, documents, negatives, *, temperature):
    """One matrix: documents, then hard negatives, query by query."""
    q, n = unit(queries), unit(negatives)
    candidates = np.concatenate([unit(documents), n.reshape(-1, n.shape[-1])])
    return cross_entropy(q @ candidates.T / temperature, np.arange(len(q)))


@correct("mnrl")
def mnrl_interleaved(queries, documents, negatives, *, temperature):
    """Each document before its hard negatives, with targets to match."""
    passages = np.concatenate([documents[:, None], negatives], axis=1)
    count = passages.shape[1]
    logits = unit(queries) @ unit(passages.reshape(-1, passages.shape[-1])).T / temperature
    return cross_entropy(logits, count * np.arange(len(queries)))


@correct("mnrl", settings={"hardness": 3.0})
def mnrl_hardness_detached(queries, documents, *, temperature, hardness):
    """The weights of the negatives as factors of their exponentials."""
    s = unit(queries) @ unit(documents).T
    weights = hardness * stop(s) * (1 - np.eye(len(s), dtype=s.dtype))
    return np.mean(logsumexp(s / temperature + weights) - np.diagonal(s) / temperature)


@correct("sampled_softmax")
def sampled_by_weights(queries, items, expected_counts, *, temperature):
    """The counts as divisors of exponentials."""
    logits = unit(queries) @ unit(items).T / temperature
    return np.mean(logsumexp(logits - np.log(expected_counts)) - np.diagonal(logits) + np.log(expected_counts))


@correct("sampled_softmax")
def sampled_without_hits(queries, items, expected_counts, item_ids, *, temperature):
    """Accidental hits at minus infinity."""
    logits, n = unit(queries) @ unit(items).T / temperature - np.log(expected_counts), len(queries)
    hits = (item_ids[:, None] == item_ids) & ~np.eye(n, dtype=bool)
    return cross_entropy(np.where(hits, -np.inf, logits), np.arange(n))


@correct("sampled_softmax", settings={"correction": "negatives"})
def sampled_negatives_alone(queries, items, expected_counts, *, temperature):
    """The diagonal is left as it is."""
    logits, n = unit(queries) @ unit(items).T / temperature, len(queries)
    return cross_entropy(np.where(np.eye(n, dtype=bool), logits, logits - np.log(expected_counts)), np.arange(n))


@correct("multi_direction")
def directions_of_stacked_rows(queries, documents, *, temperature):
    """All pairs of the stacked rows in one matrix, of which a row and its document have two lines."""
    z, n = np.concatenate([unit(queries), unit(documents)]), len(queries)
    s = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    positive = np.diagonal(s[:n, n:])
    return np.mean(logsumexp(np.concatenate([s[:n], s[n:]], axis=1)) - positive)


@correct("multi_direction", settings={"directions": "symmetric"})
def directions_apart(queries, documents, *, temperature):
    """The mean of two cross-entropies."""
    s = unit(queries) @ unit(documents).T / temperature
    return (cross_entropy(s, np.arange(len(s))) + cross_entropy(s.T, np.arange(len(s)))) / 2


@correct("guided_info_nce")
def guided_in_one_matrix(queries, documents, guide_queries, guide_documents, *, temperature):
    """All blocks side by side; a row itself has a guide of 1, above every limit but one of 1."""
    q, d, gq, gd = (unit(x) for x in (queries, documents, guide_queries, guide_documents))
    n, own = len(q), np.eye(len(q), dtype=bool)
    s = np.concatenate([q @ d.T, q @ q.T, d @ d.T], axis=1) / temperature
    g = np.concatenate([gq @ gd.T, gq @ gq.T, gd @ gd.T], axis=1)
    never = np.concatenate([~own & False, own, own], axis=1)
    above = g > np.sum(gq * gd, axis=1)[:, None] + 1e-6
    positive = np.concatenate([own, own & False, own & False], axis=1)
    return cross_entropy(np.where((above | never) & ~positive, -np.inf, s), np.arange(n))


@correct("guided_info_nce", settings={"directions": "qd", "margin": 0.1})
def guided_by_its_own_rows(queries, documents, *, temperature, margin):
    """The cosines of the model, as constants, are the guide."""
    s = unit(queries) @ unit(documents).T
    fixed = stop(s).real
    above = (fixed > np.diagonal(fixed)[:, None] - margin) & ~np.eye(len(s), dtype=bool)
    return cross_entropy(np.where(above, -np.inf, s / temperature), np.arange(len(s)))
