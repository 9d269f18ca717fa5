"""Bugs in axes, in the order of rows, in labels that are indices, and in which towers meet."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, unit


def _softmax_over_the_batch(queries, keys, *, temperature):
    """dim=0, on a matrix with one row for each query."""
    logits = unit(queries) @ unit(keys).T / temperature
    return -np.mean(np.diagonal(log_softmax(logits, axis=0)))


def _labels_of_the_next_rank(queries, keys, *, temperature):
    """An offset that is right for gathered keys only."""
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, (np.arange(len(logits)) + 1) % len(logits))


def _views_in_turn(z1, z2, *, temperature):
    """Rows are [z1, z2], and the positives are those of [a1, b1, a2, b2, ...]."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, np.arange(2 * n) ^ 1)


def _one_way(image, text, *, logit_scale):
    logits = logit_scale * (unit(image) @ unit(text).T)
    return cross_entropy(logits, np.arange(len(logits)))


def _both_ways_added(image, text, *, logit_scale):
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return cross_entropy(logits, labels) + cross_entropy(logits.T, labels)


def _made_symmetric(queries, keys, *, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    labels = np.arange(len(logits))
    return 0.5 * (cross_entropy(logits, labels) + cross_entropy(logits.T, labels))


def _self_among_the_positives(embeddings, labels, *, temperature):
    """Rows fetched from a memory that holds the batch itself: the anchor is its own positive."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    logits = z @ z.T / temperature
    log_prob = logits - logsumexp(np.where(own, -np.inf, logits))[:, None]
    mask = labels[:, None] == labels
    return -np.mean(np.sum(np.where(mask, log_prob, 0), axis=1) / np.sum(mask, axis=1).astype(z.real.dtype))


def _one_positive_each(embeddings, labels, *, temperature):
    """The argmax of the mask of positives is the first of them."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    mask = (labels[:, None] == labels) & ~own
    return cross_entropy(np.where(own, -np.inf, z @ z.T / temperature), np.argmax(mask, axis=1))


def _last_batch_shorter(z1, z2, *, temperature):
    """The loop over anchors ends one row early."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    labels = np.roll(np.arange(2 * n), n)
    return cross_entropy(logits[:-1], labels[:-1])


def _not_normalized(queries, keys, queue, *, temperature):
    positive = np.sum(queries * keys, axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, queries @ queue.T], axis=1) / temperature)[:, 0])


def _points_off_the_sphere(x, *, t):
    squared = np.sum((x[:, None] - x[None, :]) ** 2, axis=-1)
    return np.log(np.mean(np.exp(-t * squared[np.triu_indices(len(x), 1)])))


def _pairs_off_the_sphere(x, y, *, exponent):
    return np.mean(np.sum((x - y) ** 2, axis=1) ** (exponent / 2))


def _whole_matrix_normalized(z1, z2, *, temperature):
    """l2_normalize without an axis."""
    n = len(z1)
    z = np.concatenate([z1 / np.sqrt(np.sum(z1 * z1)), z2 / np.sqrt(np.sum(z2 * z2))])
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, np.roll(np.arange(2 * n), n))


def _columns_normalized(queries, keys, *, temperature):
    """normalize(dim=0) on (batch, features)."""
    logits = unit(queries, axis=0) @ unit(keys, axis=0).T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


def _raw_queue(queries, keys, queue, *, temperature):
    """The queue was normalized along the wrong dimension when it was made: its rows have any length."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, q @ queue.T], axis=1) / temperature)[:, 0])


def _raw_classes(embeddings, class_weights, target, *, margin, scale):
    """F.linear(F.normalize(x), weight)."""
    cosine = unit(embeddings) @ class_weights.T
    hot = target[:, None] == np.arange(len(class_weights))
    return cross_entropy(scale * np.where(hot, cosine - margin, cosine), target)


def _normalized_once_more(image, text, *, logit_scale):
    """The caller asked for the rows as they are."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


MUTANTS = (
    Mutant(
        id="info-nce-softmax-over-the-batch",
        sentence="The softmax runs over the queries: dim=0 where dim=1 was meant.",
        thread="jefflai108/Contrastive-Predictive-Coding-PyTorch#19", losses=("info_nce",),
        named=("softmax-over-wrong-axis",), program=_softmax_over_the_batch,
    ),
    Mutant(
        id="info-nce-labels-of-the-next-rank",
        sentence="The index of the positive carries an offset; nothing was gathered.",
        thread="lightly-ai/lightly#1176", losses=("info_nce",), named=("labels-shifted",),
        program=_labels_of_the_next_rank,
    ),
    Mutant(
        id="nt-xent-views-in-turn",
        sentence="Positives are those of interleaved views, rows are one view after the other.",
        thread="Spijkervet/SimCLR#30", losses=("nt_xent",), named=("views-interleaved",), program=_views_in_turn,
    ),
    Mutant(
        id="clip-one-way",
        sentence="Images against texts only.", thread="tensorflow/similarity#258", losses=("clip",),
        named=("one-direction-only",), program=_one_way,
    ),
    Mutant(
        id="clip-both-ways-added",
        sentence="The two directions are added up, not averaged.",
        thread="Spijkervet/SimCLR#18", losses=("clip",), named=("directions-summed",), program=_both_ways_added,
        also=("outer-factor-2",),
    ),
    Mutant(
        id="info-nce-made-symmetric",
        sentence="Keys are anchors too, as in CLIP.", thread="torchgeo/torchgeo#1208",
        losses=("info_nce",), named=("both-directions-averaged",), program=_made_symmetric,
    ),
    Mutant(
        id="supcon-self-among-the-positives",
        sentence="The anchor is counted among its own positives.",
        thread="KevinMusgrave/pytorch-metric-learning#24", losses=("supcon_out",), named=("self-counted-as-positive",),
        program=_self_among_the_positives,
    ),
    Mutant(
        id="supcon-one-positive-each",
        sentence="Of several positives, the first is used.",
        thread="UKPLab/sentence-transformers#1862", losses=("supcon_out",), named=("first-positive-only",),
        program=_one_positive_each,
    ),
    Mutant(
        id="nt-xent-last-batch-shorter",
        sentence="The last anchor is left out.", thread="Project-MONAI/tutorials#865",
        losses=("nt_xent",), named=("last-row-missing",), program=_last_batch_shorter,
    ),
    Mutant(
        id="moco-not-normalized",
        sentence="No row is scaled to length 1.", thread="HobbitLong/SupContrast#22",
        losses=("moco",), named=("rows-not-normalized",), program=_not_normalized,
    ),
    Mutant(
        id="uniformity-off-the-sphere",
        sentence="The points are not on the sphere: uniformity runs to -infinity.",
        thread="princeton-nlp/SimCSE#41", losses=("uniformity",), named=("rows-not-normalized",),
        program=_points_off_the_sphere,
    ),
    Mutant(
        id="alignment-off-the-sphere",
        sentence="The rows are not scaled: an alignment of 185.",
        thread="ssnl/align_uniform#10", losses=("alignment",), named=("rows-not-normalized",),
        program=_pairs_off_the_sphere,
    ),
    Mutant(
        id="nt-xent-whole-matrix-normalized",
        sentence="The whole matrix is scaled to length 1, not its rows.",
        thread="", seen="tensorflow/similarity commit 98ecb57", losses=("nt_xent",), named=("matrix-normalized",),
        program=_whole_matrix_normalized,
    ),
    Mutant(
        id="info-nce-columns-normalized",
        sentence="Columns are scaled to length 1: normalize(dim=0).",
        thread="dvlab-research/Parametric-Contrastive-Learning#20", losses=("info_nce",),
        named=("columns-normalized",), program=_columns_normalized,
    ),
    Mutant(
        id="moco-raw-queue",
        sentence="The rows of the queue have any length.",
        thread="dvlab-research/Parametric-Contrastive-Learning#20", losses=("moco",), named=("queue-not-normalized",),
        program=_raw_queue,
    ),
    Mutant(
        id="cosface-raw-classes",
        sentence="The embeddings are normalized, the class weights are not.",
        thread="", seen="re-implementations that forget F.normalize(weight)", losses=("cosface",),
        named=("second-input-not-normalized",), program=_raw_classes,
    ),
    Mutant(
        id="clip-normalized-once-more",
        sentence="The rows are normalized inside although the caller asked for none.",
        thread="moein-shariatnia/OpenAI-CLIP#16", losses=("clip",), named=("rows-normalized",),
        program=_normalized_once_more, settings={"normalize": "none"},
    ),
)  # fmt: skip
