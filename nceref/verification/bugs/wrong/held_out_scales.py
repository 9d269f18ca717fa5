"""Held out: one bug each in temperature and scale, and in how log-probabilities become one number."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, softplus, unit


def _hardest(s, fraction):
    """The diagonal, and behind it the largest of the other entries of each row."""
    n = len(s)
    count = min(n - 1, max(1, int(np.ceil(round(float(fraction) * (n - 1), 9)))))
    off = np.where(np.eye(n, dtype=bool), -np.inf, s)
    order = np.argsort(-np.real(off), axis=1, kind="stable")[:, :count]
    return np.concatenate([np.diagonal(s)[:, None], np.take_along_axis(off, order, axis=1)], axis=1)


def _hard_without_temperature(queries, keys, *, temperature, fraction):
    """The temperature is an argument, and never used."""
    return cross_entropy(_hardest(unit(queries) @ unit(keys).T, fraction), 0)


def _hard_probability_floor(queries, keys, *, temperature, fraction):
    """Probabilities are clamped from below at 1e-6 before the logarithm."""
    candidates = _hardest(unit(queries) @ unit(keys).T / temperature, fraction)
    p = np.exp(log_softmax(candidates)[:, 0])
    return -np.mean(np.log(np.where(np.real(p) < 1e-6, 1e-6, p)))


def _moco_bare_negatives(queries, keys, queue, *, temperature):
    """Only the positive logit is divided by the temperature."""
    q = unit(queries)
    positive = np.sum(q * unit(keys), axis=1, keepdims=True) / temperature
    return cross_entropy(np.concatenate([positive, q @ unit(queue).T], axis=1), 0)


def _cross_entropy_cooled_late(logits, target, *, temperature):
    """The temperature divides log-probabilities, not logits."""
    log_prob = log_softmax(logits) / temperature
    return -np.mean(log_prob[np.arange(len(logits)), target])


def _supcon_both_sides_divided(embeddings, labels, *, temperature):
    """The features are divided by the temperature, and both factors of the product are features."""
    z = unit(embeddings) / temperature
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = np.where(positives, log_softmax(np.where(others, z @ z.T, -np.inf)), 0)
    return -np.mean(np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1))


def _supcon_in_temperature_as_scale(embeddings, labels, *, temperature):
    """The temperature is taken for a scale, and multiplies."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, temperature * (z @ z.T), -np.inf))
    inside = logsumexp(np.where(positives, log_prob, -np.inf))
    return np.mean(np.log(np.sum(positives.astype(z.dtype), axis=1)) - inside)


def _debiased_global_temperature(z1, z2, *, temperature, positive_prior):
    """The temperature is a global of the module that calls the loss; the argument is not read."""
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


def _nt_xent_learned_log(z1, z2, *, temperature):
    """A temperature that is learned as a logarithm, as CLIP does with its scale."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T * np.exp(temperature))
    return cross_entropy(logits, (np.arange(2 * n) + n) % (2 * n))


def _supcon_in_rescaled(embeddings, labels, *, temperature):
    """The loss is multiplied by the temperature, so that gradients have one size at all temperatures."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, -np.inf))
    inside = logsumexp(np.where(positives, log_prob, -np.inf))
    return np.mean(temperature * (np.log(np.sum(positives.astype(z.dtype), axis=1)) - inside))


