"""Bugs that leave the value as it is: what is detached, what is not, what a gather or a mask does to the gradient."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, slopes, softplus, stop, unit


def _info_nce(queries, keys, temperature):
    logits = queries @ keys.T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


@bug("info_nce", named="keys-detached", thread="alexandonian/contrastive-feature-loss#3")
def info_nce_keys_from_no_grad(queries, keys, *, temperature):
    """The keys are computed under no_grad although nothing else trains them."""
    return _info_nce(unit(queries), unit(stop(keys)), temperature)


@bug("info_nce", named="first-input-detached", thread="liusurufeng/reco#30")
def info_nce_queries_from_no_grad(queries, keys, *, temperature):
    """The wrong tower is detached: the queries get no gradient."""
    return _info_nce(unit(stop(queries)), unit(keys), temperature)


@bug("info_nce", named="negatives-detached", thread="FrozenBurning/Text2Light#10")
def info_nce_hard_negatives_from_no_grad(queries, keys, negatives, *, temperature):
    """The explicit negatives get no gradient."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    logits = np.concatenate([positive, q @ unit(stop(negatives)).T], axis=1) / temperature
    return -np.mean(log_softmax(logits)[:, 0])


@bug("info_nce", named="normalization-detached", seen="code that normalizes by .data.norm()")
def info_nce_length_detached(queries, keys, *, temperature):
    """Rows are divided by lengths that are not part of the graph."""
    # Each row over its x.norm().item().
    q = queries / np.sqrt(np.sum(stop(queries) ** 2, axis=-1, keepdims=True))
    k = keys / np.sqrt(np.sum(stop(keys) ** 2, axis=-1, keepdims=True))
    return _info_nce(q, k, temperature)


def _clip(image, text, logit_scale):
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


@bug("clip", named="temperature-detached", thread="openai/CLIP#46")
def clip_scale_as_a_number(image, text, *, logit_scale):
    """The scale enters as .item(): it is never learned."""
    return _clip(image, text, stop(logit_scale))


def _half_of_it(grads, inputs):
    return {name: 0.5 * g for name, g in grads.items()}


@bug("clip", named="gradient-constant-factor", thread="mlfoundations/open_clip#616", gradients=_half_of_it)
def clip_gather_without_gradient(image, text, *, logit_scale):
    """Two ranks gather without gradient: each gets half of it."""
    return _clip(image, text, logit_scale)


def _gradient_of_the_memory(grads, inputs):
    return {**grads, **slopes(moco_memory_in_the_graph, inputs, ("keys", "queue"))}


@bug("moco", named="constants-get-gradient", thread="facebookresearch/moco#93", gradients=_gradient_of_the_memory)
def moco_memory_in_the_graph(queries, keys, queue, *, temperature):
    """Keys and queue are not detached."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, q @ unit(queue).T], axis=1) / temperature)[:, 0])


def _two_views(z1, z2, temperature):
    """Positive and negative logits of the 2N anchors."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    others = ~np.tile(np.eye(n, dtype=bool), (2, 2))
    return logits[np.arange(2 * n), np.roll(np.arange(2 * n), n)], logits[others].reshape(2 * n, -1)


@bug("nt_xent", named="positives-detached", seen="re-implementations that read the target's score with .data")
def nt_xent_positive_detached(z1, z2, *, temperature):
    """The score of the positive gets no gradient: nothing attracts."""
    positive, negatives = _two_views(z1, z2, temperature)
    return np.mean(logsumexp(np.concatenate([positive[:, None], negatives], axis=1)) - stop(positive))


@bug("nt_xent", named="denominator-detached", seen="re-implementations that normalize under no_grad")
def nt_xent_denominator_detached(z1, z2, *, temperature):
    """The log-sum-exp gets no gradient: nothing repels."""
    positive, negatives = _two_views(z1, z2, temperature)
    return np.mean(stop(logsumexp(np.concatenate([positive[:, None], negatives], axis=1))) - positive)


def _right_nt_xent(z1, z2, *, temperature):
    positive, negatives = _two_views(z1, z2, temperature)
    return np.mean(logsumexp(np.concatenate([positive[:, None], negatives], axis=1)) - positive)


