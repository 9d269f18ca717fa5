"""Settings and functions of this process that a target may change: they are put back after its call, or its run.

This guards against accidents, such as a loss that calls ``np.seterr``, and not against malice.
"""

import builtins
import contextlib
import gc
import json
import locale
import math
import operator
import os
import random
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import repeat
from types import FunctionType
from typing import Any

import numpy as np

ORDINARY: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn", "call": None}
"""NumPy's own reaction to floating-point errors, whatever the caller or the target has set."""
_MODULES = (builtins, sys, os, math, json, struct, threading, np, np.linalg)
"""Modules whose names are put back, the built-in ones first: all else needs them."""
_ALL, _MAP, _IS, _REPEAT = all, map, operator.is_, repeat
"""Functions that are kept under names that a target does not replace."""
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGPIPE") if hasattr(signal, name)
)


class KeptState:
    """A context in which a target may change the process; afterwards what was there before is there again.

    What is new stays: a module that was imported may rely on its entry in a table.

    Attributes
    ----------
    replaced : list of str
        Functions of NumPy that were replaced within, known at the end.
    """

    def __enter__(self) -> "KeptState":
        self.replaced: list[str] = []
        self._namespaces = [(module.__name__, vars(module), dict(vars(module))) for module in _MODULES]
        self._settings = [(get, put, get()) for get, put in _OF_A_CALL]
        self._errors = np.errstate(**ORDINARY)
        self._errors.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        # Nothing built in is called before all of that is there again.
        for module, now, before in self._namespaces:
            if _ALL(_MAP(_IS, before.values(), _MAP(now.get, before, _REPEAT(before)))):
                continue
            for name, thing in before.items():
                if name not in now or now[name] is not thing:
                    now[name] = thing
                    if module == "numpy" or module == "numpy.linalg":
                        self.replaced.append(f"{module}.{name}")
        self._errors.__exit__(*error)
        for get, put, before in self._settings:
            # A folder may have been removed, a language may not be installed.
            with contextlib.suppress(OSError, ValueError, locale.Error):
                if get() != before:
                    put(before)


@contextlib.contextmanager
def kept_surroundings() -> Iterator[None]:
    """A context for running a target; afterwards random numbers, signals and environment are those of the caller."""
    settings = [(put, get()) for get, put in _OF_A_RUN]
    try:
        yield
    finally:
        for put, before in settings:
            put(before)


def replaced_functions() -> list[str]:
    """Names of functions of NumPy that are not its own: something that was imported has replaced them."""
    return [
        f"{module.__name__}.{name}"
        for module in (np, np.linalg)
        for name, thing in vars(module).items()
        if callable(thing) and not name.startswith("_") and not _of_numpy(thing)
    ]


def _of_numpy(thing: Any) -> bool:
    # A wrapper copies the name of the module, but not where it was compiled.
    home = thing.__globals__["__name__"] if isinstance(thing, FunctionType) else getattr(thing, "__module__", "numpy")
    return str(home).split(".")[0] in ("numpy", "contextlib", "None")


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - of a removed folder, a path has no name either
    except OSError:
        return ""


def _refill(table: Any) -> Callable[[Any], None]:
    """Puts entries that are missing back into a list or dictionary, and keeps those that are new."""

    def put(before: Any) -> None:
        if isinstance(table, list):
            table[:] = [*before, *(entry for entry in table if entry not in before)]
        else:
            table.update(before)

    return put


def _handlers() -> dict[int, Any]:
    # Only the main thread may set them; None stands for one that is not Python's.
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: handler for number in _SIGNALS if (handler := signal.getsignal(number)) is not None}


def _put_handlers(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _timer() -> bool:
    return hasattr(signal, "getitimer") and signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _stop_timer(before: bool) -> None:
    if not before:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _put_environment(before: dict[str, str]) -> None:
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


def _language() -> str:
    return locale.setlocale(locale.LC_ALL)


_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]
_OF_A_CALL: tuple[_Setting, ...] = (
    (_timer, _stop_timer),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.gettrace, sys.settrace),
    (sys.getprofile, sys.setprofile),
    (gc.isenabled, lambda before: gc.enable() if before else gc.disable()),
    *((table.copy, _refill(table)) for table in (sys.path, sys.meta_path, sys.path_hooks)),
    (_folder, os.chdir),
    (_language, lambda before: locale.setlocale(locale.LC_ALL, before)),
    (np.get_printoptions, lambda before: np.set_printoptions(**before)),
)
"""Pairs of functions: the first reads a setting of the process, the second restores it."""
_OF_A_RUN: tuple[_Setting, ...] = (
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (_handlers, _put_handlers),
    (os.environ.copy, _put_environment),
    (sys.modules.copy, _refill(sys.modules)),
)
