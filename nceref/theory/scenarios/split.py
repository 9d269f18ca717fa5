"""One anchor whose loss is split: what the positive does, what the negatives do, and how hard each of them pushes."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario
from nceref.theory.scenarios import anchor

_SHARED = ("s", "t", "N", "K", "P", "L", "r")


def symbols():
    """Four real similarities, a positive temperature and a positive weight."""
    import sympy

    return {**anchor.symbols(), "w": sympy.Symbol("lambda", positive=True)}


def draw(rng):
    """Random values of an anchor, 12 at most, none exactly 1 or -1, where a push has no derivative; weight 0 to 2."""
    base = anchor.draw(rng)
    return {**base, "s": [x if abs(x) < 1 else 0.75 * x for x in base["s"][:12]], "w": float(rng.uniform(0, 2))}


def terms(m, base):
    """Alignment and uniformity term, simple loss, tangential pushes, and binary NCE for a noise of density 1."""
    shared = anchor.terms(m, base)
    s, t, w, negatives = base["s"], base["t"], base["w"], shared["K"]
    others = sum(m.exp(x / t) for x in s[1:])
    # Symbols have no order; `lead` is for numbers only.
    hardest = s[1:] if m.symbolic else sorted(s[1:], key=lambda x: -x.real)
    odds = [m.exp(x / t) / negatives for x in s]
    return {
        **{name: shared[name] for name in _SHARED}, "w": w,
        "others": others, "alignment": -s[0] / t,
        "uniformity": m.log(m.exp(s[0] / t) + others),
        "ideal": m.log(m.exp(1 / t) + others),
        "simple": w * sum(s[1:]) - s[0],
        "push": [m.exp(x / t) * m.sqrt(1 - x * x) for x in s[1:]],
        "force": [p / t * m.sqrt(1 - x * x) for p, x in zip(shared["P"][1:], s[1:], strict=True)],
        "peak": 2 / (t + m.sqrt(t * t + 4)),
        "lead": hardest[0] - hardest[1] if negatives > 1 else 0,
        "h": [x / (1 + x) for x in odds],
        "nce": m.log(1 + 1 / odds[0]) + sum(m.log(1 + x) for x in odds[1:]),
    }  # fmt: skip


SCENARIO = Scenario(
    name="split",
    setting="one anchor and its cosines",
    given="2 <= N and 0 < t and 0 <= w and -1 <= s <= 1",
    meaning={
        **{name: anchor.SCENARIO.meaning[name] for name in _SHARED},
        "w": "weight of every negative in the simple loss",
        "others": "sum of exp(s_j / t) over the negatives",
        "alignment": "minus the similarity of the positive, over the temperature",
        "uniformity": "log of the sum of exp(s_j / t) over all candidates",
        "ideal": "the same with a positive of similarity 1",
        "simple": "simple loss",
        "push": "tangential force of each negative on an anchor of unit length, with the normalizer held fixed",
        "peak": "similarity at which that force is largest",
        "force": "the same force with the normalizer, which grows with the similarity",
        "lead": "how far the hardest negative is ahead of the next; 0 if it is alone",
        "h": "probability that a candidate is data, against as many noise samples as negatives, of density 1",
        "nce": "binary NCE loss: the positive is data, the negatives are noise",
    },
    symbols=symbols,
    fixed=(
        {"s": (0.5, 0.25, -0.45, -0.1), "t": 0.5, "w": 0.375},
        {"s": (0.9, 0.99, 0.95, -0.3), "t": 0.1, "w": 1.0},
        {"s": (-0.4, 0.7, 0.7), "t": 0.07, "w": 0.5},
        {"s": (1.0, -0.2), "t": 4.0, "w": 2.0},
    ),
    draw=draw,
    drawn={"s": Drawn(-1, 1, (2, 12), tied=True), "t": Drawn(0.01, 30, scale=LOGARITHMIC), "w": Drawn(0, 2)},
    terms=terms,
)
