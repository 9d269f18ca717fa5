"""Losses of two views of each sample, which are one another's positives among all rows."""

import numpy as np

from twelve_losses._parts import cross_entropy, log_sum_exp, unit, unit_backward


def _logits(z, temperature):
    """Of all rows with all rows, none with itself."""
    logits = z @ z.T / temperature
    np.fill_diagonal(logits, -np.inf)
    return logits


def nt_xent_loss(z1, z2, temperature):
    """The loss of SimCLR. Returns the value and the gradients."""
    rows, n = np.concatenate([z1, z2]), len(z1)
    z = unit(rows)
    value, slopes = cross_entropy(_logits(z, temperature), np.roll(np.arange(2 * n), n))
    by_rows = unit_backward(rows, (slopes + slopes.T) @ z / temperature)
    by_temperature = -np.sum(slopes * (z @ z.T)) / temperature**2
    return value, {"z1": by_rows[:n], "z2": by_rows[n:], "temperature": by_temperature}


def decoupled_loss(z1, z2, temperature):
    """NT-Xent without the positive in the denominator."""
    n = len(z1)
    logits = _logits(unit(np.concatenate([z1, z2])), temperature)
    rows, partners = np.arange(2 * n), np.roll(np.arange(2 * n), n)
    positives = logits[rows, partners]
    logits[rows, partners] = -np.inf
    return np.mean(log_sum_exp(logits) - positives)
