"""The call expression: any mapping from the inputs of a loss to a call, such as ``f(torch.cat([z1, z2]), labels)``."""

import ast
import builtins
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from nceref.errors import InputError, UnavailableError
from nceref.output.text import printable, shown
from nceref.output.words import alike, as_code, did_you_mean
from nceref.targets.frameworks.frameworks import FRAMEWORKS
from nceref.targets.target import given_now

MODULES = {**{name: path for each in FRAMEWORKS.values() for name, path in each.modules.items()}, "math": "math"}
"""Modules that an expression may name, besides the inputs and ``f``."""


@dataclass(frozen=True, eq=False)
class Expression:
    """A compiled call expression with the names that it uses."""

    text: str
    code: CodeType
    names: frozenset[str]
    place: Mapping[str, Any] = field(default_factory=dict)

    def evaluated(self, function: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
        """The expression's value for these inputs, with ``f`` the function."""
        # An input goes before a module of the same name; an optional input without a value is None.
        modules = {n: importlib.import_module(path) for n, path in MODULES.items() if n in self.names - {*inputs}}
        absent = dict.fromkeys(self.names - {*modules, *_BUILTIN})
        # As trusted as the target: both come from whoever runs the verifier.
        return eval(self.code, {**modules, **absent, **inputs, **given_now(self.place), "f": function})


_BUILTIN = frozenset(dir(builtins))


def expression(text: str, known: Iterable[str], place: Mapping[str, Any] | None = None, loss: str = "") -> Expression:
    """Compile a call expression: Python over the names of the loss's inputs, ``f`` for the target, and `MODULES`.

    `known` has the names of the inputs of `loss`, or where that is empty those of all losses; optional inputs that are
    not given are None. `place` has the ``rank`` and ``world_size`` of this process, where it is one of several. Raises
    `InputError` if the text is not an expression,
    names something unknown, or does not call ``f``; `UnavailableError` if it names a package that is not installed.
    """
    # A terminal wraps a long one, and what is copied from it has the line breaks.
    text = " ".join(text.splitlines()).strip()
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # Besides errors of syntax: text that is no UTF-8, and parentheses that are too deep for the parser.
        msg = f"`call` must be a Python expression such as 'f(z1, z2)', got {shown(text)}: {printable(error)}"
        raise InputError(msg) from error
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    # Names that comprehensions, lambdas and := bind inside the expression are no inputs.
    own = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    own |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    names = frozenset(n.id for n in nodes) - own
    unknown = sorted(names - {*known, *MODULES, *_BUILTIN, *(place or {}), "f", "reduction"})
    if unknown:
        inputs = tuple(known)
        which = f"no input of {loss}: {', '.join(inputs)}" if loss else "no input of any loss"
        near = did_you_mean(alike(unknown[0], inputs, 0.5), as_code)
        also = f"Beside inputs, it may name f and {', '.join(MODULES)}"
        msg = f"`call` names {shown(unknown[0])}, which is {which}{f'; {near}' if near else '.'} {also}"
        raise InputError(msg)
    if "f" not in names:
        msg = f"`call` must call the target by the name f, such as 'f(z1, z2)', got {shown(text)}"
        raise InputError(msg)
    for name in sorted(names & MODULES.keys() - {*known}):
        if importlib.util.find_spec(package := MODULES[name].split(".")[0]) is None:
            msg = f"`call` names {name}, but {package} is not installed: pip install {package}"
            raise UnavailableError(msg)
    return Expression(text, compile(tree, "<call>", "eval"), names, place or {})
