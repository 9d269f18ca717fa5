"""The code of a program."""

import inspect
import itertools
import types
from typing import Any

from mutants.bug import Program


def source(program: Program) -> str:
    """The code of a program and of what it calls in its own file, in the order of the file."""
    parts: dict[int, str] = {}
    for function in (program.function, program.gradients):
        if function is not None:
            _collect(function, parts)
    return "\n\n".join(parts[line] for line in sorted(parts))


def _collect(thing: Any, parts: dict[int, str]) -> None:
    # By its first line: each function and class once, although several may call it, and in the order of the file.
    lines, first = inspect.getsourcelines(thing)
    if first in parts:
        return
    # Without the decorator, whose facts stand above the code.
    parts[first] = "".join(itertools.dropwhile(lambda line: not line.startswith(("def ", "class ")), lines))
    # A static method of a class is unwrapped to its function.
    methods = map(inspect.unwrap, vars(thing).values()) if isinstance(thing, type) else (thing,)
    for function in (x for x in methods if isinstance(x, types.FunctionType)):
        for name in _names(function.__code__):
            called = function.__globals__.get(name)
            if isinstance(called, types.FunctionType | type) and called.__module__ == thing.__module__:
                _collect(called, parts)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Names that the code reads, those of functions inside it included."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return (*code.co_names, *inner)
