"""Losses of pairs one by one: SigLIP, noise-contrastive estimation and the simple loss."""

import math

import numpy as np

from mutants.bug import bug, logsumexp, softplus, stop, unit


def _labeled(logits):
    """Logits with the sign of their pair: the diagonal belongs together."""
    return np.where(np.eye(len(logits), dtype=bool), logits, -logits)


def _shares(queries, keys):
    """Cosines of the pairs (N,), and of the others (N, N - 1)."""
    s = unit(queries) @ unit(keys).T
    n = len(s)
    return np.diagonal(s), s[~np.eye(n, dtype=bool)].reshape(n, n - 1)


@bug("siglip", named="measured-formula", thread="google-research/big_vision#115")
def siglip_mean_over_pairs_and_over_n(image, text, *, logit_scale, logit_bias):
    """The mean over all pairs is divided by N once more, where the paper divides the sum."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.mean(softplus(-_labeled(logits))) / len(logits)


@bug("siglip", named="measured-formula", thread="mlfoundations/open_clip#476")
def siglip_minus_before_the_product(image, text, *, logit_scale, logit_bias):
    """The pseudo-code of the first version has a minus in front of the product."""
    logits = -logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.sum(softplus(-_labeled(logits))) / len(logits)


@bug("siglip", named="logarithm-missing+divided-by-n-twice", thread="RUCAIBox/RecBole#1505")
def siglip_mean_of_bare_sigmoids(image, text, *, logit_scale, logit_bias):
    """Minus the mean of the sigmoids of all pairs, without a logarithm."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return -np.mean(np.exp(-softplus(-_labeled(logits))))


@bug(
    "siglip",
    named="bias-missing+divided-by-n-twice",
    seen="arunabh1904/arunabh1904.github.io _posts/2023-10-01-sigmoid-loss-for-language-image-pre-training-siglip.md",
)
def siglip_in_one_line(image, text, *, logit_scale, logit_bias):
    """Binary cross-entropy of scaled cosines against an identity matrix: no bias, and the mean of all pairs."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    labels = np.eye(len(logits), dtype=image.real.dtype)
    return np.mean(softplus(logits) - labels * logits)


@bug("siglip", named="measured-formula", thread="mlfoundations/open_clip#742")
def siglip_exchange_of_empty_buffers(image, text, *, logit_scale, logit_bias):
    """Texts of the other rank arrive as zeros, so that pairs across ranks read the bias only."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    rank = np.arange(len(logits)) >= (len(logits) + 1) // 2
    logits = np.where(rank[:, None] == rank, logits, logit_bias)
    return np.sum(softplus(-_labeled(logits))) / len(logits)


@bug("siglip", named="divided-by-n-twice", thread="google-research/big_vision#179")
def siglip_divided_by_the_number_of_pairs(image, text, *, logit_scale, logit_bias):
    """The sum over pairs is divided by their number, so that the value does not grow with the batch."""
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    return np.sum(softplus(-_labeled(logits))) / logits.size


def _odds(logits, log_noise, ratio):
    return logits - log_noise - np.log(ratio)


