"""Balanced softmax wrong in its prior, cross-entropy in its logarithm, alignment and uniformity in their points."""

import math

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, unit


def _own(logits, target):
    return np.arange(logits.shape[1]) == target[:, None]


@bug("balanced_softmax", named="measured-formula", thread="bamps53/SeesawLoss#1")
def balanced_softmax_counts_of_the_batch(logits, target, class_counts, *, temperature):
    """The class counts are None in the first step, and are counted from its targets, with 1 for what is absent."""
    counts = np.maximum(np.bincount(target, minlength=logits.shape[1]), 1)
    return cross_entropy(logits / temperature + np.log(counts.astype(class_counts.dtype)), target)


@bug(
    "balanced_softmax",
    named="measured-formula",
    seen="usagisukisuki/Imbalanced-Classification utils/loss/gr.py",
)
def balanced_softmax_weights_for_a_prior(logits, target, class_counts, *, temperature):
    """Rows are weighted by the inverse frequency of their class, in a weighted mean, and the logits left alone."""
    frequency = class_counts / np.sum(class_counts)
    weights = (1 / frequency) / np.mean(1 / frequency)
    rows = -log_softmax(logits / temperature)[np.arange(len(target)), target]
    return np.sum(weights[target] * rows) / np.sum(weights[target])


@bug("balanced_softmax", named="measured-formula", thread="Chumsy0725/logit-adj-pytorch#2")
def balanced_softmax_largest_class_first(logits, target, class_counts, *, temperature):
    """The frequencies are sorted, largest first, and added to logits that are in the order of the classes."""
    return cross_entropy(logits / temperature + np.log(np.sort(class_counts)[::-1]), target)


@bug("balanced_softmax", named="measured-formula", thread="Chumsy0725/logit-adj-pytorch#2")
def balanced_softmax_classes_sorted_as_text(logits, target, class_counts, *, temperature):
    """The keys of the dictionary are text, so that with more than ten classes 10 comes before 2."""
    order = sorted(range(len(class_counts)), key=str)
    return cross_entropy(logits / temperature + np.log(class_counts[order]), target)


@bug("balanced_softmax", named="measured-formula", thread="kaidic/LDAM-DRW#13")
def balanced_softmax_margins_of_the_rare(logits, target, class_counts, *, temperature):
    """The counts make margins, largest for the rarest class, which are taken off the target's logit."""
    margins = class_counts**-0.25
    margins = 0.5 * margins / np.max(margins)
    return cross_entropy((logits - margins * _own(logits, target)) / temperature, target)


@bug("balanced_softmax", named="prior-subtracted", thread="grantword8/BLV#4")
def balanced_softmax_absolute_log_prior(logits, target, class_counts, *, temperature):
    """The size of the logarithm of the frequencies is added: rare classes get the most."""
    return cross_entropy(logits / temperature + np.absolute(np.log(class_counts / np.sum(class_counts))), target)


@bug(
    "balanced_softmax",
    named="prior-divided-by-temperature",
    seen="dvlab-research/Parametric-Contrastive-Learning LT/losses.py",
)
def balanced_softmax_prior_inside_the_division(logits, target, class_counts, *, temperature):
    """The logarithm of the frequencies is added to the logits before both are divided by the temperature."""
    prior = np.log(class_counts / np.sum(class_counts) + 1e-9)
    return cross_entropy((logits + prior) / temperature, target)


@bug("balanced_softmax", named="measured-formula", thread="jakeret/tf_unet#8")
def balanced_softmax_logits_times_weights(logits, target, class_counts, *, temperature):
    """The class weights multiply the logits before the softmax."""
    weights = np.sum(class_counts) / (len(class_counts) * class_counts)
    return cross_entropy(weights * logits / temperature, target)


@bug("balanced_softmax", named="prior-missing", thread="hyperconnect/LADE#9")
def balanced_softmax_prior_left_for_the_test(logits, target, class_counts, *, temperature):
    """Trained with plain cross-entropy: the prior is kept for the test, as with a softmax that is compensated later."""
    return cross_entropy(logits / temperature, target)


