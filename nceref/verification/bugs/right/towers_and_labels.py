"""Losses of two towers and losses with labels, written in the ways in which people write them correctly."""

from typing import Any

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, softplus, unit


def _indexed_log_softmax(queries, keys, *, temperature):
    log_prob = log_softmax(unit(queries) @ unit(keys).T / temperature)
    return -np.sum(np.diagonal(log_prob)) / queries.dtype.type(len(queries))


def _temperature_on_one_tower(queries, keys, *, temperature):
    logits = (unit(queries) / temperature) @ unit(keys).T
    return cross_entropy(logits, np.arange(len(logits)))


def _shifted_by_a_constant(queries, keys, *, temperature):
    """The largest logit that there can be is subtracted from all of them."""
    logits = (unit(queries) @ unit(keys).T - 1) / temperature
    return np.mean(logsumexp(logits) - np.diagonal(logits))


def _keys_in_another_order(queries, keys, *, temperature):
    order = np.arange(len(keys))[::-1]
    logits = unit(queries) @ unit(keys[order]).T / temperature
    return cross_entropy(logits, order)


def _explicit_positive_first(queries, keys, negatives, *, temperature):
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1, keepdims=True)
    logits = np.concatenate([positive, q @ unit(negatives).T], axis=1) / temperature
    return cross_entropy(logits, np.zeros(len(q), dtype=int))


def _queue_online(queries, keys, queue, *, temperature):
    """The queue is read in two parts, whose log-sum-exps are merged."""
    q, old = unit(queries), unit(queue)
    positive = np.sum(q * unit(keys), axis=1) / temperature
    parts = [positive] + [logsumexp(q @ part.T / temperature) for part in (old[:2], old[2:]) if len(part)]
    return np.mean(logsumexp(np.stack(parts, axis=1)) - positive)


def _scale_on_one_tower(image, text, *, logit_scale):
    x, y = logit_scale * unit(image), unit(text)
    labels = np.arange(len(x))
    return 0.5 * cross_entropy(x @ y.T, labels) + 0.5 * cross_entropy(y @ x.T, labels)


def _two_axes_of_one_matrix(image, text, *, logit_scale):
    logits = logit_scale * (unit(image) @ unit(text).T)
    rows, columns = np.diagonal(log_softmax(logits, axis=1)), np.diagonal(log_softmax(logits, axis=0))
    return -np.mean(rows + columns) / 2


def _concatenated_directions(image, text, *, logit_scale):
    logits = logit_scale * (unit(image) @ unit(text).T)
    n = len(logits)
    return cross_entropy(np.concatenate([logits, logits.T]), np.tile(np.arange(n), 2))


def _scale_through_its_logarithm(image, text, *, logit_scale):
    """The module keeps the logarithm; its exponential is the factor."""
    return _two_axes_of_one_matrix(image, text, logit_scale=np.exp(np.log(logit_scale)))


def _signs(image, text, *, logit_scale, logit_bias):
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return np.mean(np.sum(softplus(-sign * logits), axis=1))


