"""One anchor whose candidates are ordered: what is left of the loss as the temperature goes to 0, case by case."""

from nceref.theory.claim import Scenario


def symbols():
    """Four real similarities and a positive temperature."""
    import sympy

    return {"s": list(sympy.symbols("s0:4", real=True)), "t": sympy.Symbol("tau", positive=True)}


def draw(rng):
    """3 to 8 similarities; the hardest negative often tied, the positive below, at or above it; temperature to 3."""
    s = [round(float(x), 2) for x in rng.uniform(-1, 1, rng.integers(3, 9))]
    top = max(s[1:])
    s[1:] = [top if rng.random() < 0.2 else x for x in s[1:]]
    s[0] = top + float(rng.integers(-1, 2)) * float(rng.uniform(0.05, 0.5))
    return {"s": s, "t": float(10 ** rng.uniform(-3, 0.5))}


def terms(m, base):
    """Loss and relative penalties; with numbers also what depends on the order of the similarities."""
    s, t = base["s"], base["t"]
    shift = 0 if m.symbolic else m.largest(*s)
    weights = [m.exp((x - shift) / t) for x in s]
    total, others = sum(weights), sum(weights[1:])
    r = [w / others for w in weights[1:]]
    center = sum(p * x for p, x in zip(r, s[1:], strict=True))
    found = {
        "s": s, "t": t, "N": len(s), "K": len(s) - 1, "P": [w / total for w in weights], "r": r,
        "L": m.log(total) + (shift - s[0]) / t,
        "r_mean": center,
        "r_var": sum(p * (x - center) ** 2 for p, x in zip(r, s[1:], strict=True)),
    }  # fmt: skip
    return found if m.symbolic else {**found, **_case(m, s, t), **_restricted(m, s, t)}


def _case(m, s, t):
    """Which of the three cases it is: the hardest negative above the positive, at it, or below."""
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
    terms=terms,
)


def entropy_and_its_ends():
    """The derivative of H = log Z - E / tau; and log 3, 0 and log 2 (two tied) as limits for three negatives."""
    import sympy

    x = sympy.Symbol("x", positive=True)  # 1 / tau

    def parts(negatives):
        weights = [sympy.exp(s * x) for s in negatives]
        r = [w / sum(weights) for w in weights]
        mean = sum(p * s for p, s in zip(r, negatives, strict=True))
        spread = sum(p * (s - mean) ** 2 for p, s in zip(r, negatives, strict=True))
        return sympy.log(sum(weights)) - x * mean, spread

    warm = sympy.limit(parts((0, -1, -2))[0], x, 0)
    cold = [sympy.limit(parts(negatives)[0], x, sympy.oo) for negatives in ((0, -1, -2), (0, 0, -1))]
    entropy, spread = parts(sympy.symbols("s1:4", real=True))
    # d tau = -d x / x^2, so Var / tau^3 by tau is -x Var by x.
    return [warm, *cold] == [sympy.log(3), 0, sympy.log(2)] and sympy.simplify(entropy.diff(x) + x * spread) == 0


def at_zero():
    """Symbols a, c > 0: the gaps above and below; and what L, tau L or L - a / tau tends to, in each case."""
    import sympy
    from sympy import exp, log

    t, a, c, x = sympy.symbols("tau a c x", positive=True)
    third = sympy.Rational(1, 3)

    def limit(expression):
        return sympy.limit(expression, t, 0, "+")

    return {
        "hard, tau L": (limit(t * log(1 + exp(a / t) + exp(-c / t))), a),
        "hard, L": (limit(log(1 + exp(a / t) + exp(-c / t))), sympy.oo),
        "hard and tied, L - a / tau": (limit(log(1 + 2 * exp(a / t) + exp(-c / t)) - a / t), log(2)),
        "tied with the positive, L": (limit(log(1 + 2 + exp(-c / t))), log(3)),
        "solved, L": (sympy.limit(log(1 + exp(-third * x) + exp(-x)), x, sympy.oo), 0),
        "solved, tau L": (sympy.limit(log(1 + exp(-third * x) + exp(-x)) / x, x, sympy.oo), 0),
    }


