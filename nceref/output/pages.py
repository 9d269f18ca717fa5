"""Pages of text for a terminal: a command describes a page, and it is laid out for the width that there is."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nceref.output.text import harmless, without_commands

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
NARROWEST = 40
"""A narrower terminal breaks the lines of this width by itself, so that nothing is lost."""
WIDEST = 400
"""No line is longer; every line is filled up to the width of the page while it is laid out."""
GAP = 2

_READABLE = 24  # four words
_HEIGHT = 25  # of nothing that is printed, but rich has to be given one

Styles = Sequence[str] | Mapping[str, str]
"""One for each column, or by entry."""


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
        self._blocks: list[Callable[[Console], None]] = []

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
        from rich.console import Console

        paper, system = io.StringIO(), "standard" if color else None
        # Text stands as it is: [0, 1] is no markup, and :x: no picture.
        plain: Any = dict.fromkeys(("markup", "highlight", "emoji"), False)
        # Rich would look for a size of its own, and read the environment for it.
        size: Any = {"width": fitting(width), "height": _HEIGHT, "_environ": {}, "legacy_windows": False}
        options: Any = {"color_system": system, "force_terminal": color, "force_jupyter": False, **plain}
        self._put(Console(file=paper, **size, **options))
        # Rich fills columns with spaces up to the width of the page.
        text = "".join(f"{line.rstrip()}\n" for line in paper.getvalue().splitlines())
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
            As Rich names it: ``bold``, ``dim``, ``red``.
        wrap : bool
            False: a line that is longer than the page stays one line, so that it can be copied.
        """
        safe = [harmless(part) if isinstance(part, str) else (harmless(part[0]), part[1]) for part in parts]

        def block(console: "Console") -> None:
            from rich.text import Text

            console.print(Text.assemble(*safe), style=style, soft_wrap=not wrap)

        self._blocks.append(block)

    def verbatim(self, text: str) -> None:
        """Add text with its own lines, such as the source of a program."""
        self._blocks.append(lambda console: console.out(harmless(text), highlight=False))

    def grid(self, lines: Iterable[Sequence[str]], *widths: int, styles: Styles = (), indent: int = 0) -> None:
        """Add columns of the given widths and a last one that takes the rest and is wrapped.

        Where the rest is too narrow to read, the entries are stacked.

        Parameters
        ----------
        lines : iterable of sequence of str
        *widths : int
            Of all columns but the last; 0 takes no room.
        styles : sequence or mapping
            Of each column, or of an entry.
        indent : int
        """
        entries = _harmless(lines)

        def block(console: "Console") -> None:
            room = console.width - indent - sum(width + GAP for width in widths if width)
            if any(widths) and room < min(_READABLE, max((len(line[-1]) for line in entries), default=0)):
                _stack(console, entries, styles, indent)
            else:
                columns = [*({"width": width} for width in widths), {"ratio": 1}]
                _columns(console, entries, columns, styles, indent, expand=True)

        self._blocks.append(block)

    def stack(self, lines: Iterable[Sequence[str]], *, styles: Styles = (), indent: int = 0) -> None:
        """Add each entry that is not empty on a line of its own, further in than the one before."""
        entries = _harmless(lines)
        self._blocks.append(lambda console: _stack(console, entries, styles, indent))

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
        fitting = widths or [max(len(line[i]) for line in (*header, *entries)) for i in range(count)]
        numbers = list(right or [False] * count)
        columns = [_column(width, is_number) for width, is_number in zip(fitting, numbers, strict=True)]

        def block(console: "Console") -> None:
            if header and not _numbers_fit(console, fitting, numbers, indent):
                _records(console, header[0], entries, indent)
                return
            if header:
                _columns(console, header, columns, ("dim",) * count, indent)
            if entries:
                _columns(console, entries, columns, styles, indent)

        self._blocks.append(block)

    def add(self, other: "Page") -> None:
        """Add all of another page below."""
        self._blocks.append(other._put)

    def fit(self, layout: Callable[[int], "Page"]) -> None:
        """Add the page that `layout` makes for a width in columns."""
        self._blocks.append(lambda console: layout(console.width)._put(console))

    def _put(self, console: "Console") -> None:
        for block in self._blocks:
            block(console)


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


def _stack(console: "Console", lines: Iterable[Sequence[str]], styles: Styles, indent: int) -> None:
    for line in lines:
        for depth, (entry, style) in enumerate(_styled(line, styles)):
            if entry:
                _columns(console, [(entry,)], [{"ratio": 1}], (style,), indent + GAP * depth, expand=True)


def _column(width: int, is_number: bool) -> dict[str, Any]:
    # Rich makes the widest columns narrower where a page is too narrow: text is folded, a number is not.
    return {"width": width, "min_width": width, "justify": "right"} if is_number else {"width": width}


def _numbers_fit(console: "Console", widths: Sequence[int], numbers: Sequence[bool], indent: int) -> bool:
    """Whether all numbers fit beside text of half its width; there is nothing to check in a table without numbers."""
    least = sum(
        width if is_number else min(width, _READABLE // 2) for width, is_number in zip(widths, numbers, strict=True)
    )
    return not any(numbers) or indent + least + GAP * (len(widths) - 1) <= console.width


def _records(console: "Console", names: Sequence[str], entries: Iterable[Sequence[str]], indent: int) -> None:
    """Each line of a table by itself: its first entry, and below it the others with the names of their columns."""
    for first, *others in entries:
        _columns(console, [(first,)], [{"ratio": 1}], ("",), indent, expand=True)
        shown = [(name, entry) for name, entry in zip(names[1:], others, strict=True) if entry]
        _columns(console, shown, [{}, {}], ("dim", ""), indent + GAP)


def _columns(
    console: "Console",
    lines: Iterable[Sequence[str]],
    columns: Iterable[Mapping[str, Any]],
    styles: Styles,
    indent: int,
    *,
    expand: bool = False,
) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    # The gap is within the entries: before 14.3, Rich put its own behind the last column too.
    table = Table.grid(expand=expand)
    for i, column in enumerate(columns):
        wider = {name: size + GAP for name, size in column.items() if name in ("width", "min_width") and i}
        table.add_column(**{"overflow": "fold", **column, **wider})
    for line in lines:
        entries = [Text(entry, style=style) for entry, style in _styled(line, styles)]
        table.add_row(*entries[:1], *(Padding(entry, (0, 0, 0, GAP)) for entry in entries[1:]))
    console.print(Padding(table, (0, 0, 0, indent)))


def _styled(line: Sequence[str], styles: Styles) -> Iterable[tuple[str, str]]:
    if isinstance(styles, Mapping):
        return ((entry, styles.get(entry, "")) for entry in line)
    return zip(line, styles or [""] * len(line), strict=True)


def with_spaces(name: str) -> str:
    """An identifier as words: ``row_shift_invariant`` as ``row shift invariant``."""
    return name.replace("_", " ")
