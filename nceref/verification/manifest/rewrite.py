"""The numbers of checks in a manifest, written anew: everything else in the file stays as it is."""

import codecs
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from nceref.errors import InputError
from nceref.output import files
from nceref.output.text import printable
from nceref.verification.manifest.counts import Counts
from nceref.verification.manifest.read import Manifest, prefix_of
from nceref.verification.manifest.toml_lines import Path, TomlLines

KEY = "checks"
"""Of a target: the numbers of its checks."""


def with_checks(manifest: Manifest, counts: Mapping[str, Counts], option: str) -> bytes:
    """The content of the file of a manifest, as this was read from it, with other numbers of checks.

    `counts` has them by kind for names of targets; those of other targets stay. `option`: by which the caller was told
    to, for errors. Raises `InputError` for a file that is another one by now, and for a table whose numbers are written
    in a way that is not rewritten.
    """
    content = files.read(manifest.path, option)
    text = content.decode("utf-8-sig")
    if text.replace("\r\n", "\n") != manifest.text:
        msg = f"{printable(manifest.path)} was changed while its targets ran: {option} writes nothing; run it again"
        raise InputError(msg)
    for number, entry in enumerate(manifest.targets):
        if entry.name in counts:
            path: Path = (*prefix_of(manifest.path), "target", number)
            changed = _with_value(text, path, inline_table(counts[entry.name]))
            if not _is_only_change(text, changed, path, counts[entry.name]):
                form = f"{KEY} = {inline_table(counts[entry.name])}"
                msg = f"{entry.place(KEY)}: {option} writes `{KEY}` as a line below [[target]]; write {form} yourself"
                raise InputError(msg)
            text = changed
    return codecs.BOM_UTF8 * content.startswith(codecs.BOM_UTF8) + text.encode()


def without_checks(manifest: Manifest, names: Collection[str]) -> Manifest:
    """The manifest with targets of these names that may have any number of checks."""
    targets = tuple(
        replace(e, table={k: x for k, x in e.table.items() if k != KEY}) if e.name in names else e
        for e in manifest.targets
    )
    return replace(manifest, targets=targets)


def inline_table(counts: Counts) -> str:
    """The numbers as TOML: ``{values = 28, gradients = 84}``."""
    return "{" + ", ".join(f"{kind} = {number}" for kind, number in counts.items()) + "}"


def _with_value(text: str, path: Path, value: str) -> str:
    """The text with another value of the key in a table, or with the key at its end."""
    lines = TomlLines(text)
    if span := lines.span(*path, KEY):
        return text[: span.start] + value + text[span.stop :]
    last = lines.last(*path).stop
    if lines.span(*path):
        return f"{text[:last]}, {KEY} = {value}{text[last:]}"
    # A comment may follow in the same line.
    end = text.find("\n", last)
    end = len(text) if end < 0 else end
    end -= text[:end].endswith("\r")
    line_break = "\r\n" if "\r\n" in text else "\n"
    return f"{text[:end]}{line_break}{KEY} = {value}{text[end:]}"


def _is_only_change(old: str, new: str, path: Path, counts: Counts) -> bool:
    """Whether two texts differ in nothing but that the table at a path has these numbers."""
    try:
        contents = tomllib.loads(old), tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        return False
    before, after = ([content, _at(content, path).pop(KEY, None)] for content in contents)
    # As text: NaN is no number that equals itself.
    return repr(before[0]) == repr(after[0]) and after[1] == dict(counts)


def _at(content: Any, path: Path) -> Any:
    for key in path:
        content = content[key]
    return content
