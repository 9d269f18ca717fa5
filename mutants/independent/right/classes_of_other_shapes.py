"""Class losses, alignment and uniformity by other algorithms and in other layouts, all of them correct."""

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, peak, softplus, stop, unit


def _own(logits, target):
    return np.arange(logits.shape[1]) == target[:, None]


def _cosines(embeddings, class_weights):
    return unit(embeddings) @ unit(class_weights).T


def _plus(a, b):
    """Logarithm of e^a + e^b."""
    return np.where(np.real(a) > np.real(b), a, b) + softplus(np.where(np.real(a) > np.real(b), b - a, a - b))


def _length(x):
    """Length of each row, whose derivative at 0 is taken for 0."""
    length = np.sqrt(np.sum(stop(x) ** 2, axis=-1))
    return length + np.sum(stop(x) * (x - stop(x)), axis=-1) / np.where(length > 0, length, 1)


def _chords(embeddings, class_weights, target):
    """Distances of each row to its class weight and to the point opposite of it."""
    x, w = unit(embeddings), unit(class_weights)[target]
    return _length(x - w), _length(x + w)


@correct("cross_entropy")
def cross_entropy_smoothed_one_hot_rows(logits, target, *, temperature, label_smoothing):
    """One-hot rows are smoothed, and contracted with the log-softmax over both axes."""
    log_prob = log_softmax(logits / temperature)
    targets = np.where(_own(logits, target), 1 - label_smoothing, 0 * label_smoothing) + label_smoothing / len(
        logits[0]
    )
    return -np.tensordot(targets, log_prob, axes=2) / len(logits)


@correct("cross_entropy")
def cross_entropy_mixed_with_every_class(logits, target, *, temperature, label_smoothing):
    """Smoothing as a mixture of the loss at the target and the mean of the losses at each class in turn."""
    n, classes = logits.shape
    scaled = logits * (1 / temperature)
    everywhere = [cross_entropy(scaled, np.full(n, k)) for k in range(classes)]
    return (1 - label_smoothing) * cross_entropy(scaled, target) + label_smoothing * sum(everywhere) / classes


@correct("cross_entropy")
def cross_entropy_softplus_of_the_others(logits, target, *, temperature):
    """A softplus of the log-sum-exp of the other classes minus the target's logit."""
    scaled, own = logits / temperature, _own(logits, target)
    return np.mean(softplus(logsumexp(np.where(own, -np.inf, scaled)) - scaled[own]))


@correct("cross_entropy")
def cross_entropy_measured_from_the_target(logits, target, *, temperature):
    """The target's logit is taken off the row first, and what is left is a log-sum-exp."""
    return np.mean(logsumexp((logits - np.take_along_axis(logits, target[:, None], axis=1)) / temperature))


@correct("cross_entropy")
def cross_entropy_best_class_apart(logits, target, *, temperature):
    """The best class is 1 in the sum of exponentials, so that the others go into a log1p."""
    scaled, rows = logits / temperature, []
    for row, y in zip(scaled, target, strict=True):
        best = int(np.argmax(np.real(row)))
        others = np.delete(row, best)
        rows.append(row[best] - row[y] + np.log1p(np.sum(np.exp(others - row[best]))))
    return sum(rows) / len(rows)


@correct("cross_entropy")
def cross_entropy_sums_of_chunks(logits, target, *, temperature):
    """Chunks of four rows return sums, the last one of fewer, and all are divided by the number of rows at the end."""
    starts = range(0, len(target), 4)
    parts = [np.sum(log_softmax(logits[i : i + 4] / temperature)[_own(logits, target)[i : i + 4]]) for i in starts]
    return -sum(parts) / len(target)


@correct("cross_entropy")
def cross_entropy_classes_padded_to_eights(logits, target, *, temperature):
    """Minus infinity fills the classes up to a multiple of eight."""
    n, classes = logits.shape
    fill = np.full((n, -classes % 8), -np.inf, dtype=logits.dtype)
    return cross_entropy(np.concatenate([logits / temperature, fill], axis=1), target)


@correct("cross_entropy")
def cross_entropy_classes_in_front(logits, target, *, temperature):
    """Logits lie as classes by samples, as a segmentation has them, and the softmax runs along axis 0."""
    log_prob = log_softmax(np.ascontiguousarray(logits.T) / temperature, axis=0)
    return -np.sum(log_prob[target, np.arange(len(target))]) / log_prob.shape[1]


@correct("cross_entropy")
def cross_entropy_grouped_by_target(logits, target, *, temperature):
    """Rows are grouped by their target, the sums of the groups added, and divided by all rows."""
    scaled = logits / temperature
    groups = [scaled[target == k] for k in range(logits.shape[1])]
    totals = [np.sum(logsumexp(group) - group[:, k]) for k, group in enumerate(groups) if len(group)]
    return sum(totals) / len(target)


