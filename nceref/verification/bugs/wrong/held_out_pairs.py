"""Held out: two bugs at once, of kinds that are seen together."""

import numpy as np

from nceref.verification.bugs.bug import Mutant, cross_entropy, log_softmax, logsumexp, peak, softplus, stop, unit


def _views(z1, z2):
    """Unit rows of both views one after the other, and the row of each one's partner."""
    n = len(z1)
    return unit(np.concatenate([z1, z2])), np.roll(np.arange(2 * n), n)


def _others(labels):
    """Who is not oneself, and who of these has one's label."""
    others = ~np.eye(len(labels), dtype=bool)
    return others, others & (labels[:, None] == labels)


def _nt_xent_kept_and_summed(z1, z2, *, temperature):
    z, partner = _views(z1, z2)
    logits = z @ z.T / temperature
    return np.sum(logsumexp(logits) - logits[np.arange(len(z)), partner])


def _nt_xent_turns_and_e(z1, z2, *, temperature):
    z, _ = _views(z1, z2)
    rows = np.arange(len(z))
    logits = z @ z.T / temperature
    top = peak(logits)
    mass = np.sum(np.exp(logits - top), axis=1) - np.exp(1 - top[:, 0])
    return np.mean(top[:, 0] + np.log(mass) - logits[rows, rows ^ 1])


def _nt_xent_as_moco_v3(z1, z2, *, temperature):
    logits = unit(z1) @ unit(z2).T / temperature
    target = np.arange(len(logits))
    return temperature * (cross_entropy(logits, target) + cross_entropy(logits.T, target))


def _supcon_in_as_solo(embeddings, labels, *, temperature):
    z = unit(embeddings)
    others, positives = _others(labels)
    logits = z @ z.T / temperature
    inside = logsumexp(np.where(positives, logits, -np.inf))
    return temperature / 0.07 * np.mean(logsumexp(np.where(others, logits, -np.inf)) - inside)


def _supcon_pair_by_pair(embeddings, labels, *, temperature):
    z = unit(embeddings)
    logits = z @ z.T / temperature
    anchor, positive = np.nonzero(_others(labels)[1])
    own = logits[anchor, positive][:, None]
    negatives = np.where(labels[anchor][:, None] == labels, -np.inf, logits[anchor])
    return cross_entropy(np.concatenate([own, negatives], axis=1), 0)


def _supcon_zero_and_added(embeddings, labels, *, temperature):
    z = unit(embeddings)
    others, positives = _others(labels)
    log_prob = log_softmax(np.where(others, z @ z.T / temperature, 0))
    return -np.sum(np.where(positives, log_prob, 0)) / len(z)


def _clip_one_way_log(image, text, *, logit_scale):
    logits = np.log(logit_scale) * unit(image) @ unit(text).T
    return cross_entropy(logits, np.arange(len(logits)))


def _clip_one_candidate(image, text, *, logit_scale):
    logits = logit_scale * unit(image) @ unit(text).T
    own = np.diagonal(logits)[:, None]
    return (cross_entropy(logits, np.arange(len(logits))) + cross_entropy(own, 0)) / 2


def _dcl_one_way_two_logs(z1, z2, *, temperature):
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    own, other = (logsumexp(np.where(off, a @ x.T / temperature, -np.inf)) for x in (a, b))
    return np.mean(own + other - np.sum(a * b, axis=1) / temperature)


def _dclw_one_way_live_weights(z1, z2, *, temperature, sigma):
    a, b = unit(z1), unit(z2)
    off = ~np.eye(len(a), dtype=bool)
    positive = np.sum(a * b, axis=1)
    mass = np.exp(positive / sigma)
    weight = 2 - mass / np.mean(mass)
    negatives = np.concatenate([np.where(off, a @ x.T / temperature, -np.inf) for x in (a, b)], axis=1)
    return np.mean(logsumexp(negatives) - weight * positive / temperature)


def _siglip_mean_without_bias(image, text, *, logit_scale, logit_bias):
    logits = logit_scale * unit(image) @ unit(text).T
    sign = 2 * np.eye(len(logits), dtype=logits.dtype) - 1
    return np.mean(softplus(-sign * logits))


def _info_nce_raw_and_cold(queries, keys, *, temperature):
    logits = temperature * (queries @ keys.T)
    return cross_entropy(logits, np.arange(len(logits)))


def _info_nce_momentum_target(queries, keys, *, temperature):
    logits = unit(queries) @ unit(stop(keys)).T / temperature
    return 2 * temperature * cross_entropy(logits, np.arange(len(logits)))


def _moco_raw_queue_cold(queries, keys, queue, *, temperature):
    q = unit(queries)
    own = np.sum(q * unit(keys), axis=1, keepdims=True)
    return cross_entropy(temperature * np.concatenate([own, q @ queue.T], axis=1), 0)