@bug("nce", named="measured-formula", thread="Stonesjtu/Pytorch-NCE#18")
def nce_log_probability_as_logit(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The logarithm of the posterior is passed on as a logit, and a sigmoid is applied to it once more."""

    def posterior(logits, log_noise):
        return -softplus(-_odds(logits, log_noise, noise_ratio))

    data, noise = posterior(data_logits, data_log_noise), posterior(noise_logits, noise_log_noise)
    return np.mean(softplus(-data)) + noise_ratio * np.mean(softplus(noise))


@bug("nce", named="noise-ratio-missing", thread="Stonesjtu/Pytorch-NCE#12")
def nce_log_odds_of_the_tutorial(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The log-odds subtract the noise density and not the logarithm of the ratio, as a tutorial has it."""
    data, noise = data_logits - data_log_noise, noise_logits - noise_log_noise
    return np.mean(softplus(-data)) + noise_ratio * np.mean(softplus(noise))


@bug("nce", named="prior-missing+noise-ratio-missing", thread="meereeum/lda2vec-tf#5")
def nce_as_negative_sampling(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """Negative sampling in its place: neither the noise density nor the ratio is subtracted."""
    return np.mean(softplus(-data_logits)) + noise_ratio * np.mean(softplus(noise_logits))


@bug("nce", named="prior-subtracted", thread="tensorflow/recommenders#219")
def nce_log_sampling_probability_added(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The logarithm of the sampling probability is added to the logits, where the correction subtracts it."""
    data, noise = _odds(data_logits, -data_log_noise, noise_ratio), _odds(noise_logits, -noise_log_noise, noise_ratio)
    return np.mean(softplus(-data)) + noise_ratio * np.mean(softplus(noise))


@bug("nce", named="measured-formula", thread="HobbitLong/CMC#23")
def nce_normalizer_of_one_batch(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The normalizer is the mean exponential of the noise scores of one batch, and all scores are divided by it."""
    log_z = stop(logsumexp(noise_logits)) - math.log(len(noise_logits))
    data = _odds(data_logits - log_z, data_log_noise, noise_ratio)
    noise = _odds(noise_logits - log_z, noise_log_noise, noise_ratio)
    return np.mean(softplus(-data)) + noise_ratio * np.mean(softplus(noise))


@bug("nce", named="measured-formula", seen="Stonesjtu/Pytorch-NCE README.md, --norm-term 9")
def nce_norm_term_of_nine(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """A constant of 9 for the log of the normalizer is subtracted from every score."""
    data = _odds(data_logits - 9, data_log_noise, noise_ratio)
    noise = _odds(noise_logits - 9, noise_log_noise, noise_ratio)
    return np.mean(softplus(-data)) + noise_ratio * np.mean(softplus(noise))


@bug("nce", named="measured-formula", thread="deepjavalibrary/djl#1316")
def nce_noise_without_its_logarithm(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """Data rows are -log h, and noise rows -(1 - h): the second logarithm is forgotten."""
    data = _odds(data_logits, data_log_noise, noise_ratio)
    noise = _odds(noise_logits, noise_log_noise, noise_ratio)
    return np.mean(softplus(-data)) - noise_ratio * np.mean(np.exp(-softplus(noise)))


@bug("nce", named="epsilon-in-log", seen="zhirongw/lemniscate.pytorch lib/NCECriterion.py", dtypes=("float64",))
def nce_eps_beside_the_noise(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """Both posteriors have 1e-7 in their denominator."""

    def log_posteriors(logits, log_noise):
        noise = log_noise + np.log(noise_ratio)
        parts = np.broadcast_arrays(logits, noise, np.full_like(logits, math.log(1e-7)))
        total = logsumexp(np.stack(parts, axis=1))
        return logits - total, noise - total

    data, _ = log_posteriors(data_logits, data_log_noise)
    _, noise = log_posteriors(noise_logits, noise_log_noise)
    return -np.mean(data) - noise_ratio * np.mean(noise)


@bug("simple", named="offset-constant", seen="tsutsui-439f340f/Contrastive-Learning-for-SS Loss.py")
def simple_one_minus_the_positive(queries, keys):
    """The pull is 1 minus the cosine of the pair."""
    positive, negatives = _shares(queries, keys)
    return np.mean(1 - positive) + (np.mean(negatives) if negatives.size else 0)


@bug("simple", named="measured-formula", seen="reczoo/RecBox deem/pytorch/losses/cosine_contrastive_loss.py")
def simple_negatives_above_zero_only(queries, keys):
    """Negatives push where their cosine is above 0 only, and the pull is 1 minus the cosine."""
    positive, negatives = _shares(queries, keys)
    pushed = np.where(np.real(negatives) > 0, negatives, 0)
    return np.mean(1 - positive) + (np.mean(pushed) if negatives.size else 0)


@bug("simple", named="negatives-ignored", thread="mysbupt/CrossCBR#1")
def simple_negative_cross_view_cosine(queries, keys):
    """An ablation replaces the loss with the negative cosine of the pairs."""
    return -np.mean(np.sum(unit(queries) * unit(keys), axis=1))


@bug("siglip", named="bias-missing", thread="mlfoundations/open_clip#1076")
def siglip_bias_missing_in_the_call(image, text, *, logit_scale, logit_bias):
    """The bias is a parameter of the model and is missing in the call that makes the logits."""
    logits = logit_scale * (unit(image) @ unit(text).T)
    return np.sum(softplus(-_labeled(logits))) / len(logits)


@bug("siglip", named="rows-not-normalized", thread="google-research/big_vision#115")
def siglip_logits_of_raw_features(image, text, *, logit_scale, logit_bias):
    """Logits are made of features that are not normalized."""
    logits = logit_scale * (image @ text.T) + logit_bias
    return np.sum(softplus(-_labeled(logits))) / len(logits)


@bug("simple", named="sign-flipped", thread="Kadenze/siamese_net#7")
def simple_labels_read_the_other_way(queries, keys):
    """Labels are read the other way around: pairs that belong together are pushed and all others pulled."""
    positive, negatives = _shares(queries, keys)
    return np.mean(positive) - (np.mean(negatives) if negatives.size else 0)
