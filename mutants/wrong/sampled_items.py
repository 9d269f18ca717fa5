"""Bugs in sampled softmax: how the counts of the items are taken off, and which items are left out."""

import numpy as np

from mutants.bug import CONSTRUCTED, bug, cross_entropy, logsumexp, unit


def scores(queries, items, temperature):
    """Cosines of all pairs over the temperature."""
    return unit(queries) @ unit(items).T / temperature


@bug("sampled_softmax", named="logq-missing", thread="NVIDIA-Merlin/models#1051")
def sampled_without_correction(queries, items, expected_counts, *, temperature):
    """The sampling probabilities reach the loss, and nothing is done with them."""
    return cross_entropy(scores(queries, items, temperature), np.arange(len(queries)))


@bug("sampled_softmax", named="logq-added", thread="tensorflow/recommenders#219")
def sampled_with_the_other_sign(queries, items, expected_counts, *, temperature):
    """The logarithm is added: what is sampled often is pushed away even more."""
    return cross_entropy(scores(queries, items, temperature) + np.log(expected_counts), np.arange(len(queries)))


@bug("sampled_softmax", named="logq-without-log", seen=CONSTRUCTED)
def sampled_without_logarithm(queries, items, expected_counts, *, temperature):
    """The counts themselves are subtracted."""
    return cross_entropy(scores(queries, items, temperature) - expected_counts, np.arange(len(queries)))


@bug("sampled_softmax", named="logq-divided-by-temperature", seen=CONSTRUCTED)
def sampled_correction_over_temperature(queries, items, expected_counts, *, temperature):
    """The temperature divides the corrected similarities."""
    s = unit(queries) @ unit(items).T - np.log(expected_counts)
    return cross_entropy(s / temperature, np.arange(len(queries)))


@bug("sampled_softmax", named="sum-instead-of-mean", seen="tensorflow-recommenders 0.7.3, Retrieval: its default")
def sampled_sum(queries, items, expected_counts, *, temperature):
    """The rows are added up."""
    logits = scores(queries, items, temperature) - np.log(expected_counts)
    return np.sum(logsumexp(logits) - np.diagonal(logits))


@bug("sampled_softmax", named="accidental-hits-kept", seen=CONSTRUCTED)
def sampled_with_accidental_hits(queries, items, expected_counts, item_ids, *, temperature):
    """The ids are passed, and nothing is left out."""
    return cross_entropy(scores(queries, items, temperature) - np.log(expected_counts), np.arange(len(queries)))


@bug("sampled_softmax", named="measured-formula", thread="keras-team/keras-rs#206")
def sampled_hits_of_the_first_row(queries, items, expected_counts, item_ids, *, temperature):
    """The id of the first query's item is broadcast to all rows."""
    logits, n = scores(queries, items, temperature) - np.log(expected_counts), len(queries)
    hits = (item_ids == item_ids[0])[None, :] & ~np.eye(n, dtype=bool)
    return cross_entropy(np.where(hits, -np.inf, logits), np.arange(n))


@bug("sampled_softmax", named="other-setting", seen=CONSTRUCTED, settings={"correction": "negatives"})
def sampled_positive_corrected(queries, items, expected_counts, *, temperature):
    """The positive, which is always there, is divided by its expected count as well."""
    return cross_entropy(scores(queries, items, temperature) - np.log(expected_counts), np.arange(len(queries)))


@bug("sampled_softmax", named="rows-not-normalized", seen=CONSTRUCTED)
def sampled_not_normalized(queries, items, expected_counts, *, temperature):
    """Inner products of rows as they come."""
    return cross_entropy(queries @ items.T / temperature - np.log(expected_counts), np.arange(len(queries)))


@bug("sampled_softmax", named="weights-not-detached", seen=CONSTRUCTED, settings={"correction": "weighted"})
def sampled_weights_with_gradient(queries, items, expected_counts, *, temperature):
    """The probability of a mistake, a weight, is differentiated as well."""
    s = scores(queries, items, temperature)
    corrected = np.where(np.eye(len(s), dtype=bool), -np.inf, s - np.log(expected_counts))
    gap = logsumexp(corrected) - np.diagonal(s)
    return np.mean(gap / (1 + np.exp(-gap)))
