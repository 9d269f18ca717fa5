"""The encoder of source 003: two linear layers without bias, then tanh."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario


def symbols():
    """Two hidden units, one sample, one candidate."""
    import sympy

    x = list(sympy.symbols("x0:2", real=True))
    w = list(sympy.symbols("v0:4 w0:4", real=True))
    y, a = list(sympy.symbols("y0:2", real=True)), list(sympy.symbols("a0:2", positive=True))
    t = sympy.Symbol("tau", positive=True)
    return {"x": x, "y": [y], "V": [w[:2], w[2:4]], "W": [w[4:6], w[6:]], "a": a, "t": t}


def draw(rng):
    """Two to five hidden units, a positive and one to three negatives, in the square."""
    hidden, count = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    return {
        "x": rng.uniform(-1, 1, 2).tolist(), "y": rng.uniform(-1, 1, (count, 2)).tolist(),
        "V": rng.uniform(-1, 1, (hidden, 2)).tolist(), "W": rng.uniform(-1, 1, (2, hidden)).tolist(),
        "a": rng.uniform(0.5, 2, count + 1).tolist(), "t": float(10 ** rng.uniform(-2, 0)),
    }  # fmt: skip


def _through(m, x, first, second):
    """Features: tanh of the second layer of the first."""
    hidden = [sum(w * u for w, u in zip(row, x, strict=True)) for row in first]
    out = [sum(w * u for w, u in zip(row, hidden, strict=True)) for row in second]
    # tanh by exponentials, which every number system has.
    return [(1 - m.exp(-2 * u)) / (1 + m.exp(-2 * u)) for u in out]


def _cosine(m, f, g):
    product = f[0] * g[0] + f[1] * g[1]
    return product / m.sqrt((f[0] ** 2 + f[1] ** 2) * (g[0] ** 2 + g[1] ** 2))


def terms(m, base):
    """Features, the one matrix of both layers, and the loss of the listing, with stretched features."""
    first, second, t = base["V"], base["W"], base["t"]
    features = [_through(m, x, first, second) for x in (base["x"], *base["y"])]
    named = {
        **base,
        "f": features[0],
        "f_back": _through(m, [-u for u in base["x"]], first, second),
        "M": [[sum(w * row[j] for w, row in zip(out, first, strict=True)) for j in range(2)] for out in second],
        "lengths": [m.sqrt(u * u + v * v) for u, v in features],
    }
    if not all(named["lengths"]):
        # A feature that is 0 has no cosine.
        return named
    stretched = [[a * u for u in f] for a, f in zip(base["a"], features, strict=True)]
    cosines = [_cosine(m, stretched[0], g) for g in stretched[1:]]
    return {**named, "cosines": cosines, "L": m.log(sum(m.exp((c - cosines[0]) / t) for c in cosines))}


SCENARIO = Scenario(
    name="encoder",
    setting="one anchor of the toy, its encoder, and its candidates",
    given="0 < t and 0 < a",
    meaning={
        "x": "a sample, the anchor",
        "y": "other samples, the positive first",
        "V": "weights of the first layer, a row for each hidden unit",
        "W": "weights of the second layer",
        "a": "by what the features are stretched, that of the anchor first",
        "t": "temperature",
        "f": "feature of x",
        "f_back": "feature of -x",
        "M": "W V, a 2 x 2 matrix",
        "lengths": "lengths of the features before they are stretched",
        "cosines": "cosines of the anchor's feature with the others, the positive first",
        "L": "cross-entropy of these over t",
    },
    symbols=symbols,
    fixed=(
        {
            "x": (0.5, 0.77), "y": ((0.09, 0.13), (-0.69, 0.63), (0.31, -0.37)),
            "V": ((0.03, 0.46), (-0.53, -0.49), (-0.41, 0.49)), "W": ((-0.02, 0.31, 0.11), (0.3, -0.1, 0.25)),
            "a": (1.0, 2.0, 0.5, 1.5), "t": 0.05,
        },
        {
            "x": (-0.25, 0.8), "y": ((-0.5, 0.1), (0.4, -0.9)), "V": ((0.57, -0.57), (0.2, 0.6)),
            "W": ((0.3, -0.3), (-0.13, 0.09)), "a": (0.5, 1.0, 3.0), "t": 0.5,
        },
    ),
    draw=draw,
    drawn={
        "x": Drawn(-1, 1, (2, 2)), "y": Drawn(-1, 1, (4, 8)), "V": Drawn(-1, 1, (4, 10)), "W": Drawn(-1, 1, (4, 10)),
        "a": Drawn(0.5, 2, (3, 5)), "t": Drawn(0.01, 1, scale=LOGARITHMIC),
    },
    terms=terms,
)  # fmt: skip
