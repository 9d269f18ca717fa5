"""Cross-entropy wrong in its targets, its rows, its blocks, its ranges or its gradient."""

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, stop


def _soft(logits, targets, temperature):
    return -np.mean(np.sum(targets * log_softmax(logits / temperature), axis=1))


def _one_hot(logits, target):
    return np.arange(logits.shape[1]) == target[:, None]


def _with_gradient_of(value, other):
    """The value of one formula, and the gradient of another."""
    return np.real(value) + 1j * np.imag(other)


@bug(
    "cross_entropy",
    named="measured-formula",
    also=("label-smoothing",),
    seen="NougatCA/SPT-Code sources/utils/label_smoothing.py",
)
def cross_entropy_smoothing_for_the_others_only(logits, target, *, temperature, label_smoothing):
    """The smoothed share goes to the other classes, and nothing of it back to the target."""
    share = label_smoothing / (logits.shape[1] - 1)
    return _soft(logits, np.where(_one_hot(logits, target), 1 - label_smoothing, share), temperature)


@bug("cross_entropy", named="measured-formula", thread="ildoonet/pytorch-randaugment#30")
def cross_entropy_smoothing_takes_too_little(logits, target, *, temperature, label_smoothing):
    """Every class gets its share of the smoothing, of which the target gives up one class's share, not all."""
    share = label_smoothing / logits.shape[1]
    return _soft(logits, _one_hot(logits, target) * (1 - share) + share, temperature)


@bug("cross_entropy", named="measured-formula", thread="TimDettmers/ConvE#55")
def cross_entropy_smoothing_adds_a_whole_class(logits, target, *, temperature, label_smoothing):
    """1 over the number of classes is added to the smoothed targets, whatever the smoothing."""
    return _soft(logits, _one_hot(logits, target) * (1 - label_smoothing) + 1 / logits.shape[1], temperature)


@bug("cross_entropy", named="measured-formula", thread="eladhoffer/utils.pytorch#4")
def cross_entropy_divergence_without_entropy(logits, target, *, temperature, label_smoothing):
    """The Kullback-Leibler divergence from the smoothed targets, to which their entropy is never added."""
    targets = _one_hot(logits, target) * (1 - label_smoothing) + label_smoothing / logits.shape[1]
    entropy = -np.sum(targets * np.log(np.where(targets > 0, targets, 1)), axis=1)
    return _soft(logits, targets, temperature) - np.mean(entropy)


@bug("cross_entropy", named="measured-formula", thread="facebookresearch/deit#61")
def cross_entropy_mean_over_all_entries(logits, target, *, temperature):
    """The sum over the batch is divided by how many logits there are, as an elementwise mean does."""
    return -np.mean(_one_hot(logits, target) * log_softmax(logits / temperature))


@bug("cross_entropy", named="value-right-gradient-wrong", thread="awslabs/sockeye#835")
def cross_entropy_backward_smooths_otherwise(logits, target, *, temperature, label_smoothing):
    """Forward spreads the smoothing over all classes, and the operator's backward over the others only."""
    count, hot = logits.shape[1], _one_hot(logits, target)
    forward = _soft(logits, hot * (1 - label_smoothing) + label_smoothing / count, temperature)
    backward = _soft(logits, np.where(hot, 1 - label_smoothing, label_smoothing / (count - 1)), temperature)
    return _with_gradient_of(forward, backward)


@bug("cross_entropy", named="measured-formula", thread="vandit15/Class-balanced-loss-pytorch#5")
def cross_entropy_weighted_by_the_batch(logits, target, *, temperature):
    """Each row is weighted by the inverse of how often its class occurs in this batch, weights of mean 1 a class."""
    counts = np.bincount(target, minlength=logits.shape[1])
    weights = np.where(counts > 0, 1 / np.maximum(counts, 1), 0)
    weights = weights / np.sum(weights) * len(counts)
    rows = -log_softmax(logits / temperature)[np.arange(len(target)), target]
    return np.mean(weights[target] * rows)


