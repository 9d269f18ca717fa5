"""Executable statements: one text, read with symbols, with 50 digits, and on random instances.

A statement is a Python expression: comparisons ``==``, ``<=``, ``<``, chained or joined by ``and``, between expressions
over the names of a scenario (see `nceref.theory.scenarios`), with exact numbers: 0.1 is a tenth. Lists are compared
entry by entry, or all with one number. ``d(L, s[j])`` is the derivative of an expression by a base value. Available are
exp, log, sqrt, sin, cos, pi, abs, sum, min, max, len, range, zip, int, and entropy, mean, variance of lists.
"""

import ast
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from nceref.errors import InputError
from nceref.exact.number_systems import Mpmath, Symbols
from nceref.registry import discover
from nceref.theory.claim import Scenario

DIGITS = {"numeric": 50, "property": 30}
"""Digits of the two numerical evaluations."""


class Held(NamedTuple):
    """Whether a statement held, and how both sides of its first broken comparison, or of its last one, look."""

    holds: bool
    shown: str = ""


class DecimalSystem(Mpmath):
    """Numbers of mpmath with which statements are evaluated; a derivative is a complex step.

    Parameters
    ----------
    digits : int
        What has to agree; there are ten more, so that nothing is left of the next term of a complex step.
    """

    symbolic = False

    def __init__(self, digits: int) -> None:
        super().__init__(digits + 10)
        self.tolerance = self.context.mpf(10) ** (-digits + 5)
        self.pi = self.context.pi

    def number(self, x: Any, exact: bool = False) -> Any:
        """The exact value of a float, and of an integer with `exact`; other numbers stay; lists entry by entry."""
        if isinstance(x, list | tuple):
            return [self.number(entry) for entry in x]
        return self.context.mpf(x) if isinstance(x, float) or (exact and isinstance(x, int)) else x

    def decimal(self, text: str) -> Any:
        """The number that is written there."""
        return self.context.mpf(text)

    def largest(self, *xs: Any) -> Any:
        """The largest by real parts."""
        return max(xs, key=_real)

    def smallest(self, *xs: Any) -> Any:
        """The smallest by real parts."""
        return min(xs, key=_real)

    def derivative(self, at: Callable[[Any], Any], x: Any) -> Any:
        """Complex step: Im f(x + ih) / h."""
        # Nothing is subtracted, so h may be as small as the precision, and the error, of order h^2, is below it.
        h = self.context.mpf(10) ** (-self.context.dps)
        return at(self.context.mpc(x, h)).imag / h

    def compare(self, left: Any, operator: Any, right: Any) -> bool:
        """Whether a relation holds up to the last digits, relative to a side that is above 1; ``<`` has to be clear."""
        room = self.tolerance * max(1, abs(left), abs(right))
        if isinstance(operator, ast.Eq):
            return bool(abs(left - right) <= room)
        difference = _real(right) - _real(left)
        return bool(difference >= -room) if isinstance(operator, ast.LtE) else bool(difference > room)


class SymbolicSystem(Symbols):
    """SymPy expressions of statements: equality means that the difference simplifies to 0."""

    symbolic = True

    def __init__(self) -> None:
        super().__init__()
        self.pi, self.largest, self.smallest = self.sympy.pi, self.sympy.Max, self.sympy.Min

    def number(self, x: Any, exact: bool = False) -> Any:
        """An exact rational for a float, and for an integer with `exact`."""
        return self.sympy.Rational(x) if isinstance(x, float) or (exact and isinstance(x, int)) else x

    def decimal(self, text: str) -> Any:
        """The number that is written there."""
        return self.sympy.Rational(text)

    def compare(self, left: Any, operator: Any, right: Any) -> bool:
        """Whether left - right simplifies to 0; inequalities need another kind of evidence."""
        if not isinstance(operator, ast.Eq):
            msg = "an inequality has no symbolic evidence by simplification; give the claim a function instead"
            raise InputError(msg)
        difference = self.sympy.sympify(left - right)
        if difference == 0 or self.sympy.simplify(difference) == 0:
            return True
        # Logarithms are split as if their arguments were positive: SymPy does not see that of 1 - p, p a probability.
        return bool(self.sympy.simplify(self.sympy.expand_log(difference, force=True)) == 0)


