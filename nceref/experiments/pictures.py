"""The figures of the experiments: measures against temperature, and pulls and accuracies along a tail."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nceref.experiments.contrast import NEIGHBORS, PROBE_ACCURACY, TOLERANCE, UNIFORMITY
from nceref.experiments.experiment import Results
from nceref.experiments.tail import HEAD, MIDDLE, TAIL
from nceref.output.figure import BLACK, BLUE, COLORS, GRAY, GREEN, PURPLE, VERMILLION, name_ends, write


def temperatures(canvas: Any, results: Results, *, curve: Mapping[str, float], apart: str) -> None:
    """Tolerance against uniformity, and both and the accuracies against temperature; the setting `apart` stands apart.

    `curve` has settings and their temperatures, in rising order; the setting `apart` has none.
    """
    panels = canvas.subplots(4, 1, height_ratios=(1.4, 1, 1, 1))
    _trade(panels[0], results, curve, apart)
    at = np.array(list(curve.values()))
    # The setting that has no temperature stands to the right of the curve, clear of its last point.
    right = float(at.max()) * 2.2
    shown = ((UNIFORMITY, BLUE),), ((TOLERANCE, VERMILLION),), ((PROBE_ACCURACY, GREEN), (NEIGHBORS, PURPLE))
    for axes, members in zip(panels[1:], shown, strict=True):
        ends = []
        for measure, color in members:
            mean, spread = _moments(results, [*curve, apart], measure)
            bars = {"color": color, "marker": "o", "markersize": 3, "linewidth": 1, "capsize": 1.5}
            axes.errorbar(at, mean[:-1], spread[:-1], **bars)
            axes.errorbar([right], mean[-1:], spread[-1:], markerfacecolor="white", **bars)
            ends.append((float(mean[-1]), measure, color))
        name = "accuracy" if len(members) > 1 else members[0][0]
        axes.set(xscale="log", xlim=(at.min() / 1.3, right * 1.3), ylabel=name)
        axes.margins(y=0.1)
        if len(members) > 1:
            name_ends(axes, ends, least=0.16)
    panels[3].set_xlabel(f"temperature; open points: {apart}")


def _trade(axes: Any, results: Results, curve: Mapping[str, float], apart: str) -> None:
    """Tolerance against uniformity, a point for each temperature."""
    x, y = (_moments(results, [*curve, apart], measure)[0] for measure in (UNIFORMITY, TOLERANCE))
    axes.plot(x[:-1], y[:-1], color=GRAY, linewidth=0.8)
    axes.plot(x[:-1], y[:-1], "o", color=BLUE, markersize=3)
    axes.plot(x[-1:], y[-1:], "o", color=BLUE, markersize=3.5, markerfacecolor="white")
    for at, name in zip(zip(x, y, strict=True), (*(f"{t:g}" for t in curve.values()), apart), strict=True):
        write(axes, name, at, offset=(3, 3))
    axes.margins(x=0.12, y=0.2)
    axes.set(xlabel="uniformity, by temperature", ylabel=TOLERANCE)


def tails(canvas: Any, results: Results, *, names: Sequence[str]) -> None:
    """Pull by class count, and accuracy of head, middle and tail, of the named settings."""
    above, below = canvas.subplots(2, 1)
    counts, ends = np.array(results.classes, float), []
    colors = (BLACK, *COLORS)
    for name, color in zip(names, colors, strict=False):
        pulls = np.array(results.curves[name])
        # Losses have pulls of different sizes: only the shape along the classes is compared.
        relative = np.mean(pulls / np.nanmean(pulls, axis=1, keepdims=True), axis=0)
        above.plot(counts, relative, color=color, linewidth=1, marker="o", markersize=2)
        ends.append((float(relative[0]), name, color))
    above.set(xscale="log", yscale="log", xlabel="training samples of the class", ylabel="pull of an anchor / mean",
              xlim=(counts.min() / 1.1, counts.max() * 1.1))  # fmt: skip
    ticks = (0.25, 0.5, 1, 2, 4)
    above.set_yticks(ticks, map(str, ticks))
    above.set_yticks((), minor=True)
    name_ends(above, ends, least=0.1)
    last = []
    # Side by side, so that bars can be told apart.
    for name, color, aside in zip(names, colors, np.linspace(-0.06, 0.06, len(names)), strict=False):
        mean, spread = zip(*(_moments(results, [name], m) for m in (HEAD, MIDDLE, TAIL)), strict=True)
        bars = {"color": color, "marker": "o", "markersize": 3, "linewidth": 1, "capsize": 1.5}
        below.errorbar(np.arange(3) + aside, np.ravel(mean), np.ravel(spread), **bars)
        last.append((float(mean[-1][0]), name, color))
    below.set(xlim=(-0.15, 2.15), ylabel="accuracy", xlabel="third of the classes, by frequency")
    below.set_xticks(range(3), ("head", "middle", "tail"))
    name_ends(below, last, least=0.1)


def _moments(results: Results, names: Sequence[str], measure: str) -> tuple[Any, Any]:
    """Mean and standard deviation over the seeds, 0 for one seed."""
    values = np.array([results.values[name][measure] for name in names])
    spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    return values.mean(axis=1), spread