@bug("cross_entropy", named="measured-formula", thread="deepinsight/insightface#2583")
def cross_entropy_columns_of_every_target(logits, target, *, temperature):
    """The targets pick columns for all rows at once, and the mean is over rows times rows."""
    return -np.mean(log_softmax(logits / temperature)[:, target])


@bug("cross_entropy", named="measured-formula", thread="nyu-mll/jiant#925")
def cross_entropy_class_zero_is_padding(logits, target, *, temperature):
    """The index of the padding is 0 and is ignored, but 0 is a class as well."""
    rows = -log_softmax(logits / temperature)[np.arange(len(target)), target]
    return np.sum(np.where(target != 0, rows, 0)) / max(np.sum(target != 0), 1)


@bug("cross_entropy", named="measured-formula", seen="DEVLOKER/neural-network 2/CrossEntropy.py")
def cross_entropy_first_row_for_the_sum(logits, target, *, temperature):
    """The value is that of the first row over the size of the batch; the gradient, by hand, is right."""
    rows = -log_softmax(logits / temperature)[np.arange(len(target)), target]
    return _with_gradient_of(rows[0] / len(rows), np.mean(rows))


@bug("cross_entropy", named="temperature-missing-on-positive", thread="ServiceNow/Fast-LLM#228")
def cross_entropy_target_loaded_again(logits, target, *, temperature):
    """The target's logit is loaded a second time in the kernel, and is not scaled as the others were."""
    return np.mean(logsumexp(logits / temperature) - logits[np.arange(len(target)), target])


@bug(
    "cross_entropy",
    named="value-saturates",
    also=("value-saturates+gradient-clamped",),
    thread="keras-team/keras#17634",
)
def cross_entropy_of_clipped_probabilities(logits, target, *, temperature):
    """Probabilities are clipped to 1e-7 from 0 and from 1 before the logarithm."""
    p = np.exp(log_softmax(logits / temperature))[np.arange(len(target)), target]
    p = np.where(np.real(p) < 1e-7, 1e-7, np.where(np.real(p) > 1 - 1e-7, 1 - 1e-7, p))
    return -np.mean(np.log(p))


@bug("cross_entropy", named="epsilon-in-log", seen="vanqaq/hm1 loss.py")
def cross_entropy_with_a_little_probability(logits, target, *, temperature):
    """The logarithm is that of the probability plus 1e-5."""
    p = np.exp(log_softmax(logits / temperature))[np.arange(len(target)), target]
    return -np.mean(np.log(p + 1e-5))


@bug("cross_entropy", named="exp-underflows", also=("value-not-finite",), thread="manassharma07/crysx_nn#7")
def cross_entropy_one_maximum_for_all_rows(logits, target, *, temperature):
    """The largest logit of the whole batch is subtracted, not that of each row."""
    x = logits / temperature
    e = np.exp(x - np.max(np.real(x)))
    return -np.mean(np.log(e[np.arange(len(target)), target] / np.sum(e, axis=1)))


@bug("cross_entropy", named="measured-formula", thread="HRNet/HRNet-Semantic-Segmentation#151")
def cross_entropy_of_hard_rows(logits, target, *, temperature):
    """Only rows whose target has a probability below 0.7 are kept, and the mean is over these."""
    rows = -log_softmax(logits / temperature)[np.arange(len(target)), target]
    hard = np.exp(-np.real(rows)) < 0.7
    return np.sum(np.where(hard, rows, 0)) / max(np.sum(hard), 1)


@bug("cross_entropy", named="measured-formula", thread="foamliu/InsightFace-v2#39")
def cross_entropy_focus_on_the_mean(logits, target, *, temperature):
    """A focal factor is made of the mean of the batch, and scales it as a whole."""
    mean = cross_entropy(logits / temperature, target)
    return (1 - np.exp(-mean)) ** 2 * mean


