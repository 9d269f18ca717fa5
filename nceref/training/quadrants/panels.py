"""Panels of the features by class, as source 003 draws them: the square with both axes, a color for each quadrant."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nceref.output.figure import BLACK, BLUE, ORANGE, SMALL, VERMILLION, write
from nceref.training.quadrants.replay import Run
from nceref.training.quadrants.samples import LABELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Array = npt.NDArray[Any]

_CLASSES = ((BLUE, "o", 3.3), (ORANGE, "s", 2.3), (BLACK, "^", 2.9), (VERMILLION, "D", 1.7))
"""Color, near that of the source, shape and size for each quadrant: the smaller lie on the larger."""
_LIMITS = (-1.1, 1.1)
_MANY = 10
COLUMNS = 3
"""In a row."""


def data(runs: Sequence[Run]) -> dict[str, Array]:
    """What is drawn of runs: their temperatures and features."""
    return {
        "temperature": np.array([run.temperature for run in runs]),
        "features": np.array([run.features for run in runs], dtype=np.float64),
    }


def panels(canvas: "Canvas", features: Sequence[Array], titles: Sequence[str], *, counted: bool = False) -> None:
    """A panel for each set of features (100, 2), three in a row, with one legend.

    With `counted`, points of one quadrant that cover each other have their number beside them.
    """
    columns = min(COLUMNS, len(features))
    grid = canvas.subplots(-(-len(features) // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, points, title in zip(grid, features, titles, strict=False):
        panel(axes, points)
        if counted:
            _count(axes, points)
        axes.set_title(title)
    for axes in grid[len(features) :]:
        axes.remove()
    legend(canvas)


def panel(axes: "Axes", features: Array) -> list[Any]:
    """Features by class on the square, with both axes as arrows; returns the marks of each class."""
    axes.set(xlim=_LIMITS, ylim=_LIMITS, xticks=(-1, 1), yticks=(-1, 1), aspect="equal")
    axes.set_xticklabels(("−1", "1"))
    axes.set_yticklabels(("−1", "1"))
    for spine in axes.spines.values():
        spine.set_visible(False)
    arrow = {"arrowstyle": "->", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
    for ends in (((-1.1, 0), (1.1, 0)), ((0, -1.1), (0, 1.1))):
        axes.annotate("", xytext=ends[0], xy=ends[1], arrowprops=arrow)
    return [
        axes.plot(*features[label == LABELS].T, shape, color=color, markersize=size, markeredgewidth=0,
                  clip_on=False, zorder=4 - size / 4)[0]
        for label, (color, shape, size) in enumerate(_CLASSES)
    ]  # fmt: skip


def _count(axes: "Axes", features: Array) -> None:
    """Numbers toward the horizontal axis, one beyond the other where several quadrants meet."""
    numbers: Counter[tuple[float, float]] = Counter()
    for label, (color, _, _) in enumerate(_CLASSES):
        for (x, y), count in covered(features[label == LABELS]):
            # Places that are almost the same share a column.
            corner, inward = (round(x, 1), round(y, 1)), 1 if y < 0 else -1
            side = {"ha": "right" if x > 0 else "left", "va": "bottom" if y < 0 else "top"}
            write(axes, str(count), (x, y), color, offset=(0, inward * (6 + 8 * numbers[corner])), **side)
            numbers[corner] += 1


def covered(points: Array) -> list[tuple[tuple[float, float], int]]:
    """Places on which ten or more points lie, to a fiftieth, and how many they are."""
    places, which = np.unique(np.round(points * 50) / 50, axis=0, return_inverse=True)
    counts = np.bincount(which.ravel())
    return [((float(x), float(y)), int(n)) for (x, y), n in zip(places, counts, strict=True) if n >= _MANY]


def legend(canvas: "Canvas") -> None:
    """Name the quadrants below the panels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker=shape, color=color, markersize=4, markeredgewidth=0, label=f"quadrant {i}")
        for i, (color, shape, _) in enumerate(_CLASSES, 1)
    ]
    canvas.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL, handletextpad=0.1,
        columnspacing=0.8,
    )  # fmt: skip
