"""A gradient as a sum of parts of the right one, each with a factor of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nceref.diagnosis.simple_numbers import recognized

PARTS: Mapping[str, str] = {
    "positives-detached": "through the positives",
    "denominator-detached": "through the denominator",
    "negatives-detached": "through the rows of the negatives",
    "candidates-detached": "of rows as candidates",
    "weights-detached": "through the weights",
}
"""What is left out under a convention of the gradient, in words; the rest is what is left."""
CARRIED = 4.0
"""Bounds by which a fit with two factors may be off, for each unit of them: they are read off three cases."""
_CASES = 3
_ALIKE = 1e-4
"""Parts whose smaller singular value is less than this share of the larger cannot be told apart."""
Pair = tuple[Any, Any]


def factors(got: Sequence[Any], parts: Sequence[Pair], allowed: Sequence[Any]) -> tuple[float, float] | None:
    """The factors of a part and of the rest, by least squares in units of the bounds.

    `got`: the gradient, case by case. `parts`: the part and the rest of the right one. `allowed`: bounds. Result:
    simple numbers where they are near to such; None where the two cannot be told apart, or both are 1.
    """
    weight = [1 / (np.ravel(a) + 1e-300) for a in allowed[:_CASES]]
    columns = [np.concatenate([np.ravel(pair[k]) * w for pair, w in zip(parts, weight, strict=False)]) for k in (0, 1)]
    matrix = np.stack(columns, axis=1)
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if len(matrix) < 3 or sizes[-1] <= _ALIKE * sizes[0]:
        return None
    b = np.concatenate([np.ravel(g) * w for g, w in zip(got, weight, strict=False)])
    solution = np.linalg.lstsq(matrix, b, rcond=None)[0]
    alpha, beta = (0.0 if abs(x) < 1e-9 else recognized(x)[0] for x in solution)
    return None if alpha == beta == 1 else (alpha, beta)


def is_sum(got: Any, pair: Pair, weights: tuple[float, float], allowed: Any) -> bool:
    """Whether a gradient is the sum of both parts with these factors, within what is allowed.

    `pair`: the part and the rest.
    """
    off = np.abs(got - weights[0] * pair[0] - weights[1] * pair[1])
    return bool(np.all(off <= CARRIED * (1 + abs(weights[0]) + abs(weights[1])) * allowed))


def in_words(which: str, weights: tuple[float, float]) -> str:
    """The sum in words: ``2 times its right part through the positives plus the rest``.

    `which`: a value of `PARTS`.
    """
    named: Sequence[tuple[float, str]] = ((weights[0], f"its right part {which}"), (weights[1], "the rest"))
    return " plus ".join(_times(weight) + words for weight, words in named if weight != 0)


def _times(weight: float) -> str:
    return "" if weight == 1 else f"{recognized(weight)[1]} times "
