"""What is checked: a loss of somebody's, with the arguments of `nceref.verify` and a short name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nceref.errors import InputError
from nceref.output.text import shown

_LONGEST = 60


@dataclass(frozen=True)
class Target:
    """A loss to be checked, with the arguments of `nceref.verify`.

    It is verified once in a session, whatever the number of its checks.

    Parameters
    ----------
    function : callable or str
        The target.
    loss : str
        Name of the reference; empty for a known target, which brings its own.
    name : str
        For the ids of the tests; default: the name of the function or class.
    options : mapping
        Further arguments of `nceref.verify`.
    """

    function: Any
    loss: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words: dict[str, Any] = {"loss": self.loss, "name": self.name}
        for name, value in words.items():
            if not isinstance(value, str):
                msg = f"`{name}` of a Target must be text, got {shown(value)}"
                raise InputError(msg)
        check_mapping("options", self.options)

    def __str__(self) -> str:
        return " ".join((self.name or _short(self.function)).split())[:_LONGEST]


def _short(thing: Any) -> str:
    """The name of a function, or of the class of an object, without the file or the package that it is in."""
    if isinstance(thing, str):
        file, _, name = thing.rpartition(":")
        # What follows the colon of a command is a program with its path.
        return name.rpartition("/")[2] if file else name
    if isinstance(thing, partial):
        return _short(thing.func)
    return str(getattr(thing, "__name__", None) or type(thing).__name__)


def unique_names(targets: Iterable[Target]) -> dict[str, Target]:
    """The targets by name; of several with one name, those after the first get a number.

    Result: in the same order.
    """
    given = tuple(targets)
    taken, out = {str(target) for target in given}, dict[str, Target]()
    for target in given:
        name, number = str(target), 2
        while name in out or (number > 2 and name in taken):
            name, number = f"{target}-{number}", number + 1
        out[name] = target
    return out


def former_name(target: Target) -> str:
    """The name that ids began with before names were short."""
    return target.name or str(getattr(target.function, "__name__", target.function))


def check_mapping(name: str, given: Any) -> None:
    """Raise `InputError` unless an argument maps names to values.

    `name`: of the argument.
    """
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        msg = f"`{name}` must map names to values, got {shown(given)}"
        raise InputError(msg)
