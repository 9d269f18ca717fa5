"""How a step of a derivation is proved: for every number of candidates, wherever the hypotheses hold.

Each relation is also evaluated with 50 digits at a random point before it is proved: that is no
part of the proof, and finds most mistakes at once.
"""

import ast
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from re import sub
from typing import Any

from nceref.theory.chain import BrokenError, Chain, Step, Use, concrete, done, index_ranges, named, normal_form, sign
from nceref.theory.statements import SymbolicSystem
from nceref.theory.symbolic_sums import UndecidedError, differentiated, nonnegative, positive, renamed, zero_as_fraction

DIGITS = 50
"""Digits to which the two sides of a relation agree at a point."""


EQUATIONS = {"identity", "limit", "squeeze", "solve", "series", "program"}
EITHER = {"numbers", "follows", "increasing"}
"""Checks of equations, and of equations and inequalities; the others are for inequalities."""


def prove(chain: Chain, step: Step) -> str:
    """Check one step; returns what is printed below it.

    Raises
    ------
    BrokenError
        If it does not follow.
    """
    if (step.sign == "=") != (step.check in EQUATIONS) and step.check not in EITHER:
        msg = f"a step by {step.check} has not the sign {step.sign}"
        raise BrokenError(msg)
    try:
        return CHECKS[step.check](chain, step)
    except UndecidedError as undecided:
        raise BrokenError(str(undecided)) from undecided


def _sides(chain: Chain, step: Step) -> tuple[Any, Any]:
    return named(chain, step.relation.lhs), named(chain, step.relation.rhs)


def _point(chain: Chain, step: Step, symbols: set[Any]) -> dict[Any, Any]:
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


def _evaluate(chain: Chain, step: Step) -> None:
    left, right = (done(concrete(chain, chain.sizes[-1], _integrated(x))) for x in step.relation.args)
    _compare(step, left, right, _point(chain, step, left.free_symbols | right.free_symbols))


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


def _must_vanish(chain: Chain, expression: Any, message: str) -> None:
    """Whether an expression is 0 for every size."""
    plain = _plain(chain, expression)
    if not zero_as_fraction(plain) and (_is_apart(plain) or not _simplified_to_zero(plain)):
        raise BrokenError(message)


def _is_apart(plain: Any) -> bool:
    """Whether it is not 0 somewhere, which takes less time than to simplify what is not 0."""
    from sympy import Rational

    symbols = sorted(plain.free_symbols, key=str)
    value = plain.xreplace({x: Rational(7 + 5 * n, 11 + 3 * n) for n, x in enumerate(symbols)}).evalf(20)
    return bool(value.is_Float and abs(value) > Rational(1, 10**15))


def _plain(chain: Chain, expression: Any) -> Any:
    """Without names, sums, derivatives and integrals."""
    from sympy import Derivative

    for x in expression.atoms(Derivative):
        for variable in x.variables:
            _must_not_hide(chain, x, variable)
    return normal_form(chain)(named(chain, _integrated(expression)))


def _integrated(expression: Any) -> Any:
    """Integrals come first: of maxima over entries, which names stand for, SymPy finds wrong ones."""
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


def _simplified_to_zero(difference: Any) -> bool:
    """By SymPy, or its exponential to 1: a real number has one exponential. Slow, for what is no fraction."""
    import sympy as sp

    return SymbolicSystem().compare(difference, ast.Eq(), sp.S.Zero) or sp.simplify(sp.exp(difference) - 1) == 0


def _identity(chain: Chain, step: Step) -> str:
    """Both sides are the same; needs nothing."""
    _evaluate(chain, step)
    _must_vanish(chain, step.relation.lhs - step.relation.rhs, "the difference is not simplified to 0")
    return "identity: the difference simplifies to 0"


def _numbers(chain: Chain, step: Step) -> str:
    """A relation between numbers; needs nothing."""
    left, right = (done(x) for x in _sides(chain, step))
    if symbols := left.free_symbols | right.free_symbols:
        msg = f"it has symbols, {', '.join(sorted(map(str, symbols)))}: numbers at some points prove nothing"
        raise BrokenError(msg)
    _compare(step, left, right, {})
    return f"numbers: {DIGITS} digits"


