"""A table as text, Markdown, CSV or JSON, and files that are either whole or not there."""

import csv
import io
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nceref.errors import InputError
from nceref.spec import Cell, Table
from nceref.verdicts import Verdict, verdict

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, Any]
Rows = Sequence[Row]
Show = Callable[[Any], str]

WIDTH = 80

_GAP = 2
_DIGITS = (12, 9, 6)
_PARTS = ("published", "computed", "verdict")

# Here the computed number would repeat the published one, or there is none: a sign beside the text says it all.
_SIGNS = {Verdict.AGREES: "=", Verdict.NOT_REPRODUCIBLE: "°"}

_COLORS: dict[str, str] = dict.fromkeys((Verdict.AGREES, Verdict.PRINTED_DIGITS), "green")
_COLORS |= {Verdict.TRUNCATED: "yellow", Verdict.FLOAT32_ARTIFACT: "yellow", Verdict.WRONG: "red"}


def render(table: Table, format: str = "text") -> str:
    """Write one table out as a string that ends in a newline; its rows are computed now.

    Parameters
    ----------
    table : Table
    format : {"text", "markdown", "csv", "json"}
        Text has the width and the colors of the terminal; it is plain and 80 columns wide when there is none.
        The others carry every digit of the computed numbers. Any other word raises `InputError`.
    """
    writer, _ = _format(format)
    if writer is text and sys.stdout.isatty():
        return text(table, width=shutil.get_terminal_size().columns, color="NO_COLOR" not in os.environ)
    return writer(table)


def save(tables: Iterable[Table], format: str, folder: str | os.PathLike[str]) -> list[Path]:
    """Write each table to a file of its own, named after the table; text is plain and 80 columns wide.

    Parameters
    ----------
    tables : iterable of Table
    format : {"text", "markdown", "csv", "json"}
        Any other raises `InputError`.
    folder : path
        Created if it does not exist.

    Returns
    -------
    list of Path
        In the order of the tables.
    """
    writer, suffix = _format(format)
    paths = []
    for table in tables:
        paths.append(Path(folder) / f"{table.name}.{suffix}")
        write(paths[-1], writer(table))
    return paths


