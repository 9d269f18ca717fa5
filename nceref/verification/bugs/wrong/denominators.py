"""Bugs in who is compared with whom: candidates too many, too few, or masked in the wrong way."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, log_softmax, logsumexp, peak, unit


def _own_logit_kept(z1, z2, *, temperature):
    """The mask was built for the first rank and masks nothing here."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    return np.mean(logsumexp(logits) - logits[np.arange(2 * n), (np.arange(2 * n) + n) % (2 * n)])


def _e_subtracted(z1, z2, *, temperature):
    out = unit(np.concatenate([z1, z2]))
    sim = np.exp(out @ out.T / temperature)
    pos = np.exp(np.sum(unit(z1) * unit(z2), axis=-1) / temperature)
    neg = np.sum(sim, axis=-1) - np.exp(1).astype(z1.dtype)
    return -np.mean(np.log(np.concatenate([pos, pos]) / neg))


def _own_logit_times_zero(z1, z2, *, temperature):
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature * (1 - np.eye(2 * n, dtype=z1.dtype))
    labels = (np.arange(2 * n) + n) % (2 * n)
    return -np.mean(log_softmax(logits)[np.arange(2 * n), labels])


def _mask_on_the_wrong_diagonal(z1, z2, *, temperature):
    """Every rank masks the diagonal of the block that starts one row too far."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    rows = np.arange(2 * n)
    logits = z @ z.T / temperature
    positive = logits[rows, (rows + n) % (2 * n)]
    masked = np.where(np.roll(np.eye(2 * n, dtype=bool), 1, axis=1), -np.inf, logits)
    return np.mean(logsumexp(masked) - positive)


def _positive_not_in_the_sum(z1, z2, *, temperature):
    n = len(z1)
    z = unit(np.concatenate([z1, z2]))
    similarity = z @ z.T / temperature
    negatives = np.where(np.tile(np.eye(n, dtype=bool), (2, 2)), -np.inf, similarity)
    positives = np.concatenate([np.diagonal(similarity, n), np.diagonal(similarity, -n)])
    return np.mean(logsumexp(negatives) - positives)


def _other_view_only(z1, z2, *, temperature):
    logits = unit(z1) @ unit(z2).T / temperature
    diagonal = np.arange(len(z1))
    return -np.mean([log_softmax(logits)[diagonal, diagonal], log_softmax(logits.T)[diagonal, diagonal]])


def _positive_among_the_negatives(queries, keys, *, temperature):
    """All keys are taken for the negatives, the own key too."""
    q, k = unit(queries), unit(keys)
    positive = np.sum(q * k, axis=-1, keepdims=True)
    logits = np.concatenate([positive, q @ k.T], axis=1) / temperature
    return -np.mean(log_softmax(logits)[:, 0])


def _exp_of_zero_for_padding(queries, keys, *, temperature):
    """A log-sum-exp that adds 1 for stability."""
    logits = unit(queries) @ unit(keys).T / temperature
    top = np.maximum(peak(logits), 0)
    total = np.sum(np.exp(logits - top), axis=-1) + np.exp(0 - top[:, 0])
    return np.mean(np.log(total) + top[:, 0] - np.diagonal(logits))


def _batch_keys_beside_the_negatives(queries, keys, negatives, *, temperature):
    q = unit(queries)
    logits = q @ unit(np.concatenate([keys, negatives])).T / temperature
    return -np.mean(np.diagonal(log_softmax(logits)))


def _queue_never_concatenated(queries, keys, queue, *, temperature):
    """The logits of the queue are computed and then forgotten: one column, loss 0."""
    q = unit(queries)
    l_pos = np.sum(q * unit(keys), axis=-1, keepdims=True)
    _ = q @ unit(queue).T
    return -np.mean(log_softmax(l_pos / temperature)[:, 0])


def _one_pair_at_a_time(embeddings, labels, *, temperature):
    """A pair-wise NT-Xent with labels: for a pair, the denominator has the pair and the negatives only."""
    z = unit(embeddings)
    logits = z @ z.T / temperature
    rows = []
    for i, label in enumerate(labels):
        negatives = logits[i, labels != label]
        positives = logits[i, (labels == label) & (np.arange(len(labels)) != i)]
        pairs = [logsumexp(np.concatenate([[p], negatives])) - p for p in positives]
        rows.append(np.sum(np.array(pairs)) / z.dtype.type(len(pairs)))
    return np.mean(np.array(rows))


def _two_denominators(z1, z2, *, temperature):
    """The negatives of the two views get a log-sum-exp each, and these are added up."""
    a, b, n = unit(z1), unit(z2), len(z1)
    off = ~np.eye(n, dtype=bool)

    def one_way(x, y):
        cross, same = x @ y.T / temperature, x @ x.T / temperature
        return np.mean(
            logsumexp(np.where(off, cross, -np.inf)) + logsumexp(np.where(off, same, -np.inf)) - np.diagonal(cross)
        )

    return (one_way(a, b) + one_way(b, a)) / 2


def _positive_left_in(z1, z2, *, temperature):
    """Decoupling forgotten: the own view is masked, the positive is not."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    positive = logits[np.arange(2 * n), (np.arange(2 * n) + n) % (2 * n)]
    return np.mean(-positive + logsumexp(np.where(np.eye(2 * n, dtype=bool), -np.inf, logits)))


