"""A page as text for a terminal: columns where they fit, lines where not; nothing is cut off."""

from collections.abc import Iterable, Iterator, Sequence
from operator import ge

from nceref.output.blocks import (
    Block,
    Figure,
    Folded,
    Formula,
    Grid,
    Heading,
    Math,
    Paragraph,
    Rows,
    Styles,
    Table,
    styled,
)
from nceref.output.layout import GAP, Line, cells, columns, fitting, narrowed, painted, unwrapped, wrapped
from nceref.output.text import without_commands

_READABLE = 24  # four words


def text(blocks: Iterable[Block], width: int, color: bool) -> str:
    """A page in lines of `width` columns, with the colors of a terminal or without."""
    lines = (line for block in blocks for line in _lines(block, fitting(width)))
    # A word that stood within a line may begin one now.
    return without_commands("".join(f"{painted(line, color=color)}\n" for line in lines))


def _lines(block: Block, page: int) -> Iterable[Line]:
    if isinstance(block, Heading):
        return wrapped(block.spans, page)
    if isinstance(block, Paragraph):
        return _paragraph(block, page)
    if isinstance(block, Formula | Table) and block.layout:
        return (line for part in block.layout(page) for line in _lines(part, page))
    if isinstance(block, Figure | Folded):
        return (line for part in block.plain for line in _lines(part, page))
    if isinstance(block, Formula):
        lines = block.text(page - block.indent).splitlines()
        return [[(" " * block.indent, ""), (line, "")] for line in lines]
    if isinstance(block, Grid):
        return _stack(page, block.rows, block.styles, block.indent) if block.stacked else _grid(block, page)
    if isinstance(block, Table):
        return _table(block, page)
    return unwrapped([(block.text, "")])


def _paragraph(block: Paragraph, page: int) -> list[Line]:
    spans = [(span.text, "") if isinstance(span, Math) else span for span in block.spans]
    if not block.wrap:
        return unwrapped(spans)
    if not block.indent and not block.hang:
        return wrapped(spans, page)
    first, *others = wrapped(spans, page - max(block.indent, block.hang))
    return [[(" " * block.indent, ""), *first], *([(" " * block.hang, ""), *line] for line in others)]


def _grid(block: Grid, page: int) -> Iterable[Line]:
    room = page - block.indent - sum(width + GAP for width in block.widths)
    longest = max((cells(row[-1]) for row in block.rows), default=0)
    if any(block.widths) and room < min(_READABLE, longest):
        return _stack(page, block.rows, block.styles, block.indent)
    return columns(styled(block.rows, block.styles), [*block.widths, room], page, indent=block.indent)


def _stack(page: int, rows: Rows, styles: Styles, indent: int) -> Iterator[Line]:
    for row in styled(rows, styles):
        for depth, span in enumerate(row):
            if span[0]:
                left = indent + GAP * depth
                yield from columns([[span]], [page - left], page, indent=left)


def _table(block: Table, page: int) -> Iterable[Line]:
    every = [*block.header, *block.rows]
    count = len(block.widths) or max(map(len, every), default=0)
    own = block.widths or [max(cells(line) for row in every for line in row[i].split("\n")) for i in range(count)]
    numbers = block.right or (False,) * count
    if block.header and not _fits(page, every, own, numbers, block.indent):
        return _records(page, block.header[0], block.rows, block.indent)
    shown = [*styled(block.header, ("dim",) * count), *styled(block.rows, block.styles)]
    return columns(shown, own, page, numbers=numbers, indent=block.indent)


def _fits(page: int, rows: Rows, widths: Sequence[int], numbers: Sequence[bool], indent: int) -> bool:
    """Whether all numbers fit beside text of half its width, or in a table without numbers all words into columns."""
    room = page - indent - GAP * (len(widths) - 1)
    if any(numbers):
        return room >= sum(
            width if is_number else min(width, _READABLE // 2) for width, is_number in zip(widths, numbers, strict=True)
        )
    words = (max(cells(word) for row in rows for word in ("", *row[i].split())) for i in range(len(widths)))
    return all(map(ge, narrowed(widths, numbers, room), words))


def _records(page: int, names: Sequence[str], rows: Rows, indent: int) -> Iterator[Line]:
    """The lines of a table one below the other: the first entry, then the others with the names of their columns."""
    for first, *others in rows:
        yield from _stack(page, [(first,)], (), indent)
        shown = [(name, entry) for name, entry in zip(names[1:], others, strict=True) if entry]
        widths = [max((cells(row[i]) for row in shown), default=0) for i in range(2)]
        yield from columns(styled(shown, ("dim", "")), widths, page, indent=indent + GAP)
