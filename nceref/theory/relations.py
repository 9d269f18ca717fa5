"""Evaluations of the two sides of a step: their numbers at a point, a difference of 0 for every size, a sign."""

import ast
from collections.abc import Mapping
from functools import cache
from random import Random
from re import sub
from typing import Any

from nceref.theory.chain import BrokenError, Chain, Step, concrete, done, named, normal_form, sign
from nceref.theory.statements import SymbolicSystem
from nceref.theory.symbolic_sums import nonnegative, positive, zero_as_fraction

DIGITS = 50
"""Digits to which the two sides of a relation agree at a point."""


def sides(chain: Chain, step: Step) -> tuple[Any, Any]:
    """The left and the right side, without names."""
    return named(chain, step.relation.lhs), named(chain, step.relation.rhs)


def random_point(chain: Chain, step: Step, symbols: set[Any]) -> dict[Any, Any]:
    """A random rational point, always the same one for the same step."""
    rng = Random(step.rule)
    # A set has another order in each process.
    return {x: _draw(chain, rng, x) for x in sorted(symbols, key=str)}


def _draw(chain: Chain, rng: Random, x: Any) -> Any:
    from sympy import Rational

    low, high = interval(chain, x)
    if x.is_integer:
        return Rational(rng.randint(low, high))
    # Neither end is drawn: a logarithm or a quotient may be infinite there.
    return low + (high - low) * Rational(rng.randint(1, 996), 997)


def interval(chain: Chain, x: Any) -> tuple[Any, Any]:
    """The ends between which a symbol, or an entry of a list, is drawn."""
    given = {str(getattr(key, "label", key)): ends for key, ends in chain.ranges.items()}
    # An entry s0 has the range of its list s, unless it has one of its own.
    name = str(x.base.label) if hasattr(x, "base") else x.name
    usual = (1, 9) if x.is_integer else (0, 3) if x.is_positive else (-1, 1)
    return given.get(name) or given.get(sub(r"\d+$", "", name)) or usual


def evaluate(chain: Chain, step: Step) -> None:
    """Compare numbers at one random point of the last size."""
    left, right = (done(concrete(chain, chain.sizes[-1], _integrated(x))) for x in step.relation.args)
    compare(step, left, right, random_point(chain, step, left.free_symbols | right.free_symbols))


@cache
def _number(expression: Any, at: tuple[tuple[Any, Any], ...]) -> Any:
    # Ten digits more than are compared, so that the rounding of this evaluation does not count.
    return expression.xreplace(dict(at)).evalf(DIGITS + 10)


def compare(step: Step, left: Any, right: Any, at: Mapping[Any, Any]) -> None:
    """Compare both sides with 50 digits at one point; raises `BrokenError` where the relation does not hold."""
    a, b = (_number(x, tuple(at.items())) for x in (left, right))
    if not (a.is_number and a.is_real and b.is_number and b.is_real):
        msg = f"the sides are {a} and {b}, no real numbers, at {where(at)}"
        raise BrokenError(msg)
    room = max(1, abs(a), abs(b)) / 10**DIGITS
    # A bound may be attained, so "≤" has room above it; "<" has to be clear.
    if not {"=": abs(a - b) <= room, "≤": a - b <= room, "<": b - a > room}[step.sign]:
        msg = f"the sides are {a.evalf(12)} and {b.evalf(12)} at {where(at)}"
        raise BrokenError(msg)


def where(at: Mapping[Any, Any]) -> str:
    """A point in words."""
    return ", ".join(f"{x} = {value}" for x, value in at.items()) or "every point"


def must_vanish(chain: Chain, expression: Any, message: str) -> None:
    """Whether an expression is 0 for every size."""
    plain = resolved(chain, expression)
    if not zero_as_fraction(plain) and (_is_apart(plain) or not simplified_to_zero(plain)):
        raise BrokenError(message)


def _is_apart(plain: Any) -> bool:
    """Whether it is not 0 somewhere, which takes less time than to simplify what is not 0."""
    from sympy import Rational

    symbols = sorted(plain.free_symbols, key=str)
    value = plain.xreplace({x: Rational(7 + 5 * n, 11 + 3 * n) for n, x in enumerate(symbols)}).evalf(20)
    return bool(value.is_Float and abs(value) > Rational(1, 10**15))


def resolved(chain: Chain, expression: Any) -> Any:
    """The expression without names, sums, derivatives and integrals."""
    from sympy import Derivative

    for x in expression.atoms(Derivative):
        for variable in x.variables:
            _must_not_hide(chain, x, variable)
    return normal_form(chain)(named(chain, _integrated(expression)))


def _integrated(expression: Any) -> Any:
    """The expression with its integrals carried out first: SymPy integrates maxima, which names stand for, wrongly."""
    from sympy import Integral

    return expression.xreplace({x: done(x) for x in expression.atoms(Integral)})


def _must_not_hide(chain: Chain, slope: Any, variable: Any) -> None:
    """A maximum over entries is a symbol where sizes are symbols, and would look like a constant."""
    for name in chain.names:
        if callable(name.definition) and slope.expr.has(name.symbol):
            size = chain.sizes[0]
            if concrete(chain, size, variable) in concrete(chain, size, name.symbol).free_symbols:
                msg = f"the slope of {name.symbol} by {variable} is not seen"
                raise BrokenError(msg)


def simplified_to_zero(difference: Any) -> bool:
    """Whether SymPy simplifies a real difference to 0, or its exponential to 1; slow where it is no fraction."""
    import sympy as sp

    return SymbolicSystem().compare(difference, ast.Eq(), sp.S.Zero) or sp.simplify(sp.exp(difference) - 1) == 0


def _facts(chain: Chain) -> dict[Any, bool]:
    """Differences with a sign by the hypotheses: True for those that are positive, False for at least 0."""
    facts = {}
    for relation in chain.given:
        if sign(relation) != "=":
            facts[_difference(chain, relation)] = sign(relation) == "<"
    return facts


def _difference(chain: Chain, relation: Any) -> Any:
    return (named(chain, relation.rhs) - named(chain, relation.lhs)).expand()


def must_have_sign(chain: Chain, expression: Any, *, strict: bool) -> None:
    """Raise an error unless the sign is shown: with names first, whose sign their definitions may hide."""
    from sympy import sympify

    for x in (sympify(expression), named(chain, expression)):
        if (positive if strict else nonnegative)(x, _facts(chain)):
            return
    msg = f"no sign is seen of {expression}"
    raise BrokenError(msg)
