"""Panels of the directions of the features, all that the loss of source 003 sees: a ring for each quadrant."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nceref.output.figure import BLACK, BLUE, GRAY, ORANGE, SMALL, VERMILLION, write
from nceref.training.quadrants.replay import Run
from nceref.training.quadrants.samples import LABELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Array = npt.NDArray[Any]

_CLASSES = ((BLUE, "o", 1.0), (ORANGE, "s", 0.87), (BLACK, "^", 0.74), (VERMILLION, "D", 0.61))
"""Color, near that of the source, shape, and radius of the ring for each quadrant."""
_SIZE = 2.4
"""The size of a mark, in points."""
_LIMITS = (-1.1, 1.1)
_MANY = 10
COLUMNS = 3
"""The number of panels in a row."""


def data(runs: Sequence[Run]) -> dict[str, Array]:
    """The data of a drawing of runs: their temperatures and features."""
    return {
        "temperature": np.array([run.temperature for run in runs]),
        "features": np.array([run.features for run in runs], dtype=np.float64),
    }


def panels(canvas: "Canvas", features: Sequence[Array], titles: Sequence[str], *, counted: bool = False) -> None:
    """A panel for each set of features (100, 2), three in a row, with one legend.

    In the middle of each stands the mean length. With `counted`, points of one quadrant that cover each other have
    their number beside them.
    """
    columns = min(COLUMNS, len(features))
    grid = canvas.subplots(-(-len(features) // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, points, title in zip(grid, features, titles, strict=False):
        panel(axes, points)
        axes.text(0, 0, f"{np.hypot(*points.T).mean():.2f}", ha="center", va="center", fontsize=SMALL)
        if counted:
            _count(axes, points)
        axes.set_title(title)
    for axes in grid[len(features) :]:
        axes.remove()
    legend(canvas, "number: mean length")


def panel(axes: "Axes", features: Array) -> list[Any]:
    """Directions of the features, each class on its ring; returns the marks of each class."""
    axes.set(xlim=_LIMITS, ylim=_LIMITS, aspect="equal")
    axes.axis("off")
    turn = np.linspace(0, 2 * np.pi, 181)
    for *_, radius in _CLASSES:
        axes.plot(radius * np.cos(turn), radius * np.sin(turn), color=GRAY, linewidth=0.3)
    return [
        axes.plot(*places(features, label).T, shape, color=color, markersize=_SIZE, markeredgewidth=0)[0]
        for label, (color, shape, _) in enumerate(_CLASSES)
    ]


def places(features: Array, label: int) -> Array:
    """The places of the features of a class on its ring; one without a direction stands in the middle."""
    own = features[label == LABELS]
    lengths = np.hypot(*own.T)[:, None]
    directions: Array = np.divide(own, lengths, out=np.zeros_like(own), where=lengths > 0)
    return _CLASSES[label][2] * directions


def _count(axes: "Axes", features: Array) -> None:
    """Numbers beyond the rings, one beyond the other where several quadrants have one direction."""
    numbers: Counter[int] = Counter()
    for label, (color, _, radius) in enumerate(_CLASSES):
        for (x, y), count in covered(places(features, label)):
            # Directions that are almost the same share a line.
            turn = round(12 * np.arctan2(y, x) / np.pi)
            out = (1.2 + 0.27 * numbers[turn]) / radius
            write(axes, str(count), (out * x, out * y), color, ha="center", va="center")
            numbers[turn] += 1


def covered(points: Array) -> list[tuple[tuple[float, float], int]]:
    """Places on which ten or more points lie, to a fiftieth, and how many they are."""
    places, which = np.unique(np.round(points * 50) / 50, axis=0, return_inverse=True)
    counts = np.bincount(which.ravel())
    return [((float(x), float(y)), int(n)) for (x, y), n in zip(places, counts, strict=True) if n >= _MANY]


def legend(canvas: "Canvas", *more: str) -> None:
    """Name the quadrants below the panels, and say what a panel shows."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker=shape, color=color, markersize=4, markeredgewidth=0, label=f"quadrant {i}")
        for i, (color, shape, _) in enumerate(_CLASSES, 1)
    ]
    title = "; ".join(("one scale: angle is direction, ring is quadrant", *more))
    canvas.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL, handletextpad=0.1,
        columnspacing=0.8, title=title, title_fontsize=SMALL,
    )  # fmt: skip
