"""Labels wrong in the temperature, the average, the gradient, or in large batches only; and PaCo."""

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, peak, stop, unit


def _scores(embeddings, temperature):
    z = unit(embeddings)
    return np.where(~np.eye(len(z), dtype=bool), z @ z.T / temperature, -np.inf)


def _positives(labels):
    return (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)


def _rows(log_prob, positives):
    return -np.sum(np.where(positives, log_prob, 0), axis=1) / np.sum(positives, axis=1)


def _supcon(embeddings, labels, temperature):
    return np.mean(_rows(log_softmax(_scores(embeddings, temperature)), _positives(labels)))


@bug(
    "supcon_out",
    named="lonely-anchors-counted",
    thread="HobbitLong/SupContrast#142",
    settings={"no_positive": "skip"},
)
def supcon_out_count_of_one_where_none(embeddings, labels, *, temperature):
    """An anchor without a positive gets a count of 1, and its 0 goes into the mean."""
    positives = _positives(labels)
    log_prob = log_softmax(_scores(embeddings, temperature))
    total = np.sum(np.where(positives, log_prob, 0), axis=1)
    count = np.sum(positives, axis=1)
    return -np.mean(total / np.where(count < 1e-6, 1, count))


@bug(
    "supcon_out",
    named="lonely-anchors-nan",
    thread="HobbitLong/SupContrast#141",
    settings={"no_positive": "skip"},
)
def supcon_out_nothing_over_nothing(embeddings, labels, *, temperature):
    """The sum over no positives is divided by their number: one sample of a class makes the mean NaN."""
    return _supcon(embeddings, labels, temperature)


@bug(
    "supcon_out",
    named="mean-over-nonzero-rows",
    also=("lonely-anchors-skipped",),
    thread="KevinMusgrave/pytorch-metric-learning#288",
    settings={"no_positive": "zero"},
)
def supcon_out_reducer_of_the_library(embeddings, labels, *, temperature):
    """Anchors without a positive are 0, and the library's reducer is the mean over losses that are above 0."""
    positives = _positives(labels)
    log_prob = log_softmax(_scores(embeddings, temperature))
    count = np.sum(positives, axis=1)
    rows = -np.sum(np.where(positives, log_prob, 0), axis=1) / np.where(count == 0, 1, count)
    return np.mean(rows[np.real(rows) > 0])


@bug(
    "supcon_out",
    named="temperature-missing",
    also=("temperature-ignored",),
    thread="sayakpaul/Supervised-Contrastive-Learning-in-TensorFlow-2#2",
)
def supcon_out_temperature_taken_for_one(embeddings, labels, *, temperature):
    """The loss has no temperature: a constant value of 1 is assumed."""
    return _supcon(embeddings, labels, 1)


@bug("supcon_out", named="outer-factor-temperature-over-base", thread="wangz10/contrastive_loss#23")
def supcon_out_base_temperature_never_set(embeddings, labels, *, temperature):
    """The loss is multiplied by the temperature over a base temperature of 0.07 that nobody knows the use of."""
    return temperature / 0.07 * _supcon(embeddings, labels, temperature)


@bug("supcon_out", named="epsilon-in-log", thread="HobbitLong/SupContrast#104")
def supcon_out_millionth_in_the_log(embeddings, labels, *, temperature):
    """Against NaN 1e-6 is added to the sum of exponentials, which are measured from the anchor's own logit."""
    z = unit(embeddings)
    scores = z @ z.T / temperature
    scores = scores - peak(scores)
    others = ~np.eye(len(z), dtype=bool)
    log_prob = scores - np.log(np.sum(np.exp(scores) * others, axis=1, keepdims=True) + 1e-6)
    return np.mean(_rows(log_prob, _positives(labels)))


@bug("supcon_out", named="temperature-missing-on-positive", thread="huiserwang/ContrastMask#4")
def supcon_out_numerator_at_temperature_one(embeddings, labels, *, temperature):
    """The division by the temperature is forgotten in the line of the numerator."""
    z = unit(embeddings)
    log_prob = z @ z.T - logsumexp(_scores(embeddings, temperature))[:, None]
    return np.mean(_rows(log_prob, _positives(labels)))


@bug("supcon_out", named="measured-formula", thread="ml-explore/mlx-lm#1413")
def supcon_out_partial_block_dropped(embeddings, labels, *, temperature):
    """Anchors go through in blocks of 32, and of a larger batch the last block is dropped unless it is full."""
    n = len(labels)
    kept = n if n < 32 else n - n % 32
    rows = _rows(log_softmax(_scores(embeddings, temperature)), _positives(labels))
    return np.mean(rows[:kept])


