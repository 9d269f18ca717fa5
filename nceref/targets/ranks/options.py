"""The options of a run on ranks or in steps, checked: how many, which rows each has, how their answers are joined."""

import importlib
import inspect
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nceref.engine.arguments import integer, one_of
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.targets.ranks.contract import SYNCS, VALUES, Contract

MOST = 64
"""Ranks: each is a process on this machine."""
_OF_RANKS_ALONE = {
    "ranks": "ranks share a batch at once, and steps in turn",
    "duplicate": "steps have their own rows, and no sampler repeats any",
    "axis": "it is that of devices, and steps are taken on one",
    "added": "the mix of two losses is judged on ranks",
}
"""Options that steps exclude, with the reason."""
_VALUES_OF_STEPS = ("mean", "sum")


def contracts(given: Mapping[str, Any]) -> tuple[Contract, ...]:
    """The runs on ranks or in steps that were asked for, a single one first: alone a target must be the reference.

    `given` has those options that were given; the result is empty without ``ranks`` and ``accumulate``. Raises
    `InputError` for a number, a word or shares that do not fit.
    """
    if in_turn := given.get("accumulate") is not None:
        for name, why in _OF_RANKS_ALONE.items():
            if given.get(name):
                msg = f"{_as_written(name)} and `accumulate` exclude each other: {why}; leave out one of the two"
                raise InputError(msg)
    elif given.get("ranks") is None:
        if given:
            name, value = next(iter(given.items()))
            msg = f"{_as_written(name)} is about ranks, but `ranks` is not given; add ranks, such as 2, got"
            msg += f" {name}={shown(value)}"
            raise InputError(msg)
        return ()
    many, least = ("accumulate", 2) if in_turn else ("ranks", 1)
    sizes = _integers(many, given[many], "2,4" if in_turn else "2,3", least)
    value = one_of("value", given.get("value", "mean"), _VALUES_OF_STEPS if in_turn else VALUES)
    sync = one_of("sync", given.get("sync", "mean"), SYNCS)
    duplicate = one_of("duplicate", given.get("duplicate", False), (True, False))
    shards = _integers("shards", given["shards"], "3,1") if given.get("shards") is not None else ()
    if shards and any(size != len(shards) for size in sizes):
        part = "step" if in_turn else "rank"
        msg = f"`shards` must have a share for each {part} of `{many}`, got {len(shards)} for {shown(given[many])}"
        raise InputError(msg)
    if shards and duplicate:
        msg = "`shards` and `duplicate` exclude each other: repeated rows make all shards equal; leave one out"
        raise InputError(msg)
    axis = _name(given["axis"]) if given.get("axis") is not None else ""
    runs = (Contract(size, value, sync, shards, duplicate, axis, in_turn) for size in sizes)
    return tuple(dict.fromkeys((Contract(1, value, sync, axis=axis, in_turn=in_turn), *runs)))


def _as_written(option: str) -> str:
    return "`added` (--with)" if option == "added" else f"`{option}`"


def _name(axis: Any) -> str:
    if not isinstance(axis, str) or not axis:
        msg = f"`axis` must be a name, such as batch, got {shown(axis)}"
        raise InputError(msg)
    return str.__str__(axis)


def added(given: Any) -> tuple[str, float]:
    """A target that is added to the first, and its weight; as text, ``file.py:name:0.5``.

    Raises `InputError` if there is no weight.
    """
    try:
        target, weight = given.rsplit(":", 1) if isinstance(given, str) else given
        number = float(weight)
    except (TypeError, ValueError):
        msg = f"`added` (--with) must be a target and its weight, such as file.py:name:0.5, got {shown(given)}"
        raise InputError(msg) from None
    if not math.isfinite(number) or number == 0:
        msg = f"`added` (--with) must have a weight that is finite and not 0, got {shown(weight)}"
        raise InputError(msg)
    return target if isinstance(target, str) else importable(target), number


def _integers(name: str, given: Any, example: str, least: int = 1) -> tuple[int, ...]:
    listed = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
    try:
        return tuple(integer(name, int(x) if isinstance(x, str) else x, least=least, most=MOST) for x in listed)
    except (TypeError, ValueError, InputError):
        msg = f"`{name}` must be integers from {least} to {MOST}, such as {example}, got {shown(given)}"
        raise InputError(msg) from None


def importable(thing: Any) -> str:
    """The text by which other processes import a function or a class.

    It is ``package.module:name``, or ``file.py:name`` where the main program defines it. Raises `InputError` if there
    is no such text: for an object local to a function, a lambda, an instance.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        if module == "__main__" and name and file:
            if _named(sys.modules["__main__"], name) is thing:
                return f"{Path(file).resolve()}:{name}"
        elif module and name and _named(importlib.import_module(module), name) is thing:
            source = inspect.getsourcefile(thing)
            top = module.partition(".")[0]
            # A file that is no package is named by its path: the other processes have another folder.
            return f"{Path(source).resolve()}:{name}" if source and top == module else f"{module}:{name}"
    except (ImportError, AttributeError, TypeError):
        pass
    what = name if isinstance(name, str) else shown(thing)
    msg = f"`ranks` needs a target that other processes can import, which {what} is not; define it in a file, and give"
    raise InputError(msg + " the function itself, or file.py:name")


def _named(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module
