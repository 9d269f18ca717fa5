"""Chains of relations, the steps of a derivation, and how each is checked by SymPy or by 50-digit numbers.

A step is the relation that is printed, and the check is made on that relation: names are replaced by what they stand
for, symbolic sizes such as N by small numbers, and then both sides have to agree. What does not follow is an error.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from re import sub
from typing import Any

from nceref.theory.statements import SymbolicSystem

DIGITS = 50
"""Digits to which the two sides of a relation agree at a point."""
POINTS = 6
"""Random rational points at which numbers are compared, for each size."""


@dataclass(frozen=True, eq=False)
class Name:
    """A symbol, what it means, and what it stands for.

    The definition of an indexed name such as P[j] holds for every index. A definition that has no closed form in SymPy,
    such as a maximum over N entries, is a function of the sizes.
    """

    symbol: Any
    meaning: str
    definition: Any = None


@dataclass(frozen=True, eq=False)
class Step:
    """One relation, the rule that gives it, and how it is checked.

    Attributes
    ----------
    rule : str
        In words.
    relation : SymPy relation
        ``==``, ``<=`` or ``<``, by `equal`, `at_most` and `less`: what is printed is what is checked.
    check : str
        A key of `CHECKS`.
    by : object
        limit: nothing, or points, mappings from names to rationals; numbers: points besides the random ones;
        solve: the expression that is 0 and its unknown; series: the variable and the first order that is left out;
        program: a function that gets a reader of expressions and returns the same quantity from `nceref.losses`.
    """

    rule: str
    relation: Any
    check: str = "identity"
    by: Any = ()

    @property
    def sign(self) -> str:
        """That of the relation."""
        return {"Equality": "=", "LessThan": "≤", "StrictLessThan": "<"}[type(self.relation).__name__]


@dataclass(frozen=True, eq=False)
class Chain:
    """The names, the sizes for which relations with symbolic sizes are checked, ranges of the symbols, and the steps.

    A symbol has the range (-1, 1), or (0, 3) if it is positive, or 1 to 9 if it is an integer, unless one is given.
    """

    names: tuple[Name, ...]
    steps: tuple[Step, ...]
    sizes: tuple[Mapping[Any, int], ...] = ({},)
    ranges: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)


def equal(left: Any, right: Any) -> Any:
    """The relation left == right, left as it is."""
    import sympy

    return sympy.Eq(left, right, evaluate=False)


def at_most(left: Any, right: Any) -> Any:
    """The relation left <= right, left as it is."""
    import sympy

    return sympy.Le(left, right, evaluate=False)


def less(left: Any, right: Any) -> Any:
    """The relation left < right, left as it is."""
    import sympy

    return sympy.Lt(left, right, evaluate=False)


class BrokenError(Exception):
    """A step does not follow; the message says what stands on both sides instead."""


def concrete(chain: Chain, size: Mapping[Any, int], expression: Any) -> Any:
    """An expression without names, sums and indices: entries s[0], s[1] become symbols s0, s1.

    Parameters
    ----------
    chain : Chain
        Whose names are replaced by their definitions.
    size : mapping
        Integers for symbolic sizes and free indices.
    expression : SymPy expression
        One side of a step.

    Returns
    -------
    SymPy expression
        Derivatives, integrals and limits in it still stand.
    """
    return _concrete(chain, tuple(size.items()), expression)


@cache
def _concrete(chain: Chain, sizes: tuple[tuple[Any, int], ...], expression: Any) -> Any:
    import sympy as sp

    single, listed = _definitions(chain, sizes)

    def entry(x: Any) -> Any:
        index, definition = listed[x.base]
        return definition.xreplace({index: x.indices[0]})

    # Definitions contain other names: replaced until none is left.
    before = None
    while before != expression:
        before = expression
        expression = expression.xreplace(single)
        expression = expression.xreplace({x: entry(x) for x in expression.atoms(sp.Indexed) if x.base in listed})
    # Sizes go first, because a sum needs numbers as its ends; then no index of an entry is a symbol any more.
    expression = expression.xreplace({x: sp.Integer(n) for x, n in sizes})
    expression = expression.xreplace({x: _done(x) for x in expression.atoms(sp.Sum)})
    return expression.xreplace({x: _entry(x) for x in expression.atoms(sp.Indexed)})


@cache
def _definitions(chain: Chain, sizes: tuple[tuple[Any, int], ...]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """What stands for each name, and for the lists: the index and what stands for its entry."""
    from sympy import Indexed

    plain = {name.symbol: name.definition for name in chain.names if name.definition is not None}
    single = {x: y(dict(sizes)) if callable(y) else y for x, y in plain.items() if not isinstance(x, Indexed)}
    return single, {x.base: (x.indices[0], y) for x, y in plain.items() if isinstance(x, Indexed)}


def _entry(x: Any) -> Any:
    import sympy as sp

    # What is known of the list holds for its entries: without it, log(exp(s0)) would not be s0.
    known = {k: v for k, v in x.base.assumptions0.items() if k in ("real", "positive") and v}
    return sp.Symbol(f"{x.base.label}{x.indices[0]}", **known)


def _sides(chain: Chain, size: Mapping[Any, int], step: Step) -> tuple[Any, Any]:
    return concrete(chain, size, step.relation.lhs), concrete(chain, size, step.relation.rhs)


@cache
def _done(expression: Any) -> Any:
    """Sums, derivatives, integrals and limits carried out; a step is checked with the same sides again and again."""
    return expression.doit()


def _points(chain: Chain, step: Step, symbols: set[Any]) -> Iterator[dict[Any, Any]]:
    """Random rational points, always the same ones for the same step."""
    rng = Random(step.rule)
    for _ in range(POINTS):
        # A set has another order in each process.
        yield {x: _draw(chain, rng, x) for x in sorted(symbols, key=str)}


def _draw(chain: Chain, rng: Random, x: Any) -> Any:
    from sympy import Rational

    named = {str(getattr(key, "label", key)): given for key, given in chain.ranges.items()}
    # An entry s0 has the range of its list s, unless it has one of its own.
    given = named.get(x.name) or named.get(sub(r"\d+$", "", x.name))
    if x.is_integer:
        return Rational(rng.randint(*(given or (1, 9))))
    low, high = given or ((0, 3) if x.is_positive else (-1, 1))
    # Neither end is drawn: a logarithm or a quotient may be infinite there.
    return low + (high - low) * Rational(rng.randint(1, 996), 997)


@cache
def _number(expression: Any, at: tuple[tuple[Any, Any], ...]) -> Any:
    # Ten digits more than are compared, so that the rounding of this evaluation does not count.
    return expression.xreplace(dict(at)).evalf(DIGITS + 10)


def _compare(step: Step, left: Any, right: Any, at: Mapping[Any, Any]) -> None:
    """Both sides with 50 digits at one point."""
    a, b = (_number(x, tuple(at.items())) for x in (left, right))
    if not (a.is_number and a.is_real and b.is_number and b.is_real):
        msg = f"the sides are {a} and {b}, no real numbers, at {_where(at)}"
        raise BrokenError(msg)
    room = max(1, abs(a), abs(b)) / 10**DIGITS
    # A bound may be attained, so "≤" has room above it; "<" has to be clear.
    if not {"=": abs(a - b) <= room, "≤": a - b <= room, "<": b - a > room}[step.sign]:
        msg = f"the sides are {a.evalf(12)} and {b.evalf(12)} at {_where(at)}"
        raise BrokenError(msg)


def _where(at: Mapping[Any, Any]) -> str:
    return ", ".join(f"{x} = {value}" for x, value in at.items()) or "every point"


def _at(chain: Chain, size: Mapping[Any, int], point: Mapping[Any, Any]) -> dict[Any, Any]:
    return {concrete(chain, size, x): value for x, value in point.items()}


def _numbers(chain: Chain, step: Step) -> str:
    for size in chain.sizes:
        left, right = map(_done, _sides(chain, size, step))
        named = left.free_symbols | right.free_symbols
        points = list(_points(chain, step, named))
        # A chosen point may leave out symbols: these stay at the first random point.
        for point in [*points, *({**points[0], **_at(chain, size, chosen)} for chosen in step.by)]:
            _compare(step, left, right, point)
    more = f" and {len(step.by)} chosen" if step.by else ""
    return f"numbers: {DIGITS} digits at {POINTS} random rational points{more}"


def _vanishes(chain: Chain, step: Step, left: Any, right: Any) -> None:
    """One random point first: simplifying what is not 0 takes long."""
    _compare(step, left, right, next(_points(chain, step, left.free_symbols | right.free_symbols)))
    if not _same(left, right):
        msg = "the difference is not simplified to 0"
        raise BrokenError(msg)


def _agree(chain: Chain, step: Step, left: Any, right: Any) -> bool:
    try:
        _vanishes(chain, step, left, right)
    except BrokenError:
        return False
    return True


def _same(left: Any, right: Any) -> bool:
    """Whether left - right simplifies to 0, or its exponential to 1: a real number has one exponential."""
    import sympy as sp

    difference = sp.sympify(left - right)
    # Fastest first: a fraction, then the difference simplified, then its exponential, where logarithms hide it.
    if _zero_as_fraction(difference):
        return True
    return SymbolicSystem().compare(difference, ast.Eq(), sp.S.Zero) or sp.simplify(sp.exp(difference) - 1) == 0


def _zero_as_fraction(difference: Any) -> bool:
    """Whether an expression is 0 as a fraction of polynomials in exponentials, logarithms and symbols.

    Most steps are settled here, in a tenth of the time that SymPy takes to simplify them. False decides nothing.
    """
    import sympy as sp

    # Of these, replacing exponentials and logarithms inside would change the meaning, or leave no fraction.
    if difference.has(sp.Derivative, sp.Integral, sp.Limit, sp.Order, sp.Piecewise, sp.Abs, sp.Max, sp.Min):
        return False
    bases: dict[Any, Any] = {}

    def exponential(x: Any) -> Any:
        """e^(2 a - b) as A^2 / B: the same exponential has the same symbol everywhere."""
        parts = [term.as_coeff_Mul() for term in sp.Add.make_args(x.expand())]
        return sp.Mul(*(bases.setdefault(rest, sp.Dummy(positive=True)) ** factor for factor, rest in parts))

    def logarithm(x: Any) -> Any:
        return sp.expand_log(sp.log(sp.factor(x)), force=True)

    plain = difference.replace(sp.exp, exponential).replace(sp.log, logarithm)
    # The logarithm of a symbol that stands for e^x is x.
    plain = plain.replace(sp.log, lambda x: next((rest for rest, base in bases.items() if base == x), sp.log(x)))
    return bool(sp.fraction(sp.together(plain))[0].expand() == 0)


def _identity(chain: Chain, step: Step) -> str:
    for size in chain.sizes:
        _vanishes(chain, step, *map(_done, _free_extremes(*_sides(chain, size, step))))
    return "identity: the difference simplifies to 0"


def _free_extremes(left: Any, right: Any) -> tuple[Any, Any]:
    """An identity for free symbols holds for maxima as well, which SymPy takes long to rewrite; not under a slope."""
    import sympy as sp

    # Sorted below, so that an extreme gets the same symbol every time and cached results are used again.
    extremes = left.atoms(sp.Max, sp.Min) | right.atoms(sp.Max, sp.Min)
    if left.has(sp.Derivative) or right.has(sp.Derivative):
        return left, right
    free = {x: sp.Symbol(f"extreme_{i}", real=True) for i, x in enumerate(sorted(extremes, key=str))}
    return left.xreplace(free), right.xreplace(free)


def _limit(chain: Chain, step: Step) -> str:
    """Points decide what SymPy cannot decide of symbols: which of several exponentials wins."""
    for size in chain.sizes:
        left, right = _sides(chain, size, step)
        for point in [_at(chain, size, point) for point in step.by] or [{}]:
            limit, wanted = _done(left.xreplace(point)), _done(right.xreplace(point))
            # Infinite limits are compared as they are: their difference would be NaN.
            if limit != wanted and (limit.is_infinite or wanted.is_infinite or not _agree(chain, step, limit, wanted)):
                msg = f"the limit is {limit} and not {wanted} at {_where(point)}"
                raise BrokenError(msg)
    return f"limit: by SymPy{f' at {len(step.by)} points' if step.by else ''}"


@cache
def _roots(equation: Any, unknown: Any) -> list[Any]:
    from sympy import solve

    return list(solve(_done(equation), unknown))


def _solve(chain: Chain, step: Step) -> str:
    for size in chain.sizes:
        equation, unknown, right = (concrete(chain, size, x) for x in (*step.by, step.relation.rhs))
        roots = _roots(equation, unknown)
        # A second root would make the step a choice, which needs a reason of its own.
        if step.relation.lhs != step.by[1] or len(roots) != 1 or not _agree(chain, step, roots[0], right):
            msg = f"SymPy solves {equation} = 0 for {unknown} by {roots}"
            raise BrokenError(msg)
    return f"solve: the only root that SymPy finds of {step.by[0]}"


@cache
def _expansion(expression: Any, variable: Any, order: int) -> Any:
    """The series around 0."""
    from sympy import series

    return series(_done(expression), variable, 0, order)


def _series(chain: Chain, step: Step) -> str:
    variable, order = step.by
    for size in chain.sizes:
        left, right = _sides(chain, size, step)
        expansion = _expansion(left, variable, order)
        _vanishes(chain, step, expansion.removeO(), right.removeO())
        # The order that is left out is part of the statement.
        if right.getO() != expansion.getO():
            msg = f"the series is {expansion}"
            raise BrokenError(msg)
    return "series: by SymPy"


def _program(chain: Chain, step: Step) -> str:
    for size in chain.sizes:
        theirs = step.by(lambda x, size=size: concrete(chain, size, x))
        # Both sides are compared with the program, so the relation between them is checked as well.
        for side in _sides(chain, size, step):
            _vanishes(chain, step, _done(side), theirs)
    return "program: both sides are the formula of nceref.losses"


CHECKS: Mapping[str, Callable[[Chain, Step], str]] = {
    "identity": _identity,
    "numbers": _numbers,
    "limit": _limit,
    "solve": _solve,
    "series": _series,
    "program": _program,
}
"""How a step is checked, by the word in `Step.check`; each returns what is printed below the step, or raises."""
