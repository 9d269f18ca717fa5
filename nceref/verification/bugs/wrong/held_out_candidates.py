"""Held out: one bug each in who is compared with whom, in the positives and in the axis."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, unit


def _supcon_times_zero(embeddings, labels, *, temperature):
    """The self logit is multiplied by 0, and exp(0) stays in the sum."""
    z = unit(embeddings)
    others = 1 - np.eye(len(z), dtype=z.dtype)
    logits = others * (z @ z.T / temperature)
    positives = others * (labels[:, None] == labels)
    log_prob = logits - logsumexp(logits)[:, None]
    return -np.mean(np.sum(positives * log_prob, axis=1) / np.sum(positives, axis=1))


def _dclw_two_logsumexps(z1, z2, *, temperature, sigma):
    """The log-sum-exp of the own view plus that of the other view, in place of one over both."""
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


def _moco_padded(queries, keys, queue, *, temperature):
    """The log-sum-exp begins at 0, not at -inf: one candidate that nobody put there."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1, keepdims=True) / temperature
    logits = np.concatenate([positive, q @ unit(queue).T / temperature], axis=1)
    return np.mean(logsumexp(np.concatenate([0 * positive, logits], axis=1)) - positive[:, 0])


def _moco_without_sample(queries, keys, queue, *, temperature):
    """The normalizer is the sum over the contrasting samples, without the true one."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1) / temperature
    return -np.mean(positive - logsumexp(q @ unit(queue).T / temperature))


def _nt_xent_positive_again(z1, z2, *, temperature):
    """Column 0 is the positive, and what follows is all but the anchor: the positive once more."""
    n, z = len(z1), unit(np.concatenate([z1, z2]))
    similarity = z @ z.T / temperature
    positives = np.concatenate([np.diagonal(similarity, n), np.diagonal(similarity, -n)])[:, None]
    rest = similarity[~np.eye(2 * n, dtype=bool)].reshape(2 * n, -1)
    return cross_entropy(np.concatenate([positives, rest], axis=1), 0)


def _dcl_multiplicative_mask(z1, z2, *, temperature):
    """Own view and positive are multiplied by 0, and exp(0) of both stays in the sum."""
    a, b = unit(z1), unit(z2)
    mask = 1 - np.eye(len(a), dtype=a.dtype)
    total = 0
    for one, two in ((a, b), (b, a)):
        cross, own = one @ two.T / temperature, one @ one.T / temperature
        total = total + np.mean(logsumexp(np.concatenate([mask * own, mask * cross], axis=1)) - np.diagonal(cross))
    return total / 2


def _supcon_memory_too_late(embeddings, labels, *, temperature, queue, queue_labels):
    """The memory is filled after the loss was taken: it gets rows that the loss never reads."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    logits = np.where(others, z @ z.T / temperature, -np.inf)
    log_prob = np.where(positives, log_softmax(logits), 0)
    return -np.mean(np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1))


def _clip_rank_offset(image, text, *, logit_scale):
    """Targets are offset by the rank although nothing was gathered: 1 is added, modulo the batch."""
    logits = logit_scale * unit(image) @ unit(text).T
    target = (np.arange(len(logits)) + 1) % len(logits)
    return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2


def _dcl_gathered_pairs(z1, z2, *, temperature):
    """Masks for views that alternate row by row, on views that follow one another."""
    z = unit(np.concatenate([z1, z2]))
    logits = z @ z.T / temperature
    rows = np.arange(len(z))
    partner = rows ^ 1
    negatives = (rows != rows[:, None]) & (rows != partner[:, None])
    return np.mean(logsumexp(np.where(negatives, logits, -np.inf)) - logits[rows, partner])


def _supcon_in_own_positive(embeddings, labels, *, temperature):
    """The mask of equal labels has a full diagonal, so that every anchor is a positive of itself."""
    z = unit(embeddings)
    logits = z @ z.T / temperature
    same = labels[:, None] == labels
    everyone = logsumexp(np.where(np.eye(len(z), dtype=bool), -np.inf, logits))
    positives = logsumexp(np.where(same, logits, -np.inf)) - np.log(np.sum(same.astype(z.dtype), axis=1))
    return np.mean(everyone - positives)


