"""The entropy of the relative penalties rises with the temperature, from log m to log K."""

import numpy as np

from nceref.output.figure import COLORS, GRAY, Figure, write

TEMPERATURES = np.geomspace(0.02, 50, 201)
CASES = {
    "one hardest": (0.9, 0.5, -0.8),
    "two tied hardest": (0.9, 0.9, -0.8),
    "all tied": (0.4, 0.4, 0.4),
}


def data():
    """Entropy of the relative penalties of three negatives, in nats, for each case."""
    from nceref import losses

    data = {"temperature": TEMPERATURES}
    for case, negatives in CASES.items():
        logits = np.divide.outer(np.array([0.7, *negatives]), TEMPERATURES).T
        anatomy = losses.cross_entropy.anatomy(logits, np.zeros(len(logits), dtype=int))
        r = anatomy.relative_penalties[:, 1:]
        # The limit of r log r at 0 is 0.
        data[case] = -(r * np.log(np.where(r > 0, r, 1.0))).sum(axis=1)
    return data


def draw(canvas, data):
    """A curve for each case, between its two limits."""
    axes = canvas.subplots()
    for m, text in ((2, "log 2"), (3, "log 3 = log K")):
        axes.axhline(np.log(m), color=GRAY, linestyle=":", linewidth=0.9)
        write(axes, text, (50, np.log(m)), GRAY, offset=(0, -9), ha="right")
    for case, color in zip(CASES, COLORS, strict=False):
        axes.plot(data["temperature"], data[case], color=color)
    axes.set(xscale="log", xlim=(0.02, 50), ylim=(0, 1.25), xlabel="temperature τ", ylabel="entropy of r (nats)")
    axes.set(xticks=(0.1, 1, 10), xticklabels=("0.1", "1", "10"))
    for case, x, offset, color in zip(CASES, (0.2, 0.02, 0.02), ((8, -4), (4, 4), (4, 3)), COLORS, strict=False):
        at = (x, float(np.interp(x, data["temperature"], data[case])))
        write(axes, case, at, color, offset=offset)


FIGURE = Figure(
    name="entropy-temperature",
    title="A higher temperature evens out the penalties",
    caption=(
        "Entropy of the relative penalties r of K = 3 negatives. It rises with the temperature at the rate Var_r(s) / "
        "τ³, from log m, m being the number of tied hardest negatives, to log K; where all are tied it is constant. "
        "Similarities (0.9, 0.5, −0.8), (0.9, 0.9, −0.8) and (0.4, 0.4, 0.4)."
    ),
    source="Wang & Liu 2021, section 3.2; the rate is derived here",
    claims=("WL-11",),
    data=data,
    draw=draw,
)
