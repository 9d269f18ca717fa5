"""Bugs in who is compared with whom: candidates too many, too few, or masked in the wrong way."""

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, peak, unit


@bug("nt_xent", named="self-contrast-kept", thread="vturrisi/solo-learn#206")
def nt_xent_own_logit_kept(z1, z2, *, temperature):
    """The anchor stays in its own denominator: the mask was built for another rank."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    return np.mean(logsumexp(logits) - logits[np.arange(2 * n), (np.arange(2 * n) + n) % (2 * n)])


@bug(
    "nt_xent",
    named="self-contrast-subtracted-as-e",
    thread="Lightning-Universe/lightning-bolts#609",
    also=("self-contrast-subtracted-as-e+exp-overflows",),  # bare exponentials, as in the thread
)
def nt_xent_e_subtracted(z1, z2, *, temperature):
    """The self-contrast is removed by subtracting e, which is right at temperature 1 only."""
    out = unit(np.concatenate([z1, z2]))
    sim = np.exp(out @ out.T / temperature)
    pos = np.exp(np.sum(unit(z1) * unit(z2), axis=-1) / temperature)
    neg = np.sum(sim, axis=-1) - np.exp(1).astype(z1.dtype)
    return -np.mean(np.log(np.concatenate([pos, pos]) / neg))


@bug("nt_xent", named="masked-entries-count-one", thread="google-research/simclr#20")
def nt_xent_own_logit_times_zero(z1, z2, *, temperature):
    """The own logit is multiplied by 0, which leaves exp(0) = 1 in the sum."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature * (1 - np.eye(2 * n, dtype=z1.dtype))
    labels = (np.arange(2 * n) + n) % (2 * n)
    return -np.mean(log_softmax(logits)[np.arange(2 * n), labels])


@bug("nt_xent", named="self-mask-shifted", thread="vturrisi/solo-learn#253")
def nt_xent_mask_on_the_wrong_diagonal(z1, z2, *, temperature):
    """The self mask sits beside the diagonal: the anchor stays in and a neighbor drops out."""
    # Every rank masks the diagonal of the block that starts one row too far.
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    rows = np.arange(2 * n)
    logits = z @ z.T / temperature
    positive = logits[rows, (rows + n) % (2 * n)]
    masked = np.where(np.roll(np.eye(2 * n, dtype=bool), 1, axis=1), -np.inf, logits)
    return np.mean(logsumexp(masked) - positive)


@bug("nt_xent", named="positive-dropped-from-denominator", thread="Project-MONAI/research-contributions#389")
def nt_xent_positive_not_in_the_sum(z1, z2, *, temperature):
    """2N - 2 terms in the denominator: the positive is left out."""
    n = len(z1)
    z = unit(np.concatenate([z1, z2]))
    similarity = z @ z.T / temperature
    negatives = np.where(np.tile(np.eye(n, dtype=bool), (2, 2)), -np.inf, similarity)
    positives = np.concatenate([np.diagonal(similarity, n), np.diagonal(similarity, -n)])
    return np.mean(logsumexp(negatives) - positives)


@bug("nt_xent", named="cross-view-only", thread="Yunfan-Li/Contrastive-Clustering#15")
def nt_xent_other_view_only(z1, z2, *, temperature):
    """Each anchor meets the N rows of the other view only."""
    logits = unit(z1) @ unit(z2).T / temperature
    diagonal = np.arange(len(z1))
    return -np.mean([log_softmax(logits)[diagonal, diagonal], log_softmax(logits.T)[diagonal, diagonal]])


@bug("info_nce", named="positive-counted-twice", thread="modelscope/ms-swift#10068")
def info_nce_positive_among_the_negatives(queries, keys, *, temperature):
    """The own key enters the denominator a second time, as a negative."""
    q, k = unit(queries), unit(keys)
    positive = np.sum(q * k, axis=-1, keepdims=True)
    logits = np.concatenate([positive, q @ k.T], axis=1) / temperature
    return -np.mean(log_softmax(logits)[:, 0])


@bug("info_nce", named="phantom-candidate", seen="tensorflow/similarity 0.17.1, utils.logsumexp")
def info_nce_exp_of_zero_for_padding(queries, keys, *, temperature):
    """The log-sum-exp adds exp(0): a candidate that was never passed."""
    # A log-sum-exp that adds 1 for stability.
    logits = unit(queries) @ unit(keys).T / temperature
    top = np.maximum(peak(logits), 0)
    total = np.sum(np.exp(logits - top), axis=-1) + np.exp(0 - top[:, 0])
    return np.mean(np.log(total) + top[:, 0] - np.diagonal(logits))


