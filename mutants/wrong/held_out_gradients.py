"""Held out: one bug each in what gets which gradient, and in range and precision."""

import numpy as np

from mutants.bug import (
    bug,
    cross_entropy,
    log_softmax,
    logsumexp,
    peak,
    slopes,
    softplus,
    stop,
    unit,
)


@bug("siglip", named="keys-detached", thread="facebookresearch/vissl#123")
def siglip_gathered_texts(image, text, *, logit_scale, logit_bias):
    """The texts are gathered without a gradient: one tower never learns."""
    # The texts were gathered by an operation that has no backward pass.
    logits = logit_scale * unit(image) @ unit(stop(text)).T + logit_bias
    sign = 2 * np.eye(len(logits), dtype=logits.dtype) - 1
    return np.sum(softplus(-sign * logits)) / len(logits)


@bug("supcon_out", named="gradient-zero", thread="FrozenBurning/Text2Light#10")
def supcon_out_on_arrays(embeddings, labels, *, temperature):
    """The loss is taken of detached arrays: a right number without any gradient."""
    # hidden_state.cpu().detach().numpy(), and a loss over it.
    z = unit(stop(embeddings))
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = np.where(positives, log_softmax(np.where(others, z @ z.T / stop(temperature), -np.inf)), 0)
    return -np.mean(np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1))


def _and_of_the_queue(grads, inputs):
    return {**grads, **slopes(supcon_out_queue_in_the_graph, inputs, ["queue"])}


@bug(
    "supcon_out",
    named="constants-get-gradient",
    thread="lorenmt/reco#30",
    settings={"labels": ..., "queue": ..., "queue_labels": ...},
    gradients=_and_of_the_queue,
)
def supcon_out_queue_in_the_graph(embeddings, labels, *, temperature, queue, queue_labels):
    """The queue is not detached and gets a gradient."""
    n, z = len(embeddings), unit(np.concatenate([embeddings, queue]))
    others = ~np.eye(n, len(z), dtype=bool)
    positives = others & (labels[:, None] == np.concatenate([labels, queue_labels]))
    log_prob = np.where(positives, log_softmax(np.where(others, z[:n] @ z.T / temperature, -np.inf)), 0)
    return -np.mean(np.sum(log_prob, axis=1) / np.sum(positives.astype(log_prob.dtype), axis=1))


@bug("hard_contrastive", named="negatives-detached", thread="alexandonian/contrastive-feature-loss#3")
def hard_contrastive_constant_negatives(queries, keys, *, temperature, fraction):
    """Keys get their gradient as positives and none as negatives."""
    q, k = unit(queries), unit(keys)
    n, others = len(q), q @ stop(k).T
    count = min(n - 1, max(1, int(np.ceil(round(float(fraction) * (n - 1), 9)))))
    off = np.where(np.eye(n, dtype=bool), -np.inf, others)
    order = np.argsort(-np.real(off), axis=1, kind="stable")[:, :count]
    own = np.sum(q * k, axis=1, keepdims=True)
    return cross_entropy(np.concatenate([own, np.take_along_axis(off, order, axis=1)], axis=1) / temperature, 0)


def _halved(grads, inputs):
    return {name: grad / 2 for name, grad in grads.items()}


@bug("info_nce", named="gradient-constant-factor", thread="modelscope/ms-swift#10081", gradients=_halved)
def info_nce_averaged_over_ranks(queries, keys, *, temperature):
    """The value is that of both ranks together, and the gradient is half of it."""
    # Two ranks; what the other one holds is gathered without a gradient, and ranks are averaged.
    logits = unit(queries) @ unit(keys).T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


@bug("info_nce", named="gradient-missing-rows", thread="huggingface/sentence-transformers#3854")
def info_nce_last_chunk_only(queries, keys, *, temperature):
    """Of all mini-batches the last one alone gets a gradient."""
    # Chunks of two rows, of which only the last one is still in the graph.
    first = (len(queries) - 1) // 2 * 2
    q, k = (np.concatenate([stop(x[:first]), x[first:]]) for x in (queries, keys))
    logits = unit(q) @ unit(k).T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


def _infinity_over_temperature(grads, inputs):
    """d/dT (-inf / T) = inf, times a probability of 0."""
    return {**grads, "temperature": np.nan}


@bug(
    "supcon_in", named="gradient-not-finite", thread="NVIDIA-NeMo/Automodel#3850", gradients=_infinity_over_temperature
)
def supcon_in_masked_before_temperature(embeddings, labels, *, temperature):
    """A mask of -inf is divided by a learned temperature, whose gradient is then NaN."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, -np.inf))
    inside = logsumexp(np.where(positives, log_prob, -np.inf))
    return np.mean(np.log(np.sum(positives.astype(z.dtype), axis=1)) - inside)


@bug("debiased", named="exp-overflows", seen="joshr17/HCL 7b4647f, criterion")
def debiased_bare_exponentials(z1, z2, *, temperature, positive_prior):
    """Exponentials of unshifted logits overflow at small temperatures."""
    # exp(s / T), with no maximum subtracted.
    z = unit(np.concatenate([z1, z2]))
    n, mass = len(z1), np.exp(z @ z.T / temperature)
    rows = np.arange(2 * n)
    positive = mass[rows, (rows + n) % (2 * n)]
    negatives = np.sum(np.where(rows[:, None] % n == rows % n, 0, mass), axis=1)
    count = 2 * n - 2
    estimate = (negatives - positive_prior * count * positive) / (1 - positive_prior)
    floor = count * np.exp(-1 / temperature)
    estimate = np.where(np.real(estimate) > np.real(floor), estimate, floor)
    return -np.mean(np.log(positive / (positive + estimate)))


@bug("supcon_in", named="exp-underflows", thread="emadeldeen24/TS-TCC#25")
def supcon_in_maximum_of_self(embeddings, labels, *, temperature):
    """The anchor itself is the row maximum that is subtracted, and all that is not masked underflows."""
    # The row maximum is taken before the mask: the anchor itself, next to which all others vanish.
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    logits = z @ z.T / temperature
    mass = np.where(others, np.exp(logits - peak(logits)), 0)
    share = np.sum(np.where(positives, mass, 0), axis=1) / np.sum(positives.astype(z.dtype), axis=1)
    return np.mean(np.log(np.sum(mass, axis=1)) - np.log(share))


def _half(x):
    """The numbers rounded to float16, which backpropagation does not see."""
    return x + (np.real(x).astype(np.float16).astype(x.real.dtype) - np.real(x))


@bug("clip", named="half-fallback", thread="OFA-Sys/Chinese-CLIP#272")
def clip_half_precision_logits(image, text, *, logit_scale):
    """Logits are computed in float16, and the loss moves in steps."""
    # Logits of a model in float16, with a scale at its cap.
    logits = _half(logit_scale * _half(unit(image) @ unit(text).T))
    target = np.arange(len(logits))
    return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2
