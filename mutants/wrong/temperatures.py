"""Bugs in temperature, logit scale and bias."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, softplus, unit


@bug("info_nce", named="temperature-multiplied", thread="UKPLab/sentence-transformers#3054")
def info_nce_temperature_multiplied(queries, keys, *, temperature):
    """The similarities are multiplied by the temperature, mistaken for a scale."""
    scores = unit(queries) @ unit(keys).T * temperature
    return cross_entropy(scores, np.arange(len(scores)))


@bug("moco", named="temperature-missing", thread="HuiSerWang/ContrastMask#4")
def moco_temperature_forgotten(queries, keys, queue, *, temperature):
    """The temperature is accepted and never used."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, q @ unit(queue).T], axis=1))[:, 0])


@bug("info_nce", named="temperature-squared", thread="caiqi/Joint-Contrastive-Learning#1")
def info_nce_both_factors_divided(queries, keys, *, temperature):
    """Both towers are divided by the temperature, so that its square divides the similarity."""
    q, k = unit(queries) / temperature, unit(keys) / temperature
    return cross_entropy(q @ k.T, np.arange(len(q)))


@bug("info_nce", named="temperature-missing-on-positive", thread="RElbers/info-nce-pytorch#17")
def info_nce_positive_without_temperature(queries, keys, *, temperature):
    """The numerator is not divided by the temperature."""
    q, k = unit(queries), unit(keys)
    positive = np.sum(q * k, axis=-1)
    return np.mean(logsumexp(q @ k.T / temperature) - positive)


@bug("info_nce", named="temperature-off-by-a-factor", thread="modelscope/ms-swift#6761")
def info_nce_ten_times_too_warm(queries, keys, *, temperature):
    """The temperature is off by a factor 10."""
    # 0.1 was meant to be the default, and 10 times that is what divides.
    logits = unit(queries) @ unit(keys).T / (10 * temperature)
    return cross_entropy(logits, np.arange(len(logits)))


@bug("nt_xent", named="temperature-ignored", thread="lightonai/pylate#115")
def nt_xent_temperature_pinned(z1, z2, *, temperature):
    """Whatever temperature is passed, 0.5 is used."""
    # The constructor keeps the temperature, and forward uses the default.
    temperature = z1.dtype.type(0.5).real
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, (np.arange(2 * n) + n) % (2 * n))


@bug("supcon_out", named="outer-factor-temperature-over-base", thread="HobbitLong/SupContrast#106")
def supcon_over_the_base_temperature(embeddings, labels, *, temperature):
    """The loss is multiplied by temperature / 0.07."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    log_prob = log_softmax(np.where(own, -np.inf, z @ z.T / temperature))
    mask = (labels[:, None] == labels[None, :]) & ~own
    mean_log_prob_pos = np.sum(np.where(mask, log_prob, 0), axis=1) / np.sum(mask, axis=1).astype(z.real.dtype)
    return np.mean(-(temperature / 0.07) * mean_log_prob_pos)


@bug("info_nce", named="outer-factor-2-temperature", thread="facebookresearch/moco-v3#31")
def info_nce_times_two_temperatures(queries, keys, *, temperature):
    """The loss is multiplied by 2 * temperature."""
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, np.arange(len(logits))) * (2 * temperature)


@bug("clip", named="scale-without-exponential", thread="BAAI-DCAI/M3D#52")
def clip_log_scale_not_exponentiated(image, text, *, logit_scale):
    """The learned log-scale multiplies the similarities without exp: 2.66 in place of 14.29."""
    logits = np.log(logit_scale) * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


@bug("clip", named="scale-missing", thread="huggingface/transformers#13430")
def clip_scale_of_one(image, text, *, logit_scale):
    """The logits are bare cosines: the scale is 1 whatever was learned."""
    # A scale that was initialized to 1 where log(1 / 0.07) was meant, and never reached the logits.
    logits = unit(image) @ unit(text).T
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


@bug("clip", named="scale-divides", thread="LAION-AI/CLAP#57")
def clip_scale_taken_for_a_temperature(image, text, *, logit_scale):
    """The scale divides the similarities, as a temperature would."""
    logits = unit(image) @ unit(text).T / logit_scale
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def _pair_loss(logits):
    """Sum over the pairs of -log sigmoid(+-logit), per image."""
    sign = 2 * np.eye(len(logits), dtype=logits.real.dtype) - 1
    return np.sum(softplus(-sign * logits)) / sign.dtype.type(len(logits))


@bug("siglip", named="scale-exponentiated", thread="cfoster0/CLAP#28")
def siglip_scale_exponentiated(image, text, *, logit_scale, logit_bias):
    """The exponential is taken of a scale that is the factor already."""
    # The caller passes the factor, and the loss takes it for a logarithm.
    return _pair_loss(np.exp(logit_scale) * (unit(image) @ unit(text).T) + logit_bias)


@bug("siglip", named="bias-missing", seen="mlfoundations/open_clip commit 204d53e")
def siglip_bias_not_passed_on(image, text, *, logit_scale, logit_bias):
    """The logit bias is accepted by forward and not handed on."""
    return _pair_loss(logit_scale * (unit(image) @ unit(text).T))


@bug("siglip", named="bias-before-scale", seen="re-implementations of SigLIP")
def siglip_bias_inside_the_scale(image, text, *, logit_scale, logit_bias):
    """The bias is added to the cosines and then multiplied by the scale."""
    return _pair_loss(logit_scale * (unit(image) @ unit(text).T + logit_bias))


@bug("siglip", named="bias-subtracted", seen="re-implementations of SigLIP")
def siglip_bias_with_a_minus(image, text, *, logit_scale, logit_bias):
    """The bias is subtracted, so that its initial value of -10 becomes +10."""
    return _pair_loss(logit_scale * (unit(image) @ unit(text).T) - logit_bias)
