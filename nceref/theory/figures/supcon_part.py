"""The contrastive part of the PaCo loss against P_sup, as far as probabilities allow (source 004)."""

import numpy as np

from nceref.output.figure import BLUE, GRAY, SHADE, Figure, point, write
from nceref.theory.tables.paco_optimum import (
    ALPHA,
    BALANCED,
    center_probability,
    expected_positives,
    pair_probability,
)

POSITIVES = expected_positives(BALANCED)
LARGEST = center_probability(ALPHA, POSITIVES)


def supcon(p):
    """L_supcon(p) = -K log(r / (1 - p)) with each positive at r = alpha / (1 + alpha K); in nats."""
    return -POSITIVES * np.log(pair_probability(ALPHA, POSITIVES) / (1 - p))


def data():
    """The curve where K r <= 1 - p, and the least value that K equal positives can have."""
    probabilities = np.linspace(0, LARGEST, 181)
    return {
        "probability": probabilities,
        "supcon": supcon(probabilities),
        "floor": np.array([POSITIVES * np.log(POSITIVES)]),
    }


def draw(canvas, data):
    """The curve down to the floor, and where it cannot go on."""
    axes = canvas.subplots()
    last, floor = data["probability"][-1], data["floor"][0]
    axes.axvspan(last, 1, facecolor=SHADE, edgecolor="none")
    axes.plot([0, last], [floor, floor], color=GRAY, linestyle=":", linewidth=0.9)
    axes.plot(data["probability"], data["supcon"], color=BLUE)
    point(axes, (last, floor))
    axes.set(xlim=(0, 1), ylim=(14, 29), xlabel="$P_\\mathrm{sup}$ = p", ylabel="$L_\\mathrm{supcon}$ (nats)")
    write(axes, f"K log K = {floor:.2f}", (0, floor), GRAY, offset=(4, -10))
    write(axes, f"p = {last:.4f}", (last, floor), offset=(-4, -11), ha="right")
    write(
        axes, "impossible:\nthe positives\nwould exceed\n1 − p", ((last + 1) / 2, 23.5), GRAY, ha="center", va="center"
    )


FIGURE = Figure(
    name="supcon-part",
    title="L_supcon falls with P_sup, but only to K log K",
    caption=(
        "L_supcon(p) = −K log(r / (1 − p)) for α = 0.05 and K = 8.192, with each positive at its best probability "
        "r = α / (1 + α K) = 0.0355. It falls with p, as the source says, but only to K log K at p = 1 / (1 + α K): "
        "beyond, K positives of probability r would add up to more than the 1 − p that is left for all samples, and "
        "the formula would fall below the least possible value."
    ),
    source="Source 004, section on the balanced setting; the range is derived here",
    claims=("PC-14",),
    data=data,
    draw=draw,
)
