"""What the losses share: rows of length 1, and the softmax of rows, each with its derivative."""

import numpy as np


def lengths(x):
    """The length of each row, as a column."""
    return np.linalg.norm(x, axis=1, keepdims=True)


def unit(x):
    """Each row scaled to length 1."""
    return x / lengths(x)


def unit_backward(x, gradient):
    """From the gradient by ``unit(x)`` to that by ``x``."""
    u = unit(x)
    return (gradient - u * np.sum(u * gradient, axis=1, keepdims=True)) / lengths(x)


def log_sum_exp(logits):
    """Of each row; a shift by the maximum keeps it from overflowing."""
    top = logits.max(axis=1, keepdims=True)
    return np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0]


def softmax(logits):
    """Of each row."""
    return np.exp(logits - log_sum_exp(logits)[:, None])


def cross_entropy(logits, classes):
    """The mean over the rows, and its gradient."""
    n = len(logits)
    rows = np.arange(n)
    gradient = softmax(logits)
    gradient[rows, classes] -= 1
    return np.mean(log_sum_exp(logits) - logits[rows, classes]), gradient / n
