"""What a lower temperature does to the probabilities of four candidates: both tables of source 003."""

import numpy as np

from nceref.output.figure import COLORS, Figure, name_ends, point
from nceref.theory.tables import temperature_easy, temperature_hard
from nceref.theory.verdicts import printed_numbers

TABLES = {"easy": temperature_easy, "hard": temperature_hard}
TEMPERATURES = np.geomspace(0.01, 1, 161)
LEAST = 0.01
"""Dots below it would cover each other."""


def data():
    """Probabilities of each table's candidates, positive first, and those that are published."""
    from nceref import losses

    data = {"temperature": TEMPERATURES}
    for case, table in TABLES.items():
        logits = np.divide.outer(np.array(table.SIMILARITIES), TEMPERATURES).T
        anatomy = losses.cross_entropy.anatomy(logits, np.zeros(len(logits), dtype=int))
        data[f"{case}: probabilities"] = anatomy.probabilities
        printed = [[t, *(float(printed_numbers(text)[0]) for text in texts)] for t, _, texts, _ in table.PUBLISHED]
        data[f"{case}: published"] = np.array(printed)
    return data


def draw(canvas, data):
    """A panel for each table."""
    panels = canvas.subplots(2, 1, sharex=True)
    for axes, (case, table) in zip(panels, TABLES.items(), strict=True):
        tau, *published = data[f"{case}: published"].T
        curves = data[f"{case}: probabilities"].T
        axes.set(xscale="log", xlim=(0.01, 1), ylim=(0, 1), ylabel="probability", yticks=(0, 0.5, 1))
        for curve, color, dots in zip(curves, COLORS, published, strict=False):
            axes.plot(data["temperature"], curve, color=color)
            _dots(axes, tau, dots, color)
        texts = [f"{s:g}".replace("-", "−") for s in table.SIMILARITIES]
        texts[0] += " (positive)"
        name_ends(axes, zip(curves[:, -1], texts, COLORS, strict=False), least=0.095)
        axes.set_title("the positive is the most similar" if case == "easy" else "a negative is the most similar")
    panels[1].set_xlabel("temperature τ")
    panels[1].set(xticks=(0.01, 0.05, 0.1, 0.5, 1), xticklabels=("0.01", "0.05", "0.1", "0.5", "1"))


def _dots(axes, tau, published, color):
    """Those that are published as 0 stand side by side, in the order of the curves."""
    from matplotlib.transforms import ScaledTranslation

    zero = published < LEAST
    point(axes, (tau[~zero], published[~zero]), color)
    step = COLORS.index(color)
    aside = ScaledTranslation(4.5 * step / 72, 0, axes.figure.dpi_scale_trans)
    for mark in point(axes, (tau[zero], published[zero]), color):
        mark.set_transform(axes.transData + aside)
        # Its place does not move the axes.
        mark.set_in_layout(False)


FIGURE = Figure(
    name="softmax-temperature",
    title="Softmax against temperature",
    caption=(
        "Softmax of four similarities, named at the right, divided by the temperature: curves computed, dots as "
        "published in the two tables; those near 0 stand side by side, to the right of their temperature. The lower "
        "the temperature, the more of the probability goes to the most similar "
        "candidate, whether it is the positive or not."
    ),
    source="Source 003, section 4, both tables and the picture between them",
    claims=("QT-2", "QT-3", "QT-7", "IS-6"),
    data=data,
    draw=draw,
    height=3.6,
)