@correct("cross_entropy")
def cross_entropy_vocabulary_in_tiles(logits, target, *, temperature):
    """The vocabulary comes in tiles of two, whose log-sum-exps are log-added as they come."""
    scaled = logits / temperature
    log_sum = logsumexp(scaled[:, :2])
    for start in range(2, scaled.shape[1], 2):
        log_sum = _plus(log_sum, logsumexp(scaled[:, start : start + 2]))
    return np.mean(log_sum - np.sum(np.where(_own(scaled, target), scaled, 0), axis=1))


@correct("balanced_softmax")
def balanced_softmax_counts_over_the_own(logits, target, class_counts, *, temperature):
    """Logits and log counts are both measured from the target's."""
    log_counts = np.log(class_counts)
    gap = (logits - logits[_own(logits, target)][:, None]) / temperature
    return np.mean(logsumexp(gap + (log_counts - log_counts[target][:, None])))


@correct("balanced_softmax")
def balanced_softmax_prior_of_the_training_set(logits, target, class_counts, *, temperature):
    """Log frequencies are added to the logits: the number of all samples is a constant that cancels."""
    prior = class_counts / np.sum(class_counts)
    return cross_entropy(logits / temperature + np.log(prior), target)


@correct("balanced_softmax")
def balanced_softmax_weighted_exponentials(logits, target, class_counts, *, temperature):
    """Exponentials, measured from the largest, are multiplied by counts that are relative to the target's."""
    scaled = logits / temperature
    top = peak(scaled)
    total = np.sum(np.exp(scaled - top) * (class_counts / class_counts[target][:, None]), axis=1)
    return np.mean(np.log(total) + (top[:, 0] - scaled[_own(logits, target)]))


@correct("balanced_softmax")
def balanced_softmax_offset_before_the_division(logits, target, class_counts, *, temperature):
    """The log counts times the temperature are added before everything is divided by it."""
    return cross_entropy((logits + temperature * np.log(class_counts)) / temperature, target)


@correct("balanced_softmax")
def balanced_softmax_sampling_correction(logits, target, class_counts, *, temperature):
    """The logarithm of how rare a class is, against the most frequent one, is taken off each logit."""
    rarity = np.log(np.max(class_counts)) - np.log(class_counts)
    corrected, own = logits / temperature - rarity, _own(logits, target)
    return np.mean(softplus(logsumexp(np.where(own, -np.inf, corrected)) - corrected[own]))


def _with_target(cosines, own, target):
    return np.where(_own(cosines, target), own[:, None], cosines)


@correct("arcface")
def arcface_sum_of_angles_from_chords(embeddings, class_weights, target, *, margin, scale):
    """Cosine and sine of the target's angle come from the chords to the weight and to its opposite."""
    near, far = _chords(embeddings, class_weights, target)
    own = (far - near) * (far + near) / 4 * np.cos(margin) - near * far / 2 * np.sin(margin)
    return cross_entropy(scale * _with_target(_cosines(embeddings, class_weights), own, target), target)


@correct("arcface")
def arcface_twice_the_half_angle(embeddings, class_weights, target, *, margin, scale):
    """The angle is twice the angle of the two chords, and the cosine is taken of it with the margin."""
    near, far = _chords(embeddings, class_weights, target)
    steep = np.real(near) > np.real(far)
    ratio = np.arctan(np.where(steep, far, near) / np.where(steep, near, far))
    angle = 2 * np.where(steep, np.asarray(np.pi / 2, dtype=np.real(ratio).dtype) - ratio, ratio)
    logits = scale * _with_target(_cosines(embeddings, class_weights), np.cos(angle + margin), target)
    return np.mean(softplus(logsumexp(np.where(_own(logits, target), -np.inf, logits)) - logits[_own(logits, target)]))


@correct("arcface")
def arcface_product_of_two_sines(embeddings, class_weights, target, *, margin, scale):
    """cos(a + m) is cos(a) - 2 sin(m / 2) sin(a + m / 2), and the second term is taken off the cosine."""
    near, far = _chords(embeddings, class_weights, target)
    cosine, sine = (far * far - near * near) / 4, near * far / 2
    drop = 2 * np.sin(margin / 2) * (sine * np.cos(margin / 2) + cosine * np.sin(margin / 2))
    cosines = _cosines(embeddings, class_weights)
    return cross_entropy(scale * (cosines - np.where(_own(cosines, target), drop[:, None], 0)), target)


@correct("arcface", settings={"fallback": "linear"})
def arcface_linear_past_the_threshold(embeddings, class_weights, target, *, margin, scale):
    """Where the target's cosine is not above cos(pi - m), a line with m sin(pi - m) is used."""
    near, far = _chords(embeddings, class_weights, target)
    cosine, sine = (far - near) * (far + near) / 4, near * far / 2
    fine = np.real(cosine) >= np.cos(np.pi - np.real(margin))
    line = cosine - margin * np.sin(np.pi - margin)
    own = np.where(fine, cosine * np.cos(margin) - sine * np.sin(margin), line)
    return cross_entropy(scale * _with_target(_cosines(embeddings, class_weights), own, target), target)