def restriction_at_zero():
    """What the restriction to hard negatives changes: nothing, with hard ones above, level with it, and without."""
    import sympy
    from sympy import exp, log

    x, third = sympy.Symbol("x", positive=True), sympy.Rational(1, 3)
    hard = [2 * exp(x / 4), 2, 0]
    lost = [sympy.limit(log(1 + h + exp(-third * x) + exp(-x)) - log(1 + h), x, sympy.oo) for h in hard]
    return lost == [0, 0, 0]


def shares_at_zero():
    """1 / 2 on each of two hardest; 1 / 3 if the positive ties with them; nothing if it is the most similar."""
    import sympy
    from sympy import exp

    t, a, c = sympy.symbols("tau a c", positive=True)
    hard = exp(a / t) / (1 + 2 * exp(a / t) + exp(-c / t))
    tied, solved = 1 / (3 + exp(-c / t)), exp(-a / t) / (1 + exp(-a / t) + exp(-2 * a / t))
    return [sympy.limit(x, t, 0, "+") for x in (hard, tied, solved)] == [sympy.Rational(1, 2), sympy.Rational(1, 3), 0]


def at_infinity():
    """Three derivatives of the loss by b = 1 / tau at b = 0; every line of (6) has the value and the first of them."""
    import sympy
    from sympy import exp, log

    b, s, n = sympy.Symbol("b", positive=True), sympy.symbols("s0:4", real=True), 4
    z, mean = sum(exp(b * x) for x in s) / n, sum(s) / sympy.Integer(n)
    k2, k3 = (sum((x - mean) ** k for x in s) / n for k in (2, 3))
    lines = (
        -log(exp(b * s[0]) / (z * n)), -b * s[0] + log(n * (1 + (z - 1))), -b * s[0] + log(1 + (z - 1)) + log(n),
        -b * s[0] + (z - 1) + log(n), -b * s[0] + b * mean + log(n),
        sympy.Rational(1 - n, n) * b * s[0] + b / n * sum(s[1:]) + log(n),
    )  # fmt: skip
    left = [sympy.diff(lines[0], b, k).subs(b, 0) - want for k, want in ((2, k2), (3, k3))]
    left += [line.subs(b, 0) - log(n) for line in lines]
    left += [sympy.diff(line, b).subs(b, 0) - (mean - s[0]) for line in lines]
    return not any(map(sympy.simplify, left))


def turning_point(similarities):
    """Where E_P[s] is the similarity of the positive, the loss there and the entropy, to the digits that are told."""
    import mpmath

    with mpmath.workdps(50):
        s = [mpmath.mpf(x) for x in similarities]
        turn = mpmath.findroot(lambda t: sum((x - s[0]) * mpmath.exp(x / t) for x in s), 0.5)
        loss = mpmath.log(sum(mpmath.exp((x - s[0]) / turn) for x in s))
        p = [mpmath.exp((x - s[0]) / turn - loss) for x in s]
        entropy = -sum(x * mpmath.log(x) for x in p)
        return mpmath.nstr(turn, 5), mpmath.nstr(loss, 5), mpmath.nstr(entropy, 5)


def pull_peak(similarities):
    """The temperature at which (1 - P_0) / t is largest, the positive being the most similar, and its value there."""
    import mpmath

    with mpmath.workdps(50):
        s = [mpmath.mpf(x) for x in similarities]

        def slope(t):
            p = [mpmath.exp((x - s[0]) / t) for x in s]
            mean = sum(a * x for a, x in zip(p, s, strict=True)) / sum(p)
            return sum(a * (mean - x - t) for a, x in zip(p[1:], s[1:], strict=True))

        peak = mpmath.findroot(slope, s[0] / 2)
        pull = (1 - 1 / sum(mpmath.exp((x - s[0]) / peak) for x in s)) / peak
        return mpmath.nstr(peak, 4), mpmath.nstr(pull, 5)
