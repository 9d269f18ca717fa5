"""The parts of a page, which each of `formats/` writes in its own way."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nceref.output.layout import Span

Styles = Sequence[str] | Mapping[str, str]
"""Styles of the columns in order, or by entry."""
Rows = Sequence[tuple[str, ...]]


class Math(NamedTuple):
    """A formula within a sentence: as a line of text, and in LaTeX."""

    text: str
    latex: str


@dataclass(frozen=True)
class Heading:
    """The title of a page, on level 1, or of a part of it; an empty line may stand before it."""

    spans: tuple[Span, ...]
    level: int


@dataclass(frozen=True)
class Paragraph:
    """Words of several styles; of lines of text, the first begins at `indent`, the others at `hang`."""

    spans: tuple[Span | Math, ...]
    wrap: bool = True
    indent: int = 0
    hang: int = 0


@dataclass(frozen=True)
class Verbatim:
    """Text with its own lines, such as the source of a program."""

    text: str


@dataclass(frozen=True)
class Formula:
    """A formula on lines of its own, in LaTeX, where ``&`` aligns lines, and as text for a width in columns.

    `layout` gives what stands for it in lines of text in place of the text alone, by their width.
    """

    latex: str
    text: Callable[[int], str]
    indent: int = 0
    layout: "Layout | None" = None


@dataclass(frozen=True)
class Grid:
    """Columns of given widths and a last one that takes the rest; `stacked`: each entry is on a line of its own."""

    rows: Rows
    widths: tuple[int, ...] = ()
    styles: Styles = ()
    indent: int = 0
    stacked: bool = False


@dataclass(frozen=True)
class Table:
    """A table; `layout` gives what stands for it in lines of text, by their width."""

    rows: Rows
    header: Rows = ()
    right: tuple[bool, ...] = ()
    widths: tuple[int, ...] = ()
    styles: Styles = ()
    indent: int = 0
    layout: "Layout | None" = None


Block = Heading | Paragraph | Verbatim | Formula | Grid | Table
Layout = Callable[[int], Iterable[Block]]


def merged(blocks: Iterable[Block]) -> list[Block]:
    """The blocks without empty ones, where grids of one shape that follow one another are one."""
    out: list[Block] = []
    for block in blocks:
        if isinstance(block, Heading | Paragraph) and not any(span[0].strip() for span in block.spans):
            # An empty line, which only lines of text need; it still ends a grid.
            out.append(Paragraph(()))
        elif isinstance(block, Grid) and out and isinstance(last := out[-1], Grid) and _alike(block, last):
            out[-1] = replace(last, rows=[*last.rows, *block.rows])
        else:
            out.append(block)
    return [block for block in out if block != Paragraph(())]


def _alike(one: Grid, other: Grid) -> bool:
    """Whether two grids have the same indent and the same number of columns."""
    shapes = {(grid.stacked, grid.indent, *map(len, grid.rows[:1])) for grid in (one, other)}
    return len(shapes) == 1


def styled(rows: Rows, styles: Styles) -> Iterator[list[Span]]:
    """The entries of each row with their styles."""
    for row in rows:
        if isinstance(styles, Sequence):
            yield list(zip(row, styles or ("",) * len(row), strict=True))
        else:
            yield [(entry, styles.get(entry, "")) for entry in row]


def is_code(block: Grid) -> bool:
    """Whether a grid is lines of code alone: what has a name or stands beside them is empty."""
    styles = block.styles
    return (
        isinstance(styles, Sequence) and styles[-1:] == ("code",) and not any("".join(row[:-1]) for row in block.rows)
    )
