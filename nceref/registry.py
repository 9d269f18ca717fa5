"""Finds the declarations of a folder: a file is listed because it is there; and a declaration of a user's own."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from nceref.errors import DeclarationError, InputError, TargetError
from nceref.importing import find_object
from nceref.output.text import printable, shown
from nceref.output.words import alike, did_you_mean, letters
from nceref.spec import Loss

T = TypeVar("T")


@cache
def names(package: str) -> tuple[str, ...]:
    """The names declared in `package`, sorted, without importing one of them."""
    folder = importlib.import_module(package)
    return tuple(sorted(module.name for module in pkgutil.iter_modules(folder.__path__)))


@cache
def discover(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """Import every module of a package and collect its declaration.

    Parameters
    ----------
    package : str
        Such as ``"nceref.family"``.
    attribute : str
        What the declaration is called in each module, such as ``"LOSS"``.
    kind : type
        Its class. Its `name` must be that of the file, with dashes or underscores.

    Returns
    -------
    mapping
        Declarations by name, sorted.

    Raises
    ------
    DeclarationError
        For a module without such a declaration.
    """
    declarations = {}
    for name in names(package):
        declaration: Any = getattr(importlib.import_module(f"{package}.{name}"), attribute, None)
        if not isinstance(declaration, kind) or declaration.name.replace("-", "_") != name:
            msg = f"{package}.{name} must define {attribute} = {kind.__name__}(name={name!r}, ...), got {declaration!r}"
            raise DeclarationError(msg)
        declarations[declaration.name] = declaration
    # Every caller gets this one mapping from the cache: it must not be changed.
    return MappingProxyType(declarations)


def own_loss(text: str) -> Loss:
    """A declaration outside of the package.

    Parameters
    ----------
    text : str
        ``file.py:NAME`` or ``package.module:NAME``; the file is executed.

    Raises
    ------
    InputError
        If it cannot be loaded, is no `Loss`, or has a formula or a plan that cannot take its arguments.
    """
    try:
        declaration = find_object(text, "a loss of your own", lambda thing: isinstance(thing, Loss))
    except TargetError as error:
        msg = f"`loss`: {error}"
        raise InputError(msg) from error
    text = printable(text)
    if not isinstance(declaration, Loss):
        msg = f"`loss` must name a declaration, NAME = nceref.spec.Loss(...); {text} is {shown(declaration)}"
        raise InputError(msg)
    if not (isinstance(declaration.name, str) and declaration.name.isidentifier()):
        msg = f"`loss`: the `name` of {text} must be a Python name, got {shown(declaration.name)}"
        raise InputError(msg)
    _check_callables(declaration, text)
    return declaration


def _check_callables(declaration: Loss, text: str) -> None:
    """Refuse a formula or a plan that cannot take the arguments."""
    names = [p.name for p in declaration.parameters]
    for role, first in (("formula", ["m"]), ("plan", [])):
        try:
            inspect.signature(getattr(declaration, role)).bind(*first, **dict.fromkeys(names))
        except (TypeError, ValueError) as error:
            takes = ", ".join([*first, *names])
            msg = f"`loss`: the `{role}` of {text} must take {takes}: {printable(error)}"
            raise InputError(msg) from error


def pick(what: str, name: str, known: Mapping[str, T], command: str) -> T:
    """The declaration of that name.

    Parameters
    ----------
    what : str
        What is looked for, as the message says it: "table", "loss".
    name : str
        As it was given.
    known : mapping
        All declarations by name.
    command : str
        What lists them.

    Raises
    ------
    InputError
        If there is none; the message names those that may have been meant.
    """
    # Anything that is no text has no name to look for, and may not even be hashable.
    if not isinstance(name, str) or name not in known:
        error = unknown(what, name if isinstance(name, str) else shown(name), tuple(known), command)
        raise error
    return known[name]


def choose(what: str, names: Iterable[str], known: Mapping[str, T], command: str) -> list[T]:
    """The declarations of these names, each once, in their order; all of them for no name. See `pick`."""
    return [pick(what, name, known, command) for name in dict.fromkeys(names) or known]


def unknown(what: str, name: str, known: tuple[str, ...], command: str) -> InputError:
    """The error for a name that is not declared, with those it may have meant: alike, or described by that word.

    Parameters
    ----------
    what : str
        What is looked for: "table", "loss".
    name : str
        As it was given.
    known : tuple of str
        All names.
    command : str
        What lists them.
    """
    # Measured on this package: slips such as "nt_xnet" score 0.83, other words such as "simclr" for "simple" 0.67.
    meant = alike(printable(name), known, 0.75) or _described(what, printable(name))
    hint = f"; {did_you_mean(meant)}" if meant else "."
    return InputError(f"no {what} named {shown(name)}{hint} See `{command}`")


def _described(what: str, name: str) -> list[str]:
    """Those whose summary holds the word, or else those whose sources do."""
    word = letters(name)
    # What Python itself looks for in a module begins with an underscore, at times while declarations are imported.
    if len(word) < 4 or name.startswith("_") or what not in _FOLDERS:
        return []
    declarations = discover(*_FOLDERS[what]).items()
    by_summary = [k for k, declared in declarations if word in letters(declared.summary)]
    meant = by_summary or [k for k, declared in declarations if word in letters(" ".join(map(str, declared.sources)))]
    # A word that is in more of them, such as "loss", does not discriminate.
    return meant if len(meant) <= 3 else []


_FOLDERS: Mapping[str, tuple[str, str, Any]] = {"loss": ("nceref.family", "LOSS", Loss)}
