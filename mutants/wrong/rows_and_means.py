"""Bugs in what a row is made of, and in how rows become one number."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, peak, softplus, unit


def _other_views(z1, z2, temperature):
    """Logits without the diagonal, and the index of each anchor's other view."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    return np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature), np.roll(np.arange(2 * n), n)


def _labelled(embeddings, labels, temperature):
    """Log-probabilities among all others, and who is whose positive."""
    z, own = unit(embeddings), np.eye(len(embeddings), dtype=bool)
    return log_softmax(np.where(own, -np.inf, z @ z.T / temperature)), (labels[:, None] == labels) & ~own


@bug("nt_xent", named="sum-instead-of-mean", thread="raminnakhli/Decoupled-Contrastive-Learning#13")
def nt_xent_added_up(z1, z2, *, temperature):
    """The rows are added up where the mean was meant."""
    logits, labels = _other_views(z1, z2, temperature)
    return -np.sum(log_softmax(logits)[np.arange(len(logits)), labels])


@bug("nt_xent", named="outer-factor-2", thread="Spijkervet/SimCLR#18")
def nt_xent_both_halves_added(z1, z2, *, temperature):
    """The means of both views are added up, not averaged."""
    # loss_a + loss_b, as in the official TensorFlow code.
    logits, labels = _other_views(z1, z2, temperature)
    n = len(z1)
    return cross_entropy(logits[:n], labels[:n]) + cross_entropy(logits[n:], labels[n:])


@bug("nt_xent", named="first-view-only", thread="tensorflow/similarity#262")
def nt_xent_one_half(z1, z2, *, temperature):
    """Only the first view has anchors."""
    logits, labels = _other_views(z1, z2, temperature)
    return cross_entropy(logits[: len(z1)], labels[: len(z1)])


@bug("info_nce", named="divided-by-n-twice", thread="sihyun-yu/REPA#21")
def info_nce_mean_of_the_mean(queries, keys, *, temperature):
    """The mean over the batch is taken twice."""
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, np.arange(len(logits))) / queries.dtype.type(len(logits))


@bug("siglip", named="divided-by-n-twice", thread="google-research/big_vision#115")
def siglip_mean_over_all_pairs(image, text, *, logit_scale, logit_bias):
    """A mean over N^2 pairs: N times smaller, and so is the gradient."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return np.mean(softplus(-sign * logits))


@bug("info_nce", named="log-of-mean", thread="mpatacchiola/self-supervised-relational-reasoning#3")
def info_nce_log_of_the_mean(queries, keys, *, temperature):
    """-log(mean p) in place of mean(-log p)."""
    logits = unit(queries) @ unit(keys).T / temperature
    p = np.exp(np.diagonal(log_softmax(logits)))
    return -np.log(np.mean(p))


@bug("info_nce", named="logarithm-missing", thread="yyliu01/IT2#3")
def info_nce_no_logarithm(queries, keys, *, temperature):
    """Minus the probability: nll_loss was fed a softmax."""
    logits = unit(queries) @ unit(keys).T / temperature
    return -np.mean(np.diagonal(np.exp(log_softmax(logits))))


@bug("cross_entropy", named="softmax-applied-twice", thread="gitabcworld/MatchingNetworks#5")
def cross_entropy_of_a_softmax(logits, target, *, temperature):
    """Cross-entropy of scores that went through a softmax already."""
    scores = np.exp(log_softmax(logits / temperature))
    return cross_entropy(scores, target)


@bug("info_nce", named="epsilon-in-log", thread="Lightning-Universe/lightning-bolts#681")
def info_nce_small_constant_in_the_log(queries, keys, *, temperature):
    """1e-8 is added to the probability inside the logarithm."""
    logits = unit(queries) @ unit(keys).T / temperature
    p = np.exp(np.diagonal(log_softmax(logits)))
    return -np.mean(np.log(p + 1e-8))


@bug(
    "nt_xent",
    named="value-saturates",
    seen="clamp(min=tiny); pytorch-metric-learning 2.9.0 adds tiny",
    also=("epsilon-in-log",),
)
def nt_xent_clamped_probability(z1, z2, *, temperature):
    """Rows stop at -log(tiny), and have no gradient there."""
    # No probability is below the smallest normal number, so that no row exceeds -log(tiny).
    logits, labels = _other_views(z1, z2, temperature)
    top = peak(logits)
    numerator = np.exp(logits[np.arange(len(logits)), labels] - top[:, 0])
    probability = numerator / np.sum(np.exp(logits - top), axis=1)
    tiny = np.finfo(z1.real.dtype).tiny
    return -np.mean(np.log(np.where(np.real(probability) > tiny, probability, tiny)))


@bug("supcon_out", named="sum-inside-log", thread="HobbitLong/SupContrast#61")
def supcon_out_mean_inside(embeddings, labels, *, temperature):
    """The mean over positives is taken inside the logarithm."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    return np.mean(np.log(count) - logsumexp(np.where(positive, log_prob, -np.inf)))


