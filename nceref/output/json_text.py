"""JSON as every file and command has it: printable text out, and objects in, with errors that name the file."""

import json
import os
from typing import Any

from nceref.errors import FileError
from nceref.output.text import COMMAND, harmless

_DELETE = "\x7f"


def json_text(content: Any, indent: int | None = 2) -> str:
    """Plain data as JSON that ends in a newline; without an indent all on one line.

    Raises `ValueError` for a number that is infinite or NaN, which JSON does not have.
    """
    text = json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
    # Not printable within text: what would change a terminal, and lone surrogates, which no file holds.
    if not text.isascii() or _DELETE in text:
        text = "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)
    # Of commands, those that need not begin a line.
    return (COMMAND.sub(r"#\\u0023", text) if "##" in text else text) + "\n"


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1] if character != _DELETE else "\\u007f"


def json_object(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    """The object that a JSON text holds.

    Messages name the path that the text was read from. Raises `FileError` if the text is not JSON, holds something
    else, or names an entry twice.
    """
    try:
        # Nested too deeply, a text ends in a RecursionError; a number too long, in a ValueError.
        content = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        msg = f"{harmless(os.fspath(path))} is not JSON: {error}"
        raise FileError(msg) from None
    if not isinstance(content, dict):
        msg = f"{harmless(os.fspath(path))} must hold a JSON object, got a {type(content).__name__}"
        raise FileError(msg)
    return content


def _no_number(name: str) -> float:
    msg = f'{name} is no number of JSON; write the string "{name}"'
    raise ValueError(msg)


def _unique(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(entries)
    if len(content) < len(entries):
        msg = "an object has two entries of the same name"
        raise ValueError(msg)
    return content