def _facts(chain: Chain) -> dict[Any, bool]:
    """What the hypotheses say of differences: True for those that are positive, False for at least 0."""
    facts = {}
    for relation in chain.given:
        if sign(relation) != "=":
            facts[_difference(chain, relation)] = sign(relation) == "<"
    return facts


def _difference(chain: Chain, relation: Any) -> Any:
    return (named(chain, relation.rhs) - named(chain, relation.lhs)).expand()


def _must_have_sign(chain: Chain, expression: Any, *, strict: bool) -> None:
    """Names as they stand first, which may have a sign that their definitions hide."""
    from sympy import sympify

    for x in (sympify(expression), named(chain, expression)):
        if (positive if strict else nonnegative)(x, _facts(chain)):
            return
    msg = f"no sign is seen of {expression}"
    raise BrokenError(msg)


def _sign(chain: Chain, step: Step) -> str:
    """0 on the left, and on the right what has its sign by those of its parts; needs nothing."""
    _evaluate(chain, step)
    if step.relation.lhs != 0:
        msg = "0 has to stand on the left"
        raise BrokenError(msg)
    _must_have_sign(chain, step.relation.rhs, strict=step.sign == "<")
    return "sign: by those of its factors and terms"


def _cited(chain: Chain, step: Step, uses: tuple[Use, ...]) -> str:
    """The words for what is used; a step has to stand before the one that it is used for."""
    places = {id(x): n for n, x in enumerate(chain.steps, 1)}
    here = places.get(id(step), len(places) + 1)
    words = []
    for use in uses:
        if use.topic:
            name, other = use.topic
            words.append(f"step {other.steps.index(use.of) + 1} of {name}")
        elif isinstance(use.of, Step) and places.get(id(use.of), here) < here:
            words.append(f"step {places[id(use.of)]}")
        elif any(use.of is relation for relation in chain.given):
            words.append("a hypothesis")
        else:
            msg = "what is used does not stand before it"
            raise BrokenError(msg)
    return " and ".join(dict.fromkeys(words))


def _used(chain: Chain, use: Use) -> tuple[Any, str]:
    """Right minus left of what is used, and its sign."""
    from sympy import Sum, sympify

    relation = use.of.relation if isinstance(use.of, Step) else use.of
    if sign(relation) != "=":
        _must_have_sign(chain, sympify(use.times), strict=False)
    _must_fit(chain, use)
    source = use.topic[1] if use.topic else chain
    room = renamed(named(source, relation.rhs - relation.lhs)).xreplace(dict(use.at))
    room = named(chain, use.times * room)
    return (Sum(room, use.over) if use.over else room), sign(relation)


def _must_fit(chain: Chain, use: Use) -> None:
    """What is put in has to be what the symbol is: positive, or an index of the same range."""
    ranges = index_ranges(chain)
    ends = {use.over[0]: use.over[1:]} if use.over else {}
    for symbol, value in use.at.items():
        if symbol in ranges:
            _must_be_among(ends.get(value) or ranges.get(value) or (value, value), ranges[symbol], value)
        elif symbol.is_positive:
            _must_have_sign(chain, value, strict=True)


def _must_be_among(inner: tuple[Any, Any], outer: tuple[Any, Any], index: Any) -> None:
    (first, last), (low, high) = inner, outer
    if not ((first - low).is_nonnegative and (high - last).is_nonnegative):
        msg = f"{index} is not known to be among {low} to {high}"
        raise BrokenError(msg)


def _follows(chain: Chain, step: Step) -> str:
    """A sum of earlier relations; needs `Use`s."""
    from sympy import sympify

    _evaluate(chain, step)
    note = _cited(chain, step, step.by)
    rooms, signs = zip(*(_used(chain, use) for use in step.by), strict=True)
    if step.sign == "=" and {*signs} != {"="}:
        msg = "an equation follows from equations alone"
        raise BrokenError(msg)
    if step.sign == "<":
        # One of them has to be strict, and to count.
        strict = [use.times for use, word in zip(step.by, signs, strict=True) if word == "<"]
        _must_have_sign(chain, sympify(strict[0] if strict else 0), strict=True)
    _must_vanish(chain, step.relation.rhs - step.relation.lhs - sum(rooms), "it is not what they add up to")
    return f"follows from {note}"


