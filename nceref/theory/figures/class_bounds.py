"""Lower bound of the loss of a large and a small class against alpha, in both forms of the loss."""

import numpy as np

from nceref.output.figure import COLORS, GRAY, SMALL, Figure, ink, write
from nceref.theory.tables.class_bounds import POSITIVES, bounds, normalized_gap, widest_alpha
from nceref.theory.tables.paco_optimum import CLASS_SIZES

ALPHAS = np.geomspace(1e-3, 1, 121)
WIDEST = widest_alpha(POSITIVES[0], POSITIVES[-1])


def data():
    """Both bounds by alpha, a row for each class of ImageNet-LT; and where the normalized ones are farthest apart."""
    infima = np.array([[bounds(float(alpha), k)[:2] for alpha in ALPHAS] for k in POSITIVES], dtype=float)
    return {
        "alpha": ALPHAS,
        "sum": infima[..., 0],
        "normalized": infima[..., 1],
        "widest": np.array([WIDEST]),
    }


def draw(canvas, data):
    """A panel for each form."""
    panels = canvas.subplots(2, 1, sharex=True)
    names = [f"{n} images" for n in CLASS_SIZES]
    for axes, form, top in zip(panels, ("sum", "normalized"), (50, 5.2), strict=True):
        axes.set(xscale="log", xlim=(1e-3, 1), ylim=(0, top), ylabel="bound (nats)")
        for curve, color in zip(data[form], COLORS, strict=False):
            axes.plot(data["alpha"], curve, color=color)
    panels[0].set_title("sum over the positives, as printed")
    panels[1].set_title("divided by the total weight, as in the code")
    panels[1].axvline(data["widest"][0], color=GRAY, linestyle=":", linewidth=0.9)
    write(panels[1], "widest gap", (data["widest"][0], 5), GRAY, offset=(-3, -7), ha="right")
    # In the first panel the smallest classes lie too close for names beside them.
    legend = panels[0].legend(panels[0].get_lines(), names, loc="upper left", frameon=False, fontsize=SMALL)
    for text, color in zip(legend.get_texts(), COLORS, strict=False):
        text.set_color(ink(color))
    for curve, name, color in zip(data["normalized"], names, COLORS, strict=False):
        write(panels[1], name, (1, curve[-1]), color, offset=(-2, 2), ha="right")
    panels[1].set_xlabel("weight α of a positive")
    panels[1].set(xticks=(1e-3, 1e-2, 1e-1, 1), xticklabels=("0.001", "0.01", "0.1", "1"))


FIGURE = Figure(
    name="class-bounds",
    title="Lower bound of the loss by class",
    caption=(
        "Infimum of the PaCo loss for classes of ImageNet-LT (queue of 8192) against α. In the sum form, as printed "
        "in the paper, the bounds of large and small classes approach each other as α decreases. In the form that the "
        "authors' code computes, divided by 1 + α K, they are farthest apart at 1 / √(K_head K_tail) "
        f"({normalized_gap(WIDEST):.3f} nats), of all α up to 1, and approach each other on both sides of it."
    ),
    source="Source 004, motivation and rebalance; bounds derived here",
    claims=("PC-4", "PC-5", "PC-6"),
    data=data,
    draw=draw,
    height=3.8,
)
