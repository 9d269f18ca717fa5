"""Gradients that are right numbers in a wrong place: those of another input, of other rows, or what is made of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.diagnosis.gradient_fit import GradientFit, JudgedGradient

_OF_ROWS: Mapping[str, Callable[[Any], Any]] = {
    "that of the rows in reverse order": lambda g: g[::-1],
    "that of the row before": lambda g: np.roll(g, 1, axis=0),
    "that of the next row": lambda g: np.roll(g, -1, axis=0),
    "the mean over the rows, for each row": lambda g: np.broadcast_to(np.mean(g, axis=0), g.shape),
    "the sum over the rows, for each row": lambda g: np.broadcast_to(np.sum(g, axis=0), g.shape),
    "right but for its mean over the rows, which is subtracted": lambda g: g - np.mean(g, axis=0),
    "divided by its length": lambda g: g / (np.linalg.norm(g) or 1.0),
    "divided row by row by its length": lambda g: g / np.maximum(np.linalg.norm(g, axis=-1, keepdims=True), 1e-300),
    "the sign of what it should be": np.sign,
}
"""What a target may make of a right gradient, in words."""
_CUT = "cut to entries of at most "


def misplaced(plain: GradientFit, judged: Sequence[JudgedGradient]) -> str | None:
    """The misplaced gradient of one input on all cases, in words; None where it is none of these."""
    # What is cut somewhere has its largest entry at the limit.
    limit = max(float(np.max(np.abs(one.got), initial=0.0)) for one in judged)
    names = (*(words for words, _ in _made(plain, judged[0])), f"{_CUT}{limit:.3g}")
    return next((words for words in names if all(is_misplaced(words, plain, one) for one in judged)), None)


def is_misplaced(words: str, plain: GradientFit, one: JudgedGradient) -> bool:
    """Whether a gradient of another case is what is said of it."""
    limit = float(words.removeprefix(_CUT)) if words.startswith(_CUT) else 0.0
    made = np.clip(plain.expected(one), -limit, limit) if limit else dict(_made(plain, one)).get(words)
    allowed = 2 * np.max(plain.allowed(one), initial=0.0)
    return made is not None and bool(np.all(np.abs(one.got - made) <= allowed))


def _made(plain: GradientFit, one: JudgedGradient) -> Iterator[tuple[str, Any]]:
    grads = one.analysis.probe.grads
    own = plain.expected(one)
    others = [JudgedGradient(one.analysis, name, one.got, False) for name in grads if name != one.name]
    for other in others:
        want = plain.expected(other)
        if np.shape(want) == one.got.shape:
            yield f"that of {other.name}", want
            yield f"the mean of its own and that of {other.name}", (own + want) / 2
            yield f"the sum of its own and that of {other.name}", own + want
    if one.got.ndim > 1:
        yield from ((words, of(own)) for words, of in _OF_ROWS.items())
