"""Losses of two views by other algorithms and in other layouts."""

import math

import numpy as np

from mutants.bug import correct, cross_entropy, log_softmax, logsumexp, peak, softplus, stop, unit


def _add(a, b):
    """log(e^a + e^b)."""
    return logsumexp(np.stack([a, b], axis=-1))


def _without(values, *indices):
    keep = np.ones(len(values), dtype=bool)
    keep[list(indices)] = False
    return values[keep]


def _clamped(estimate, floor):
    return np.where(np.real(estimate) > np.real(floor), estimate, floor)


@correct("nt_xent")
def nt_xent_from_squared_distances(z1, z2, *, temperature):
    """On the sphere a cosine is 1 - d^2 / 2; the constant cancels in the softmax."""
    z = unit(np.concatenate([z1, z2]))
    s = -np.sum((z[:, None, :] - z[None, :, :]) ** 2, axis=2) / (2 * temperature)
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, s)
    return cross_entropy(s, np.roll(np.arange(len(z)), len(z1)))


@correct("nt_xent")
def nt_xent_blocks_by_einsum(z1, z2, *, temperature):
    """Four blocks, one einsum each, and labels that count from 0 for both views."""
    a, b = unit(z1), unit(z2)
    aa, ab, bb = (np.einsum("nd,md->nm", x, y) / temperature for x, y in ((a, a), (a, b), (b, b)))
    own, labels = np.eye(len(a), dtype=bool), np.arange(len(a))
    first = np.concatenate([ab, np.where(own, -np.inf, aa)], axis=1)
    second = np.concatenate([ab.T, np.where(own, -np.inf, bb)], axis=1)
    return (cross_entropy(first, labels) + cross_entropy(second, labels)) / 2


@correct("nt_xent")
def nt_xent_anchor_after_anchor(z1, z2, *, temperature):
    """A loop over anchors, each against the list of all other rows."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    total = 0
    for i in range(2 * n):
        s = z @ z[i] / temperature
        total = total + logsumexp(_without(s, i)) - s[(i + n) % (2 * n)]
    return total / (2 * n)


@correct("nt_xent")
def nt_xent_normalized_once_in_vain(z1, z2, *, temperature):
    """Rows are normalized before the call and inside it: the second time changes nothing."""
    z = unit(unit(np.concatenate([z1, z2])))
    rows = np.arange(len(z))
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    return -np.mean(log_softmax(s)[rows, (rows + len(z1)) % len(z)])


@correct("nt_xent")
def nt_xent_smallest_number_as_mask(z1, z2, *, temperature):
    """The diagonal is filled with the most negative number of the format."""
    z = unit(np.concatenate([z1, z2]))
    fill = float(np.finfo(z.real.dtype).min)
    s = np.where(np.eye(len(z), dtype=bool), fill, z @ z.T / temperature)
    return cross_entropy(s, np.roll(np.arange(len(z)), len(z1)))


@correct("nt_xent")
def nt_xent_mask_of_a_tutorial(z1, z2, *, temperature):
    """Cosines of all pairs, -9e15 on the diagonal before the division, and a rolled mask for the positives."""
    z = np.concatenate([z1, z2])
    lengths = np.sqrt(np.sum(z * z, axis=1))
    own = np.eye(len(z), dtype=bool)
    cosines = np.where(own, -9e15, z @ z.T / (lengths[:, None] * lengths)) / temperature
    positive = cosines[np.roll(own, len(z1), axis=0)]
    return np.mean(-positive + logsumexp(cosines))


@correct("nt_xent")
def nt_xent_rows_of_pairs(z1, z2, *, temperature):
    """Views in turn, pair after pair, with the partner found by flipping the last bit of the index."""
    z = unit(np.stack([z1, z2], axis=1).reshape(-1, z1.shape[1]))
    rows = np.arange(len(z))
    s = z @ z.T / temperature
    positive = s[rows, rows ^ 1]
    others = np.where((rows[:, None] == rows) | (rows[:, None] == rows ^ 1), -np.inf, s)
    if len(z) == 2:
        return 0 * np.mean(positive)
    return np.mean(softplus(logsumexp(others) - positive))


@correct("dcl")
def dcl_two_sums_joined(z1, z2, *, temperature):
    """Log-sum-exps of the own and of the other view, joined as logarithms of a sum."""
    z1, z2 = unit(z1), unit(z2)
    own = np.eye(len(z1), dtype=bool)

    def one_way(a, b):
        same, cross = (np.where(own, -np.inf, a @ c.T / temperature) for c in (a, b))
        return _add(logsumexp(same), logsumexp(cross)) - np.sum(a * b, axis=1) / temperature

    return np.mean(np.concatenate([one_way(z1, z2), one_way(z2, z1)]))


@correct("dcl")
def dcl_anchor_after_anchor(z1, z2, *, temperature):
    """A loop over anchors; two rows are left out of the list of candidates."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    rows = []
    for i in range(2 * n):
        partner = i + n if i < n else i - n
        s = np.sum(z * z[i], axis=1) / temperature
        rows.append(logsumexp(_without(s, i, partner)) - s[partner])
    return np.mean(np.stack(rows))