def _real(x: Any) -> Any:
    # During a complex step, numbers have a tiny imaginary part, and complex numbers have no order.
    return getattr(x, "real", x)


@cache
def scenario(name: str) -> Scenario:
    """The scenario of that name."""
    discovered: Scenario = discover("nceref.theory.scenarios", "SCENARIO", Scenario)[name]
    return discovered


def evaluate(text: str, name: str, base: Mapping[str, Any], system: Any) -> Held:
    """Whether a statement holds for some base values.

    Parameters
    ----------
    text : str
        Comparisons, in the language that the module describes.
    name : str
        Of the scenario.
    base : mapping
        Base values of the scenario: symbols, or floats, which count exactly.
    system : DecimalSystem or SymbolicSystem
        Evaluates and compares.

    Returns
    -------
    Held
        False for the first comparison that does not hold.

    Raises
    ------
    InputError
        If the text is no statement, or an inequality is to be decided with symbols.
    """
    space = _Space(scenario(name), base, system)
    held = Held(True)
    for first, others in _comparisons(text):
        left = space.value(first)
        for operator, expression in others:
            right = space.value(expression)
            if not all(system.compare(a, operator, b) for a, b in _pairs(left, right)):
                return Held(False, f"{_text(left)} against {_text(right)}")
            # In a chain a < b < c, the right side is the next left side.
            held, left = Held(True, f"{_text(left)} against {_text(right)}"), right
    return held


@cache
def _chains(text: str) -> list[ast.Compare]:
    """The comparisons of a statement, each a chain of one or more."""
    body = ast.parse(text, mode="eval").body
    chains = body.values if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And) else [body]
    compared = [one for one in chains if isinstance(one, ast.Compare)]
    if len(compared) < len(chains) or not all(isinstance(op, _OPERATORS) for one in compared for op in one.ops):
        msg = f"a statement must be comparisons by ==, <= or <, joined by `and`, got {text!r}"
        raise InputError(msg)
    return compared


@cache
def _comparisons(text: str) -> list[tuple[CodeType, list[tuple[ast.cmpop, CodeType]]]]:
    """The first side of each comparison, and the operators with the other sides."""
    # Compiling rewrites what it compiles.
    return [
        (_code(one.left), list(zip(one.ops, map(_code, one.comparators), strict=True)))
        for one in deepcopy(_chains(text))
    ]


def is_statement(text: str) -> bool:
    """Whether a text can be evaluated, and is no prose."""
    try:
        return bool(_chains(text))
    except (SyntaxError, InputError):
        return False


def conjuncts(text: str) -> list[str]:
    """The parts of a statement that `and` joins, each with its chain."""
    return [ast.unparse(one) for one in _chains(text)]


def comparisons(text: str) -> set[str]:
    """The comparisons of two sides in a statement, those of a chain one by one."""
    return {
        ast.unparse(ast.Compare(left, [operator], [right]))
        for one in _chains(text)
        for left, operator, right in zip([one.left, *one.comparators], one.ops, one.comparators, strict=False)
    }


def names(text: str) -> set[str]:
    """The names in a statement."""
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


@cache
def moved(name: str) -> Mapping[str, frozenset[str]]:
    """The names that each base value of a scenario decides: they change with its numbers, or with how many they are."""
    here, system = scenario(name), DecimalSystem(DIGITS["property"])
    base = here.fixed[0]
    before = _Space(here, base, system).names

    def changed(one: str, x: Any) -> set[str]:
        try:
            after = _Space(here, {**base, one: x}, system).names
        except ValueError:
            # As many as there are of something else.
            return set()
        return {term for term in here.meaning if after[term] != before[term]}

    return {one: frozenset(changed(one, _shifted(x)) | changed(one, _longer(x))) for one, x in base.items()}


