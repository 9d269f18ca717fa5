"""A temperature pictured as a width: an illustration, as the source says of its own."""

import numpy as np

from nceref.output.figure import COLORS, GRAY, SMALL, Figure, ink, point, write

TEMPERATURES = (0.05, 0.2, 0.5, 1.0)
POSITIONS = np.linspace(-3, 3, 241)


def weight(x, temperature):
    """The law of Boltzmann, exp(-E / tau), for the energy E = x^2 / 2: a normal curve of variance tau over its peak."""
    return np.exp(-x * x / (2 * temperature))


def data():
    """A row for each temperature."""
    curves = np.array([weight(POSITIONS, t) for t in TEMPERATURES])
    return {"position": POSITIONS, "temperature": np.array(TEMPERATURES), "weight": curves}


def draw(canvas, data):
    """A curve for each temperature, with its width."""
    axes = canvas.subplots()
    height = np.exp(-0.5)
    axes.axhline(height, color=GRAY, linestyle=":", linewidth=0.9)
    write(axes, "x = ± √τ", (-2.6, height), GRAY, offset=(0, 3))
    for tau, curve, color in zip(TEMPERATURES, data["weight"], COLORS, strict=False):
        axes.plot(data["position"], curve, color=color, label=f"τ = {tau:g}")
        point(axes, (np.sqrt(tau) * np.array([-1, 1]), [height, height]), color)
    axes.set(
        xlim=(-2.6, 2.6),
        xticks=(-2, -1, 0, 1, 2),
        ylim=(0, 1.05),
        yticks=(0, 0.5, 1),
        xlabel="x",
        ylabel="exp(−x² / 2τ)",
    )
    # Between the curves there is no room for names.
    axes.legend(loc="upper right", frameon=False, fontsize=SMALL, labelcolor=[ink(color) for color in COLORS])


FIGURE = Figure(
    name="temperature-width",
    title="Illustration: a lower temperature is narrower",
    caption=(
        "Illustration: the law of Boltzmann for the energy x² / 2, a normal curve of variance τ, relative to its peak. "
        "Its standard deviation √τ (dots) is its width. The source calls its own picture not rigorous; what holds for "
        "the softmax of a loss is shown in temperature-easy-hard."
    ),
    source="Source 003, section 4, picture with normal curves",
    claims=("QT-7",),
    data=data,
    draw=draw,
)
