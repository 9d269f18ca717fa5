"""A command line as the name of a target: ``cmd:"./impl --serve"``."""

import shlex
from collections.abc import Mapping
from typing import Any

from nceref.errors import InputError
from nceref.output.text import shown

PREFIX = "cmd:"
FRAMEWORK = "command"
"""The word for an executable where other targets have the name of their framework."""
_REFUSED = {
    "call": "every input is handed over by its name",
    "param": "every input is handed over by its name",
    "init": 'a program takes arguments, as in cmd:"./impl --serve"',
    "framework": "a program has none that matters",
    "modes": "they are ways of calling PyTorch",
    "isolate": "it prepares a process of Python; isolate the program itself, in its own command line",
    "device": "a program computes where its own arguments say",
}


def is_command(thing: Any) -> bool:
    """Whether a target, as the user names it, is an executable: text that begins with ``cmd:``."""
    return issubclass(type(thing), str) and thing.startswith(PREFIX)


def words_of(text: str) -> list[str]:
    """The program and its arguments, as a shell splits them; nothing is expanded.

    Raises `InputError` if there is no program, a quotation has no end, or the text has a null character.
    """
    command = text.removeprefix(PREFIX)
    try:
        words = shlex.split(command)
    except ValueError as error:
        msg = f"TARGET cmd: must be a command line, got {shown(command)}: {error}"
        raise InputError(msg) from error
    if not words or not words[0]:
        msg = 'TARGET cmd: must name a program and its arguments, such as cmd:"./impl --serve"'
        raise InputError(msg)
    if "\0" in command:
        msg = f"TARGET cmd: must be a command line, got {shown(command)}, with a null character"
        raise InputError(msg)
    return words


def refuse_options(options: Mapping[str, Any]) -> None:
    """Raise an `InputError` for an option of `verify` that does not apply to an executable.

    Empty values and the device ``cpu``, the default, count as not given.
    """
    for name, value in options.items():
        if value and (name, value) != ("device", "cpu") and name in _REFUSED:
            msg = f"`{name}` is not for a target cmd:, {_REFUSED[name]}; leave it out"
            raise InputError(msg)
