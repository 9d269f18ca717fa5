"""The mean gradient of a class against its frequency, in training: the small analogue of the figure of source 004."""

import numpy as np

from nceref.output.figure import BLACK, COLORS, GRAY, Figure, name_ends
from nceref.theory.analogues import recorded

LOSSES = {"SupCon sum": "SupCon, sum", "SupCon mean": "SupCon, mean", "CE": "cross-entropy", "PaCo 0.05": "PaCo"}


def data():
    """Recorded pulls by class, a row for each loss; the first class is the most frequent."""
    analogue = recorded("long-tail")
    pulls = np.array([analogue["pulls"][loss] for loss in LOSSES])
    return {"samples": np.array(analogue["class counts"], dtype=float), "pull": pulls}


def draw(canvas, data):
    """A curve for each loss, named at the most frequent class."""
    axes = canvas.subplots()
    axes.axhline(1, color=GRAY, linewidth=0.6)
    samples = data["samples"]
    axes.set(xscale="log", yscale="log", xlim=(samples.min() / 1.1, samples.max() * 1.1))
    for curve, color in zip(data["pull"], (BLACK, *COLORS), strict=False):
        axes.plot(samples, curve, color=color, marker="o", markersize=2.5, linewidth=1)
    axes.set(xlabel="training samples of the class", ylabel="mean gradient / that of all classes")
    axes.set_xticks((5, 20, 100, 500), ("5", "20", "100", "500"))
    axes.set_xticks((), minor=True)
    axes.set_yticks((0.25, 0.5, 1, 2), ("0.25", "0.5", "1", "2"))
    axes.set_yticks((), minor=True)
    name_ends(axes, zip(data["pull"][:, 0], LOSSES.values(), (BLACK, *COLORS), strict=False), least=0.08)


def _slopes() -> str:
    measures = recorded("long-tail")["measures"]
    means = (measures[loss]["pull slope"][0] for loss in LOSSES)
    shown = (f"{name} {mean:+.2f}".replace("-", "−") for name, mean in zip(LOSSES.values(), means, strict=True))
    return ", ".join(shown)


FIGURE = Figure(
    name="class-gradients",
    title="Only SupCon as a sum favors frequent classes",
    caption=(
        "Size of the gradient of an anchor's own loss by its logits (sum of absolute values), mean by class over the "
        "training of a small network on 20 drawn classes, over the mean of all classes; means over six seeds. The "
        "figure of the source is an image, and its text has no number: it says that the gradient falls with the "
        "frequency of the class. Here rarer classes have smaller gradients for SupCon as a sum over the positives, as "
        "printed in the source; for their mean and for cross-entropy it is the other way round. Slopes of the "
        f"logarithms: {_slopes()}."
    ),
    source="Source 004, figure PaCoF2; analogue: nceref experiment long-tail, six seeds",
    claims=("PC-13", "PC-20"),
    data=data,
    draw=draw,
)
