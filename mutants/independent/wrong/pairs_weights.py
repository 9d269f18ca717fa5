"""Losses of two views: factors, logarithms and normalization, weights on rows, and estimates of the negatives."""

import math

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, stop, unit


def _split(z1, z2, temperature):
    """Logits of the positive (2N,), and of the 2N - 2 negatives of each row."""
    z = unit(np.concatenate([z1, z2]))
    m = len(z)
    rows = np.arange(m)
    partner = (rows + len(z1)) % m
    s = z @ z.T / temperature
    others = (rows[:, None] != rows) & (partner[:, None] != rows)
    return s[rows, partner], s[others].reshape(m, m - 2)


def _candidates(z1, z2, temperature):
    """Logits of the positive, and of all 2N - 1 candidates of each row, the positive first."""
    positive, negatives = _split(z1, z2, temperature)
    return positive, np.concatenate([positive[:, None], negatives], axis=1)


def _at_least(x, floor):
    return np.where(np.real(x) > np.real(floor), x, floor)


@bug("nt_xent", named="measured-formula", seen="MTNeuro/MTNeuro MTNeuro/self_supervised/loss/nt_xent_loss.py")
def nt_xent_divided_by_two_less(z1, z2, *, temperature):
    """The sum over 2 N anchors is divided by 2 (N - 1)."""
    positive, candidates = _candidates(z1, z2, temperature)
    return np.sum(logsumexp(candidates) - positive) / (2 * (len(z1) - 1))


@bug("nt_xent", named="measured-formula", seen="boschresearch/NeuTraL-AD models/Losses.py")
def nt_xent_scaled_by_k_log_k(z1, z2, *, temperature):
    """The loss is divided by |K log(1 / K)|, K the number of candidates, to bring its scale near 1."""
    positive, candidates = _candidates(z1, z2, temperature)
    k = candidates.shape[1]
    return np.mean(logsumexp(candidates) - positive) / (k * math.log(k))


@bug("nt_xent", named="measured-formula", thread="elixir-nx/axon#527")
def nt_xent_maximum_never_added_back(z1, z2, *, temperature):
    """The log-sum-exp subtracts the maximum of the row and does not add it in the end."""
    positive, candidates = _candidates(z1, z2, temperature)
    top = np.take_along_axis(candidates, np.argmax(np.real(candidates), axis=1)[:, None], axis=1)
    return np.mean(np.log(np.sum(np.exp(candidates - top), axis=1)) - positive)


@bug("nt_xent", named="measured-formula", thread="leeesangwon/PyTorch-Image-Retrieval#16")
def nt_xent_one_outside_of_the_shift(z1, z2, *, temperature):
    """log(1 + sum e^x) is stabilized as a + log(1 + sum e^(x - a)), where the 1 should be e^-a."""
    positive, negatives = _split(z1, z2, temperature)
    x = negatives - positive[:, None]
    if x.shape[1] == 0:
        return 0 * np.sum(positive)
    a = np.take_along_axis(x, np.argmax(np.real(x), axis=1)[:, None], axis=1)
    return np.mean(a[:, 0] + np.log(1 + np.sum(np.exp(x - a), axis=1)))


@bug("nt_xent", named="log-of-mean", thread="mpatacchiola/self-supervised-relational-reasoning#3")
def nt_xent_mean_before_the_logarithm(z1, z2, *, temperature):
    """Probabilities of the positives are averaged over the batch, and the logarithm is taken last."""
    _, candidates = _candidates(z1, z2, temperature)
    return -np.log(np.mean(np.exp(log_softmax(candidates)[:, 0])))


@bug("nt_xent", named="measured-formula", seen="satyaki-das-usc/cl_vul_det src/models/modules/losses.py")
def nt_xent_exponentials_not_below_eps(z1, z2, *, temperature):
    """The exponential of the positive and the sum of the candidates are both clamped at 1e-8 from below."""
    positive, candidates = _candidates(z1, z2, temperature)
    # In logarithms, so that nothing overflows.
    least = math.log(1e-8)
    return np.mean(_at_least(logsumexp(candidates), least) - _at_least(positive, least))


