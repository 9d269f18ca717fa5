"""Supervised contrastive losses and PaCo by other algorithms and in other layouts, all of them correct."""

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, peak, softplus, unit


def _dot(embeddings, temperature):
    z = unit(embeddings)
    return z @ z.T / temperature


def _scores(embeddings, temperature):
    s = _dot(embeddings, temperature)
    return np.where(np.eye(len(s), dtype=bool), -np.inf, s)


def _positives(labels):
    return (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)


def _count(mask, like, axis=1):
    """Number of true entries in the format of the scores."""
    return np.sum(mask, axis=axis).astype(np.real(like).dtype)


def _masked_mean(x, mask):
    return np.sum(np.where(mask, x, 0), axis=1) / _count(mask, x)


def _plus(a, b):
    """Logarithm of e^a + e^b."""
    return np.where(np.real(a) > np.real(b), a, b) + softplus(np.where(np.real(a) > np.real(b), b - a, a - b))


@correct("supcon_out")
def supcon_out_counts_of_the_column(embeddings, labels, *, temperature):
    """Each pair is divided by the number of positives of its second row, which has the same label and so as many."""
    positives, log_prob = _positives(labels), log_softmax(_scores(embeddings, temperature))
    shares = np.where(positives, log_prob, 0) / _count(positives, log_prob, axis=0)
    return -np.sum(shares) / len(labels)


@correct("supcon_out")
def supcon_out_denominator_of_the_positive(embeddings, labels, *, temperature):
    """The denominator is that of the positive and not of the anchor, which changes the order of one sum only."""
    positives, scores = _positives(labels), _scores(embeddings, temperature)
    return -np.mean(_masked_mean(scores - logsumexp(scores, axis=0), positives))


@correct("supcon_out")
def supcon_out_one_class_at_a_time(embeddings, labels, *, temperature):
    """For each label the rows that have it are taken out, against all rows."""
    scores, total = _scores(embeddings, temperature), 0
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        log_prob = log_softmax(scores[inside])[:, inside]
        others = ~np.eye(len(inside), dtype=bool)
        total = total - np.sum(log_prob[others]) / (len(inside) - 1)
    return total / len(labels)


@correct("supcon_out")
def supcon_out_streamed_by_threes(embeddings, labels, *, temperature):
    """Candidates come three at a time: the sum of exponentials is rescaled whenever a larger logit comes."""
    z, n = unit(embeddings), len(labels)
    top, total, level = np.full((n, 1), -np.inf, dtype=np.real(z).dtype), 0, 0
    positives = _positives(labels)
    for start in range(0, n, 3):
        block = slice(start, start + 3)
        s = z @ z[block].T / temperature
        own = np.arange(n)[:, None] == np.arange(n)[block]
        s = np.where(own, -np.inf, s)
        higher = np.where(peak(s) > top, peak(s), top)
        total = total * np.exp(top - higher) + np.sum(np.exp(s - higher), axis=1, keepdims=True)
        level = level + np.sum(np.where(positives[:, block], s, 0), axis=1)
        top = higher
    return np.mean((top + np.log(total))[:, 0] - level / _count(positives, z))


@correct("supcon_out")
def supcon_out_by_matrices_of_labels(embeddings, labels, *, temperature):
    """Positives are the product of the one-hot label matrix with its transpose, minus the identity."""
    scores = _dot(embeddings, temperature)
    dtype = np.real(scores).dtype
    one_hot = (labels[:, None] == np.unique(labels)).astype(dtype)
    own = np.eye(len(labels), dtype=dtype)
    same, others = one_hot @ one_hot.T - own, 1 - own
    shifted = scores - peak(np.where(own > 0, -np.inf, scores))
    log_sum = np.log(np.sum(np.exp(np.where(own > 0, 0, shifted)) * others, axis=1, keepdims=True))
    return -np.mean(np.sum(same * (shifted - log_sum), axis=1) / np.sum(same, axis=1))


@correct("supcon_out")
def supcon_out_against_the_mean_positive(embeddings, labels, *, temperature):
    """The logits of the positives are averaged in feature space, by a product with their mean embedding."""
    z, positives = unit(embeddings), _positives(labels)
    shares = positives / _count(positives, z)[:, None]
    level = np.einsum("nd,nd->n", z, shares @ z) / temperature
    return np.mean(logsumexp(_scores(embeddings, temperature)) - level)


@correct("supcon_out")
def supcon_out_half_the_squared_distance(embeddings, labels, *, temperature):
    """Logits are minus half the squared distance: on the sphere the cosine minus a constant, which cancels."""
    z = unit(embeddings)
    scores = -np.sum((z[:, None] - z) ** 2, axis=2) / (2 * temperature)
    scores = np.where(np.eye(len(z), dtype=bool), -np.inf, scores)
    return -np.mean(_masked_mean(log_softmax(scores), _positives(labels)))