@correct("dcl")
def dcl_negatives_through_a_reshape(z1, z2, *, temperature):
    """Negatives picked by a boolean matrix that is tiled from the identity."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    s = z @ z.T / temperature
    negatives = s[~np.tile(np.eye(n, dtype=bool), (2, 2))].reshape(2 * n, 2 * n - 2)
    positive = np.concatenate([np.diagonal(s, n), np.diagonal(s, -n)])
    return np.mean(logsumexp(negatives)) - np.mean(positive)


@correct("dclw")
def dclw_masses_over_their_mean(z1, z2, *, temperature, sigma):
    """Masses relative to the largest, over their mean; the positive is weighted before it is divided by T."""
    a, b = unit(z1), unit(z2)
    cosine = np.sum(a * b, axis=1)
    detached = stop(cosine)
    mass = np.exp((detached - np.max(detached)) / stop(sigma))
    pull = (2 - mass / np.mean(mass)) * cosine / temperature
    own = np.eye(len(a), dtype=bool)
    ways = ((a, b), (b, a))
    push = [logsumexp(np.where(np.tile(own, 2), -np.inf, x @ np.concatenate([x, y]).T / temperature)) for x, y in ways]
    return np.mean((push[0] + push[1]) / 2 - pull)


@correct("dclw")
def dclw_count_times_softmax(z1, z2, *, temperature, sigma):
    """2 - N softmax, as in the first public implementation, both ways averaged."""
    a, b = unit(z1), unit(z2)
    weight = 2 - len(a) * np.exp(log_softmax(stop(np.sum(a * b, axis=1)) / stop(sigma)))
    hidden = np.tile(np.eye(len(a), dtype=bool), 2)

    def one_way(x, y):
        cross = x @ y.T
        logits = np.concatenate([x @ x.T, cross], axis=1) / temperature
        return np.mean(-np.diagonal(cross) / temperature * weight + logsumexp(np.where(hidden, -np.inf, logits)))

    return 0.5 * (one_way(a, b) + one_way(b, a))


@correct("dclw")
def dclw_weight_in_the_log(z1, z2, *, temperature, sigma):
    """The share of a pair in the batch is a difference of logarithms."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    s = z @ z.T
    scaled = stop(np.diagonal(s, n)) / stop(sigma)
    weight = 2 - np.exp(scaled - (logsumexp(scaled) - math.log(n)))
    hidden = np.tile(np.eye(n, dtype=bool), (2, 2))
    push = logsumexp(np.where(hidden, -np.inf, s / temperature))
    pull = np.concatenate([weight, weight]) * np.concatenate([np.diagonal(s, n), np.diagonal(s, -n)])
    return np.mean(push) - np.mean(pull) / temperature


@correct("debiased")
def debiased_relative_to_the_row(z1, z2, *, temperature, positive_prior):
    """All exponentials are relative to the largest of their row."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    s = z @ z.T / temperature
    negatives = s[~np.tile(np.eye(n, dtype=bool), (2, 2))].reshape(2 * n, -1)
    positive = np.concatenate([np.diagonal(s, n), np.diagonal(s, -n)])
    top = peak(np.concatenate([positive[:, None], negatives], axis=1))[:, 0]
    count, pos = negatives.shape[1], np.exp(positive - top)
    estimate = np.sum(np.exp(negatives - top[:, None]), axis=1) - positive_prior * count * pos
    kept = _clamped(estimate / (1 - positive_prior), count * np.exp(-1 / temperature - top))
    return np.mean(np.log(pos + kept) - (positive - top))


@correct("debiased")
def debiased_quotients_of_the_positive(z1, z2, *, temperature, positive_prior):
    """Everything is divided by the positive first, and the loss is log1p of what is kept, or a softplus of its log."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    rows = []
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        s = z @ z[i] / temperature
        count, gap = 2 * n - 2, logsumexp(_without(s, i, partner)) - s[partner]
        floor = math.log(count) - 1 / temperature - s[partner]
        # log of the estimate over the positive, where there is one.
        share = 1 - positive_prior * count * np.exp(np.where(np.real(gap) > -600, -gap, 600))
        inside = np.real(share) > 0
        estimate = gap + np.log(np.where(inside, share, 1)) - np.log(1 - positive_prior)
        above = inside and np.real(estimate) > np.real(floor)
        rows.append(softplus(np.asarray(estimate if above else floor)))
    return np.mean(np.stack(rows))