@bug("supcon_out", named="candidates-detached", thread="lorenmt/reco#30")
def supcon_out_gradient_through_anchors(embeddings, labels, *, temperature):
    """The features that an anchor is compared with are detached: gradients flow through the anchors only."""
    z = unit(embeddings)
    scores = np.where(~np.eye(len(z), dtype=bool), z @ stop(z).T / temperature, -np.inf)
    return np.mean(_rows(log_softmax(scores), _positives(labels)))


@bug(
    "supcon_out",
    named="gradient-zero",
    thread="sl-93/SUPERVISED-CONTRASTIVE-LEARNING-FOR-PRE-TRAINED-LANGUAGE-MODEL-FINE-TUNING#2",
)
def supcon_out_hidden_states_as_arrays(embeddings, labels, *, temperature):
    """The hidden states are detached and turned into arrays before the loss is called, the temperature is a number."""
    return _supcon(stop(embeddings), labels, stop(temperature))


@bug("supcon_out", named="negatives-detached", thread="taesungp/contrastive-unpaired-translation#14")
def supcon_out_features_of_negatives_detached(embeddings, labels, *, temperature):
    """An anchor's negatives are detached, as where they come from a bank, its positives are not."""
    z = unit(embeddings)
    same = labels[:, None] == labels
    scores = np.where(same, z @ z.T, z @ stop(z).T) / temperature
    scores = np.where(~np.eye(len(z), dtype=bool), scores, -np.inf)
    return np.mean(_rows(log_softmax(scores), _positives(labels)))


@bug("supcon_in", named="measured-formula", thread="boschresearch/OASIS#20")
def supcon_in_divided_by_the_classes(embeddings, labels, *, temperature):
    """The sum over the anchors is divided by the batch and by the number of classes in it once more."""
    scores = _scores(embeddings, temperature)
    share = logsumexp(np.where(_positives(labels), scores, -np.inf)) - np.log(np.sum(_positives(labels), axis=1))
    return np.mean(logsumexp(scores) - share) / len(np.unique(labels))


@bug("supcon_in", named="measured-formula", thread="NVIDIA-NeMo/Automodel#3830")
def supcon_in_four_anchors_at_a_time(embeddings, labels, *, temperature):
    """Anchors go through four at a time, and the means of these chunks are averaged, the short one alike."""
    scores = _scores(embeddings, temperature)
    share = logsumexp(np.where(_positives(labels), scores, -np.inf)) - np.log(np.sum(_positives(labels), axis=1))
    rows = logsumexp(scores) - share
    return np.mean(np.array([np.mean(rows[k : k + 4]) for k in range(0, len(rows), 4)]))


@bug("supcon_out", named="rows-not-normalized", thread="HobbitLong/SupContrast#50")
def supcon_out_features_never_normalized(embeddings, labels, *, temperature):
    """The features come from the encoder as they are, and the loss relies on unit rows."""
    scores = np.where(~np.eye(len(labels), dtype=bool), embeddings @ embeddings.T / temperature, -np.inf)
    return np.mean(_rows(log_softmax(scores), _positives(labels)))


@bug("supcon_out", named="divided-by-n-twice", thread="HobbitLong/SupContrast#118")
def supcon_out_over_the_batch_size(embeddings, labels, *, temperature):
    """What the criterion returns, a mean, is divided by the batch size."""
    return _supcon(embeddings, labels, temperature) / len(labels)


@bug("supcon_out", named="positives-not-averaged", thread="LTH14/targeted-supcon#12")
def supcon_out_formula_without_its_parenthesis(embeddings, labels, *, temperature):
    """A parenthesis is missing in the paper: the division by the positives goes, that by the batch stays."""
    log_prob = log_softmax(_scores(embeddings, temperature))
    return -np.sum(np.where(_positives(labels), log_prob, 0)) / len(labels)


@bug("supcon_out", named="exp-overflows+epsilon-in-log", thread="WHU-AISE/TVDiag#5")
def supcon_out_shares_with_a_safe_division(embeddings, labels, *, temperature):
    """Bare exponentials are divided by their sum plus 1e-8."""
    e = np.exp(_scores(embeddings, temperature))
    shares = e / (np.sum(e, axis=1, keepdims=True) + 1e-8)
    return np.mean(_rows(np.log(np.where(_positives(labels), shares, 1)), _positives(labels)))


@bug(
    "supcon_out",
    named="sum-instead-of-mean",
    thread="sl-93/SUPERVISED-CONTRASTIVE-LEARNING-FOR-PRE-TRAINED-LANGUAGE-MODEL-FINE-TUNING#1",
)
def supcon_out_added_in_a_loop(embeddings, labels, *, temperature):
    """The anchors' losses are added up in a loop, and nobody divides by their number."""
    return np.sum(_rows(log_softmax(_scores(embeddings, temperature)), _positives(labels)))