def _shifted(x: Any) -> Any:
    """Numbers that are moved, each by another small amount; another integer."""
    if isinstance(x, list | tuple):
        return [
            _shifted(entry) if isinstance(entry, list | tuple) else entry + 1 / (64 + i) for i, entry in enumerate(x)
        ]
    return x + 1 if isinstance(x, int) else x + 1 / 64


def _longer(x: Any) -> Any:
    return [*x, x[-1]] if isinstance(x, list | tuple) else x


def _code(expression: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(_Exact().visit(expression))), "<statement>", "eval")


def _pairs(left: Any, right: Any) -> list[tuple[Any, Any]]:
    lists = isinstance(left, list), isinstance(right, list)
    if not any(lists):
        return [(left, right)]
    left, right = left if lists[0] else [left] * len(right), right if lists[1] else [right] * len(left)
    return [pair for a, b in zip(left, right, strict=True) for pair in _pairs(a, b)]


def _text(x: Any) -> str:
    if isinstance(x, list):
        return "[" + ", ".join(_text(entry) for entry in x) + "]"
    try:
        return f"{float(_real(x)):.10g}"
    except TypeError:
        return str(x)


class _Space:
    """The names of a scenario with the values that some base values give them."""

    def __init__(self, scenario: Scenario, base: Mapping[str, Any], system: Any) -> None:
        self.scenario, self.system = scenario, system
        self.base = {name: system.number(x) for name, x in base.items()}
        self.names: dict[str, Any] = {}
        self._fill(self.base)

    def value(self, expression: CodeType) -> Any:
        """The value of an expression of the statement."""
        # Only texts of this package are evaluated, never a user's.
        return eval(expression, self.names)

    def _fill(self, base: Mapping[str, Any]) -> None:
        m = self.system
        # No acos: that of mpmath loses its digits beside the real axis, where a derivative looks.
        self.names.update(_FUNCTIONS, **{f: getattr(m, f) for f in ("exp", "log", "sqrt", "sin", "cos", "pi")})
        self.names.update(max=m.largest, min=m.smallest, derivative_=self._derivative)
        self.names.update(number_=m.decimal, quotient_=lambda a, b: m.number(a, exact=True) / b)
        self.names.update(entropy=lambda p: -sum(x * m.log(x) for x in p))
        self.names.update(self.scenario.terms(m, base))

    def _derivative(self, expression: Callable[[], Any], name: str, *index: int) -> Any:
        x = self.base[name][index[0]] if index else self.base[name]
        if self.system.symbolic:
            return self.system.sympy.diff(expression(), x)

        # What the names mean depends on the base values: all are made again around the moved one.
        def at(moved: Any) -> Any:
            entries = [moved if i == index[0] else e for i, e in enumerate(self.base[name])] if index else moved
            self._fill({**self.base, name: entries})
            return expression()

        before = dict(self.names)
        slope = self.system.derivative(at, x)
        # The rest of the statement is about the base values as they were.
        self.names.update(before)
        return slope


def _mean(xs: Any) -> Any:
    return sum(xs) / len(xs)


def _variance(xs: Any) -> Any:
    return sum(x * x for x in xs) / len(xs) - _mean(xs) ** 2


_FUNCTIONS = {"mean": _mean, "variance": _variance}
_OPERATORS = (ast.Eq, ast.LtE, ast.Lt)


class _Exact(ast.NodeTransformer):
    """Makes a Python expression exact: 0.1 is a tenth, 1 / 3 a third, and d(expression, s[j]) a derivative."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        # By its text: the float itself is not a tenth.
        return _call("number_", ast.Constant(repr(node.value))) if isinstance(node.value, float) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _call("quotient_", node.left, node.right) if isinstance(node.op, ast.Div) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == "d"):
            return node
        expression, target = node.args
        # A derivative evaluates its expression more than once, so the expression is passed as a function.
        late = ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)
        name = target.value if isinstance(target, ast.Subscript) else target
        index = [target.slice] if isinstance(target, ast.Subscript) else []
        if not isinstance(name, ast.Name):
            msg = f"d(..., x) takes a base value or an entry of one, got {ast.unparse(target)}"
            raise InputError(msg)
        return _call("derivative_", late, ast.Constant(name.id), *index)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