def _increasing(chain: Chain, step: Step) -> str:
    """Both sides of an earlier relation under an increasing function; needs the function, its variable and a `Use`."""
    function, x, use = step.by
    _evaluate(chain, step)
    note = _cited(chain, step, (use,))
    _must_have_sign(chain, named(chain, function).diff(x), strict=True)
    relation = use.of.relation if isinstance(use.of, Step) else use.of
    if step.sign != sign(relation):
        msg = f"that has the sign {sign(relation)}"
        raise BrokenError(msg)
    for ours, theirs in zip(step.relation.args, relation.args, strict=True):
        inside = named(chain, theirs).xreplace(dict(use.at))
        if x.is_positive:
            _must_have_sign(chain, inside, strict=True)
        _must_vanish(
            chain, ours - named(chain, function).xreplace({x: inside}), "it is not that function of both sides"
        )
    return f"increasing: both sides of {note} under {function}"


def _tangent(chain: Chain, step: Step) -> str:
    """The sides touch, and what is between them is convex; needs the variable, the point, and the second derivative.

    The latter has its sign by those of its parts, or is the room between the sides of a `Use`.
    """
    x, point, bend = step.by
    _evaluate(chain, step)
    gap = named(chain, step.relation.rhs - step.relation.lhs)
    slope = differentiated(gap).diff(x)
    if step.sign != "≤":
        msg = "touching sides may be equal"
        raise BrokenError(msg)
    for y in (gap, slope):
        _must_vanish(chain, y.xreplace({x: named(chain, point)}), f"the sides do not touch at {x} = {point}")
    note = ""
    if isinstance(bend, Use):
        note, bend = f", by {_cited(chain, step, (bend,))}", _used(chain, bend)[0]
    else:
        _must_have_sign(chain, bend, strict=False)
    _must_vanish(chain, slope.diff(x) - bend, "the second derivative is another one")
    return f"tangent: the sides touch at {x} = {point}, and right less left is convex{note}"


def _term(chain: Chain, step: Step) -> str:
    """One term of a sum on the left, the sum of terms that are not negative on the right; needs the index."""
    from sympy import Sum

    _evaluate(chain, step)
    total = named(chain, step.relation.rhs)
    if not isinstance(total, Sum):
        msg = f"{total} is no sum of terms"
        raise BrokenError(msg)
    index, low, high = total.limits[0]
    if step.sign != "≤":
        msg = "one term may be the sum"
        raise BrokenError(msg)
    _must_be_among(index_ranges(chain)[step.by], (low, high), step.by)
    _must_have_sign(chain, total.function, strict=False)
    _must_vanish(chain, step.relation.lhs - total.function.xreplace({index: step.by}), f"it is not term {step.by}")
    return "term: one of a sum without negative ones"


def _limit(chain: Chain, step: Step) -> str:
    """A limit by SymPy; needs nothing, or points where SymPy cannot decide of symbols which exponential wins."""
    if not step.by:
        _must_have_limit(chain, step, _open_limit(chain, step.relation.lhs), step.relation.rhs)
        return "limit: by SymPy"
    size = chain.sizes[-1]
    left, right = (concrete(chain, size, x) for x in step.relation.args)
    for point in [{concrete(chain, size, x): value for x, value in given.items()} for given in step.by]:
        _must_have_limit(chain, step, left.xreplace(point), done(right.xreplace(point)), _where(point))
    return f"limit: by SymPy at {len(step.by)} points"


def _open_limit(chain: Chain, limit: Any) -> Any:
    """A limit whose sums are symbols; in a sum that depends on what goes to the limit, it would be overlooked."""
    from sympy import Limit, Sum

    inner, variable, *where = limit.args
    if any(variable in x.free_symbols for x in named(chain, inner).atoms(Sum)):
        msg = f"a sum depends on {variable}; squeeze it between two steps"
        raise BrokenError(msg)
    return Limit(_plain(chain, inner), variable, *where)


