"""Shares of the repulsion among negatives of all similarities (Wang & Liu 2021, Figure 3)."""

import numpy as np

from nceref.output.figure import BLACK, COLORS, GRAY, Figure, name_ends, write

TEMPERATURES = (0.07, 0.2, 0.5, 1.0)
NEGATIVES = np.linspace(-1, 1, 201)


def data():
    """Relative penalty of each negative, as a multiple of the mean, a row for each temperature."""
    from nceref import losses

    similarities = np.concatenate([[1.0], NEGATIVES])
    logits = np.divide.outer(similarities, np.array(TEMPERATURES)).T
    anatomy = losses.cross_entropy.anatomy(logits, np.zeros(len(TEMPERATURES), dtype=int))
    return {
        "similarity": NEGATIVES,
        "temperature": np.array(TEMPERATURES),
        "penalty": anatomy.relative_penalties[:, 1:] * len(NEGATIVES),
    }


def draw(canvas, data):
    """A line for each temperature: the law of Boltzmann is straight on a logarithmic scale."""
    axes = canvas.subplots()
    axes.axhline(1.0, color=GRAY, linestyle=":", linewidth=0.9)
    for penalty, color in zip(data["penalty"], COLORS, strict=False):
        axes.plot(data["similarity"], penalty, color=color)
    axes.set(xlim=(-1, 1), yscale="log", ylim=(1e-3, 60), xticks=(-1, -0.5, 0, 0.5, 1))
    axes.set(xlabel="similarity s of the negative", ylabel="relative penalty / its mean")
    texts = [f"τ = {t:g}" for t in TEMPERATURES]
    name_ends(axes, zip(data["penalty"][:, -1], texts, COLORS, strict=False))
    write(axes, "τ → ∞: all alike", (-1, 1), BLACK, offset=(4, 3))


FIGURE = Figure(
    name="relative-penalty",
    title="A lower temperature pushes the hardest harder",
    caption=(
        "Share of the repulsion that a negative of similarity s gets, as a multiple of the mean share, where 201 "
        "negatives lie evenly on [−1, 1]. The relative penalty is a law of Boltzmann, exp(s / τ) over its sum, "
        "whatever the positive: a straight line of slope 1 / τ. The colder, the more of it falls on the hardest."
    ),
    source="Wang & Liu 2021, (5), after its Figure 3",
    claims=("WL-10", "WL-12"),
    data=data,
    draw=draw,
)