@correct("cosface")
def cosface_margin_on_all_others(embeddings, class_weights, target, *, margin, scale):
    """The margin is added to every other class, where it could have been taken off the target."""
    cosines = _cosines(embeddings, class_weights)
    return cross_entropy(scale * np.where(_own(cosines, target), cosines, cosines + margin), target)


@correct("cosface")
def cosface_margin_as_a_bias_of_the_odds(embeddings, class_weights, target, *, margin, scale):
    """A softplus of the log-odds against the target, with the scaled margin as a bias."""
    logits = scale * _cosines(embeddings, class_weights)
    own = _own(logits, target)
    return np.mean(softplus(logsumexp(np.where(own, -np.inf, logits)) - logits[own] + scale * margin))


@correct("cosface")
def cosface_weights_as_columns(embeddings, class_weights, target, *, margin, scale):
    """Weights lie as features by classes and are normalized along axis 0; the margin is subtracted in place."""
    columns = unit(np.ascontiguousarray(class_weights.T), axis=0)
    cosines = unit(embeddings) @ columns
    logits = cosines + 0 * (cosines[0, 0] + margin + scale)
    logits[np.arange(len(target)), target] -= margin
    return cross_entropy(logits * scale, target)


@correct("cosface")
def cosface_gaps_of_cosines(embeddings, class_weights, target, *, margin, scale):
    """Cosines are measured from the target's before they are scaled, and the target is 0 among them."""
    x, w = unit(embeddings), unit(class_weights)
    gaps = np.einsum("nd,nkd->nk", x, w - w[target][:, None]) + margin
    return np.mean(logsumexp(scale * np.where(_own(gaps, target), 0, gaps)))


@correct("alignment")
def alignment_power_of_the_square(x, y, *, exponent):
    """Squared distances by an einsum, to half the power, and 0 where a pair coincides."""
    gap = unit(x) - unit(y)
    square = np.einsum("nd,nd->n", gap, gap)
    apart = np.real(square) > 0
    return np.mean(np.where(apart, np.where(apart, square, 1) ** (exponent / 2), 0))


@correct("alignment")
def alignment_feature_after_feature(x, y, *, exponent):
    """Features come first: the squares are added one after the other, and the root is taken before the power."""
    x, y = unit(x.T, axis=0), unit(y.T, axis=0)
    square = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
    apart = np.real(square) > 0
    return np.sum(np.sqrt(square[apart]) ** exponent) / len(square)


@correct("alignment")
def alignment_exponential_of_the_logarithm(x, y, *, exponent):
    """The power is an exponential of the logarithm, pair by pair, and pairs that coincide are passed over."""
    squares = [np.sum(gap * gap) for gap in unit(x) - unit(y)]
    rows = [np.exp(exponent / 2 * np.log(square)) for square in squares if np.real(square) > 0]
    return sum(rows, 0 * exponent) / len(x)


@correct("uniformity")
def uniformity_log_sum_of_log_sums(x, *, t):
    """A log-sum-exp for each row without itself, then one over the rows, over ordered pairs."""
    x = unit(x)
    n = len(x)
    square = np.sum((x[:, None] - x) ** 2, axis=2)
    rows = logsumexp(np.where(np.eye(n, dtype=bool), -np.inf, -t * square))
    return logsumexp(rows) - np.log(np.asarray(n * (n - 1), dtype=np.real(rows).dtype))


@correct("uniformity")
def uniformity_pairs_above_the_diagonal(x, *, t):
    """Indices above the diagonal list each pair once; the mean is of potentials relative to the largest."""
    x = unit(x)
    i, j = np.triu_indices(len(x), k=1)
    potential = -t * np.sum((x[i] - x[j]) ** 2, axis=1)
    return peak(potential)[0] + np.log(np.mean(np.exp(potential - peak(potential))))


@correct("uniformity")
def uniformity_rolled_against_itself(x, *, t):
    """The set is rolled by 1, 2, ... and compared with itself row by row, which gives every ordered pair."""
    x = unit(x)
    shifts = [-t * np.sum((x - np.roll(x, k, axis=0)) ** 2, axis=1) for k in range(1, len(x))]
    return logsumexp(np.concatenate(shifts)) - np.log(np.asarray(len(x) * len(shifts), dtype=np.real(x).dtype))


@correct("uniformity")
def uniformity_log_added_point_by_point(x, *, t):
    """Each new point is compared with those before it, and log-added to what there is."""
    x = unit(x)
    total = None
    for k in range(1, len(x)):
        new = logsumexp(-t * np.sum((x[:k] - x[k]) ** 2, axis=1))
        total = new if total is None else _plus(total, new)
    return total - np.log(np.asarray(len(x) * (len(x) - 1) // 2, dtype=np.real(x).dtype))
