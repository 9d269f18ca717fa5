"""Held out: one bug each in who is compared with whom, in the positives and in the axis."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, unit


@bug("supcon_out", named="masked-entries-count-one", thread="google-research/simclr#20")
def supcon_out_self_times_zero(embeddings, labels, *, temperature):
    """The self logit is multiplied by 0 in place of -inf and counts exp(0) = 1."""
    z = unit(embeddings)
    others = 1 - np.eye(len(z), dtype=z.dtype)
    logits = others * (z @ z.T / temperature)
    positives = others * (labels[:, None] == labels)
    log_prob = logits - logsumexp(logits)[:, None]
    return -np.mean(np.sum(positives * log_prob, axis=1) / np.sum(positives, axis=1))


@bug("dclw", named="denominators-added-as-logs", thread="lightly-ai/lightly#1827")
def dclw_two_logsumexps(z1, z2, *, temperature, sigma):
    """The weighted decoupled loss adds the log-sum-exp of one view to that of the other."""
    a, b = unit(z1), unit(z2)
    total = 0
    for one, two in ((a, b), (b, a)):
        positive = np.sum(one * two, axis=1)
        mass = np.exp(np.real(positive) / sigma)
        weight = 2 - mass / np.mean(mass)
        own, other = ((one @ x.T / temperature) for x in (one, two))
        off = ~np.eye(len(one), dtype=bool)
        own, other = (logsumexp(np.where(off, x, -np.inf)) for x in (own, other))
        total = total + np.mean(-weight * positive / temperature + own + other)
    return total / 2


@bug("moco", named="phantom-candidate", seen="tensorflow/similarity 0.17.1, multineg_ranking_loss")
def moco_sum_begins_at_zero(queries, keys, queue, *, temperature):
    """The log-sum-exp over the queue begins with a candidate of logit 0."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1, keepdims=True) / temperature
    logits = np.concatenate([positive, q @ unit(queue).T / temperature], axis=1)
    return np.mean(logsumexp(np.concatenate([0 * positive, logits], axis=1)) - positive[:, 0])


@bug("moco", named="positive-dropped-from-denominator", thread="danielward27/flowjax#164")
def moco_true_sample_missing(queries, keys, queue, *, temperature):
    """The normalizer is summed over the contrasting samples without the true one."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1) / temperature
    return -np.mean(positive - logsumexp(q @ unit(queue).T / temperature))


@bug("nt_xent", named="positive-counted-twice", thread="modelscope/ms-swift#10068")
def nt_xent_positive_also_negative(z1, z2, *, temperature):
    """The positive is concatenated in front of all other rows, and is one of these too."""
    # Column 0 is the positive, and what follows is all but the anchor: the positive once more.
    n, z = len(z1), unit(np.concatenate([z1, z2]))
    similarity = z @ z.T / temperature
    positives = np.concatenate([np.diagonal(similarity, n), np.diagonal(similarity, -n)])[:, None]
    rest = similarity[~np.eye(2 * n, dtype=bool)].reshape(2 * n, -1)
    return cross_entropy(np.concatenate([positives, rest], axis=1), 0)


@bug("dcl", named="masked-entries-count-one", thread="raminnakhli/Decoupled-Contrastive-Learning#14")
def dcl_multiplicative_mask(z1, z2, *, temperature):
    """The mask multiplies logits, so that the anchor and its positive count exp(0) = 1 each."""
    a, b = unit(z1), unit(z2)
    mask = 1 - np.eye(len(a), dtype=a.dtype)
    total = 0
    for one, two in ((a, b), (b, a)):
        cross, own = one @ two.T / temperature, one @ one.T / temperature
        total = total + np.mean(logsumexp(np.concatenate([mask * own, mask * cross], axis=1)) - np.diagonal(cross))
    return total / 2


@bug(
    "supcon_out",
    named="queue-dropped",
    thread="KevinMusgrave/pytorch-metric-learning#24",
    settings={"labels": ..., "queue": ..., "queue_labels": ...},
)
def supcon_out_memory_after_loss(embeddings, labels, *, temperature, queue, queue_labels):
    """The memory gets its rows after the loss was taken; the loss is that of the batch alone."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    logits = np.where(others, z @ z.T / temperature, -np.inf)
    log_prob = np.where(positives, log_softmax(logits), 0)
    return -np.mean(np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1))


