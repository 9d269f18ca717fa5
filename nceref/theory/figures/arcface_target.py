"""The target's logit under the margin of ArcFace, by the angle to the class center."""

import numpy as np

from nceref.output.figure import BLUE, GREEN, VERMILLION, Figure, point, write

MARGIN = 0.5
ANGLES = np.linspace(0, np.pi, 181)
CURVES = {"no margin": {"margin": 0.0}, "margin": {"margin": MARGIN}}
FALLBACK = {"margin": MARGIN, "fallback": "linear"}


def target_logits(angles, **options):
    """The target's logit at scale 1, read back from the loss: L = log(1 + exp(other - logit)) with one other class."""
    from nceref import losses

    embeddings = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    class_weights, target = np.eye(2), np.zeros(len(angles), dtype=int)
    rows = losses.arcface(embeddings, class_weights, target, scale=1.0, reduction="none", **options)
    return np.sin(angles) - np.log(np.expm1(rows))


def data():
    """The target's logit without and with the margin, where the latter turns, and the authors' way out beyond."""
    beyond = np.linspace(np.pi - MARGIN + 1e-6, np.pi, 31)
    return {
        "angle": ANGLES,
        **{name: target_logits(ANGLES, **options) for name, options in CURVES.items()},
        "turn": np.array([np.pi - MARGIN, -1.0]),
        "angle beyond": beyond,
        "fallback": target_logits(beyond, **FALLBACK),
    }


def draw(canvas, data):
    """Draw two curves, the turning point, and the other branch beyond it."""
    axes = canvas.subplots()
    axes.plot(data["angle"], data["no margin"], color=BLUE)
    axes.plot(data["angle"], data["margin"], color=VERMILLION)
    axes.plot(data["angle beyond"], data["fallback"], color=GREEN, linestyle="--")
    axes.set(xlim=(0, np.pi), ylim=(-1.4, 1.1), yticks=(-1, 0, 1), xticks=(0, np.pi / 2, np.pi))
    axes.set(xticklabels=("0", "π/2", "π"), xlabel="angle θ to the class center (radians)", ylabel="target logit / s")
    write(axes, "cos θ", (np.pi / 3, 0.5), BLUE, offset=(5, 3))
    write(axes, f"cos(θ + {MARGIN:g})", (1.0, np.cos(1.5)), VERMILLION, offset=(-6, -6), ha="right")
    point(axes, data["turn"], VERMILLION)
    write(axes, "rises again\nbeyond π − m", (np.pi, -0.6), VERMILLION, ha="right")
    write(axes, "cos θ − m sin m", (data["angle beyond"][0], data["fallback"][0]), GREEN, offset=(-2, -9), ha="right")


FIGURE = Figure(
    name="arcface-target",
    title="Past π − m, ArcFace's target logit rises again",
    caption=(
        "The target's logit over the scale s against the angle between an embedding and the center of its class, "
        "without a margin and with the margin m = 0.5 of ArcFace. The margin lowers the logit up to θ = π − m/2, where "
        "both are equal. From θ = π − m on, cos(θ + m) rises with the angle, and with it the loss falls. The dashed "
        "line is the linear fallback that the authors' code offers there."
    ),
    source="Source 002, figure in the section on ArcFace; deepinsight/insightface, arcface_torch/losses.py",
    claims=("ARC-1",),
    data=data,
    draw=draw,
)
