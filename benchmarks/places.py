"""Places of the package that may be changed, and how: an operator, a constant, a condition, one at a time."""

import ast
import hashlib
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "nceref"

_COMPARISONS = {
    ast.Lt: ("<=", ">"), ast.LtE: ("<", ">="), ast.Gt: (">=", "<"), ast.GtE: (">", "<="), ast.Eq: ("!=",),
    ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
_OPERATORS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*", ast.Pow: "*",
    ast.BitAnd: "|", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
_OPPOSITES = {"min": "max", "minimum": "maximum", "fmin": "fmax", "argmin": "argmax", "any": "all", "floor": "ceil"}
_OPPOSITES |= {there: here for here, there in _OPPOSITES.items()}
_CONDITIONS = ("not ({})", "False and ({})", "True or ({})")
_NAMELESS = (ast.JoinedStr, ast.pattern)
"""Nodes that no change enters: of the parts of formatted text, Python 3.11 does not know the columns."""

Change = tuple[str, int, int, tuple[str, ...]]
"""Kind, first byte, the byte after the last, and what may stand there instead."""


@dataclass(frozen=True)
class Place:
    """A place that may be changed.

    Attributes
    ----------
    path, line : str, int
        Present file and line.
    text, kind, rank : str, str, int
        The line without the space around it, the kind of change, and which of its kind in the line: its name.
    near : tuple of str
        The line with those before and after it, which order places of the same name.
    start, end, options : int, int, tuple of str
        The bytes that are replaced, and by which texts they may be.
    around : tuple of int
        First and last line of the statement, or of its header.
    key : str
        Hash of the name; what is drawn, and which of the options, depends on it.
    """

    path: str
    line: int
    text: str
    kind: str
    rank: int
    near: tuple[str, ...]
    start: int
    end: int
    options: tuple[str, ...]
    around: tuple[int, int]
    key: str = ""

    @property
    def folder(self) -> str:
        """The first folder below the package, or `.`."""
        inner = Path(self.path).parts[1:-1]
        return inner[0] if inner else "."

    def changed(self, data: bytes) -> bytes:
        """The bytes of the file with the change."""
        new = self.options[int(self.key[-8:], 16) % len(self.options)]
        return data[: self.start] + new.encode() + data[self.end :]


class Source:
    """One file, and the places in it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path.relative_to(ROOT))
        self.data = path.read_bytes()
        self.lines = self.data.split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    @cached_property
    def tokens(self) -> list[tuple[int, str]]:
        """First byte and text of every operator and name."""
        result = tokenize.tokenize(io.BytesIO(self.data).readline)
        return [(self._byte(*t.start), t.string) for t in result if t.type in (tokenize.OP, tokenize.NAME)]

    def _byte(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].decode()[:column].encode())

    def span(self, node: Any) -> tuple[int, int]:
        """First byte of a node, and the one after it."""
        first = self.starts[node.lineno - 1] + node.col_offset
        return first, self.starts[node.end_lineno - 1] + node.end_col_offset

    def between(self, left: Any, right: Any) -> tuple[int, int]:
        """The operator between two nodes, which parentheses may surround."""
        low, high = self.span(left)[1], self.span(right)[0]
        result = [(at, text) for at, text in self.tokens if low <= at < high and text not in "()"]
        return result[0][0], result[-1][0] + len(result[-1][1])

    def places(self) -> Iterator[Place]:
        """All places of the file, in order."""
        ranks: Counter[tuple[int, str]] = Counter()
        result = self._walk(ast.parse(self.data), (1, 1), False)
        for (kind, start, end, options), around in sorted(result, key=lambda pair: pair[0][1:3]):
            line = self.data.count(b"\n", 0, start) + 1
            near = tuple(text.decode().strip() for text in self.lines[max(line - 2, 0) : line + 1])
            text = self.lines[line - 1].decode().strip()
            ranks[line, kind] += 1
            yield Place(self.path, line, text, kind, ranks[line, kind], near, start, end, options, around)

    def _walk(self, node: Any, around: tuple[int, int], inside: bool) -> Iterator[tuple[Change, tuple[int, int]]]:
        """All changes in a node and below it, each with the lines of its statement; `inside` a function or not."""
        if isinstance(node, ast.stmt):
            around = _header(node)
        yield from ((change, around) for change in (*self._operators(node, inside), *self._words(node)))
        for child in _below(node):
            yield from self._walk(child, around, inside or isinstance(node, ast.FunctionDef))

    def _operators(self, node: Any, inside: bool) -> Iterator[Change]:
        """Changes of operators between two nodes; what joins texts, or types outside of functions, is left alone."""
        match node:
            case ast.Compare(left, operators, others):
                for operator, sides in zip(operators, pairwise([left, *others]), strict=True):
                    yield "comparison", *self.between(*sides), _COMPARISONS[type(operator)]
            case ast.BinOp(left, operator, right) if not (_is_joined(left) or _is_joined(right)):
                if type(operator) in _OPERATORS and (inside or not isinstance(operator, ast.BitAnd)):
                    yield "arithmetic", *self.between(left, right), (_OPERATORS[type(operator)],)
            case ast.AugAssign(target, operator, value) if type(operator) in _OPERATORS and not _is_joined(value):
                yield "arithmetic", *self.between(target, value), (_OPERATORS[type(operator)] + "=",)
            case ast.BoolOp(operator, values):
                other = "or" if isinstance(operator, ast.And) else "and"
                yield from (("boolean", *self.between(*sides), (other,)) for sides in pairwise(values))

    def _words(self, node: Any) -> Iterator[Change]:
        """Changes of constants, names, signs, and conditions."""
        match node:
            case ast.UnaryOp(ast.Not()):
                start, end = self.span(node)
                rest = self.data[start + 3 : end]
                yield "not", start, end - len(rest.lstrip(b" ")), ("",)
            case ast.UnaryOp(ast.USub()):
                yield "minus", self.span(node)[0], self.span(node)[0] + 1, ("",)
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in _OPPOSITES:
                end = self.span(node.func)[1]
                yield "extreme", end - len(name), end, (_OPPOSITES[name],)
            case ast.Constant(bool() | int() | float() as value):
                yield "constant", *self.span(node), (_next(value),)
            case ast.Break() | ast.Continue():
                yield "jump", *self.span(node), ("continue" if isinstance(node, ast.Break) else "break",)
        for test in _conditions(node):
            old = self.data[slice(*self.span(test))].decode()
            # An endless loop says little.
            forms = _CONDITIONS[:1] if isinstance(node, ast.While) else _CONDITIONS
            yield "condition", *self.span(test), tuple(form.format(old) for form in forms)


def _is_joined(node: ast.AST) -> bool:
    """Whether it is text or a sequence, of which + and * do not make sums and products."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


def _next(value: complex) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1) if isinstance(value, int) else repr(value * 1.01 or 0.01)


