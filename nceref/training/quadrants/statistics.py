"""Numbers behind the pictures of the features: losses, spread, uniformity on the circle and in the square."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses
from nceref.training.quadrants.samples import LABELS

Array = npt.NDArray[Any]

WINDOW = 1000
"""Steps at each end that the loss is averaged over."""
_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""The rounding of a cosine: features that saturate are equal, their cosines nearly so."""
_SIDE = 40
"""The points on a side of the lattice that stands for the uniform law on the square."""


@dataclass(frozen=True)
class Statistics:
    """Numbers about 100 features; on the circle means after scaling to length 1.

    Attributes
    ----------
    std : tuple of float
        Along both axes.
    alignment : float
        Mean squared distance on the circle of two samples of a class.
    uniformity : float
        On the circle, with t = 2.
    cosine_within, cosine_between : float
        Means over pairs of a class and of two classes.
    square_distance : float
        Energy distance to a lattice of 40 x 40 cells on the square [-1, 1]^2; 0.0059 for the samples of seed 0.
    radius : float
        Mean length.
    neighbor_accuracy : float
        Share whose nearest other feature by cosine has the same class; of several equally near ones, the share of them.
    """

    std: tuple[float, float]
    alignment: float
    uniformity: float
    cosine_within: float
    cosine_between: float
    square_distance: float
    radius: float
    neighbor_accuracy: float


@dataclass(frozen=True)
class StepStatistics:
    """Numbers about the steps of a run, over those that were done.

    Attributes
    ----------
    loss_first, loss_last : float
        Mean over the first and the last 1000 steps.
    positive_on_top : float
        Share of the steps at which no candidate was more similar than the positive.
    """

    loss_first: float
    loss_last: float
    positive_on_top: float


def of_features(features: Array) -> Statistics:
    """The numbers about features (100, 2) in the order of `LABELS`."""
    f = np.asarray(features, dtype=np.float64)
    length = np.linalg.norm(f, axis=1)
    same = LABELS[:, None] == LABELS
    first, second = np.nonzero(np.triu(same, 1))
    cosine = _cosines(f, length)
    # No feature is its own neighbor: 1 - 4 is below every cosine.
    apart = cosine - 4 * np.eye(len(f))
    nearest = apart >= apart.max(axis=1, keepdims=True) - _ROUNDING
    along_x, along_y = (float(s) for s in f.std(axis=0))
    return Statistics(
        std=(along_x, along_y),
        alignment=float(losses.alignment(f[first], f[second])),
        uniformity=float(losses.uniformity(f, t=2.0)),
        cosine_within=float(cosine[first, second].mean()),
        cosine_between=float(cosine[~same].mean()),
        square_distance=square_distance(f),
        radius=float(length.mean()),
        neighbor_accuracy=float(np.mean(same.mean(axis=1, where=nearest))),
    )


def _cosines(f: Array, length: Array) -> Array:
    """Cosines of all pairs."""
    unit = f / length[:, None]
    return np.asarray(unit @ unit.T)


def of_steps(values: Array, hits: Array) -> StepStatistics:
    """The numbers about the losses and hits of the steps that were done.

    There is at least one loss, in nats; a hit is a step in which the positive had the largest cosine.
    """
    # In float64, since losses of a run may be float32.
    first, last = (float(np.mean(part, dtype=np.float64)) for part in (values[:WINDOW], values[-WINDOW:]))
    return StepStatistics(first, last, float(np.mean(hits)))


def square_distance(points: Array) -> float:
    """Energy distance 2 E|X - Y| - E|X - X'| - E|Y - Y'| of points X to the lattice Y.

    It is 0 only if the points are spread as the lattice is.
    """
    # Middles of the cells: each point stands for the same area.
    middles = (np.arange(_SIDE) + 0.5) * (2 / _SIDE) - 1
    lattice = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    return float(2 * _mean_distance(points, lattice) - _mean_distance(points, points) - _within_lattice())


def _mean_distance(a: Array, b: Array) -> float:
    return float(np.hypot(*(a[:, None] - b).transpose(2, 0, 1)).mean())


@cache
def _within_lattice() -> float:
    """Mean distance of two lattice points: every difference, as often as it occurs."""
    gap = np.arange(1 - _SIDE, _SIDE)
    often = _SIDE - np.abs(gap)
    return float((np.hypot(gap[:, None], gap) * np.outer(often, often)).sum() * (2 / _SIDE) / _SIDE**4)