@correct("supcon_out")
def supcon_out_diagonal_cut_by_a_reshape(embeddings, labels, *, temperature):
    """A shift by one and a reshape leave n rows of n - 1 entries, without the diagonal."""

    def cut(x):
        n = len(x)
        return x.reshape(-1)[1:].reshape(n - 1, n + 1)[:, :-1].reshape(n, n - 1)

    log_prob = log_softmax(cut(_dot(embeddings, temperature)))
    return -np.mean(_masked_mean(log_prob, cut(labels[:, None] == labels)))


@correct("supcon_out")
def supcon_out_rows_in_the_order_of_labels(embeddings, labels, *, temperature):
    """The batch is sorted by label first: the positives of a row are then the rest of a block."""
    order = np.argsort(labels, kind="stable")
    scores = _scores(embeddings[order], temperature)
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels[order][0] - 1))
    total = 0
    for start, end in zip(starts, [*starts[1:], len(labels)], strict=True):
        for i in range(start, end):
            own = [j for j in range(start, end) if j != i]
            total = total + logsumexp(scores[i]) - np.mean(scores[i, own])
    return total / len(labels)


@correct("supcon_out")
def supcon_out_softplus_of_each_pair(embeddings, labels, *, temperature):
    """Each pair is a softplus of the log-sum-exp of all other candidates minus its own logit."""
    scores, positives = _dot(embeddings, temperature), _positives(labels)
    everyone, rows = np.arange(len(labels)), []
    for i in everyone:
        pairs = []
        for p in np.flatnonzero(positives[i]):
            rest = everyone[(everyone != i) & (everyone != p)]
            pairs.append(softplus(logsumexp(scores[i, rest]) - scores[i, p]) if len(rest) else 0)
        rows.append(sum(pairs) / len(pairs))
    return sum(rows) / len(rows)


@correct("supcon_out")
def supcon_out_list_of_pairs(embeddings, labels, *, temperature):
    """The pairs are listed by their two indices, and added up at their anchor."""
    i, j = np.nonzero(_positives(labels))
    log_prob = log_softmax(_scores(embeddings, temperature))[i, j]
    rows = np.zeros(len(labels), dtype=log_prob.dtype)
    np.add.at(rows, i, log_prob)
    return -np.mean(rows / np.bincount(i).astype(np.real(rows).dtype))


@correct("supcon_out")
def supcon_out_log_adds_in_a_row(embeddings, labels, *, temperature):
    """The log-sum-exp is built up by one log-add after the other, and never as a sum of exponentials."""
    scores, n = _dot(embeddings, temperature), len(labels)
    rows = np.arange(n)
    log_sum = scores[rows, (rows + 1) % n]
    for shift in range(2, n):
        log_sum = _plus(log_sum, scores[rows, (rows + shift) % n])
    return np.mean(log_sum - _masked_mean(scores, _positives(labels)))


@correct("supcon_out")
def supcon_out_length_after_the_product(embeddings, labels, *, temperature):
    """Products of the raw rows are divided by the product of the lengths, and soft targets go into a cross-entropy."""
    lengths = np.sqrt(np.sum(embeddings * embeddings, axis=1))
    scores = embeddings @ embeddings.T / lengths[:, None] / lengths / temperature
    log_prob = log_softmax(np.where(np.eye(len(scores), dtype=bool), -np.inf, scores))
    positives = _positives(labels)
    targets = positives / _count(positives, scores)[:, None]
    return -np.sum(np.where(positives, targets * np.where(positives, log_prob, 0), 0)) / len(labels)


@correct("supcon_out", settings={"no_positive": "skip"})
def supcon_out_only_rows_with_company(embeddings, labels, *, temperature):
    """Rows whose label nobody else has are left out as anchors, though they stay as candidates."""
    positives, log_prob = _positives(labels), log_softmax(_scores(embeddings, temperature))
    kept = np.any(positives, axis=1)
    return -np.mean(_masked_mean(log_prob[kept], positives[kept]))


@correct("supcon_out", settings={"no_positive": "zero"})
def supcon_out_zero_for_rows_alone(embeddings, labels, *, temperature):
    """A row whose label nobody else has adds 0, and the sum is divided by all rows."""
    positives, log_prob = _positives(labels), log_softmax(_scores(embeddings, temperature))
    total = sum(-np.mean(row[own]) for row, own in zip(log_prob, positives, strict=True) if own.any())
    return total / len(labels)


@correct("supcon_out", settings={"form": "sum"})
def supcon_out_all_pairs_of_a_row_added(embeddings, labels, *, temperature):
    """The sum over positives without a division, as the number of positives times the log-sum-exp minus logits."""
    scores, positives = _scores(embeddings, temperature), _positives(labels)
    level = np.sum(np.where(positives, scores, 0), axis=1)
    return np.mean(_count(positives, scores) * logsumexp(scores) - level)


