"""Points on the unit circle, each with a partner: how well partners align and how uniformly the points lie."""

from nceref.theory.claim import Drawn, Scenario


def symbols():
    """Angles of three points and of their partners."""
    import sympy

    return {"a": list(sympy.symbols("a0:3", real=True)), "b": list(sympy.symbols("b0:3", real=True))}


def draw(rng):
    """2 to 9 points; half of the partners are close."""
    n = int(rng.integers(2, 10))
    a = rng.uniform(-3, 3, n)
    b = a + rng.normal(0, 1, n) * rng.choice((0.05, 2.0), n)
    return {"a": a.tolist(), "b": b.tolist()}


def terms(m, base):
    """Alignment and both kinds of uniformity, from the coordinates of the points."""
    x, y = ([(m.cos(angle), m.sin(angle)) for angle in base[name]] for name in ("a", "b"))
    n = len(x)
    apart = [[(p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for q in x] for p in x]
    return {
        "a": base["a"], "b": base["b"], "N": n,
        "align": sum((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in zip(x, y, strict=True)) / n,
        "uniform": m.log(2 * sum(m.exp(-2 * apart[i][j]) for j in range(n) for i in range(j)) / (n * (n - 1))),
        "uniform_all": m.log(sum(m.exp(-2 * d) for row in apart for d in row) / n**2),
    }  # fmt: skip


def balanced(n, rng):
    """Three sets of n points on the circle that add up to zero: a polygon, two poles, and random antipodal pairs."""
    import numpy as np

    polygon = 2 * np.pi * np.arange(n) / n + rng.uniform(0, 2 * np.pi)
    half = rng.uniform(0, 2 * np.pi, n // 2)
    angles = polygon, np.pi * (np.arange(n) % 2), np.concatenate([half, half + np.pi])
    return [np.stack([np.cos(a), np.sin(a)], axis=1) for a in angles]


def least_uniformity(dimension, t=2):
    """Uniformity of the uniform law on the sphere in that many dimensions, as a number of mpmath."""
    from mpmath import hyp0f1, log, mpf

    # -t |x - y|^2 = 2 t x.y - 2 t, and the mean of exp(2 t x.y) over the sphere is 0F1(; dimension / 2; t^2).
    return log(hyp0f1(mpf(dimension) / 2, mpf(t) ** 2)) - 2 * t


SCENARIO = Scenario(
    name="sphere",
    setting="a batch of points on the circle, with partners",
    given="2 <= N",
    meaning={
        "a": "angles of the points",
        "b": "angles of their partners",
        "N": "number of points",
        "align": "alignment: mean squared distance of partners",
        "uniform": "uniformity at t = 2 over the pairs of different points",
        "uniform_all": "uniformity at t = 2 over all ordered pairs, a point with itself included",
    },
    symbols=symbols,
    fixed=(
        {"a": (0.0, 1.5, -2.0), "b": (0.25, 1.5, -1.0)},
        {"a": (0.5, 0.5, 0.5, 0.5), "b": (0.5, -0.5, 3.0, 0.0)},
        {"a": (0.1, 3.0), "b": (0.1, 3.0)},
    ),
    draw=draw,
    drawn={"a": Drawn(-3, 3, (2, 9)), "b": "a and a normal number, of standard deviation 0.05 or 2"},
    terms=terms,
)
