"""Inputs that the large cases of all losses share: small integers over 64, by a rule that any language can repeat.

A linear congruential generator, s -> (1664525 s + 1013904223) mod 2^32, begins at a seed of its own for every array;
the entry made of s is ((s >> 16) mod 127 - 63) / 64. Rows and their partners are alike: to an entry of a partner that
of the row is added. All numbers are exact in float64, float32, bfloat16 and float16, and so are their inner products in
float32, in whichever order they are added.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from nceref.cases.rounding import rounded
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature, judged_temperature
from nceref.spec import Array, Labels, Loss, Scalar

ROWS, WIDTH, CANDIDATES, CLASSES, GROUPS = 131, 97, 67, 97, 43
"""Prime numbers: no tile and no chunk divides them."""
TEMPERATURE = 0.5
"""Every candidate counts; much below, estimates of debiased losses are at their floor, and negatives do not count."""
FEW_BITS = "bfloat16"
"""Numbers of this format, within the range of float16, are numbers of all four formats."""
SHAPES = {
    "rows": (ROWS, WIDTH),
    "partners": (ROWS, WIDTH),
    "candidates": (CANDIDATES, WIDTH),
    "centers": (CLASSES, WIDTH),
}
"""Arrays of numbers of the generator, whose seeds are 1, 2, 3 and 4."""
_SHARED_LIKE = {"center": {"C": "centers"}, "counts": {"C": "counts", "N": "item_counts"}}
"""Arrays by what an input looks like, and the letter of its length."""


@cache
def shared_arrays() -> dict[str, Any]:
    """The arrays by name: float64, and integers for labels; read-only."""
    out: dict[str, Any] = {name: _entries(seed, shape) for seed, (name, shape) in enumerate(SHAPES.items(), 1)}
    out["partners"] = out["partners"] + out["rows"]
    out["counts"], out["item_counts"] = (1.0 + np.arange(count) % 50 for count in (CLASSES, ROWS))
    # Each group has three or four members.
    out["labels"] = np.arange(ROWS) * 7 % GROUPS
    out["candidate_labels"] = np.arange(CANDIDATES) * 5 % GROUPS
    for x in out.values():
        x.flags.writeable = False
    return out


def _entries(seed: int, shape: tuple[int, int]) -> Any:
    s, numbers = seed, []
    for _ in range(shape[0] * shape[1]):
        s = (1664525 * s + 1013904223) % 2**32
        numbers.append(((s >> 16) % 127 - 63) / 64)
    return np.array(numbers).reshape(shape)


def shared_by(loss: Loss) -> dict[str, tuple[str, int | None]]:
    """The one of the arrays that each array and label input of the first variant of a loss is, by name.

    Inputs with one axis of numbers have the column as well; None for the whole array.
    """
    out: dict[str, tuple[str, int | None]] = {}
    rows = iter(("rows", "partners"))
    for number, p in enumerate(loss.parameters):
        if not isinstance(p, Array | Labels) or not (p.required or loss.variants[0].get(p.name) is not None):
            continue
        if isinstance(p, Labels):
            out[p.name] = ("labels" if p.shape == ("N",) else "candidate_labels", None)
        elif p.like in _SHARED_LIKE:
            out[p.name] = (_SHARED_LIKE[p.like][p.shape[0]], None)
        elif len(p.shape) == 1:
            out[p.name] = ("rows" if p.shape == ("N",) else "candidates", number)
        else:
            out[p.name] = (next(rows) if p.shape[0] == "N" else "candidates", None)
    return out


def taken(arrays: Mapping[str, Any], name: str, column: int | None) -> Any:
    """One input out of the arrays."""
    return arrays[name] if column is None else arrays[name][:, column]


def shared_inputs(loss: Loss) -> dict[str, Any]:
    """All inputs of the large case of a loss, settings of its first variant included."""
    arrays, temperature = shared_arrays(), judged_temperature(loss, TEMPERATURE)
    out = {name: value for name, value in loss.variants[0].items() if value is not ...}
    for p in loss.parameters:
        if not isinstance(p, Scalar) or p.name in out:
            continue
        if p.name in INVERSE_TEMPERATURES:
            out[p.name] = at_temperature(p.name, temperature)
        elif p.default is ...:
            out[p.name] = float(np.round(np.mean(p.typical) * 64) / 64)
        elif isinstance(p.default, float):
            out[p.name] = rounded(p.default, FEW_BITS)
    return out | {name: taken(arrays, *where) for name, where in shared_by(loss).items()}
