"""Uniformity, tolerance and accuracy against temperature, as Wang & Liu published them."""

import numpy as np

from nceref.output.figure import COLORS, Figure, name_ends
from nceref.theory.tables.contrastive_vs_simple import LOSSES, PAPER

# The numbers are those of Table 1 of the paper, digits as printed; they stand in this package's table of them.
MEASURES = ("accuracy in percent", "minus L_uniform", "tolerance")
SIMPLE = LOSSES.index(("simple", None))
MARKERS = "osD^"
SIZES = (6.0, 4.2, 3.2, 3.0)
"""Sizes of the markers, in points: data sets that agree lie on each other, the smaller on the larger."""


def data():
    """A row for each data set, a column for each temperature and one for the simple loss; nothing is computed."""
    temperatures = np.array([t for name, t in LOSSES[:SIMPLE]])
    printed = np.array([[[float(x) for x in row[: SIMPLE + 1]] for row in rows] for rows in PAPER.values()])
    return {"temperature": temperatures} | {name: printed[:, i] for i, name in enumerate(MEASURES)}


def draw(canvas, data):
    """A panel for each measure; the simple loss, called the limit of high temperature, stands apart."""
    panels = canvas.subplots(3, 1, sharex=True)
    tau, apart = data["temperature"], 1.75
    labels = ("uniformity\n(−L, t = 2)", "tolerance", "accuracy (%)")
    for axes, name, label in zip(panels, (MEASURES[1], MEASURES[2], MEASURES[0]), labels, strict=True):
        axes.set(xscale="log", xlim=(0.06, 2.0), ylabel=label)
        for row, color, marker, size in zip(data[name], COLORS, MARKERS, SIZES, strict=False):
            axes.plot(tau, row[:-1], color=color, linewidth=size / 5, marker=marker, markersize=size, markeredgewidth=0)
            axes.plot([tau[-1], apart], row[-2:], color=color, linewidth=0.5, linestyle=":")
            axes.plot(apart, row[-1], color=color, marker=marker, markersize=size, markerfacecolor="white")
        axes.margins(y=0.1)
        name_ends(axes, zip(data[name][:, -1], PAPER, COLORS, strict=False), least=0.115)
    panels[2].set_xlabel("temperature τ")
    panels[2].set_xticks((*tau, apart), ("0.07", "0.3", "0.7", "1", "simple\nloss"))
    panels[2].set_xticks((), minor=True)


FIGURE = Figure(
    name="contrastive-vs-simple",
    title="The contrastive loss is most accurate at τ = 0.3",
    caption=(
        "The contrastive loss, points as published, of networks trained elsewhere; lines only guide the eye. On "
        "every data set uniformity falls and tolerance rises with the temperature, and the accuracy of this loss is "
        "best in between, at τ = 0.3; over the hardest negatives alone, which is not shown, it is best at 0.7 or 1. "
        "The simple loss (open points), called the limit of high temperature, breaks the trend of the tolerance on "
        "SVHN."
    ),
    source="Wang & Liu 2021, Table 1, after its Figures 4 to 7; measured, not computed here",
    claims=("WL-4", "WL-19"),
    data=data,
    draw=draw,
    height=4.2,
    aliases=("published-metrics",),
)
