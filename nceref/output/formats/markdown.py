"""A page in GitHub Markdown, with formulas between dollar signs."""

from collections.abc import Iterable, Iterator
from textwrap import dedent

from nceref.output.blocks import (
    URL,
    Block,
    Entries,
    Entry,
    Figure,
    Folded,
    Formula,
    Heading,
    Math,
    Paragraph,
    Part,
    Table,
    parts,
)
from nceref.output.layout import Span
from nceref.output.markdown_parts import code, escaped, markdown_table, ticks_around


def markdown(blocks: Iterable[Block]) -> str:
    """Blocks below one another; it ends in a newline."""
    return "\n\n".join(filter(None, map(_part, parts(blocks)))) + "\n"


def _part(block: Part) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escaped(_line(''.join(text for text, _ in block.spans)))}"
    if isinstance(block, Paragraph):
        text = "".join(map(_span if block.wrap else _plain, block.spans))
        return text.strip() if block.wrap else _fenced(text)
    if isinstance(block, Formula):
        inner = f"\\begin{{aligned}}\n{block.latex}\n\\end{{aligned}}" if "&" in block.latex else block.latex
        return f"$$\n{inner}\n$$"
    if isinstance(block, Entries):
        code_alone = "\n".join(row[-1][0] for row in block.rows)
        return _fenced(code_alone) if block.is_code else "\n".join(_items(block)).strip()
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Figure | Folded):
        return markdown(block.plain).strip()
    return _fenced(block.text)


def _span(span: Span | Math) -> str:
    if isinstance(span, Math):
        return f"${span.latex}$"
    text, style = span
    if not (words := text.strip()):
        return text
    if "link" in style.split() and URL.fullmatch(words):
        return text.replace(words, f"[Source]({words})")
    inner = code(words) if "code" in style.split() else escaped(words)
    before, _, after = text.partition(words)
    return f"{before}**{inner}**{after}" if "bold" in style.split() else f"{before}{inner}{after}"


def _plain(span: Span | Math) -> str:
    return span[0]


def _fenced(text: str) -> str:
    fence = ticks_around(text, 3)
    return "\n".join([f"{fence}text", *map(str.rstrip, dedent(text).strip("\n").splitlines()), fence])


def _items(block: Entries) -> Iterator[str]:
    """An item for each row with a name; what stands below an empty name belongs to the item above."""
    inside = False
    for (first, style), *others in block.rows:
        rest = ", ".join(_line(_cell(*each)) for each in others if each[0])
        name = _line(first)
        if first in ("-", "") or not others:
            # A name of its own may be a dash; a row of one entry is a paragraph.
            yield f"- {rest}" if first == "-" else f"  {rest}" if inside else f"{_span((name, style))}{rest}\n"
        else:
            yield f"- **{_span((name, style.replace('bold', '')))}**{': ' * bool(rest)}{rest}"
        inside = bool(others) and bool(first or inside)


def _table(block: Table) -> str:
    if not block.rows:
        return ""
    header = block.header[0] if block.header else ("",) * len(block.rows[0])
    return markdown_table(list(map(escaped, header)), [list(map(_cell, row)) for row in block.rows], block.right)


def _cell(text: str, style: str = "") -> str:
    return "".join(map(_span, text.spans if isinstance(text, Entry) else [(text, style)]))


def _line(text: str) -> str:
    return " ".join(text.split())
