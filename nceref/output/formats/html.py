"""A page as an HTML document in one file that loads nothing, of any size or below one."""

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from nceref.output import html_elements as elements
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
from nceref.output.html_elements import (
    LONGEST,
    Markup,
    document,
    element,
    escape,
    id_of,
    join,
    link,
    shortened,
    unbroken,
)
from nceref.output.layout import Span
from nceref.output.mathml import formula

_CLASSES = {"dim": "dim", "green": "pass", "red": "fail", "yellow": "held"}
_COLUMNS = 100
"""Characters in a line of a formula that is set in letters of equal width."""
_LONGEST_CODE = 100_000
"""Characters of a program that are shown."""
_LINKS = 8
"""Parts of a page, up to which its head has a link to each."""
_ROOMS = ((sys.maxsize, LONGEST), (2000, 600), (150, 300), (40, 200), (8, 100), (2, 100), (0, 60))
"""Rows of each table of details, and letters of its entries: the first with which a document is small enough."""
_FEWEST = 30
"""Rows below which pictures are left out; their words have the numbers."""


def html(blocks: Iterable[Block], largest: float = math.inf, title: str = "") -> str:
    """The document; its title is by default the first heading.

    One that would have `largest` bytes or more has fewer details, and says how many it has not.
    """
    shown = parts(blocks)
    headings = [block for block in shown if isinstance(block, Heading)]
    sections = [block for block in headings if block.level == 2 and block.anchor]
    linked = sections if len(sections) <= _LINKS else []
    navigation = [link(block.anchor, _text(block.spans)) for block in linked]
    name = title or next((_text(block.spans) for block in headings), "nceref")
    text = ""
    for rows, letters in _ROOMS:
        writer = _Writer(rows, letters, frozenset(_anchors(shown, sys.maxsize, rows)))
        text = document(name, writer.body(shown), navigation)
        if len(text.encode()) < largest:
            break
    return text


def fragment(blocks: Iterable[Block]) -> str:
    """The page as an element of another document."""
    return element("div", _Writer().body(parts(blocks)), class_="nceref")


def _anchors(shown: Iterable[Part], rows: int, folded: int) -> Iterator[str]:
    """The names of what a document has, where its tables have so many rows, and those that are folded so many."""
    for block in shown:
        if isinstance(block, Folded):
            yield from _anchors(parts(block.blocks), folded, folded)
        elif isinstance(block, Table):
            yield from (name for row in block.rows[:rows] for entry in row for name in _names(entry, rows))
        elif isinstance(block, Heading) and block.anchor:
            yield block.anchor


def _names(entry: str, most: int) -> tuple[str, ...]:
    return entry.anchors[:most] if isinstance(entry, Entry) else ()


@dataclass(frozen=True)
class _Writer:
    """The writer of blocks, with the room for details, and the names that links may lead to."""

    rows: int = sys.maxsize
    letters: int = LONGEST
    anchors: frozenset[str] = frozenset()
    is_folded: bool = False

    def body(self, shown: Iterable[Part]) -> Markup:
        """The blocks, with pictures that follow one another side by side."""
        groups = groupby(shown, key=lambda block: isinstance(block, Figure))
        made = ((are_figures, join(map(self._part, group))) for are_figures, group in groups)
        return join(element("div", group, class_="plots") if are_figures else group for are_figures, group in made)

    def _part(self, block: Part) -> Markup | None:
        if isinstance(block, Heading):
            return element(f"h{block.level}", _text(block.spans), id=id_of(block.anchor) if block.anchor else None)
        if isinstance(block, Paragraph):
            return element("p", map(_span, block.spans)) if block.wrap else _verbatim(_text(block.spans))
        if isinstance(block, Formula):
            text = block.text(_COLUMNS)
            return _verbatim(text) if "\n" in text else element("p", formula(text))
        if isinstance(block, Entries | Table):
            return self._rows(block)
        if isinstance(block, Figure):
            picture = Markup(block.draw(self.anchors)) if self.rows >= _FEWEST else None
            return element("figure", element("figcaption", map(_span, block.spans)), picture)
        if isinstance(block, Folded):
            inside = replace(self, is_folded=True).body(parts(block.blocks))
            return element("details", element("summary", block.title), inside, open=block.is_open)
        return _verbatim(block.text, self.rows * self.letters if self.is_folded else _LONGEST_CODE)

    def _rows(self, block: Entries | Table) -> Markup:
        most = self.rows if self.is_folded else sys.maxsize
        cut = len(block.rows[most:])
        after = element("p", f"{cut} more do not fit in; --json FILE has all", class_="dim") if cut else None
        if isinstance(block, Table):
            return join([self._table(replace(block, rows=block.rows[:most])), after])
        return join([_entries(replace(block, rows=block.rows[:most])), after])

    def _table(self, block: Table) -> Markup | None:
        header: Sequence[str] = block.header[0] if block.header else ()
        rows = [element("tr", [self._cell(entry, is_first=not n) for n, entry in enumerate(each)])
                for each in block.rows]  # fmt: skip
        return elements.table(header, rows, class_=None if any(block.right) else "words") if rows else None

    def _cell(self, entry: str, is_first: bool) -> Markup:
        spans = entry.spans if isinstance(entry, Entry) else ((entry, ""),)
        # What is longest is cut where it becomes HTML.
        if self.is_folded and self.letters < LONGEST:
            spans = tuple((shortened(text, self.letters), style) for text, style in spans)
        content: Any = [_span(span) for span in spans]
        if isinstance(entry, Entry) and entry.to in self.anchors:
            content = link(entry.to, content)
        own, *others = map(id_of, _names(entry, self.rows)) if _names(entry, self.rows) else (None,)
        made = partial(element, "th", scope="row") if is_first else partial(element, "td")
        return made([element("span", id=each) for each in others], content, id=own)


def _text(spans: Iterable[Span | Math]) -> str:
    return "".join(span[0] for span in spans).strip()


def _span(span: Span | Math) -> Markup | str:
    if isinstance(span, Math):
        return formula(span.text)
    text, style = span
    words = style.split()
    if isinstance(text, Entry):
        return join(map(_span, text.spans))
    if "link" in words:
        return _link_of(text)
    if "formula" in words:
        return formula(text)
    if "code" in words:
        return element("code", text)
    classes = " ".join(_CLASSES[word] for word in words if word in _CLASSES) or None
    tag = "strong" if "bold" in words else "span" if classes else ""
    return element(tag, unbroken(text), class_=classes) if tag and text else unbroken(text)


def _link_of(name: str) -> Markup:
    """A thread of GitHub, ``owner/name#1``, as a link, and a URL as one that is called the source; else the text."""
    if match := _THREAD.fullmatch(name):
        return element("a", name, href=f"https://github.com/{match[1]}/issues/{match[2]}")
    return element("a", "Source", href=name) if URL.fullmatch(name) else escape(name)


_THREAD = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


def _verbatim(text: str, longest: int = _LONGEST_CODE) -> Markup:
    return element("pre", element("code", escape(text.strip("\n"), min(longest, _LONGEST_CODE))))


def _entries(block: Entries) -> Markup | None:
    """A list, names with what is said of them, paragraphs, or a table, by the names and the number of columns."""
    if not block.rows:
        return None
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
    if block.is_list:
        return element("ul", [element("li", text) for _, text in entries])
    if count == 2:
        return element("dl", [(element("dt", name), element("dd", text)) for name, text in entries], class_="wide")
    rows = [element("tr", element("th", first, scope="row"), [element("td", each) for each in others])
            for first, *others in entries]  # fmt: skip
    return elements.table((), rows, class_="words")