@bug("supcon_in", named="outer-factor-temperature", thread="drboog/Lafite#25")
def supcon_in_tau_before_the_log(embeddings, labels, *, temperature):
    """The formula of a paper, with the temperature in front of the logarithm as well."""
    scores = _scores(embeddings, temperature)
    share = logsumexp(np.where(_positives(labels), scores, -np.inf)) - np.log(np.sum(_positives(labels), axis=1))
    return temperature * np.mean(logsumexp(scores) - share)


# PaCo: logits of the centers beside those of the samples.


def _paco(scores, centers, labels, alpha):
    """Sum form, of logits of the samples and of the centers."""
    everyone = logsumexp(np.concatenate([scores, centers], axis=1))
    own = centers[np.arange(len(labels)), labels] - everyone
    positives = _positives(labels)
    samples = np.sum(np.where(positives, scores - everyone[:, None], 0), axis=1)
    return -np.mean(own + alpha * samples)


@bug("paco", named="measured-formula", seen="dvlab-research/Parametric-Contrastive-Learning LT/losses.py")
def paco_gamma_left_at_zero(embeddings, labels, centers, *, alpha, temperature):
    """The weight of the samples in the denominator is an argument whose default is 0, and was left at it."""
    scores, logits = _scores(embeddings, temperature), embeddings @ centers.T
    everyone = logsumexp(logits)
    own = logits[np.arange(len(labels)), labels] - everyone
    samples = np.sum(np.where(_positives(labels), scores - everyone[:, None], 0), axis=1)
    return -np.mean(own + alpha * samples)


@bug("paco", named="self-counted-as-positive", thread="JIA-Lab-research/Parametric-Contrastive-Learning#23")
def paco_numerator_not_masked(embeddings, labels, centers, *, alpha, temperature):
    """Only the denominator is masked: the sample is a positive of its own, with its own logit in the numerator."""
    z = unit(embeddings)
    scores, logits = z @ z.T / temperature, embeddings @ centers.T
    everyone = logsumexp(np.concatenate([_scores(embeddings, temperature), logits], axis=1))
    own = logits[np.arange(len(labels)), labels] - everyone
    samples = np.sum(np.where(labels[:, None] == labels, scores - everyone[:, None], 0), axis=1)
    return -np.mean(own + alpha * samples)


@bug("paco", named="measured-formula", thread="JIA-Lab-research/Parametric-Contrastive-Learning#20")
def paco_centers_as_more_samples(embeddings, labels, centers, *, alpha, temperature):
    """The centers are rows like the samples: normalized as these are, and at the temperature of the contrast."""
    z = unit(embeddings)
    return _paco(_scores(embeddings, temperature), z @ unit(centers).T / temperature, labels, alpha)


@bug("paco", named="centers-dropped", thread="JIA-Lab-research/Parametric-Contrastive-Learning#20")
def paco_no_use_of_centers(embeddings, labels, centers, *, alpha, temperature):
    """The centers are said to be of no use, and only the samples are left, as positives and as candidates."""
    log_prob = log_softmax(_scores(embeddings, temperature))
    return -alpha * np.mean(np.sum(np.where(_positives(labels), log_prob, 0), axis=1))


@bug("paco", named="measured-formula", thread="JIA-Lab-research/Parametric-Contrastive-Learning#12")
def paco_alpha_and_beta_swapped(embeddings, labels, centers, *, alpha, temperature):
    """The two weights in the mask are mixed up: alpha weighs the center, and a sample weighs 1."""
    scores, logits = _scores(embeddings, temperature), embeddings @ centers.T
    everyone = logsumexp(np.concatenate([scores, logits], axis=1))
    own = logits[np.arange(len(labels)), labels] - everyone
    samples = np.sum(np.where(_positives(labels), scores - everyone[:, None], 0), axis=1)
    return -np.mean(alpha * own + samples)


@bug("paco", named="scalar-ignored", seen="dvlab-research/Parametric-Contrastive-Learning LT/losses.py")
def paco_alpha_of_the_signature(embeddings, labels, centers, *, alpha, temperature):
    """Alpha is taken from the default of the class, which is 1, and not from the configuration."""
    return _paco(_scores(embeddings, temperature), embeddings @ centers.T, labels, 1.0)


@bug(
    "paco",
    named="temperature-missing",
    also=("temperature-ignored",),
    seen="dvlab-research/Parametric-Contrastive-Learning LT/losses.py",
)
def paco_temperature_of_the_signature(embeddings, labels, centers, *, alpha, temperature):
    """The temperature is taken from the default of the class as well, which is 1."""
    return _paco(_scores(embeddings, 1.0 + 0 * temperature), embeddings @ centers.T, labels, alpha)