@bug("cross_entropy", named="gradient-constant-factor", thread="markroxor/fromscratchtoml#65")
def cross_entropy_twice_the_gradient(logits, target, *, temperature):
    """By hand the gradient is twice the difference of the probabilities and the targets."""
    value = cross_entropy(logits / temperature, target)
    return _with_gradient_of(value, 2 * value)


@bug(
    "cross_entropy",
    named="value-right-gradient-wrong",
    also=("gradient-constant-factor",),
    thread="jxgu1016/MNIST_center_loss_pytorch#9",
)
def cross_entropy_backward_of_the_sum(logits, target, *, temperature):
    """Forward takes the mean over the batch, and backward forgets it."""
    value = cross_entropy(logits / temperature, target)
    return _with_gradient_of(value, len(target) * value)


@bug("cross_entropy", named="value-right-gradient-wrong", thread="mlpack/mlpack#2360")
def cross_entropy_backward_adds_the_softmax(logits, target, *, temperature):
    """The log-softmax's backward adds the upstream gradient to the probabilities, which it should have multiplied."""
    x = logits / temperature
    picked = np.mean(x[np.arange(len(target)), target])
    return _with_gradient_of(cross_entropy(x, target), np.sum(logsumexp(x)) - picked)


@bug("cross_entropy", named="value-right-gradient-wrong", thread="RoboticsClubIITJ/ML-DL-implementation#153")
def cross_entropy_backward_of_the_diagonal(logits, target, *, temperature):
    """Of the softmax's Jacobian backward has the diagonal only: the other classes feel nothing."""
    x = logits / temperature
    own = np.where(_one_hot(logits, target), x, stop(x))
    return _with_gradient_of(cross_entropy(x, target), cross_entropy(own, target))


@bug(
    "cross_entropy",
    named="softmax-over-wrong-axis+sum-instead-of-mean",
    seen="oguzhangencer/pytorch_tutorial softmax_and_crossentorpy.py",
)
def cross_entropy_of_one_vector(logits, target, *, temperature):
    """A softmax and a sum that were written for a single vector are called with a batch."""
    return -np.sum(log_softmax(logits / temperature, axis=0)[np.arange(len(target)), target])


@bug("cross_entropy", named="logarithm-missing", thread="CIA-Oceanix/TrAISformer#26")
def cross_entropy_nll_of_a_softmax(logits, target, *, temperature):
    """The negative log-likelihood is given probabilities, not their logarithms."""
    return -np.mean(np.exp(log_softmax(logits / temperature))[np.arange(len(target)), target])


@bug("cross_entropy", named="measured-formula", thread="NVIDIA-NeMo/Automodel#3803")
def cross_entropy_sum_of_means_of_chunks(logits, target, *, temperature):
    """Chunks of 32 rows give their means, and these are added up."""
    chunks = range(0, len(target), 32)
    return sum(cross_entropy(logits[k : k + 32] / temperature, target[k : k + 32]) for k in chunks)


@bug("cross_entropy", named="measured-formula", thread="verl-project/verl#5349")
def cross_entropy_padded_tile(logits, target, *, temperature):
    """Classes are loaded in tiles of 8, and what the last tile lacks is loaded as logits of 0."""
    lacking = -logits.shape[1] % 8
    return cross_entropy(np.pad(logits, [(0, 0), (0, lacking)]) / temperature, target)


@bug("cross_entropy", named="measured-formula", thread="unslothai/unsloth-zoo#1023")
def cross_entropy_mean_of_unequal_micro_batches(logits, target, *, temperature):
    """Micro-batches of three rows are averaged, and then averaged over, whatever they are short of."""
    chunks = range(0, len(target), 3)
    return np.mean(np.array([cross_entropy(logits[k : k + 3] / temperature, target[k : k + 3]) for k in chunks]))


