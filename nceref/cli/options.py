"""Words of the command line as Python values, and options that do not go together."""

import ast
from collections.abc import Iterable
from typing import Any

import click
from click.core import ParameterSource


def pairs(option: str, given: Iterable[str]) -> dict[str, Any]:
    """The values of ``K=V`` options by name.

    Parameters
    ----------
    option : str
        Its name, for messages.
    given : iterable of str
        What was passed, such as ``temperature=0.1``.

    Returns
    -------
    dict
        Numbers, truth values, None, `Ellipsis` for ``given`` (an array of the case), else words.

    Raises
    ------
    click.UsageError
        For a text without a name and ``=``, and for a name that is given twice.
    """
    out: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier():
            msg = f"{option} needs NAME=VALUE, got {text!r}"
            raise click.UsageError(msg)
        if name in out:
            msg = f"{option} {name} is given twice"
            raise click.UsageError(msg)
        out[name] = _value(value)
    return out


def _value(text: str) -> Any:
    # As written in a shell; Python's own True and None are literals.
    words = {"given": ..., "true": True, "false": False}
    if text in words:
        return words[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def refuse_but(context: click.Context, taken: set[str], why: str) -> None:
    """Refuse options that would be ignored in silence; defaults do not count."""
    for option in context.command.params:
        name = option.name or ""
        if name not in taken and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            msg = f"{option.opts[0]} {why}; or leave out {option.opts[0]}"
            raise click.UsageError(msg)
