"""Proofs of the steps of derivations: for every number of candidates, wherever the hypotheses hold.

Each relation is also evaluated with 50 digits at a random point before it is proved: that is no
part of the proof, and finds most mistakes at once.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from nceref.theory.chain import BrokenError, Chain, Step, Use, concrete, done, index_ranges, named, sign
from nceref.theory.relations import (
    DIGITS,
    compare,
    evaluate,
    must_have_sign,
    must_vanish,
    random_point,
    resolved,
    sides,
    simplified_to_zero,
    where,
)
from nceref.theory.symbolic_sums import UndecidedError, differentiated, renamed, zero_as_fraction

EQUATIONS = {"identity", "limit", "squeeze", "solve", "series", "program"}
EITHER = {"numbers", "follows", "increasing"}
"""Checks of equations, and of equations and inequalities; the others are for inequalities."""


def prove(chain: Chain, step: Step) -> str:
    """Check one step; returns what is printed below it.

    Raises `BrokenError` if it does not follow.
    """
    if (step.sign == "=") != (step.check in EQUATIONS) and step.check not in EITHER:
        msg = f"a step by {step.check} has not the sign {step.sign}"
        raise BrokenError(msg)
    try:
        return CHECKS[step.check](chain, step)
    except UndecidedError as undecided:
        raise BrokenError(str(undecided)) from undecided


def _identity(chain: Chain, step: Step) -> str:
    """The two sides are the same; needs nothing."""
    evaluate(chain, step)
    must_vanish(chain, step.relation.lhs - step.relation.rhs, "the difference is not simplified to 0")
    return "identity: the difference simplifies to 0"


def _numbers(chain: Chain, step: Step) -> str:
    """A relation between numbers; needs nothing."""
    left, right = (done(x) for x in sides(chain, step))
    if symbols := left.free_symbols | right.free_symbols:
        msg = f"it has symbols, {', '.join(sorted(map(str, symbols)))}: numbers at some points prove nothing"
        raise BrokenError(msg)
    compare(step, left, right, {})
    return f"numbers: {DIGITS} digits"


def _sign(chain: Chain, step: Step) -> str:
    """0 on the left, and on the right what has its sign by those of its parts; needs nothing."""
    evaluate(chain, step)
    if step.relation.lhs != 0:
        msg = "0 has to stand on the left"
        raise BrokenError(msg)
    must_have_sign(chain, step.relation.rhs, strict=step.sign == "<")
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
        must_have_sign(chain, sympify(use.times), strict=False)
    _must_fit(chain, use)
    source = use.topic[1] if use.topic else chain
    room = renamed(named(source, relation.rhs - relation.lhs)).xreplace(dict(use.at))
    room = named(chain, use.times * room)
    return (Sum(room, use.over) if use.over else room), sign(relation)


def _must_fit(chain: Chain, use: Use) -> None:
    """Raise an error unless every substitute is what its symbol is: positive, or an index of the same range."""
    ranges = index_ranges(chain)
    ends = {use.over[0]: use.over[1:]} if use.over else {}
    for symbol, value in use.at.items():
        if symbol in ranges:
            _must_be_among(ends.get(value) or ranges.get(value) or (value, value), ranges[symbol], value)
        elif symbol.is_positive:
            must_have_sign(chain, value, strict=True)


def _must_be_among(inner: tuple[Any, Any], outer: tuple[Any, Any], index: Any) -> None:
    (first, last), (low, high) = inner, outer
    if not ((first - low).is_nonnegative and (high - last).is_nonnegative):
        msg = f"{index} is not known to be among {low} to {high}"
        raise BrokenError(msg)


def _follows(chain: Chain, step: Step) -> str:
    """A sum of earlier relations; needs `Use`s."""
    from sympy import sympify

    evaluate(chain, step)
    note = _cited(chain, step, step.by)
    rooms, signs = zip(*(_used(chain, use) for use in step.by), strict=True)
    if step.sign == "=" and {*signs} != {"="}:
        msg = "an equation follows from equations alone"
        raise BrokenError(msg)
    if step.sign == "<":
        # One of them has to be strict, and to count.
        strict = [use.times for use, word in zip(step.by, signs, strict=True) if word == "<"]
        must_have_sign(chain, sympify(strict[0] if strict else 0), strict=True)
    must_vanish(chain, step.relation.rhs - step.relation.lhs - sum(rooms), "it is not what they add up to")
    return f"follows from {note}"


def _increasing(chain: Chain, step: Step) -> str:
    """An increasing function of both sides of an earlier relation; needs the function, its variable and a `Use`."""
    function, x, use = step.by
    evaluate(chain, step)
    note = _cited(chain, step, (use,))
    must_have_sign(chain, named(chain, function).diff(x), strict=True)
    relation = use.of.relation if isinstance(use.of, Step) else use.of
    if step.sign != sign(relation):
        msg = f"that has the sign {sign(relation)}"
        raise BrokenError(msg)
    for ours, theirs in zip(step.relation.args, relation.args, strict=True):
        inside = named(chain, theirs).xreplace(dict(use.at))
        if x.is_positive:
            must_have_sign(chain, inside, strict=True)
        must_vanish(chain, ours - named(chain, function).xreplace({x: inside}), "it is not that function of both sides")
    return f"increasing: both sides of {note} under {function}"


def _tangent(chain: Chain, step: Step) -> str:
    """The sides touch, and what is between them is convex; needs the variable, the point, and the second derivative.

    The latter has its sign by those of its parts, or is the room between the sides of a `Use`.
    """
    x, point, bend = step.by
    evaluate(chain, step)
    gap = named(chain, step.relation.rhs - step.relation.lhs)
    slope = differentiated(gap).diff(x)
    if step.sign != "≤":
        msg = "touching sides may be equal"
        raise BrokenError(msg)
    for y in (gap, slope):
        must_vanish(chain, y.xreplace({x: named(chain, point)}), f"the sides do not touch at {x} = {point}")
    note = ""
    if isinstance(bend, Use):
        note, bend = f", by {_cited(chain, step, (bend,))}", _used(chain, bend)[0]
    else:
        must_have_sign(chain, bend, strict=False)
    must_vanish(chain, slope.diff(x) - bend, "the second derivative is another one")
    return f"tangent: the sides touch at {x} = {point}, and right less left is convex{note}"


def _term(chain: Chain, step: Step) -> str:
    """One term of a sum on the left, the sum of terms that are not negative on the right; needs the index."""
    from sympy import Sum

    evaluate(chain, step)
    total = named(chain, step.relation.rhs)
    if not isinstance(total, Sum):
        msg = f"{total} is no sum of terms"
        raise BrokenError(msg)
    index, low, high = total.limits[0]
    if step.sign != "≤":
        msg = "one term may be the sum"
        raise BrokenError(msg)
    _must_be_among(index_ranges(chain)[step.by], (low, high), step.by)
    must_have_sign(chain, total.function, strict=False)
    must_vanish(chain, step.relation.lhs - total.function.xreplace({index: step.by}), f"it is not term {step.by}")
    return "term: one of a sum without negative ones"


def _limit(chain: Chain, step: Step) -> str:
    """A limit by SymPy; needs nothing, or points where SymPy cannot decide of symbols which exponential wins."""
    if not step.by:
        _must_have_limit(chain, step, _open_limit(chain, step.relation.lhs), step.relation.rhs)
        return "limit: by SymPy"
    size = chain.sizes[-1]
    left, right = (concrete(chain, size, x) for x in step.relation.args)
    for point in [{concrete(chain, size, x): value for x, value in given.items()} for given in step.by]:
        _must_have_limit(chain, step, left.xreplace(point), done(right.xreplace(point)), where(point))
    return f"limit: by SymPy at {len(step.by)} points"


def _open_limit(chain: Chain, limit: Any) -> Any:
    """A limit whose sums are symbols; in a sum that depends on what goes to the limit, it would be overlooked."""
    from sympy import Limit, Sum

    inner, variable, *where = limit.args
    if any(variable in x.free_symbols for x in named(chain, inner).atoms(Sum)):
        msg = f"a sum depends on {variable}; squeeze it between two steps"
        raise BrokenError(msg)
    return Limit(resolved(chain, inner), variable, *where)


def _must_have_limit(chain: Chain, step: Step, limit: Any, wanted: Any, where: str = "every point") -> None:
    from sympy import nan

    reached = done(limit)
    if reached != wanted:
        message = f"the limit is {reached} and not {wanted} at {where}"
        # Infinite limits are compared as they are: their difference would be NaN.
        if reached.is_infinite or wanted.is_infinite or reached.has(nan):
            raise BrokenError(message)
        must_vanish(chain, reached - wanted, message)


def _squeeze(chain: Chain, step: Step) -> str:
    """A limit between those of two bounds; needs the steps of both bounds, or of the lower one for infinity."""
    from sympy import Limit, oo

    inner, variable, *where = step.relation.lhs.args
    uses = tuple(Use(one) for one in step.by)
    note = _cited(chain, step, uses)
    if step.relation.rhs == -oo or len(uses) != (1 if step.relation.rhs == oo else 2):
        msg = "it takes a bound from below and one from above"
        raise BrokenError(msg)
    for place, bound in enumerate(step.by):
        ours, other = bound.relation.args[1 - place], bound.relation.args[place]
        must_vanish(chain, inner - ours, "it is not what the steps bound")
        _must_have_limit(chain, step, _open_limit(chain, Limit(other, variable, *where)), step.relation.rhs)
    return f"squeeze: between the bounds of {note}"


@cache
def _roots(equation: Any, unknown: Any) -> list[Any]:
    from sympy import solve

    return list(solve(equation, unknown))


def _solve(chain: Chain, step: Step) -> str:
    """The unknown on the left, and on the right the only root; needs the expression that is 0, and the unknown."""
    equation, unknown = step.by
    roots = _roots(resolved(chain, equation), unknown)
    # A second root would make the step a choice, which needs a reason of its own.
    if step.relation.lhs != unknown or len(roots) != 1:
        msg = f"SymPy solves {equation} = 0 for {unknown} by {roots}"
        raise BrokenError(msg)
    must_vanish(chain, roots[0] - step.relation.rhs, f"SymPy solves {equation} = 0 for {unknown} by {roots}")
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
        must_vanish(chain, gap.xreplace({variable: S.Zero}), f"the coefficient of order {n} is another one")
        gap = gap.diff(variable)
    return "series: the slopes at 0 agree"


def _program(chain: Chain, step: Step) -> str:
    """The formula of a loss; needs a function that gets a reader of expressions and returns the same quantity."""
    _identity(chain, step)
    for size in chain.sizes:
        theirs = step.by(lambda x, size=size: concrete(chain, size, x))
        difference = done(concrete(chain, size, step.relation.lhs)) - theirs
        compare(step, difference, 0 * difference, random_point(chain, step, difference.free_symbols))
        if not (zero_as_fraction(difference) or simplified_to_zero(difference)):
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
"""The proofs of a step, by the word in `Step.check`; the docstring of each says what `Step.by` has to be."""
