"""Bugs in rankings against hard negatives: which of them count, how they are laid out, and what is added to them."""

import numpy as np

from mutants.bug import CONSTRUCTED, bug, cross_entropy, log_softmax, logsumexp, softplus, stop, unit


def joined(queries, documents, negatives):
    """Cosines of the queries with all documents, and then with all hard negatives, query by query."""
    q, d, n = unit(queries), unit(documents), unit(negatives)
    return q @ np.concatenate([d, n.reshape(-1, n.shape[-1])]).T


@bug("mnrl", named="other-setting", thread="modelscope/ms-swift#6969", settings={"candidates": "own"})
def mnrl_negatives_of_everyone(queries, documents, negatives, *, temperature):
    """The hard negatives of all queries are in every denominator, where the user means the query's own."""
    return cross_entropy(joined(queries, documents, negatives) / temperature, np.arange(len(queries)))


@bug("mnrl", named="other-setting", seen="NeMo, its loss of retrieval")
def mnrl_negatives_of_the_query(queries, documents, negatives, *, temperature):
    """Each query meets its own hard negatives alone, beside all documents."""
    q = unit(queries)
    own = np.sum(q[:, None] * unit(negatives), axis=-1)
    logits = np.concatenate([q @ unit(documents).T, own], axis=1) / temperature
    return cross_entropy(logits, np.arange(len(q)))


@bug("mnrl", named="other-setting", seen="ms-swift, INFONCE_USE_BATCH=False")
def mnrl_without_the_batch(queries, documents, negatives, *, temperature):
    """Only the own hard negatives compete: the documents of other queries are left out."""
    q = unit(queries)
    passages = np.concatenate([unit(documents)[:, None], unit(negatives)], axis=1)
    logits = np.sum(q[:, None] * passages, axis=-1) / temperature
    return cross_entropy(logits, np.zeros(len(q), dtype=int))


@bug("mnrl", named="in-batch-negatives-dropped", seen="uniem, TripletInBatchNegSoftmaxContrastLoss")
def mnrl_hard_negatives_of_everyone_alone(queries, documents, negatives, *, temperature):
    """The hard negatives of all queries compete with the document, and the other documents do not."""
    q, d = unit(queries), unit(documents)
    hard = q @ unit(negatives).reshape(-1, d.shape[1]).T
    logits = np.concatenate([np.sum(q * d, axis=1, keepdims=True), hard], axis=1) / temperature
    return cross_entropy(logits, np.zeros(len(q), dtype=int))


@bug("mnrl", named="measured-formula", seen="MoCa, whose issue 2 reports it")
def mnrl_targets_of_another_layout(queries, documents, negatives, *, temperature):
    """Passages are laid out query by query, each document before its hard negatives, and target i is column i."""
    passages = np.concatenate([unit(documents)[:, None], unit(negatives)], axis=1)
    logits = unit(queries) @ passages.reshape(-1, passages.shape[-1]).T / temperature
    return cross_entropy(logits, np.arange(len(queries)))


@bug("mnrl", named="input-replaced", thread="modelscope/ms-swift#10068")
def mnrl_document_resampled_as_negative(queries, documents, negatives, *, temperature):
    """Hard negatives that are missing are drawn from a range that begins one place early, at the document itself."""
    resampled = np.concatenate([negatives[:, :-1], documents[:, None]], axis=1)
    return cross_entropy(joined(queries, documents, resampled) / temperature, np.arange(len(queries)))


@bug("mnrl", named="queue-not-normalized", seen="texttron/tevatron, whose encoder normalizes only on request")
def mnrl_hard_negatives_as_they_are(queries, documents, negatives, *, temperature):
    """Queries and documents have length 1, and the hard negatives the length that they come with."""
    q, n = unit(queries), negatives.reshape(-1, negatives.shape[-1])
    logits = np.concatenate([q @ unit(documents).T, q @ n.T], axis=1) / temperature
    return cross_entropy(logits, np.arange(len(q)))


@bug("mnrl", named="queue-dropped", seen=CONSTRUCTED)
def mnrl_hard_negatives_dropped(queries, documents, negatives, *, temperature):
    """The hard negatives are encoded and never compared: the loss takes the first two columns of the data."""
    return cross_entropy(unit(queries) @ unit(documents).T / temperature, np.arange(len(queries)))


@bug("mnrl", named="measured-formula", seen=CONSTRUCTED)
def mnrl_first_hard_negative(queries, documents, negatives, *, temperature):
    """Of several hard negatives only the first one of each query counts, as in a loss that was written for triplets."""
    return cross_entropy(joined(queries, documents, negatives[:, :1]) / temperature, np.arange(len(queries)))


@bug("mnrl", named="measured-formula", seen=CONSTRUCTED)
def mnrl_hard_negatives_without_temperature(queries, documents, negatives, *, temperature):
    """The temperature divides the similarities of the batch before those of the hard negatives are put beside them."""
    s, n = joined(queries, documents, negatives), len(queries)
    return cross_entropy(np.concatenate([s[:, :n] / temperature, s[:, n:]], axis=1), np.arange(n))


@bug("mnrl", named="temperature-missing", seen="pylate, whose default temperature is 1.0")
def mnrl_at_temperature_one(queries, documents, negatives, *, temperature):
    """The temperature of the configuration never reaches the loss."""
    return cross_entropy(joined(queries, documents, negatives), np.arange(len(queries)))


@bug("mnrl", named="hardness-over-temperature", seen=CONSTRUCTED, settings={"hardness": 3.0})
def mnrl_hardness_over_temperature(queries, documents, *, temperature, hardness):
    """The hardness is added before the division by the temperature."""
    s = unit(queries) @ unit(documents).T
    logits = (s + hardness * stop(s) * (1 - np.eye(len(s), dtype=s.dtype))) / temperature
    return cross_entropy(logits, np.arange(len(s)))


@bug("mnrl", named="hardness-on-every-candidate", seen=CONSTRUCTED, settings={"hardness": 3.0})
def mnrl_hardness_of_the_positive(queries, documents, *, temperature, hardness):
    """The similarity is added to all logits, that of the positive as well."""
    s = unit(queries) @ unit(documents).T
    return cross_entropy(s / temperature + hardness * stop(s), np.arange(len(s)))


@bug("mnrl", named="value-right-gradient-wrong", seen=CONSTRUCTED, settings={"hardness": 3.0})
def mnrl_hardness_with_gradient(queries, documents, *, temperature, hardness):
    """The similarity that is added as a weight is not detached: its slope joins that of the logit."""
    s = unit(queries) @ unit(documents).T
    return cross_entropy(s / temperature + hardness * s * (1 - np.eye(len(s), dtype=s.dtype)), np.arange(len(s)))


@bug("mnrl", named="measured-formula", seen="illuin-tech/colpali, BiNegativeCELoss")
def mnrl_softplus_of_the_hard_negatives(queries, documents, negatives, *, temperature):
    """Half of InfoNCE over the batch, and half of a softplus of each hard negative against the positive."""
    q = unit(queries)
    s = q @ unit(documents).T / temperature
    own = np.sum(q[:, None] * unit(negatives), axis=-1) / temperature
    apart = softplus(own - np.diagonal(s)[:, None])
    return 0.5 * np.mean(logsumexp(s) - np.diagonal(s)) + 0.5 * np.mean(apart)


@bug("mnrl", named="sum-instead-of-mean", seen=CONSTRUCTED)
def mnrl_sum(queries, documents, negatives, *, temperature):
    """The rows are added up."""
    return -np.sum(np.diagonal(log_softmax(joined(queries, documents, negatives) / temperature)))
