"""The terminal: its width, its colors, and a bar that shows progress."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def screen() -> dict[str, Any]:
    """Width and colors for the layout of pages.

    Those of the terminal; a file or pipe has no colors, and the width in COLUMNS, if that is set.

    Returns
    -------
    dict
        ``width`` and ``color``, arguments of `Page.text`; what is left out has its default there.
    """
    columns = os.environ.get("COLUMNS", "")
    if _is_terminal(sys.stdout):
        return {"width": shutil.get_terminal_size().columns, "color": "NO_COLOR" not in os.environ}
    return {"width": int(columns)} if columns.isdecimal() and int(columns) > 0 else {}


@contextmanager
def progress(total: int | None) -> Iterator[Callable[..., Any]]:
    """A function that hands each result on and counts it in a bar on standard error, if that is a terminal.

    Where `total` is not known before, it is passed with a result, as ``total=``.
    """
    if not _is_terminal(sys.stderr):
        yield lambda result, total=None: result
        return
    from rich.console import Console
    from rich.progress import Progress

    # The bar disappears at its end, and what is printed meanwhile goes above it.
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=_is_terminal(sys.stdout)) as bar:
        task = bar.add_task("", total=total)

        def on_progress(result: Any, total: int | None = total) -> Any:
            # A result of a check has the name of its loss; others have an id.
            name = getattr(result, "loss", None)
            bar.update(task, advance=1, total=total, description=name if isinstance(name, str) else result.id)
            return result

        yield on_progress


def _is_terminal(stream: Any) -> bool:
    """Whether there is such a stream at all (``nceref losses >&-`` closes it) and it is a terminal."""
    return stream is not None and stream.isatty()
