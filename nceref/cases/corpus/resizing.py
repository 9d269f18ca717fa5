"""Sizes that a caller wants all cases to have: those of one shape, or multiples of a number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nceref.cases.corpus.geometries import PLACES
from nceref.checks.cases import Geometry
from nceref.engine.arguments import integer
from nceref.errors import InputError
from nceref.output.text import shown

MOST_ROWS, MOST_FEATURES = 2048, 65536
"""The bounds take dense arrays of rows by rows, and of rows by classes."""


@dataclass(frozen=True)
class Resizing:
    """Changes to the sizes of a suite.

    Attributes
    ----------
    multiple_of : int
        Every size but the number of views is rounded up to a multiple of it.
    rows, features, classes : int
        N, D and C of all cases; 0 for those of the suite.
    """

    multiple_of: int = 1
    rows: int = 0
    features: int = 0
    classes: int = 0

    @property
    def _fixed(self) -> dict[str, int]:
        sizes = {"N": self.rows, "D": self.features, "E": self.features, "C": self.classes}
        return {letter: n for letter, n in sizes.items() if n}

    @property
    def words(self) -> str:
        """The sentence about sizes that all cases share; empty if there are none."""
        listed = [f"{letter} = {n}" for letter, n in self._fixed.items() if letter != "E"]
        return f"{', '.join(listed)} in all cases" if listed else ""

    def keeps(self, geometry: str) -> bool:
        """Whether a geometry is still what it is; one that is about its size alone is not."""
        rows, sizes, extra = PLACES[geometry]
        if geometry == "single":
            return self.multiple_of == 1 and not self.rows
        if geometry in ("d65", "d513"):
            return not self.features
        designed = rows is PLACES["designed"][0] and not extra
        about = sizes.keys() & ("NDC" if self.classes else "ND")
        return not (designed and about and about <= self._fixed.keys())

    def place(self, geometry: Geometry, usual: Mapping[str, int]) -> Geometry:
        """The geometry with its sizes changed as asked for.

        `geometry` is rows, sizes of its own, and arguments; `usual` are the sizes of the suite.
        """
        rows, own, extra = geometry
        sizes = {**usual, **own, **self._fixed}
        rounded = {letter: -(-n // self.multiple_of) * self.multiple_of for letter, n in sizes.items() if letter != "V"}
        return rows, {**sizes, **rounded}, extra


NO_RESIZING = Resizing()


def parse_shape(name: str, value: Any) -> tuple[int, ...]:
    """The sizes N and D, and C or 0, from text such as ``64,512`` or from integers.

    Errors name the option `name`. Raises `InputError` for anything else, and for sizes too large for dense bounds.
    """
    parts = value.split(",") if isinstance(value, str) else list(value)
    try:
        sizes = [integer(name, int(part) if isinstance(part, str) else part, least=1) for part in parts]
        rows, features, classes = sizes if len(sizes) == 3 else (*sizes, 0)
    except (ValueError, InputError):
        what = "integers >= 1, rows and features, such as 64,512, or 64,512,10 with the number of classes"
        msg = f"`{name}` must be {what}, got {shown(value)}"
        raise InputError(msg) from None
    if rows > MOST_ROWS or features > MOST_FEATURES or classes > MOST_ROWS:
        most = f"{MOST_ROWS},{MOST_FEATURES},{MOST_ROWS}"
        msg = f"`{name}` must be at most {most}, got {shown(value)}: bounds take rows by rows, and rows by classes"
        raise InputError(msg)
    return rows, features, classes
