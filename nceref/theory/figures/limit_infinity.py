"""The loss at high temperature: log N plus a first-order term, and how far the loss can be from their sum."""

import numpy as np

from nceref.output.figure import BLUE, GRAY, SKY, VERMILLION, Figure, write
from nceref.theory.figures.limit_zero import losses_at
from nceref.theory.tables.temperature_easy import SIMILARITIES as EASY
from nceref.theory.tables.temperature_hard import SIMILARITIES as HARD

CASES = {"easy": EASY, "hard": HARD}
COLDNESS = np.linspace(0, 3, 181)


def data():
    """Loss, first-order line and upper edge of the band of each case."""
    data = {"1 / temperature": COLDNESS}
    for case, similarities in CASES.items():
        slope = np.mean(similarities) - similarities[0]
        line = np.log(len(similarities)) + slope * COLDNESS
        data[f"{case}: loss"] = losses_at(similarities, COLDNESS)
        data[f"{case}: line"] = line
        data[f"{case}: high"] = line + (np.ptp(similarities) * COLDNESS) ** 2 / 8
    return data


def draw(canvas, data):
    """A panel for each case."""
    panels = canvas.subplots(1, len(CASES), sharex=True, sharey=True)
    x = data["1 / temperature"]
    for axes, case in zip(panels, CASES, strict=True):
        axes.fill_between(x, data[f"{case}: line"], data[f"{case}: high"], color=SKY, alpha=0.35, linewidth=0)
        axes.plot(x, data[f"{case}: line"], color=VERMILLION, linestyle="--")
        axes.plot(x, data[f"{case}: loss"], color=BLUE)
        axes.set_title(case)
        axes.set(xlim=(0, 3), ylim=(0, 2), xticks=(0, 1, 2, 3), yticks=(0, 0.5, 1, 1.5, 2), xlabel="1 / τ")
    panels[0].set_ylabel("loss (nats)")
    for axes in panels:
        axes.axhline(np.log(4), color=GRAY, linestyle=":", linewidth=0.9)
    write(panels[0], "log N", (3, np.log(4)), GRAY, offset=(-2, 3), ha="right")
    # Entries 132 and 174 are at 2.2 and 2.9.
    write(panels[0], "first order", (2.2, data["easy: line"][132]), VERMILLION, offset=(-6, -7), ha="right")
    write(panels[0], "L", (2.9, data["easy: loss"][174]), BLUE, offset=(-2, 5))
    write(panels[1], "L", (2.9, data["hard: loss"][174]), BLUE, offset=(-2, -10))
    write(panels[1], "proven band", (2.2, 1.45), SKY, offset=(0, 9), ha="right")


FIGURE = Figure(
    name="limit-infinity",
    title="At high temperature the loss tends to log N",
    caption=(
        "The InfoNCE loss of one anchor with three negatives against the reciprocal of the temperature. It tends to "
        "log N, N counting the positive, along the line log N + (mean similarity − similarity of the positive) / τ, "
        "and lies above that line by at most R² / (8 τ²), the band, where R is the range of the similarities. The "
        "positive is the most similar on the left (easy), a negative on the right (hard)."
    ),
    source="Source 000, (6), and Wang & Liu 2021, (7); the band is derived here; similarities of source 003",
    claims=("WL-16",),
    data=data,
    draw=draw,
    height=2.2,
    command="nceref plot-limits",
)
