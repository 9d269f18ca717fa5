"""Bugs that leave the value as it is: what is detached, what is not, what a gather or a mask does to the gradient."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, slopes, softplus, stop, unit


def _info_nce(queries, keys, temperature):
    logits = queries @ keys.T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


def _keys_from_no_grad(queries, keys, *, temperature):
    return _info_nce(unit(queries), unit(stop(keys)), temperature)


def _queries_from_no_grad(queries, keys, *, temperature):
    return _info_nce(unit(stop(queries)), unit(keys), temperature)


def _hard_negatives_from_no_grad(queries, keys, negatives, *, temperature):
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    logits = np.concatenate([positive, q @ unit(stop(negatives)).T], axis=1) / temperature
    return -np.mean(log_softmax(logits)[:, 0])


def _length_detached(queries, keys, *, temperature):
    """Each row over its x.norm().item()."""
    q = queries / np.sqrt(np.sum(stop(queries) ** 2, axis=-1, keepdims=True))
    k = keys / np.sqrt(np.sum(stop(keys) ** 2, axis=-1, keepdims=True))
    return _info_nce(q, k, temperature)


def _clip(image, text, logit_scale):
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def _scale_as_a_number(image, text, *, logit_scale):
    """logit_scale.item()."""
    return _clip(image, text, stop(logit_scale))


def _right_clip(image, text, *, logit_scale):
    return _clip(image, text, logit_scale)


def _keys_and_queue_in_the_graph(queries, keys, queue, *, temperature):
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=-1, keepdims=True)
    return -np.mean(log_softmax(np.concatenate([positive, q @ unit(queue).T], axis=1) / temperature)[:, 0])


def _gradient_of_the_memory(grads, inputs):
    return {**grads, **slopes(_keys_and_queue_in_the_graph, inputs, ("keys", "queue"))}


def _two_views(z1, z2, temperature):
    """Positive and negative logits of the 2N anchors."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = z @ z.T / temperature
    others = ~np.tile(np.eye(n, dtype=bool), (2, 2))
    return logits[np.arange(2 * n), np.roll(np.arange(2 * n), n)], logits[others].reshape(2 * n, -1)


def _positive_detached(z1, z2, *, temperature):
    """The target's score in the numerator is read with .data."""
    positive, negatives = _two_views(z1, z2, temperature)
    return np.mean(logsumexp(np.concatenate([positive[:, None], negatives], axis=1)) - stop(positive))


def _denominator_detached(z1, z2, *, temperature):
    positive, negatives = _two_views(z1, z2, temperature)
    return np.mean(stop(logsumexp(np.concatenate([positive[:, None], negatives], axis=1))) - positive)


def _right_nt_xent(z1, z2, *, temperature):
    positive, negatives = _two_views(z1, z2, temperature)
    return np.mean(logsumexp(np.concatenate([positive[:, None], negatives], axis=1)) - positive)


def _only_the_last_batch(grads, inputs):
    """Chunks of two; the guard that should catch the last one is never true, and the others lose their gradient."""
    return {name: np.where(np.arange(len(g))[:, None] < len(g) - 2, 0, g) if np.ndim(g) else g
            for name, g in grads.items()}  # fmt: skip


def _weighted(z1, z2, temperature, sigma, kept):
    positive, negatives = _two_views(z1, z2, temperature)
    cosine = kept(np.sum(unit(z1) * unit(z2), axis=1))
    mass = np.exp((cosine - np.max(np.real(cosine))) / sigma)
    weight = 2 - mass / np.mean(mass)
    return np.mean(logsumexp(negatives) - np.concatenate([weight, weight]) * positive)


def _weights_in_the_graph(z1, z2, *, temperature, sigma):
    return _weighted(z1, z2, temperature, sigma, lambda x: x)


def _hard_negatives(z1, z2, *, temperature, positive_prior, concentration):
    """The importance weights are computed under no_grad."""
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


def _bias_as_a_number(image, text, *, logit_scale, logit_bias):
    logits = logit_scale * (unit(image) @ unit(text).T) + stop(logit_bias)
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return np.sum(softplus(-sign * logits)) / image.dtype.type(len(logits))


def _frozen_classes(embeddings, class_weights, target, *, margin, scale):
    cosine = unit(embeddings) @ unit(stop(class_weights)).T
    hot = target[:, None] == np.arange(len(class_weights))
    return cross_entropy(scale * np.where(hot, cosine - margin, cosine), target)


def _no_gradient(grads, inputs):
    return {name: np.zeros_like(g) for name, g in grads.items()}


def _half_of_it(grads, inputs):
    return {name: 0.5 * g for name, g in grads.items()}