def _additive_mask(z1, z2, *, temperature):
    """The mask is log(1e-45), which is -103.3 in float32: not enough at a small temperature."""
    a, b, n = unit(z1), unit(z2), len(z1)
    mask = (np.log(1e-45) * np.eye(n)).astype(z1.dtype)

    def one_way(x, y):
        cross, same = x @ y.T / temperature, x @ x.T / temperature
        return np.mean(logsumexp(np.concatenate([same + mask, cross + mask], axis=1)) - np.diagonal(cross))

    return (one_way(a, b) + one_way(b, a)) / 2


def _every_pair_of_the_matrix(x, *, t):
    """The full matrix of distances, its zero diagonal included."""
    x = unit(x)
    squared = np.sum((x[:, None] - x[None, :]) ** 2, axis=-1)
    return np.log(np.mean(np.exp(-t * squared)))


def _no_centers(embeddings, labels, centers, *, alpha, temperature):
    """Logits of the centers serve the target only; the softmax runs over the samples."""
    z = unit(embeddings)
    contrast = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    own = np.sum(embeddings * centers[labels], axis=-1)
    everyone = logsumexp(contrast)
    positive = (labels[:, None] == labels[None, :]) & ~np.eye(len(z), dtype=bool)
    gaps = np.where(positive, everyone[:, None] - np.where(positive, contrast, 0), 0)
    return np.mean(everyone - own + alpha * np.sum(gaps, axis=1))


