"""Markdown: tables and plain words as on GitHub, and formulas in a notebook."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from nceref.errors import InputError
from nceref.output import files
from nceref.output.text import harmless


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = ()) -> str:
    """One table, without a newline at its end.

    Rows are as long as the header; in an entry, a vertical bar is escaped, and a line end is a space. `right` says
    which columns are aligned on the right; none if left out.
    """
    sides = ["---:" if side else "---" for side in right] or ["---"] * len(header)
    lines = (header, sides, *rows)
    return "\n".join(f"| {' | '.join(map(_entry, line))} |" for line in lines)


def markers(name: str) -> tuple[str, str]:
    """The comments between which a generated part of a page stands."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def update_part(path: str | os.PathLike[str], name: str, content: str) -> bool:
    """Write a generated part of a page between its `markers`, and return whether the file changed.

    Raises `InputError` if the markers are not there, once each and in order.
    """
    begin, end = markers(name)
    old = Path(path).read_text(encoding="utf-8")
    # What is before, marker, old part, marker, what is after.
    parts = re.split(f"({re.escape(begin)}|{re.escape(end)})", old)
    if parts[1::2] != [begin, end]:
        msg = f"{path} must hold {begin} and after it {end}, once each; add these lines where the part belongs"
        raise InputError(msg)
    new = f"{parts[0]}{begin}\n{content}\n{end}{parts[4]}"
    if new != old:
        files.write_text(path, new)
    return new != old


def typeset(plain: str, words: str, latex: str) -> dict[str, str]:
    """The forms of a formula with its words in a notebook, by type: plain text, Markdown and LaTeX."""
    formula = f"$$\n{latex}\n$$"
    return {"text/plain": plain, "text/markdown": f"{words}\n\n{formula}", "text/latex": formula}


def _entry(text: str) -> str:
    return harmless(" ".join(text.splitlines())).replace("|", "\\|")


def escaped(text: str) -> str:
    r"""Words that no reader of Markdown takes for markup; what stands between backticks is code, and stays."""
    parts = re.split("(`[^`]+`)", text)
    return "".join(part if i % 2 else _MARKUP.sub(r"\\\g<0>", part) for i, part in enumerate(parts))


_MARKUP = re.compile(r"[\\`*{}\[\]$~]|<(?=[A-Za-z/!?])|^(?:[#>]|[-+](?= ))|(?<!\w)_|_(?!\w)", re.MULTILINE)


def ticks_around(text: str, least: int = 1) -> str:
    """Backticks, `least` or more, of which the text has not so many in a row."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def code(text: str) -> str:
    """Text as code in a line, whatever stands in it."""
    ticks = ticks_around(text)
    pad = " " * (text[:1] == "`" or text[-1:] == "`")
    return f"{ticks}{pad}{text}{pad}{ticks}"