@bug("balanced_softmax", named="prior-subtracted", thread="Gank0078/ACR#10")
def balanced_softmax_minus_the_estimate(logits, target, class_counts, *, temperature):
    """The estimate of the class prior is subtracted in training, as it is for the pseudo-labels."""
    return cross_entropy(logits / temperature - np.log(class_counts), target)


# Pairs of points.


def _squares(x):
    gaps = x[:, None] - x
    return np.sum(gaps * gaps, axis=2)


def _pairs(x):
    """Squared distances of the pairs i < j."""
    return _squares(x)[np.triu_indices(len(x), 1)]


@bug("balanced_softmax", named="prior-without-log", thread="dfdx/NaiveBayes.jl#5")
def balanced_softmax_prior_of_a_log_prior(logits, target, class_counts, *, temperature):
    """The function that is called log prior returns the prior."""
    return cross_entropy(logits / temperature + class_counts / np.sum(class_counts), target)


@bug("balanced_softmax", named="temperature-squared", thread="Adibvafa/CodonTransformer#20")
def balanced_softmax_scaled_in_place(logits, target, class_counts, *, temperature):
    """The logits are divided by the temperature in place, and by the softmax once more."""
    return cross_entropy(logits / temperature / temperature + np.log(class_counts), target)


@bug("cross_entropy", named="log-base-10", thread="huawei-noah/Efficient-Computing#12")
def cross_entropy_decimal_logarithm(logits, target, *, temperature):
    """The logarithm has the base 10, where all other terms have the natural one."""
    return cross_entropy(logits / temperature, target) / math.log(10)


@bug("cross_entropy", named="log-base-2", thread="bsxfan/PYLLR#5")
def cross_entropy_of_bits(logits, target, *, temperature):
    """The loss is in bits, as the costs of detectors are."""
    return cross_entropy(logits / temperature, target) / math.log(2)


@bug("cross_entropy", named="sign-flipped", thread="fastai/course22#22")
def cross_entropy_of_negative_losses(logits, target, *, temperature):
    """The sheet has no minus before the logarithm, so that its losses are negative."""
    return -cross_entropy(logits / temperature, target)


@bug("cross_entropy", named="log-of-mean", thread="lucadiliello/semantic-loss-pytorch#5")
def cross_entropy_mean_before_the_logarithm(logits, target, *, temperature):
    """The probabilities of the targets are averaged over the batch, and the logarithm is taken of the average."""
    log_prob = log_softmax(logits / temperature)[np.arange(len(target)), target]
    return math.log(len(target)) - logsumexp(log_prob)


@bug("alignment", named="last-row-missing", thread="wichtounet/frameworks#4")
def alignment_index_below_the_batch_size(x, y, *, exponent):
    """The index counts from 1 and stays below the batch size: of 128 pairs it gives 127."""
    gap = (unit(x) - unit(y))[:-1]
    return np.mean(np.sum(gap * gap, axis=1) ** (exponent / 2))


@bug("alignment", named="measured-formula", thread="pytorch/pytorch#61538", dtypes=("float64",))
def alignment_millionth_in_every_coordinate(x, y, *, exponent):
    """The distance function adds 1e-6 to each coordinate of the difference, against a division by zero."""
    gap = unit(x) - unit(y) + 1e-6
    return np.mean(np.sum(gap * gap, axis=1) ** (exponent / 2))


@bug("alignment", named="outer-factor-half+distance-squared", thread="junwankimm/CSFM#2")
def alignment_one_minus_cosine(x, y, *, exponent):
    """1 minus the cosine, which is said to be the same up to a constant."""
    return np.mean(1 - np.sum(unit(x) * unit(y), axis=1))


@bug("alignment", named="mean-over-dimensions+distance-squared", thread="eje24/iap-diffusion-labs#21")
def alignment_mean_squared_error(x, y, *, exponent):
    """The mean squared error of the unit rows, over samples and coordinates."""
    gap = unit(x) - unit(y)
    return np.mean(gap * gap)


