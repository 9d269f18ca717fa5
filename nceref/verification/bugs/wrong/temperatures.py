"""Bugs in temperature, logit scale and bias."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, softplus, unit


def _multiplied(queries, keys, *, temperature):
    scores = unit(queries) @ unit(keys).T * temperature
    return cross_entropy(scores, np.arange(len(scores)))


def _forgotten(queries, keys, queue, *, temperature):
    """The temperature is an argument, and nothing reads it."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, q @ unit(queue).T], axis=1))[:, 0])


def _both_factors_divided(queries, keys, *, temperature):
    """Each tower is divided by the temperature before they meet."""
    q, k = unit(queries) / temperature, unit(keys) / temperature
    return cross_entropy(q @ k.T, np.arange(len(q)))


def _positive_without_temperature(queries, keys, *, temperature):
    q, k = unit(queries), unit(keys)
    positive = np.sum(q * k, axis=-1)
    return np.mean(logsumexp(q @ k.T / temperature) - positive)


def _ten_times_too_warm(queries, keys, *, temperature):
    """0.1 was meant to be the default, and 10 times that is what divides."""
    logits = unit(queries) @ unit(keys).T / (10 * temperature)
    return cross_entropy(logits, np.arange(len(logits)))


def _pinned(z1, z2, *, temperature):
    """The constructor keeps the temperature, and forward uses the default."""
    temperature = z1.dtype.type(0.5).real
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, (np.arange(2 * n) + n) % (2 * n))


