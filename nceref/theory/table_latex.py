"""A table as LaTeX: a float for any document, without packages."""

import re
from collections.abc import Sequence

from nceref.theory import table_cells
from nceref.theory.table import Table
from nceref.theory.table_cells import Show

_PARAGRAPH = 30
"""Letters of an entry from which on its column is one of paragraphs."""
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
} | {sign: f"\\{sign}" for sign in "#$%&_{}"}


def latex(table: Table, show: Show = table_cells.full) -> str:
    """Write one table as a LaTeX float; if it compares numbers, with a line for each of them.

    Parameters
    ----------
    table : Table
    show : callable
        Writes a computed value.
    """
    rows = table.rows()
    header, body = table_cells.compared(table.columns, rows, show)
    lines = [[plain(entry) for entry in line] for line in (header, *body)]
    caption = ". ".join(part.rstrip(".") for part in (table.title, table.source) if part) + "."
    about = " ".join(filter(None, (caption, table_cells.tally(rows), table.note)))
    head, *rest = (f"{' & '.join(line)} \\\\" for line in lines)
    return "\n".join([
        r"\begin{table}", r"\centering\small", rf"\caption{{{plain(about)}}}", rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{_columns(body)}}}", r"\hline", head, r"\hline", *rest, r"\hline",
        r"\end{tabular}", r"\end{table}",
    ]) + "\n"  # fmt: skip


def plain(text: str) -> str:
    """Text in which no letter has a meaning for LaTeX."""
    return "".join(_SIGNS.get(letter, letter) for letter in " ".join(text.split()))


def _columns(lines: Sequence[Sequence[str]]) -> str:
    """Numbers to the right, words to the left, long ones in paragraphs."""
    kinds = []
    for column in zip(*lines, strict=True):
        if max(map(len, column)) >= _PARAGRAPH:
            kinds.append(rf"p{{{0.85 / len(lines[0]):.2f}\linewidth}}")
        else:
            kinds.append("r" if all(re.fullmatch(r"[-+.\d e°=]*", entry) for entry in column) else "l")
    return "".join(kinds)
