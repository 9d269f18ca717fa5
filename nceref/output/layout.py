"""Text in lines of a given width: words are wrapped, words that are too long are folded, columns stand side by side."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

WIDTH = 80
NARROWEST = 40
"""A narrower terminal breaks the lines of this width by itself, so that nothing is lost."""
WIDEST = 400
"""The largest width of a page."""
GAP = 2

Span = tuple[str, str]
"""Text and its style, words of `_CODES` such as ``bold red``, or nothing."""
Line = list[Span]

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
_CODES |= {"code": 0, "formula": 0, "link": 0}
"""SGR parameters of ECMA-48, section 8.3.117; what only other forms show has none."""
_WORD = re.compile(r"\s*\S+\s*")
_TAB = 8


def fitting(width: int) -> int:
    """The width that a page has on a terminal of that width: it has a floor and a ceiling."""
    return min(max(width, NARROWEST), WIDEST)


def painted(line: Line, *, color: bool) -> str:
    """A line without spaces at its end, in the colors of a terminal if `color`."""
    if not color:
        return "".join(text for text, _ in line).rstrip()
    return "".join(_painted(*span) for span in _stripped(line))


def _painted(text: str, style: str) -> str:
    codes = ";".join(str(_CODES[word]) for word in dict.fromkeys(style.split()) if _CODES[word])
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def _stripped(line: Line) -> Line:
    line = list(line)
    while line and not line[-1][0].rstrip():
        line.pop()
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else line


def cells(text: str) -> int:
    """Columns of a terminal that a text takes: two for a wide character, none for a mark on the one before."""
    return len(text) if text.isascii() else sum(map(_cells, text))


@cache
def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(parts: Sequence[Span], width: int) -> list[Line]:
    """Lines of at most `width` cells; a word that is longer than a line begins one and is folded."""
    parts = [(text.expandtabs(_TAB), style) for text, style in parts]
    text, at = "".join(part for part, _ in parts), 0
    lines = []
    for line in text.split("\n"):
        starts = _starts(line, width)
        for start, end in zip(starts, [*starts[1:], len(line)], strict=True):
            lines.append(_cut(parts, at + start, at + start + len(line[start:end].rstrip())))
        at += len(line) + 1
    return lines


def unwrapped(parts: Sequence[Span]) -> list[Line]:
    """Lines as they are, however long."""
    text, at = "".join(part for part, _ in parts), 0
    lines = []
    for line in text.split("\n"):
        lines.append(_cut(parts, at, at + len(line)))
        at += len(line) + 1
    return lines


def _cut(parts: Sequence[Span], start: int, end: int) -> Line:
    line, at = [], 0
    for text, style in parts:
        if piece := text[max(start - at, 0) : max(end - at, 0)]:
            line.append((piece, style))
        at += len(text)
    return line


def _starts(line: str, width: int) -> list[int]:
    """The index of the first character of each line."""
    starts, taken = [0], 0
    for word in _WORD.finditer(line):
        size = cells(word[0].rstrip())
        if taken + size <= width:
            taken += cells(word[0])
            continue
        # Where the first word folds, it begins the line that is there.
        folded = _folds(word[0], width) if size > width else [0]
        starts += [word.start() + fold for fold in folded if word.start() + fold]
        taken = cells(line[starts[-1] : word.end()])
    return starts


def _folds(word: str, width: int) -> Iterator[int]:
    """The indices at which the pieces of a word begin, each as long as fits."""
    taken = width
    for i, character in enumerate(word):
        if taken + (size := _cells(character)) > width:
            yield i
            taken = 0
        taken += size


def columns(
    lines: Iterable[Sequence[Span]],
    widths: Sequence[int],
    page: int,
    *,
    numbers: Sequence[bool] = (),
    indent: int = 0,
) -> Iterator[Line]:
    """Lines of columns with a gap between them; entries that are too long are folded.

    Each line has an entry a column. Where the widths are too large for `page`, the width of the page, columns of text
    get narrower. Columns of numbers stand to the right.
    """
    numbers = numbers or [False] * len(widths)
    widths = narrowed(widths, numbers, page - indent - GAP * (len(widths) - 1))
    for line in lines:
        entries = [wrapped([span], width) for span, width in zip(line, widths, strict=True)]
        for row in range(max(map(len, entries), default=0)):
            put: Line = [(" " * indent, "")]
            for i, (entry, width, is_number) in enumerate(zip(entries, widths, numbers, strict=True)):
                spans = entry[row] if row < len(entry) else []
                free = " " * (width - sum(cells(text) for text, _ in spans))
                gap = " " * GAP if i else ""
                put += [(f"{gap}{free}", ""), *spans] if is_number else [(gap, ""), *spans, (free, "")]
            yield put


def narrowed(widths: Sequence[int], numbers: Sequence[bool], room: int) -> list[int]:
    """Widths that fit, if they can: the widest column of text gets narrower, one of numbers only after them all."""
    new = list(widths)
    for kinds in ((False,), (False, True)):
        own = [i for i, is_number in enumerate(numbers) if is_number in kinds]
        while own and sum(new) > room and new[widest := max(own, key=new.__getitem__)] > 1:
            new[widest] -= 1
    return new
