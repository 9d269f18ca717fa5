"""One anchor of the PaCo loss: the logits of its class centers, of its positives and of its negatives."""

from nceref.theory.claim import LOGARITHMIC, NORMAL, Drawn, Scenario


def symbols():
    """Two classes, two positives and two negatives with real logits; a positive alpha."""
    import sympy

    return {
        "alpha": sympy.Symbol("alpha", positive=True),
        "center": sympy.symbols("c0:2", real=True),
        "positives": sympy.symbols("a0:2", real=True),
        "negatives": sympy.symbols("b0:2", real=True),
    }


def draw(rng):
    """2 to 5 classes, 1 to 6 positives, 1 to 6 negatives, logits of standard deviation 2; alpha from 0.01 to 3."""
    groups = {"center": (2, 6), "positives": (1, 7), "negatives": (1, 7)}
    logits = {name: (2 * rng.standard_normal(rng.integers(*sizes))).tolist() for name, sizes in groups.items()}
    return {"alpha": float(10 ** rng.uniform(-2, 0.477)), **logits}


def terms(m, base):
    """The loss, the three parts of its decomposition, and the probabilities over all candidates."""
    alpha, center = base["alpha"], base["center"]
    positives, negatives = base["positives"], base["negatives"]
    contrast = sum(m.exp(x) for x in [*positives, *negatives])
    classes = sum(m.exp(x) for x in center)
    everyone, count = contrast + classes, len(positives)
    p_sup, p_supcon = classes / everyone, contrast / everyone
    level = m.log(everyone)
    return {
        "alpha": alpha, "center": center, "positives": positives, "negatives": negatives,
        "K": count, "M": len(negatives), "W": 1 + alpha * count,
        "L": level - center[0] + alpha * sum(level - x for x in positives),
        "L_sup": m.log(classes) - center[0],
        "L_supcon": sum(m.log(contrast) - x for x in positives),
        "L_extra": -m.log(p_sup) - alpha * count * m.log(p_supcon),
        "p_sup": p_sup, "p_supcon": p_supcon,
        "P_center": m.exp(center[0]) / everyone,
        "P_positives": [m.exp(x) / everyone for x in positives],
        "P_negatives": [m.exp(x) / everyone for x in negatives],
        "P_others": [m.exp(x) / everyone for x in center[1:]],
    }  # fmt: skip


SCENARIO = Scenario(
    name="paco",
    setting="one anchor",
    given="1 <= K and 1 <= M and 0 < alpha",
    meaning={
        "alpha": "weight of each positive beside the weight 1 of the center",
        "center": "logits of the class centers, that of the own class first",
        "positives": "contrast logits of the positives",
        "negatives": "contrast logits of the negatives",
        "K": "number of positives",
        "M": "number of negatives",
        "W": "sum of the weights, 1 + alpha K",
        "L": "PaCo loss, the sum form",
        "L_sup": "cross-entropy among the centers",
        "L_supcon": "supervised contrastive loss among the samples, a sum over the positives",
        "L_extra": "-log p_sup - alpha K log p_supcon",
        "p_sup": "probability of all centers together",
        "p_supcon": "probability of all samples together",
        "P_center": "probability of the own center",
        "P_positives": "probabilities of the positives",
        "P_negatives": "probabilities of the negatives",
        "P_others": "probabilities of the other centers",
    },
    symbols=symbols,
    fixed=(
        {"alpha": 0.05, "center": (1.5, 0.25, -0.5), "positives": (0.75, 0.5, -1.0), "negatives": (0.5, -0.25)},
        {"alpha": 1.0, "center": (-0.5, 1.0), "positives": (2.0,), "negatives": (-0.75, 0.0, 3.0)},
        {"alpha": 0.4, "center": (0.5, -0.25), "positives": (0.5, -1.5, 1.25, 0.0), "negatives": (2.5,)},
        # Nearly optimal: e^0.693... is alpha, and what is left for the other candidates is 1e-26.
        {"alpha": 2.0, "center": (30.0, -30.0), "positives": (30.693147180559945,) * 3, "negatives": (-30.0, -31.0)},
    ),
    draw=draw,
    drawn={
        "alpha": Drawn(0.01, 3, scale=LOGARITHMIC),
        "center": Drawn(0, 2, (2, 5), NORMAL),
        "positives": Drawn(0, 2, (1, 6), NORMAL),
        "negatives": Drawn(0, 2, (1, 6), NORMAL),
    },
    terms=terms,
)
