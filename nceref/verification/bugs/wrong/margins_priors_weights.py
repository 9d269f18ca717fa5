"""Bugs in what distinguishes the relatives of the softmax: margins, priors, weights of negatives, distances."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, logsumexp, softplus, unit


def _cosines(embeddings, class_weights, target):
    """Cosines, and a mask of the target's column."""
    return unit(embeddings) @ unit(class_weights).T, target[:, None] == np.arange(len(class_weights))


def _sine(cosine):
    square = 1 - cosine * cosine
    return np.sqrt(np.where(np.real(square) > 0, square, 0))


def _margin_for_everybody(embeddings, class_weights, target, *, margin, scale):
    cosine, _ = _cosines(embeddings, class_weights, target)
    return cross_entropy(scale * (cosine * np.cos(margin) - _sine(cosine) * np.sin(margin)), target)


def _margin_never_used(embeddings, class_weights, target, *, margin, scale):
    """The output with the margin is computed, and the loss is taken of the cosines."""
    cosine, hot = _cosines(embeddings, class_weights, target)
    _ = np.where(hot, cosine - margin, cosine)
    return cross_entropy(scale * cosine, target)


def _margin_in_degrees(embeddings, class_weights, target, *, margin, scale):
    cosine, hot = _cosines(embeddings, class_weights, target)
    radians = margin * (np.pi / 180)
    moved = cosine * np.cos(radians) - _sine(cosine) * np.sin(radians)
    return cross_entropy(scale * np.where(hot, moved, cosine), target)


def _margin_on_the_cosine(embeddings, class_weights, target, *, margin, scale):
    cosine, hot = _cosines(embeddings, class_weights, target)
    return cross_entropy(scale * np.where(hot, cosine - margin, cosine), target)


def _margin_with_a_plus(embeddings, class_weights, target, *, margin, scale):
    cosine, hot = _cosines(embeddings, class_weights, target)
    return cross_entropy(scale * np.where(hot, cosine + margin, cosine), target)


def _margin_after_the_scale(embeddings, class_weights, target, *, margin, scale):
    cosine, hot = _cosines(embeddings, class_weights, target)
    return cross_entropy(np.where(hot, scale * cosine - margin, scale * cosine), target)


def _counts_themselves(logits, target, class_counts, *, temperature):
    return cross_entropy(logits / temperature + class_counts, target)


def _no_correction(logits, target, class_counts, *, temperature):
    return cross_entropy(logits / temperature, target)


def _log_prior_subtracted(logits, target, class_counts, *, temperature):
    return cross_entropy(logits / temperature - np.log(class_counts), target)