def _nan_for_the_temperature(grads, inputs):
    return {**grads, "temperature": np.nan}


MUTANTS = (
    Mutant(
        id="info-nce-keys-from-no-grad",
        sentence="The keys are computed under no_grad although nothing else trains them.",
        thread="alexandonian/contrastive-feature-loss#3", losses=("info_nce",), named=("keys-detached",),
        program=_keys_from_no_grad,
    ),
    Mutant(
        id="info-nce-queries-from-no-grad", sentence="The wrong tower is detached: the queries get no gradient.",
        thread="liusurufeng/reco#30", losses=("info_nce",), named=("first-input-detached",),
        program=_queries_from_no_grad,
    ),
    Mutant(
        id="info-nce-hard-negatives-from-no-grad", sentence="The explicit negatives get no gradient.",
        thread="FrozenBurning/Text2Light#10", losses=("info_nce",), named=("negatives-detached",),
        program=_hard_negatives_from_no_grad,
    ),
    Mutant(
        id="info-nce-length-detached", sentence="Rows are divided by lengths that the graph does not know.",
        thread="", seen="code that normalizes by .data.norm()", losses=("info_nce",),
        named=("normalization-detached",), program=_length_detached,
    ),
    Mutant(
        id="clip-scale-as-a-number", sentence="The scale enters as .item(): it is never learned.",
        thread="openai/CLIP#46", losses=("clip",), named=("temperature-detached",), program=_scale_as_a_number,
    ),
    Mutant(
        id="clip-gather-without-gradient", sentence="Two ranks gather without gradient: each gets half of it.",
        thread="mlfoundations/open_clip#616", losses=("clip",), named=("gradient-constant-factor",),
        program=_right_clip, gradients=_half_of_it,
    ),
    Mutant(
        id="moco-memory-in-the-graph", sentence="Keys and queue are not detached.",
        thread="facebookresearch/moco#93", losses=("moco",), named=("constants-get-gradient",),
        program=_keys_and_queue_in_the_graph, gradients=_gradient_of_the_memory,
    ),
    Mutant(
        id="nt-xent-positive-detached", sentence="The score of the positive gets no gradient: nothing attracts.",
        thread="", seen="re-implementations that read the target's score with .data", losses=("nt_xent",),
        named=("positives-detached",), program=_positive_detached,
    ),
    Mutant(
        id="nt-xent-denominator-detached", sentence="The log-sum-exp gets no gradient: nothing repels.",
        thread="", seen="re-implementations that normalize under no_grad", losses=("nt_xent",),
        named=("denominator-detached",), program=_denominator_detached,
    ),
    Mutant(
        id="nt-xent-only-the-last-batch", sentence="All mini-batches but the last lose their gradient.",
        thread="UKPLab/sentence-transformers#3854", losses=("nt_xent",), named=("gradient-missing-rows",),
        program=_right_nt_xent, gradients=_only_the_last_batch,
    ),
    Mutant(
        id="nt-xent-no-graph", sentence="The loss was computed on arrays outside of the graph.",
        thread="wzhouad/Contra-OOD#6", losses=("nt_xent",), named=("gradient-zero",), program=_right_nt_xent,
        gradients=_no_gradient,
    ),
    Mutant(
        id="nt-xent-nan-for-the-temperature",
        sentence="-inf is masked in before a learned temperature divides: a finite loss, and NaN for the temperature.",
        thread="NVIDIA-NeMo/Automodel#3850", losses=("nt_xent",), named=("gradient-not-finite",),
        program=_right_nt_xent, gradients=_nan_for_the_temperature,
    ),
    Mutant(
        id="dclw-weights-in-the-graph", sentence="The weights of the positives are not detached.",
        thread="lightly-ai/lightly#793", losses=("dclw",), named=("weights-not-detached",),
        program=_weights_in_the_graph,
    ),
    Mutant(
        id="hcl-weights-from-no-grad", sentence="The importance weights of the negatives are detached.",
        thread="joshr17/HCL#5", losses=("hcl",), named=("weights-detached",), program=_hard_negatives,
    ),
    Mutant(
        id="siglip-bias-as-a-number", sentence="The bias is not learned.", thread="",
        seen="mlfoundations/open_clip commit 204d53e", losses=("siglip",), named=("bias-detached",),
        program=_bias_as_a_number,
    ),
    Mutant(
        id="cosface-frozen-classes", sentence="The class weights get no gradient.", thread="Tencent/TFace#34",
        losses=("cosface",), named=("centers-detached",), program=_frozen_classes,
        also=("keys-detached",),
    ),
)  # fmt: skip