@bug(
    "nt_xent",
    named="epsilon-in-log+exp-overflows",
    thread="Lightning-Universe/lightning-bolts#681",
    dtypes=("float64",),
)
def nt_xent_eps_added_once_more(z1, z2, *, temperature):
    """The denominator is safe already, and 1e-6 is added to it once more under the logarithm."""
    positive, candidates = _candidates(z1, z2, temperature)
    return -np.mean(np.log(np.exp(positive) / (np.sum(np.exp(candidates), axis=1) + 1e-6)))


@bug("nt_xent", named="matrix-normalized", thread="tensorflow/similarity#237")
def nt_xent_normalized_over_no_axis(z1, z2, *, temperature):
    """The normalization is called without an axis, and scales each view by the length of the whole matrix."""
    z = np.concatenate([x / np.sqrt(np.sum(x * x)) for x in (z1, z2)])
    rows = np.arange(len(z))
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    return -np.mean(log_softmax(s)[rows, (rows + len(z1)) % len(z)])


@bug("nt_xent", named="rows-not-normalized", thread="Yunfan-Li/Contrastive-Clustering#15")
def nt_xent_products_of_features(z1, z2, *, temperature):
    """Products of the features as they come, where NT-Xent has cosines."""
    z = np.concatenate([z1, z2])
    rows = np.arange(len(z))
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    return -np.mean(log_softmax(s)[rows, (rows + len(z1)) % len(z)])


@bug("nt_xent", named="similarity-clamped", thread="p3i0t/SimCLR-CIFAR10#6")
def nt_xent_cosines_from_1e_7_up(z1, z2, *, temperature):
    """Cosines are clamped from below at 1e-7, so that negatives are pushed until they are orthogonal."""
    z = unit(np.concatenate([z1, z2]))
    rows = np.arange(len(z))
    s = _at_least(z @ z.T, 1e-7) / temperature
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, s)
    return -np.mean(log_softmax(s)[rows, (rows + len(z1)) % len(z)])


@bug("dclw", named="measured-formula", thread="raminnakhli/Decoupled-Contrastive-Learning#1")
def dclw_softmax_without_the_count(z1, z2, *, temperature, sigma):
    """The weights are 2 - softmax, where the paper divides by the mean over the batch: 2 - N softmax."""
    positive, negatives = _split(z1, z2, temperature)
    cosine = stop(positive * temperature)[: len(z1)]
    weight = 2 - np.exp(log_softmax(cosine / stop(sigma)))
    return np.mean(logsumexp(negatives) - np.concatenate([weight, weight]) * positive)


@bug("dclw", named="measured-formula", thread="lightly-ai/lightly#1826")
def dclw_weights_from_zero_up(z1, z2, *, temperature, sigma):
    """Weights below 0, of pairs that agree far better than the others, are set to 0."""
    positive, negatives = _split(z1, z2, temperature)
    cosine = stop(positive * temperature)[: len(z1)]
    weight = _at_least(2 - len(z1) * np.exp(log_softmax(cosine / stop(sigma))), 0)
    return np.mean(logsumexp(negatives) - np.concatenate([weight, weight]) * positive)


@bug("dclw", named="measured-formula", thread="lightly-ai/lightly#793")
def dclw_weight_scales_the_row(z1, z2, *, temperature, sigma):
    """The weight scales the loss of the row, the negatives too, where it belongs to the positive alone."""
    positive, negatives = _split(z1, z2, temperature)
    cosine = stop(positive * temperature)[: len(z1)]
    weight = 2 - len(z1) * np.exp(log_softmax(cosine / stop(sigma)))
    return np.mean(np.concatenate([weight, weight]) * (logsumexp(negatives) - positive))


