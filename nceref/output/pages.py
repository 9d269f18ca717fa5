"""A page: what a command says, as headings, paragraphs, columns, tables and formulas."""

import importlib
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace

from nceref.output import blocks
from nceref.output.blocks import Block, Entry, Layout, Math, Rows, Styles
from nceref.output.layout import GAP, WIDTH, Span
from nceref.output.text import harmless

__all__ = ["FORMS", "GAP", "WIDTH", "Entry", "Math", "Page", "joined", "with_spaces"]


FORMS = {"markdown": "md", "html": "html", "latex": "tex"}
"""The forms of a page other than text, each written by a file of `formats/`, with the suffix of its files."""


class Page:
    """Blocks, one below the other, which each format writes in its own way.

    >>> page = Page()
    >>> page.heading("Losses", 1)
    >>> page.grid([("dcl", "decoupled"), ("clip", "two directions")], 4, indent=GAP)
    >>> print(page.text(width=40), end="")
    Losses
      dcl   decoupled
      clip  two directions
    >>> print(page.written("markdown"), end="")
    # Losses
    <BLANKLINE>
    - **dcl**: decoupled
    - **clip**: two directions
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def __str__(self) -> str:
        return self.text()

    def text(self, *, width: int = WIDTH, color: bool = False) -> str:
        """Lay the page out for a terminal: lines without spaces at their ends, each with a newline.

        `width` is in columns; there are a floor and a ceiling, see `layout.fitting`.
        """
        from nceref.output.formats.text import text

        return text(self.blocks, width, color)

    def written(self, form: str) -> str:
        """The page in a form other than text.

        In ``markdown`` (GitHub's) formulas stand between dollar signs, ``html`` is one document that loads nothing, and
        ``latex`` is a fragment, whose first lines name the packages that it needs.
        """
        writer = getattr(importlib.import_module(f"nceref.output.formats.{form}"), form)
        return str(writer(self.blocks))

    def heading(self, title: str, level: int = 2, style: str = "bold", anchor: str = "") -> None:
        """Add a heading; one that begins with a line end has an empty line above it.

        In a form with links, `anchor` is its name, and one on level 2 that has a name is linked at the head.
        """
        self.blocks.append(blocks.Heading(((harmless(title), style),), level, anchor))

    def print(
        self, *parts: str | Span | Math, style: str = "", wrap: bool = True, indent: int = 0, hang: int = 0
    ) -> None:
        """Add a paragraph of text as it stands, or text with a style of its own; nothing is an empty line.

        As everywhere on a page, what is not printable is escaped. The style of all parts is words such as ``bold``,
        ``dim``, ``red``, and ``link`` for a URL. Without `wrap`, a line that is longer than the page stays one line, so
        that it can be copied. `indent` and `hang` are columns before the first line of text, and before the others.
        """
        self.blocks.append(blocks.Paragraph(tuple(_span(part, style) for part in parts), wrap, indent, hang))

    def verbatim(self, text: str) -> None:
        """Add text with its own lines, such as the source of a program."""
        self.blocks.append(blocks.Verbatim(harmless(text)))

    def formula(
        self,
        latex: str,
        text: Callable[[int], str],
        *,
        indent: int = 0,
        layout: "Callable[[int], Page] | None" = None,
    ) -> None:
        """Add a formula; see `Formula`, and `table` for the layout."""
        self.blocks.append(blocks.Formula(harmless(latex), text, indent, _blocks(layout)))

    def grid(self, rows: Iterable[Sequence[str]], *widths: int, styles: Styles = (), indent: int = 0) -> None:
        """Add columns of the given widths and a last one that takes the rest and is wrapped.

        Where the rest is too narrow to read, the entries are stacked. Styles are of each column, or of an entry.
        """
        self.blocks.append(blocks.Grid(_harmless(rows), widths, styles, indent))

    def stack(self, rows: Iterable[Sequence[str]], *, styles: Styles = (), indent: int = 0) -> None:
        """Add each entry that is not empty on a line of its own, further in than the one before."""
        self.blocks.append(blocks.Grid(_harmless(rows), (), styles, indent, stacked=True))

    def table(
        self,
        rows: Iterable[Sequence[str]],
        *,
        header: Sequence[Sequence[str]] = (),
        right: Sequence[bool] = (),
        widths: Sequence[int] = (),
        styles: Styles = (),
        indent: int = 0,
        layout: "Callable[[int], Page] | None" = None,
    ) -> None:
        """Add columns of entries; one that is too long is folded, never cut.

        The lines of the header stand above them, dim; the columns where `right` is true stand to the right, as numbers
        do. Widths are by default those of the longest entries; styles are of each column, or of an entry.
        `layout(width)` is the page that stands on a terminal of that width in place of the table.
        """
        block = blocks.Table(
            _harmless(rows), _harmless(header), tuple(right), tuple(widths), styles, indent, _blocks(layout)
        )
        self.blocks.append(block)

    def figure(self, *parts: Span, draw: Callable[[Container[str]], str]) -> None:
        """Add a picture with its words; see `Figure`."""
        self.blocks.append(blocks.Figure(tuple((harmless(text), style) for text, style in parts), draw))

    def folded(self, title: str, inside: "Page", is_open: bool = False) -> None:
        """Add a page that can be unfolded below its title, unless it is empty."""
        if inside.blocks:
            self.blocks.append(blocks.Folded(harmless(title), tuple(inside.blocks), is_open))

    def add(self, other: "Page", levels: int = 0) -> None:
        """Add all of another page below, with its headings so many levels further down."""
        for block in other.blocks:
            if isinstance(block, blocks.Heading):
                self.blocks.append(replace(block, level=block.level + levels))
            else:
                self.blocks.append(block)


def joined(pages: Iterable[Page]) -> Page:
    """Pages one below the other, with an empty line between them."""
    page = Page()
    for number, one in enumerate(pages):
        if number:
            page.print()
        page.add(one)
    return page


def _blocks(layout: Callable[[int], Page] | None) -> Layout | None:
    return None if layout is None else lambda width: layout(width).blocks


def _span(part: str | Span | Math, style: str) -> Span | Math:
    if isinstance(part, Math):
        return Math(harmless(part.text), harmless(part.latex))
    text, own = (part, "") if isinstance(part, str) else part
    return harmless(text), f"{style} {own}".strip()


def _harmless(rows: Iterable[Sequence[str]]) -> Rows:
    return [tuple(map(_entry, row)) for row in rows]


def _entry(text: str) -> str:
    if not isinstance(text, Entry):
        return harmless(text)
    return Entry(*((harmless(words), style) for words, style in text.spans), anchors=text.anchors, to=text.to)


def with_spaces(name: str) -> str:
    """An identifier as words: ``row_shift_invariant`` as ``row shift invariant``."""
    return name.replace("_", " ")
