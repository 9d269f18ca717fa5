"""Exact values and directional derivatives of every loss, to as many digits as a tolerance needs."""

from types import SimpleNamespace

import numpy as np
from flint import arb, ctx
from fuzz.balls import Rows, UndecidedError, with_slope
from fuzz.definitions import DEFINITIONS, Scale

from nceref.spec import Array, Labels, Scalar

PRECISIONS = (160, 400, 1400, 5000, 12000)
"""Bits; the next one is tried where the digits of the one before do not do."""


class Exact:
    """Numbers as midpoint and radius, and the scale of what led to them."""

    def __init__(self, values, slope, weights, scale):
        self.values, self.slope, self.weights, self.scale = values, slope, weights, scale


def arguments(parameters, plain, along=None, direction=None):
    """The arguments of a definition; one of them, `along`, moves in a direction."""
    out = SimpleNamespace()
    for p in parameters:
        given = plain.get(p.name)
        moves = direction if p.name == along else None
        if given is None and isinstance(p, Array | Labels):
            number = None
        elif isinstance(p, Array):
            number = _array(np.asarray(given, dtype=np.float64), moves)
        elif isinstance(p, Labels):
            number = [int(y) for y in given]
        elif isinstance(p, Scalar) and given is not None:
            number = arb(given) if moves is None else with_slope(arb(given), arb(moves))
        else:
            number = given
        setattr(out, p.name, number)
    return out


def _array(x, direction):
    if x.ndim == 1:
        values = [arb(t) for t in x.tolist()]
        return (
            values
            if direction is None
            else [with_slope(t, arb(v)) for t, v in zip(values, direction.tolist(), strict=True)]
        )
    if x.ndim == 3:
        return [_array(x[:, v], None if direction is None else direction[:, v]) for v in range(x.shape[1])]
    slopes = None if direction is None else [[arb(v) for v in row] for row in direction.tolist()]
    return Rows([[arb(t) for t in row] for row in x.tolist()], slopes)


def evaluate(declaration, plain, reduction, cotangent=None, along=None, direction=None, enough=None):
    """Value or rows of a loss, and the derivative along a direction of one argument.

    Parameters
    ----------
    declaration : Loss
        Gives names and kinds of the arguments; its formula is not used.
    plain : dict
        Every argument: float64 or integer arrays, floats, words.
    reduction, cotangent
        As in `value_and_grad`; the derivative under "none" is that of <cotangent, rows>.
    along, direction
        Name of an argument, and float or array in its shape.
    enough : callable
        Takes an `Exact` and returns whether its radii do; more digits are taken until then.

    Raises
    ------
    UndecidedError
        Where two numbers that choose between branches are equal to all digits.
    """
    error = None
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            try:
                out = _evaluate(declaration, plain, reduction, cotangent, along, direction)
            except UndecidedError as undecided:
                error = undecided
                continue
            if all(x.is_finite() for x in out.values) and (enough is None or enough(out)):
                return out
            error = ArithmeticError(f"{bits} bits do not do: {out.values} {out.slope}")
    raise error


def _evaluate(declaration, plain, reduction, cotangent, along, direction):
    scale = Scale()
    reduced = DEFINITIONS[declaration.name](arguments(declaration.parameters, plain, along, direction), scale)
    weights = reduced.weights if reduced.weights is not None else [arb(1)] * len(reduced.rows)
    weighted = [w * row for w, row in zip(weights, reduced.rows, strict=True)]
    if reduction == "none":
        factors = [arb(c) for c in np.ravel(cotangent).tolist()] if cotangent is not None else [arb(1)] * len(weighted)
        values = weighted
    else:
        divisor = arb(1) if reduction == "sum" else sum(weights, arb(0)) if reduced.divisor is None else reduced.divisor
        factors = [1 / arb(divisor)] * len(weighted)
        values = [sum((f * x for f, x in zip(factors, weighted, strict=True)), arb(0))]
    slope = None
    if along is not None:
        total = sum((f * x for f, x in zip(factors, weighted, strict=True)), with_slope(arb(0), arb(0)))
        slope = total[1]
    return Exact([_value(x) for x in values], slope, [float(w) for w in weights], scale)


def _value(x):
    return x if isinstance(x, arb) else x[0]
