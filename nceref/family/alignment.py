"""Alignment: mean distance between positive pairs, to a power.

L_i = |x_i - y_i|^a
"""

from functools import partial

from nceref.engine.distances import PairedDistance
from nceref.engine.embeddings import embed
from nceref.engine.formulas import rows, squared_distance
from nceref.engine.heads import HeadRows, monotone
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import NORMALIZE, NORMALIZED
from nceref.engine.patterns import Everyone
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import compared
from nceref.engine.similarity import Factor
from nceref.engine.statistics import Sum, Term
from nceref.spec import Array, Expectation, Kink, Loss, Relation, Scalar, Source, always


def formula(m, x, y, *, exponent, normalize):
    """Euclidean distance of each pair, to the power `exponent`."""
    x, y = rows(m, x, normalize), rows(m, y, normalize)
    squares = [squared_distance(x_i, y_i) for x_i, y_i in zip(x, y, strict=True)]
    return [d2 ** (exponent / 2) for d2 in squares]


def plan(x, y, *, exponent, normalize) -> Plan:
    """One column of distances; nothing is compared across pairs."""
    logits = PairedDistance(embed(normalize, x=x), embed(normalize, y=y))
    comparison = Comparison(logits, {"distance": Term(Sum(), Everyone())})
    return Plan((comparison,), partial(_head, exponent=exponent))


def _head(stats, exponent) -> HeadRows:
    """d^a, which is 0 where x = y for every a > 0; its slope a d^(a - 1) is set to 0 there."""
    # An interval of the error analysis may lie on both sides of 0.
    distance = array_namespace(stats["distance"]).clip(stats["distance"], min=0.0)

    def power(by):
        """d^by, 0 where d is: it rises for by >= 0."""

        def of_distance(d):
            xp = array_namespace(d)
            return xp.where(d > 0, xp.where(d > 0, d, 1.0) ** by, 0.0)

        return monotone(of_distance, (1,), distance) if by >= 0 else of_distance(distance)

    def vjp(c):
        # The exponent last: with a tiny one, the slope alone would lose its digits.
        return {"distance": Factor(exponent).multiply(c * power(exponent - 1), 0)}

    return power(exponent), vjp


def _touching(inputs, _eps):
    """Whether a pair coincides to rounding, where a power of the distance up to 1 has no gradient."""
    import numpy as np

    x, y = compared(inputs, "x", "y")
    gap = np.linalg.norm(x - y, axis=1)
    size = np.linalg.norm(x, axis=1) + np.linalg.norm(y, axis=1)
    return bool(inputs["exponent"] <= 1 and np.any(gap <= 1e-6 * size))


def _cosine(losses, inputs):
    x, y = compared({**inputs, "normalize": "l2"}, "x", "y")
    return losses.alignment(**inputs), (2 - 2 * (x * y).sum(axis=1)).mean()


LOSS = Loss(
    name="alignment",
    summary="Mean distance of positive pairs to a power: what pulls views together.",
    text="L_i = |x_i - y_i|^a",
    latex=r"L_i = \lVert x_i - y_i\rVert_2^{\alpha}",
    gradient="dL_i/dx_i = a |x_i - y_i|^(a-2) (x_i - y_i) = -dL_i/dy_i",
    parameters=(
        Array("x", ("N", "D"), "Embeddings; row i and row i of `y` are a positive pair."),
        Array("y", ("N", "D"), "Embeddings of the other view."),
        Scalar(
            "exponent", r"\alpha", "Power of the distance.", default=2.0, low=0.0, constant=True, typical=(1.0, 3.0),
        ),
        NORMALIZE,
    ),
    sources=(
        Source("ssnl/align_uniform", "align_uniform/__init__.py, align_loss", "authors' code"),
        Source("Wang & Isola 2020", "L_align", "third-party note"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always("nonnegative", "permutation_equivariant", "rotation_invariant", "view_swap_invariant"),
        **NORMALIZED,
    },
    rows="(N,)",
    sign=">= 0",
    relations=(
        Relation("alignment", "the mean of 2 - 2 cos", _cosine, given={"exponent": 2.0, "normalize": "l2"}),
    ),
    expectations=(
        Expectation(
            "chance", "2^(a/2)", "independent uniform rows as D grows: all distances are the square root of 2 (WI-2)",
            lambda s: 2.0 ** (s.exponent / 2), dim=False,
        ),
        Expectation(
            "chance", "2^(D-2+a) G(D/2) G((D-1+a)/2) / (sqrt(pi) G(D-1+a/2)), G the Gamma function",
            "|x - y|^2 / 4 of independent uniform rows has a beta law (derived here)",
            lambda s: s.distance_chance(), dim=True,
        ),
        Expectation("collapse", "0", "all rows equal: the minimum (NC-5)", lambda s: 0.0),
        Expectation("optimum", "0", "x_i = y_i", lambda s: 0.0),
        Expectation("lower bound", "0", "a distance", lambda s: 0.0),
        Expectation("upper bound", "2^a", "antipodal pairs", lambda s: 2.0**s.exponent),
    ),
    kinks=(Kink("contact", "x_i = y_i with exponent <= 1", "0", _touching),),
    unit="",
    notes="Collapse is a minimum: alignment alone is solved by a constant encoder.",
    variants=({}, {"exponent": 1.0}, {"exponent": 3.0}),
)  # fmt: skip
