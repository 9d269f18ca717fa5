"""The terminal: its width, its colors, and a line that shows progress."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nceref.output.layout import fitting
from nceref.output.text import printable


def screen() -> dict[str, Any]:
    """Width and colors for the layout of pages.

    Those of the terminal; a file or pipe has no colors, and the width in COLUMNS, if that is a number.

    They are arguments of `Page.text`, ``width`` and ``color``; one that is left out has its default there.
    """
    width = _columns()
    if _is_terminal(sys.stdout):
        # An empty NO_COLOR counts as none: https://no-color.org.
        return {"width": width or _size().columns, "color": not os.environ.get("NO_COLOR") and not _is_dumb()}
    return {"width": width} if width else {}


@contextmanager
def progress(phase: str, total: int | None = None) -> Iterator[Callable[..., Any]]:
    """A function that hands each result on and counts it in a line on standard error, if that is a terminal.

    The line names the phase, and is erased as the last result comes: what follows may take long. Where `total` is not
    known before, it is passed with a result, as ``total=``.
    """
    if not _shows_progress():
        yield lambda result, total=None: result
        return
    width = fitting(_columns() or _size().columns)
    done = itertools.count(1)

    def on_progress(result: Any, total: int | None = total) -> Any:
        # A result of a check has the name of its loss; others have an id.
        name = getattr(result, "loss", None)
        count = next(done)
        of = f" of {total}" if total else ""
        line = f"{phase}: {count}{of}, {printable(name if isinstance(name, str) else result.id, _LABEL)}"
        overwrite("" if count == total else line[: width - 1])
        return result

    overwrite(phase)
    try:
        yield on_progress
    finally:
        overwrite("")


def overwrite(line: str) -> None:
    """Put a line in the place of the last one on standard error; nothing where that is no terminal."""
    if _shows_progress():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


def _shows_progress() -> bool:
    return _is_terminal(sys.stderr) and not _is_dumb()


def note(text: str) -> None:
    """Print a line on standard error for who waits at a terminal; nothing where that is none."""
    if _is_terminal(sys.stderr):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


_LABEL = 40
"""Characters of a name in the line of progress."""


def _columns() -> int | None:
    """The number in COLUMNS, if it is one such as people write; `Page.text` has a floor and a ceiling for it."""
    text = os.environ.get("COLUMNS", "")
    # Of many digits, Python makes no integer; other decimal digits than ours are a slip.
    return int(text) or None if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _size() -> os.terminal_size:
    """The size of the terminal itself."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            size = os.get_terminal_size(stream.fileno())  # type: ignore[union-attr]
        except (AttributeError, ValueError, OSError):
            continue
        # A pseudo-terminal may have no size.
        if size.columns and size.lines:
            return size
    return os.terminal_size((80, 24))


def _is_terminal(stream: Any) -> bool:
    """Whether there is such a stream at all (``nceref losses >&-`` closes it) and it is a terminal."""
    try:
        return stream is not None and stream.isatty()
    # Somebody has closed the object.
    except ValueError:
        return False


def _is_dumb() -> bool:
    """Whether the terminal understands no escape sequences."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")