def _must_have_limit(chain: Chain, step: Step, limit: Any, wanted: Any, where: str = "every point") -> None:
    from sympy import nan

    reached = done(limit)
    if reached != wanted:
        message = f"the limit is {reached} and not {wanted} at {where}"
        # Infinite limits are compared as they are: their difference would be NaN.
        if reached.is_infinite or wanted.is_infinite or reached.has(nan):
            raise BrokenError(message)
        _must_vanish(chain, reached - wanted, message)


def _squeeze(chain: Chain, step: Step) -> str:
    """A limit between those of two bounds; needs the steps of both bounds, or of the lower one for infinity."""
    from sympy import Limit

    inner, variable, *where = step.relation.lhs.args
    uses = tuple(Use(one) for one in step.by)
    note = _cited(chain, step, uses)
    if len(uses) != (1 if step.relation.rhs.is_infinite else 2):
        msg = "it takes a bound from below and one from above"
        raise BrokenError(msg)
    for place, bound in enumerate(step.by):
        ours, other = bound.relation.args[1 - place], bound.relation.args[place]
        _must_vanish(chain, inner - ours, "it is not what the steps bound")
        _must_have_limit(chain, step, _open_limit(chain, Limit(other, variable, *where)), step.relation.rhs)
    return f"squeeze: between the bounds of {note}"


@cache
def _roots(equation: Any, unknown: Any) -> list[Any]:
    from sympy import solve

    return list(solve(equation, unknown))


def _solve(chain: Chain, step: Step) -> str:
    """The unknown on the left, and on the right the only root; needs the expression that is 0, and the unknown."""
    equation, unknown = step.by
    roots = _roots(_plain(chain, equation), unknown)
    # A second root would make the step a choice, which needs a reason of its own.
    if step.relation.lhs != unknown or len(roots) != 1:
        msg = f"SymPy solves {equation} = 0 for {unknown} by {roots}"
        raise BrokenError(msg)
    _must_vanish(chain, roots[0] - step.relation.rhs, f"SymPy solves {equation} = 0 for {unknown} by {roots}")
    return f"solve: the only root that SymPy finds of {equation}"


def _series(chain: Chain, step: Step) -> str:
    """Taylor's series around 0, by slopes; needs the variable and the first order that is left out."""
    from sympy import O, S

    variable, order = step.by
    left, right = (named(chain, x) for x in step.relation.args)
    # The order that is left out is part of the statement.
    if right.getO() != O(variable**order):
        msg = f"the first order that is left out is {order}"
        raise BrokenError(msg)
    gap = differentiated(left - right.removeO())
    for n in range(order):
        _must_vanish(chain, gap.xreplace({variable: S.Zero}), f"the coefficient of order {n} is another one")
        gap = gap.diff(variable)
    return "series: the slopes at 0 agree"


def _program(chain: Chain, step: Step) -> str:
    """The formula of a loss; needs a function that gets a reader of expressions and returns the same quantity."""
    _identity(chain, step)
    for size in chain.sizes:
        theirs = step.by(lambda x, size=size: concrete(chain, size, x))
        difference = done(concrete(chain, size, step.relation.lhs)) - theirs
        _compare(step, difference, 0 * difference, _point(chain, step, difference.free_symbols))
        if not (zero_as_fraction(difference) or _simplified_to_zero(difference)):
            msg = "the difference from the formula of nceref.losses is not simplified to 0"
            raise BrokenError(msg)
    return "program: the formula of nceref.losses"


CHECKS: Mapping[str, Callable[[Chain, Step], str]] = {
    "identity": _identity,
    "numbers": _numbers,
    "sign": _sign,
    "follows": _follows,
    "increasing": _increasing,
    "tangent": _tangent,
    "term": _term,
    "limit": _limit,
    "squeeze": _squeeze,
    "solve": _solve,
    "series": _series,
    "program": _program,
}
"""How a step is proved, by the word in `Step.check`; the docstring of each says what `Step.by` has to be."""
