"""The parts of a page, which each of `formats/` writes in its own way."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nceref.output.layout import Span

Styles = Sequence[str] | Mapping[str, str]
"""Styles of the columns in order, or by entry."""
Rows = Sequence[tuple[str, ...]]


URL = re.compile(r"https?://[^\s()<>\"'`\\]+")
"""A URL that no other link hides behind."""


class Math(NamedTuple):
    """A formula within a sentence: as a line of text, and in LaTeX."""

    text: str
    latex: str


class Entry(str):
    """An entry of a grid or a table in several styles; where there is one style, it is their text.

    In a form with links, `anchors` are names of the entry, and `to` is that of the place that it leads to.
    """

    __slots__ = ("anchors", "spans", "to")
    spans: tuple[Span, ...]
    anchors: tuple[str, ...]
    to: str

    def __new__(cls, *spans: Span, anchors: Iterable[str] = (), to: str = "") -> "Entry":
        """The entry of texts that follow one another."""
        entry = super().__new__(cls, "".join(text for text, _ in spans))
        entry.spans, entry.anchors, entry.to = spans, tuple(anchors), to
        return entry


@dataclass(frozen=True)
class Heading:
    """The title of a page, on level 1, or of a part of it; an empty line may stand before it."""

    spans: tuple[Span, ...]
    level: int
    anchor: str = ""


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


@dataclass(frozen=True)
class Figure:
    """A picture for forms that have them, and what it says in words; the marks of `draw` lead to names of `Entry`.

    `draw` gets the names that are there, and returns SVG.
    """

    spans: tuple[Span, ...]
    draw: Callable[[Container[str]], str]

    @property
    def plain(self) -> "tuple[Block, ...]":
        """The block that stands for it where nothing is drawn."""
        return (Paragraph(self.spans),)


@dataclass(frozen=True)
class Folded:
    """Details, which can be unfolded; where a document would be too long, their tables have fewer rows."""

    title: str
    blocks: "tuple[Block, ...]"
    is_open: bool = False

    @property
    def plain(self) -> "tuple[Block, ...]":
        """The blocks that stand for it where nothing is folded."""
        return (Paragraph(((self.title, "dim"),)), *self.blocks)


Block = Heading | Paragraph | Verbatim | Formula | Grid | Table | Figure | Folded
Layout = Callable[[int], Iterable[Block]]


@dataclass(frozen=True)
class Entries:
    """The rows of grids that follow one another, with the style of each entry."""

    rows: Sequence[Sequence[Span]]
    stacked: bool
    indent: int

    @property
    def is_code(self) -> bool:
        """Whether these are lines of code alone: what has a name or stands beside them is empty."""
        return all(row[-1][1] == "code" and not any(text for text, _ in row[:-1]) for row in self.rows)

    @property
    def is_list(self) -> bool:
        """Whether these are the items of a list, whose names are dashes."""
        return all(len(row) == 2 and row[0][0] == "-" for row in self.rows)

    def takes(self, other: "Entries") -> bool:
        """Whether the rows of both are of one kind."""
        same = (len(self.rows[0]), self.is_code, self.is_list) == (len(other.rows[0]), other.is_code, other.is_list)
        return same and (self.stacked, self.indent) == (other.stacked, other.indent)


Part = Heading | Paragraph | Verbatim | Formula | Entries | Table | Figure | Folded


def parts(blocks: Iterable[Block]) -> list[Part]:
    """The blocks as a format without lines of its own shows them: none that are empty, and grids of one kind as one."""
    out: list[Part] = []
    apart = True
    for block in blocks:
        # An empty line, which only lines of text need, ends a grid.
        if isinstance(block, Heading | Paragraph) and not any(span[0].strip() for span in block.spans):
            apart = True
            continue
        part = (
            Entries([*styled(block.rows, block.styles)], block.stacked, block.indent)
            if isinstance(block, Grid)
            else block
        )
        if isinstance(part, Entries) and not part.rows:
            continue
        last = out[-1] if out and not apart else None
        if isinstance(part, Entries) and isinstance(last, Entries) and last.takes(part):
            out[-1] = replace(last, rows=[*last.rows, *part.rows])
        else:
            out.append(part)
        apart = False
    return out


def styled(rows: Rows, styles: Styles) -> Iterator[list[Span]]:
    """The entries of each row with their styles."""
    for row in rows:
        if isinstance(styles, Sequence):
            yield list(zip(row, styles or ("",) * len(row), strict=True))
        else:
            yield [(entry, styles.get(entry, "")) for entry in row]
