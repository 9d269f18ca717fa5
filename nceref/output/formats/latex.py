"""A page as LaTeX; tables are as small, or turned, or continued on further pages, as their entries ask for."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from nceref.output.blocks import Block, Entries, Figure, Folded, Formula, Heading, Math, Paragraph, Part, Table, parts
from nceref.output.layout import Span
from nceref.output.streams import GREEK

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
    "°": r"$^\circ$",
    "ᵀ": r"$^\top$",
    "\u200b": r"\allowbreak{}",
}
_SIGNS |= {sign: f"\\{sign}" for sign in "#$%&_{}"} | {sign: f"${sign}$" for sign in "<>|"}
_SIGNS |= {letter: f"$\\{name}$" for letter, name in GREEK.items()}
_SIGNS |= {sign: f"$\\{name}$" for sign, name in {
    "±": "pm", "×": "times", "≤": "le", "≥": "ge", "→": "to", "∞": "infty", "√": "surd", "Σ": "sum", "Π": "prod",
    "≠": "ne", "≃": "simeq", "≈": "approx", "∂": "partial", "∇": "nabla", "∫": "int", "∈": "in", "∀": "forall",
    "←": "leftarrow", "↦": "mapsto", "⇒": "Rightarrow", "⇔": "Leftrightarrow", "⪯": "preceq", "‖": "Vert",
    "·": "cdot", "⊙": "odot", "ℓ": "ell", "✓": "surd", "✕": "times", "●": "bullet", "○": "circ", "▲": "triangle",
}.items()}  # fmt: skip
_SIGNS |= {"−": "$-$", "–": "--"}
_SIGNS |= {raised: f"$^{digit}$" for raised, digit in zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True)}


def latex(blocks: Iterable[Block]) -> str:
    """Blocks below one another; comments at the beginning name the packages that they need."""
    lines = _lines(blocks)
    packages = dict.fromkeys(line for line in lines if line.startswith(_PACKAGE))
    amsmath = [f"{_PACKAGE}amsmath}}"] if any("align*" in line for line in lines) else []
    return "\n".join([*amsmath, *packages, *(line for line in lines if line not in packages)]).lstrip("\n") + "\n"


def _lines(blocks: Iterable[Block]) -> list[str]:
    return [line for part in parts(blocks) for line in ["", *_part(part)]]


_PACKAGE = r"% \usepackage{"
_LEVELS = {1: "section*", 2: "subsection*"}


def _part(block: Part) -> list[str]:
    if isinstance(block, Heading):
        title = plain("".join(text for text, _ in block.spans))
        return [rf"\{_LEVELS.get(block.level, 'paragraph')}{{{title}}}"]
    if isinstance(block, Paragraph):
        return ["".join(map(_span, block.spans))] if block.wrap else _verbatim("".join(span[0] for span in block.spans))
    if isinstance(block, Formula):
        return [r"\begin{align*}", *(f"  {line}" for line in block.latex.splitlines()), r"\end{align*}"]
    if isinstance(block, Entries):
        return _entries(block)
    if isinstance(block, Table):
        return tabulated(block.header[0] if block.header else (), block.rows) if block.rows else []
    if isinstance(block, Figure | Folded):
        return _lines(block.plain)
    return _verbatim(block.text)


def _span(span: Span | Math) -> str:
    if isinstance(span, Math):
        return f"${span.latex}$"
    text, style = span
    # Spaces at the ends part a word from the next one.
    words = rf"\texttt{{{plain(text)}}}" if "code" in style.split() and text.strip() else plain(text)
    before, after = (" " * (text[:1].isspace()), " " * (text[-1:].isspace())) if words else ("", "")
    return f"{before}\\textbf{{{words}}}{after}" if "bold" in style.split() and words else f"{before}{words}{after}"


def _verbatim(text: str) -> list[str]:
    # Nothing else ends it.
    lines = text.replace(r"\end{verbatim}", r"\end {verbatim}").strip("\n").splitlines()
    return [r"\begin{verbatim}", *map(str.rstrip, lines), r"\end{verbatim}"]


def _entries(block: Entries) -> list[str]:
    """Names with what is said of them, or paragraphs where there are no names."""
    if block.is_code:
        return _verbatim("\n".join(row[-1][0] for row in block.rows))
    lines: list[str] = []
    named = bool(block.rows[0][0][0]) and len(block.rows[0]) > 1
    for (first, style), *others in block.rows:
        rest = ", ".join(_span(each) for each in others if each[0])
        if first and others:
            lines += [r"\begin{description}"] * (named and not lines) + [
                rf"\item[{{{plain(first) if first != '-' else '--'}}}] {rest}"
            ]
        else:
            lines += [*([""] if lines and not named else []), f"{_span((first, style))}{rest}"]
    return [*lines, r"\end{description}"] if named else lines


def tabulated(header: Sequence[str], body: Sequence[Sequence[str]], caption: str = "", label: str = "") -> list[str]:
    """A table in lines; with a caption it is a float where it fits a page."""
    names = header or ("",) * len(body[0])
    columns = [_column(name, entries) for name, entries in zip(names, zip(*body, strict=True), strict=True)]
    page, widths = _layout(columns)
    about = rf"\caption{{{plain(caption)}}}\label{{tab:{label}}}" if caption else ""
    write = _continued if page.turned or _height(body, widths) > _LINES else _float
    return write(
        page,
        about,
        "".join(_specified(column, width, page) for column, width in zip(columns, widths, strict=True)),
        [r"\hline", *([_line(map(_heading, header, columns)), r"\hline"] if header else [])],
        [_line(plain(_breakable(entry)) for entry in line) for line in body],
    )


def plain(text: str) -> str:
    """Text in which no letter has a meaning for LaTeX."""
    line = " ".join(text.split()).replace("<=", "≤").replace(">=", "≥")
    return "".join(_SIGNS.get(letter, letter) for letter in line)


def _breakable(text: str) -> str:
    """Text with a space of no width where the long name of a program or of a file may be broken."""

    def broken(word: re.Match[str]) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[/_])(?=\w)", "\u200b", word[0])

    return re.sub(rf"\S{{{_SHORT + 1},}}", broken, text)


def _column(name: str, entries: Sequence[str]) -> _Column:
    longest = max(map(len, entries))
    if all(re.fullmatch(r"[-+.\d e°=]*", entry) for entry in entries):
        longest = max([1, longest, *map(len, name.split())])
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
    around, opening = ("table", [rf"\centering{_style(page)}", caption]) if caption else ("center", [_style(page)])
    return [
        *_packages(columns), rf"\begin{{{around}}}", *opening,
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", *head, *body, r"\hline", r"\end{tabular}", rf"\end{{{around}}}",
    ]  # fmt: skip


def _continued(page: _Page, caption: str, columns: str, head: Sequence[str], body: Sequence[str]) -> list[str]:
    """A table of any height, with its header on each page."""
    lines = [
        rf"{{{_style(page)}\setlength{{\LTcapwidth}}{{\linewidth}}", rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        *([rf"{caption} \\"] if caption else []), *head, r"\endfirsthead", *head, r"\endhead", *body, r"\hline",
        r"\end{longtable}}",
    ]  # fmt: skip
    if not page.turned:
        return [*_packages(columns, "longtable"), *lines]
    return [*_packages(columns, "longtable", "pdflscape"), r"\begin{landscape}", *lines, r"\end{landscape}"]


def _style(page: _Page) -> str:
    return rf"\{page.size}\setlength{{\tabcolsep}}{{3pt}}"


def _packages(columns: str, *needed: str) -> list[str]:
    every = (*(("array",) if ">" in columns else ()), *needed)
    return [rf"% \usepackage{{{','.join(every)}}}"] if every else []
