"""Gradients of which a record has some rows: those of large cases."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LISTED = 64
"""Rows of all gradients of a case together."""
EDGES = (0, 1, 31, 32, 63, 64, 95, 96, 127, 128, 129, 130)
"""Rows at the ends of blocks of 32, 64 and 128, and what is left over: always listed."""


def listed_rows(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The rows of each gradient that a record lists: the edges of blocks, and others at equal distances.

    `shapes`: shape by name of the gradient; vectors and numbers have no rows and are listed whole. Result: by name, in
    ascending order; together `LISTED`, as evenly as possible.
    """
    matrices = [name for name, shape in shapes.items() if len(shape) > 1]
    out = {}
    for k, name in enumerate(matrices):
        count = LISTED * (k + 1) // len(matrices) - LISTED * k // len(matrices)
        have = shapes[name][0]
        rows = {i for i in EDGES if i < have}
        # Places that halve what is left, until there are enough.
        others = (int(i) for i in np.argsort(_halving(have), kind="stable"))
        while len(rows) < min(count, have):
            rows.add(next(others))
        out[name] = tuple(sorted(rows))
    return out


def _halving(count: int) -> Any:
    """The bits of each index in reverse order, as a fraction: sorted by it, they spread evenly."""
    bits = max(1, (count - 1).bit_length())
    return np.array([int(f"{i:0{bits}b}"[::-1], 2) for i in range(count)])


def whole(given: Any, grad: Any, rows: Sequence[int] | None) -> Any:
    """A gradient of which an implementation gave the listed rows alone, with the reference in all others.

    `given`: flat, row by row, entries of any kind. `grad`: the reference. `rows`: those that the record lists; None for
    all. Result: flat; as it was given unless it has as many entries as the listed rows have.
    """
    if rows is None or grad is None or not isinstance(given, list):
        return given
    width = np.size(grad) // len(grad)
    if len(given) != len(rows) * width:
        return given
    out = np.ravel(grad).tolist()
    for place, row in enumerate(rows):
        out[row * width : (row + 1) * width] = given[place * width : (place + 1) * width]
    return out
