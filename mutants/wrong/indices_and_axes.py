"""Bugs in axes, in the order of rows, in labels that are indices, and in which towers meet."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, unit


@bug("info_nce", named="softmax-over-wrong-axis", thread="jefflai108/Contrastive-Predictive-Coding-PyTorch#19")
def info_nce_softmax_over_the_batch(queries, keys, *, temperature):
    """The softmax runs over the queries: dim=0 where dim=1 was meant."""
    logits = unit(queries) @ unit(keys).T / temperature
    return -np.mean(np.diagonal(log_softmax(logits, axis=0)))


@bug("info_nce", named="labels-shifted", thread="lightly-ai/lightly#1176")
def info_nce_labels_of_the_next_rank(queries, keys, *, temperature):
    """The index of the positive carries an offset; nothing was gathered."""
    # An offset that is right for gathered keys only.
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, (np.arange(len(logits)) + 1) % len(logits))


@bug("nt_xent", named="views-interleaved", thread="Spijkervet/SimCLR#30")
def nt_xent_views_in_turn(z1, z2, *, temperature):
    """Positives are those of interleaved views, rows are one view after the other."""
    # Rows are [z1, z2], and the positives are those of [a1, b1, a2, b2, ...].
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, np.arange(2 * n) ^ 1)


@bug("clip", named="one-direction-only", thread="tensorflow/similarity#258")
def clip_one_way(image, text, *, logit_scale):
    """Images against texts only."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    return cross_entropy(logits, np.arange(len(logits)))


@bug("clip", named="directions-summed", thread="Spijkervet/SimCLR#18", also=("outer-factor-2",))
def clip_both_ways_added(image, text, *, logit_scale):
    """The two directions are added up, not averaged."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return cross_entropy(logits, labels) + cross_entropy(logits.T, labels)


@bug("info_nce", named="both-directions-averaged", thread="torchgeo/torchgeo#1208")
def info_nce_made_symmetric(queries, keys, *, temperature):
    """Keys are anchors too, as in CLIP."""
    logits = unit(queries) @ unit(keys).T / temperature
    labels = np.arange(len(logits))
    return 0.5 * (cross_entropy(logits, labels) + cross_entropy(logits.T, labels))


@bug("supcon_out", named="self-counted-as-positive", thread="KevinMusgrave/pytorch-metric-learning#24")
def supcon_self_among_the_positives(embeddings, labels, *, temperature):
    """The anchor is counted among its own positives."""
    # Rows fetched from a memory that holds the batch itself: the anchor is its own positive.
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    logits = z @ z.T / temperature
    log_prob = logits - logsumexp(np.where(own, -np.inf, logits))[:, None]
    mask = labels[:, None] == labels
    return -np.mean(np.sum(np.where(mask, log_prob, 0), axis=1) / np.sum(mask, axis=1).astype(z.real.dtype))


@bug("supcon_out", named="first-positive-only", thread="UKPLab/sentence-transformers#1862")
def supcon_one_positive_each(embeddings, labels, *, temperature):
    """Of several positives, the first is used."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    mask = (labels[:, None] == labels) & ~own
    return cross_entropy(np.where(own, -np.inf, z @ z.T / temperature), np.argmax(mask, axis=1))


@bug("nt_xent", named="last-row-missing", thread="Project-MONAI/tutorials#865")
def nt_xent_last_batch_shorter(z1, z2, *, temperature):
    """The last anchor is left out."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    labels = np.roll(np.arange(2 * n), n)
    return cross_entropy(logits[:-1], labels[:-1])


@bug("moco", named="rows-not-normalized", thread="HobbitLong/SupContrast#22")
def moco_not_normalized(queries, keys, queue, *, temperature):
    """No row is scaled to length 1."""
    positive = np.sum(queries * keys, axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, queries @ queue.T], axis=1) / temperature)[:, 0])


# In float32 every exponential of rows of length 10000 is lost.
@bug("uniformity", named="rows-not-normalized", thread="princeton-nlp/SimCSE#41",
     also=("rows-not-normalized+value-not-finite",))  # fmt: skip
def uniformity_off_the_sphere(x, *, t):
    """The points are not on the sphere: uniformity runs to -infinity."""
    squared = np.sum((x[:, None] - x[None, :]) ** 2, axis=-1)
    return np.log(np.mean(np.exp(-t * squared[np.triu_indices(len(x), 1)])))


@bug("alignment", named="rows-not-normalized", thread="ssnl/align_uniform#10")
def alignment_off_the_sphere(x, y, *, exponent):
    """The rows are not scaled: an alignment of 185."""
    return np.mean(np.sum((x - y) ** 2, axis=1) ** (exponent / 2))


@bug("nt_xent", named="matrix-normalized", seen="tensorflow/similarity commit 98ecb57")
def nt_xent_whole_matrix_normalized(z1, z2, *, temperature):
    """The whole matrix is scaled to length 1, not its rows."""
    # l2_normalize without an axis.
    n = len(z1)
    z = np.concatenate([z1 / np.sqrt(np.sum(z1 * z1)), z2 / np.sqrt(np.sum(z2 * z2))])
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, np.roll(np.arange(2 * n), n))


@bug("info_nce", named="columns-normalized", thread="dvlab-research/Parametric-Contrastive-Learning#20")
def info_nce_columns_normalized(queries, keys, *, temperature):
    """Columns are scaled to length 1: normalize(dim=0)."""
    logits = unit(queries, axis=0) @ unit(keys, axis=0).T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


@bug("moco", named="queue-not-normalized", thread="dvlab-research/Parametric-Contrastive-Learning#20")
def moco_raw_queue(queries, keys, queue, *, temperature):
    """The rows of the queue have any length."""
    # The queue was normalized along the wrong dimension when it was made: its rows have any length.
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, q @ queue.T], axis=1) / temperature)[:, 0])


@bug("cosface", named="second-input-not-normalized", seen="re-implementations that forget F.normalize(weight)")
def cosface_raw_classes(embeddings, class_weights, target, *, margin, scale):
    """The embeddings are normalized, the class weights are not."""
    # F.linear(F.normalize(x), weight).
    cosine = unit(embeddings) @ class_weights.T
    hot = target[:, None] == np.arange(len(class_weights))
    return cross_entropy(scale * np.where(hot, cosine - margin, cosine), target)


@bug("clip", named="rows-normalized", thread="moein-shariatnia/OpenAI-CLIP#16", settings={"normalize": "none"})
def clip_normalized_once_more(image, text, *, logit_scale):
    """The rows are normalized inside although the settings exclude it."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2
