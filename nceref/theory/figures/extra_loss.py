"""The part of the PaCo loss that divides the probability between centers and samples (source 004)."""

import numpy as np

from nceref.output.figure import BLUE, Figure, point, write
from nceref.theory.tables.paco_optimum import ALPHA, BALANCED, center_probability, expected_positives, lowest_extra

PROBABILITIES = np.linspace(0.01, 0.99, 197)


def extra(p, pull):
    """L_extra(p) = -log p - alpha K log(1 - p), `pull` being alpha K; in nats."""
    return -np.log(p) - pull * np.log(1 - p)


def data():
    """The curve for one of 1000 equal classes, and its minimum."""
    positives = expected_positives(BALANCED)
    return {
        "probability": PROBABILITIES,
        "extra loss": extra(PROBABILITIES, ALPHA * positives),
        "minimum": np.array([center_probability(ALPHA, positives), lowest_extra(ALPHA, positives)]),
    }


def draw(canvas, data):
    """Draw one curve and its minimum."""
    axes = canvas.subplots()
    axes.plot(data["probability"], data["extra loss"], color=BLUE)
    best, lowest = data["minimum"]
    point(axes, (best, lowest))
    write(
        axes, f"minimum {lowest:.4f}\nat $P_\\mathrm{{sup}}$ = {best:.4f}", (best, lowest), offset=(0, 12), ha="center"
    )
    axes.set(xlim=(0, 1), ylim=(0, 4), yticks=range(5), xlabel="$P_\\mathrm{sup}$", ylabel="$L_\\mathrm{extra}$ (nats)")


FIGURE = Figure(
    name="extra-loss",
    title="L_extra is least at P_sup = 0.71",
    caption=(
        "L_extra(p) = −log p − α K log(1 − p), p = P_sup being the probability of all centers together, for "
        "α = 0.05 and K = 8.192 positives (a queue of 8192, one of 1000 equal classes): α K = 0.4096. It is strictly "
        "convex, with its minimum at 1 / (1 + α K) = 0.7094, which the source reads from its curve as 0.71. For "
        "classes of another size the minimum lies elsewhere."
    ),
    source="Source 004, section on the balanced setting",
    claims=("PC-9", "PC-11"),
    data=data,
    draw=draw,
)
