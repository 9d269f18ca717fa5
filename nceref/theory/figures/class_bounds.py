"""Lower bound of the loss of a large and a small class against alpha, in both forms of the loss."""

import numpy as np

from nceref.output.figure import COLORS, GRAY, Figure, name_ends, write
from nceref.theory.tables.class_bounds import POSITIVES, bounds, normalized_gap, widest_alpha
from nceref.theory.tables.paco_optimum import CLASS_SIZES

ALPHAS = np.geomspace(1e-3, 1, 121)
WIDEST = widest_alpha(POSITIVES[0], POSITIVES[-1])


def data():
    """The two bounds by alpha, a row for each class of ImageNet-LT; the alpha at which normalized ones differ most."""
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
    # From the least to the largest bound the sums go over five powers of ten.
    panels[0].set(yscale="log", ylim=(1e-3, 1e3))
    panels[1].set(ylim=(0, 5))
    for axes, form in zip(panels, ("sum", "normalized"), strict=True):
        axes.set(xscale="log", xlim=(1e-3, 1), ylabel="bound (nats)")
        for curve, color in zip(data[form], COLORS, strict=False):
            axes.plot(data["alpha"], curve, color=color)
        name_ends(axes, zip(data[form][:, -1], names, COLORS, strict=False), least=0.12)
    panels[0].set_title("sum over the positives, as printed")
    panels[1].set_title("divided by the total weight, as in the code")
    widest = data["widest"][0]
    ends = [float(np.interp(widest, data["alpha"], data["normalized"][k])) for k in (0, -1)]
    arrow = {"arrowstyle": "<->", "color": GRAY, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    panels[1].annotate("", (widest, ends[0]), (widest, ends[1]), arrowprops=arrow)
    text = f"widest gap,\n{ends[0] - ends[1]:.2f} nats\nat α = {widest:.3f}"
    write(panels[1], text, (widest, 3), GRAY, offset=(-4, 0), ha="right", va="center")
    panels[1].set_xlabel("weight α of a positive")
    panels[1].set(xticks=(1e-3, 1e-2, 1e-1, 1), xticklabels=("0.001", "0.01", "0.1", "1"))


FIGURE = Figure(
    name="class-bounds",
    title="A smaller α can widen the gap between classes",
    caption=(
        "Infimum of the PaCo loss for classes of ImageNet-LT (queue of 8192) against α. In the sum form, as printed "
        "in the paper, the difference between large and small classes shrinks as α decreases. In the form that the "
        "authors' code computes, divided by 1 + α K, they are farthest apart at 1 / √(K_head K_tail) "
        f"({normalized_gap(WIDEST):.3f} nats), of all α up to 1, and approach each other on both sides of it."
    ),
    source="Source 004, motivation and rebalance; bounds derived here",
    claims=("PC-4", "PC-5", "PC-6"),
    data=data,
    draw=draw,
    height=3.8,
)
