"""Where in a TOML text each table, key and value stands; the parser of the standard library does not say."""

import re
import tomllib
from typing import Any

Path = tuple[str | int, ...]
_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_TEXT = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_VALUE = re.compile(r"[^,\]}\n#]+")


class TomlLines:
    r"""The lines of a text that is TOML.

    >>> lines = TomlLines('[[target]]\nname = "a"\nset = {\n  temperature = 0.1}')
    >>> lines.of("target", 0), lines.of("target", 0, "set", "temperature"), lines.of("target", 0, "loss")
    (1, 4, 1)
    """

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._lines: dict[Path, int] = {}
        self._lengths: dict[Path, int] = {}
        self._spans: dict[Path, slice] = {}
        table: Path = ()
        while self._skip() < len(text):
            if text[self._at] == "[":
                table = self._header()
            else:
                self._entry(table)

    def of(self, *path: str | int) -> int:
        """The line of a key or table; of one that is not there, that of the table it would be in.

        `*path`: keys, and places in arrays. Result: from 1 on.
        """
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def span(self, *path: str | int) -> slice | None:
        """The value of a key in the text; None for a table under a header or with keys that have dots."""
        return self._spans.get(path)

    def last(self, *path: str | int) -> slice:
        """The last value that stands in a table itself, which must have one."""
        return max((x for at, x in self._spans.items() if at[:-1] == path), key=lambda x: x.start)

    def _skip(self, letters: str = "") -> int:
        """Go beyond white space and comments, and then such letters."""
        while self._match(_SPACE) or (letters and self._text[self._at : self._at + 1] in set(letters)):
            if self._text[self._at : self._at + 1] in set(letters):
                self._at += 1
        return self._at

    def _match(self, pattern: "re.Pattern[str]") -> str:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match[0] if match else ""

    def _note(self, path: Path) -> None:
        self._lines.setdefault(path, self._text.count("\n", 0, self._at) + 1)

    def _keys(self) -> list[str]:
        """A key with dots, up to what follows it."""
        keys = []
        while True:
            self._skip()
            text = self._match(_TEXT)
            keys.append(_unquoted(text) if text else self._match(_WORD))
            self._skip()
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _header(self) -> Path:
        start, is_array = self._at, self._text.startswith("[[", self._at)
        self._at += 1 + is_array
        *outer, last = self._keys()
        self._at += 1 + is_array
        end, self._at = self._at, start
        path: Path = ()
        for key in outer:
            path = (*path, key)
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
        path = (*path, last)
        if is_array:
            self._note(path)
            self._lengths[path] = self._lengths.get(path, 0) + 1
            path = (*path, self._lengths[path] - 1)
        self._note(path)
        self._at = end
        return path

    def _entry(self, table: Path) -> None:
        start = self._at
        keys = self._keys()
        end, self._at = self._at, start
        path = table
        for key in keys:
            path = (*path, key)
            self._note(path)
        self._at = end + 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip()
        self._note(path)
        start = self._at
        self._go_beyond_value(path)
        self._spans[path] = slice(start, start + len(self._text[start : self._at].rstrip()))

    def _go_beyond_value(self, path: Path) -> None:
        if self._match(_TEXT):
            return
        opening = self._text[self._at]
        if opening not in "[{":
            self._match(_VALUE)
            return
        self._at += 1
        place = 0
        while self._text[self._skip(",")] not in "]}":
            if opening == "{":
                self._entry(path)
            else:
                self._value((*path, place))
                place += 1
        self._at += 1


def _unquoted(text: str) -> str:
    value: Any = tomllib.loads(f"key = {text}")["key"]
    return str(value)
