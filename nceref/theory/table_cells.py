"""The entries of a table as words: what was published, what was computed, and how the two compare."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import pairwise
from math import isfinite
from typing import Any

from nceref.output.limits import DIGITS, stable
from nceref.output.words import counted
from nceref.theory.table import Cell
from nceref.theory.verdicts import Verdict, printed_numbers, verdict

PARTS = ("published", "computed", "verdict")
TableRow = Mapping[str, Any]
TableRows = Sequence[TableRow]
Show = Callable[..., str]
"""A function that writes a computed value, and may look at the text of the published number beside it."""

_FEW = 6
"""Significant digits of a number that has no published one beside it."""

SIGNS = {Verdict.AGREES: "=", Verdict.NOT_REPRODUCIBLE: "°"}
"""Signs in place of a computed number that would repeat the published one, or is not there."""


def cells(rows: TableRows) -> Iterator[Cell]:
    """The published numbers of a table."""
    return (value for row in rows for value in row.values() if isinstance(value, Cell))


def row_name(row: TableRow) -> str:
    """The first entry that is no published number, with its column: ``temperature 0.05``."""
    return next(f"{column} {entry}" for column, entry in row.items() if not isinstance(entry, Cell))


def compares(rows: TableRows) -> bool:
    """Whether some computed number says more than the published one beside it."""
    return any(verdict(cell) not in SIGNS for cell in cells(rows))


def split(columns: Sequence[str], rows: TableRows) -> tuple[Sequence[str], Sequence[str]]:
    """Part the columns before the first published number, which say what a row is about, from the others."""
    first = next(i for i, column in enumerate(columns) if any(isinstance(row.get(column), Cell) for row in rows))
    return columns[:first], columns[first:]


def lines(quantities: Sequence[str], row: TableRow, show: Show) -> list[tuple[str, ...]]:
    """Name, published, computed and verdict of each quantity that a row has.

    The function `show` writes a computed value.
    """
    return [(name, *three(row[name], show)) for name in quantities if row.get(name) is not None]


def three(value: Any, show: Show) -> tuple[str, str, str]:
    """Give what was published, what was computed, and the verdict; a plain value was computed."""
    if not isinstance(value, Cell):
        return "", show(value), ""
    return value.published, show(value.computed, value.published), verdict(value).value


def grid(columns: Sequence[str], rows: TableRows, show: Show) -> list[list[str]]:
    """One entry for each row and column; a published number with the sign of its verdict."""

    def entry(value: Any) -> str:
        return f"{value.published} {SIGNS.get(verdict(value), '')}" if isinstance(value, Cell) else show(value)

    return [[entry(row.get(column)) for column in columns] for row in rows]


def compared(columns: Sequence[str], rows: TableRows, show: Show) -> tuple[Sequence[str], list[list[str]]]:
    """Header and lines of a table; if it compares numbers, with a line for each of them."""
    if not compares(rows):
        return columns, grid(columns, rows, show)
    keys, quantities = split(columns, rows)
    body = [[*(show(row[key]) for key in keys), *line] for row in rows for line in lines(quantities, row, show)]
    return (*keys, "quantity", *PARTS), body


def unrepeated(grid: list[list[str]]) -> list[list[str]]:
    """Leave out what the leading columns repeat from the line above."""
    shown = grid[:1]
    for above, line in pairwise(grid):
        # A line that repeats all of the one above is shown whole: an empty line would look like none.
        same = next((i for i, pair in enumerate(zip(above, line, strict=True)) if pair[0] != pair[1]), 0)
        shown.append([""] * same + line[same:])
    return shown


def widths(lines: Iterable[Sequence[str]]) -> list[int]:
    """Length of the longest entry of each column."""
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def narrowest(lines: Iterable[Sequence[str]]) -> list[int]:
    """Length of the longest word of each column: with less, a number would be cut in two."""
    return widths([[max(entry.split(), key=len, default="") for entry in line] for line in lines])


def tally(rows: TableRows) -> str:
    """Say how many published numbers got which verdict, with its sign where signs are used."""
    count = Counter(verdict(cell) for cell in cells(rows))
    signs = {} if compares(rows) else SIGNS
    parts = [f"{count[v]} {v}" + (f" ({signs[v]})" if v in signs else "") for v in Verdict if count[v]]
    entries = counted(count.total(), "published entry", "published entries")
    return f"Verdicts on {entries}: {', '.join(parts)}." if parts else ""


def plain(value: Any) -> Any:
    """A value ready for JSON; what is not finite becomes None.

    A `Cell` is a mapping with ``published``, ``computed`` and ``verdict``; a tuple is a list.
    """
    if isinstance(value, Cell):
        return {"published": value.published, "computed": plain(value.computed), "verdict": verdict(value).value}
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    return value if not isinstance(value, float) else stable(value) if isfinite(value) else None


def full(value: Any, published: str = "") -> str:
    """A value with every digit that does not depend on the machine."""
    return _shown(value, lambda number: repr(stable(number)))


def short(digits: int) -> Show:
    """A function that writes numbers with so many significant digits, 12 at most; those with fewer stay as they are."""
    context = Context(prec=min(digits, DIGITS), rounding=ROUND_HALF_UP)

    def rounded(number: float) -> str:
        if not isfinite(number):
            return str(number)
        # The shortest decimal that is this float: 0.05 has one digit, not those of its binary fraction.
        decimal = context.plus(Decimal(repr(number)).normalize())
        if -5 < decimal.adjusted() < 16:
            return f"{decimal:f}"
        return f"{float(decimal):.{len(decimal.as_tuple().digits) - 1}e}"

    return lambda value, published="": _shown(value, rounded)


def as_printed(value: Any, published: str = "") -> str:
    """A value with as many significant digits as the published number has, or six: 0 has none."""
    numbers = printed_numbers(published) if published else ()
    digits = [len(number.as_tuple().digits) if number else _FEW for number in numbers]
    if isinstance(value, tuple | list) and len(value) == len(digits):
        return ", ".join(short(count)(one) for count, one in zip(digits, value, strict=True))
    return short(digits[0] if len(digits) == 1 else _FEW)(value)


def _shown(value: Any, number: Callable[[float], str]) -> str:
    """Numbers as `number` writes them, nothing for None, the rest as it is."""
    if isinstance(value, tuple | list):
        return ", ".join(_shown(entry, number) for entry in value)
    return number(value) if isinstance(value, float) else "" if value is None else str(value)