def _arcface_degrees_summed(embeddings, class_weights, target, *, margin, scale):
    cosine = unit(embeddings) @ unit(class_weights).T
    margin = margin * cosine.real.dtype.type(np.pi / 180)
    rest = 1 - cosine * cosine
    harder = cosine * np.cos(margin) - np.sqrt(np.where(np.real(rest) > 0, rest, 0)) * np.sin(margin)
    own = np.arange(cosine.shape[1]) == target[:, None]
    return cross_entropy(scale * np.where(own, harder, cosine), target) * len(target)


def _cosface_late_margin_frozen(embeddings, class_weights, target, *, margin, scale):
    logits = scale * unit(embeddings) @ unit(stop(class_weights)).T
    own = np.arange(logits.shape[1]) == target[:, None]
    return cross_entropy(np.where(own, logits - margin, logits), target)


def _cross_entropy_bits_summed(logits, target, *, temperature):
    log_prob = log_softmax(logits / temperature)[np.arange(len(target)), target]
    return -np.sum(log_prob) / logits.real.dtype.type(np.log(2))


def _balanced_counts_summed(logits, target, class_counts, *, temperature):
    return cross_entropy(logits / temperature + class_counts, target) * len(target)


def _uniformity_raw_with_diagonal(x, *, t):
    d = x[:, None] - x
    potential = -t * np.sum(d * d, axis=2)
    return logsumexp(potential.reshape(-1)) - np.log(x.real.dtype.type(potential.size))


def _hcl_frozen_weights_no_correction(z1, z2, *, temperature, positive_prior, concentration):
    z, partner = _views(z1, z2)
    rows, n = np.arange(len(z)), len(z1)
    logits = z @ z.T / temperature
    negatives = np.where(rows[:, None] % n == rows % n, -np.inf, logits)
    weight = log_softmax(concentration * stop(negatives)) + np.log(z1.real.dtype.type(2 * n - 2))
    return np.mean(softplus(logsumexp(weight + negatives) - logits[rows, partner]))


