"""The probabilities of four candidates as the temperature falls: both tables of source 003."""

import numpy as np

from nceref.output.figure import COLORS, Figure, name_ends
from nceref.theory.tables import temperature_easy, temperature_hard
from nceref.theory.verdicts import printed_numbers

TABLES = {"easy": temperature_easy, "hard": temperature_hard}
TEMPERATURES = np.geomspace(0.01, 1, 161)
SIZES = (7.4, 5.6, 4.0, 2.6)
"""Sizes of the dots, in points: those near 0 lie on each other, the smaller on the larger."""


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
        for curve, color, dots, size in zip(curves, COLORS, published, SIZES, strict=False):
            axes.plot(data["temperature"], curve, color=color)
            # Above the curves that follow.
            axes.plot(tau, dots, "o", color=color, markersize=size, markeredgewidth=0, clip_on=False, zorder=3)
        texts = [f"{s:g}".replace("-", "−") for s in table.SIMILARITIES]
        texts[0] += " (positive)"
        name_ends(axes, zip(curves[:, -1], texts, COLORS, strict=False), least=0.095)
        axes.set_title("the positive is the most similar" if case == "easy" else "a negative is the most similar")
    panels[1].set_xlabel("temperature τ")
    panels[1].set(xticks=(0.01, 0.05, 0.1, 0.5, 1), xticklabels=("0.01", "0.05", "0.1", "0.5", "1"))


FIGURE = Figure(
    name="temperature-easy-hard",
    title="A lower temperature favors the most similar",
    caption=(
        "Softmax of four similarities, named at the right, divided by the temperature: curves computed, dots as "
        "published in the two tables; those near 0 lie on each other, the smaller on the larger. The lower the "
        "temperature, the more of the probability goes to the most similar candidate, whether it is the positive or "
        "not."
    ),
    source="Source 003, section 4, both tables and the picture between them",
    claims=("QT-2", "QT-3", "QT-7", "IS-6"),
    data=data,
    draw=draw,
    height=3.6,
    aliases=("softmax-temperature", "temperature-easy", "temperature-hard"),
)
