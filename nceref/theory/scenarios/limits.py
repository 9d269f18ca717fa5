"""One anchor whose candidates are ordered: what is left of the loss as the temperature goes to 0, case by case."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario


def symbols():
    """Four real similarities and a positive temperature."""
    import sympy

    return {"s": list(sympy.symbols("s0:4", real=True)), "t": sympy.Symbol("tau", positive=True)}


def draw(rng):
    """3 to 8 similarities; the hardest negative often tied, the positive below, at or above it; temperature to 3."""
    s = [round(float(x), 2) for x in rng.uniform(-1, 1, rng.integers(3, 9))]
    top = max(s[1:])
    # Random reals are never tied, and ties decide the limit.
    s[1:] = [top if rng.random() < 0.2 else x for x in s[1:]]
    s[0] = top + float(rng.integers(-1, 2)) * float(rng.uniform(0.05, 0.5))
    return {"s": s, "t": float(10 ** rng.uniform(-3, 0.477))}


def terms(m, base):
    """Loss and relative penalties; with numbers also what depends on the order of the similarities."""
    s, t = base["s"], base["t"]
    shift = 0 if m.symbolic else m.largest(*s)
    weights = [m.exp((x - shift) / t) for x in s]
    total, others = sum(weights), sum(weights[1:])
    r = [w / others for w in weights[1:]]
    center = sum(p * x for p, x in zip(r, s[1:], strict=True))
    named = {
        "s": s, "t": t, "N": len(s), "K": len(s) - 1, "P": [w / total for w in weights], "r": r,
        "L": m.log(total) + (shift - s[0]) / t,
        "r_mean": center,
        "r_var": sum(p * (x - center) ** 2 for p, x in zip(r, s[1:], strict=True)),
    }  # fmt: skip
    return named if m.symbolic else {**named, **_case(m, s, t), **_restricted(m, s, t)}


def _case(m, s, t):
    """The values of one of three cases: the hardest negative above the positive, at it, or below."""
    # Real parts decide the case: during a complex step an entry has a tiny imaginary part.
    sizes, one = [x.real for x in s], m.number(1, exact=True)
    top = max(sizes[1:])
    gap, lower = top - sizes[0], [x - top for x in sizes[1:] if x < top]
    tied = [int(x == top) for x in sizes[1:]]
    ties = sum(tied)
    if gap > 0:
        limit, rates, share = m.log(one * ties), [-gap, *lower], [0, *(one * x / ties for x in tied)]
    elif gap == 0:
        limit, rates, share = m.log(one + ties), lower, [one * x / (1 + ties) for x in (1, *tied)]
    else:
        limit, rates, share = 0 * one, [gap], [one, *(0 for _ in tied)]
    return {
        "gap": gap, "ties": ties, "others": len(tied) - ties, "below": max(lower, default=0 * one),
        "limit": limit, "share": share, "rest": len(tied) * m.exp(max(rates) / t) if rates else 0 * one,
        "on_hardest": sum(a * m.exp((x - m.largest(*s)) / t) for a, x in zip(tied, s[1:], strict=True))
        / sum(m.exp((x - m.largest(*s)) / t) for x in s),
    }  # fmt: skip


def _restricted(m, s, t):
    """The loss over some of the negatives: the hard ones, and the upper half."""
    sizes = [x.real for x in s]
    above = [m.exp((x - s[0]) / t) for x in s]
    hard = [j for j in range(1, len(s)) if sizes[j] >= sizes[0]]
    ranked = sorted(range(1, len(s)), key=lambda j: (-sizes[j], j))
    kept = ranked[: len(s) // 2]
    return {
        "L_restricted": m.log(1 + sum(above[j] for j in hard)),
        "easy": sum(above[j] for j in ranked if j not in hard),
        "L_half": m.log(1 + sum(above[j] for j in kept)), "kept": kept, "dropped": ranked[len(kept) :],
    }  # fmt: skip


SCENARIO = Scenario(
    name="limits",
    setting="one anchor",
    given="2 <= K and 0 < t",
    meaning={
        "s": "similarities, the positive first, at least two negatives",
        "t": "temperature",
        "N": "number of candidates",
        "K": "number of negatives",
        "P": "softmax probabilities",
        "r": "relative penalties: softmax over the negatives",
        "L": "InfoNCE loss of the anchor",
        "r_mean": "mean similarity of the negatives, weighted by r",
        "r_var": "variance of the similarities of the negatives, weighted by r",
        "gap": "largest negative similarity minus that of the positive",
        "ties": "how many negatives are the hardest",
        "others": "how many negatives are not",
        "below": "the next lower negative similarity minus the largest; 0 if there is none",
        "limit": "log(ties) if gap > 0, log(1 + ties) if gap = 0, 0 if gap < 0",
        "share": "limit of the probabilities: on the tied hardest, on them and the positive, or on the positive",
        "rest": "K times the slowest exponential of what is left of the limit; 0 if nothing is",
        "on_hardest": "probability of the hardest negatives together",
        "L_restricted": "the loss with the negatives only that are at least as similar as the positive",
        "easy": "sum of exp((s_j - s_0) / t) over the other negatives",
        "L_half": "the loss with the more similar half of the negatives only",
        "kept": "places of that half",
        "dropped": "places of the other negatives",
    },
    symbols=symbols,
    fixed=(
        {"s": (0.2, 0.5, 0.5, 0.1), "t": 0.1},
        {"s": (0.2, 0.5, 0.49, 0.1), "t": 0.01},
        {"s": (0.5, 0.5, 0.5, 0.1), "t": 0.01},
        {"s": (0.5, 0.25, -0.45, -0.1), "t": 0.05},
        {"s": (0.0, 0.9, 0.5, -0.8), "t": 1.0},
        {"s": (0.2, 0.5, 0.5, 0.1), "t": 0.0001},
        {"s": (0.3, 0.3, 0.3, 0.3), "t": 1.0},
    ),
    draw=draw,
    drawn={
        "s": "2 to 7 negatives from -1 to 1, some tied; the positive up to 0.5 below, at or above the largest",
        "t": Drawn(0.001, 3, scale=LOGARITHMIC),
    },
    terms=terms,
)