def _no_noise_ratio(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    on_data, on_noise = data_logits - data_log_noise, noise_logits - noise_log_noise
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


def _no_noise_density(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """Self-normalized: the density of the noise is left out."""
    on_data, on_noise = data_logits - np.log(noise_ratio), noise_logits - np.log(noise_ratio)
    return np.mean(softplus(-on_data)) + noise_ratio * np.mean(softplus(on_noise))


def _views(z1, z2, temperature):
    """Exponents of positives and of negatives, a row for each of the 2N anchors."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    others = ~np.tile(np.eye(n, dtype=bool), (2, 2))
    return logits[np.arange(2 * n), np.roll(np.arange(2 * n), n)], logits[others].reshape(2 * n, -1)


def _all_negatives_alike(z1, z2, *, temperature, positive_prior, concentration):
    """The debiased estimate; the concentration is not used."""
    positive, negatives = _views(z1, z2, temperature)
    n = z1.dtype.type(negatives.shape[1])
    top = np.max(np.real(negatives), axis=1)
    top = np.maximum(top, np.real(positive))
    pos = np.exp(positive - top)
    ng = (np.sum(np.exp(negatives - top[:, None]), axis=1) - positive_prior * n * pos) / (1 - positive_prior)
    floor = n * np.exp(-1 / temperature - top)
    ng = np.where(np.real(ng) > np.real(floor), ng, floor)
    return np.mean(np.log(pos + ng) + top - positive)


def _no_false_negatives(z1, z2, *, temperature, positive_prior):
    """Every negative is believed: plain NT-Xent."""
    positive, negatives = _views(z1, z2, temperature)
    return np.mean(logsumexp(np.concatenate([positive[:, None], negatives], axis=1)) - positive)


def _flat_weights(z1, z2, *, temperature, sigma):
    """DCL: the weighting function was never passed."""
    positive, negatives = _views(z1, z2, temperature)
    return np.mean(logsumexp(negatives) - positive)


def _no_negatives(image, text, *, logit_scale, logit_bias):
    """Only the labels that are 1 enter the sum."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.mean(softplus(-np.diagonal(logits)))


def _sign_of_the_pair(image, text, *, logit_scale, logit_bias):
    """The typo of the pseudo-code: sigmoid(-l) for a pair."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.sum(softplus(logits)) / image.dtype.type(len(logits))


def _only_the_pull(queries, keys, *, negative_weight=None):
    return -np.mean(np.sum(unit(queries) * unit(keys), axis=1))


def _distances_not_squared(x, *, t):
    x = unit(x)
    i, j = np.triu_indices(len(x), 1)
    return np.log(np.mean(np.exp(-t * np.sqrt(np.sum((x[i] - x[j]) ** 2, axis=1)))))


def _always_squared(x, y, *, exponent):
    return np.mean(np.sum((unit(x) - unit(y)) ** 2, axis=1))


MUTANTS = (
    Mutant(
        id="arcface-margin-for-everybody", sentence="The margin is applied to every class.",
        thread="Confusezius/Revisiting_Deep_Metric_Learning_PyTorch#12", losses=("arcface",),
        named=("margin-on-every-class",), program=_margin_for_everybody,
    ),
    Mutant(
        id="cosface-margin-never-used", sentence="The loss is taken of the cosines; the margin changes nothing.",
        thread="MccreeZhao/FR-Loss#2", losses=("cosface",), named=("margin-missing",), program=_margin_never_used,
    ),
    Mutant(
        id="arcface-margin-in-degrees", sentence="The margin is taken for degrees.",
        thread="KevinMusgrave/pytorch-metric-learning#537", losses=("arcface",), named=("margin-in-degrees",),
        program=_margin_in_degrees,
    ),
    Mutant(
        id="arcface-margin-on-the-cosine", sentence="The margin is subtracted from the cosine, as in CosFace.",
        thread="", seen="re-implementations of ArcFace", losses=("arcface",), named=("margin-multiplied",),
        program=_margin_on_the_cosine,
    ),
    Mutant(
        id="cosface-margin-with-a-plus", sentence="The margin makes the target easier.",
        thread="", seen="re-implementations of CosFace", losses=("cosface",), named=("margin-added",),
        program=_margin_with_a_plus,
    ),
    Mutant(
        id="cosface-margin-after-the-scale", sentence="The margin is subtracted after the scale: 64 times too small.",
        thread="", seen="re-implementations of CosFace", losses=("cosface",), named=("margin-not-scaled",),
        program=_margin_after_the_scale,
    ),
    Mutant(
        id="balanced-softmax-counts-themselves", sentence="Class counts are added to the logits, not their logarithms.",
        thread="jiawei-ren/BalancedMetaSoftmax-Classification#10", losses=("balanced_softmax",),
        named=("prior-without-log",), program=_counts_themselves,
    ),
    Mutant(
        id="balanced-softmax-no-correction", sentence="The correction by the class counts is missing.",
        thread="NVIDIA-Merlin/models#1051", losses=("balanced_softmax",), named=("prior-missing",),
        program=_no_correction,
    ),
    Mutant(
        id="balanced-softmax-log-prior-subtracted", sentence="The log-prior has the other sign.",
        thread="tensorflow/recommenders#219", losses=("balanced_softmax",), named=("prior-subtracted",),
        program=_log_prior_subtracted,
    ),
    Mutant(
        id="nce-no-noise-ratio", sentence="log(noise ratio) is missing from the logits.", thread="",
        seen="re-implementations of NCE", losses=("nce",), named=("noise-ratio-missing",), program=_no_noise_ratio,
    ),
    Mutant(
        id="nce-no-noise-density", sentence="The density of the noise is missing from the logits.",
        thread="tensorflow/recommenders#278", losses=("nce",), named=("prior-missing",), program=_no_noise_density,
    ),
    Mutant(
        id="hcl-all-negatives-alike", sentence="The importance weights of the negatives are left out.",
        thread="joshr17/HCL#8", losses=("hcl",), named=("importance-weights-missing",), program=_all_negatives_alike,
    ),
    Mutant(
        id="debiased-no-false-negatives", sentence="The correction for false negatives is left out: NT-Xent.",
        thread="joshr17/HCL#11", losses=("debiased",), named=("correction-missing",), program=_no_false_negatives,
    ),
    Mutant(
        id="dclw-flat-weights", sentence="The positives are not weighted: DCL.", thread="lightly-ai/lightly#793",
        losses=("dclw",), named=("weights-missing",), program=_flat_weights,
    ),
    Mutant(
        id="siglip-no-negatives", sentence="Only matching pairs enter the loss.", thread="sthalles/SimCLR#13",
        losses=("siglip",), named=("negatives-ignored",), program=_no_negatives,
    ),
    Mutant(
        id="siglip-sign-of-the-pair", sentence="A matching pair is treated as a negative one.",
        thread="mlfoundations/open_clip#476", losses=("siglip",), named=("positive-sign-flipped",),
        program=_sign_of_the_pair,
    ),
    Mutant(
        id="simple-only-the-pull", sentence="Negatives push nobody.", thread="sthalles/SimCLR#13", losses=("simple",),
        named=("negatives-ignored",), program=_only_the_pull,
    ),
    Mutant(
        id="uniformity-distances-not-squared", sentence="Distances enter the exponent without their square.",
        thread="ssnl/align_uniform#10", losses=("uniformity",), named=("distance-not-squared",),
        program=_distances_not_squared,
    ),
    Mutant(
        id="alignment-always-squared", sentence="The distance is squared whatever the exponent.", thread="",
        seen="re-implementations of alignment", losses=("alignment",), named=("distance-squared",),
        program=_always_squared, settings={"exponent": 1.0},
    ),
)  # fmt: skip
