"""Bugs in what a row is made of, and in how rows become one number."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, peak, softplus, unit


def _other_views(z1, z2, temperature):
    """Logits without the diagonal, and the index of each anchor's other view."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    return np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature), np.roll(np.arange(2 * n), n)


def _labelled(embeddings, labels, temperature):
    """Log-probabilities among all others, and who is whose positive."""
    z, own = unit(embeddings), np.eye(len(embeddings), dtype=bool)
    return log_softmax(np.where(own, -np.inf, z @ z.T / temperature)), (labels[:, None] == labels) & ~own


def _added_up(z1, z2, *, temperature):
    logits, labels = _other_views(z1, z2, temperature)
    return -np.sum(log_softmax(logits)[np.arange(len(logits)), labels])


def _both_halves_added(z1, z2, *, temperature):
    """loss_a + loss_b, as in the official TensorFlow code."""
    logits, labels = _other_views(z1, z2, temperature)
    n = len(z1)
    return cross_entropy(logits[:n], labels[:n]) + cross_entropy(logits[n:], labels[n:])


def _one_half(z1, z2, *, temperature):
    logits, labels = _other_views(z1, z2, temperature)
    return cross_entropy(logits[: len(z1)], labels[: len(z1)])


def _mean_of_the_mean(queries, keys, *, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, np.arange(len(logits))) / queries.dtype.type(len(logits))


def _mean_over_all_pairs(image, text, *, logit_scale, logit_bias):
    """-mean(log_sigmoid(...)) / n."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return np.mean(softplus(-sign * logits))


def _log_of_the_mean(queries, keys, *, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    p = np.exp(np.diagonal(log_softmax(logits)))
    return -np.log(np.mean(p))


def _no_logarithm(queries, keys, *, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    return -np.mean(np.diagonal(np.exp(log_softmax(logits))))


def _softmax_before_cross_entropy(logits, target, *, temperature):
    scores = np.exp(log_softmax(logits / temperature))
    return cross_entropy(scores, target)


def _small_constant_in_the_log(queries, keys, *, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    p = np.exp(np.diagonal(log_softmax(logits)))
    return -np.mean(np.log(p + 1e-8))


def _clamped_probability(z1, z2, *, temperature):
    """No probability is below the smallest normal number, so that no row exceeds -log(tiny)."""
    logits, labels = _other_views(z1, z2, temperature)
    top = peak(logits)
    numerator = np.exp(logits[np.arange(len(logits)), labels] - top[:, 0])
    probability = numerator / np.sum(np.exp(logits - top), axis=1)
    tiny = np.finfo(z1.real.dtype).tiny
    return -np.mean(np.log(np.where(np.real(probability) > tiny, probability, tiny)))


def _mean_of_probabilities(embeddings, labels, *, temperature):
    """The mean over positives inside the logarithm: L_in where L_out was asked for."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    return np.mean(np.log(count) - logsumexp(np.where(positive, log_prob, -np.inf)))


def _sum_of_probabilities(embeddings, labels, *, temperature):
    """L_in without 1/|P|."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    return -np.mean(logsumexp(np.where(positive, log_prob, -np.inf)))


def _mean_of_logarithms(embeddings, labels, *, temperature):
    """L_out where L_in was asked for."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1) / count)


def _positives_added_up(embeddings, labels, *, temperature):
    log_prob, positive = _labelled(embeddings, labels, temperature)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1))


