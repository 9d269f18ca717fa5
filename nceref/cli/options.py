"""Words of the command line as Python values, and options that do not go together."""

import ast
from collections.abc import Iterable
from typing import Any

import click
from click.core import ParameterSource

from nceref.output import files
from nceref.output.json_text import json_object


def pairs(option: str, given: Iterable[str]) -> dict[str, Any]:
    """The values of ``K=V`` options by name.

    `option`: its name, for messages. `given`: what was passed, such as ``temperature=0.1``. Result: numbers, truth
    values, None, `Ellipsis` for ``given`` (an array of the case), else words. Raises `click.UsageError` for a text
    without a name and ``=``, and for a name that is given twice.
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


def failures(path: str) -> dict[str, str]:
    """Expected failures by id: a JSON object of reasons, or lines of an id and its reason; ``#`` begins a comment."""
    text = files.read_text(path, "--expected-failures")
    if text.lstrip().startswith(("{", "[")):
        lines = list(json_object(path, text).items())
    else:
        kept = (line.split("#", 1)[0].strip().partition(" ") for line in text.splitlines())
        lines = [(name, reason) for name, _, reason in kept if name]
    for name, reason in lines:
        if not (isinstance(reason, str) and reason.strip()):
            msg = f"{path}: {name!r} has no reason; write the id, a space and why it fails"
            raise click.UsageError(msg)
    # A line may be "id: reason" as well.
    return {name.removesuffix(":"): reason.strip() for name, reason in lines}


def refuse_but(context: click.Context, taken: set[str], why: str) -> None:
    """Refuse options that would be ignored in silence; defaults do not count."""
    for option in context.command.params:
        name = option.name or ""
        if name not in taken and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            msg = f"{option.opts[0]} {why}; or leave out {option.opts[0]}"
            raise click.UsageError(msg)
