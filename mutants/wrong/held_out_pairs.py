"""Held out: two bugs at once, of kinds that are seen together."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, peak, softplus, stop, unit


def _views(z1, z2):
    """Unit rows of both views one after the other, and the row of each one's partner."""
    n = len(z1)
    return unit(np.concatenate([z1, z2])), np.roll(np.arange(2 * n), n)


def _others(labels):
    """Masks of the samples other than the anchor, and of those among them with its label."""
    others = ~np.eye(len(labels), dtype=bool)
    return others, others & (labels[:, None] == labels)


@bug("nt_xent", named="self-contrast-kept+sum-instead-of-mean", thread="vturrisi/solo-learn#206")
def nt_xent_kept_and_summed(z1, z2, *, temperature):
    """The anchor stays in its own denominator, and rows are summed."""
    z, partner = _views(z1, z2)
    logits = z @ z.T / temperature
    return np.sum(logsumexp(logits) - logits[np.arange(len(z)), partner])


@bug(
    "nt_xent", named="views-interleaved+self-contrast-subtracted-as-e", thread="Lightning-Universe/lightning-bolts#609"
)
def nt_xent_turns_and_e(z1, z2, *, temperature):
    """Positives are those of views in turns, and e is subtracted for the self-contrast."""
    z, _ = _views(z1, z2)
    rows = np.arange(len(z))
    logits = z @ z.T / temperature
    top = peak(logits)
    mass = np.sum(np.exp(logits - top), axis=1) - np.exp(1 - top[:, 0])
    return np.mean(top[:, 0] + np.log(mass) - logits[rows, rows ^ 1])


@bug("nt_xent", named="cross-view-only+outer-factor-2-temperature", thread="facebookresearch/moco-v3#31")
def nt_xent_as_moco_v3(z1, z2, *, temperature):
    """Candidates of the other view only, and the loss times twice the temperature."""
    logits = unit(z1) @ unit(z2).T / temperature
    target = np.arange(len(logits))
    return temperature * (cross_entropy(logits, target) + cross_entropy(logits.T, target))


@bug(
    "supcon_in",
    named="positives-summed-inside-log+outer-factor-temperature-over-base",
    thread="HobbitLong/SupContrast#73",
)
def supcon_in_added_over_base(embeddings, labels, *, temperature):
    """Positives are added up inside the logarithm, and the loss is multiplied by T / 0.07."""
    z = unit(embeddings)
    others, positives = _others(labels)
    logits = z @ z.T / temperature
    inside = logsumexp(np.where(positives, logits, -np.inf))
    return temperature / 0.07 * np.mean(logsumexp(np.where(others, logits, -np.inf)) - inside)


@bug("supcon_out", named="other-positives-dropped+mean-over-pairs", thread="KevinMusgrave/pytorch-metric-learning#179")
def supcon_out_pair_by_pair(embeddings, labels, *, temperature):
    """Each pair is a softmax of its own, and all pairs are averaged."""
    z = unit(embeddings)
    logits = z @ z.T / temperature
    anchor, positive = np.nonzero(_others(labels)[1])
    own = logits[anchor, positive][:, None]
    negatives = np.where(labels[anchor][:, None] == labels, -np.inf, logits[anchor])
    return cross_entropy(np.concatenate([own, negatives], axis=1), 0)


@bug("supcon_out", named="masked-entries-count-one+positives-not-averaged", thread="google-research/simclr#20")
def supcon_out_zero_and_added(embeddings, labels, *, temperature):
    """Masked logits are 0, and log-probabilities are added up over the positives."""
    z = unit(embeddings)
    others, positives = _others(labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, 0))
    return -np.sum(np.where(positives, log_prob, 0)) / len(z)


@bug("clip", named="one-direction-only+scale-without-exponential", thread="BAAI-DCAI/M3D#52")
def clip_one_way_log(image, text, *, logit_scale):
    """Images look for texts only, and the log-scale multiplies without exp."""
    logits = np.log(logit_scale) * unit(image) @ unit(text).T
    return cross_entropy(logits, np.arange(len(logits)))


@bug("clip", named="one-direction-only+outer-factor-half", thread="NVIDIA-NeMo/Automodel#3870")
def clip_one_candidate(image, text, *, logit_scale):
    """Texts have one candidate each, and their loss of 0 halves that of the images."""
    logits = logit_scale * unit(image) @ unit(text).T
    own = np.diagonal(logits)[:, None]
    return (cross_entropy(logits, np.arange(len(logits))) + cross_entropy(own, 0)) / 2


@bug("dcl", named="first-view-only+denominators-added-as-logs", thread="lightly-ai/lightly#1826")
def dcl_one_way_two_logs(z1, z2, *, temperature):
    """Anchors of the first view, and a log-sum-exp for each view."""
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    own, other = (logsumexp(np.where(off, a @ x.T / temperature, -np.inf)) for x in (a, b))
    return np.mean(own + other - np.sum(a * b, axis=1) / temperature)


@bug("dclw", named="first-view-only+weights-not-detached", thread="lightly-ai/lightly#793")
def dclw_one_way_live_weights(z1, z2, *, temperature, sigma):
    """Anchors of the first view, with weights that are not detached."""
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    positive = np.sum(a * b, axis=1)
    mass = np.exp(positive / sigma)
    weight = 2 - mass / np.mean(mass)
    negatives = np.concatenate([np.where(off, a @ x.T / temperature, -np.inf) for x in (a, b)], axis=1)
    return np.mean(logsumexp(negatives) - weight * positive / temperature)


