"""Recognition of a target's framework from its annotations, base classes and names; nothing is called."""

import inspect
from collections.abc import Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from nceref.errors import TargetError
from nceref.targets.call_expression import MODULES
from nceref.targets.frameworks import NAMES
from nceref.targets.frameworks.frameworks import FRAMEWORKS

_ROOTS = {package: each.name for each in FRAMEWORKS.values() for package in each.packages}
_OF_ANY = ("array_api_compat",)
"""Packages that work on arrays of every framework and so name all of them."""
_FOREIGN = ("builtins", *(each.module_base for each in FRAMEWORKS.values()))
"""Bases whose methods are no evidence about a target."""


def recognize_framework(thing: Any, expression_names: frozenset[str] = frozenset()) -> str:
    """The name of a target's framework.

    The first evidence that there is decides, in this order: the call expression, base classes, annotations, the names
    that the code uses, what its module has imported. NumPy counts only where no other is there, or where the code uses
    it alone and names axes as it does; it is the answer where there is no evidence. Raises `TargetError` if the target
    uses two others.
    """
    named = {MODULES.get(name, "").split(".")[0] for name in expression_names}
    used = _used(thing)
    for evidence in (named, _bases(thing), _annotated(thing), used, _around(thing)):
        frameworks = {_ROOTS[root] for root in evidence if root in _ROOTS} - {NAMES[0]}
        if len(frameworks) > 1:
            name = getattr(thing, "__name__", type(thing).__name__)
            msg = f"{name} uses both {' and '.join(sorted(frameworks))}; choose with --framework"
            raise TargetError(msg)
        if frameworks:
            return frameworks.pop()
        if evidence is used and {NAMES[0], "axis"} <= used and "dim" not in used:
            break
    return NAMES[0]


def _bases(thing: Any) -> set[str]:
    kind = thing if inspect.isclass(thing) else type(thing)
    return {base.__module__.split(".")[0] for base in kind.__mro__}


def _annotated(thing: Any) -> set[str]:
    roots: set[str] = set()
    for function in _functions(thing):
        for annotation in getattr(function, "__annotations__", {}).values():
            # Text under `from __future__ import annotations`.
            if isinstance(annotation, str):
                first = annotation.split(".")[0]
                bound = function.__globals__.get(first)
                roots.add(_root(bound) if bound is not None else MODULES.get(first, first).split(".")[0])
            else:
                roots.add(_root(annotation))
    return roots


def _used(thing: Any) -> set[str]:
    """Roots of the outer names that the code uses, and how it names axes; also inside the functions that it calls."""
    roots: set[str] = set()
    seen: set[FunctionType] = set()
    waiting = _functions(thing)
    while waiting and len(seen) < _DEEP:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        outer = {**function.__globals__, **_enclosed(function)}
        for name in _names(function.__code__):
            value = outer.get(name)
            # An import inside a function is among its names as well.
            roots |= {_root(value), name.split(".")[0]}
            if value is not None and _root(value) not in (*_ROOTS, *_OF_ANY) and callable(value):
                waiting += _functions(value)
    return roots


_DEEP = 100
"""Functions that are looked into; a framework shows itself in the first few."""


def _enclosed(function: FunctionType) -> dict[str, Any]:
    """Variables that a function takes from the functions around it, by name."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _filled(cell)}


def _filled(cell: Any) -> bool:
    try:
        # An empty cell, of a name that is not bound yet, raises.
        return cell.cell_contents is not None
    except ValueError:
        return False


def _names(code: Any) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        # The keywords of a call are such a tuple.
        if isinstance(constant, tuple):
            yield from {"axis", "dim"} & {*constant}
        # Code of a function inside the function.
        if hasattr(constant, "co_names"):
            yield from _names(constant)


def _around(thing: Any) -> set[str]:
    roots = set()
    for function in _functions(thing):
        roots |= {_root(value) for value in function.__globals__.values() if issubclass(type(value), ModuleType)}
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return roots or {str(module).split(".")[0]}


def _functions(thing: Any) -> list[FunctionType]:
    """The Python functions of a target: itself, what it wraps, or the methods of its class."""
    try:
        return _functions_inside(thing)
    # Wrappers in a cycle raise, and so may any attribute of an object that happens to be near the target.
    except Exception:
        return []


def _functions_inside(thing: Any) -> list[FunctionType]:
    while isinstance(thing, partial):
        thing = thing.func
    thing = inspect.unwrap(thing)
    if inspect.ismethod(thing):
        thing = thing.__func__
    if isinstance(thing, FunctionType):
        return [thing]
    kind = thing if inspect.isclass(thing) else type(thing)
    bases = (base for base in kind.__mro__ if base.__module__ not in _FOREIGN)
    methods = (getattr(method, "__func__", method) for base in bases for method in vars(base).values())
    return [m for m in methods if isinstance(m, FunctionType)]


def _root(value: Any) -> str:
    try:
        name = value.__name__ if issubclass(type(value), ModuleType) else getattr(value, "__module__", None)
        return str(name or type(value).__module__).split(".")[0]
    # An attribute of an object may raise.
    except Exception:
        return ""
