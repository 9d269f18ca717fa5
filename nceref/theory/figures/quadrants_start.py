"""The start of the training runs of source 003: directions of samples, and of features before the first step."""

import numpy as np

from nceref.output.figure import Figure
from nceref.training.quadrants import panels


def data():
    """Samples and features of the untrained encoder, in float64."""
    from nceref.training.quadrants.samples import draw, encoded

    start = draw(0)
    samples, *weights = (x.astype(np.float64) for x in (start.samples, start.W1, start.W2))
    return {"samples": samples, "features": encoded(samples, *weights)}


def draw(canvas, data):
    """A panel for each."""
    panels.panels(canvas, list(data.values()), ["samples", "features, untrained"])


FIGURE = Figure(
    name="quadrants-start",
    title="Untrained, opposite quadrants point opposite ways",
    caption=(
        "Directions of the 100 samples of the published script (seed 0), 25 from each quadrant of the plane, and of "
        "their features before the first step: an encoder of two linear layers without bias and tanh, which is odd, "
        "so that opposite samples have opposite features. In the middle stands the mean length. Regenerated bit by "
        "bit with NumPy alone."
    ),
    source="Source 003, section 2, the pictures before training",
    claims=("QT-8", "QT-13"),
    data=data,
    draw=draw,
    height=2.25,
)