@bug("siglip", named="bias-missing+divided-by-n-twice", thread="google-research/big_vision#115")
def siglip_mean_without_bias(image, text, *, logit_scale, logit_bias):
    """The bias is not passed on, and the mean runs over all pairs."""
    logits = logit_scale * unit(image) @ unit(text).T
    sign = 2 * np.eye(len(logits), dtype=logits.dtype) - 1
    return np.mean(softplus(-sign * logits))


@bug("info_nce", named="rows-not-normalized+temperature-multiplied", thread="UKPLab/sentence-transformers#3054")
def info_nce_raw_and_multiplied(queries, keys, *, temperature):
    """Rows are not normalized, and the temperature multiplies."""
    logits = temperature * (queries @ keys.T)
    return cross_entropy(logits, np.arange(len(logits)))


@bug("info_nce", named="keys-detached+outer-factor-2-temperature", thread="open-mmlab/mmselfsup#644")
def info_nce_momentum_target(queries, keys, *, temperature):
    """Keys are constants, and the loss is multiplied by twice the temperature."""
    logits = unit(queries) @ unit(stop(keys)).T / temperature
    return 2 * temperature * cross_entropy(logits, np.arange(len(logits)))


@bug(
    "moco",
    named="queue-not-normalized+temperature-multiplied",
    thread="dvlab-research/Parametric-Contrastive-Learning#20",
)
def moco_raw_queue_multiplied(queries, keys, queue, *, temperature):
    """The queue is not normalized, and the temperature multiplies."""
    q = unit(queries)
    own = np.sum(q * unit(keys), axis=1, keepdims=True)
    return cross_entropy(temperature * np.concatenate([own, q @ queue.T], axis=1), 0)


@bug("arcface", named="margin-in-degrees+sum-instead-of-mean", thread="tensorflow/recommenders#561")
def arcface_degrees_summed(embeddings, class_weights, target, *, margin, scale):
    """The margin is read as degrees, and rows are summed."""
    cosine = unit(embeddings) @ unit(class_weights).T
    margin = margin * cosine.real.dtype.type(np.pi / 180)
    rest = 1 - cosine * cosine
    harder = cosine * np.cos(margin) - np.sqrt(np.where(np.real(rest) > 0, rest, 0)) * np.sin(margin)
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(scale * np.where(own, harder, cosine), target) * len(target)


@bug("cosface", named="margin-not-scaled+centers-detached", seen="re-implementations of CosFace")
def cosface_late_margin_frozen(embeddings, class_weights, target, *, margin, scale):
    """The margin comes after the scale, and class weights are detached."""
    logits = scale * unit(embeddings) @ unit(stop(class_weights)).T
    own = np.arange(logits.shape[1]) == target[:, None]
    return cross_entropy(np.where(own, logits - margin, logits), target)


@bug("cross_entropy", named="log-base-2+sum-instead-of-mean", thread="tensorflow/recommenders#561")
def cross_entropy_bits_summed(logits, target, *, temperature):
    """Bits in place of nats, summed over the batch."""
    log_prob = log_softmax(logits / temperature)[np.arange(len(target)), target]
    return -np.sum(log_prob) / logits.real.dtype.type(np.log(2))


@bug(
    "balanced_softmax",
    named="prior-without-log+sum-instead-of-mean",
    thread="jiawei-ren/BalancedMetaSoftmax-Classification#13",
)
def balanced_softmax_counts_summed(logits, target, class_counts, *, temperature):
    """Counts are added without their logarithm, and rows are summed."""
    return cross_entropy(logits / temperature + class_counts, target) * len(target)


@bug("uniformity", named="rows-not-normalized+diagonal-included", thread="princeton-nlp/SimCSE#122")
def uniformity_raw_with_diagonal(x, *, t):
    """Points are off the sphere, and each is paired with itself."""
    d = x[:, None] - x
    potential = -t * np.sum(d * d, axis=2)
    return logsumexp(potential.reshape(-1)) - np.log(x.real.dtype.type(potential.size))


@bug("hcl", named="weights-detached+correction-missing", thread="joshr17/HCL#11")
def hcl_constant_weights_no_correction(z1, z2, *, temperature, positive_prior, concentration):
    """Importance weights are constants, and false negatives are not corrected for."""
    z, partner = _views(z1, z2)
    rows, n = np.arange(len(z)), len(z1)
    logits = z @ z.T / temperature
    negatives = np.where(rows[:, None] % n == rows % n, -np.inf, logits)
    weight = log_softmax(concentration * stop(negatives)) + np.log(z1.real.dtype.type(2 * n - 2))
    return np.mean(softplus(logsumexp(weight + negatives) - logits[rows, partner]))


@bug("nce", named="prior-missing+sign-flipped", seen="CEBRA 0.6.1, criterions.NCE")
def nce_gain_without_density(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The density of the noise is left out, and the sign is that of a likelihood."""
    on_data, on_noise = (x - np.log(noise_ratio) for x in (data_logits, noise_logits))
    return -np.mean(softplus(-on_data)) - noise_ratio * np.mean(softplus(on_noise))