@bug("info_nce", named="in-batch-negatives-added", thread="haon-chen/MoCa#2")
def info_nce_batch_keys_beside_the_negatives(queries, keys, negatives, *, temperature):
    """With hard negatives given, the keys of the other samples are negatives as well."""
    q = unit(queries)
    logits = q @ unit(np.concatenate([keys, negatives])).T / temperature
    return -np.mean(np.diagonal(log_softmax(logits)))


@bug("moco", named="queue-dropped", thread="NVIDIA-NeMo/Automodel#3870")
def moco_queue_never_concatenated(queries, keys, queue, *, temperature):
    """One candidate is left for every query: the loss is 0 and so is its gradient."""
    # The logits of the queue are computed and then forgotten: one column, loss 0.
    q = unit(queries)
    l_pos = np.sum(q * unit(keys), axis=-1, keepdims=True)
    _ = q @ unit(queue).T
    return -np.mean(log_softmax(l_pos / temperature)[:, 0])


@bug("supcon_out", named="other-positives-dropped", thread="KevinMusgrave/pytorch-metric-learning#699")
def supcon_one_pair_at_a_time(embeddings, labels, *, temperature):
    """NT-Xent for labels takes the pairs one by one, without the other positives in the denominator."""
    z = unit(embeddings)
    logits = z @ z.T / temperature
    rows = []
    for i, label in enumerate(labels):
        negatives = logits[i, labels != label]
        positives = logits[i, (labels == label) & (np.arange(len(labels)) != i)]
        pairs = [logsumexp(np.concatenate([[p], negatives])) - p for p in positives]
        rows.append(np.sum(np.array(pairs)) / z.dtype.type(len(pairs)))
    return np.mean(np.array(rows))


@bug("dcl", named="denominators-added-as-logs", thread="lightly-ai/lightly#1826")
def dcl_two_denominators(z1, z2, *, temperature):
    """logsumexp(a) + logsumexp(b) where logsumexp([a, b]) was meant."""
    a, b, n = unit(z1), unit(z2), len(z1)
    off = ~np.eye(n, dtype=bool)

    def one_way(x, y):
        cross, same = x @ y.T / temperature, x @ x.T / temperature
        return np.mean(
            logsumexp(np.where(off, cross, -np.inf)) + logsumexp(np.where(off, same, -np.inf)) - np.diagonal(cross)
        )

    return (one_way(a, b) + one_way(b, a)) / 2


@bug("dcl", named="positive-kept-in-denominator", thread="Lightning-Universe/lightning-bolts#252")
def dcl_positive_left_in(z1, z2, *, temperature):
    """The positive stays in the denominator: NT-Xent under another name."""
    # Decoupling forgotten: the own view is masked, the positive is not.
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    positive = logits[np.arange(2 * n), (np.arange(2 * n) + n) % (2 * n)]
    return np.mean(-positive + logsumexp(np.where(np.eye(2 * n, dtype=bool), -np.inf, logits)))


@bug("dcl", named="mask-leaks", thread="raminnakhli/Decoupled-Contrastive-Learning#14")
def dcl_additive_mask(z1, z2, *, temperature):
    """log(1e-45) is added where -inf was meant; at a small temperature masked entries leak."""
    # The mask is log(1e-45), which is -103.3 in float32: not enough at a small temperature.
    a, b, n = unit(z1), unit(z2), len(z1)
    mask = (np.log(1e-45) * np.eye(n)).astype(z1.dtype)

    def one_way(x, y):
        cross, same = x @ y.T / temperature, x @ x.T / temperature
        return np.mean(logsumexp(np.concatenate([same + mask, cross + mask], axis=1)) - np.diagonal(cross))

    return (one_way(a, b) + one_way(b, a)) / 2


@bug("uniformity", named="diagonal-included", seen="re-implementations with cdist in place of pdist")
def uniformity_every_pair_of_the_matrix(x, *, t):
    """The mean of the potential runs over the full matrix of distances, each point with itself included."""
    x = unit(x)
    squared = np.sum((x[:, None] - x[None, :]) ** 2, axis=-1)
    return np.log(np.mean(np.exp(-t * squared)))


@bug("paco", named="centers-dropped", thread="dvlab-research/Parametric-Contrastive-Learning#23")
def paco_no_centers(embeddings, labels, centers, *, alpha, temperature):
    """The class centers are missing from the denominator."""
    # Logits of the centers serve the target only; the softmax runs over the samples.
    z = unit(embeddings)
    contrast = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    own = np.sum(embeddings * centers[labels], axis=-1)
    everyone = logsumexp(contrast)
    positive = (labels[:, None] == labels[None, :]) & ~np.eye(len(z), dtype=bool)
    gaps = np.where(positive, everyone[:, None] - np.where(positive, contrast, 0), 0)
    return np.mean(everyone - own + alpha * np.sum(gaps, axis=1))
