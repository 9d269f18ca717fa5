"""The terminal: its width, its colors, and a bar that shows progress."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nceref.output.pages import fitting
from nceref.output.system import threads_available
from nceref.output.text import printable


def screen() -> dict[str, Any]:
    """Width and colors for the layout of pages.

    Those of the terminal; a file or pipe has no colors, and the width in COLUMNS, if that is a number.

    Returns
    -------
    dict
        ``width`` and ``color``, arguments of `Page.text`; what is left out has its default there.
    """
    width = _columns()
    if _is_terminal(sys.stdout):
        # An empty NO_COLOR counts as none: https://no-color.org.
        return {"width": width or _size().columns, "color": not os.environ.get("NO_COLOR") and not _is_dumb()}
    return {"width": width} if width else {}


@contextmanager
def progress(total: int | None) -> Iterator[Callable[..., Any]]:
    """A function that hands each result on and counts it in a bar on standard error, if that is a terminal.

    Where `total` is not known before, it is passed with a result, as ``total=``.
    """
    # The bar has a thread of its own.
    if not _is_terminal(sys.stderr) or _is_dumb() or not threads_available():
        yield lambda result, total=None: result
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    # Width and height are given: Rich would read them from the environment, and an odd word there ends it.
    console = Console(stderr=True, width=fitting(_columns() or _size().columns), height=_size().lines)
    # The bar disappears at its end, and what is printed meanwhile goes above it.
    with Progress(console=console, transient=True, redirect_stdout=_is_terminal(sys.stdout)) as bar:
        task = bar.add_task("", total=total)

        def on_progress(result: Any, total: int | None = total) -> Any:
            # A result of a check has the name of its loss; others have an id.
            name = getattr(result, "loss", None)
            shown = printable(name if isinstance(name, str) else result.id, _LABEL)
            bar.update(task, advance=1, total=total, description=escape(shown))
            return result

        yield on_progress


def note(text: str) -> None:
    """Print a line on standard error for who waits at a terminal; nothing where that is none."""
    if _is_terminal(sys.stderr):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


_LABEL = 40
"""Characters beside the bar."""


def _columns() -> int | None:
    """COLUMNS, if it is a number such as people write; `Page.text` has a floor and a ceiling for it."""
    text = os.environ.get("COLUMNS", "")
    # Of many digits, Python makes no integer; other decimal digits than ours are a slip.
    return int(text) or None if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _size() -> os.terminal_size:
    """That of the terminal itself."""
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
