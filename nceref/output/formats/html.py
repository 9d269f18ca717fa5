"""A page as an HTML document in one file that loads nothing."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from nceref.output import html_elements as elements
from nceref.output.blocks import Block, Entries, Entry, Formula, Heading, Math, Paragraph, Part, Table, parts
from nceref.output.html_elements import Markup, document, element, join, link_of, row
from nceref.output.layout import Span
from nceref.output.mathml import formula

_CLASSES = {"dim": "dim", "green": "pass", "red": "fail", "yellow": "held"}
_COLUMNS = 100
"""Characters in a line of a formula that is set in letters of equal width."""


def html(blocks: Iterable[Block]) -> str:
    """The document; its title is the first heading."""
    shown = parts(blocks)
    titles = [_text(block.spans) for block in shown if isinstance(block, Heading)]
    return document(next(iter(titles), "nceref"), join(map(_part, shown)))


def _part(block: Part) -> Markup | None:
    if isinstance(block, Heading):
        return element(f"h{block.level}", _text(block.spans))
    if isinstance(block, Paragraph):
        return element("p", map(_span, block.spans)) if block.wrap else _verbatim(_text(block.spans))
    if isinstance(block, Formula):
        text = block.text(_COLUMNS)
        return _verbatim(text) if "\n" in text else element("p", formula(text))
    if isinstance(block, Entries):
        return _entries(block)
    if isinstance(block, Table):
        return _table(block)
    return _verbatim(block.text)


def _text(spans: Iterable[Span | Math]) -> str:
    return "".join(span[0] for span in spans).strip()


def _span(span: Span | Math) -> Markup | str:
    if isinstance(span, Math):
        return formula(span.text)
    text, style = span
    if isinstance(text, Entry):
        return join(map(_span, text.spans))
    if "link" in style.split():
        return link_of(text)
    if "code" in style.split():
        return element("code", text)
    classes = " ".join(_CLASSES[word] for word in style.split() if word in _CLASSES) or None
    tag = "strong" if "bold" in style.split() else "span" if classes else ""
    return element(tag, text, class_=classes) if tag and text else text


def _verbatim(text: str) -> Markup:
    return element("pre", element("code", text.strip("\n")))


def _entries(block: Entries) -> Markup:
    """Names with what is said of them, paragraphs, or a table, by the number of columns."""
    count = len(block.rows[0])
    if block.is_code:
        return _verbatim("\n".join(row[-1][0] for row in block.rows))
    if block.stacked or count == 1:
        return join(element("p", join(map(_span, filter(itemgetter(0), row)), " ")) for row in block.rows)
    entries: list[list[Any]] = []
    for line in block.rows:
        first, *others = (_span(span) for span in line)
        if first or not entries:
            entries.append([first, *others])
        else:
            # What stands below an empty name belongs to the row above.
            entries[-1][-1] = [entries[-1][-1], element("br"), join(others, " ")]
    if count == 2:
        return element("dl", [(element("dt", name), element("dd", text)) for name, text in entries], class_="wide")
    return elements.table((), [row(*each) for each in entries], class_="words")


def _table(block: Table) -> Markup | None:
    header: Sequence[str] = block.header[0] if block.header else ()
    rows = [row(*(_span((entry, "")) for entry in each)) for each in block.rows]
    return elements.table(header, rows) if rows else None