@bug("cross_entropy", named="sum-instead-of-mean", thread="Open-Deep-ML/DML-OpenProblem#358")
def cross_entropy_defined_as_a_sum(logits, target, *, temperature):
    """Cross-entropy is said to be a sum over the batch, and the mean that was there is removed."""
    return len(target) * cross_entropy(logits / temperature, target)


@bug("cross_entropy", named="temperature-after-softmax", thread="MoonshotAI/Kimi-Audio#161")
def cross_entropy_logprobs_over_temperature(logits, target, *, temperature):
    """The log-probabilities are divided by the temperature, and not the logits before."""
    return -np.mean(log_softmax(logits)[np.arange(len(target)), target]) / temperature


@bug("cross_entropy", named="temperature-multiplied", thread="EFS-OpenSource/calibration-framework#13")
def cross_entropy_weight_for_a_temperature(logits, target, *, temperature):
    """The logits are multiplied by what is called temperature."""
    return cross_entropy(logits * temperature, target)


@bug("cross_entropy", named="softmax-over-wrong-axis", thread="fxia22/pointnet.pytorch#27")
def cross_entropy_dimension_of_the_batch(logits, target, *, temperature):
    """The log-softmax is over dimension 0, that of the batch."""
    return -np.mean(log_softmax(logits / temperature, axis=0)[np.arange(len(target)), target])


@bug("cross_entropy", named="softmax-applied-twice", thread="Lightning-Universe/lightning-bolts#654")
def cross_entropy_model_ends_in_a_softmax(logits, target, *, temperature):
    """The model returns a softmax, and the loss takes the log-softmax of that."""
    return cross_entropy(np.exp(log_softmax(logits / temperature)), target)


@bug("cross_entropy", named="divided-by-n-twice", thread="bhanML/Co-teaching#4")
def cross_entropy_normalized_twice(logits, target, *, temperature):
    """The mean over the batch is divided by the size of the batch."""
    return cross_entropy(logits / temperature, target) / len(target)


@bug("cross_entropy", named="negatives-ignored", thread="deepjavalibrary/djl#520")
def cross_entropy_flag_the_wrong_way_round(logits, target, *, temperature):
    """A flag says that the input is a log-softmax already, which it is not: minus the target's logit remains."""
    return -np.mean((logits / temperature)[np.arange(len(target)), target])


@bug("cross_entropy", named="label-smoothing", seen="SeoYoungDeok/ViT_pytorch loss/loss.py")
def cross_entropy_smoothed_by_a_tenth(logits, target, *, temperature):
    """A smoothing of 0.1 is written into the loss."""
    return _soft(logits, 0.9 * _one_hot(logits, target) + 0.1 / logits.shape[1], temperature)


@bug("cross_entropy", named="labels-shifted+last-row-missing", thread="huggingface/transformers#46898")
def cross_entropy_shifted_once_more(logits, target, *, temperature):
    """Labels that are aligned already go into a loss that shifts: each row meets the label of the next."""
    return cross_entropy(logits[:-1] / temperature, target[1:])


@bug("cross_entropy", named="half-fallback", thread="google-deepmind/optax#1020")
def cross_entropy_quantized_normalizer(logits, target, *, temperature):
    """The log-sum-exp is stored in bfloat16, with its 8 bits."""
    scaled = logits / temperature
    log_sum = logsumexp(scaled)
    fraction, exponent = np.frexp(np.real(log_sum))
    stored = np.ldexp(np.round(fraction * 256) / 256, exponent) + (log_sum - stop(log_sum))
    return np.mean(stored - scaled[np.arange(len(target)), target])


@bug("cross_entropy", named="value-right-gradient-wrong", thread="soochan-lee/CN-DPM#6")
def cross_entropy_chilled_in_its_value_only(logits, target, *, temperature):
    """The value has the temperature, and the gradient is that of the loss without it, which does not explode."""
    return _with_gradient_of(cross_entropy(logits / temperature, target), cross_entropy(logits, target))
