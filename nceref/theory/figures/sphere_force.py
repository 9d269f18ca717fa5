"""The force of a negative on a unit-length anchor: strongest at some distance, zero at contact."""

import numpy as np

from nceref.output.figure import COLORS, Figure, point, write
from nceref.theory.tables.hardness import strongest_push

TEMPERATURES = (0.07, 0.2, 0.5, 1.0)
ANGLES = np.linspace(0, 180, 721)


def force(degrees, temperature):
    """Tangential force exp(s / tau) sqrt(1 - s^2), s = cos of the angle, relative to its peak."""
    angle, peak = np.radians(degrees), strongest_push(temperature)
    highest = np.sqrt(1 - peak * peak)
    return np.exp((np.cos(angle) - peak) / temperature) * np.sin(angle) / highest


def data():
    """The force by angle, a row for each temperature; the angle of each peak, and the similarity there."""
    peaks = np.array([strongest_push(t) for t in TEMPERATURES])
    return {
        "angle": ANGLES,
        "temperature": np.array(TEMPERATURES),
        "force": np.array([force(ANGLES, t) for t in TEMPERATURES]),
        "peak similarity": peaks,
        "peak angle": np.degrees(np.arccos(peaks)),
    }


def draw(canvas, data):
    """A curve for each temperature, with its peak."""
    axes = canvas.subplots()
    heights = (0.06, 0.2, 0.4, 0.65)
    curves = zip(TEMPERATURES, data["force"], data["peak angle"], COLORS, heights, strict=False)
    for tau, curve, angle, color, height in curves:
        axes.plot(data["angle"], curve, color=color)
        point(axes, (angle, 1.0), color)
        # A name stands where the curve comes down to this height, which leaves it room before the next one.
        falling = np.argmax(curve) + np.argmax(curve[np.argmax(curve) :] < height)
        write(axes, f"τ = {tau:g}" if tau == 1 else f"{tau:g}", (data["angle"][falling], height), color, offset=(4, 0))
    axes.set(xlim=(0, 180), ylim=(0, 1.12), xticks=(0, 45, 90, 135, 180), yticks=(0, 0.5, 1))
    axes.set(xlabel="angle between anchor and negative (degrees)", ylabel="force / its peak")


FIGURE = Figure(
    name="sphere-force",
    title="A negative at contact exerts no force",
    caption=(
        "Tangential force of one negative on a unit-length anchor, exp(s / τ) √(1 − s²) with s the cosine of the "
        "angle and the normalizer held fixed, each curve relative to its peak (dots) at s = (√(τ² + 4) − τ) / 2. "
        "The derivative by the similarity is largest at contact, but the force on the embedding is zero there: the "
        "comparison with electric charges, whose repulsion grows without bound, ends at the peak."
    ),
    source="Source 000, hardness of the contrastive loss, and source 002, with the comparison; force derived here",
    claims=("WL-9", "NC-6"),
    data=data,
    draw=draw,
)