def _conditions(node: Any) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [] if _is_guard(node) or isinstance(node.test, ast.Constant) else [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _is_guard(node: Any) -> bool:
    """Whether it asks who reads the file: a type checker, or Python as the main program."""
    return isinstance(node, ast.If) and any(name in ast.unparse(node.test) for name in ("TYPE_CHECKING", "__name__"))


def _below(node: Any) -> Iterator[ast.AST]:
    """The nodes in a node in which something may be changed."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") or (_is_guard(node) and field != "orelse"):
            continue
        children = value if isinstance(value, list) else [value]
        yield from (child for child in children if isinstance(child, ast.AST) and not isinstance(child, _NAMELESS))


def _header(node: Any) -> tuple[int, int]:
    """The lines of a statement without those in its body."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    body = [*getattr(node, "body", ()), *getattr(node, "cases", ())]
    if not body:
        return first, node.end_lineno
    return first, max(first, getattr(body[0], "lineno", first + 1) - 1)


def draw(count: int, seed: int) -> list[Place]:
    """Some places of the package, each as probable as any other; they depend on lines, not on where these stand."""
    same: dict[str, list[Place]] = defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        for place in Source(path).places():
            same[f"{seed}\n{place.text}\n{place.kind}\n{place.rank}"].append(place)
    every = []
    for name, places in same.items():
        for number, place in enumerate(sorted(places, key=lambda p: (p.near, p.path, p.line))):
            every.append(replace(place, key=hashlib.sha256(f"{name}\n{number}".encode()).hexdigest()))
    return sorted(every, key=lambda place: place.key)[:count]
