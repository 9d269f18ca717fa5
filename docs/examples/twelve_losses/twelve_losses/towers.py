"""Losses of two towers: row i of one belongs to row i of the other."""

import numpy as np

from twelve_losses._parts import cross_entropy, log_sum_exp, unit, unit_backward


def info_nce_loss(queries, keys, temperature):
    """Each query has its key among all keys. Returns the value and the gradients."""
    q, k = unit(queries), unit(keys)
    similarities = q @ k.T
    value, slopes = cross_entropy(similarities / temperature, np.arange(len(q)))
    return value, {
        "queries": unit_backward(queries, slopes @ k / temperature),
        "keys": unit_backward(keys, slopes.T @ q / temperature),
        "temperature": -np.sum(slopes * similarities) / temperature**2,
    }


LARGEST_SCALE = 100


def clip_loss(image, text, logit_scale):
    """The mean of both directions, the scale capped as the paper has it. Returns the value and the gradients."""
    a, b = unit(image), unit(text)
    scale = min(logit_scale, LARGEST_SCALE)
    similarities, own = a @ b.T, np.arange(len(a))
    of_images, by_rows = cross_entropy(scale * similarities, own)
    of_texts, by_columns = cross_entropy(scale * similarities.T, own)
    slopes = (by_rows + by_columns.T) / 2
    return (of_images + of_texts) / 2, {
        "image": unit_backward(image, scale * slopes @ b),
        "text": unit_backward(text, scale * slopes.T @ a),
        "logit_scale": np.sum(slopes * similarities) * (logit_scale <= LARGEST_SCALE),
    }


def sigmoid_loss(image, text, logit_scale, logit_bias):
    """Every pair is a decision of its own."""
    logits = logit_scale * unit(image) @ unit(text).T + logit_bias
    signs = 2 * np.eye(len(image), dtype=logits.dtype) - 1
    return np.logaddexp(0, -signs * logits).sum() / len(image)


def momentum_loss(queries, keys, temperature):
    """InfoNCE times twice the temperature, so that the gradient does not grow as the temperature falls."""
    logits = unit(queries) @ unit(keys).T / temperature
    return 2 * temperature * np.mean(log_sum_exp(logits) - np.diag(logits))
