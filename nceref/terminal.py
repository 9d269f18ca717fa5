"""What the command line asks of the terminal: its width, its colors, and a bar that shows progress."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def screen() -> dict[str, Any]:
    """Width and colors for the layout of pages: those of the terminal; of a file or pipe, always the default."""
    if not sys.stdout.isatty():
        return {}
    return {"width": shutil.get_terminal_size().columns, "color": "NO_COLOR" not in os.environ}


@contextmanager
def progress(total: int) -> Iterator[Callable[[Any], Any]]:
    """A function that hands each result on and counts it in a bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda result: result
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=total)

        def noted(result: Any) -> Any:
            bar.update(task, advance=1, description=result.loss)
            return result

        yield noted
