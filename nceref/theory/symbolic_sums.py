"""Expressions whose sums have a symbolic number of terms: a normal form in which equal ones are equal, and signs.

A sum over candidates stays a sum: only that it is linear is used, so what is proved holds for every number of them.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any


class UndecidedError(Exception):
    """An expression, which is in the message, could not be shown to have the property that was asked for."""


class NormalForm:
    """Expressions of one chain, in which every sum is a symbol, the same one for the same sum.

    `ranges` has the first and the last value of free indices such as i.
    """

    def __init__(self, ranges: Mapping[Any, tuple[Any, Any]]) -> None:
        from sympy import Dummy

        self._ranges = ranges
        self._bound = Dummy("k", integer=True, positive=True)
        self._symbols: dict[Any, Any] = {}
        self._cached: dict[Any, Any] = {}

    def __call__(self, expression: Any) -> Any:
        """An expression without sums and derivatives; names have been replaced before."""
        if expression not in self._cached:
            self._cached[expression] = self._without_sums(differentiated(expression))
        return self._cached[expression]

    def zero(self, expression: Any) -> bool:
        """Whether an expression is 0; False decides nothing."""
        return zero_as_fraction(self(expression))

    def _without_sums(self, expression: Any) -> Any:
        from sympy import KroneckerDelta, Sum

        if isinstance(expression, Sum):
            return self._sum(expression)
        if isinstance(expression, KroneckerDelta):
            return self._delta(*expression.args)
        if not expression.has(Sum, KroneckerDelta):
            return expression
        return expression.func(*map(self._without_sums, expression.args))

    def _delta(self, first: Any, second: Any) -> Any:
        from sympy import S

        if (first - second).is_zero is False:
            return S.Zero
        msg = f"it is not decided whether {first} and {second} are the same candidate"
        raise UndecidedError(msg)

    def _sum(self, total: Any) -> Any:
        """A sum, linear in its terms; a factor that does not depend on the index stands before it."""
        from sympy import Add, KroneckerDelta, S

        index, low, high = total.limits[0]
        entry = total.function.xreplace({index: self._bound})
        if low != 1 or len(total.limits) > 1:
            msg = f"{total} has no normal form"
            raise UndecidedError(msg)
        result = S.Zero
        deltas = KroneckerDelta
        for term in Add.make_args(_terms(self._inner(entry))):
            factor, rest = term.as_independent(self._bound, as_Add=False)
            for delta in rest.atoms(deltas):
                other = next(x for x in delta.args if x != self._bound)
                self._must_contain(high, other)
                result += factor * self._without_sums(rest.xreplace({delta: S.One}).xreplace({self._bound: other}))
                break
            else:
                result += factor * (high if rest == 1 else self._symbol(rest, high))
        return result

    def _inner(self, entry: Any) -> Any:
        """The terms of a sum, in which other sums are symbols; one that depends on the index has none."""
        from sympy import Sum

        inner = entry.atoms(Sum)
        if any(self._bound in x.free_symbols for x in inner):
            msg = f"a sum inside of a sum depends on its index: {entry}"
            raise UndecidedError(msg)
        return entry.xreplace({x: self._sum(x) for x in inner})

    def _must_contain(self, high: Any, index: Any) -> None:
        low_end, high_end = self._ranges.get(index, (index, index))
        if not ((low_end - 1).is_nonnegative and (high - high_end).is_nonnegative):
            msg = f"it is not known whether {index} is among 1 to {high}"
            raise UndecidedError(msg)

    def _symbol(self, entry: Any, high: Any) -> Any:
        from sympy import Dummy

        known = {"positive": True} if positive(entry) else {"real": True}
        return self._symbols.setdefault((entry, high), Dummy(f"sum{len(self._symbols)}", **known))


def differentiated(expression: Any) -> Any:
    """Derivatives carried out, from the inside; sums begin at 1, the entry 0 stands beside them."""
    from sympy import Derivative, Sum

    if isinstance(expression, Derivative):
        return differentiated(expression.expr).diff(*expression.variables)
    if isinstance(expression, Sum):
        (index, low, high), entry = expression.limits[0], differentiated(expression.function)
        first = entry.xreplace({index: low}) if low == 0 else 0
        return first + Sum(entry, (index, max(low, 1), high))
    if not expression.has(Derivative, Sum):
        return expression
    return expression.func(*map(differentiated, expression.args))


@cache
def _terms(entry: Any) -> Any:
    """The terms of an entry, multiplied out, with logarithms of products as sums."""
    from sympy import exp, log

    split = entry.replace(log, split_logarithm).replace(exp, lambda x: exp(x.expand()))
    return split.expand(power_base=False, log=False)


def split_logarithm(x: Any) -> Any:
    """The logarithm of a product as a sum; every number under a logarithm here is positive."""
    from sympy import exp, expand_log, factor, log

    return expand_log(log(factor(x)), force=True).replace(
        lambda y: isinstance(y, log) and isinstance(y.args[0], exp), lambda y: y.args[0].args[0]
    )


def zero_as_fraction(difference: Any) -> bool:
    """Whether an expression is 0 as a fraction of polynomials in exponentials, logarithms and symbols.

    False decides nothing.
    """
    import sympy as sp

    # Of these, replacing exponentials and logarithms inside would change the meaning, or leave no fraction.
    if difference.has(sp.Derivative, sp.Integral, sp.Limit, sp.Order, sp.Piecewise, sp.Abs, sp.Max, sp.Min):
        return False
    bases: dict[Any, Any] = {}

    def exponential(x: Any) -> Any:
        """The exponential e^(2 a - b) as A^2 / B, with one symbol everywhere for the same exponential."""
        parts = [term.as_coeff_Mul() for term in sp.Add.make_args(x.expand())]
        return sp.Mul(*(bases.setdefault(rest, sp.Dummy(positive=True)) ** factor for factor, rest in parts))

    def logarithm(x: Any) -> Any:
        return sp.expand_log(sp.log(sp.factor(x)), force=True)

    plain = difference.replace(sp.exp, exponential).replace(sp.log, logarithm)
    # The logarithm of a symbol that stands for e^x is x.
    plain = plain.replace(sp.log, lambda x: next((rest for rest, base in bases.items() if base == x), sp.log(x)))
    return bool(sp.fraction(sp.together(plain))[0].expand() == 0)


def positive(expression: Any, facts: Any = None) -> bool:
    """Whether an expression is positive by the signs of its parts; False decides nothing."""
    return _sign(expression, facts or {}, strict=True)


def nonnegative(expression: Any, facts: Any = None) -> bool:
    """Whether an expression is at least 0 by the signs of its parts; False decides nothing.

    Its symbols are real. `facts` has expressions that are known to be positive (True) or at least 0 (False).
    """
    return _sign(expression, facts or {}, strict=False)


def _sign(x: Any, facts: Mapping[Any, bool], *, strict: bool) -> bool:
    import sympy as sp

    known = facts.get(x.expand()) if x.is_Add else facts.get(x)
    if x.is_positive or isinstance(x, sp.exp) or known or (not strict and (x.is_nonnegative or known is False)):
        return True
    if x.is_Add:
        return _sum_sign(list(x.args), facts, strict=strict)
    if x.is_Mul:
        return all(_sign(factor, facts, strict=strict) for factor in x.args)
    if x.is_Pow and x.exp.is_integer:
        # An even power of a real number; in a denominator, the expression is nowhere evaluated where that is 0.
        return bool(_sign(x.base, facts, strict=strict) or (x.exp.is_even and (not strict or x.exp.is_negative)))
    if x.is_Pow:
        return _sign(x.base, facts, strict=strict)
    return isinstance(x, sp.Sum) and _total_sign(x, facts, strict=strict)


def _total_sign(total: Any, facts: Mapping[Any, bool], *, strict: bool) -> bool:
    """Whether a sum over an index is at least 0, or positive: one without terms is 0."""
    _, low, high = total.limits[0]
    return _sign(total.function, facts, strict=strict) and (not strict or _sign(high - low + 1, facts, strict=True))


def _sum_sign(parts: list[Any], facts: Mapping[Any, bool], *, strict: bool) -> bool:
    return all(_sign(x, facts, strict=False) for x in parts) and (
        not strict or any(_sign(x, facts, strict=True) for x in parts)
    )


def renamed(expression: Any) -> Any:
    """The expression with bound indices that are nobody else's, so that nothing put in is captured by a sum."""
    from sympy import Dummy

    fresh: dict[Any, Any] = {}
    for total in _sums(expression):
        fresh[total.limits[0][0]] = Dummy(total.limits[0][0].name, integer=True)
    return expression.xreplace(fresh)


def _sums(expression: Any) -> Iterator[Any]:
    from sympy import Sum

    yield from sorted(expression.atoms(Sum), key=str)
