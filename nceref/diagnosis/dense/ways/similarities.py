"""Which function of two rows their similarity is."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, similarities
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Way
from nceref.diagnosis.tape import Variable, edge

Function = Callable[[Any, Any, Any, float], Any]
"""Of inner products, of the rows of both sides, and of a constant."""


def _squares(s: Any, a: Any, b: Any) -> Any:
    return np.maximum(np.sum(a * a, axis=-1)[:, None] + np.sum(b * b, axis=-1) - 2 * s, 0.0)


def _distance(s: Any, a: Any, b: Any) -> Any:
    return np.sqrt(_squares(s, a, b))


def _angle(s: Any) -> Any:
    return np.arccos(np.clip(s, -1, 1))


FUNCTIONS: tuple[tuple[str, Function, str], ...] = (
    ("a.b", lambda s, a, b, c: s, ""),
    ("{c} a.b", lambda s, a, b, c: c * s, REAL),
    ("max(a.b, 0)", lambda s, a, b, c: np.maximum(s, 0), ""),
    ("a.b held between -1 and 1", lambda s, a, b, c: np.clip(s, -1, 1), ""),
    ("a.b held between -1 + 1e-7 and 1 - 1e-7", lambda s, a, b, c: np.clip(s, -1 + 1e-7, 1 - 1e-7), ""),
    ("max(a.b, {c})", lambda s, a, b, c: np.maximum(s, c), REAL),
    ("min(a.b, {c})", lambda s, a, b, c: np.minimum(s, c), REAL),
    ("a.b held between -{c} and {c}", lambda s, a, b, c: np.clip(s, -abs(c), abs(c)), REAL),
    ("a.b held between {c} and 1 - {c}", lambda s, a, b, c: np.clip(s, c, 1 - c), REAL),
    ("|a.b|", lambda s, a, b, c: np.abs(s), ""),
    ("-a.b", lambda s, a, b, c: -s, ""),
    ("(a.b)^2", lambda s, a, b, c: s * s, ""),
    ("(a.b)^3", lambda s, a, b, c: s**3, ""),
    ("a.b |a.b|", lambda s, a, b, c: s * np.abs(s), ""),
    ("(1 + a.b)/2", lambda s, a, b, c: (1 + s) / 2, ""),
    ("((1 + a.b)/2)^2", lambda s, a, b, c: ((1 + s) / 2) ** 2, ""),
    ("log((1 + a.b)/2)", lambda s, a, b, c: np.log((1 + s) / 2), ""),
    ("log(1 + a.b)", lambda s, a, b, c: np.log(1 + s), ""),
    ("1/(2 - a.b)", lambda s, a, b, c: 1 / (2 - s), ""),
    ("exp(a.b)", lambda s, a, b, c: np.exp(s), ""),
    ("tanh(a.b)", lambda s, a, b, c: np.tanh(s), ""),
    ("sigmoid(a.b)", lambda s, a, b, c: 1 / (1 + np.exp(-s)), ""),
    ("-|a - b|", lambda s, a, b, c: -_distance(s, a, b), ""),
    ("|a - b|", lambda s, a, b, c: _distance(s, a, b), ""),
    ("-|a - b|^2", lambda s, a, b, c: -_squares(s, a, b), ""),
    ("-|a - b|^2/2", lambda s, a, b, c: -_squares(s, a, b) / 2, ""),
    ("1 - |a - b|", lambda s, a, b, c: 1 - _distance(s, a, b), ""),
    ("1 - |a - b|/2", lambda s, a, b, c: 1 - _distance(s, a, b) / 2, ""),
    ("1/(1 + |a - b|)", lambda s, a, b, c: 1 / (1 + _distance(s, a, b)), ""),
    ("1/(1 + |a - b|^2)", lambda s, a, b, c: 1 / (1 + _squares(s, a, b)), ""),
    ("1/({c} + |a - b|)", lambda s, a, b, c: 1 / (c + _distance(s, a, b)), REAL),
    ("1/({c} + |a - b|^2)", lambda s, a, b, c: 1 / (c + _squares(s, a, b)), REAL),
    ("exp(-|a - b|)", lambda s, a, b, c: np.exp(-_distance(s, a, b)), ""),
    ("exp(-|a - b|^2)", lambda s, a, b, c: np.exp(-_squares(s, a, b)), ""),
    ("exp(-|a - b|^2/2)", lambda s, a, b, c: np.exp(-_squares(s, a, b) / 2), ""),
    ("-log(1 + |a - b|^2)", lambda s, a, b, c: -np.log1p(_squares(s, a, b)), ""),
    ("-log(1 + |a - b|)", lambda s, a, b, c: -np.log1p(_distance(s, a, b)), ""),
    ("-log |a - b|", lambda s, a, b, c: -np.log(_distance(s, a, b)), ""),
    ("-sqrt(|a - b|^2 + {c})", lambda s, a, b, c: -np.sqrt(_squares(s, a, b) + c), REAL),
    ("-(sum_d |a_d - b_d|)", lambda s, a, b, c: -np.sum(np.abs(a[:, None] - b[None]), axis=-1), ""),
    ("-(max_d |a_d - b_d|)", lambda s, a, b, c: -np.max(np.abs(a[:, None] - b[None]), axis=-1), ""),
    ("-|a - b|^2/D", lambda s, a, b, c: -_squares(s, a, b) / a.shape[1], ""),
    ("-|a - b + {c}|", lambda s, a, b, c: -np.sqrt(np.sum((a[:, None] - b[None] + c) ** 2, axis=-1)), REAL),
    ("-angle(a, b)", lambda s, a, b, c: -_angle(s), ""),
    ("1 - angle(a, b)/pi", lambda s, a, b, c: 1 - _angle(s) / np.pi, ""),
    ("1 - 2 angle(a, b)/pi", lambda s, a, b, c: 1 - 2 * _angle(s) / np.pi, ""),
    ("cos(2 angle(a, b))", lambda s, a, b, c: 2 * s * s - 1, ""),
    ("cos(angle(a, b)/2)", lambda s, a, b, c: np.cos(_angle(s) / 2), ""),
    ("a.b/D", lambda s, a, b, c: s / a.shape[1], ""),
    ("a.b/sqrt(D)", lambda s, a, b, c: s / np.sqrt(a.shape[1]), ""),
    ("a.b/(1 + |a.b|)", lambda s, a, b, c: s / (1 + np.abs(s)), ""),
    ("a.b/(|a|^2 + |b|^2 - a.b)", lambda s, a, b, c: s / (np.sum(a * a, -1)[:, None] + np.sum(b * b, -1) - s), ""),
    ("sum_d min(a_d, b_d)", lambda s, a, b, c: np.sum(np.minimum(a[:, None], b[None]), axis=-1), ""),
    ("sum_d |a_d b_d|", lambda s, a, b, c: np.abs(a) @ np.abs(b).T, ""),
    ("max_d a_d b_d", lambda s, a, b, c: np.max(a[:, None] * b[None], axis=-1), ""),
    ("a.b less its mean over the candidates", lambda s, a, b, c: s - np.mean(s, axis=1, keepdims=True), ""),
    ("a.b less its mean over the anchors", lambda s, a, b, c: s - np.mean(s, axis=0, keepdims=True), ""),
    ("a.b over the norm of its row", lambda s, a, b, c: s / np.sqrt(np.sum(s * s, axis=1, keepdims=True)), ""),
    ("a.b over the norm of its column", lambda s, a, b, c: s / np.sqrt(np.sum(s * s, axis=0, keepdims=True)), ""),
    ("a.b with mean 0 and variance 1 in each row", lambda s, a, b, c: _standard(s), ""),
    ("a.b from 0 to 1 in each row", lambda s, a, b, c: (s - np.min(s, axis=1, keepdims=True)) / (
        np.max(s, axis=1, keepdims=True) - np.min(s, axis=1, keepdims=True)), ""),
    ("a.b where it is above 0, {c} times as much elsewhere", lambda s, a, b, c: np.where(s > 0, s, c * s), REAL),
    ("|a.b|^{c} with the sign of a.b", lambda s, a, b, c: np.sign(s) * np.abs(s) ** c, REAL),
    ("a.b rounded to {c} digits", lambda s, a, b, c: np.round(s, int(c)), INTEGER),
)  # fmt: skip


def _standard(s: Any) -> Any:
    return (s - np.mean(s, axis=1, keepdims=True)) / np.std(s, axis=1, keepdims=True)


WHERE: tuple[tuple[str, Callable[[DenseBatch], Any]], ...] = (
    ("", lambda w: np.ones(w.own.shape, dtype=bool)),
    (" for positives, a.b for the others", lambda w: w.together),
    (" for negatives, a.b for positives", lambda w: ~w.together),
)


def ways() -> tuple[Way, ...]:
    """Ways of comparing rows, of all pairs or of some."""
    out = []
    for where, mask in WHERE:
        for text, f, constant in FUNCTIONS:
            if not where or text != "a.b":
                out.append(Way(text + where, _of(f, mask, bool(where)), constant, plain=not where))
    return tuple(out)


def _beside(blocks: Sequence[Any]) -> Any:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _of_one_input(w: DenseBatch, rows: Any) -> str:
    """The name of the input that rows are of, where it is one."""
    ends = np.cumsum([len(block) for block in w.blocks])
    first, last = np.searchsorted(ends, [np.min(rows), np.max(rows)], side="right")
    return w.rows[first] if first == last else ""


def _compared(w: DenseBatch, sides: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """Inner products of the rows on both sides, and these; on the tape with the edges that the dense forms have."""
    a, b = (w["rows of inputs"][rows] for rows in sides)
    if not isinstance(a, Variable):
        return a @ b.T, a, b
    one, other = (_of_one_input(w, rows) for rows in sides)
    a, b = edge(a, one and f"the rows of {one} as anchors"), edge(b, other and f"the rows of {other} as candidates")
    if isinstance(w.anchors, tuple):
        return a @ b.T, a, b
    return similarities(a, b, {}, w.positives, w.same_view, inputs=(one, other)), a, b


def _of(f: Function, mask: Callable[[DenseBatch], Any], some: bool) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        blocks = [_compared(w, sides) for sides in w.sides]
        made = _beside([f(*block, c) for block in blocks])
        return np.where(mask(w), made, _beside([s for s, *_ in blocks])) if some else made

    return of
