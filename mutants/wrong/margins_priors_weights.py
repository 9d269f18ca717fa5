"""Bugs in what distinguishes the relatives of the softmax: margins, priors, weights of negatives, distances."""

import numpy as np

from mutants.bug import bug, cross_entropy, logsumexp, softplus, unit


def _cosines(embeddings, class_weights, target):
    """Cosines, and a mask of the target's column."""
    return unit(embeddings) @ unit(class_weights).T, target[:, None] == np.arange(len(class_weights))


def _sine(cosine):
    square = 1 - cosine * cosine
    return np.sqrt(np.where(np.real(square) > 0, square, 0))


@bug("arcface", named="margin-on-every-class", thread="Confusezius/Revisiting_Deep_Metric_Learning_PyTorch#12")
def arcface_margin_for_everybody(embeddings, class_weights, target, *, margin, scale):
    """The margin is applied to every class."""
    cosine, _ = _cosines(embeddings, class_weights, target)
    return cross_entropy(scale * (cosine * np.cos(margin) - _sine(cosine) * np.sin(margin)), target)


@bug("cosface", named="margin-missing", thread="MccreeZhao/FR-Loss#2")
def cosface_margin_never_used(embeddings, class_weights, target, *, margin, scale):
    """The loss is taken of the cosines; the margin changes nothing."""
    cosine, hot = _cosines(embeddings, class_weights, target)
    _ = np.where(hot, cosine - margin, cosine)
    return cross_entropy(scale * cosine, target)


@bug("arcface", named="margin-in-degrees", thread="KevinMusgrave/pytorch-metric-learning#537")
def arcface_margin_in_degrees(embeddings, class_weights, target, *, margin, scale):
    """The margin is taken for degrees."""
    cosine, hot = _cosines(embeddings, class_weights, target)
    radians = margin * (np.pi / 180)
    moved = cosine * np.cos(radians) - _sine(cosine) * np.sin(radians)
    return cross_entropy(scale * np.where(hot, moved, cosine), target)


@bug("arcface", named="margin-multiplied", seen="re-implementations of ArcFace")
def arcface_margin_on_the_cosine(embeddings, class_weights, target, *, margin, scale):
    """The margin is subtracted from the cosine, as in CosFace."""
    cosine, hot = _cosines(embeddings, class_weights, target)
    return cross_entropy(scale * np.where(hot, cosine - margin, cosine), target)


@bug("cosface", named="margin-added", seen="re-implementations of CosFace")
def cosface_margin_with_a_plus(embeddings, class_weights, target, *, margin, scale):
    """The margin makes the target easier."""
    cosine, hot = _cosines(embeddings, class_weights, target)
    return cross_entropy(scale * np.where(hot, cosine + margin, cosine), target)


@bug("cosface", named="margin-not-scaled", seen="re-implementations of CosFace")
def cosface_margin_after_the_scale(embeddings, class_weights, target, *, margin, scale):
    """The margin is subtracted after the scale: 64 times too small."""
    cosine, hot = _cosines(embeddings, class_weights, target)
    return cross_entropy(np.where(hot, scale * cosine - margin, scale * cosine), target)


@bug("balanced_softmax", named="prior-without-log", thread="jiawei-ren/BalancedMetaSoftmax-Classification#10")
def balanced_softmax_counts_themselves(logits, target, class_counts, *, temperature):
    """Class counts are added to the logits, not their logarithms."""
    return cross_entropy(logits / temperature + class_counts, target)


@bug("balanced_softmax", named="prior-missing", thread="NVIDIA-Merlin/models#1051")
def balanced_softmax_no_correction(logits, target, class_counts, *, temperature):
    """The correction by the class counts is missing."""
    return cross_entropy(logits / temperature, target)


@bug("balanced_softmax", named="prior-subtracted", thread="tensorflow/recommenders#219")
def balanced_softmax_log_prior_subtracted(logits, target, class_counts, *, temperature):
    """The log-prior has the other sign."""
    return cross_entropy(logits / temperature - np.log(class_counts), target)


