"""Chains of relations, the steps of a derivation: what is given, and what each step rests on.

A step is the relation that is printed, and the check (`nceref.theory.proofs`) is made on that relation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from nceref.theory.symbolic_sums import NormalForm, renamed


@dataclass(frozen=True, eq=False)
class Name:
    """A symbol, what it means, and what it stands for.

    The definition of an indexed name such as P[j] holds for every index. A definition that has no closed form in SymPy,
    such as a maximum over N entries, is a function of the sizes; where these are symbols, `entry` stands for it, if it
    is one of the entries.
    """

    symbol: Any
    meaning: str
    definition: Any = None
    entry: Any = None


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
        A key of `nceref.theory.proofs.CHECKS`.
    by : object
        What the check needs, by its docstring there.
    """

    rule: str
    relation: Any
    check: str = "identity"
    by: Any = ()

    @property
    def sign(self) -> str:
        """The sign of the relation."""
        return sign(self.relation)

    @property
    def uses(self) -> tuple["Use", ...]:
        """The earlier steps and hypotheses that the step rests on."""
        return tuple(x for x in self.by if isinstance(x, Use)) if isinstance(self.by, tuple) else ()


@dataclass(frozen=True, eq=False)
class Use:
    """An earlier step or a hypothesis, as it is used: multiplied, with other things in place of symbols, summed up.

    Attributes
    ----------
    of : Step or SymPy relation
        A relation is one of `Chain.given`.
    times : SymPy expression
        Not negative, unless the relation is an equation.
    at : mapping
        Symbols of the relation, and what is put in.
    over : tuple, optional
        Index, first and last value of a sum.
    topic : tuple, optional
        Of a step of another derivation: that one's name and chain.
    """

    of: Any
    times: Any = 1
    at: Mapping[Any, Any] = field(default_factory=dict)
    over: tuple[Any, Any, Any] | None = None
    topic: tuple[str, "Chain"] | None = None


@dataclass(frozen=True, eq=False)
class Chain:
    """The names, what is given, and the steps.

    A symbol is drawn from (-1, 1), or (0, 3) if it is positive, or 1 to 9 if it is an integer, unless a range is given.

    Attributes
    ----------
    given : tuple of SymPy relations
        Hypotheses. One with an index holds for all of its values.
    conditions : tuple of str
        Hypotheses in words.
    sizes : tuple of mappings
        Integers for symbolic sizes and free indices, at which formulas of programs and numbers are compared.
    indices : mapping
        Free indices, and their first and last value.
    """

    names: tuple[Name, ...]
    steps: tuple[Step, ...]
    sizes: tuple[Mapping[Any, int], ...] = ({},)
    ranges: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)
    given: tuple[Any, ...] = ()
    conditions: tuple[str, ...] = ()
    indices: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)


def sign(relation: Any) -> str:
    """The sign of a relation."""
    return {"Equality": "=", "LessThan": "≤", "StrictLessThan": "<"}[type(relation).__name__]


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

    Names are replaced by the definitions of the chain, symbolic sizes and free indices by the integers of `size`.
    Derivatives, integrals and limits still stand.
    """
    return _concrete(chain, tuple(size.items()), expression)


@cache
def _concrete(chain: Chain, sizes: tuple[tuple[Any, int], ...], expression: Any) -> Any:
    import sympy as sp

    expression = _unnamed(chain, sizes, expression)
    # Sizes go first, because a sum needs numbers as its ends; then no index of an entry is a symbol any more.
    expression = expression.xreplace({x: sp.Integer(n) for x, n in sizes})
    expression = expression.xreplace({x: done(x) for x in expression.atoms(sp.Sum)})
    return expression.xreplace({x: _entry(x) for x in expression.atoms(sp.Indexed)})


@cache
def _definitions(chain: Chain, sizes: tuple[tuple[Any, int], ...] | None) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The expression of each name, and for each list the index and the expression of its entry."""
    from sympy import Indexed, sympify

    plain = {name.symbol: _definition(name, sizes) for name in chain.names}
    # Indices of sums are renamed, so that none captures what is put in.
    plain = {x: renamed(sympify(y)) for x, y in plain.items() if y is not None}
    single = {x: y for x, y in plain.items() if not isinstance(x, Indexed)}
    return single, {x.base: (x.indices[0], y) for x, y in plain.items() if isinstance(x, Indexed)}


def _definition(name: Name, sizes: tuple[tuple[Any, int], ...] | None) -> Any:
    if not callable(name.definition):
        return name.definition
    return name.entry if sizes is None else name.definition(dict(sizes))


def _entry(x: Any) -> Any:
    import sympy as sp

    # What is known of the list holds for its entries: without it, log(exp(s0)) would not be s0.
    known = {k: v for k, v in x.base.assumptions0.items() if k in ("real", "positive") and v}
    return sp.Symbol(f"{x.base.label}{x.indices[0]}", **known)


@cache
def done(expression: Any) -> Any:
    """Sums, derivatives, integrals and limits carried out; a step is checked with the same sides again and again."""
    return expression.doit()


@cache
def named(chain: Chain, expression: Any) -> Any:
    """An expression without names, in which sizes and indices are symbols."""
    from sympy import sympify

    return _unnamed(chain, None, sympify(expression))


def _unnamed(chain: Chain, sizes: tuple[tuple[Any, int], ...] | None, expression: Any) -> Any:
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
    return expression


@cache
def normal_form(chain: Chain) -> NormalForm:
    """The one in which all expressions of a chain are compared."""
    return NormalForm(index_ranges(chain))


@cache
def index_ranges(chain: Chain) -> Mapping[Any, tuple[Any, Any]]:
    """First and last value of free indices."""
    from sympy import sympify

    return {index: (sympify(low), sympify(high)) for index, (low, high) in chain.indices.items()}
