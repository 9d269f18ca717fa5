"""Tables: rows of plain values and of published numbers beside the computed ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A published number beside the computed one.

    Attributes
    ----------
    published : str
        The text exactly as it is printed in the source.
    computed : float, tuple of float, or None
        None where the number cannot be reproduced offline.
    single : float, tuple of float, or None
        The same evaluated in float32, for the verdict ``float32 artifact``.
    """

    published: str
    computed: float | tuple[float, ...] | None
    single: float | tuple[float, ...] | None = None


@dataclass(frozen=True)
class Table:
    """One table: `rows()` returns a list of mappings from column to a plain value or to a `Cell`."""

    name: str
    title: str
    source: str
    columns: tuple[str, ...]
    rows: Callable[[], list[dict[str, Any]]]
    note: str = ""