def _mean_over_pairs(embeddings, labels, *, temperature):
    """One list of all positive pairs, and its mean."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    return -np.mean(log_prob[positive])


def _lonely_rows_are_zero(embeddings, labels, *, temperature):
    """The repair of 0 / 0: the count is at least 1, and the mean still runs over everybody."""
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.maximum(np.sum(positive, axis=1), 1).astype(log_prob.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1) / count)


def _lonely_rows_are_dropped(embeddings, labels, *, temperature):
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    kept = count > 0
    if not np.any(kept):
        return 0.0
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1)[kept] / count[kept])


def _zero_over_zero(embeddings, labels, *, temperature):
    log_prob, positive = _labelled(embeddings, labels, temperature)
    count = np.sum(positive, axis=1).astype(log_prob.real.dtype)
    return -np.mean(np.sum(np.where(positive, log_prob, 0), axis=1) / count)


def _log_likelihood(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """What is to be maximized, returned as a loss."""
    on_data = data_logits - data_log_noise - np.log(noise_ratio)
    on_noise = noise_logits - noise_log_noise - np.log(noise_ratio)
    return -np.mean(softplus(-on_data)) - noise_ratio * np.mean(softplus(on_noise))


MUTANTS = (
    Mutant(
        id="nt-xent-added-up", sentence="The rows are added up where the mean was meant.",
        thread="raminnakhli/Decoupled-Contrastive-Learning#13", losses=("nt_xent",), named=("sum-instead-of-mean",),
        program=_added_up,
    ),
    Mutant(
        id="nt-xent-both-halves-added", sentence="The means of both views are added up, not averaged.",
        thread="Spijkervet/SimCLR#18", losses=("nt_xent",), named=("outer-factor-2",), program=_both_halves_added,
    ),
    Mutant(
        id="nt-xent-one-half", sentence="Only the first view has anchors.", thread="tensorflow/similarity#262",
        losses=("nt_xent",), named=("first-view-only",), program=_one_half,
    ),
    Mutant(
        id="info-nce-mean-of-the-mean", sentence="The mean over the batch is taken twice.",
        thread="sihyun-yu/REPA#21", losses=("info_nce",), named=("divided-by-n-twice",), program=_mean_of_the_mean,
    ),
    Mutant(
        id="siglip-mean-over-all-pairs", sentence="A mean over N^2 pairs: N times smaller, and so is the gradient.",
        thread="google-research/big_vision#115", losses=("siglip",), named=("divided-by-n-twice",),
        program=_mean_over_all_pairs,
    ),
    Mutant(
        id="info-nce-log-of-the-mean", sentence="-log(mean p) in place of mean(-log p).",
        thread="mpatacchiola/self-supervised-relational-reasoning#3", losses=("info_nce",), named=("log-of-mean",),
        program=_log_of_the_mean,
    ),
    Mutant(
        id="info-nce-no-logarithm", sentence="Minus the probability: nll_loss was fed a softmax.",
        thread="yyliu01/IT2#3", losses=("info_nce",), named=("logarithm-missing",), program=_no_logarithm,
    ),
    Mutant(
        id="cross-entropy-of-a-softmax", sentence="Cross-entropy of scores that went through a softmax already.",
        thread="gitabcworld/MatchingNetworks#5", losses=("cross_entropy",), named=("softmax-applied-twice",),
        program=_softmax_before_cross_entropy,
    ),
    Mutant(
        id="info-nce-small-constant-in-the-log", sentence="1e-8 is added to the probability inside the logarithm.",
        thread="Lightning-Universe/lightning-bolts#681", losses=("info_nce",), named=("epsilon-in-log",),
        program=_small_constant_in_the_log,
    ),
    Mutant(
        id="nt-xent-clamped-probability", sentence="Rows stop at -log(tiny), and have no gradient there.",
        thread="", seen="clamp(min=tiny); pytorch-metric-learning 2.9.0 adds tiny", losses=("nt_xent",),
        named=("value-saturates",), program=_clamped_probability, also=("epsilon-in-log",),
    ),
    Mutant(
        id="supcon-out-mean-inside", sentence="The mean over positives is taken inside the logarithm.",
        thread="HobbitLong/SupContrast#61", losses=("supcon_out",), named=("sum-inside-log",),
        program=_mean_of_probabilities,
    ),
    Mutant(
        id="supcon-in-without-the-count", sentence="The probabilities of the positives are added up, not averaged.",
        thread="", seen="vturrisi/solo-learn 9187ea3, simclr_loss_func with class ids", losses=("supcon_in",),
        named=("positives-summed-inside-log",), program=_sum_of_probabilities,
    ),
    Mutant(
        id="supcon-in-mean-outside", sentence="The mean over positives is taken outside the logarithm.",
        thread="HobbitLong/SupContrast#149", losses=("supcon_in",), named=("sum-outside-log",),
        program=_mean_of_logarithms,
    ),
    Mutant(
        id="supcon-positives-added-up", sentence="1/|P| is left out: classes with many samples count more.",
        thread="HobbitLong/SupContrast#135", losses=("supcon_out",), named=("positives-not-averaged",),
        program=_positives_added_up,
    ),
    Mutant(
        id="supcon-mean-over-pairs", sentence="The mean runs over all positive pairs of the batch.",
        thread="KevinMusgrave/pytorch-metric-learning#608", losses=("supcon_out",), named=("mean-over-pairs",),
        program=_mean_over_pairs,
    ),
    Mutant(
        id="supcon-lonely-rows-are-zero", sentence="An anchor without a positive counts as a loss of 0 in the mean.",
        thread="HobbitLong/SupContrast#141", losses=("supcon_out",), named=("lonely-anchors-counted",),
        program=_lonely_rows_are_zero, settings={"no_positive": "skip"},
    ),
    Mutant(
        id="supcon-lonely-rows-are-dropped", sentence="An anchor without a positive is left out of the mean.",
        thread="KevinMusgrave/pytorch-metric-learning#744", losses=("supcon_out",), named=("lonely-anchors-skipped",),
        program=_lonely_rows_are_dropped, settings={"no_positive": "zero"},
    ),
    Mutant(
        id="supcon-zero-over-zero", sentence="An anchor without a positive makes the loss NaN.",
        thread="HobbitLong/SupContrast#50", losses=("supcon_out",), named=("lonely-anchors-nan",),
        program=_zero_over_zero, settings={"no_positive": "skip"},
    ),
    Mutant(
        id="nce-log-likelihood", sentence="The log-likelihood itself, whose sign is that of a gain.",
        thread="", seen="CEBRA 0.6.1, criterions.NCE", losses=("nce",), named=("sign-flipped",),
        program=_log_likelihood,
    ),
)  # fmt: skip