@bug("nce", named="noise-ratio-missing", seen="re-implementations of NCE")
def nce_no_noise_ratio(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """log(noise ratio) is missing from the logits."""
    on_data, on_noise = data_logits - data_log_noise, noise_logits - noise_log_noise
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


@bug("nce", named="prior-missing", thread="tensorflow/recommenders#278")
def nce_no_noise_density(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The density of the noise is missing from the logits."""
    on_data, on_noise = data_logits - np.log(noise_ratio), noise_logits - np.log(noise_ratio)
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


def _views(z1, z2, temperature):
    """Exponents of positives and of negatives, a row for each of the 2N anchors."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    others = ~np.tile(np.eye(n, dtype=bool), (2, 2))
    return logits[np.arange(2 * n), np.roll(np.arange(2 * n), n)], logits[others].reshape(2 * n, -1)


@bug("hcl", named="importance-weights-missing", thread="joshr17/HCL#8")
def hcl_all_negatives_alike(z1, z2, *, temperature, positive_prior, concentration):
    """The importance weights of the negatives are left out."""
    # The debiased estimate; the concentration is not used.
    positive, negatives = _views(z1, z2, temperature)
    n = z1.dtype.type(negatives.shape[1])
    top = np.max(np.real(negatives), axis=1)
    top = np.maximum(top, np.real(positive))
    pos = np.exp(positive - top)
    ng = (np.sum(np.exp(negatives - top[:, None]), axis=1) - positive_prior * n * pos) / (1 - positive_prior)
    floor = n * np.exp(-1 / temperature - top)
    ng = np.where(np.real(ng) > np.real(floor), ng, floor)
    return np.mean(np.log(pos + ng) + top - positive)


@bug("debiased", named="correction-missing", thread="joshr17/HCL#11")
def debiased_no_false_negatives(z1, z2, *, temperature, positive_prior):
    """The correction for false negatives is left out: NT-Xent."""
    positive, negatives = _views(z1, z2, temperature)
    return np.mean(logsumexp(np.concatenate([positive[:, None], negatives], axis=1)) - positive)


@bug("dclw", named="weights-missing", thread="lightly-ai/lightly#793")
def dclw_flat_weights(z1, z2, *, temperature, sigma):
    """The positives are not weighted: DCL."""
    # DCL: the weighting function was never passed.
    positive, negatives = _views(z1, z2, temperature)
    return np.mean(logsumexp(negatives) - positive)


@bug("siglip", named="negatives-ignored", thread="sthalles/SimCLR#13")
def siglip_no_negatives(image, text, *, logit_scale, logit_bias):
    """Only matching pairs enter the loss."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.mean(softplus(-np.diagonal(logits)))


@bug("siglip", named="positive-sign-flipped", thread="mlfoundations/open_clip#476")
def siglip_sign_of_the_pair(image, text, *, logit_scale, logit_bias):
    """A matching pair is treated as a negative one."""
    # The typo of the pseudo-code: sigmoid(-l) for a pair.
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.sum(softplus(logits)) / image.dtype.type(len(logits))


@bug("simple", named="negatives-ignored", thread="sthalles/SimCLR#13")
def simple_only_the_pull(queries, keys, *, negative_weight=None):
    """Negatives do not push."""
    return -np.mean(np.sum(unit(queries) * unit(keys), axis=1))


@bug("uniformity", named="distance-not-squared", thread="ssnl/align_uniform#10")
def uniformity_distances_not_squared(x, *, t):
    """Distances enter the exponent without their square."""
    x = unit(x)
    i, j = np.triu_indices(len(x), 1)
    return np.log(np.mean(np.exp(-t * np.sqrt(np.sum((x[i] - x[j]) ** 2, axis=1)))))


@bug("alignment", named="distance-squared", seen="re-implementations of alignment", settings={"exponent": 1.0})
def alignment_always_squared(x, y, *, exponent):
    """The distance is squared whatever the exponent."""
    return np.mean(np.sum((unit(x) - unit(y)) ** 2, axis=1))