@correct("debiased")
def debiased_mean_form(z1, z2, *, temperature, positive_prior):
    """The estimate of one negative, a mean that is clamped at exp(-1 / T), times their number."""
    a, b = unit(z1), unit(z2)
    own = np.eye(len(a), dtype=bool)
    count, rows = 2 * len(a) - 2, []
    for x, y in ((a, b), (b, a)):
        positive = np.sum(x * y, axis=1) / temperature
        logits = np.concatenate([np.where(own, -np.inf, x @ w.T / temperature) for w in (x, y)], axis=1)
        top = np.maximum(peak(logits)[:, 0], np.real(positive))
        pos = np.exp(positive - top)
        mean = np.sum(np.exp(logits - top[:, None]), axis=1) / count
        g = _clamped((mean - positive_prior * pos) / (1 - positive_prior), np.exp(-1 / temperature - top))
        rows.append(np.log(pos + count * g) - positive + top)
    return np.mean(np.concatenate(rows))


@correct("hcl")
def hcl_two_log_sum_exps(z1, z2, *, temperature, positive_prior, concentration):
    """The weighted sum is n e^(lse((1 + b) s) - lse(b s))."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    s = z @ z.T / temperature
    negatives = s[~np.tile(np.eye(n, dtype=bool), (2, 2))].reshape(2 * n, -1)
    positive = np.concatenate([np.diagonal(s, n), np.diagonal(s, -n)])
    count = negatives.shape[1]
    mass = math.log(count) + logsumexp((1 + concentration) * negatives) - logsumexp(concentration * negatives)
    top = np.maximum(np.real(mass), np.real(positive))
    pos = np.exp(positive - top)
    estimate = (np.exp(mass - top) - positive_prior * count * pos) / (1 - positive_prior)
    kept = _clamped(estimate, count * np.exp(-1 / temperature - top))
    return np.mean(np.log(pos + kept) - (positive - top))


@correct("hcl")
def hcl_softmax_as_importance(z1, z2, *, temperature, positive_prior, concentration):
    """Importances are n times a softmax of the negatives, through which the gradient flows."""
    a, b = unit(z1), unit(z2)
    own = np.eye(len(a), dtype=bool)
    count, rows = 2 * len(a) - 2, []
    for x, y in ((a, b), (b, a)):
        positive = np.sum(x * y, axis=1) / temperature
        negatives = np.concatenate([(x @ w.T / temperature)[~own].reshape(len(a), -1) for w in (x, y)], axis=1)
        weight = count * np.exp(log_softmax(concentration * negatives))
        top = np.maximum(peak(negatives)[:, 0], np.real(positive))
        pos = np.exp(positive - top)
        mass = np.sum(weight * np.exp(negatives - top[:, None]), axis=1)
        estimate = (mass - positive_prior * count * pos) / (1 - positive_prior)
        rows.append(np.log(pos + _clamped(estimate, count * np.exp(-1 / temperature - top))) - positive + top)
    return (np.mean(rows[0]) + np.mean(rows[1])) / 2


@correct("hcl")
def hcl_anchor_after_anchor(z1, z2, *, temperature, positive_prior, concentration):
    """A loop over anchors, with importances that are divided by their mean."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    count, total = 2 * n - 2, 0
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        s = np.einsum("nd,d->n", z, z[i]) / temperature
        negatives = _without(s, i, partner)
        top = max(np.max(np.real(negatives)), np.real(s[partner]))
        importance = np.exp(concentration * (negatives - np.max(np.real(negatives))))
        mass = np.sum(importance / np.mean(importance) * np.exp(negatives - top))
        pos, floor = np.exp(s[partner] - top), count * np.exp(-1 / temperature - top)
        estimate = (mass - positive_prior * count * pos) / (1 - positive_prior)
        kept = estimate if np.real(estimate) > np.real(floor) else floor
        total = total + np.log(pos + kept) - (s[partner] - top)
    return total / (2 * n)
