"""Scaled cosines of one sample to the class weights, its own class first, with class counts and a margin."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario


def symbols():
    """Three classes."""
    import sympy

    return {
        "cosines": sympy.symbols("x0:3", real=True),
        "counts": sympy.symbols("n0:3", positive=True),
        "scale": sympy.Symbol("s", positive=True),
        "margin": sympy.Symbol("m", positive=True),
    }


def draw(rng):
    """2 to 6 classes, counts 1 to 1000, scale 1 to 64, margin up to 1: the angle may pass pi minus the margin."""
    n = rng.integers(2, 7)
    return {
        "cosines": rng.uniform(-0.999, 0.999, n).tolist(),
        "counts": (10 ** rng.uniform(0, 3, n)).tolist(),
        "scale": float(10 ** rng.uniform(0, 1.806)),
        "margin": float(rng.uniform(0, 1)),
    }


def terms(m, base):
    """Cross-entropy with class counts, and with a margin on the angle of the own class."""
    cosines, counts, scale, margin = base["cosines"], base["counts"], base["scale"], base["margin"]
    # Not cos(theta + margin): the arccosine of mpmath loses the digits of a tiny imaginary part, a complex step.
    turned = cosines[0] * m.cos(margin) - m.sqrt(1 - cosines[0] ** 2) * m.sin(margin)
    plain = [m.exp(scale * c) for c in cosines]
    weighted = [n * x for n, x in zip(counts, plain, strict=True)]
    with_margin = [m.exp(scale * turned), *plain[1:]]
    return {
        "cosines": cosines, "counts": counts, "scale": scale, "margin": margin,
        "theta": m.acos(cosines[0]), "C": len(cosines),
        "L_counts": m.log(sum(weighted)) - m.log(weighted[0]),
        "P_counts": [x / sum(weighted) for x in weighted],
        "L_margin": m.log(sum(with_margin)) - scale * turned,
        "P_margin": [x / sum(with_margin) for x in with_margin],
    }  # fmt: skip


SCENARIO = Scenario(
    name="classes",
    setting="one sample",
    given="2 <= C and 0 < scale and 0 < counts and 0 <= margin < pi and -1 < cosines < 1",
    meaning={
        "cosines": "cosines to the class weights, the own class first",
        "counts": "training samples of each class",
        "scale": "what multiplies the cosines",
        "margin": "what is added to the angle of the own class, in radians",
        "theta": "angle to the own class",
        "C": "number of classes",
        "L_counts": "balanced softmax: cross-entropy of the scaled cosines, each exponential times its count",
        "P_counts": "its probabilities",
        "L_margin": "ArcFace: cross-entropy with the margin on the angle of the own class, without counts",
        "P_margin": "its probabilities",
    },
    symbols=symbols,
    fixed=(
        {"cosines": (0.5, 0.25, -0.75), "counts": (100.0, 10.0, 1.0), "scale": 4.0, "margin": 0.5},
        {"cosines": (-0.25, 0.5), "counts": (3.0, 50.0), "scale": 16.0, "margin": 0.25},
        {"cosines": (-0.96875, 0.125, 0.5, -0.5), "counts": (5.0, 5.0, 20.0, 2.0), "scale": 8.0, "margin": 0.5},
    ),
    draw=draw,
    drawn={
        "cosines": Drawn(-0.999, 0.999, (2, 6)),
        "counts": Drawn(1, 1000, (2, 6), LOGARITHMIC),
        "scale": Drawn(1, 64, scale=LOGARITHMIC),
        "margin": Drawn(0, 1),
    },
    terms=terms,
)
