"""What of a package may be a loss: its public modules are imported in a process, and what they define is listed."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nceref.errors import InputError, TargetError
from nceref.output.text import printable, shown
from nceref.targets.process.module_contents import ModuleRequest

_NO_LOSSES = frozenset({"test", "tests", "docs", "examples", "benchmarks"})
"""Folders beside a package that have no losses of their own."""


@dataclass(frozen=True)
class PublicCallable:
    """A function, class or object of a package: the TARGET text, and what its constructor must be given."""

    text: str
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its own name."""
        return self.text.rpartition(":")[2]


@dataclass(frozen=True)
class Package:
    """A package as it is imported, or one file: its callables, each once under the shortest of its names.

    `failed` has the modules that cannot be imported, with the reason.
    """

    name: str
    callables: tuple[PublicCallable, ...]
    failed: dict[str, str]


def package_name(text: str) -> str:
    """The module, ``package.module``, or the file, ``file.py``, that a text names; nothing is imported.

    The text may also be a folder below the working one. Raises `InputError` if it can be none of them.
    """
    path = Path(text)
    if text.endswith(".py") or path.is_file():
        if path.suffix == ".py" and path.is_file():
            return str(path)
        there = "is no Python file" if path.is_file() else "is not there"
        msg = f"PACKAGE must be a package, a module, a folder or a file that ends in .py; {shown(text)} {there}"
        raise InputError(msg)
    if text and path.is_dir() and not re.fullmatch(r"\w+(\.\w+)*", text):
        return _of_folder(text)
    if not re.fullmatch(r"\w+(\.\w+)*", text):
        place, _, name = text.rpartition(":")
        remedy = f"; leave out :{name}, or see which loss it is: nceref verify {place}:{name}" if place and name else ""
        msg = f"PACKAGE must be a package, a module, a file that ends in .py or a folder, got {shown(text)}{remedy}"
        raise InputError(msg)
    return text


def _of_folder(text: str) -> str:
    parts = Path(os.path.relpath(text)).parts
    if not parts:
        return _in_folder(text)
    if not all(map(str.isidentifier, parts)):
        msg = (
            f"PACKAGE {shown(text)} is no folder that can be imported from the working folder; go to the folder that"
            " holds it, and name it as Python does"
        )
        raise InputError(msg)
    return ".".join(parts)


def _in_folder(text: str) -> str:
    """The one package of the working folder; tests are none."""
    if Path("__init__.py").is_file():
        msg = f"PACKAGE {shown(text)} is inside a package; go to the folder that holds it, and name it as Python does"
        raise InputError(msg)
    packages = sorted(one.parent.name for one in Path().glob("*/__init__.py") if one.parent.name not in _NO_LOSSES)
    if len(packages) == 1:
        return packages[0]
    files = sorted(map(str, Path().glob("*.py")))
    holds = f"{len(packages)} packages ({', '.join(packages[:9])})" if packages else "no package"
    remedy = f"name a file, such as {files[0]}" if files and not packages else "name a package, a folder or a file"
    msg = f"PACKAGE {shown(text)}: the working folder holds {holds}; {remedy}"
    raise InputError(msg)


def read_package(name: str, child: Any) -> Package:
    """List the callables of a package and of its public modules, which the process `child` imports.

    `name` is of `package_name`. Raises `TargetError` if it cannot be imported, or has nothing that can be called.
    """
    seen: set[str] = set()
    callables: list[PublicCallable] = []
    failed: dict[str, str] = {}
    waiting = [name]
    while waiting:
        place = waiting.pop(0)
        try:
            contents = child.contents(ModuleRequest(place, name))
        except TargetError as error:
            if place == name:
                raise
            failed[place] = _one_line(str(error), place)
            continue
        for each in contents.callables:
            if each.home not in seen:
                seen.add(each.home)
                callables.append(PublicCallable(f"{place}:{each.name}", each.needs))
        waiting += [f"{place}.{module}" for module in contents.submodules]
    if not callables:
        msg = (
            f"{printable(name)} has no public function or class of its own that can be called; name the"
            " module of the losses"
        )
        raise TargetError(msg)
    return Package(name, tuple(callables), failed)


def _one_line(message: str, place: str) -> str:
    """A message without the module's name, and of a traceback the last line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    last = lines[-1] if len(lines) > 1 else lines[0].removeprefix(place).lstrip(": ")
    return printable(last, 200)