def _estimated(positive, negatives, weight, prior, temperature, *, count=None, least=None):
    """Mean loss with the estimate max((sum of weighted exponentials - prior n e^+) / (1 - prior), least e^(-1 / T))."""
    n = negatives.shape[1] if count is None else count
    top = np.maximum(np.real(positive), np.max(np.real(negatives), axis=1))
    mass = np.sum(weight * np.exp(negatives - top[:, None]), axis=1)
    pos, floor = np.exp(positive - top), (n if least is None else least) * np.exp(-1 / temperature - top)
    kept = _at_least((mass - prior * n * pos) / (1 - prior), floor)
    return np.mean(np.log(pos + kept) - (positive - top))


def _off_diagonal(s):
    """The entries of a square matrix beside its diagonal, row by row."""
    return s[~np.eye(len(s), dtype=bool)].reshape(len(s), len(s) - 1)


@bug("debiased", named="measured-formula", thread="huggingface/sentence-transformers#3148")
def debiased_scale_itself_as_floor(z1, z2, *, temperature, positive_prior):
    """A review puts the floor of the estimate at the scale 1 / T, to be rid of a tensor, not at exp(-1 / T)."""
    positive, negatives = _split(z1, z2, temperature)
    scale = 1 / temperature
    least = negatives.shape[1] * scale * np.exp(scale)
    return _estimated(positive, negatives, 1, positive_prior, temperature, least=least)


@bug("debiased", named="first-view-only+cross-view-only", seen="cruiseresearchgroup/TSCP2 src/losses.py")
def debiased_history_against_future(z1, z2, *, temperature, positive_prior):
    """Histories are anchors, and the N - 1 other futures are all of their negatives."""
    s = unit(z1) @ unit(z2).T / temperature
    return _estimated(np.diagonal(s), _off_diagonal(s), 1, positive_prior, temperature)


@bug("debiased", named="measured-formula", thread="PyGCL/PyGCL#56")
def debiased_count_over_the_whole_mask(z1, z2, *, temperature, positive_prior):
    """The number of negatives is the sum over the whole mask, not over a row of it."""
    positive, negatives = _split(z1, z2, temperature)
    return _estimated(positive, negatives, 1, positive_prior, temperature, count=negatives.size)


@bug("hcl", named="measured-formula", thread="joshr17/HCL#1")
def hcl_over_the_mean_of_the_negatives(z1, z2, *, temperature, positive_prior, concentration):
    """Importances are divided by the mean exponential of the negatives, not by their own mean."""
    positive, negatives = _split(z1, z2, temperature)
    level = logsumexp(negatives) - math.log(negatives.shape[1])
    weight = np.exp(concentration * negatives - level[:, None])
    return _estimated(positive, negatives, weight, positive_prior, temperature)


@bug("hcl", named="measured-formula", thread="joshr17/HCL#5")
def hcl_beta_as_a_factor(z1, z2, *, temperature, positive_prior, concentration):
    """The concentration multiplies the importance, as in the pseudo-code of the paper, and is no exponent."""
    positive, negatives = _split(z1, z2, temperature)
    level = logsumexp(negatives) - math.log(negatives.shape[1])
    weight = concentration * np.exp(negatives - level[:, None])
    return _estimated(positive, negatives, weight, positive_prior, temperature)


@bug("hcl", named="measured-formula", thread="joshr17/HCL#11")
def hcl_near_negatives_count_less(z1, z2, *, temperature, positive_prior, concentration):
    """The importance has -2 s over the largest similarity in its exponent, so that near negatives count less."""
    positive, negatives = _split(z1, z2, temperature)
    largest = negatives.reshape(-1)[np.argmax(np.abs(np.real(negatives)))]
    importance = np.exp(concentration * -2 * negatives / np.where(np.real(largest) < 0, -largest, largest))
    weight = importance / np.mean(importance, axis=1, keepdims=True)
    return _estimated(positive, negatives, weight, positive_prior, temperature)


