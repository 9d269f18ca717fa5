"""Sizes that a caller wants all cases to have: those of one shape, or multiples of a number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nceref.checks.cases import Geometry
from nceref.engine.arguments import integer
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.verification.corpus.geometries import PLACES

MOST_ROWS, MOST_FEATURES = 2048, 65536
"""The bounds take dense arrays of rows by rows."""


@dataclass(frozen=True)
class Resizing:
    """What becomes of the sizes of a suite.

    Attributes
    ----------
    multiple_of : int
        Every size but the number of views is rounded up to a multiple of it.
    rows, features : int
        N and D of all cases; 0 for those of the suite.
    """

    multiple_of: int = 1
    rows: int = 0
    features: int = 0

    def keeps(self, geometry: str) -> bool:
        """Whether a geometry is still what it is; one that is about its size alone is not."""
        rows, sizes, extra = PLACES[geometry]
        if geometry == "single":
            return self.multiple_of == 1 and not self.rows
        about_size = rows is PLACES["designed"][0] and not extra and not sizes.keys().isdisjoint("ND")
        return not self.rows or not about_size

    def place(self, geometry: Geometry, usual: Mapping[str, int]) -> Geometry:
        """The geometry with all its sizes as they are wanted.

        Parameters
        ----------
        geometry : tuple
            Rows, sizes of its own, and arguments.
        usual : mapping
            The sizes of the suite.
        """
        rows, own, extra = geometry
        sizes = {**usual, **own}
        if self.rows:
            sizes |= {"N": self.rows, "D": self.features, "E": self.features}
        rounded = {letter: -(-n // self.multiple_of) * self.multiple_of for letter, n in sizes.items() if letter != "V"}
        return rows, {**sizes, **rounded}, extra


NO_RESIZING = Resizing()


def parse_shape(name: str, value: Any) -> tuple[int, int]:
    """N and D, from text such as ``64,512`` or from two integers.

    Parameters
    ----------
    name : str
        Of the option.
    value : str or sequence of int

    Returns
    -------
    (int, int)

    Raises
    ------
    InputError
        If it is something else, or too large for dense bounds.
    """
    parts = value.split(",") if isinstance(value, str) else list(value)
    try:
        rows, features = (integer(name, int(part) if isinstance(part, str) else part, least=1) for part in parts)
    except (ValueError, InputError):
        msg = f"`{name}` must be two integers >= 1, rows and features, such as 64,512, got {shown(value)}"
        raise InputError(msg) from None
    if rows > MOST_ROWS or features > MOST_FEATURES:
        msg = f"`{name}` must be at most {MOST_ROWS},{MOST_FEATURES}, got {rows},{features}: bounds take rows by rows"
        raise InputError(msg)
    return rows, features