def _nce_gain_without_density(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    on_data, on_noise = (x - np.log(noise_ratio) for x in (data_logits, noise_logits))
    return -np.mean(softplus(-on_data)) - noise_ratio * np.mean(softplus(on_noise))


MUTANTS = (
    Mutant(
        id="nt-xent-kept-and-summed",
        sentence="The anchor stays in its own denominator, and rows are summed.",
        thread="vturrisi/solo-learn#206", losses=("nt_xent",), named=("self-contrast-kept", "sum-instead-of-mean"),
        program=_nt_xent_kept_and_summed, held_out=True,
    ),
    Mutant(
        id="nt-xent-turns-and-e",
        sentence="Positives are those of views in turns, and e is subtracted for the self-contrast.",
        thread="Lightning-Universe/lightning-bolts#609", losses=("nt_xent",),
        named=("views-interleaved", "self-contrast-subtracted-as-e"), program=_nt_xent_turns_and_e,
        held_out=True,
    ),
    Mutant(
        id="nt-xent-as-moco-v3",
        sentence="Candidates of the other view only, and the loss times twice the temperature.",
        thread="facebookresearch/moco-v3#31", losses=("nt_xent",),
        named=("cross-view-only", "outer-factor-2-temperature"), program=_nt_xent_as_moco_v3,
        held_out=True,
    ),
    Mutant(
        id="supcon-in-added-over-base",
        sentence="Positives are added up inside the logarithm, and the loss is multiplied by T / 0.07.",
        thread="HobbitLong/SupContrast#73", losses=("supcon_in",),
        named=("positives-summed-inside-log", "outer-factor-temperature-over-base"), program=_supcon_in_as_solo,
        held_out=True,
    ),
    Mutant(
        id="supcon-out-pair-by-pair",
        sentence="Each pair is a softmax of its own, and all pairs are averaged.",
        thread="KevinMusgrave/pytorch-metric-learning#179", losses=("supcon_out",),
        named=("other-positives-dropped", "mean-over-pairs"), program=_supcon_pair_by_pair,
        held_out=True,
    ),
    Mutant(
        id="supcon-out-zero-and-added",
        sentence="Masked logits are 0, and log-probabilities are added up over the positives.",
        thread="google-research/simclr#20", losses=("supcon_out",),
        named=("masked-entries-count-one", "positives-not-averaged"), program=_supcon_zero_and_added,
        held_out=True,
    ),
    Mutant(
        id="clip-one-way-log",
        sentence="Images look for texts only, and the log-scale multiplies without exp.",
        thread="BAAI-DCAI/M3D#52", losses=("clip",), named=("one-direction-only", "scale-without-exponential"),
        program=_clip_one_way_log, held_out=True,
    ),
    Mutant(
        id="clip-one-candidate",
        sentence="Texts have one candidate each, and their loss of 0 halves that of the images.",
        thread="NVIDIA-NeMo/Automodel#3870", losses=("clip",), named=("one-direction-only", "outer-factor-half"),
        program=_clip_one_candidate, held_out=True,
    ),
    Mutant(
        id="dcl-one-way-two-logs",
        sentence="Anchors of the first view, and a log-sum-exp for each view.",
        thread="lightly-ai/lightly#1826", losses=("dcl",), named=("first-view-only", "denominators-added-as-logs"),
        program=_dcl_one_way_two_logs, held_out=True,
    ),
    Mutant(
        id="dclw-one-way-live-weights",
        sentence="Anchors of the first view, with weights that are not detached.",
        thread="lightly-ai/lightly#793", losses=("dclw",), named=("first-view-only", "weights-not-detached"),
        program=_dclw_one_way_live_weights, held_out=True,
    ),
    Mutant(
        id="siglip-mean-without-bias",
        sentence="The bias is not passed on, and the mean runs over all pairs.",
        thread="google-research/big_vision#115", losses=("siglip",), named=("bias-missing", "divided-by-n-twice"),
        program=_siglip_mean_without_bias, held_out=True,
    ),
    Mutant(
        id="info-nce-raw-and-multiplied",
        sentence="Rows are not normalized, and the temperature multiplies.",
        thread="UKPLab/sentence-transformers#3054", losses=("info_nce",),
        named=("rows-not-normalized", "temperature-multiplied"), program=_info_nce_raw_and_cold,
        held_out=True,
    ),
    Mutant(
        id="info-nce-momentum-target",
        sentence="Keys are constants, and the loss is multiplied by twice the temperature.",
        thread="open-mmlab/mmselfsup#644", losses=("info_nce",), named=("keys-detached", "outer-factor-2-temperature"),
        program=_info_nce_momentum_target, held_out=True,
    ),
    Mutant(
        id="moco-raw-queue-multiplied",
        sentence="The queue is not normalized, and the temperature multiplies.",
        thread="dvlab-research/Parametric-Contrastive-Learning#20", losses=("moco",),
        named=("queue-not-normalized", "temperature-multiplied"), program=_moco_raw_queue_cold,
        held_out=True,
    ),
    Mutant(
        id="arcface-degrees-summed",
        sentence="The margin is read as degrees, and rows are summed.",
        thread="tensorflow/recommenders#561", losses=("arcface",), named=("margin-in-degrees", "sum-instead-of-mean"),
        program=_arcface_degrees_summed, held_out=True,
    ),
    Mutant(
        id="cosface-late-margin-frozen",
        sentence="The margin comes after the scale, and class weights are detached.",
        thread="", seen="re-implementations of CosFace", losses=("cosface",),
        named=("margin-not-scaled", "centers-detached"), program=_cosface_late_margin_frozen,
        held_out=True,
    ),
    Mutant(
        id="cross-entropy-bits-summed",
        sentence="Bits in place of nats, summed over the batch.",
        thread="tensorflow/recommenders#561", losses=("cross_entropy",), named=("log-base-2", "sum-instead-of-mean"),
        program=_cross_entropy_bits_summed, held_out=True,
    ),
    Mutant(
        id="balanced-softmax-counts-summed",
        sentence="Counts are added without their logarithm, and rows are summed.",
        thread="jiawei-ren/BalancedMetaSoftmax-Classification#13", losses=("balanced_softmax",),
        named=("prior-without-log", "sum-instead-of-mean"), program=_balanced_counts_summed,
        held_out=True,
    ),
    Mutant(
        id="uniformity-raw-with-diagonal",
        sentence="Points are off the sphere, and each is paired with itself.",
        thread="princeton-nlp/SimCSE#122", losses=("uniformity",), named=("rows-not-normalized", "diagonal-included"),
        program=_uniformity_raw_with_diagonal, held_out=True,
    ),
    Mutant(
        id="hcl-constant-weights-no-correction",
        sentence="Importance weights are constants, and false negatives are not corrected for.",
        thread="joshr17/HCL#11", losses=("hcl",), named=("weights-detached", "correction-missing"),
        program=_hcl_frozen_weights_no_correction, held_out=True,
    ),
    Mutant(
        id="nce-gain-without-density",
        sentence="The density of the noise is left out, and the sign is that of a likelihood.",
        thread="", seen="CEBRA 0.6.1, criterions.NCE", losses=("nce",), named=("prior-missing", "sign-flipped"),
        program=_nce_gain_without_density, held_out=True,
    ),
)  # fmt: skip
