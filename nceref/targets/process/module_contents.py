"""Contents of a module that may be a loss: listed in the process that imports it, checked where they arrive."""

import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from nceref.registry import import_place
from nceref.targets.arguments import signature_of

MOST, LONGEST = 1000, 200
"""Names of one kind that are listed, and letters of a name."""
_TESTS = re.compile(r"tests?|conftest|test_.*|.*_test")


@dataclass(frozen=True)
class ModuleRequest:
    """A module to be listed, ``package.module`` or ``file.py``, and the package whose own objects count."""

    place: str
    package: str

    @property
    def text(self) -> str:
        """The beginning of the text that names a target of the module."""
        return f"{self.place}:"


@dataclass(frozen=True)
class NamedCallable:
    """A public function, class or object that can be called.

    `home` is the same for one that several modules show; `needs` has the arguments without which a class cannot be
    constructed.
    """

    name: str
    home: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleContents:
    """Callables of a module that its package defines, and its public submodules but for those of tests."""

    callables: tuple[NamedCallable, ...] = ()
    submodules: tuple[str, ...] = field(default=())


def contents_of(request: ModuleRequest) -> ModuleContents:
    """Import a module, and list what it has; raises `TargetError` if it cannot be imported."""
    module = import_place(request.place)
    package = module.__name__ if request.place.endswith(".py") else request.package
    path = getattr(module, "__path__", None)
    modules = sorted(m.name for m in pkgutil.iter_modules(path)) if path is not None else []
    shown = [m for m in modules if not m.startswith("_") and not _TESTS.fullmatch(m)]
    return ModuleContents(tuple(_callables(module, package))[:MOST], tuple(shown[:MOST]))


def _callables(module: ModuleType, package: str) -> Iterator[NamedCallable]:
    stated = getattr(module, "__all__", None)
    listed = [n for n in stated if isinstance(n, str)] if isinstance(stated, list | tuple) else []
    # What a file imports for its own use is no name of its; a package shows what it imports.
    is_package = hasattr(module, "__path__")
    for name in listed or [n for n in vars(module) if not n.startswith("_")]:
        # An attribute that is made when it is read may raise anything.
        try:
            thing = getattr(module, name, None)
            home, qualified = _home(thing)
            own = f"{home}.".startswith(f"{package}.")
            # What a module lists as its own may be defined beside it.
            near = home.split(".")[0] == package.split(".")[0]
            public = (own and (is_package or home == module.__name__)) or (near and name in listed)
            if public and name.isidentifier() and len(name) < LONGEST and _may_be_called(thing):
                plain = inspect.isclass(thing) or inspect.isroutine(thing)
                needs = _needed(thing) if inspect.isclass(thing) else ()
                yield NamedCallable(name, f"{home}:{qualified if plain else name}"[:LONGEST], needs)
        except Exception:
            continue


def _home(thing: Any) -> tuple[str, str]:
    """The module that defines it, and its name there."""
    while isinstance(thing, partial):
        thing = thing.func
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return str(named.__module__), str(named.__qualname__)


def _may_be_called(thing: Any) -> bool:
    """Whether it, or an instance of it, can be called with arrays."""
    if not inspect.isclass(thing):
        return callable(thing)
    methods = {name for base in thing.__mro__ if base is not object for name in vars(base)}
    return bool(methods & {"forward", "__call__"}) and not issubclass(thing, BaseException)


def _needed(kind: type) -> tuple[str, ...]:
    positional = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature_of(kind).parameters.items()
    return tuple(n for n, p in parameters if p.default is p.empty and p.kind in positional)


def contents_message(contents: ModuleContents) -> tuple[str, dict[str, Any]]:
    """The answer with the contents, a line of `messages`."""
    rows = [[each.name, each.home, list(each.needs)] for each in contents.callables]
    return "contents", {"callables": rows, "submodules": list(contents.submodules)}


def checked_contents(content: Mapping[str, Any]) -> ModuleContents:
    """The contents in an answer that anybody may have written; raises `ValueError` for another one."""
    if set(content) != {"callables", "submodules"}:
        raise ValueError
    rows, modules = (_list(content[key]) for key in ("callables", "submodules"))
    return ModuleContents(tuple(map(_callable_of, rows)), tuple(_name(m, r"\w[\w-]*") for m in modules))


def _callable_of(row: Any) -> NamedCallable:
    name, home, needs = _list(row)
    if not isinstance(home, str) or len(home) > LONGEST:
        raise ValueError
    return NamedCallable(_name(name), home, tuple(_name(n) for n in _list(needs)))


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list) or len(content) > MOST:
        raise ValueError
    return content


def _name(content: Any, form: str = r"[^\W\d]\w*") -> str:
    if not isinstance(content, str) or len(content) > LONGEST or not re.fullmatch(form, content):
        raise ValueError
    return content
