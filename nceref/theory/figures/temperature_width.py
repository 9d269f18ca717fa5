"""A temperature pictured as a width: an illustration, as the source says of its own."""

import numpy as np

from nceref.output.figure import COLORS, GRAY, Figure, write

TEMPERATURES = (0.05, 0.2, 0.5, 1.0)
POSITIONS = np.linspace(-3, 3, 241)


def density(x, temperature):
    """Normal density of variance tau: the law of Boltzmann exp(-E / tau) for the energy E = x^2 / 2."""
    return np.exp(-x * x / (2 * temperature)) / np.sqrt(2 * np.pi * temperature)


def data():
    """A row for each temperature."""
    curves = np.array([density(POSITIONS, t) for t in TEMPERATURES])
    return {"position": POSITIONS, "temperature": np.array(TEMPERATURES), "density": curves}


def draw(canvas, data):
    """A curve for each temperature."""
    axes = canvas.subplots()
    for curve, color in zip(data["density"], COLORS, strict=False):
        axes.plot(data["position"], curve, color=color)
    for tau, color, height in zip(TEMPERATURES, COLORS, (1.5, 0.7, 0.42, 0.22), strict=False):
        x = np.sqrt(-2 * tau * np.log(height * np.sqrt(2 * np.pi * tau)))
        write(axes, f"τ = {tau:g}", (x, height), color, offset=(4, 0))
    axes.text(0.02, 0.97, "illustration only:\nno loss is shown", transform=axes.transAxes, va="top", color=GRAY)
    axes.set(xlim=(-3, 3), ylim=(0, 1.9), yticks=(0, 0.5, 1, 1.5), xlabel="x", ylabel="density, mean 0, variance τ")


FIGURE = Figure(
    name="temperature-width",
    title="A temperature pictured as a width (illustration)",
    caption=(
        "Illustration: normal densities of variance τ, the law of Boltzmann for the energy x² / 2. The lower the "
        "temperature, the narrower. The source calls its own picture not rigorous; what holds for the softmax of a "
        "loss is shown in softmax-temperature."
    ),
    source="Source 003, section 4, picture with normal curves",
    claims=("QT-7",),
    data=data,
    draw=draw,
)
