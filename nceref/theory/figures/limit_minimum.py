"""The loss where a negative is the most similar: as the temperature falls, it has a minimum before it rises."""

import numpy as np

from nceref.output.figure import BLUE, GRAY, VERMILLION, Figure, point, write
from nceref.theory.figures.limit_zero import losses_at
from nceref.theory.tables.temperature_hard import PUBLISHED
from nceref.theory.tables.temperature_hard import SIMILARITIES as HARD
from nceref.theory.verdicts import printed_numbers

TEMPERATURES = np.geomspace(0.2, 10, 201)


def best_temperature(similarities):
    """The temperature at which the slope of the loss by the temperature is 0."""
    from scipy.optimize import brentq

    from nceref import losses

    def slope(temperature):
        _, grad = losses.cross_entropy.value_and_grad(
            np.array([similarities]), np.array([0]), temperature=float(temperature)
        )
        return float(grad["temperature"])

    return brentq(slope, TEMPERATURES[0], TEMPERATURES[-1], xtol=1e-15)


def data():
    """The curve, its minimum, and those rows of the source's table that lie on it."""
    best = best_temperature(HARD)
    printed = [(t, float(printed_numbers(loss)[0])) for t, _, _, loss in PUBLISHED if t >= TEMPERATURES[0]]
    return {
        "temperature": TEMPERATURES,
        "loss": losses_at(HARD, 1 / TEMPERATURES),
        "minimum": np.array([best, losses_at(HARD, np.array([1 / best]))[0]]),
        "published": np.array(printed),
        "log N": np.array([np.log(len(HARD))]),
    }


def draw(canvas, data):
    """Draw one curve with its minimum and the published points."""
    axes = canvas.subplots()
    axes.axhline(data["log N"][0], color=GRAY, linestyle=":", linewidth=0.9)
    axes.plot(data["temperature"], data["loss"], color=BLUE)
    point(axes, data["published"].T, VERMILLION)
    axes.set(xscale="log", xlim=(0.2, 10), ylim=(1.15, 1.6), xlabel="temperature τ", ylabel="loss (nats)")
    axes.set(xticks=(0.2, 0.5, 1, 2, 5, 10), xticklabels=("0.2", "0.5", "1", "2", "5", "10"))
    axes.set_xticks((), minor=True)
    best, lowest = data["minimum"]
    point(axes, (best, lowest))
    write(axes, f"minimum {lowest:.4f} at τ = {best:.4f}", (best, lowest), offset=(-2, -12))
    for (tau, loss), (x, y) in zip(data["published"], ((5, -4), (-4, -11)), strict=True):
        side = "left" if x > 0 else "right"
        write(axes, f"{loss:.4f}", (tau, loss), VERMILLION, offset=(x, y), ha=side)
    write(axes, "log N", (1.5, data["log N"][0]), GRAY, offset=(0, 3))
    write(axes, "L", (data["temperature"][5], data["loss"][5]), BLUE, offset=(5, 0))


FIGURE = Figure(
    name="limit-minimum",
    title="With a hard negative, the loss is least at τ = 0.56",
    caption=(
        "The InfoNCE loss for the similarities 0.25 (positive), 0.5, −0.45 and −0.1. The source concludes from its "
        "table that a lower temperature means a higher loss here, but its own rows for τ = 1 and 0.5, the two colored "
        "dots, show a falling loss. The positive lies between the mean and the largest similarity, so "
        "that the loss is least where the expected similarity equals that of the positive, at τ = 0.5629. Toward "
        "infinite temperature it tends to log N."
    ),
    source="Source 003, section 4, second table",
    claims=("QT-5", "QT-3"),
    data=data,
    draw=draw,
    command="nceref plot-limits",
)
