"""HTML: elements whose text is escaped by its type, and a document in one file that loads nothing."""

import html
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

from nceref.output.text import harmless

LONGEST = 2000
"""Characters of a text that are shown; what was cut is counted."""
_VOID, _SHAPES = frozenset({"br", "meta"}), frozenset({"circle", "line", "path", "rect"})
"""Elements of HTML that have no end, and of SVG that have no content."""


class Markup(str):
    """Text that is HTML already; all other text is escaped where it is put into an element.

    >>> element("p", "a < b ", element("b", "c"), class_="note")
    '<p class="note">a &lt; b <b>c</b></p>'
    """

    __slots__ = ()


def element(name: str, /, *content: Any, **attributes: Any) -> Markup:
    """An element with that tag.

    Of the content, `Markup` stands as it is, None is nothing, lists and iterators are their entries, and all else is
    text. In the name of an attribute ``_`` is ``-``, and one at its end is left out; None and False: no attribute,
    True: one without a value.
    """
    named = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _VOID or name in _SHAPES:
        return Markup(f"<{name}{named}{'/' * (name in _SHAPES)}>")
    return Markup(f"<{name}{named}>{join(content)}</{name}>")


def _attribute(key: str, value: Any) -> str:
    written = key.removesuffix("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{value if isinstance(value, Markup) else escape(value)}"'


def join(content: Iterable[Any], between: str = "") -> Markup:
    """One piece of HTML after the other; see `element`."""
    return Markup(between.join(filter(None, map(_markup, content))))


def _markup(thing: Any) -> str:
    if thing is None or isinstance(thing, Markup):
        return thing or ""
    if isinstance(thing, str):
        return escape(thing)
    return join(thing) if isinstance(thing, Iterable) else escape(thing)


def escape(text: object, limit: int = LONGEST) -> Markup:
    r"""Text of anybody as HTML; what is not printable stands as Python writes it.

    >>> escape("<b>\x1b[31m"), escape("a" * 3000, 5)
    ('&lt;b&gt;\\x1b[31m', 'aaaaa [2,995 more characters are cut]')
    """
    return Markup(html.escape(harmless(shortened(str(text), limit))))


def unbroken(text: str) -> Markup:
    """A text, as `escape` has it, in which no number and no id with a number in it is broken over two lines.

    >>> unbroken("wrong on designed-0.3 alone")
    'wrong on <span class="whole">designed-0.3</span> alone'
    """
    words = re.split(r"(\s+)", shortened(text))
    return join(element("span", word, class_="whole") if _may_break(word) else word for word in words)


def _may_break(word: str) -> bool:
    """Whether a browser may end a line within a number: behind its hyphen."""
    return "-" in word and any(map(str.isdecimal, word))


def shortened(text: str, limit: int = LONGEST) -> str:
    """The beginning of a text, and how much of it was cut."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} more characters are cut]"


def id_of(name: str) -> str:
    """The id of what has that name: the same where that can be, so that a link can be written by hand.

    >>> id_of("aligned-0.3/value"), id_of("a b")
    ('aligned-0.3/value', 'a_b-806c5cd3')
    """
    plain = re.sub(r"[^\w./+-]", "_", name[:120], flags=re.ASCII) or "_"
    return plain if plain == name else f"{plain}-{crc32(name.encode(errors='backslashreplace')):08x}"


def link(name: str, *content: Any, **attributes: Any) -> Markup:
    """A link to what has that name in the same document."""
    return element("a", *content, href=f"#{quote(id_of(name))}", **attributes)


def table(header: Iterable[Any], rows: Iterable[Markup], **attributes: Any) -> Markup:
    """A table that scrolls by itself where it is wider than the page.

    One of the class ``words`` has sentences in its cells, and a narrow header.
    """
    heads = element("tr", [element("th", each, scope="col") for each in header])
    inner = element("table", element("thead", heads), element("tbody", list(rows)), **attributes)
    return element("div", inner, class_="scroll", tabindex="0")


def document(title: str, body: Markup, navigation: Iterable[Markup] = ()) -> str:
    """A whole document in one file, with the style of the package: light and dark, on a screen and on paper.

    The body stands in ``main``; `navigation` are links to its sections.
    """
    style = "".join(Path(__file__).with_name(f"{name}.css").read_text(encoding="utf-8") for name in ("palette", "html"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    page = (
        link("main", "Skip to the report", class_="skip"),
        element("header", element("p", "nceref", class_="brand"), element("nav", *navigation, aria_label="Sections")),
        element("main", body, id="main", tabindex="-1"),
    )
    return f"<!doctype html>\n{element('html', head, element('body', *page), lang='en')}\n"