def _over_the_base_temperature(embeddings, labels, *, temperature):
    """The loss as published in code: times temperature / base_temperature, with a base of 0.07."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    log_prob = log_softmax(np.where(own, -np.inf, z @ z.T / temperature))
    mask = (labels[:, None] == labels[None, :]) & ~own
    mean_log_prob_pos = np.sum(np.where(mask, log_prob, 0), axis=1) / np.sum(mask, axis=1).astype(z.real.dtype)
    return np.mean(-(temperature / 0.07) * mean_log_prob_pos)


def _times_two_temperatures(queries, keys, *, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, np.arange(len(logits))) * (2 * temperature)


def _log_scale_not_exponentiated(image, text, *, logit_scale):
    """The module learns log(scale) and multiplies by it."""
    logits = np.log(logit_scale) * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def _scale_of_one(image, text, *, logit_scale):
    """A scale that was initialized to 1 where log(1 / 0.07) was meant, and never reached the logits."""
    logits = unit(image) @ unit(text).T
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def _scale_taken_for_a_temperature(image, text, *, logit_scale):
    logits = unit(image) @ unit(text).T / logit_scale
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def _pair_loss(logits):
    """Sum over the pairs of -log sigmoid(+-logit), per image."""
    sign = 2 * np.eye(len(logits), dtype=logits.real.dtype) - 1
    return np.sum(softplus(-sign * logits)) / sign.dtype.type(len(logits))


def _scale_exponentiated(image, text, *, logit_scale, logit_bias):
    """The caller passes the factor, and the loss takes it for a logarithm."""
    return _pair_loss(np.exp(logit_scale) * (unit(image) @ unit(text).T) + logit_bias)


def _bias_not_passed_on(image, text, *, logit_scale, logit_bias):
    return _pair_loss(logit_scale * (unit(image) @ unit(text).T))


def _bias_inside_the_scale(image, text, *, logit_scale, logit_bias):
    return _pair_loss(logit_scale * (unit(image) @ unit(text).T + logit_bias))


def _bias_with_a_minus(image, text, *, logit_scale, logit_bias):
    return _pair_loss(logit_scale * (unit(image) @ unit(text).T) - logit_bias)


MUTANTS = (
    Mutant(
        id="info-nce-temperature-multiplied",
        sentence="The similarities are multiplied by the temperature, mistaken for a scale.",
        thread="UKPLab/sentence-transformers#3054", losses=("info_nce",), named=("temperature-multiplied",),
        program=_multiplied,
    ),
    Mutant(
        id="moco-temperature-forgotten",
        sentence="The temperature is accepted and never used.",
        thread="HuiSerWang/ContrastMask#4", losses=("moco",), named=("temperature-missing",), program=_forgotten,
    ),
    Mutant(
        id="info-nce-both-factors-divided",
        sentence="Both towers are divided by the temperature, so that its square divides the similarity.",
        thread="caiqi/Joint-Contrastive-Learning#1", losses=("info_nce",), named=("temperature-squared",),
        program=_both_factors_divided,
    ),
    Mutant(
        id="info-nce-positive-without-temperature",
        sentence="The numerator is not divided by the temperature.",
        thread="RElbers/info-nce-pytorch#17", losses=("info_nce",), named=("temperature-missing-on-positive",),
        program=_positive_without_temperature,
    ),
    Mutant(
        id="info-nce-ten-times-too-warm",
        sentence="The temperature is off by a factor 10.",
        thread="modelscope/ms-swift#6761", losses=("info_nce",), named=("temperature-off-by-a-factor",),
        program=_ten_times_too_warm,
    ),
    Mutant(
        id="nt-xent-temperature-pinned",
        sentence="Whatever temperature is passed, 0.5 is used.",
        thread="lightonai/pylate#115", losses=("nt_xent",), named=("temperature-ignored",), program=_pinned,
    ),
    Mutant(
        id="supcon-over-the-base-temperature",
        sentence="The loss is multiplied by temperature / 0.07.",
        thread="HobbitLong/SupContrast#106", losses=("supcon_out",), named=("outer-factor-temperature-over-base",),
        program=_over_the_base_temperature,
    ),
    Mutant(
        id="info-nce-times-two-temperatures",
        sentence="The loss is multiplied by 2 * temperature.",
        thread="facebookresearch/moco-v3#31", losses=("info_nce",), named=("outer-factor-2-temperature",),
        program=_times_two_temperatures,
    ),
    Mutant(
        id="clip-log-scale-not-exponentiated",
        sentence="The learned log-scale multiplies the similarities without exp: 2.66 in place of 14.29.",
        thread="BAAI-DCAI/M3D#52", losses=("clip",), named=("scale-without-exponential",),
        program=_log_scale_not_exponentiated,
    ),
    Mutant(
        id="clip-scale-of-one",
        sentence="The logits are bare cosines: the scale is 1 whatever was learned.",
        thread="huggingface/transformers#13430", losses=("clip",), named=("scale-missing",), program=_scale_of_one,
    ),
    Mutant(
        id="clip-scale-taken-for-a-temperature",
        sentence="The scale divides the similarities, as a temperature would.",
        thread="LAION-AI/CLAP#57", losses=("clip",), named=("scale-divides",),
        program=_scale_taken_for_a_temperature,
    ),
    Mutant(
        id="siglip-scale-exponentiated",
        sentence="exp is taken of a scale that is the factor already.",
        thread="cfoster0/CLAP#28", losses=("siglip",), named=("scale-exponentiated",), program=_scale_exponentiated,
    ),
    Mutant(
        id="siglip-bias-not-passed-on",
        sentence="The logit bias is accepted by forward and not handed on.",
        thread="", seen="mlfoundations/open_clip commit 204d53e", losses=("siglip",), named=("bias-missing",),
        program=_bias_not_passed_on,
    ),
    Mutant(
        id="siglip-bias-inside-the-scale",
        sentence="The bias is added to the cosines and then multiplied by the scale.",
        thread="", seen="re-implementations of SigLIP", losses=("siglip",), named=("bias-before-scale",),
        program=_bias_inside_the_scale,
    ),
    Mutant(
        id="siglip-bias-with-a-minus",
        sentence="The bias is subtracted, so that its initial value of -10 becomes +10.",
        thread="", seen="re-implementations of SigLIP", losses=("siglip",), named=("bias-subtracted",),
        program=_bias_with_a_minus,
    ),
)  # fmt: skip
