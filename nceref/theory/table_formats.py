"""A table as text, Markdown, LaTeX, HTML, CSV or JSON, and its files."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from nceref.engine.arguments import integer
from nceref.errors import InputError
from nceref.output import files
from nceref.output.formats.latex import tabulated
from nceref.output.json_text import json_text
from nceref.output.pages import FORMS, GAP, WIDTH, Page
from nceref.output.terminal import screen
from nceref.theory import table_cells
from nceref.theory.table import Cell, Table
from nceref.theory.table_cells import PARTS, TableRows
from nceref.theory.verdicts import Verdict, verdict

_DIGITS = (12, 9, 6)
"""Significant digits of computed numbers, tried in turn until a line fits the page."""

_COLORS: dict[str, str] = dict.fromkeys((Verdict.AGREES, Verdict.PRINTED_DIGITS), "green")
_COLORS |= {Verdict.TRUNCATED: "yellow", Verdict.FLOAT32_ARTIFACT: "yellow", Verdict.WRONG: "red"}


def render(table: Table, format: str = "text", digits: int | None = None) -> str:
    """Write one table out as a string that ends in a newline; its rows are computed now.

    Text has the width and the colors of the terminal; where there is none, it is plain and as wide as COLUMNS says, or
    else 80. LaTeX has as many digits of a computed number as the published one beside it, six where there is none. The
    others carry 12, which every machine computes alike. `digits` are the significant digits of computed numbers, 1 to
    17; a number that has fewer stays as it is, and a published one as it is printed; no more than 12 are shown.
    Verdicts are those of all digits. Raises `InputError` for another format, and for `digits` with JSON, which has 12.
    """
    writer, _ = _format(format, digits)
    return text(table, digits=digits, **screen()) if format == "text" else writer(table)


def save(
    tables: Iterable[Table],
    format: str,
    folder: str | os.PathLike[str],
    on_progress: Callable[[str, Path], object] = lambda done, path: None,
    digits: int | None = None,
) -> list[Path]:
    """Write each table to a file of its own, named after the table; text is plain and 80 columns wide.

    The folder is created if it does not exist. `on_progress` is called after each file, with "replaced" if one with
    other content was there or else "wrote", and with the path. The paths are in the order of the tables. Raises
    `InputError` as `render` does, and `FileError` if a file cannot be written; the message says where and why. Files
    written before it stay.
    """
    writer, suffix = _format(format, digits)
    paths, made = [], files.make_folder(folder)
    for table in tables:
        path = made / f"{table.name}.{suffix}"
        on_progress("replaced" if _put(path, writer(table)) else "wrote", path)
        paths.append(path)
    return paths


def _put(path: Path, text: str) -> bool:
    """Write a file and say whether another content was there."""
    other = path.is_file() and files.read(path) != text.encode()
    files.write_text(path, text)
    return other


def to_json(table: Table) -> str:
    """Write one table as JSON, with 12 significant digits; what is not finite becomes null."""
    rows = [{column: table_cells.plain(value) for column, value in row.items()} for row in table.rows()]
    about = {"name": table.name, "title": table.title, "source": table.source}
    content = {**about, "columns": table.columns, "rows": rows}
    return json_text(content)


def to_csv(table: Table, show: table_cells.Show = table_cells.full) -> str:
    """Write one table as CSV, with 12 digits unless `show` is another; a column with published numbers is three."""
    rows = table.rows()
    # A column is three in every row if it has a published number in any, so that all lines are of equal length.
    three = {column for row in rows for column, value in row.items() if isinstance(value, Cell)}
    lines = [[[f"{c} {part}" for part in PARTS] if c in three else [c] for c in table.columns]]
    compared = table_cells.three
    lines += [
        [[*compared(row.get(c), show)] if c in three else [show(row.get(c))] for c in table.columns] for row in rows
    ]
    paper = io.StringIO()
    csv.writer(paper, lineterminator="\n").writerows(chain.from_iterable(line) for line in lines)
    return paper.getvalue()


def markdown(table: Table, show: table_cells.Show = table_cells.full) -> str:
    """Write one table as GitHub Markdown; if it compares numbers, with a line for each of them."""
    return page_of(table, show=show, level=2).written("markdown")


def latex(table: Table, show: table_cells.Show = table_cells.as_printed) -> str:
    """Write one table as LaTeX, with a caption; if it compares numbers, with a line for each of them."""
    rows = table.rows()
    caption = ". ".join(part.rstrip(".") for part in (table.title, table.source) if part) + "."
    about = " ".join(filter(None, (caption, table_cells.tally(rows), table.note)))
    return "\n".join(tabulated(*table_cells.compared(table.columns, rows, show), about, table.name)) + "\n"


def text(table: Table, *, width: int = WIDTH, color: bool = False, digits: int | None = None) -> str:
    """The page of one table as text."""
    return page_of(table, digits).text(width=width, color=color)


def page_of(table: Table, digits: int | None = None, show: table_cells.Show = table_cells.full, level: int = 1) -> Page:
    """The page of one table, with a heading of that level; its rows are computed now.

    On a terminal, a table that compares numbers gets a line for each of them, and where the page is too narrow a block.
    One that does not gets a line for each row where that fits, with as many digits as fit or as `digits` says, and a
    block for each row where not. Other formats have numbers as `show` writes them.
    """
    rows = table.rows()
    page = Page()
    page.heading(table.title, level)
    if table.source:
        page.print(table.source, style="dim")
    page.print()
    add_table(page, table.columns, rows, digits, show)
    for sentence in filter(None, (table_cells.tally(rows), table.note)):
        page.print(f"\n{sentence}")
    return page


def add_table(
    page: Page,
    columns: Sequence[str],
    rows: TableRows,
    digits: int | None = None,
    show: table_cells.Show = table_cells.full,
) -> None:
    """Add the rows of a table to a page; see `page_of`."""
    header, body = table_cells.compared(columns, rows, show)
    layout = comparison if table_cells.compares(rows) else _lines
    number = _DIGITS if digits is None else (digits,)
    page.table(body, header=[header], layout=lambda width: layout(columns, rows, width, number))


def summary(tables: Iterable[Table], digits: int | None = None) -> Page:
    """The page of all these tables together: how many published numbers agree, and those that do not, by verdict.

    Computed numbers have 6 significant digits by default.
    """
    every = list(tables)
    judged = [entry for table in every for entry in _judged(table)]
    page, show = Page(), table_cells.short(digits or _DIGITS[-1])
    page.heading("All tables together", 1)
    page.print(tally(every))
    for one in (Verdict.TRUNCATED, Verdict.FLOAT32_ARTIFACT, Verdict.WRONG):
        listed = [entry for entry in judged if entry[0] is one]
        for name, group in groupby(listed, key=lambda entry: entry[1]):
            page.heading(f"\n{one} in {name}", style="")
            lines = [(where, cell.published, show(cell.computed)) for _, _, where, cell in group]
            page.table(lines, header=[("entry", "published", "computed")], indent=GAP)
    return page


def tally(tables: Iterable[Table]) -> str:
    """The number of published numbers of these tables that agree."""
    count = Counter(one for table in tables for one, *_ in _judged(table))
    agree, unknown = count[Verdict.AGREES] + count[Verdict.PRINTED_DIGITS], count[Verdict.NOT_REPRODUCIBLE]
    differ = count.total() - agree - unknown
    return f"{count.total()} published numbers: {agree} agree, {differ} do not, {unknown} cannot be computed here."


def _judged(table: Table) -> list[tuple[Verdict, str, str, Cell]]:
    """Verdict, table, place and cell of every published number."""
    return [
        (verdict(cell), table.name, f"{table_cells.row_name(row)}, {column}", cell)
        for row in table.rows()
        for column, cell in row.items()
        if isinstance(cell, Cell)
    ]


def published_first(tables: Iterable[Table]) -> list[Table]:
    """The tables whose published numbers are computed again, then those with other published ones, then the rest."""

    def place(table: Table) -> tuple[bool, bool]:
        verdicts = [one for one, *_ in _judged(table)]
        return all(one is Verdict.NOT_REPRODUCIBLE for one in verdicts), not verdicts

    return sorted(tables, key=place)


def names(tables: Iterable[Any]) -> Page:
    """List tables, figures or derivations: name and title."""
    page = Page()
    shown = [(table.name, table.title) for table in tables]
    page.grid(shown, max(len(name) for name, _ in shown), styles=("bold", ""))
    return page


def comparison(columns: Sequence[str], rows: TableRows, width: int, digits: Sequence[int] = _DIGITS) -> Page:
    """Lay out published beside computed numbers: a heading for each row, below it a line for each quantity.

    Where the width is too small for a line, each quantity gets a block.

    At least one row has a `Cell`. A computed number has the first of `digits` digits.
    """
    page = Page()
    keys, quantities = table_cells.split(columns, rows)
    header, show = ("quantity", *PARTS), table_cells.short(digits[0])
    blocks = [table_cells.lines(quantities, row, show) for row in rows]
    widths = _comparison_widths(width, [header, *chain(*blocks)])
    if widths:
        page.table([], header=[header], widths=widths, indent=GAP)
    for row, block in zip(rows, blocks, strict=True):
        page.heading(", ".join(f"{key} {show(row[key])}" for key in keys))
        if widths:
            page.table(block, widths=widths, styles=_COLORS, indent=GAP)
        else:
            _print_blocks(page, block)
    return page


def _comparison_widths(width: int, lines: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Widths of quantity, published, computed and verdict; vectors are wrapped. Nothing if a word would not fit."""
    name, published, computed, judged = table_cells.widths(lines)
    _, least_published, least_computed, _ = table_cells.narrowest(lines)
    # Gaps: the indent, and three between the columns.
    room = width - name - judged - 4 * GAP
    if least_published + least_computed > room:
        return ()
    # The computed column gets what the published one leaves, or half where that is more; no word is cut in two.
    computed = max(min(computed, max(room - published, room // 2)), least_computed)
    if room - computed < least_published:
        computed = room - least_published
    return name, min(published, room - computed), computed, judged


def _print_blocks(page: Page, lines: Iterable[Sequence[str]]) -> None:
    """Print each quantity as a heading, and what is known of it line by line."""
    label = max(map(len, PARTS))
    for name, *parts in lines:
        page.stack([(name,)], indent=GAP)
        given = [pair for pair in zip(PARTS, parts, strict=True) if pair[1]]
        page.grid(given, label, styles=_COLORS, indent=2 * GAP)


def _lines(columns: Sequence[str], rows: TableRows, width: int, digits: Sequence[int]) -> Page:
    """A line for each row, or a heading and paragraphs where a line is too short."""
    page = Page()
    # The most digits with which a line still fits.
    for number in digits:
        grid = table_cells.grid(columns, rows, table_cells.short(number))
        widths = table_cells.widths([[max(column.split(), key=len) for column in columns], *grid])
        if sum(widths) + GAP * (len(widths) - 1) <= width:
            right = [not any(isinstance(row.get(column), str) for row in rows) for column in columns]
            page.table(table_cells.unrepeated(grid), header=[columns], right=right, widths=widths)
            return page
    label = max(map(len, columns))
    for row, line in zip(rows, table_cells.grid(columns, rows, table_cells.short(digits[0])), strict=True):
        page.heading(line[0] if isinstance(row[columns[0]], str) else f"{columns[0]} {line[0]}")
        given = [pair for pair in zip(columns[1:], line[1:], strict=True) if pair[1]]
        page.grid(given, label, indent=GAP)
    return page


def shown(digits: int | None) -> table_cells.Show:
    """The function that writes computed numbers with so many digits; None: with all that every machine has alike."""
    return table_cells.full if digits is None else table_cells.short(integer("`digits`", digits, 1, 17))


def _format(name: str, digits: int | None) -> tuple[Callable[[Table], str], str]:
    own = shown(digits)
    page = table_cells.as_printed if digits is None else own
    writers: dict[str, tuple[Callable[[Table], str], str]] = {
        "text": (partial(text, digits=digits), "txt"),
        **{form: (partial(_in_form, form, own), suffix) for form, suffix in FORMS.items()},
        "markdown": (partial(markdown, show=own), FORMS["markdown"]),
        "latex": (partial(latex, show=page), FORMS["latex"]),
        "csv": (partial(to_csv, show=own), "csv"),
        "json": (to_json, "json"),
    }
    if name not in writers:
        msg = f"`format` must be one of {', '.join(map(repr, writers))}, got {name!r}"
        raise InputError(msg)
    if name == "json" and digits is not None:
        msg = "JSON has 12 digits; leave `digits` out, or take another format"
        raise InputError(msg)
    return writers[name]


def _in_form(form: str, show: table_cells.Show, table: Table) -> str:
    """The page of one table in a form that tables have no writer of their own for."""
    return page_of(table, show=show).written(form)
