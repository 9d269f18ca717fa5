"""Markdown: tables and plain words as on GitHub, and formulas in a notebook."""

import re
from collections.abc import Iterable, Sequence

from nceref.output.text import harmless


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = ()) -> str:
    """One table, without a newline at its end.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str
        As long as the header; in an entry, a vertical bar is escaped, and a line end is a space.
    right : sequence of bool
        Which columns are aligned on the right; none if left out.

    Returns
    -------
    str

    >>> print(markdown_table(("loss", "cases"), [("dcl", "38")], right=(False, True)))
    | loss | cases |
    | --- | ---: |
    | dcl | 38 |
    """
    sides = ["---:" if side else "---" for side in right] or ["---"] * len(header)
    lines = (header, sides, *rows)
    return "\n".join(f"| {' | '.join(map(_entry, line))} |" for line in lines)


def typeset(plain: str, words: str, latex: str) -> dict[str, str]:
    """What a notebook shows of a thing with a formula: plain text, Markdown and LaTeX, by type."""
    formula = f"$$\n{latex}\n$$"
    return {"text/plain": plain, "text/markdown": f"{words}\n\n{formula}", "text/latex": formula}


def _entry(text: str) -> str:
    return harmless(" ".join(text.splitlines())).replace("|", "\\|")


def escaped(text: str) -> str:
    r"""Words that no reader of Markdown takes for markup; what stands between backticks is code, and stays.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    >>> print(escaped("s_ij < 1, see `a_b`"))
    s\_ij \< 1, see `a_b`
    """
    parts = re.split("(`[^`]+`)", text)
    return "".join(part if i % 2 else re.sub(r"[\\`*_{}\[\]<>#$~]", r"\\\g<0>", part) for i, part in enumerate(parts))