def _only_the_last_batch(grads, inputs):
    """Chunks of two; the guard that should catch the last one is never true, and the others lose their gradient."""
    return {name: np.where(np.arange(len(g))[:, None] < len(g) - 2, 0, g) if np.ndim(g) else g
            for name, g in grads.items()}  # fmt: skip


@bug(
    "nt_xent", named="gradient-missing-rows", thread="UKPLab/sentence-transformers#3854", gradients=_only_the_last_batch
)
def nt_xent_only_the_last_batch(z1, z2, *, temperature):
    """All mini-batches but the last lose their gradient."""
    return _right_nt_xent(z1, z2, temperature=temperature)


def _no_gradient(grads, inputs):
    return {name: np.zeros_like(g) for name, g in grads.items()}


@bug("nt_xent", named="gradient-zero", thread="wzhouad/Contra-OOD#6", gradients=_no_gradient)
def nt_xent_no_graph(z1, z2, *, temperature):
    """The loss was computed on arrays outside of the graph."""
    return _right_nt_xent(z1, z2, temperature=temperature)


def _nan_for_the_temperature(grads, inputs):
    return {**grads, "temperature": np.nan}


@bug("nt_xent", named="gradient-not-finite", thread="NVIDIA-NeMo/Automodel#3850", gradients=_nan_for_the_temperature)
def nt_xent_nan_for_the_temperature(z1, z2, *, temperature):
    """-inf is masked in before a learned temperature divides: a finite loss, and NaN for the temperature."""
    return _right_nt_xent(z1, z2, temperature=temperature)


def _weighted(z1, z2, temperature, sigma, kept):
    positive, negatives = _two_views(z1, z2, temperature)
    cosine = kept(np.sum(unit(z1) * unit(z2), axis=1))
    mass = np.exp((cosine - np.max(np.real(cosine))) / sigma)
    weight = 2 - mass / np.mean(mass)
    return np.mean(logsumexp(negatives) - np.concatenate([weight, weight]) * positive)


@bug("dclw", named="weights-not-detached", thread="lightly-ai/lightly#793")
def dclw_weights_in_the_graph(z1, z2, *, temperature, sigma):
    """The weights of the positives are not detached."""
    return _weighted(z1, z2, temperature, sigma, lambda x: x)


@bug("hcl", named="weights-detached", thread="joshr17/HCL#5")
def hcl_weights_from_no_grad(z1, z2, *, temperature, positive_prior, concentration):
    """The importance weights of the negatives are detached."""
    positive, negatives = _two_views(z1, z2, temperature)
    top = np.maximum(np.max(np.real(negatives), axis=1), np.real(positive))
    level = concentration * stop(negatives)
    importance = np.exp(level - np.max(level, axis=1, keepdims=True))
    importance = importance / np.mean(importance, axis=1, keepdims=True)
    count, pos = z1.dtype.type(negatives.shape[1]), np.exp(positive - top)
    weighted = np.sum(importance * np.exp(negatives - top[:, None]), axis=1)
    ng = (weighted - positive_prior * count * pos) / (1 - positive_prior)
    floor = count * np.exp(-1 / temperature - top)
    ng = np.where(np.real(ng) > np.real(floor), ng, floor)
    return np.mean(np.log(pos + ng) + top - positive)


@bug("siglip", named="bias-detached", seen="mlfoundations/open_clip commit 204d53e")
def siglip_bias_as_a_number(image, text, *, logit_scale, logit_bias):
    """The bias is not learned."""
    logits = logit_scale * (unit(image) @ unit(text).T) + stop(logit_bias)
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return np.sum(softplus(-sign * logits)) / image.dtype.type(len(logits))


@bug("cosface", named="centers-detached", thread="Tencent/TFace#34", also=("keys-detached",))
def cosface_frozen_classes(embeddings, class_weights, target, *, margin, scale):
    """The class weights get no gradient."""
    cosine = unit(embeddings) @ unit(stop(class_weights)).T
    hot = target[:, None] == np.arange(len(class_weights))
    return cross_entropy(scale * np.where(hot, cosine - margin, cosine), target)
