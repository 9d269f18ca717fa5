"""Positive pairs on the circle before and after alignment and uniformity are minimized together."""

import numpy as np

from nceref.output.figure import BLUE, GRAY, SMALL, VERMILLION, Figure

PAIRS = 24
STEPS, RATE = 400, 0.1
INNER, OUTER = 0.8, 1.0
"""Radii at which the two views are drawn: on one circle, a pair would cover what joins it."""


def circle(angles):
    """Points of the unit circle."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def start():
    """A clump of pairs that do not match well, spread by the golden ratio instead of a random generator."""
    i, golden = np.arange(PAIRS), (np.sqrt(5) - 1) / 2
    centers = np.pi / 2 + 1.3 * (2 * (i * golden % 1) - 1)
    apart = 0.9 * (2 * (i * golden * golden * 7 % 1) - 1)
    return circle(centers - apart / 2), circle(centers + apart / 2)


def measures(x, y):
    """Alignment of the pairs and uniformity of both views, with the gradients of their sum by x and y."""
    from nceref import losses

    alignment, by_pair = losses.alignment.value_and_grad(x, y)
    (of_x, by_x), (of_y, by_y) = (losses.uniformity.value_and_grad(view) for view in (x, y))
    grads = by_pair["x"] + by_x["x"] / 2, by_pair["y"] + by_y["x"] / 2
    return np.array([alignment, (of_x + of_y) / 2]), grads


def data():
    """The two views and the two measures, before and after gradient descent on the circle."""
    x, y = first = start()
    before, _ = measures(x, y)
    for _ in range(STEPS):
        _, (by_x, by_y) = measures(x, y)
        # A gradient is a mean over the pairs: the rate is that of one pair.
        x, y = (v - RATE * PAIRS * g for v, g in ((x, by_x), (y, by_y)))
        x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    after, _ = measures(x, y)
    drawn = {"x before": first[0], "y before": first[1], "x after": x, "y after": y, "before": before, "after": after}
    # What a picture can show; what is left of other orders of summation after so many steps is far below it.
    return {name: np.round(values, 6) for name, values in drawn.items()}


def draw(canvas, data):
    """A circle for each view, inside one another, the measures in them."""
    from matplotlib.lines import Line2D

    for axes, when in zip(canvas.subplots(1, 2), ("before", "after"), strict=True):
        x, y = data[f"x {when}"], data[f"y {when}"]
        turn = circle(np.linspace(0, 2 * np.pi, 181))
        for ends in zip(INNER * x, OUTER * y, strict=True):
            axes.plot(*np.array(ends).T, color=GRAY, linewidth=0.7)
        for view, radius, color in ((x, INNER, BLUE), (y, OUTER, VERMILLION)):
            axes.plot(*radius * turn.T, color=GRAY, linewidth=0.3)
            axes.plot(*radius * view.T, "o", markersize=3, color=color, markeredgewidth=0)
        axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal", title=when)
        axes.axis("off")
        alignment, uniformity = (f"{value:.3f}".replace("-", "−") for value in data[when])
        axes.text(0, 0, f"alignment\n{alignment}\nuniformity\n{uniformity}", ha="center", va="center", fontsize=SMALL)

    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=3, color=BLUE, markeredgewidth=0, label="a view"),
        Line2D([], [], linestyle="", marker="o", markersize=3, color=VERMILLION, markeredgewidth=0, label="the other"),
        Line2D([], [], color=GRAY, linewidth=0.7, label="a pair; along a radius if aligned"),
    ]  # fmt: skip
    canvas.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL, handlelength=1.2,
        columnspacing=1.0, handletextpad=0.4,
    )  # fmt: skip


FIGURE = Figure(
    name="alignment-uniformity",
    title="Descent on both aligns pairs and spreads them out",
    caption=(
        "24 positive pairs on the unit circle before and after 400 steps of gradient descent on alignment (squared "
        "distance) plus uniformity (t = 2); a synthetic example. Both views have length 1: that one circle is drawn "
        "inside the other parts them. Alignment is the mean squared distance of the views of a pair, and tends to 0,"
        " where the line between them points to the center. Uniformity tends to −1.757, that of 24 evenly spaced "
        "points, which no other 24 points undercut: a mean over pairs of different points, it lies below the −1.575 "
        "of the uniform law, and it hardly sees how evenly close neighbors are spaced."
    ),
    source="Source 002, figure on alignment and uniformity; Wang & Isola 2020, both measures",
    claims=("NC-3", "NC-5", "WI-1", "WI-3"),
    data=data,
    draw=draw,
    height=2.15,
)
