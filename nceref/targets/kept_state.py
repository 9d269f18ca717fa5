"""State that a target keeps between two calls: which attributes of its object, or which names around a function."""

from collections import deque
from collections.abc import Callable
from inspect import isfunction, ismethod
from types import ModuleType
from typing import Any

from nceref.output.text import printable
from nceref.output.words import as_code
from nceref.targets.frameworks.call import ARRAY, content
from nceref.targets.frameworks.frameworks import FRAMEWORKS
from nceref.targets.own_parameters import holder_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, dict, set, tuple, deque)
_NAMED = 5
_LARGE = 1 << 24
"""Bytes of an array that is not copied to be compared."""


class KeptObjects:
    """Objects that several calls go to, each made once, and what the calls have changed in them."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[Any, dict[str, Any]]] = {}

    def the(self, key: int, make: Callable[[], Any]) -> Any:
        """The object of a key, made where there is none yet."""
        if key not in self._objects:
            thing = make()
            self._objects[key] = thing, _state_of(thing)
        return self._objects[key][0]

    def changed(self) -> str:
        """Names of what is another than when the objects were made, as a sentence has them; empty for none."""
        states = [(before, _state_of(thing)) for thing, before in self._objects.values()]
        names = [name for before, after in states for name, x in after.items() if before.get(name) != x]
        return ", ".join(as_code(printable(name, 40)) for name in names[:_NAMED]) + ", ..." * (len(names) > _NAMED)


def _state_of(thing: Any) -> dict[str, Any]:
    try:
        return {name: _seen(x) for name, x in _around(thing).items()}
    # Attributes of somebody else's object may be code.
    except Exception:
        return {}


def _around(thing: Any) -> dict[str, Any]:
    """Attributes of an object; of a function its closure and the global names that it uses."""
    if ismethod(thing):
        return _around(thing.__self__)
    if not isfunction(thing):
        parts = {**dict(thing.named_buffers()), **dict(thing.named_parameters())} if holder_of(thing) else {}
        return {**{n: x for n, x in vars(thing).items() if not (parts and n.startswith("_"))}, **parts}
    used = {name: thing.__globals__.get(name) for name in thing.__code__.co_names}
    closed = dict(zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True))
    around = {**used, **vars(thing), **{name: cell.cell_contents for name, cell in closed.items()}}
    return {name: x for name, x in around.items() if not isinstance(x, ModuleType | Callable)}


def _seen(x: Any) -> Any:
    """A fingerprint of an object: numbers and arrays by content, containers by length, others by identity."""
    kind = type(x)
    if getattr(x, "nbytes", 0) > _LARGE:
        return id(x)
    if issubclass(kind, ARRAY):
        return content(x)
    if kind in _PLAIN:
        return kind, repr(x)
    if kind in _CONTAINERS:
        return id(x), len(x)
    names = {f"{base.__module__}.{base.__name__}" for base in kind.__mro__}
    read = next((each.content for each in FRAMEWORKS.values() if each.array in names), None)
    return id(x) if read is None else read(x)
