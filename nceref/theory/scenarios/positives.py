"""One anchor with several positives and negatives, as vectors that are scaled to length 1."""

from nceref.theory.claim import LOGARITHMIC, NORMAL, Drawn, Scenario


def symbols():
    """Two positives and two negatives in the plane; the symbols stand for vectors that have length 1 already."""
    import sympy

    return {
        "w": sympy.symbols("w0:2", real=True),
        "positives": (sympy.symbols("a0:2", real=True), sympy.symbols("b0:2", real=True)),
        "negatives": (sympy.symbols("c0:2", real=True), sympy.symbols("e0:2", real=True)),
        "t": sympy.Symbol("tau", positive=True),
    }


def draw(rng):
    """1 to 5 positives and 1 to 6 negatives in 2 to 4 dimensions; temperature 0.05 to 10."""
    width = rng.integers(2, 5)
    sizes = {"w": width, "positives": (rng.integers(1, 6), width), "negatives": (rng.integers(1, 7), width)}
    return {name: rng.standard_normal(size).tolist() for name, size in sizes.items()} | {
        "t": float(10 ** rng.uniform(-1.3, 1))
    }


def terms(m, base):
    """Vectors of length 1, similarities, probabilities, and both supervised contrastive losses."""
    w, t = base["w"], base["t"]
    norm, *z = _unit(m, w)
    z_p, z_n = ([_unit(m, v)[1:] for v in base[name]] for name in ("positives", "negatives"))
    s_p, s_n = ([sum(a * b for a, b in zip(v, z, strict=True)) for v in vectors] for vectors in (z_p, z_n))
    e_p, e_n = ([m.exp(x / t) for x in similarities] for similarities in (s_p, s_n))
    share, total, count = sum(e_p), sum(e_p) + sum(e_n), len(s_p)
    return {
        **base, "norm": norm, "z": z, "z_p": z_p, "z_n": z_n, "D": len(w), "K": count, "M": len(s_n),
        "s_p": s_p, "s_n": s_n, "e_p": e_p, "total": total,
        "P_p": [x / total for x in e_p], "P_n": [x / total for x in e_n], "X_in": [x / share for x in e_p],
        "L_out": m.log(total) - sum(s_p) / (count * t),
        "L_in": m.log(total) - m.log(share) + m.log(count),
        "range_p": m.largest(*s_p) - m.smallest(*s_p),
        "range_n": m.largest(*s_n) - m.smallest(*s_n),
        "gap": s_n[0] - s_p[0],
    }  # fmt: skip


def _unit(m, v):
    """Length, and the coordinates of the vector of length 1 in the same direction."""
    # Symbols stand for vectors of length 1 already.
    norm = 1 if m.symbolic else m.sqrt(sum(x * x for x in v))
    return [norm, *(x / norm for x in v)]


SCENARIO = Scenario(
    name="positives",
    setting="one anchor",
    given="1 <= K and 1 <= M and 0 < t and 0 < norm",
    meaning={
        "w": "the anchor before normalization",
        "positives": "the positives before normalization",
        "negatives": "the negatives before normalization",
        "t": "temperature",
        "norm": "length of w",
        "z": "the anchor, w / norm",
        "z_p": "the positives, normalized",
        "z_n": "the negatives, normalized",
        "D": "number of coordinates",
        "K": "number of positives",
        "M": "number of negatives",
        "s_p": "similarities of the positives",
        "s_n": "similarities of the negatives",
        "e_p": "e^(s / t) of the positives",
        "total": "sum of e^(s / t) over positives and negatives",
        "P_p": "softmax probabilities of the positives",
        "P_n": "softmax probabilities of the negatives",
        "X_in": "softmax over the positives alone",
        "L_out": "supervised contrastive loss, mean over the positives outside of the logarithm",
        "L_in": "supervised contrastive loss, mean over the positives inside of the logarithm",
        "range_p": "largest minus smallest similarity of a positive",
        "range_n": "largest minus smallest similarity of a negative",
        "gap": "similarity of the first negative minus that of the first positive",
    },
    symbols=symbols,
    fixed=(
        {"w": (2.0, 1.0), "positives": ((1.0, 0.0), (0.5, -1.5)), "negatives": ((-1.0, 1.0), (1.0, 3.0)), "t": 0.5},
        {"w": (0.0, -1.0), "positives": ((1.0, -1.0),) * 3, "negatives": ((3.0, 4.0), (-3.0, 4.0)), "t": 0.07},
        {"w": (1.0, 2.0, -2.0), "positives": ((1.0, 0.5, 0.0),), "negatives": ((0.0, 1.0, 1.0),) * 4, "t": 2.0},
    ),
    draw=draw,
    drawn={
        "w": Drawn(0, 1, (2, 4), NORMAL),
        "positives": Drawn(0, 1, (2, 20), NORMAL),
        "negatives": Drawn(0, 1, (2, 24), NORMAL),
        "t": Drawn(0.05, 10, scale=LOGARITHMIC),
    },
    terms=terms,
)
