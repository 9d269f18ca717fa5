"""Finds the declarations of a folder: a file is listed because it is there."""

import importlib
import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any

from nceref.errors import DeclarationError, InputError


@cache
def names(package: str) -> tuple[str, ...]:
    """The names declared in `package`, sorted, without importing one of them."""
    folder = importlib.import_module(package)
    return tuple(sorted(module.name for module in pkgutil.iter_modules(folder.__path__)))


@cache
def discover(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """Import every module of `package` and collect its `attribute`, a `kind` named like its file.

    A name may use dashes where the file name must use underscores.
    """
    found = {}
    for name in names(package):
        declaration: Any = getattr(importlib.import_module(f"{package}.{name}"), attribute, None)
        if not isinstance(declaration, kind) or declaration.name.replace("-", "_") != name:
            msg = f"{package}.{name} must define {attribute} = {kind.__name__}(name={name!r}, ...), got {declaration!r}"
            raise DeclarationError(msg)
        found[declaration.name] = declaration
    return MappingProxyType(found)


def unknown(what: str, name: str, known: tuple[str, ...], command: str) -> InputError:
    """The error for a name that is not declared, with the names it may have meant."""
    close = get_close_matches(name, known, n=3, cutoff=0.5) or [k for k in known if name in k][:3]
    hint = f"; did you mean {' or '.join(repr(k) for k in close)}?" if close else "."
    return InputError(f"no {what} named {name!r}{hint} See `{command}`")