def _supcon_in_one_index(embeddings, labels, *, temperature):
    """One target index an anchor: the first row with its label."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    first = np.argmax(others & (labels[:, None] == labels), axis=1)
    return cross_entropy(np.where(others, z @ z.T / temperature, -np.inf), first)


def _clip_text_only(image, text, *, logit_scale):
    """Only texts look for images."""
    logits = logit_scale * unit(text) @ unit(image).T
    return cross_entropy(logits, np.arange(len(logits)))


def _dcl_first_view(z1, z2, *, temperature):
    """Called once, with anchors of the first view only."""
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    logits = np.concatenate([np.where(off, a @ x.T / temperature, -np.inf) for x in (a, b)], axis=1)
    return np.mean(logsumexp(logits) - np.sum(a * b, axis=1) / temperature)


def _simple_default_dim(queries, keys):
    """Rows of samples are normalized along dimension 0."""
    q, k = unit(queries, axis=0), unit(keys, axis=0)
    s = q @ k.T
    n, own = len(s), np.trace(s)
    return (-own + (np.sum(s) - own) / max(n - 1, 1)) / n


def _alignment_whole_matrix(x, y, *, exponent):
    """A norm without an axis is that of the whole matrix."""
    x, y = (v / np.sqrt(np.sum(v * v)) for v in (x, y))
    return np.mean(np.sum((x - y) ** 2, axis=1) ** (exponent / 2))


def _supcon_in_raw_rows(embeddings, labels, *, temperature):
    """Rows come from the head as they are."""
    others = ~np.eye(len(embeddings), dtype=bool)
    positives = others & (labels[:, None] == labels)
    logits = embeddings @ embeddings.T / temperature
    inside = logsumexp(np.where(positives, logits, -np.inf)) - np.log(np.sum(positives.astype(logits.dtype), axis=1))
    return np.mean(logsumexp(np.where(others, logits, -np.inf)) - inside)


MUTANTS = (
    Mutant(
        id="supcon-out-self-times-zero",
        sentence="The self logit is multiplied by 0 in place of -inf and counts exp(0) = 1.",
        thread="google-research/simclr#20", losses=("supcon_out",), named=("masked-entries-count-one",),
        program=_supcon_times_zero, held_out=True,
    ),
    Mutant(
        id="dclw-two-logsumexps",
        sentence="The weighted decoupled loss adds the log-sum-exp of one view to that of the other.",
        thread="lightly-ai/lightly#1827", losses=("dclw",), named=("denominators-added-as-logs",),
        program=_dclw_two_logsumexps, held_out=True,
    ),
    Mutant(
        id="moco-sum-begins-at-zero",
        sentence="The log-sum-exp over the queue begins with a candidate of logit 0.",
        thread="", seen="tensorflow/similarity 0.17.1, multineg_ranking_loss", losses=("moco",),
        named=("phantom-candidate",), program=_moco_padded, held_out=True,
    ),
    Mutant(
        id="moco-true-sample-missing",
        sentence="The normalizer is summed over the contrasting samples without the true one.",
        thread="danielward27/flowjax#164", losses=("moco",), named=("positive-dropped-from-denominator",),
        program=_moco_without_sample, held_out=True,
    ),
    Mutant(
        id="nt-xent-positive-also-negative",
        sentence="The positive is concatenated in front of all other rows, and is one of these too.",
        thread="modelscope/ms-swift#10068", losses=("nt_xent",), named=("positive-counted-twice",),
        program=_nt_xent_positive_again, held_out=True,
    ),
    Mutant(
        id="dcl-multiplicative-mask",
        sentence="The mask multiplies logits, so that the anchor and its positive count exp(0) = 1 each.",
        thread="raminnakhli/Decoupled-Contrastive-Learning#14", losses=("dcl",), named=("masked-entries-count-one",),
        program=_dcl_multiplicative_mask, held_out=True,
    ),
    Mutant(
        id="supcon-out-memory-after-loss",
        sentence="The memory gets its rows after the loss was taken; the loss is that of the batch alone.",
        thread="KevinMusgrave/pytorch-metric-learning#24", losses=("supcon_out",), named=("queue-dropped",),
        program=_supcon_memory_too_late, held_out=True, settings={"labels": ..., "queue": ..., "queue_labels": ...},
    ),
    Mutant(
        id="clip-target-offset-by-rank",
        sentence="Targets are offset by the rank although nothing was gathered.",
        thread="lightly-ai/lightly#1176", losses=("clip",), named=("labels-shifted",),
        program=_clip_rank_offset, held_out=True,
    ),
    Mutant(
        id="dcl-views-in-turns",
        sentence="Masks expect the views row by row in turns, but one view follows the other.",
        thread="Spijkervet/SimCLR#37", losses=("dcl",), named=("views-interleaved",),
        program=_dcl_gathered_pairs, held_out=True,
    ),
    Mutant(
        id="supcon-in-full-diagonal",
        sentence="The mask of equal labels keeps its diagonal: every anchor is its own positive.",
        thread="KevinMusgrave/pytorch-metric-learning#141", losses=("supcon_in",), named=("self-counted-as-positive",),
        program=_supcon_in_own_positive, held_out=True,
    ),
    Mutant(
        id="supcon-in-one-target-index",
        sentence="A cross-entropy with one target index: the first of several positives.",
        thread="UKPLab/sentence-transformers#1862", losses=("supcon_in",), named=("first-positive-only",),
        program=_supcon_in_one_index, held_out=True,
    ),
    Mutant(
        id="clip-text-to-image-only",
        sentence="Texts look for images and not the other way round.",
        thread="tensorflow/similarity#258", losses=("clip",), named=("other-direction-only",),
        program=_clip_text_only, held_out=True,
    ),
    Mutant(
        id="dcl-anchors-of-one-view",
        sentence="The loss is called once, with anchors of the first view.",
        thread="", seen="raminnakhli/Decoupled-Contrastive-Learning, loss/dcl.py", losses=("dcl",),
        named=("first-view-only",), program=_dcl_first_view, held_out=True,
    ),
    Mutant(
        id="simple-normalized-along-samples",
        sentence="Samples are normalized along dimension 0.",
        thread="dvlab-research/Parametric-Contrastive-Learning#20", losses=("simple",), named=("columns-normalized",),
        program=_simple_default_dim, held_out=True,
    ),
    Mutant(
        id="alignment-norm-of-matrix",
        sentence="The norm without an axis divides each input by the length of the whole matrix.",
        thread="tensorflow/similarity#262", losses=("alignment",), named=("matrix-normalized",),
        program=_alignment_whole_matrix, held_out=True,
    ),
    Mutant(
        id="supcon-in-raw-rows",
        sentence="The features are not normalized, neither outside nor inside.",
        thread="HobbitLong/SupContrast#100", losses=("supcon_in",), named=("rows-not-normalized",),
        program=_supcon_in_raw_rows, held_out=True,
    ),
)  # fmt: skip
