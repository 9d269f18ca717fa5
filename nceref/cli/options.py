"""Words of the command line as Python values, and options that do not go together."""

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from nceref.cli.common import C, file_name
from nceref.verification.options import OPTIONS, Option


def pairs(option: str, given: Iterable[str]) -> dict[str, Any]:
    """The values of ``K=V`` options by name.

    Texts such as ``temperature=0.1`` give numbers, truth values, None, `Ellipsis` for ``given`` (an array of the case),
    else words. Raises `click.UsageError` for a text without a name and ``=``, and for a name that is given twice.
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


def options_of_verify(*names: str) -> Callable[[C], C]:
    """The declared options of a verification, as options of a command: those of these names, or all."""
    return partial(_with_options, [one for one in OPTIONS if one.group and (not names or one.name in names)])


def _with_options(options: list[Option], command: C) -> C:
    for option in reversed(options):
        given = {
            "metavar": option.metavar or None,
            "default": option.default,
            "show_default": option.default is not None,
        }
        more: dict[str, Any] = {**given, **_type(option)}
        command = click.option(option.flag, option.name, help=option.help, **more)(command)
    return command


def _type(option: Option) -> dict[str, Any]:
    """The type of an option of the command, as `click.option` takes it."""
    kinds: dict[str, dict[str, Any]] = {
        "flag": {"is_flag": True, "default": None},
        "integer": {"type": int},
        "number": {"type": float},
        "inputs": {"type": file_name},
        "failures": {"type": file_name},
        "values": {"multiple": True},
        "texts": {"multiple": True},
        "formats": {"multiple": True},
    }
    choices = {"type": click.Choice(option.choices)} if option.choices else {}
    return {**kinds.get(option.kind, {}), **choices}


def values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of `nceref.verify` for the words of the declared options; those that were not given are left out."""
    read = {option.name: _given(option, given[option.name]) for option in OPTIONS if option.name in given}
    return {name: value for name, value in read.items() if value is not None}


def _given(option: Option, words: Any) -> Any:
    if words in (None, ()):
        return None
    match option.kind:
        case "values":
            return pairs(option.flag, words)
        case "failures":
            from nceref.cases.expected_failures import expected_failures_in

            return expected_failures_in(words, option.flag)
        case "texts" | "formats":
            return list(words)
    return words
