"""How near positives are, and how evenly rows are spread."""

import numpy as np

from twelve_losses._parts import unit


def alignment_loss(x, y, exponent=2.0):
    """The mean distance of positives, to a power."""
    return np.mean(np.sum((unit(x) - unit(y)) ** 2, axis=1) ** (exponent / 2))


def uniformity_loss(x, t=2.0):
    """The logarithm of the mean Gaussian potential of pairs."""
    u = unit(x)
    first, second = np.triu_indices(len(u), 1)
    square_distances = np.sum((u[first] - u[second]) ** 2, axis=1)
    return np.log(np.mean(np.exp(-t * square_distances)))