def write(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file at `path` by `text` in one step: whoever reads it sees the old text or the new one.

    Parameters
    ----------
    path : path
        Its folder is created if it does not exist.
    text : str
        Written as UTF-8 with its line ends as they are.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def to_json(table: Table) -> str:
    """Write one table as JSON, in full precision; what is not finite becomes null."""
    rows = [{column: _plain(value) for column, value in row.items()} for row in table.rows()]
    content = {"name": table.name, "title": table.title, "source": table.source, "columns": table.columns, "rows": rows}
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def to_csv(table: Table) -> str:
    """Write one table as CSV, in full precision; a column with published numbers becomes three."""
    rows = table.rows()
    three = {column for row in rows for column, value in row.items() if isinstance(value, Cell)}
    lines = [[[f"{c} {part}" for part in _PARTS] if c in three else [c] for c in table.columns]]
    lines += [
        [[*_three(row.get(c), _full)] if c in three else [_full(row.get(c))] for c in table.columns] for row in rows
    ]
    paper = io.StringIO()
    csv.writer(paper, lineterminator="\n").writerows(chain.from_iterable(line) for line in lines)
    return paper.getvalue()


def markdown(table: Table) -> str:
    """Write one table as GitHub Markdown, in full precision; if it compares numbers, with a line for each of them."""
    rows = table.rows()
    header, body = table.columns, _grid(table.columns, rows, _full)
    if _compares(rows):
        keys, quantities = _split(table.columns, rows)
        header = (*keys, "quantity", *_PARTS)
        body = [[*(_full(row[k]) for k in keys), *line] for row in rows for line in _lines(quantities, row, _full)]
    grid = [[entry.replace("|", "\\|") for entry in line] for line in (header, ["---"] * len(header), *body)]
    parts = (f"## {table.title}", table.source, "\n".join(f"| {' | '.join(line)} |" for line in grid), _tally(rows))
    return "\n\n".join(filter(None, (*parts, table.note))) + "\n"


def text(table: Table, *, width: int = WIDTH, color: bool = False) -> str:
    """Lay one table out for reading.

    A table that compares numbers gets a line for each of them. One that does not gets a line for each row where that
    fits, with as many digits as fit, and a paragraph for each row where not.

    Parameters
    ----------
    table : Table
    width : int
        Columns of the terminal.
    color : bool
        Whether to use the colors of the terminal.

    Returns
    -------
    str
    """
    from rich.console import Console

    rows, paper = table.rows(), io.StringIO()
    system: Any = "standard" if color else None
    page = Console(file=paper, width=width, color_system=system, force_terminal=color, markup=False, highlight=False)
    page.print(table.title, style="bold")
    page.print(f"{table.source}\n", style="dim")
    if _compares(rows):
        _print_comparison(page, table.columns, rows)
    else:
        _print_rows(page, table.columns, rows)
    for sentence in filter(None, (_tally(rows), table.note)):
        page.print(f"\n{sentence}")
    return "".join(f"{line.rstrip()}\n" for line in paper.getvalue().splitlines())


def _print_comparison(page: "Console", columns: Sequence[str], rows: Rows) -> None:
    """Print a heading for each row, and under it a line for each of its quantities."""
    keys, quantities = _split(columns, rows)
    header, show = ("quantity", *_PARTS), _short(_DIGITS[0])
    blocks = [_lines(quantities, row, show) for row in rows]
    name, published, computed, found = _widths(chain([header], *blocks))
    room = page.width - name - found - 4 * _GAP
    computed = min(computed, max(room - published, room // 2))
    widths = (name, min(published, room - computed), computed, found)
    _print_grid(page, [header], widths, indent=_GAP, style="dim")
    for row, block in zip(rows, blocks, strict=True):
        page.print(", ".join(f"{key} {show(row[key])}" for key in keys), style="bold")
        _print_grid(page, block, widths, indent=_GAP)


def _print_rows(page: "Console", columns: Sequence[str], rows: Rows) -> None:
    """Print a line for each row, or a heading and paragraphs where a line is too short."""
    for digits in _DIGITS:
        grid = _grid(columns, rows, _short(digits))
        widths = _widths([[max(column.split(), key=len) for column in columns], *grid])
        if sum(widths) + _GAP * (len(widths) - 1) <= page.width:
            right = [not any(isinstance(row.get(column), str) for row in rows) for column in columns]
            _print_grid(page, [columns], widths, right=right, style="dim")
            _print_grid(page, _unrepeated(grid), widths, right=right)
            return
    label = max(map(len, columns))
    for line in grid:
        page.print(line[0], style="bold")
        entries = [pair for pair in zip(columns[1:], line[1:], strict=True) if pair[1]]
        _print_grid(page, entries, (label, page.width - label - 2 * _GAP), indent=_GAP)


def _print_grid(page: "Console", lines: Any, widths: Any, *, right: Any = (), indent: int = 0, style: str = "") -> None:
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, _GAP, 0, 0))
    for width, is_right in zip(widths, right or [False] * len(widths), strict=True):
        grid.add_column(width=width, justify="right" if is_right else "left")
    for line in lines:
        grid.add_row(*(Text(entry, style=style or _COLORS.get(entry, "")) for entry in line))
    page.print(Padding(grid, (0, 0, 0, indent)))


def _format(name: str) -> tuple[Callable[[Table], str], str]:
    writers = {"text": (text, "txt"), "markdown": (markdown, "md"), "csv": (to_csv, "csv"), "json": (to_json, "json")}
    if name not in writers:
        msg = f"`format` must be one of {', '.join(map(repr, writers))}, got {name!r}"
        raise InputError(msg)
    return writers[name]


def _cells(rows: Rows) -> Iterator[Cell]:
    return (value for row in rows for value in row.values() if isinstance(value, Cell))


def _compares(rows: Rows) -> bool:
    """Whether some computed number says more than the published one beside it."""
    return any(verdict(cell) not in _SIGNS for cell in _cells(rows))


def _split(columns: Sequence[str], rows: Rows) -> tuple[Sequence[str], Sequence[str]]:
    """Part the columns before the first published number, which say what a row is about, from the others."""
    first = next(i for i, column in enumerate(columns) if any(isinstance(row.get(column), Cell) for row in rows))
    return columns[:first], columns[first:]


def _lines(quantities: Sequence[str], row: Row, show: Show) -> list[tuple[str, ...]]:
    return [(name, *_three(row[name], show)) for name in quantities if row.get(name) is not None]


def _three(value: Any, show: Show) -> tuple[str, str, str]:
    """Give what was published, what was computed, and the verdict; a plain value was computed."""
    if not isinstance(value, Cell):
        return "", show(value), ""
    found, computed = verdict(value), show(value.computed)
    # Where a shortened number looks like the printed one but is another, show what differs.
    same = computed == value.published and found != Verdict.AGREES
    return value.published, _full(value.computed) if same else computed, found.value


def _grid(columns: Sequence[str], rows: Rows, show: Show) -> list[list[str]]:
    """One entry for each row and column; a published number with the sign of its verdict."""

    def entry(value: Any) -> str:
        return f"{value.published} {_SIGNS.get(verdict(value), '')}" if isinstance(value, Cell) else show(value)

    return [[entry(row.get(column)) for column in columns] for row in rows]


def _unrepeated(grid: list[list[str]]) -> list[list[str]]:
    """Leave out what the leading columns repeat from the line above."""
    shown = grid[:1]
    for above, line in pairwise(grid):
        same = next((i for i, pair in enumerate(zip(above, line, strict=True)) if pair[0] != pair[1]), 0)
        shown.append([""] * same + line[same:])
    return shown


def _widths(lines: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _tally(rows: Rows) -> str:
    """Say how many published numbers got which verdict, with its sign where signs are used."""
    count = Counter(verdict(cell) for cell in _cells(rows))
    signs = {} if _compares(rows) else _SIGNS
    parts = [f"{count[v]} {v}" + (f" ({signs[v]})" if v in signs else "") for v in Verdict if count[v]]
    return f"Verdicts on {count.total()} published entries: {', '.join(parts)}." if parts else ""


def _plain(value: Any) -> Any:
    if isinstance(value, Cell):
        return {"published": value.published, "computed": _plain(value.computed), "verdict": verdict(value).value}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value if not isinstance(value, float) else float(value) if isfinite(value) else None


def _full(value: Any) -> str:
    return _shown(value, lambda number: repr(float(number)))


def _short(digits: int) -> Show:
    return lambda value: _shown(value, lambda number: f"{number:.{digits}g}")


def _shown(value: Any, number: Callable[[float], str]) -> str:
    """Numbers as `number` writes them, nothing for None, the rest as it is."""
    if isinstance(value, tuple | list):
        return ", ".join(_shown(entry, number) for entry in value)
    return number(value) if isinstance(value, float) else "" if value is None else str(value)
