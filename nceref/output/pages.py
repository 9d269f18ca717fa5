"""Pages of text for a terminal: a command describes a page, and it is laid out for the width that there is."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from nceref.output import layout
from nceref.output.layout import Line, Span, cells, columns, painted, unwrapped, wrapped
from nceref.output.text import harmless, without_commands

WIDTH = 80
NARROWEST = 40
"""A narrower terminal breaks the lines of this width by itself, so that nothing is lost."""
WIDEST = 400
"""The largest width of a page."""
GAP = layout.GAP

_READABLE = 24  # four words

Styles = Sequence[str] | Mapping[str, str]
"""Styles of the columns in order, or by entry."""


class Page:
    """Sentences, columns and tables, one below the other, as text of any width with or without colors.

    >>> page = Page()
    >>> page.print("Losses", style="bold")
    >>> page.grid([("dcl", "decoupled"), ("clip", "two directions")], 4, indent=GAP)
    >>> print(page.text(width=40), end="")
    Losses
      dcl   decoupled
      clip  two directions
    """

    def __init__(self) -> None:
        # Functions, not text: the width is there only when the page is laid out.
        self._blocks: list[Callable[[int], Iterable[Line]]] = []

    def __str__(self) -> str:
        return self.text()

    def text(self, *, width: int = WIDTH, color: bool = False) -> str:
        """Lay the page out.

        Parameters
        ----------
        width : int
            Columns of the terminal; see `fitting`.
        color : bool
            Whether to use the colors of the terminal.

        Returns
        -------
        str
            Lines without spaces at their ends, each with a newline.
        """
        text = "".join(f"{painted(line, color=color)}\n" for line in self._lines(fitting(width)))
        # A word that stood within a line may begin one now.
        return without_commands(text)

    def print(self, *parts: str | tuple[str, str], style: str = "", wrap: bool = True) -> None:
        """Add a paragraph; nothing is an empty line.

        Parameters
        ----------
        *parts : str or (str, str)
            Text that stands as it is, or text with a style of its own. As everywhere on a page, what is not
            printable is escaped.
        style : str
            Words such as ``bold``, ``dim``, ``red``, of all parts.
        wrap : bool
            False: a line that is longer than the page stays one line, so that it can be copied.
        """
        pairs = ((part, "") if isinstance(part, str) else part for part in parts)
        spans = [(harmless(text), f"{style} {own}".strip()) for text, own in pairs]
        self._blocks.append(lambda width: wrapped(spans, width) if wrap else unwrapped(spans))

    def verbatim(self, text: str) -> None:
        """Add text with its own lines, such as the source of a program."""
        self._blocks.append(lambda _: unwrapped([(harmless(text), "")]))

    def grid(self, lines: Iterable[Sequence[str]], *widths: int, styles: Styles = (), indent: int = 0) -> None:
        """Add columns of the given widths and a last one that takes the rest and is wrapped.

        Where the rest is too narrow to read, the entries are stacked.

        Parameters
        ----------
        lines : iterable of sequence of str
        *widths : int
            Of all columns but the last.
        styles : sequence or mapping
            Of each column, or of an entry.
        indent : int
        """
        entries = _harmless(lines)

        def block(page: int) -> Iterable[Line]:
            room = page - indent - sum(width + GAP for width in widths)
            if any(widths) and room < min(_READABLE, max((cells(line[-1]) for line in entries), default=0)):
                return _stack(page, entries, styles, indent)
            return columns(_styled(entries, styles), [*widths, room], page, indent=indent)

        self._blocks.append(block)

    def stack(self, lines: Iterable[Sequence[str]], *, styles: Styles = (), indent: int = 0) -> None:
        """Add each entry that is not empty on a line of its own, further in than the one before."""
        entries = _harmless(lines)
        self._blocks.append(lambda page: _stack(page, entries, styles, indent))

    def table(
        self,
        lines: Iterable[Sequence[str]],
        *,
        header: Sequence[Sequence[str]] = (),
        right: Sequence[bool] = (),
        widths: Sequence[int] = (),
        styles: Styles = (),
        indent: int = 0,
    ) -> None:
        """Add columns of entries; one that is too long is folded, never cut.

        Parameters
        ----------
        lines : iterable of sequence of str
        header : sequence of sequence of str
            Lines above them, dim.
        right : sequence of bool
            Whether a column stands to the right, as numbers do.
        widths : sequence of int
            By default those of the longest entries.
        styles : sequence or mapping
            Of each column, or of an entry.
        indent : int
        """
        header, entries = _harmless(header), _harmless(lines)
        count = len(widths) or max((len(line) for line in (*header, *entries)), default=0)
        own = widths or [max(cells(line[i]) for line in (*header, *entries)) for i in range(count)]
        numbers = right or [False] * count

        def block(page: int) -> Iterable[Line]:
            if header and not _numbers_fit(page, own, numbers, indent):
                return _records(page, header[0], entries, indent)
            shown = [*_styled(header, ("dim",) * count), *_styled(entries, styles)]
            return columns(shown, own, page, numbers=numbers, indent=indent)

        self._blocks.append(block)

    def add(self, other: "Page") -> None:
        """Add all of another page below."""
        self._blocks.append(other._lines)

    def fit(self, make: Callable[[int], "Page"]) -> None:
        """Add the page that `make` gives for a width in columns."""
        self._blocks.append(lambda width: make(width)._lines(width))

    def _lines(self, width: int) -> Iterator[Line]:
        for block in self._blocks:
            yield from block(width)


def fitting(width: int) -> int:
    """The width that a page has on a terminal of that width: it has a floor and a ceiling."""
    return min(max(width, NARROWEST), WIDEST)


def joined(pages: Iterable[Page]) -> Page:
    """Pages one below the other, with an empty line between them."""
    page = Page()
    for number, one in enumerate(pages):
        if number:
            page.print()
        page.add(one)
    return page


def _harmless(lines: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    return [tuple(map(harmless, line)) for line in lines]


def _stack(page: int, lines: Iterable[Sequence[str]], styles: Styles, indent: int) -> Iterator[Line]:
    for line in _styled(lines, styles):
        for depth, span in enumerate(line):
            if span[0]:
                left = indent + GAP * depth
                yield from columns([[span]], [page - left], page, indent=left)


def _numbers_fit(page: int, widths: Sequence[int], numbers: Sequence[bool], indent: int) -> bool:
    """Whether all numbers fit beside text of half its width; there is nothing to check in a table without numbers."""
    least = sum(
        width if is_number else min(width, _READABLE // 2) for width, is_number in zip(widths, numbers, strict=True)
    )
    return not any(numbers) or indent + least + GAP * (len(widths) - 1) <= page


def _records(page: int, names: Sequence[str], entries: Iterable[Sequence[str]], indent: int) -> Iterator[Line]:
    """The lines of a table one below the other: the first entry, then the others with the names of their columns."""
    for first, *others in entries:
        yield from _stack(page, [(first,)], (), indent)
        shown = [(name, entry) for name, entry in zip(names[1:], others, strict=True) if entry]
        widths = [max((cells(line[i]) for line in shown), default=0) for i in range(2)]
        yield from columns(_styled(shown, ("dim", "")), widths, page, indent=indent + GAP)


def _styled(lines: Iterable[Sequence[str]], styles: Styles) -> Iterator[list[Span]]:
    """The entries of each line with their styles."""
    for line in lines:
        if isinstance(styles, Mapping):
            yield [(entry, styles.get(entry, "")) for entry in line]
        else:
            yield list(zip(line, styles or [""] * len(line), strict=True))


def with_spaces(name: str) -> str:
    """An identifier as words: ``row_shift_invariant`` as ``row shift invariant``."""
    return name.replace("_", " ")
