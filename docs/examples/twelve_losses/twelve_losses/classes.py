"""Losses of labeled rows."""

import numpy as np

from twelve_losses._parts import cross_entropy, log_sum_exp, unit


def supervised_contrastive_loss(features, labels, temperature):
    """SupCon: the mean over the positives stands outside of the logarithm."""
    z = unit(features)
    logits = z @ z.T / temperature
    same = labels[:, None] == labels
    np.fill_diagonal(same, val=False)
    np.fill_diagonal(logits, -np.inf)
    chances = logits - log_sum_exp(logits)[:, None]
    return -np.mean(np.where(same, chances, 0).sum(axis=1) / same.sum(axis=1))


def balanced_softmax_loss(logits, target, class_counts):
    """Cross-entropy whose logits know how often each class occurs."""
    return cross_entropy(logits + np.log(class_counts), target)[0]


def _cosines(embeddings, class_weights, target):
    """All of them, and the place of each row's own class."""
    return unit(embeddings) @ unit(class_weights).T, (np.arange(len(target)), target)


def cosface_loss(embeddings, class_weights, target, margin=0.35, scale=64.0):
    """A margin is taken from the cosine of the own class."""
    cosines, own = _cosines(embeddings, class_weights, target)
    cosines[own] -= margin
    return cross_entropy(scale * cosines, target)[0]


def arcface_loss(embeddings, class_weights, target, margin=0.5, scale=64.0):
    """A margin is added to the angle of the own class; beyond pi, training needs a slope that goes on falling."""
    cosines, own = _cosines(embeddings, class_weights, target)
    cosine = np.clip(cosines[own], -1, 1)
    inside = np.cos(np.arccos(cosine) + margin)
    cosines[own] = np.where(cosine > -np.cos(margin), inside, cosine - margin * np.sin(margin))
    return cross_entropy(scale * cosines, target)[0]
