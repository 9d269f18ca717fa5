"""Held out: one bug each in margins, priors, axes and weights of classifiers and of estimators with a prior."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, softplus, unit


def _cosface_scale_as_temperature(embeddings, class_weights, target, *, margin, scale):
    """What is called scale is taken for its inverse."""
    cosine = unit(embeddings) @ unit(class_weights).T
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(np.where(own, cosine - margin, cosine) / scale, target)


def _cosface_mean_of_mean(embeddings, class_weights, target, *, margin, scale):
    """The mean is divided by the batch once more."""
    cosine = unit(embeddings) @ unit(class_weights).T
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(scale * np.where(own, cosine - margin, cosine), target) / len(target)


def _arcface_unused_margin(embeddings, class_weights, target, *, margin, scale):
    """The output with the margin is computed, and the cross-entropy gets the cosines."""
    return cross_entropy(scale * unit(embeddings) @ unit(class_weights).T, target)


def _arcface_over_ranks(embeddings, class_weights, target, *, margin, scale):
    """Features of 8 ranks, gathered; the backward pass of the gather hands on the own share only."""
    cosine = unit(embeddings) @ unit(class_weights).T
    rest = 1 - cosine * cosine
    moved = cosine * np.cos(margin) - np.sqrt(np.where(np.real(rest) > 0, rest, 0)) * np.sin(margin)
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(scale * np.where(own, moved, cosine), target)


def _eighth(grads, inputs):
    return {name: grad / 8 for name, grad in grads.items()}


def _balanced_softmax_over_batch(logits, target, class_counts, *, temperature):
    """The log-softmax is taken along dimension 0."""
    log_prob = log_softmax(logits / temperature + np.log(class_counts), axis=0)
    return -np.mean(log_prob[np.arange(len(target)), target])


def _cross_entropy_over_views(logits, target, *, temperature):
    """Logits had a leading dimension once; the softmax runs along the one that is the batch now."""
    log_prob = log_softmax(logits / temperature, axis=0)
    return -np.mean(log_prob[np.arange(len(target)), target])


def _balanced_softmax_twice(logits, target, class_counts, *, temperature):
    """The cross-entropy is given the softmax."""
    p = np.exp(log_softmax(logits / temperature + np.log(class_counts)))
    return cross_entropy(p, target)


def _nce_density_added(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The log-density of the noise is added to the logits."""
    on_data = data_logits + data_log_noise - np.log(noise_ratio)
    on_noise = noise_logits + noise_log_noise - np.log(noise_ratio)
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


def _paco_prior_not_used(embeddings, labels, centers, *, alpha, temperature, class_prior):
    """Center rebalance is configured, and the logits of the centers do not know of it."""
    z = unit(embeddings)
    off = ~np.eye(len(z), dtype=bool)
    scores = embeddings @ centers.T
    contrast = np.where(off, z @ z.T / temperature, -np.inf)
    everyone = logsumexp(np.concatenate([contrast, scores], axis=1))
    positives = off & (labels[:, None] == labels)
    pulled = np.sum(np.where(positives, contrast - everyone[:, None], 0), axis=1)
    return -np.mean(scores[np.arange(len(z)), labels] - everyone + alpha * pulled)


def _hcl_no_correction(z1, z2, *, temperature, positive_prior, concentration):
    """Hard negatives are weighted, and the share of false ones is not taken away."""
    z = unit(np.concatenate([z1, z2]))
    n = len(z1)
    rows = np.arange(2 * n)
    logits = z @ z.T / temperature
    negatives = np.where(rows[:, None] % n == rows % n, -np.inf, logits)
    harder = logsumexp((1 + concentration) * negatives) - logsumexp(concentration * negatives)
    positive = logits[rows, (rows + n) % (2 * n)]
    return np.mean(softplus(harder + np.log(z1.real.dtype.type(2 * n - 2)) - positive))


MUTANTS = (
    Mutant(
        id="cosface-scale-as-temperature",
        sentence="The scale divides the cosines, as the temperature of which it is the inverse.",
        thread="UKPLab/sentence-transformers#3054", losses=("cosface",), named=("scale-divides",),
        program=_cosface_scale_as_temperature, held_out=True,
    ),
    Mutant(
        id="cosface-mean-of-mean",
        sentence="The mean over the batch is divided by its size once more.",
        thread="sihyun-yu/REPA#21", losses=("cosface",), named=("divided-by-n-twice",),
        program=_cosface_mean_of_mean, held_out=True,
    ),
    Mutant(
        id="arcface-unused-margin",
        sentence="The cross-entropy is taken of the cosines; the output with the margin is not used.",
        thread="MccreeZhao/FR-Loss#2", losses=("arcface",), named=("margin-missing",),
        program=_arcface_unused_margin, held_out=True,
    ),
    Mutant(
        id="arcface-gathered-over-ranks",
        sentence="Features are gathered from 8 ranks, and gradients are an eighth of what they should be.",
        thread="Tencent/TFace#34", losses=("arcface",), named=("gradient-constant-factor",),
        program=_arcface_over_ranks, held_out=True, gradients=_eighth,
    ),
    Mutant(
        id="balanced-softmax-along-batch",
        sentence="The softmax runs over the samples of the batch, not over classes.",
        thread="DonkeyShot21/UNO#4", losses=("balanced_softmax",), named=("softmax-over-wrong-axis",),
        program=_balanced_softmax_over_batch, held_out=True,
    ),
    Mutant(
        id="cross-entropy-along-batch",
        sentence="The softmax runs along dimension 0, which is the batch.",
        thread="leofansq/CPCL#1", losses=("cross_entropy",), named=("softmax-over-wrong-axis",),
        program=_cross_entropy_over_views, held_out=True,
    ),
    Mutant(
        id="balanced-softmax-of-probabilities",
        sentence="The cross-entropy gets the balanced probabilities and takes their softmax.",
        thread="lansinuote/Huggingface_Toturials#6", losses=("balanced_softmax",), named=("softmax-applied-twice",),
        program=_balanced_softmax_twice, held_out=True,
    ),
    Mutant(
        id="nce-density-added",
        sentence="The log-density of the noise is added where it must be subtracted.",
        thread="tensorflow/recommenders#257", losses=("nce",), named=("prior-subtracted",),
        program=_nce_density_added, held_out=True,
    ),
    Mutant(
        id="paco-prior-not-used",
        sentence="The class prior is accepted and never reaches the logits of the centers.",
        thread="NVIDIA-Merlin/models#1051", losses=("paco",), named=("prior-missing",),
        program=_paco_prior_not_used, held_out=True, settings={"alpha": 0.0625, "class_prior": ...},
    ),
    Mutant(
        id="hcl-no-correction",
        sentence="The correction for false negatives is left out beside the weights of hard ones.",
        thread="joshr17/HCL#5", losses=("hcl",), named=("correction-missing",),
        program=_hcl_no_correction, held_out=True,
    ),
)  # fmt: skip
