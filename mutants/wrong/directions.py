"""Bugs in losses of several directions: which pairs are compared beside queries with documents, and who is masked."""

import numpy as np

from mutants.bug import CONSTRUCTED, bug, cross_entropy, logsumexp, stop, unit


def cosines(queries, documents, temperature):
    """Queries with documents, queries with queries, and documents with documents, over the temperature."""
    q, d = unit(queries), unit(documents)
    return q @ d.T / temperature, q @ q.T / temperature, d @ d.T / temperature


def apart(s):
    """Pairs of a row with itself at minus infinity."""
    return np.where(np.eye(len(s), dtype=bool), -np.inf, s)


def first(blocks):
    """Cross-entropy of blocks side by side, the positives on the diagonal of the first."""
    return cross_entropy(np.concatenate(blocks, axis=1), np.arange(len(blocks[0])))


@bug("multi_direction", named="other-setting", seen="ms-swift, INFONCE_INCLUDE_QQ and INFONCE_INCLUDE_DD")
def directions_without_the_way_back(queries, documents, *, temperature):
    """Documents are compared among themselves and queries too; a document is never compared with all queries."""
    qd, qq, dd = cosines(queries, documents, temperature)
    return first([qd, apart(qq), apart(dd)])


@bug(
    "multi_direction",
    named="other-setting",
    seen="sentence-transformers, partition_mode='joint', its default",
    settings={"directions": "symmetric"},
)
def directions_joined(queries, documents, *, temperature):
    """Both directions share one softmax, where each is meant to have its own."""
    qd, _, _ = cosines(queries, documents, temperature)
    return first([qd, qd.T])


@bug("multi_direction", named="other-setting", seen=CONSTRUCTED, settings={"directions": "qd_qq"})
def directions_among_documents(queries, documents, *, temperature):
    """The flags are mixed up: documents are compared among themselves in the place of queries."""
    qd, _, dd = cosines(queries, documents, temperature)
    return first([qd, apart(dd)])


@bug("multi_direction", named="self-contrast-kept", seen=CONSTRUCTED)
def directions_with_themselves(queries, documents, *, temperature):
    """Nobody takes the diagonals out: a query competes with itself, and so does its document."""
    qd, qq, dd = cosines(queries, documents, temperature)
    return first([qd, qq, qd.T, dd])


@bug("multi_direction", named="masked-entries-count-one", seen=CONSTRUCTED, settings={"directions": "qd_qq_dd"})
def directions_masked_by_zero(queries, documents, *, temperature):
    """The similarity of a row with itself is multiplied by 0, which leaves an exponential of 1."""
    qd, qq, dd = cosines(queries, documents, temperature)
    others = 1 - np.eye(len(qd), dtype=qd.dtype)
    return first([qd, qq * others, dd * others])


@bug("multi_direction", named="positive-counted-once", seen=CONSTRUCTED)
def directions_with_the_positive_once(queries, documents, *, temperature):
    """The way back leaves its diagonal out, since the positive is there already."""
    qd, qq, dd = cosines(queries, documents, temperature)
    return first([qd, apart(qq), apart(qd.T), apart(dd)])


@bug(
    "multi_direction", named="measured-formula", thread="QwenLM/Qwen3-Embedding#20", settings={"directions": "qd_qq_dd"}
)
def directions_without_other_documents(queries, documents, *, temperature):
    """As a first version of the formula had it: of queries with documents the positive alone is in the sum."""
    qd, qq, dd = cosines(queries, documents, temperature)
    positive = np.diagonal(qd)
    total = np.concatenate([positive[:, None], apart(qq), apart(dd)], axis=1)
    return np.mean(logsumexp(total) - positive)


@bug(
    "multi_direction",
    named="one-direction-only",
    seen="sentence-transformers, whose default has one direction",
    settings={"directions": "symmetric"},
)
def directions_forth_alone(queries, documents, *, temperature):
    """Queries choose among documents, and nobody chooses among queries."""
    qd, _, _ = cosines(queries, documents, temperature)
    return first([qd])


@bug(
    "multi_direction",
    named="measured-formula",
    seen="ms-swift, INFONCE_INCLUDE_DD with hard negatives",
    settings={"directions": "qd_dd"},
)
def directions_own_hard_negatives_kept(queries, documents, negatives, *, temperature):
    """Among documents only the own one is masked: the hard negatives of the query stay, and repel its document."""
    q, d, n = unit(queries), unit(documents), unit(negatives).reshape(-1, negatives.shape[-1])
    dd = np.concatenate([apart(d @ d.T / temperature), d @ n.T / temperature], axis=1)
    return first([q @ d.T / temperature, q @ n.T / temperature, dd])


@bug("multi_direction", named="queue-dropped", seen=CONSTRUCTED)
def directions_hard_negatives_dropped(queries, documents, negatives, *, temperature):
    """The hard negatives are encoded, and no direction has them."""
    qd, qq, dd = cosines(queries, documents, temperature)
    return first([qd, apart(qq), qd.T, apart(dd)])


@bug("multi_direction", named="keys-detached", seen=CONSTRUCTED, settings={"directions": "qd_qq"})
def directions_documents_cached(queries, documents, *, temperature):
    """Documents come from a cache, without a gradient."""
    q, d = unit(queries), stop(unit(documents))
    return first([q @ d.T / temperature, apart(q @ q.T / temperature)])


@bug("multi_direction", named="sum-instead-of-mean", seen=CONSTRUCTED)
def directions_sum(queries, documents, *, temperature):
    """The rows are added up."""
    qd, qq, dd = cosines(queries, documents, temperature)
    total = np.concatenate([qd, apart(qq), qd.T, apart(dd)], axis=1)
    return np.sum(logsumexp(total) - np.diagonal(qd))