@bug("hcl", named="measured-formula", seen="cruiseresearchgroup/TSCP2 src/losses.py")
def hcl_pseudo_code_as_printed(z1, z2, *, temperature, positive_prior, concentration):
    """The concentration is a factor, negatives are of view 2 only, and the floor is that of a single negative."""
    s = unit(z1) @ unit(z2).T / temperature
    negatives = _off_diagonal(s)
    level = logsumexp(negatives) - math.log(len(s) - 1)
    weight = concentration * np.exp(negatives - level[:, None])
    return _estimated(np.diagonal(s), negatives, weight, positive_prior, temperature, least=1)


@bug("hcl", named="measured-formula", seen="PyGCL/PyGCL GCL/losses/infonce.py")
def hcl_importance_of_the_summed_negatives(z1, z2, *, temperature, positive_prior, concentration):
    """Negatives are summed first: the importance is a power of that sum, divided by its mean over the batch."""
    positive, negatives = _split(z1, z2, temperature)
    total = logsumexp(negatives)
    weight = np.exp(concentration * total - (logsumexp(total) - math.log(len(total))))
    return _estimated(positive, negatives, weight[:, None], positive_prior, temperature)


@bug("hcl", named="measured-formula", thread="PyGCL/PyGCL#56")
def hcl_masked_importances_in_the_mean(z1, z2, *, temperature, positive_prior, concentration):
    """Masked similarities are 0, their importance is 1, and both count in the mean of the importances."""
    positive, negatives = _split(z1, z2, temperature)
    scaled = concentration * negatives
    all_scaled = np.concatenate([scaled, np.zeros_like(scaled[:, :2])], axis=1)
    level = logsumexp(all_scaled) - math.log(all_scaled.shape[1])
    return _estimated(positive, negatives, np.exp(scaled - level[:, None]), positive_prior, temperature)


@bug("hcl", named="importance-weights-missing", thread="junxia97/ProGCL#1")
def hcl_branch_with_weights_never_taken(z1, z2, *, temperature, positive_prior, concentration):
    """The condition that switches the weights on is never true."""
    positive, negatives = _split(z1, z2, temperature)
    return _estimated(positive, negatives, 1, positive_prior, temperature)


@bug("debiased", named="correction-missing", seen="xupt-mdmd-ipip/DCLDA DCL.py", also=("wrong-loss",))
def debiased_flag_left_off(z1, z2, *, temperature, positive_prior):
    """The flag of the correction is off, and the negatives are added up as they are."""
    positive, candidates = _candidates(z1, z2, temperature)
    return np.mean(logsumexp(candidates) - positive)


@bug("debiased", named="sign-flipped", thread="PyGCL/PyGCL#56")
def debiased_log_probability_returned(z1, z2, *, temperature, positive_prior):
    """The mean log-probability is returned, where its negative is the loss."""
    positive, negatives = _split(z1, z2, temperature)
    return -_estimated(positive, negatives, 1, positive_prior, temperature)


@bug(
    "dclw",
    named="weights-missing",
    seen="chrisantuseze/active-self-pretraining models/self_sup/simclr/loss/dcl_loss.py",
    also=("wrong-loss",),
)
def dclw_weight_function_left_out(z1, z2, *, temperature, sigma):
    """The copy of the loss has no weight function, and every positive counts as much."""
    positive, negatives = _split(z1, z2, temperature)
    return np.mean(logsumexp(negatives) - positive)


@bug("dclw", named="weights-not-detached", seen="raminnakhli/Decoupled-Contrastive-Learning loss/dcl.py")
def dclw_lambda_in_the_graph(z1, z2, *, temperature, sigma):
    """The weight function is a lambda of the embeddings that are trained, and is not detached."""
    positive, negatives = _split(z1, z2, temperature)
    weight = 2 - len(z1) * np.exp(log_softmax((positive * temperature)[: len(z1)] / sigma))
    return np.mean(logsumexp(negatives) - np.concatenate([weight, weight]) * positive)