def _positives_apart(image, text, *, logit_scale, logit_bias):
    """All pairs as negatives, and then the diagonal put right: softplus(-l) - softplus(l) = -l."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    own = np.eye(len(logits), dtype=bool)
    terms = np.where(own, softplus(-logits), softplus(logits))
    return np.sum(terms) / image.dtype.type(len(logits))


def _texts_in_chunks(image, text, *, logit_scale, logit_bias):
    """One text after the other, as in a ring of devices."""
    x, y, total = unit(image), unit(text), 0
    for j in range(len(y)):
        logits = logit_scale * (x @ y[j]) + logit_bias
        total = total + np.sum(softplus(np.where(np.arange(len(x)) == j, -logits, logits)))
    return total / image.dtype.type(len(x))


def _pairs(embeddings, labels, temperature):
    z, own = unit(embeddings), np.eye(len(embeddings), dtype=bool)
    return np.where(own, -np.inf, z @ z.T / temperature), (labels[:, None] == labels) & ~own


def _mean_log_probability(embeddings, labels, *, temperature):
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_softmax(logits), 0), axis=1) / count)


def _mean_similarity_of_the_positives(embeddings, labels, *, temperature):
    """The log-sum-exp minus the mean logit of the positives."""
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    return np.mean(logsumexp(logits) - np.sum(np.where(positive, logits, 0), axis=1) / count)


def _anchor_by_anchor(embeddings, labels, *, temperature):
    z, rows = unit(embeddings), []
    for i in range(len(z)):
        others = np.arange(len(z)) != i
        log_prob = log_softmax(z[others] @ z[i] / temperature)
        rows.append(-np.mean(log_prob[labels[others] == labels[i]]))
    return np.mean(np.array(rows))


def _lonely_rows_left_out(embeddings, labels, *, temperature):
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    rows = -np.sum(np.where(positive, log_softmax(logits), 0), axis=1) / np.maximum(count, 1)
    return np.sum(rows) / max(np.sum(count > 0), 1).astype(logits.real.dtype)


def _difference_of_log_sum_exps(embeddings, labels, *, temperature):
    logits, positive = _pairs(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(logits.real.dtype)
    return np.mean(logsumexp(logits) - logsumexp(np.where(positive, logits, -np.inf)) + np.log(count))


_PROGRAMS: dict[str, tuple[str, str, Any]] = {
    "info-nce-indexed": ("Log-softmax, read at the diagonal.", "info_nce", _indexed_log_softmax),
    "info-nce-one-tower": ("The temperature divides the queries.", "info_nce", _temperature_on_one_tower),
    "info-nce-shifted": ("1 is subtracted from every cosine.", "info_nce", _shifted_by_a_constant),
    "info-nce-reversed": ("Keys in reversed order, labels to match.", "info_nce", _keys_in_another_order),
    "info-nce-explicit": ("The positive first, then the negatives.", "info_nce", _explicit_positive_first),
    "moco-in-parts": ("The queue in two parts, merged.", "moco", _queue_online),
    "clip-one-tower": ("(t A) B' where t (A B') is written.", "clip", _scale_on_one_tower),
    "clip-two-axes": ("One matrix, log-softmax along both axes.", "clip", _two_axes_of_one_matrix),
    "clip-concatenated": ("2N rows of logits, one cross-entropy.", "clip", _concatenated_directions),
    "clip-log-scale": ("The scale as exp(log(scale)).", "clip", _scale_through_its_logarithm),
    "siglip-signs": ("softplus of -y l, summed by rows.", "siglip", _signs),
    "siglip-positives-apart": ("Diagonal and rest chosen by a mask.", "siglip", _positives_apart),
    "siglip-in-chunks": ("One text after the other.", "siglip", _texts_in_chunks),
    "supcon-out-log-softmax": ("Masked log-softmax, mean over positives.", "supcon_out", _mean_log_probability),
    "supcon-out-mean-logit": ("Mean logit of the positives.", "supcon_out", _mean_similarity_of_the_positives),
    "supcon-out-anchor-by-anchor": ("A loop over anchors.", "supcon_out", _anchor_by_anchor),
    "supcon-in-two-log-sum-exps": ("Two log-sum-exps and log |P|.", "supcon_in", _difference_of_log_sum_exps),
}

VARIANTS = (
    *(
        Mutant(id=name, sentence=sentence, thread="", losses=(loss,), named=(), program=program)
        for name, (sentence, loss, program) in _PROGRAMS.items()
    ),
    Mutant(
        id="supcon-out-skipping", sentence="Lonely anchors are left out, as asked for.", thread="",
        losses=("supcon_out",), named=(), program=_lonely_rows_left_out, settings={"no_positive": "skip"},
    ),
)  # fmt: skip
