"""What a convention can be set to, where its id leaves that open, and how a setting is told."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nceref.verification.conventions import CONVENTIONS

TINY = tuple(float(np.finfo(kind).tiny) for kind in (np.float32, np.float64, np.float16))
EPSILONS = (1e-8, 1e-6, 1e-7, 1e-10, 1e-12, 1e-5, 1e-9, 1e-16, 1e-20, *TINY)
_INSIDE = (
    "the ratio",
    "the denominator",
    "the denominator after a shift by the maximum",
    "the denominator after a shift by the maximum of the candidates",
)
_NARROW = tuple((-1 + gap, 1 - gap) for gap in (1e-7, 1e-6, 1e-4, 1e-3, 1e-8, 1e-5))
_CONSTANTS = (-10.0, -100.0, math.log(1e-45), -1e3, math.log(1e-9))
_LEAKS = (*((how, size) for size in _CONSTANTS for how in ("added", "set")), ("cosine", -1.0), ("cosine", 0.0))
_OVER = ("each", "joint")
_LITTLE = (1e-8, 1e-6, 1e-12, 1e-5, 1e-7, 1e-10, 1e-4)

VALUES: Mapping[str, tuple[Any, ...]] = {
    "epsilon-in-norm": tuple((where, size) for size in _LITTLE for where in ("added", "under the root")),
    "columns-normalized": _OVER,
    "matrix-normalized": _OVER,
    "temperature-missing-on-positive": ("numerator", "everywhere"),
    "temperature-missing-on-negatives": ("denominator", "negatives"),
    "temperature-ignored": (0.07, 0.1, 0.5, 0.05, 0.2),
    "temperature-off-by-a-factor": (10.0, 0.1, 2.0, 0.5, 100.0, 0.01),
    "temperature-after-softmax": ("log p / T", "log(p / T)", "T log p"),
    "temperature-clamped": (0.05, 0.01, 0.07, 0.1, 0.02, 0.001),
    "epsilon-in-temperature": _LITTLE,
    "scale-clamped": (100.0, math.log(100), 50.0, 10.0),
    "gradient-clamped": (100.0,),
    "mask-leaks": _LEAKS,
    "self-mask-shifted": (1, -1),
    "queue-dropped": ("in-batch", "own key only"),
    "a-negative-dropped": ("last", "first", "next"),
    "labels-shifted": (1, -1),
    "softmax-applied-twice": ("with masked entries", "of the candidates"),
    "label-smoothing": (0.1, 0.05, 0.2, 0.01, 1e-3, 1e-4),
    "softplus-threshold": (20.0,),
    "epsilon-in-log": tuple((where, size) for size in EPSILONS for where in _INSIDE),
    "value-saturates": EPSILONS,
    "similarity-clamped": ((0.0, math.inf), *_NARROW, *((-math.inf, high) for _, high in _NARROW[:3])),
    "noise-ratio-missing": ("everywhere", "in the logit", "in the mean"),
    "last-row-missing": ("divided by the rest", "divided by all"),
    "divided-by-n-twice": ("N", "rows"),
}
"""What a deviation can be set to, the most usual first; a convention that is not here is there or not."""

_TOLD: Mapping[str, Callable[[Any], str]] = {
    "epsilon-in-norm": lambda v: f"eps = {v[1]:g} {v[0]}",
    "temperature-clamped": lambda v: f"floor {v:g}",
    "epsilon-in-temperature": lambda v: f"eps = {v:g}",
    "label-smoothing": lambda v: f"label_smoothing = {v:g}",
    "softplus-threshold": lambda v: f"threshold {v:g}",
    "temperature-ignored": lambda v: f"temperature = {v:g}",
    "temperature-off-by-a-factor": lambda v: f"{v:g} times the temperature",
    "scale-clamped": lambda v: f"ceiling {v:g}",
    "mask-leaks": lambda v: _leak(*v),
    "epsilon-in-log": lambda v: f"eps = {v[1]:g} in {v[0]}",
    "value-saturates": lambda v: f"-log({v:g}) = {-math.log(v):g}",
    "similarity-clamped": lambda v: f"to [{v[0]:.10g}, {v[1]:.10g}]",
    "labels-shifted": lambda v: f"by {v:+d}",
}


def _leak(how: str, size: float) -> str:
    if how == "cosine":
        return f"masked similarities set to {size:g} before the temperature divides"
    return f"masked logits lowered by {-size:g}" if how == "added" else f"masked logits set to {size:g}"


class Option(NamedTuple):
    """One convention and what it is set to."""

    id: str
    value: Any = None

    @property
    def axis(self) -> str:
        """Two options of one axis exclude each other."""
        return CONVENTIONS[self.id].axis

    @property
    def rank(self) -> int:
        """Place in the closed list."""
        return _RANK[self.id]

    @property
    def told(self) -> str:
        """The setting in words, or empty."""
        if self.value is None:
            return ""
        return _TOLD[self.id](self.value) if self.id in _TOLD else str(self.value)


_RANK = {id: place for place, id in enumerate(CONVENTIONS)}


def options(ids: tuple[str, ...], most: int = 1000) -> Iterator[Option]:
    """Every setting of the conventions, in the order of the closed list, at most so many of each."""
    for id in sorted(set(ids), key=_RANK.__getitem__):
        yield from (Option(id, value) for value in VALUES.get(id, (None,))[:most])