@bug(
    "supcon_in",
    named="positives-summed-inside-log",
    seen="vturrisi/solo-learn 9187ea3, simclr_loss_func with class ids",
)
def supcon_in_without_the_count(embeddings, labels, *, temperature):
    """The probabilities of the positives are added up, not averaged."""
    # L_in without 1/|P|.
    log_prob, positive = _labelled(embeddings, labels, temperature)
    return -np.mean(logsumexp(np.where(positive, log_prob, -np.inf)))


@bug("supcon_in", named="sum-outside-log", thread="HobbitLong/SupContrast#149")
def supcon_in_mean_outside(embeddings, labels, *, temperature):
    """The mean over positives is taken outside the logarithm."""
    # L_out where L_in was meant.
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1) / count)


@bug("supcon_out", named="positives-not-averaged", thread="HobbitLong/SupContrast#135")
def supcon_positives_added_up(embeddings, labels, *, temperature):
    """1/|P| is left out: classes with many samples count more."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1))


@bug("supcon_out", named="mean-over-pairs", thread="KevinMusgrave/pytorch-metric-learning#608")
def supcon_mean_over_pairs(embeddings, labels, *, temperature):
    """The mean runs over all positive pairs of the batch."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    return -np.mean(log_prob[positive])


@bug(
    "supcon_out", named="lonely-anchors-counted", thread="HobbitLong/SupContrast#141", settings={"no_positive": "skip"}
)
def supcon_lonely_rows_are_zero(embeddings, labels, *, temperature):
    """An anchor without a positive counts as a loss of 0 in the mean."""
    # The repair of 0 / 0: the count is at least 1, and the mean still runs over all anchors.
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.maximum(np.sum(positive, axis=1), 1).astype(log_prob.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1) / count)


@bug(
    "supcon_out",
    named="lonely-anchors-skipped",
    thread="KevinMusgrave/pytorch-metric-learning#744",
    settings={"no_positive": "zero"},
)
def supcon_lonely_rows_are_dropped(embeddings, labels, *, temperature):
    """An anchor without a positive is left out of the mean."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    kept = count > 0
    if not np.any(kept):
        return 0.0
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1)[kept] / count[kept])


@bug("supcon_out", named="lonely-anchors-nan", thread="HobbitLong/SupContrast#50", settings={"no_positive": "skip"})
def supcon_zero_over_zero(embeddings, labels, *, temperature):
    """An anchor without a positive makes the loss NaN."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1) / count)


@bug("nce", named="sign-flipped", seen="CEBRA 0.6.1, criterions.NCE")
def nce_log_likelihood(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The log-likelihood itself, whose sign is that of a gain."""
    on_data = data_logits - data_log_noise - np.log(noise_ratio)
    on_noise = noise_logits - noise_log_noise - np.log(noise_ratio)
    return -np.mean(softplus(-on_data)) - noise_ratio * np.mean(softplus(on_noise))
