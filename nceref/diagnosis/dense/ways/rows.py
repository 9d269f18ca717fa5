"""What becomes of the rows of an input before they are compared."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Way, unit

Map = Callable[[Any, float], Any]


def _length(x: Any) -> Any:
    return np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def _centered(x: Any, axis: int) -> Any:
    return x - np.mean(x, axis=axis, keepdims=True)


def _standard(x: Any, axis: int, ddof: int = 0, epsilon: float = 0.0) -> Any:
    variance = np.var(x, axis=axis, keepdims=True, ddof=ddof)
    return _centered(x, axis) / np.sqrt(variance + epsilon)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def _half(x: Any, part: int) -> Any:
    h = x.shape[0] // 2
    return np.concatenate([x[:h], x[:h], x[2 * h :]] if part == 0 else [x[h:], x[h:]])[: len(x)]


MAPS: tuple[tuple[str, Map, str], ...] = (
    ("x/|x|", lambda x, c: unit(x), ""),
    ("x", lambda x, c: x, ""),
    ("x/|x|^2", lambda x, c: x / _length(x) ** 2, ""),
    ("x/sqrt(|x|)", lambda x, c: x / np.sqrt(_length(x)), ""),
    ("x/|x|_1", lambda x, c: x / np.sum(np.abs(x), axis=-1, keepdims=True), ""),
    ("x/max_d |x_d|", lambda x, c: x / np.max(np.abs(x), axis=-1, keepdims=True), ""),
    ("x/(|x| + {c})", lambda x, c: x / (_length(x) + c), REAL),
    ("x/sqrt(|x|^2 + {c})", lambda x, c: x / np.sqrt(_length(x) ** 2 + c), REAL),
    ("x/max(|x|, {c})", lambda x, c: x / np.maximum(_length(x), c), REAL),
    ("(x + {c})/|x + {c}|", lambda x, c: unit(x + c), REAL),
    ("x with the columns divided by their lengths", lambda x, c: unit(x, 0), ""),
    ("x divided by the length of the whole matrix", lambda x, c: unit(x, None), ""),
    ("x/|x| with the columns divided by their lengths afterwards", lambda x, c: unit(unit(x), 0), ""),
    ("x - mean_d x_d, then divided by its length", lambda x, c: unit(_centered(x, -1)), ""),
    ("x - mean_d x_d", lambda x, c: _centered(x, -1), ""),
    ("x/|x| less its mean over the batch", lambda x, c: _centered(unit(x), 0), ""),
    ("x less its mean over the batch, then divided by its length", lambda x, c: unit(_centered(x, 0)), ""),
    ("(x - mean_d x_d)/std_d", lambda x, c: _standard(x, -1), ""),
    ("(x - mean_d x_d)/std_d with D - 1", lambda x, c: _standard(x, -1, 1), ""),
    ("(x - mean_d x_d)/sqrt(var_d + {c})", lambda x, c: _standard(x, -1, 0, c), REAL),
    ("(x - mean_d x_d)/sqrt(var_d + {c}), then divided by its length", lambda x, c: unit(_standard(x, -1, 0, c)), REAL),
    ("(x - mean)/std over the batch", lambda x, c: _standard(x, 0), ""),
    ("(x - mean)/std over the batch with N - 1", lambda x, c: _standard(x, 0, 1), ""),
    ("(x - mean)/sqrt(var + {c}) over the batch", lambda x, c: _standard(x, 0, 0, c), REAL),
    ("(x - mean)/std over the batch, then divided by its length", lambda x, c: unit(_standard(x, 0)), ""),
    ("softmax_d(x)", lambda x, c: _softmax(x), ""),
    ("softmax_d(x), then divided by its length", lambda x, c: unit(_softmax(x)), ""),
    ("max(x, 0), then divided by its length", lambda x, c: unit(np.maximum(x, 0)), ""),
    ("|x_d|, then divided by its length", lambda x, c: unit(np.abs(x)), ""),
    ("tanh x", lambda x, c: np.tanh(x), ""),
    ("tanh x, then divided by its length", lambda x, c: unit(np.tanh(x)), ""),
    ("x_d |x_d|, then divided by its length", lambda x, c: unit(x * np.abs(x)), ""),
    ("sign x_d, divided by sqrt(D)", lambda x, c: np.sign(x) / np.sqrt(x.shape[-1]), ""),
    ("x/|x| without the last feature", lambda x, c: unit(x)[:, :-1], ""),
    ("x without the last feature, then divided by its length", lambda x, c: unit(x[:, :-1]), ""),
    ("x without the first feature, then divided by its length", lambda x, c: unit(x[:, 1:]), ""),
    ("the first {c} features of x, then divided by their length", lambda x, c: unit(x[:, : int(c)]), INTEGER),
    ("the first {c} features of x/|x|", lambda x, c: unit(x)[:, : int(c)], INTEGER),
    ("the first half of the features, then divided by their length",
     lambda x, c: unit(x[:, : max(1, x.shape[1] // 2)]), ""),
    ("x/|x| in blocks of {c} features, each of length 1", lambda x, c: _blocks(x, int(c)), INTEGER),
    ("x/|x| rounded to {c} digits", lambda x, c: np.round(unit(x), int(c)), INTEGER),
)  # fmt: skip
"""Text, function and constant; that of the usual reference first."""
ORDERS: tuple[tuple[str, Map, str], ...] = (
    ("x/|x|, rows in reverse order", lambda x, c: unit(x)[::-1], ""),
    ("x/|x|, rows moved on by {c}", lambda x, c: np.roll(unit(x), int(c), axis=0), INTEGER),
    ("x/|x|, rows moved back by {c}", lambda x, c: np.roll(unit(x), -int(c), axis=0), INTEGER),
    ("x/|x|, the second half of the rows first", lambda x, c: np.roll(unit(x), -(len(x) // 2), axis=0), ""),
    ("x/|x|, even rows first and then the odd ones", lambda x, c: unit(np.concatenate([x[::2], x[1::2]])), ""),
    ("x/|x|, the first half of the rows twice", lambda x, c: unit(_half(x, 0)), ""),
    ("x/|x|, the second half of the rows twice", lambda x, c: unit(_half(x, 1)), ""),
    ("x/|x|, the first row in the place of all", lambda x, c: unit(x[:1] + 0 * x), ""),
    ("x/|x|, the last row again in the place of the first", lambda x, c: unit(np.concatenate([x[-1:], x[1:]])), ""),
    ("x/|x|, the first row again in the place of the last", lambda x, c: unit(np.concatenate([x[:-1], x[:1]])), ""),
    ("x/|x|, rows in the order of their lengths", lambda x, c: unit(x)[np.argsort(_length(x)[:, 0])], ""),
    ("x/|x|, rows in the order of their first entries", lambda x, c: unit(x)[np.argsort(x[:, 0])], ""),
    ("(x^T read row by row as N x D)/|.|", lambda x, c: unit(np.reshape(x.T, x.shape)), ""),
)  # fmt: skip


_USUAL = (
    "x", "x/|x|", "x with the columns divided by their lengths", "x divided by the length of the whole matrix",
    "x/|x|, rows in reverse order",
)  # fmt: skip
"""What is tried of one input beside another part that differs."""


def _blocks(x: Any, size: int) -> Any:
    pieces = [x[:, k : k + size] for k in range(0, x.shape[1], max(size, 1))]
    return np.concatenate([unit(p) for p in pieces], axis=1)


def ways(names: tuple[str, ...], raw: bool) -> tuple[Way, ...]:
    """Ways of preparing the rows of inputs: all alike, or one input otherwise.

    `names`: inputs with rows. `raw`: whether the reference takes them as they are.
    """
    usual = MAPS[1] if raw else MAPS[0]
    out = [_way(usual, usual, range(len(names)), "")]
    every = [m for m in (*MAPS, *ORDERS) if m is not usual]
    out += [_way(usual, m, range(len(names)), "") for m in every]
    if len(names) > 1:
        # What is second is the more usual place of a mistake in the order.
        for k, name in reversed(list(enumerate(names))):
            out += [_way(usual, m, (k,), name) for m in every]
        out += [_way(usual, m, range(len(names) - 1), f"not in {names[-1]}") for m in MAPS[:2] if len(names) > 2]
        out += [_copied(usual, names, k, other) for k in range(len(names)) for other in range(len(names)) if k != other]
        out += [Way("x/|x|, " + text, _jointly(f)) for text, f in _JOINT]
    return tuple(out)


def _way(usual: Any, other: Any, where: Any, name: str) -> Way:
    chosen = set(where)

    def of(w: DenseBatch, c: float) -> Any:
        return np.concatenate([other[1](x, c) if k in chosen else usual[1](x, c) for k, x in enumerate(w.blocks)])

    text = f"{other[0]} in {name}, {usual[0]} elsewhere" if name and not name.startswith("not") else other[0]
    return Way(text, of, other[2], plain=not name or other[0] in _USUAL)


def _copied(usual: Any, names: tuple[str, ...], k: int, other: int) -> Way:
    def of(w: DenseBatch, c: float) -> Any:
        blocks = [w.blocks[other] if b == k else x for b, x in enumerate(w.blocks)]
        if blocks[k].shape != w.blocks[k].shape:
            raise ValueError
        return np.concatenate([usual[1](x, c) for x in blocks])

    return Way(f"{usual[0]}, with {names[other]} in the place of {names[k]}", of)


_JOINT: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("all inputs less their common mean first", lambda x: unit(_centered(x, 0))),
    ("less the mean of all inputs afterwards", lambda x: _centered(unit(x), 0)),
    ("each column over all inputs divided by its length instead", lambda x: unit(x, 0)),
    ("over the length of all inputs together instead", lambda x: unit(x, None)),
    ("columns over all inputs with mean 0 and variance 1 first", lambda x: unit(_standard(x, 0))),
    ("a row of the first input, then one of the second, in turn",
     lambda x: unit(x).reshape(2, -1, x.shape[1]).swapaxes(0, 1).reshape(x.shape)),
    ("the first halves of both inputs before the second ones", lambda x: unit(_by_halves(x))),
    ("even rows of all inputs before the odd ones", lambda x: unit(np.concatenate([x[::2], x[1::2]]))),
)  # fmt: skip


def _by_halves(x: Any) -> Any:
    """Rows as two processes gather them that have both inputs each."""
    n = len(x) // 2
    return np.concatenate([x[: n // 2], x[n : n + n // 2], x[n // 2 : n], x[n + n // 2 :]])


def _jointly(f: Callable[[Any], Any]) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: f(np.concatenate(list(w.blocks)))
