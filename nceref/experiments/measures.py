"""Measures of features: a probe and neighbors that read labels off, uniformity, tolerance, and effective rank."""

from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses

Array = npt.NDArray[Any]

DECAY = 1e-3
"""Weight of half the squared coefficients of the probe, beside the mean cross-entropy."""


def unit(z: Array) -> Array:
    """Rows of length 1, float64."""
    z = np.asarray(z, np.float64)
    return np.asarray(z / np.linalg.norm(z, axis=1, keepdims=True))


def probed(z: Array, labels: Array, test: Array) -> Array:
    """Labels of test rows by a linear probe: logistic regression on standardized features, to convergence.

    `z` are the training features.
    """
    from scipy.optimize import minimize

    center, scale = z.mean(axis=0), z.std(axis=0)
    # A feature that is constant on the training rows is only centered.
    scale = np.where(scale > 0, scale, 1)
    x, y = ((rows - center) / scale for rows in (z, test))
    shape = (int(labels.max()) + 1, z.shape[1] + 1)
    x, y = (np.column_stack([rows, np.ones(len(rows))]) for rows in (x, y))
    # The last column is the bias, which is not penalized: it holds the class frequencies.
    held = np.r_[np.full(z.shape[1], DECAY), 0]

    def objective(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(shape)
        value, grads = losses.cross_entropy.value_and_grad(x @ w.T, labels)
        return float(value) + float((held * w * w).sum()) / 2, (grads["logits"].T @ x + held * w).ravel()

    minimum = minimize(objective, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return np.asarray((y @ minimum.x.reshape(shape).T).argmax(axis=1))


def neighbor_accuracy(z: Array, labels: Array, test: Array, test_labels: Array, k: int = 5) -> float:
    """Share of test rows whose k most similar training rows vote for their label; a tie goes to the lower label.

    The rows of `z` and `test` have length 1.
    """
    # A stable sort: equally similar rows count in the order of the data, on every platform.
    nearest = np.argsort(-(test @ z.T), axis=1, kind="stable")[:, :k]
    votes = np.eye(int(labels.max()) + 1)[labels[nearest]].sum(axis=1)
    return float(np.mean(votes.argmax(axis=1) == test_labels))


def uniformity(z: Array) -> float:
    """Minus L_uniform at t = 2: 0 if all rows are one, larger the more evenly they spread."""
    return -float(losses.uniformity(z, t=2.0))


def tolerance(z: Array, labels: Array) -> float:
    """Mean similarity of two rows of equal label, a row with itself left out."""
    same = labels[:, None] == labels
    np.fill_diagonal(same, val=False)
    return float((z @ z.T)[same].mean())


def effective_rank(z: Array) -> float:
    """Exponential of the entropy of the singular values of the centered rows, as shares of their sum."""
    # p log p goes to 0 with p: singular values of 0 are left out.
    s = np.linalg.svd(z - z.mean(axis=0), compute_uv=False)
    shares = s[s > 0] / s.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def class_accuracy(predicted: Array, labels: Array) -> Array:
    """Share of right predictions within each class."""
    return np.bincount(labels, predicted == labels) / np.bincount(labels)


def slope(counts: Array, sizes: Array) -> float:
    """Slope of the least-squares line through log size against log count.

    `counts` are the training samples of each class. A class whose size is NaN is left out.
    """
    seen = np.isfinite(sizes)
    return float(np.polyfit(np.log(counts[seen]), np.log(sizes[seen]), 1)[0])
