"""The six training runs of source 003: directions of the features after 10,000 steps at five temperatures."""

import numpy as np

from nceref.output.figure import Figure
from nceref.training.quadrants import panels

CHAOTIC = ((-3.209670295265197, 39.0334906861584), (-1.8585410578363577, -34.37710192650368))
"""W2 W1 where the original program ended at 0.001: PyTorch 2.13.0, float32, a CPU with AVX-512."""


def data():
    """Features of the six runs in float64; those at 0.001, where rounding decides, from the recorded weights."""
    from nceref.training.quadrants import replay, samples

    data = panels.data(replay.run(dtype="float64").runs)
    data["features"][-1] = np.tanh(samples.draw(0).samples @ np.transpose(CHAOTIC))
    return data


def draw(canvas, data):
    """A panel for each run, from the highest temperature to the lowest; points that cover each other are counted."""
    temperatures = data["temperature"].tolist()
    # The order of equal ones is that of the runs.
    order = sorted(range(len(temperatures)), key=lambda run: -temperatures[run])
    again = [temperatures[run] in temperatures[:run] for run in order]
    titles = [
        f"τ = {temperatures[run]:g}{', repeated' if seen else ''}" for run, seen in zip(order, again, strict=True)
    ]
    panels.panels(canvas, data["features"][order], titles, counted=True)


FIGURE = Figure(
    name="quadrants",
    title="At τ = 0.001 nearly all lie in two directions",
    caption=(
        "Directions of the features of 100 samples, 25 from each quadrant of the plane, after 10,000 steps of "
        "contrastive learning at each temperature; their cosines are all that the loss sees. The published script "
        "(seed 0) trains at 0.05, 0.99, 0.5, once more at 0.05, 0.01 and 0.001. Where points cover each other, their"
        " number stands outside, in the color of the quadrant; in the middle stands the mean length, at most √2. "
        "Replayed with NumPy alone, in float64. Where the last run ends, rounding decides: it is drawn from the "
        "weights with which the original program ended on one machine; elsewhere the two corners were (1, 1) and "
        "(−1, −1). They are opposite ones everywhere, as the encoder is odd, and each holds two classes. The "
        "learning rate is the same in all runs, so that its effect is mixed with that of the temperature."
    ),
    source="Source 003, sections 2 and 3, the pictures after training",
    claims=("QT-9", "QT-10", "QT-11", "QT-12"),
    data=data,
    draw=draw,
    height=2.75,
)
