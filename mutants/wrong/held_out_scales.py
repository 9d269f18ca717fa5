"""Held out: one bug each in temperature and scale, and in how log-probabilities become one number."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, softplus, unit


def _hardest(s, fraction):
    """The diagonal, and behind it the largest of the other entries of each row."""
    n = len(s)
    count = min(n - 1, max(1, int(np.ceil(round(float(fraction) * (n - 1), 9)))))
    off = np.where(np.eye(n, dtype=bool), -np.inf, s)
    order = np.argsort(-np.real(off), axis=1, kind="stable")[:, :count]
    return np.concatenate([np.diagonal(s)[:, None], np.take_along_axis(off, order, axis=1)], axis=1)


@bug("hard_contrastive", named="temperature-missing", thread="HuiSerWang/ContrastMask#4")
def hard_contrastive_bare_cosines(queries, keys, *, temperature, fraction):
    """The temperature is accepted and not used."""
    return cross_entropy(_hardest(unit(queries) @ unit(keys).T, fraction), 0)


@bug("hard_contrastive", named="value-saturates", thread="fastino-ai/GLiNER2#155")
def hard_contrastive_probability_floor(queries, keys, *, temperature, fraction):
    """Probabilities are clamped at 1e-6: a row loss cannot exceed 13.8, and has no gradient there."""
    candidates = _hardest(unit(queries) @ unit(keys).T / temperature, fraction)
    p = np.exp(log_softmax(candidates)[:, 0])
    return -np.mean(np.log(np.where(np.real(p) < 1e-6, 1e-6, p)))


@bug("moco", named="temperature-missing-on-negatives", thread="RElbers/info-nce-pytorch#17")
def moco_bare_negatives(queries, keys, queue, *, temperature):
    """The positive logit is divided by the temperature, and those of the queue are not."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1, keepdims=True) / temperature
    return cross_entropy(np.concatenate([positive, q @ unit(queue).T], axis=1), 0)


@bug("cross_entropy", named="temperature-after-softmax", thread="drboog/Lafite#25")
def cross_entropy_cooled_late(logits, target, *, temperature):
    """Log-probabilities are divided by the temperature, not logits."""
    log_prob = log_softmax(logits) / temperature
    return -np.mean(log_prob[np.arange(len(logits)), target])


@bug("supcon_out", named="temperature-squared", thread="caiqi/Joint-Contrastive-Learning#2")
def supcon_out_features_divided(embeddings, labels, *, temperature):
    """Features are divided by the temperature, and both factors of the product are features."""
    z = unit(embeddings) / temperature
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = np.where(positives, log_softmax(np.where(others, z @ z.T, -np.inf)), 0)
    return -np.mean(np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1))


