"""A table as LaTeX: a float where it fits a page, else continued on the next, and turned where it is too wide."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from nceref.theory import table_cells
from nceref.theory.table import Table
from nceref.theory.table_cells import Show

_SHORT = 16
"""An entry or a word that has no more letters is not broken."""
_LINES = 45
"""A page has no more beside the caption."""
_GAP = 1.5
"""Letters between two columns: 6 pt."""


@dataclass(frozen=True)
class _Page:
    """A size of the letters, and how many digits a line has: of 345 pt as in the class article, of 550 pt if turned."""

    size: str
    letters: int
    turned: bool = False


_PAGES = (
    _Page("small", 74), _Page("footnotesize", 81),
    _Page("small", 118, turned=True), _Page("footnotesize", 129, turned=True), _Page("scriptsize", 138, turned=True),
)  # fmt: skip


@dataclass(frozen=True)
class _Column:
    """The letters of its longest entry and of what is not broken, and whether it has numbers only."""

    longest: int
    least: int
    numbers: bool


_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "°": r"$^\circ$",
    "±": r"$\pm$",
    "−": "$-$",
    "α": r"$\alpha$",
    "τ": r"$\tau$",
    "\u200b": r"\allowbreak{}",
} | {sign: f"\\{sign}" for sign in "#$%&_{}"}


def latex(table: Table, show: Show = table_cells.as_printed) -> str:
    """Write one table as LaTeX; if it compares numbers, with a line for each of them.

    A comment names the packages that it needs, if any.

    The function `show` writes a computed value.
    """
    rows = table.rows()
    header, body = table_cells.compared(table.columns, rows, show)
    columns = [_column(name, entries) for name, entries in zip(header, zip(*body, strict=True), strict=True)]
    page, widths = _layout(columns)
    caption = ". ".join(part.rstrip(".") for part in (table.title, table.source) if part) + "."
    about = plain(" ".join(filter(None, (caption, table_cells.tally(rows), table.note))))
    write = _continued if page.turned or _height(body, widths) > _LINES else _float
    lines = write(
        page,
        rf"\caption{{{about}}}\label{{tab:{table.name}}}",
        "".join(_specified(column, width, page) for column, width in zip(columns, widths, strict=True)),
        [r"\hline", _line(map(_heading, header, columns)), r"\hline"],
        [_line(plain(_breakable(entry)) for entry in line) for line in body],
    )
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text in which no letter has a meaning for LaTeX."""
    return "".join(_SIGNS.get(letter, letter) for letter in " ".join(text.split()))


def _breakable(text: str) -> str:
    """Text with a space of no width where the long name of a program or of a file may be broken."""

    def broken(word: re.Match[str]) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[/_])(?=\w)", "\u200b", word[0])

    return re.sub(rf"\S{{{_SHORT + 1},}}", broken, text)


def _column(name: str, entries: Sequence[str]) -> _Column:
    longest = max(map(len, entries))
    if all(re.fullmatch(r"[-+.\d e°=]*", entry) for entry in entries):
        longest = max(longest, *map(len, name.split()))
        return _Column(longest, longest, numbers=True)
    # TeX breaks a line at a hyphen too.
    parts = [len(part) for entry in (name, *entries) for part in re.split(r"[\s\u200b]|(?<=-)", _breakable(entry))]
    longest = max(longest, len(name))
    return _Column(longest, longest if longest <= _SHORT else max(parts), numbers=False)


def _layout(columns: Sequence[_Column]) -> tuple[_Page, list[float]]:
    """The first page that is wide enough, and the letters of each column: what the least leave goes to the longer."""
    least, wanted = sum(column.least for column in columns), sum(column.longest - column.least for column in columns)
    page, spare = _PAGES[-1], 0.0
    for page in _PAGES:
        spare = page.letters - _GAP * (len(columns) - 1) - least
        # A turned page is for what would else stand in columns of single words.
        if spare >= min(wanted, 0 if page.turned else least / 4):
            break
    share = min(max(spare, 0) / wanted, 1) if wanted else 1
    return page, [column.least + share * (column.longest - column.least) for column in columns]


def _height(body: Iterable[Sequence[str]], widths: Sequence[float]) -> int:
    """Lines of the page, as if every line were filled to its end."""
    return sum(max(ceil(len(entry) / width) for entry, width in zip(line, widths, strict=True)) for line in body)


def _specified(column: _Column, width: float, page: _Page) -> str:
    """Numbers to the right, words to the left, long ones in paragraphs."""
    if width < column.longest:
        return rf">{{\raggedright\arraybackslash}}p{{{width / page.letters:.3f}\linewidth}}"
    return "r" if column.numbers else "l"


def _heading(name: str, column: _Column) -> str:
    """The words of a name one below the other where the numbers are shorter."""
    words = [plain(word) for word in name.split()]
    stacked = r" \\ ".join(words)
    return rf"\shortstack[r]{{{stacked}}}" if column.numbers and len(words) > 1 else " ".join(words)


def _line(entries: Iterable[str]) -> str:
    return f"{' & '.join(entries)} \\\\"


def _float(page: _Page, caption: str, columns: str, head: Sequence[str], body: Sequence[str]) -> list[str]:
    return [
        *_packages(columns), r"\begin{table}", rf"\centering{_style(page)}", caption,
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", *head, *body, r"\hline", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip


def _continued(page: _Page, caption: str, columns: str, head: Sequence[str], body: Sequence[str]) -> list[str]:
    """A table of any height, with its header on each page."""
    lines = [
        rf"{{{_style(page)}\setlength{{\LTcapwidth}}{{\linewidth}}", rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        rf"{caption} \\", *head, r"\endfirsthead", *head, r"\endhead", *body, r"\hline", r"\end{longtable}}",
    ]  # fmt: skip
    if not page.turned:
        return [*_packages(columns, "longtable"), *lines]
    return [*_packages(columns, "longtable", "pdflscape"), r"\begin{landscape}", *lines, r"\end{landscape}"]


def _style(page: _Page) -> str:
    return rf"\{page.size}\setlength{{\tabcolsep}}{{3pt}}"


def _packages(columns: str, *needed: str) -> list[str]:
    every = (*(("array",) if ">" in columns else ()), *needed)
    return [rf"% \usepackage{{{','.join(every)}}}"] if every else []