@bug("clip", named="labels-shifted", thread="lightly-ai/lightly#1176")
def clip_target_offset_by_rank(image, text, *, logit_scale):
    """Targets are offset by the rank although nothing was gathered."""
    logits = logit_scale * unit(image) @ unit(text).T
    target = (np.arange(len(logits)) + 1) % len(logits)
    return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2


@bug("dcl", named="views-interleaved", thread="Spijkervet/SimCLR#37")
def dcl_views_in_turns(z1, z2, *, temperature):
    """Masks expect the views row by row in turns, but one view follows the other."""
    z = unit(np.concatenate([z1, z2]))
    logits = z @ z.T / temperature
    rows = np.arange(len(z))
    partner = rows ^ 1
    negatives = (rows != rows[:, None]) & (rows != partner[:, None])
    return np.mean(logsumexp(np.where(negatives, logits, -np.inf)) - logits[rows, partner])


@bug("supcon_in", named="self-counted-as-positive", thread="KevinMusgrave/pytorch-metric-learning#141")
def supcon_in_full_diagonal(embeddings, labels, *, temperature):
    """The mask of equal labels keeps its diagonal: every anchor is its own positive."""
    z = unit(embeddings)
    logits = z @ z.T / temperature
    same = labels[:, None] == labels
    everyone = logsumexp(np.where(np.eye(len(z), dtype=bool), -np.inf, logits))
    positives = logsumexp(np.where(same, logits, -np.inf)) - np.log(np.sum(same.astype(z.dtype), axis=1))
    return np.mean(everyone - positives)


@bug("supcon_in", named="first-positive-only", thread="UKPLab/sentence-transformers#1862")
def supcon_in_one_target_index(embeddings, labels, *, temperature):
    """A cross-entropy with one target index: the first of several positives."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    first = np.argmax(others & (labels[:, None] == labels), axis=1)
    return cross_entropy(np.where(others, z @ z.T / temperature, -np.inf), first)


@bug("clip", named="other-direction-only", thread="tensorflow/similarity#258")
def clip_text_to_image_only(image, text, *, logit_scale):
    """Texts look for images and not the other way round."""
    logits = logit_scale * unit(text) @ unit(image).T
    return cross_entropy(logits, np.arange(len(logits)))


@bug("dcl", named="first-view-only", seen="raminnakhli/Decoupled-Contrastive-Learning, loss/dcl.py")
def dcl_anchors_of_one_view(z1, z2, *, temperature):
    """The loss is called once, with anchors of the first view."""
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    logits = np.concatenate([np.where(off, a @ x.T / temperature, -np.inf) for x in (a, b)], axis=1)
    return np.mean(logsumexp(logits) - np.sum(a * b, axis=1) / temperature)


@bug("simple", named="columns-normalized", thread="dvlab-research/Parametric-Contrastive-Learning#20")
def simple_normalized_along_samples(queries, keys):
    """Samples are normalized along dimension 0."""
    q, k = unit(queries, axis=0), unit(keys, axis=0)
    s = q @ k.T
    n, own = len(s), np.trace(s)
    return (-own + (np.sum(s) - own) / max(n - 1, 1)) / n


@bug("alignment", named="matrix-normalized", thread="tensorflow/similarity#262")
def alignment_norm_of_matrix(x, y, *, exponent):
    """The norm without an axis divides each input by the length of the whole matrix."""
    x, y = (v / np.sqrt(np.sum(v * v)) for v in (x, y))
    return np.mean(np.sum((x - y) ** 2, axis=1) ** (exponent / 2))


@bug("supcon_in", named="rows-not-normalized", thread="HobbitLong/SupContrast#100")
def supcon_in_raw_rows(embeddings, labels, *, temperature):
    """The features are not normalized, neither outside nor inside."""
    others = ~np.eye(len(embeddings), dtype=bool)
    positives = others & (labels[:, None] == labels)
    logits = embeddings @ embeddings.T / temperature
    inside = logsumexp(np.where(positives, logits, -np.inf)) - np.log(np.sum(positives.astype(logits.dtype), axis=1))
    return np.mean(logsumexp(np.where(others, logits, -np.inf)) - inside)
