"""Pages of text: what a layout is printed on, and columns that turn into lines where a page is too narrow for them."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
NARROWEST = 40
"""A narrower terminal breaks the lines of this width by itself, so that nothing is lost."""
GAP = 2

_READABLE = 24  # four words

Styles = Sequence[str] | Mapping[str, str]
"""One for each column, or by entry."""


def page(width: int, color: bool) -> tuple["Console", io.StringIO]:
    """A console that prints text as it stands, and the paper that it prints on."""
    from rich.console import Console

    paper, system = io.StringIO(), "standard" if color else None
    plain: Any = dict.fromkeys(("markup", "highlight", "emoji"), False)
    options: Any = {"color_system": system, "force_terminal": color, **plain}
    return Console(file=paper, width=max(width, NARROWEST), **options), paper


def grid(page: "Console", lines: Any, *widths: int, styles: Styles = (), indent: int = 0) -> None:
    """Columns of the given widths and a last one that takes the rest and is wrapped.

    Where the rest is too narrow to read, each entry gets a line of its own, further in than the one before.
    """
    lines = list(lines)
    room = page.width - indent - sum(width + GAP for width in widths if width)
    if any(widths) and room < min(_READABLE, max((len(line[-1]) for line in lines), default=0)):
        stack(page, lines, styles=styles, indent=indent)
        return
    columns = [{"width": width} for width in widths]
    cells(page, lines, [*columns, {"ratio": 1}], styles=styles, indent=indent, expand=True)


def stack(page: "Console", lines: Any, *, styles: Styles = (), indent: int = 0) -> None:
    """Each entry that is not empty on a line of its own, further in than the one before."""
    for line in lines:
        for depth, (entry, style) in enumerate(_styled(line, styles)):
            if entry:
                cells(page, [(entry,)], [{"ratio": 1}], styles=(style,), indent=indent + GAP * depth, expand=True)


def cells(
    page: "Console",
    lines: Iterable[Sequence[str]],
    columns: Iterable[dict[str, Any]],
    *,
    styles: Styles = (),
    indent: int = 0,
    expand: bool = False,
) -> None:
    """Columns with the given options; an entry that is too long is folded, never cut."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, GAP, 0, 0), expand=expand)
    for column in columns:
        table.add_column(**{"overflow": "fold", **column})
    for line in lines:
        table.add_row(*(Text(entry, style=style) for entry, style in _styled(line, styles)))
    page.print(Padding(table, (0, 0, 0, indent)))


def _styled(line: Sequence[str], styles: Styles) -> Iterable[tuple[str, str]]:
    if isinstance(styles, Mapping):
        return ((entry, styles.get(entry, "")) for entry in line)
    return zip(line, styles or [""] * len(line), strict=True)


def clean(paper: io.StringIO) -> str:
    """What is on the paper, without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in paper.getvalue().splitlines())


def spoken(name: str) -> str:
    """An identifier as words: ``row_shift_invariant`` as ``row shift invariant``."""
    return name.replace("_", " ")
