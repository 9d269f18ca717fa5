"""Uniformity: log of the mean Gaussian potential over pairs of points.

    L = log( mean_{i < j} exp(-t |x_i - x_j|^2) )

With the diagonal the mean runs over all N^2 ordered pairs, and the value changes.
"""

import math

from nceref.engine.distances import SquaredDistance
from nceref.engine.embeddings import embed
from nceref.engine.formulas import rows, squared_distance
from nceref.engine.heads import HeadRows, cancelling, monotone
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import NORMALIZE, NORMALIZED
from nceref.engine.patterns import Except, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Factor
from nceref.engine.statistics import NEAR, LogSumExp, Term
from nceref.errors import InputError
from nceref.spec import Array, Choice, Expectation, Loss, Relation, Scalar, Source, always


def formula(m, x, *, t, include_diagonal, normalize):
    """One number for the whole set."""
    x, n = rows(m, x, normalize), len(x)
    pairs = [(i, j) for i in range(n) for j in range(n) if i < j or include_diagonal]
    potentials = [m.exp(-t * squared_distance(x[i], x[j])) for i, j in pairs]
    return m.log(sum(potentials) / len(pairs))


def plan(x, *, t, include_diagonal, normalize) -> Plan:
    """A log-mean-exp over everyone else a row; the head joins the rows."""
    n = x.shape[0]
    if n < 2:
        msg = f"uniformity needs at least 2 rows of `x` to form a pair, got {n}"
        raise InputError(msg)
    logits = SquaredDistance(embed(normalize, x=x), Factor(t))
    terms = {"negatives": Term(LogSumExp(count=n - 1), Except(itself(n)))}
    # A program may divide by the number of pairs only after the logarithm.
    return Plan((Comparison(logits, terms),), lambda stats: _head(stats, n, include_diagonal), constant=math.log(n))


def _head(stats, n, include_diagonal) -> HeadRows:
    """Log-mean-exp of the row statistics; a row's slope is its share.

    Ordered pairs: each pair i < j stands twice in the sum and in the count. With the diagonal, 1 of n is e^0.
    """
    s = stats["negatives"]
    xp = array_namespace(s)
    weight = (n - 1) / n**2 if include_diagonal else 1 / n

    def parts(s):
        """The largest exponent, and the mean of what is left of each; near 0 what it lacks to 1."""
        xp = array_namespace(s)
        if near:
            return 0.0, weight * xp.sum(xp.expm1(s))
        top = cancelling(xp.max(s))
        top = xp.maximum(top, xp.zeros_like(top)) if include_diagonal else top
        return top, weight * xp.sum(xp.exp(s - top)) + (xp.exp(-top) / n if include_diagonal else 0.0)

    def value(s):
        xp = array_namespace(s)
        top, mean = parts(s)
        return xp.log1p(mean) if near else top + xp.log(mean)

    # Of intervals, whether all of them are.
    near = bool(xp.min(s) > -NEAR)

    def vjp(c):
        top, mean = parts(s)
        # A share is between 0 and 1.
        return {"negatives": c * xp.clip(weight / (1 + mean if near else mean) * xp.exp(s - top), min=0.0, max=1.0)}

    return monotone(value, (1,), s), vjp


def _diagonal(losses, inputs):
    import numpy as np

    n = len(inputs["x"])
    both = [losses.uniformity(**{**inputs, "include_diagonal": shown}) for shown in (True, False)]
    return both[0], np.log((n * (n - 1) * np.exp(both[1]) + n) / n**2)


LOSS = Loss(
    name="uniformity",
    summary="Log of the mean Gaussian potential between points: what spreads them over the sphere.",
    text="L = log mean_{i<j} exp(-t |x_i - x_j|^2)",
    latex=r"L = \log\frac{2}{N(N-1)}\sum_{i<j} e^{-t\lVert x_i - x_j\rVert^2}",
    gradient="pairs i < j: dL/dx_i = -2t sum_j w_ij (x_i - x_j),  w_ij = exp(-t d_ij^2) / sum_{k<l} exp(-t d_kl^2),"
    "  d_ij = |x_i - x_j|",
    parameters=(
        Array("x", ("N", "D"), "Points, one a row."),
        Scalar("t", "t", "Sharpness of the potential.", default=2.0, low=0.0, constant=True, typical=(1.0, 3.0)),
        Choice("include_diagonal", (False, True), False, "Whether the mean runs over all N^2 pairs, i = j included."),
        NORMALIZE,
    ),
    sources=(
        Source("ssnl/align_uniform", "align_uniform/__init__.py, uniform_loss (pairs i < j)", "authors' code"),
        Source("Wang & Isola 2020", "L_uniform", "third-party note"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always("permutation_equivariant", "repels_negatives", "rotation_invariant"),
        **NORMALIZED,
    },
    unit="nats",
    rows="",
    relations=(Relation("uniformity", "log((N(N-1) e^L + N) / N^2) with the diagonal, L without", _diagonal),),
    expectations=(
        Expectation(
            "chance", "E log mean_{i<j} exp(-t |x_i - x_j|^2)",
            "N independent uniform points; at most U = log 0F1(; D/2; t^2) - 2t, and near it for many (WI-3)",
            lambda s: s.potential_chance(),
        ),
        Expectation("collapse", "0", "all points equal: the maximum (NC-5)", lambda s: 0.0),
        Expectation(
            "optimum", "-2 t N/(N-1) for N <= D + 1; else a mean over the distances of the best points",
            "a simplex, a polygon, the points +-e_k and others, proved by Cohn & Kumar 2007; halves at +-1 for D = 1",
            lambda s: s.least_potential(),
        ),
        Expectation(
            "lower bound", "-2 t N/(N-1), or log((N e^U - 1)/(N-1)) if that is more",
            "mean squared distance <= 2 N/(N-1) (Jensen); the uniform law has the least mean over all N^2 pairs (WI-3)",
            lambda s: s.potential_bound(),
        ),
        Expectation("upper bound", "0", "a mean of numbers <= 1", lambda s: 0.0),
    ),
    sign="<= 0",
    notes="There are no rows: the logarithm is taken after the mean over all pairs.",
    variants=({}, {"include_diagonal": True, "t": 3.0}),
    single=False,
)  # fmt: skip