@bug("supcon_in", named="temperature-multiplied", thread="lightonai/pylate#115")
def supcon_in_temperature_as_scale(embeddings, labels, *, temperature):
    """The temperature is taken for a scale and multiplies."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, temperature * (z @ z.T), -np.inf))
    inside = logsumexp(np.where(positives, log_prob, -np.inf))
    return np.mean(np.log(np.sum(positives.astype(z.dtype), axis=1)) - inside)


@bug("debiased", named="temperature-ignored", seen="joshr17/HCL, image/main.py")
def debiased_temperature_of_the_module(z1, z2, *, temperature, positive_prior):
    """A global of the module is used, whatever temperature is passed."""
    temperature = 0.5
    z = unit(np.concatenate([z1, z2]))
    n, mass = len(z1), np.exp(z @ z.T / temperature)
    rows = np.arange(2 * n)
    positive = mass[rows, (rows + n) % (2 * n)]
    negatives = np.sum(np.where(rows[:, None] % n == rows % n, 0, mass), axis=1)
    count = 2 * n - 2
    estimate = (negatives - positive_prior * count * positive) / (1 - positive_prior)
    floor = count * np.exp(-1 / temperature)
    estimate = np.where(np.real(estimate) > floor, estimate, floor)
    return -np.mean(np.log(positive / (positive + estimate)))


@bug("nt_xent", named="temperature-exponentiated", thread="mlfoundations/open_clip#104")
def nt_xent_temperature_of_a_logarithm(z1, z2, *, temperature):
    """The exponential of the temperature multiplies, as if it were a learned log-scale."""
    # A temperature that is learned as a logarithm, as CLIP does with its scale.
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T * np.exp(temperature))
    return cross_entropy(logits, (np.arange(2 * n) + n) % (2 * n))


@bug("supcon_in", named="outer-factor-temperature", seen="google-research supcon/losses.py, scale_by_temperature")
def supcon_in_times_temperature(embeddings, labels, *, temperature):
    """The loss is multiplied by the temperature unless an option switches that off."""
    # The loss is multiplied by the temperature, so that gradients have one size at all temperatures.
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, -np.inf))
    inside = logsumexp(np.where(positives, log_prob, -np.inf))
    return np.mean(temperature * (np.log(np.sum(positives.astype(z.dtype), axis=1)) - inside))


@bug("supcon_out", named="mean-over-nonzero-rows", seen="pytorch-metric-learning 2.9.0, AvgNonZeroReducer")
def supcon_out_average_of_nonzero(embeddings, labels, *, temperature):
    """Rows whose loss is 0 are left out of the mean."""
    # The reducer averages what is greater than 0, and a row that is right is 0.
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = np.where(positives, log_softmax(np.where(others, z @ z.T / temperature, -np.inf)), 0)
    rows = -np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1)
    return np.mean(rows[np.real(rows) > 0])


@bug("siglip", named="scale-without-exponential", thread="BAAI-DCAI/M3D#52")
def siglip_logarithm_as_scale(image, text, *, logit_scale, logit_bias):
    """The logarithm of the scale multiplies without its exponential."""
    logits = np.log(logit_scale) * unit(image) @ unit(text).T + logit_bias
    sign = 2 * np.eye(len(logits), dtype=logits.dtype) - 1
    return np.sum(softplus(-sign * logits)) / len(logits)


@bug("dclw", named="sum-instead-of-mean", thread="raminnakhli/Decoupled-Contrastive-Learning#13")
def dclw_sums_of_views(z1, z2, *, temperature, sigma):
    """Sums over the samples of both views are returned where means were meant."""
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    positive = np.sum(a * b, axis=1)
    mass = np.exp(np.real(positive) / sigma)
    weight = 2 - mass / np.mean(mass)
    total = 0
    for one, two in ((a, b), (b, a)):
        logits = np.concatenate([np.where(off, one @ x.T / temperature, -np.inf) for x in (one, two)], axis=1)
        total = total + np.sum(logsumexp(logits) - weight * positive / temperature)
    return total


@bug("moco", named="log-of-mean", thread="pietz/simclr#1")
def moco_log_of_mean(queries, keys, queue, *, temperature):
    """The mean over the batch is taken before the logarithm."""
    q = unit(queries)
    own = np.sum(q * unit(keys), axis=1, keepdims=True)
    log_prob = log_softmax(np.concatenate([own, q @ unit(queue).T], axis=1) / temperature)[:, 0]
    return np.log(log_prob.real.dtype.type(len(q))) - logsumexp(log_prob)


@bug("nt_xent", named="outer-factor-constant", thread="google-research/simclr#202")
def nt_xent_divided_by_replicas(z1, z2, *, temperature):
    """The loss is divided by the number of replicas, 8."""
    z = unit(np.concatenate([z1, z2]))
    n = len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, (np.arange(2 * n) + n) % (2 * n)) / 8


@bug("supcon_in", named="lonely-anchors-counted", thread="HobbitLong/SupContrast#142", settings={"no_positive": "skip"})
def supcon_in_lonely_in_the_mean(embeddings, labels, *, temperature):
    """An anchor without a positive has loss 0 and dilutes the mean."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, -np.inf))
    some = np.any(positives, axis=1)
    inside = logsumexp(np.where(positives, log_prob, -np.inf)[some])
    return np.sum(np.log(np.sum(positives[some].astype(z.dtype), axis=1)) - inside) / len(z)


@bug("clip", named="softmax-applied-twice", thread="nii-yamagishilab/Capsule-Forensics-v2#3")
def clip_cross_entropy_of_probabilities(image, text, *, logit_scale):
    """A cross-entropy that takes its own softmax gets probabilities."""
    logits = logit_scale * unit(image) @ unit(text).T
    target = np.arange(len(logits))
    by_image, by_text = (np.exp(log_softmax(x)) for x in (logits, logits.T))
    return (cross_entropy(by_image, target) + cross_entropy(by_text, target)) / 2