@correct("supcon_in")
def supcon_in_odds_of_the_negatives(embeddings, labels, *, temperature):
    """A softplus of the log-odds of negatives against positives, plus the logarithm of the number of positives."""
    scores, rows = _dot(embeddings, temperature), []
    for i, own in enumerate(_positives(labels)):
        others = labels != labels[i]
        odds = softplus(logsumexp(scores[i, others]) - logsumexp(scores[i, own])) if others.any() else 0
        rows.append(odds + np.log(_count(own, scores, axis=0)))
    return sum(rows) / len(rows)


@correct("supcon_in")
def supcon_in_count_among_the_logits(embeddings, labels, *, temperature):
    """The logarithm of the number of positives is taken off their logits, in the numerator only."""
    scores, positives = _scores(embeddings, temperature), _positives(labels)
    lowered = scores - np.log(_count(positives, scores))[:, None]
    return np.mean(logsumexp(scores) - logsumexp(np.where(positives, lowered, -np.inf)))


@correct("supcon_in")
def supcon_in_mean_of_log_probabilities(embeddings, labels, *, temperature):
    """A log-mean-exp over the positives of the log-softmax."""
    positives, log_prob = _positives(labels), log_softmax(_scores(embeddings, temperature))
    rows = [
        logsumexp(row[own]) - np.log(_count(own, row, axis=0)) for row, own in zip(log_prob, positives, strict=True)
    ]
    return -sum(rows) / len(rows)


@correct("supcon_in")
def supcon_in_one_log_sum_a_class(embeddings, labels, *, temperature):
    """One log-sum-exp for each class first; the denominator is the log-sum-exp of those."""
    scores, classes = _scores(embeddings, temperature), np.unique(labels)
    by_class = np.stack([logsumexp(scores[:, labels == label]) for label in classes], axis=1)
    own = np.searchsorted(classes, labels)
    size = np.bincount(own)[own].astype(np.real(scores).dtype)
    return cross_entropy(by_class, own) + np.mean(np.log(size - 1))


@correct("supcon_in", settings={"no_positive": "skip"})
def supcon_in_best_positive_and_the_rest(embeddings, labels, *, temperature):
    """Numerator and denominator are measured from the anchor's best positive; rows without one are skipped."""
    scores, rows = _scores(embeddings, temperature), []
    for s, own in zip(scores, _positives(labels), strict=True):
        if own.any():
            best = s[own][np.argmax(np.real(s[own]))]
            rows.append(logsumexp(s - best) - np.log(np.mean(np.exp(s[own] - best))))
    return sum(rows) / len(rows)


def _paco(embeddings, labels, centers, temperature):
    """Logits of samples and centers, and who of them is positive."""
    own = labels[:, None] == np.arange(len(centers))
    return _scores(embeddings, temperature), embeddings @ centers.T, _positives(labels), own


@correct("paco")
def paco_weights_beside_each_other(embeddings, labels, centers, *, alpha, temperature):
    """One matrix of logits, centers first, and one of weights, and the sum of their product."""
    contrast, center, positives, own = _paco(embeddings, labels, centers, temperature)
    log_prob = log_softmax(np.concatenate([center, contrast], axis=1))
    kept = np.concatenate([own, positives], axis=1)
    weights = np.concatenate([np.where(own, 1, 0 * alpha), np.where(positives, alpha, 0 * alpha)], axis=1)
    return -np.mean(np.sum(weights * np.where(kept, log_prob, 0), axis=1))


@correct("paco")
def paco_two_denominators_log_added(embeddings, labels, centers, *, alpha, temperature):
    """The log-sum-exps of samples and of centers are log-added, and the positives are taken off one by one."""
    contrast, center, positives, _ = _paco(embeddings, labels, centers, temperature)
    everyone = _plus(logsumexp(contrast), logsumexp(center))
    rows = []
    for i in range(len(labels)):
        row = everyone[i] - center[i, labels[i]]
        for p in np.flatnonzero(positives[i]):
            row = row + alpha * (everyone[i] - contrast[i, p])
        rows.append(row)
    return sum(rows) / len(rows)


@correct("paco", settings={"form": "normalized"})
def paco_soft_labels_that_add_up_to_one(embeddings, labels, centers, *, alpha, temperature):
    """A cross-entropy to soft labels: alpha and 1, divided by their sum."""
    contrast, center, positives, own = _paco(embeddings, labels, centers, temperature)
    mass = 1 + alpha * _count(positives, contrast)
    log_sum = logsumexp(np.concatenate([contrast, center], axis=1))
    level = alpha * np.sum(np.where(positives, contrast, 0), axis=1) + np.sum(np.where(own, center, 0), axis=1)
    return np.mean(log_sum - level / mass)
