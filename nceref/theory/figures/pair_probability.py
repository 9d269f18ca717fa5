"""The best probability of a true pair against the number of positives, without centers and with them."""

import numpy as np

from nceref.output.figure import BLACK, COLORS, Figure, write
from nceref.theory.tables.class_bounds import bounds

ALPHAS = (1.0, 0.1, 0.05, 0.01)
POSITIVES = np.geomspace(1, 100, 101)


def data():
    """Pair probability by number of positives, a row for each alpha; without centers first."""
    rows = [[bounds(alpha, float(k))[2] for k in POSITIVES] for alpha in (None, *ALPHAS)]
    return {"positives": POSITIVES, "alpha": np.array(ALPHAS), "probability": np.array(rows)}


def draw(canvas, data):
    """A curve for each alpha, named where they are farthest apart."""
    axes = canvas.subplots()
    axes.set(xscale="log", yscale="log", xlim=(1, 100), ylim=(3e-3, 1.3))
    names = ("no centers: 1 / K", *(f"α = {alpha:g}" for alpha in ALPHAS))
    for curve, color, name in zip(data["probability"], (BLACK, *COLORS), names, strict=False):
        axes.plot(data["positives"], curve, color=color)
        offset = (10, -1) if name.startswith("no") else (4, -16 if name == "α = 1" else 3)
        write(axes, name, (1, curve[0]), color, offset=offset)
    axes.set(xlabel="number K of positives", ylabel="probability of each positive")
    axes.set(xticks=(1, 10, 100), xticklabels=("1", "10", "100"))


FIGURE = Figure(
    name="pair-probability",
    title="A smaller α lowers the probability of every pair",
    caption=(
        "Softmax probability of each of K positives with which the loss approaches its infimum: 1 / K without "
        "centers, 1 / (1/α + K) beside a center of weight 1. Beside negatives no cosines attain it. A smaller α "
        "makes large and small classes more alike; it also makes every pair less probable."
    ),
    source="Source 004, motivation and rebalance",
    claims=("PC-3", "PC-5", "PC-6"),
    data=data,
    draw=draw,
)