def _supcon_average_of_nonzero(embeddings, labels, *, temperature):
    """The reducer averages what is greater than 0, and a row that is right is 0."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = np.where(positives, log_softmax(np.where(others, z @ z.T / temperature, -np.inf)), 0)
    rows = -np.sum(log_prob, axis=1) / np.sum(positives.astype(z.dtype), axis=1)
    return np.mean(rows[np.real(rows) > 0])


def _siglip_log_scale(image, text, *, logit_scale, logit_bias):
    """The parameter is the logarithm of the scale, and multiplies as it is."""
    logits = np.log(logit_scale) * unit(image) @ unit(text).T + logit_bias
    sign = 2 * np.eye(len(logits), dtype=logits.dtype) - 1
    return np.sum(softplus(-sign * logits)) / len(logits)


def _dclw_summed(z1, z2, *, temperature, sigma):
    """Sums over the samples of each view."""
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


def _moco_log_of_mean(queries, keys, queue, *, temperature):
    """The mean is taken before the logarithm."""
    q = unit(queries)
    own = np.sum(q * unit(keys), axis=1, keepdims=True)
    log_prob = log_softmax(np.concatenate([own, q @ unit(queue).T], axis=1) / temperature)[:, 0]
    return np.log(log_prob.real.dtype.type(len(q))) - logsumexp(log_prob)


def _nt_xent_over_replicas(z1, z2, *, temperature):
    """The loss is divided by the number of replicas, of which there are 8."""
    z = unit(np.concatenate([z1, z2]))
    n = len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    return cross_entropy(logits, (np.arange(2 * n) + n) % (2 * n)) / 8


def _supcon_in_counts_the_lonely(embeddings, labels, *, temperature):
    """An anchor without a positive is 0, and still in the mean."""
    z = unit(embeddings)
    others = ~np.eye(len(z), dtype=bool)
    positives = others & (labels[:, None] == labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, -np.inf))
    some = np.any(positives, axis=1)
    inside = logsumexp(np.where(positives, log_prob, -np.inf)[some])
    return np.sum(np.log(np.sum(positives[some].astype(z.dtype), axis=1)) - inside) / len(z)


def _clip_of_probabilities(image, text, *, logit_scale):
    """A softmax, and then a cross-entropy that takes another one."""
    logits = logit_scale * unit(image) @ unit(text).T
    target = np.arange(len(logits))
    by_image, by_text = (np.exp(log_softmax(x)) for x in (logits, logits.T))
    return (cross_entropy(by_image, target) + cross_entropy(by_text, target)) / 2


MUTANTS = (
    Mutant(
        id="hard-contrastive-bare-cosines",
        sentence="The temperature is accepted and not used.",
        thread="HuiSerWang/ContrastMask#4", losses=("hard_contrastive",), named=("temperature-missing",),
        program=_hard_without_temperature, held_out=True,
    ),
    Mutant(
        id="moco-bare-negatives",
        sentence="The positive logit is divided by the temperature, and those of the queue are not.",
        thread="RElbers/info-nce-pytorch#17", losses=("moco",), named=("temperature-missing-on-negatives",),
        program=_moco_bare_negatives, held_out=True,
    ),
    Mutant(
        id="cross-entropy-cooled-late",
        sentence="Log-probabilities are divided by the temperature, not logits.",
        thread="drboog/Lafite#25", losses=("cross_entropy",), named=("temperature-after-softmax",),
        program=_cross_entropy_cooled_late, held_out=True,
    ),
    Mutant(
        id="supcon-out-features-divided",
        sentence="Features are divided by the temperature, and both factors of the product are features.",
        thread="caiqi/Joint-Contrastive-Learning#2", losses=("supcon_out",), named=("temperature-squared",),
        program=_supcon_both_sides_divided, held_out=True,
    ),
    Mutant(
        id="supcon-in-temperature-as-scale",
        sentence="The temperature is taken for a scale and multiplies.",
        thread="lightonai/pylate#115", losses=("supcon_in",), named=("temperature-multiplied",),
        program=_supcon_in_temperature_as_scale, held_out=True,
    ),
    Mutant(
        id="debiased-temperature-of-the-module",
        sentence="A global of the module is used, whatever temperature is passed.",
        thread="", seen="joshr17/HCL, image/main.py", losses=("debiased",), named=("temperature-ignored",),
        program=_debiased_global_temperature, held_out=True,
    ),
    Mutant(
        id="nt-xent-temperature-of-a-logarithm",
        sentence="The exponential of the temperature multiplies, as if it were a learned log-scale.",
        thread="mlfoundations/open_clip#104", losses=("nt_xent",), named=("temperature-exponentiated",),
        program=_nt_xent_learned_log, held_out=True,
    ),
    Mutant(
        id="supcon-in-times-temperature",
        sentence="The loss is multiplied by the temperature unless one asks for it not to be.",
        thread="", seen="google-research supcon/losses.py, scale_by_temperature", losses=("supcon_in",),
        named=("outer-factor-temperature",), program=_supcon_in_rescaled, held_out=True,
    ),
    Mutant(
        id="supcon-out-average-of-nonzero",
        sentence="Rows whose loss is 0 are left out of the mean.",
        thread="", seen="pytorch-metric-learning 2.9.0, AvgNonZeroReducer", losses=("supcon_out",),
        named=("mean-over-nonzero-rows",), program=_supcon_average_of_nonzero, held_out=True,
    ),
    Mutant(
        id="siglip-logarithm-as-scale",
        sentence="The logarithm of the scale multiplies without its exponential.",
        thread="BAAI-DCAI/M3D#52", losses=("siglip",), named=("scale-without-exponential",),
        program=_siglip_log_scale, held_out=True,
    ),
    Mutant(
        id="dclw-sums-of-views",
        sentence="Sums over the samples of both views are returned where means were meant.",
        thread="raminnakhli/Decoupled-Contrastive-Learning#13", losses=("dclw",), named=("sum-instead-of-mean",),
        program=_dclw_summed, held_out=True,
    ),
    Mutant(
        id="moco-log-of-mean",
        sentence="The mean over the batch is taken before the logarithm.",
        thread="pietz/simclr#1", losses=("moco",), named=("log-of-mean",), program=_moco_log_of_mean, held_out=True,
    ),
    Mutant(
        id="nt-xent-divided-by-replicas",
        sentence="The loss is divided by the number of replicas, 8.",
        thread="google-research/simclr#202", losses=("nt_xent",), named=("outer-factor-constant",),
        program=_nt_xent_over_replicas, held_out=True,
    ),
    Mutant(
        id="supcon-in-lonely-in-the-mean",
        sentence="An anchor without a positive has loss 0 and dilutes the mean.",
        thread="HobbitLong/SupContrast#142", losses=("supcon_in",), named=("lonely-anchors-counted",),
        program=_supcon_in_counts_the_lonely, held_out=True, settings={"no_positive": "skip"},
    ),
    Mutant(
        id="hard-contrastive-probability-floor",
        sentence="Probabilities are clamped at 1e-6: a row loss cannot exceed 13.8, and has no gradient there.",
        thread="fastino-ai/GLiNER2#155", losses=("hard_contrastive",), named=("value-saturates",),
        program=_hard_probability_floor, held_out=True,
    ),
    Mutant(
        id="clip-cross-entropy-of-probabilities",
        sentence="A cross-entropy that takes its own softmax gets probabilities.",
        thread="nii-yamagishilab/Capsule-Forensics-v2#3", losses=("clip",), named=("softmax-applied-twice",),
        program=_clip_of_probabilities, held_out=True,
    ),
)  # fmt: skip
