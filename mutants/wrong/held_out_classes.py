"""Held out: one bug each in margins, priors, axes and weights of classifiers and of estimators with a prior."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, softplus, unit


@bug("cosface", named="scale-divides", thread="UKPLab/sentence-transformers#3054")
def cosface_scale_as_temperature(embeddings, class_weights, target, *, margin, scale):
    """The scale divides the cosines, as the temperature of which it is the inverse."""
    cosine = unit(embeddings) @ unit(class_weights).T
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(np.where(own, cosine - margin, cosine) / scale, target)


@bug("cosface", named="divided-by-n-twice", thread="sihyun-yu/REPA#21")
def cosface_mean_of_mean(embeddings, class_weights, target, *, margin, scale):
    """The mean over the batch is divided by its size once more."""
    cosine = unit(embeddings) @ unit(class_weights).T
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(scale * np.where(own, cosine - margin, cosine), target) / len(target)


@bug("arcface", named="margin-missing", thread="MccreeZhao/FR-Loss#2")
def arcface_unused_margin(embeddings, class_weights, target, *, margin, scale):
    """The cross-entropy is taken of the cosines; the output with the margin is not used."""
    return cross_entropy(scale * unit(embeddings) @ unit(class_weights).T, target)


def _eighth(grads, inputs):
    return {name: grad / 8 for name, grad in grads.items()}


@bug("arcface", named="gradient-constant-factor", thread="Tencent/TFace#34", gradients=_eighth)
def arcface_gathered_over_ranks(embeddings, class_weights, target, *, margin, scale):
    """Features are gathered from 8 ranks, and gradients are an eighth of what they should be."""
    # Features of 8 ranks, gathered; the backward pass of the gather hands on the own share only.
    cosine = unit(embeddings) @ unit(class_weights).T
    rest = 1 - cosine * cosine
    moved = cosine * np.cos(margin) - np.sqrt(np.where(np.real(rest) > 0, rest, 0)) * np.sin(margin)
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(scale * np.where(own, moved, cosine), target)


@bug("balanced_softmax", named="softmax-over-wrong-axis", thread="DonkeyShot21/UNO#4")
def balanced_softmax_along_batch(logits, target, class_counts, *, temperature):
    """The softmax runs over the samples of the batch, not over classes."""
    log_prob = log_softmax(logits / temperature + np.log(class_counts), axis=0)
    return -np.mean(log_prob[np.arange(len(target)), target])


@bug("cross_entropy", named="softmax-over-wrong-axis", thread="leofansq/CPCL#1")
def cross_entropy_along_batch(logits, target, *, temperature):
    """The softmax runs along dimension 0, which is the batch."""
    # Logits had a leading dimension once; the softmax runs along the one that is the batch now.
    log_prob = log_softmax(logits / temperature, axis=0)
    return -np.mean(log_prob[np.arange(len(target)), target])


@bug("balanced_softmax", named="softmax-applied-twice", thread="lansinuote/Huggingface_Toturials#6")
def balanced_softmax_of_probabilities(logits, target, class_counts, *, temperature):
    """The cross-entropy gets the balanced probabilities and takes their softmax."""
    p = np.exp(log_softmax(logits / temperature + np.log(class_counts)))
    return cross_entropy(p, target)


@bug("nce", named="prior-subtracted", thread="tensorflow/recommenders#257")
def nce_density_added(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The log-density of the noise is added where it must be subtracted."""
    on_data = data_logits + data_log_noise - np.log(noise_ratio)
    on_noise = noise_logits + noise_log_noise - np.log(noise_ratio)
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


@bug("paco", named="prior-missing", thread="NVIDIA-Merlin/models#1051", settings={"alpha": 0.0625, "class_prior": ...})
def paco_prior_not_used(embeddings, labels, centers, *, alpha, temperature, class_prior):
    """The class prior is accepted and never reaches the logits of the centers."""
    z = unit(embeddings)
    off = ~np.eye(len(z), dtype=bool)
    scores = embeddings @ centers.T
    contrast = np.where(off, z @ z.T / temperature, -np.inf)
    everyone = logsumexp(np.concatenate([contrast, scores], axis=1))
    positives = off & (labels[:, None] == labels)
    pulled = np.sum(np.where(positives, contrast - everyone[:, None], 0), axis=1)
    return -np.mean(scores[np.arange(len(z)), labels] - everyone + alpha * pulled)


@bug("hcl", named="correction-missing", thread="joshr17/HCL#5")
def hcl_no_correction(z1, z2, *, temperature, positive_prior, concentration):
    """The correction for false negatives is left out beside the weights of hard ones."""
    z = unit(np.concatenate([z1, z2]))
    n = len(z1)
    rows = np.arange(2 * n)
    logits = z @ z.T / temperature
    negatives = np.where(rows[:, None] % n == rows % n, -np.inf, logits)
    harder = logsumexp((1 + concentration) * negatives) - logsumexp(concentration * negatives)
    positive = logits[rows, (rows + n) % (2 * n)]
    return np.mean(softplus(harder + np.log(z1.real.dtype.type(2 * n - 2)) - positive))