@bug("alignment", named="measured-formula", thread="klintan/pytorch-lanenet#12")
def alignment_norm_down_the_batch(x, y, *, exponent):
    """The norm of the difference is taken along dimension 0: a distance for each coordinate."""
    gap = unit(x) - unit(y)
    return np.mean(np.sum(gap * gap, axis=0) ** (exponent / 2))


@bug("alignment", named="measured-formula", thread="manzilzaheer/DeepSets#1")
def alignment_every_row_with_every_other(x, y, *, exponent):
    """One input has a dimension too many, and the difference is broadcast over all pairs of rows."""
    gap = unit(x)[:, None] - unit(y)
    return np.mean(np.sum(gap * gap, axis=2) ** (exponent / 2))


@bug("uniformity", named="measured-formula", seen="chycycc/CEM-PCL-Research docs/experiment_guides/round6_guide.md")
def uniformity_log_sum_of_every_row(x, *, t):
    """The log-sum-exp over the other points, a row at a time, and the mean of these: neither mean is where it was."""
    z = unit(x)
    return np.mean(logsumexp(np.where(np.eye(len(z), dtype=bool), -np.inf, -t * (2 - 2 * (z @ z.T)))))


@bug("uniformity", named="measured-formula", thread="ssnl/align_uniform#2")
def uniformity_lengths_for_distances(x, *, t):
    """The norm is that of each sample and not of the difference of two; unit rows all have the same."""
    z = unit(x)
    return np.log(np.mean(np.exp(-t * np.sum(z * z, axis=1))))


@bug("uniformity", named="measured-formula", seen="okyksl/cl-theory align_uniform/__init__.py")
def uniformity_mean_of_the_exponents(x, *, t):
    """Minus t times the mean squared distance, with neither exponential nor logarithm."""
    return -t * np.mean(_pairs(unit(x)))


@bug("uniformity", named="measured-formula", seen="hsme98/usmatching_au align_uniform/__init__.py")
def uniformity_before_the_logarithm(x, *, t):
    """The mean potential itself: the logarithm was left to another function."""
    return np.mean(np.exp(-t * _pairs(unit(x))))


@bug("uniformity", named="measured-formula", thread="danielward27/flowjax#167")
def uniformity_of_64_points(x, *, t):
    """More points than a limit, here 64, are not looked at."""
    return np.log(np.mean(np.exp(-t * _pairs(unit(x)[:64]))))


@bug(
    "uniformity",
    named="gradient-not-finite",
    thread="cornellius-gp/gpytorch#869",
    gradients=lambda grads, _: {name: np.full_like(grad, np.nan) for name, grad in grads.items()},
)
def uniformity_root_that_is_squared_again(x, *, t):
    """Distances of all pairs are rooted and squared again, and the diagonal masked later: its root has no slope."""
    distances = np.sqrt(_squares(unit(x)))
    return np.log(np.mean(np.exp(-t * distances[np.triu_indices(len(x), 1)] ** 2)))


@bug("uniformity", named="distance-not-squared", seen="hsme98/usmatching_au align_uniform/__init__.py")
def uniformity_exponent_of_a_plain_distance(x, *, t):
    """The exponent has the distance, where it was the squared distance before."""
    return np.log(np.mean(np.exp(-t * np.sqrt(_pairs(unit(x))))))


@bug("uniformity", named="diagonal-included", thread="ENSTA-U2IS-AI/LDU#3")
def uniformity_matrix_with_its_diagonal(x, *, t):
    """The mean is over the matrix of all distances, zeros of the diagonal included."""
    return np.log(np.mean(np.exp(-t * _squares(unit(x)))))


@bug("alignment", named="rows-not-normalized", thread="princeton-nlp/SimCSE#122")
def alignment_of_several_hundred(x, y, *, exponent):
    """The rows are not normalized, and the loss is several hundred."""
    gap = x - y
    return np.mean(np.sum(gap * gap, axis=1) ** (exponent / 2))
