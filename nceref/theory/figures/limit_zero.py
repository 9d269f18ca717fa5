"""The loss at low temperature: tau L tends to the gap between the hardest negative and the positive, or to 0."""

from typing import Any

import numpy as np

from nceref.output.figure import BLUE, SKY, Figure, write
from nceref.theory.tables.temperature_easy import SIMILARITIES as EASY
from nceref.theory.tables.temperature_hard import SIMILARITIES as HARD

CASES = {"easy": EASY, "hard": HARD, "tied": (0.5, 0.5, 0.5, 0.1)}
TEMPERATURES = np.linspace(0.01, 1, 199)


def losses_at(similarities: Any, coldness: Any) -> Any:
    """The loss of one anchor, the positive first, at each 1 / temperature (0 included)."""
    from nceref import losses

    logits = np.multiply.outer(coldness, similarities)
    target = np.zeros(len(logits), dtype=int)
    return losses.cross_entropy(logits, target, reduction="none")


def gap(similarities: Any) -> float:
    """The largest similarity of a negative minus that of the positive."""
    return float(max(similarities[1:]) - similarities[0])


def data():
    """Tau L of each case, and the two edges of its band."""
    data = {"temperature": TEMPERATURES}
    for case, similarities in CASES.items():
        low = np.full_like(TEMPERATURES, max(gap(similarities), 0.0))
        data[f"{case}: tau L"] = TEMPERATURES * losses_at(similarities, 1 / TEMPERATURES)
        data[f"{case}: low"] = low
        data[f"{case}: high"] = low + TEMPERATURES * np.log(len(similarities))
    return data


def draw(canvas, data):
    """A panel for each case."""
    panels = canvas.subplots(1, len(CASES), sharex=True, sharey=True)
    tau = data["temperature"]
    for axes, (case, similarities) in zip(panels, CASES.items(), strict=True):
        axes.fill_between(tau, data[f"{case}: low"], data[f"{case}: high"], color=SKY, alpha=0.35, linewidth=0)
        axes.plot(tau, data[f"{case}: tau L"], color=BLUE)
        difference = f"{gap(similarities):+.2g}" if gap(similarities) else "0"
        axes.set_title(f"{case}\nΔ = {difference.replace('-', '−')}")
        axes.set(xlim=(0, 1), ylim=(0, 1.7), xticks=(0, 0.5, 1), xticklabels=("0", "0.5", "1"))
    panels[0].set_ylabel("τ L")
    panels[1].set_xlabel("temperature τ")
    # Entry 138 is at temperature 0.7.
    write(panels[0], "τ L", (0.7, data["easy: tau L"][138]), BLUE, offset=(2, -11))
    write(panels[0], "proven\nband", (0.35, 0.46), SKY, offset=(-18, 14))


FIGURE = Figure(
    name="limit-zero",
    title="At low temperature τ L tends to max(Δ, 0)",
    caption=(
        "Temperature times the InfoNCE loss of one anchor with three negatives, where the positive is the most "
        "similar (easy), where a negative is (hard), and where two negatives are as similar as the positive (tied). "
        "Δ is the largest similarity of a negative minus that of the positive. τ L lies between max(Δ, 0) and "
        "max(Δ, 0) + τ log N, the band, and so tends to max(Δ, 0); L itself tends to infinity, to log 3 and to 0 "
        "in the hard, tied and easy case."
    ),
    source="Source 000, (3) to (5), and Wang & Liu 2021, (6); the band is derived here; similarities of source 003",
    claims=("WL-13",),
    data=data,
    draw=draw,
    height=2.1,
    command="nceref plot-limits",
)