MUTANTS = (
    Mutant(
        id="nt-xent-own-logit-kept",
        sentence="The anchor stays in its own denominator: the mask was built for another rank.",
        thread="vturrisi/solo-learn#206", losses=("nt_xent",), named=("self-contrast-kept",), program=_own_logit_kept,
    ),
    Mutant(
        id="nt-xent-e-subtracted",
        sentence="The self-contrast is removed by subtracting e, which is right at temperature 1 only.",
        thread="Lightning-Universe/lightning-bolts#609", losses=("nt_xent",),
        named=("self-contrast-subtracted-as-e",), program=_e_subtracted,
        also=("self-contrast-subtracted-as-e+exp-overflows",),  # bare exponentials, as in the thread
    ),
    Mutant(
        id="nt-xent-own-logit-times-zero",
        sentence="The own logit is multiplied by 0, which leaves exp(0) = 1 in the sum.",
        thread="google-research/simclr#20", losses=("nt_xent",), named=("masked-entries-count-one",),
        program=_own_logit_times_zero,
    ),
    Mutant(
        id="nt-xent-mask-on-the-wrong-diagonal",
        sentence="The self mask sits beside the diagonal: the anchor stays in and a neighbor drops out.",
        thread="vturrisi/solo-learn#253", losses=("nt_xent",), named=("self-mask-shifted",),
        program=_mask_on_the_wrong_diagonal,
    ),
    Mutant(
        id="nt-xent-positive-not-in-the-sum",
        sentence="2N - 2 terms in the denominator: the positive is left out.",
        thread="Project-MONAI/research-contributions#389", losses=("nt_xent",),
        named=("positive-dropped-from-denominator",), program=_positive_not_in_the_sum,
    ),
    Mutant(
        id="nt-xent-other-view-only",
        sentence="Each anchor meets the N rows of the other view only.",
        thread="Yunfan-Li/Contrastive-Clustering#15", losses=("nt_xent",), named=("cross-view-only",),
        program=_other_view_only,
    ),
    Mutant(
        id="info-nce-positive-among-the-negatives",
        sentence="The own key enters the denominator a second time, as a negative.",
        thread="modelscope/ms-swift#10068", losses=("info_nce",), named=("positive-counted-twice",),
        program=_positive_among_the_negatives,
    ),
    Mutant(
        id="info-nce-exp-of-zero-for-padding",
        sentence="The log-sum-exp adds exp(0): a candidate that nobody passed.",
        thread="", seen="tensorflow/similarity 0.17.1, utils.logsumexp", losses=("info_nce",),
        named=("phantom-candidate",), program=_exp_of_zero_for_padding,
    ),
    Mutant(
        id="info-nce-batch-keys-beside-the-negatives",
        sentence="With hard negatives given, the keys of the other samples are negatives as well.",
        thread="haon-chen/MoCa#2", losses=("info_nce",), named=("in-batch-negatives-added",),
        program=_batch_keys_beside_the_negatives,
    ),
    Mutant(
        id="moco-queue-never-concatenated",
        sentence="One candidate is left for every query: the loss is 0 and so is its gradient.",
        thread="NVIDIA-NeMo/Automodel#3870", losses=("moco",), named=("queue-dropped",),
        program=_queue_never_concatenated,
    ),
    Mutant(
        id="supcon-one-pair-at-a-time",
        sentence="NT-Xent for labels takes the pairs one by one, without the other positives in the denominator.",
        thread="KevinMusgrave/pytorch-metric-learning#699", losses=("supcon_out",),
        named=("other-positives-dropped",), program=_one_pair_at_a_time,
    ),
    Mutant(
        id="dcl-two-denominators",
        sentence="logsumexp(a) + logsumexp(b) where logsumexp([a, b]) was meant.",
        thread="lightly-ai/lightly#1826", losses=("dcl",), named=("denominators-added-as-logs",),
        program=_two_denominators,
    ),
    Mutant(
        id="dcl-positive-left-in",
        sentence="The positive stays in the denominator: NT-Xent under another name.",
        thread="Lightning-Universe/lightning-bolts#252", losses=("dcl",), named=("positive-kept-in-denominator",),
        program=_positive_left_in,
    ),
    Mutant(
        id="dcl-additive-mask",
        sentence="log(1e-45) is added where -inf was meant; at a small temperature masked entries leak.",
        thread="raminnakhli/Decoupled-Contrastive-Learning#14", losses=("dcl",), named=("mask-leaks",),
        program=_additive_mask,
    ),
    Mutant(
        id="uniformity-every-pair-of-the-matrix",
        sentence="The mean of the potential runs over the full matrix of distances, each point with itself included.",
        thread="", seen="re-implementations with cdist in place of pdist", losses=("uniformity",),
        named=("diagonal-included",), program=_every_pair_of_the_matrix,
    ),
    Mutant(
        id="paco-no-centers",
        sentence="The class centers are missing from the denominator.",
        thread="dvlab-research/Parametric-Contrastive-Learning#23", losses=("paco",), named=("centers-dropped",),
        program=_no_centers,
    ),
)  # fmt: skip
