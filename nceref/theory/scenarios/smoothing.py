"""One anchor whose target is smoothed: every candidate gets the same part of a share of it."""

from nceref.family import cross_entropy
from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario
from nceref.theory.scenarios import anchor

_SHARED = ("s", "t", "N", "K", "P", "L", "s_mean")


def symbols():
    """Three real similarities, a positive temperature and a positive smoothing."""
    import sympy

    base = anchor.symbols()
    return {**base, "s": base["s"][:3], "e": sympy.Symbol("epsilon", positive=True)}


def draw(rng):
    """Random values of an anchor with 12 candidates at most; smoothing 0 to 1."""
    base = anchor.draw(rng)
    return {**base, "s": base["s"][:12], "e": float(rng.uniform(0, 1))}


def terms(m, base):
    """Targets, and the cross-entropy with and without smoothing by the formula of the loss."""
    shared = anchor.terms(m, base)
    s, t, e = base["s"], base["t"], base["e"]

    def entropy(share):
        return cross_entropy.formula(m, [s], [0], temperature=t, label_smoothing=share)[0]

    return {
        **{name: shared[name] for name in _SHARED}, "e": e,
        "y": [(1 - e) * int(j == 0) + e / len(s) for j in range(len(s))],
        "one_hot": entropy(0),
        "smoothed": entropy(e),
    }  # fmt: skip


SCENARIO = Scenario(
    name="smoothing",
    setting="one anchor",
    given="2 <= N and 0 < t and 0 < e < 1",
    meaning={
        **{name: anchor.SCENARIO.meaning[name] for name in _SHARED},
        "e": "label smoothing, a share of the target",
        "y": "smoothed target: 1 - e for the positive, and e / N more for every candidate",
        "one_hot": "cross-entropy of the softmax at temperature t, with the positive as its target",
        "smoothed": "the same with the smoothed target",
    },
    symbols=symbols,
    fixed=(
        {"s": (0.5, 0.25, -0.45, -0.1), "t": 0.5, "e": 0.1},
        {"s": (0.25, 0.5, -0.45, -0.1), "t": 0.05, "e": 0.001},
        {"s": (0.2, 0.5, 0.5, 0.1), "t": 0.1, "e": 0.999},
        {"s": (0.9, -0.3), "t": 3.0, "e": 0.5},
    ),
    draw=draw,
    drawn={"s": Drawn(-1, 1, (2, 12), tied=True), "t": Drawn(0.01, 30, scale=LOGARITHMIC), "e": Drawn(0, 1)},
    terms=terms,
)
