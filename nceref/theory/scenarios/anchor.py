"""One anchor with its candidates: the positive first, then the negatives."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario


def symbols():
    """Four real similarities and a positive temperature."""
    import sympy

    return {"s": list(sympy.symbols("s0:4", real=True)), "t": sympy.Symbol("tau", positive=True)}


def draw(rng):
    """2 to 40 similarities in (-1, 1), 30 % of them rounded to thirds so that ties occur; temperature 0.01 to 30."""
    s = rng.uniform(-1, 1, round(2 * 20 ** rng.random()))
    s = [round(3 * x) / 3 if rng.random() < 0.3 else float(x) for x in s]
    return {"s": s, "t": float(10 ** rng.uniform(-2, 1.4771))}


def terms(m, base):
    """Loss, probabilities, relative penalties, and the moments of the similarities."""
    s, t = base["s"], base["t"]
    top = m.largest(*s)
    # Numbers are shifted so that no exponential overflows; symbols are not, since a maximum hinders simplification.
    shift = 0 if m.symbolic else top
    weights = [m.exp((x - shift) / t) for x in s]
    total, others = sum(weights), sum(weights[1:])
    p, n = [w / total for w in weights], len(s)
    average = sum(s) / n
    return {
        "s": s, "t": t, "N": n, "K": n - 1, "P": p,
        "L": m.log(total) + (shift - s[0]) / t,
        "L_dcl": m.log(others) + (shift - s[0]) / t,
        "r": [w / others for w in weights[1:]],
        "expected": sum(a * b for a, b in zip(p, s, strict=True)),
        "gap": m.largest(*s[1:]) - s[0],
        "s_max": top, "s_min": m.smallest(*s), "s_mean": average,
        "k2": sum((x - average) ** 2 for x in s) / n,
        "k3": sum((x - average) ** 3 for x in s) / n,
    }  # fmt: skip


SCENARIO = Scenario(
    name="anchor",
    setting="one anchor",
    given="2 <= N and 0 < t",
    meaning={
        "s": "similarities, the positive first",
        "t": "temperature",
        "N": "number of candidates",
        "K": "number of negatives",
        "P": "softmax probabilities",
        "L": "InfoNCE loss of the anchor",
        "L_dcl": "decoupled loss: the positive is not in the denominator",
        "r": "relative penalties: softmax over the negatives",
        "expected": "sum of P_j s_j",
        "gap": "largest negative similarity minus that of the positive",
        "s_max": "largest similarity",
        "s_min": "smallest similarity",
        "s_mean": "mean similarity",
        "k2": "variance of the similarities",
        "k3": "third central moment of the similarities",
    },
    symbols=symbols,
    fixed=(
        {"s": (0.5, 0.25, -0.45, -0.1), "t": 0.5},
        {"s": (0.25, 0.5, -0.45, -0.1), "t": 0.05},
        {"s": (0.2, 0.5, 0.5, 0.1), "t": 0.1},
        {"s": (0.9, -0.3), "t": 3.0},
    ),
    draw=draw,
    drawn={"s": Drawn(-1, 1, (2, 40), tied=True), "t": Drawn(0.01, 30, scale=LOGARITHMIC)},
    terms=terms,
)
