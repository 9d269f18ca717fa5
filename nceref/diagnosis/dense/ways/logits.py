"""What is made of similarities before they are exponentiated: temperature, margins, numbers of classes."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.ways.way import REAL, Stage, Switch, Way, largest, log_of

Curve = Callable[[Any, float], Any]
"""Of cosines and the margin."""


def _angle(s: Any) -> Any:
    return np.arccos(np.clip(s, -1, 1))


CURVES: Mapping[str, Curve] = {
    "cos theta": lambda s, m: s,
    "cos(theta + m)": lambda s, m: np.cos(_angle(s) + m),
    "cos theta cos m - sqrt(max(1 - cos^2 theta, 0)) sin m": lambda s, m: (
        s * np.cos(m) - np.sqrt(np.maximum(1 - s * s, 0)) * np.sin(m)
    ),
    "cos theta cos m - sqrt(|1 - cos^2 theta|) sin m": lambda s, m: (
        s * np.cos(m) - np.sqrt(np.abs(1 - s * s)) * np.sin(m)
    ),
    "cos theta - m": lambda s, m: s - m,
    "cos theta - m sin m": lambda s, m: s - m * np.sin(m),
    "cos theta - sin m": lambda s, m: s - np.sin(m),
    "cos(theta - m)": lambda s, m: np.cos(_angle(s) - m),
    "cos(m theta)": lambda s, m: np.cos(m * _angle(s)),
    "cos((1 + m) theta)": lambda s, m: np.cos((1 + m) * _angle(s)),
    "cos(2 theta)": lambda s, m: 2 * s * s - 1,
    "cos(min(theta + m, pi))": lambda s, m: np.cos(np.minimum(_angle(s) + m, np.pi)),
    "-cos(theta + m)": lambda s, m: -np.cos(_angle(s) + m),
    "-2 - cos(theta + m)": lambda s, m: -2 - np.cos(_angle(s) + m),
    "-1": lambda s, m: -1 + 0 * s,
    "0": lambda s, m: 0 * s,
    "cos theta + m": lambda s, m: s + m,
    "cos theta - 2 m": lambda s, m: s - 2 * m,
    "cos theta - m^2": lambda s, m: s - m * m,
    "cos theta - m cos m": lambda s, m: s - m * np.cos(m),
    "cos theta cos m": lambda s, m: s * np.cos(m),
    "m cos theta": lambda s, m: s * m,
    "(1 - m) cos theta": lambda s, m: s * (1 - m),
    "cos theta/m": lambda s, m: s / m,
    "-cos theta": lambda s, m: -s,
    "cos(theta + m) - m": lambda s, m: np.cos(_angle(s) + m) - m,
    "cos(theta + m) - 1": lambda s, m: np.cos(_angle(s) + m) - 1,
    "cos(theta + 2 m)": lambda s, m: np.cos(_angle(s) + 2 * m),
    "cos(theta + m/2)": lambda s, m: np.cos(_angle(s) + m / 2),
    "cos(min(theta, pi/2) + m)": lambda s, m: np.cos(_angle(np.maximum(s, 0)) + m),
    "cos(min(theta, 1) + m)": lambda s, m: np.cos(np.minimum(_angle(s), 1) + m),
    "cos(min(theta + m, 1))": lambda s, m: np.cos(np.minimum(_angle(s) + m, 1)),
    "cos(max(theta, 1) + m)": lambda s, m: np.cos(np.maximum(_angle(s), 1) + m),
    "cos(max(theta + m, 1))": lambda s, m: np.cos(np.maximum(_angle(s) + m, 1)),
    "cos(min(theta + m, pi/2))": lambda s, m: np.cos(np.minimum(_angle(s) + m, np.pi / 2)),
    "cos theta cos m - sin^2 theta sin m": lambda s, m: s * np.cos(m) - (1 - s * s) * np.sin(m),
    "cos theta cos m - |cos theta| sin m": lambda s, m: s * np.cos(m) - np.abs(s) * np.sin(m),
    "cos theta cos m - (1 - cos theta) sin m": lambda s, m: s * np.cos(m) - (1 - s) * np.sin(m),
    "cos theta sin m - sin theta cos m": lambda s, m: s * np.sin(m) - np.sqrt(np.maximum(1 - s * s, 0)) * np.cos(m),
    "sin(theta + m)": lambda s, m: np.sin(_angle(s) + m),
    "cos theta - m pi/180": lambda s, m: s - m * np.pi / 180,
    "1 - (theta + m)^2/2": lambda s, m: 1 - (_angle(s) + m) ** 2 / 2,
    "-(theta + m)": lambda s, m: -(_angle(s) + m),
    "pi/2 - theta - m": lambda s, m: np.pi / 2 - _angle(s) - m,
    "1 - 2 (theta + m)/pi": lambda s, m: 1 - 2 * (_angle(s) + m) / np.pi,
    "(cos theta - m)^2": lambda s, m: (s - m) ** 2,
    "max(cos theta - m, 0)": lambda s, m: np.maximum(s - m, 0),
    "max(cos(theta + m), 0)": lambda s, m: np.maximum(np.cos(_angle(s) + m), 0),
    "max(cos theta, 0)": lambda s, m: np.maximum(s, 0),
    "cos theta + m cos theta": lambda s, m: s + m * s,
    "cos theta + m (1 + cos theta)": lambda s, m: s + m * (1 + s),
    "cos theta - m (1 - cos theta)": lambda s, m: s - m * (1 - s),
    "cos^2 theta": lambda s, m: s * s,
}
"""What becomes of the cosine of the target, or of another class."""
POINTS: Mapping[str, Curve] = {
    "0": lambda s, m: 0.0,
    "m": lambda s, m: m,
    "-m": lambda s, m: -m,
    "cos m": lambda s, m: np.cos(m),
    "sin m": lambda s, m: np.sin(m),
    "-cos m": lambda s, m: -np.cos(m),
    "1 - m": lambda s, m: 1 - m,
    "1/2": lambda s, m: 0.5,
    "cos(pi/2 - m)": lambda s, m: np.sin(m),
    "cos(pi - 2 m)": lambda s, m: -np.cos(2 * m),
    "the largest of the others": lambda s, m: np.nan,
}
"""Cosines at which one curve takes over from another."""


# There are many, and every loss with a margin has the same.
@cache
def curves(usual: str, other: str = "") -> Stage:
    """Logits of a target with a margin, beside those of the other classes.

    `usual`: of `CURVES`: what the reference makes of the target. `other`: what it makes of it below cos(pi - m).
    """
    first = _curve(usual) if not other else _switched(usual, other, "-cos m")
    out = [Way(_text(usual, other), lambda w, c: first(w))]
    single = tuple(range(1, 1 + len(CURVES)))
    out += [Way(f"s ({name}) for the target", _plain(_curve(name))) for name in CURVES]
    for name in CURVES:
        out.append(Way(f"s ({name}) for the other classes", _others(first, name)))
        out.append(Way(f"s ({name}) for every class", _every(name)))
        out.append(Way(f"{name} for the target", _plain(_curve(name, False)), plain=False))
        out.append(Way(f"{{c}} s ({name}) and 1 - {{c}} times the reference's, for the target", _mixed(first, name),
                       REAL))  # fmt: skip
    out.append(Way("s (theta + m) for the target, s theta for the other classes", _angles, plain=False))
    out += [Way(text, of(first), constant, plain) for text, of, constant, plain in _CHANGED]
    out += [_tailed(above, tail, point) for above in dict.fromkeys((usual, "cos theta")) for tail in TAILS
            for point in POINTS]  # fmt: skip
    start = len(out)
    out += [_switching(a, b, point) for a in CURVES for b in CURVES for point in POINTS]
    above_point = tuple(map(_above, POINTS))
    return Stage("logits", "l_ik = ", tuple(out), switch=Switch(single, above_point, start))


def _plain(f: Callable[[DenseBatch], Any]) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: f(w)


def _above(point: str) -> Callable[[DenseBatch], Any]:
    def above(w: DenseBatch) -> Any:
        return np.any(w.together & (w["similarities"] > _point(w, point)), axis=1)

    return above


def _text(usual: str, other: str) -> str:
    return f"s ({usual}) for the target" if not other else f"s ({usual}) if cos theta > -cos m, else s ({other})"


def _curve(name: str, scaled: bool = True) -> Callable[[DenseBatch], Any]:
    def of(w: DenseBatch) -> Any:
        s, m = w["similarities"], w.inputs["margin"]
        x = np.where(w.together, CURVES[name](s, m) * (1 if scaled else 1 / w.scale), s)
        return _both(x * w.scale)

    return of


def _both(x: Any) -> tuple[Any, Any]:
    return x, x


def _point(w: DenseBatch, name: str) -> Any:
    if name == "the largest of the others":
        return np.max(np.where(w.together, -np.inf, w["similarities"]), axis=1, keepdims=True)
    return POINTS[name](None, w.inputs["margin"])


def _switched(above: str, below: str, point: str) -> Callable[[DenseBatch], Any]:
    def of(w: DenseBatch) -> Any:
        s, m = w["similarities"], w.inputs["margin"]
        moved = np.where(s > _point(w, point), CURVES[above](s, m), CURVES[below](s, m))
        return _both(np.where(w.together, moved, s) * w.scale)

    return of


def _switching(above: str, below: str, point: str) -> Way:
    f = _switched(above, below, point)
    return Way(f"s ({above}) if cos theta > {point}, else s ({below}), for the target", lambda w, c: f(w), plain=False)


TAILS: Mapping[str, Callable[[Any, float, float], Any]] = {
    "s^2 (cos theta - m sin m)": lambda c, m, s: s * s * (c - m * np.sin(m)),
    "cos theta - m sin m": lambda c, m, s: c - m * np.sin(m),
    "s (s cos theta - m sin m)": lambda c, m, s: s * (s * c - m * np.sin(m)),
    "s cos theta - m sin m": lambda c, m, s: s * c - m * np.sin(m),
    "s cos theta - s^2 m sin m": lambda c, m, s: s * (c - s * m * np.sin(m)),
    "cos theta - s m sin m": lambda c, m, s: c - s * m * np.sin(m),
    "s^2 (cos theta - m)": lambda c, m, s: s * s * (c - m),
    "cos theta - m": lambda c, m, s: c - m,
    "s (s cos theta - m)": lambda c, m, s: s * (s * c - m),
    "s cos theta - m": lambda c, m, s: s * c - m,
    "s^2 cos theta": lambda c, m, s: s * s * c,
    "cos theta": lambda c, m, s: c,
    "s^2 cos(theta + m)": lambda c, m, s: s * s * np.cos(_angle(c) + m),
    "cos(theta + m)": lambda c, m, s: np.cos(_angle(c) + m),
    "-s": lambda c, m, s: -s + 0 * c,
    "s (cos theta - m sin(pi - m) - 1)": lambda c, m, s: s * (c - m * np.sin(m) - 1),
    "s (cos theta + m sin m)": lambda c, m, s: s * (c + m * np.sin(m)),
    "s (cos theta - cos m)": lambda c, m, s: s * (c - np.cos(m)),
    "s (cos theta - (1 - cos m))": lambda c, m, s: s * (c - 1 + np.cos(m)),
    "s (cos theta - m sin(m)/2)": lambda c, m, s: s * (c - m * np.sin(m) / 2),
    "s (cos theta - sin^2 m)": lambda c, m, s: s * (c - np.sin(m) ** 2),
}
"""Logits of a target where the margin does not go as elsewhere, scaled a second time or never among them."""


def _tailed(above: str, tail: str, point: str) -> Way:
    def of(w: DenseBatch, c: float) -> Any:
        x, m = w["similarities"], w.inputs["margin"]
        moved = np.where(x > _point(w, point), w.scale * CURVES[above](x, m), TAILS[tail](x, m, w.scale))
        return _both(np.where(w.together, moved, x * w.scale))

    return Way(f"s ({above}) if cos theta > {point}, else {tail}, for the target", of, plain=False)


def _others(first: Callable[[DenseBatch], Any], name: str) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        s, m = w["similarities"], w.inputs["margin"]
        return _both(np.where(w.together, first(w)[0], CURVES[name](s, m) * w.scale))

    return of


def _every(name: str) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: _both(CURVES[name](w["similarities"], w.inputs["margin"]) * w.scale)


def _angles(w: DenseBatch, c: float) -> Any:
    """Angles with their margin, of which no cosine is taken."""
    return _both(w.scale * (_angle(w["similarities"]) + w.inputs["margin"] * w.together))


def _mixed(first: Callable[[DenseBatch], Any], name: str) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        s, x = w["similarities"], first(w)[0]
        other = CURVES[name](s, w.inputs["margin"]) * w.scale
        return _both(np.where(w.together, c * other + (1 - c) * x, x))

    return of


_Change = tuple[str, Callable[[Callable[[DenseBatch], Any]], Callable[[DenseBatch, float], Any]], str, bool]


def _on(change: Callable[[DenseBatch, Any, float], Any], both: bool = True) -> Any:
    """A change of all logits, in the numerator as well, or in the denominator alone."""

    def made(first: Callable[[DenseBatch], Any]) -> Callable[[DenseBatch, float], Any]:
        def of(w: DenseBatch, c: float) -> Any:
            x, y = first(w)
            return change(w, x, c), change(w, y, c) if both else y

        return of

    return made


_CHANGES: tuple[tuple[str, Callable[[DenseBatch, Any, float], Any], str], ...] = (
    # A number of rows, a logarithm of it or a power of D is found as a constant.
    ("{c} times as large", lambda w, x, c: c * x, REAL),
    ("{c} larger for positives", lambda w, x, c: x + c * w.together, REAL),
    ("{c} larger for negatives", lambda w, x, c: x + c * ~w.together, REAL),
    ("{c}/T larger for positives", lambda w, x, c: x + c * w.together * w.scale, REAL),
    ("{c} times as large for positives", lambda w, x, c: np.where(w.together, c * x, x), REAL),
    ("{c} times as large for negatives", lambda w, x, c: np.where(w.together, x, c * x), REAL),
    ("times T for the queue or the hard negatives", lambda w, x, c: np.where(w.queue, x / w.scale, x), ""),
    ("{c} larger for the queue or the hard negatives", lambda w, x, c: x + c * w.queue, REAL),
    ("{c} larger for hard negatives of the query", lambda w, x, c: x + c * (w.queue & w.of_query), REAL),
    ("held between -{c} and {c}", lambda w, x, c: np.clip(x, -abs(c), abs(c)), REAL),
    ("at least {c}", lambda w, x, c: np.maximum(x, c), REAL),
    ("at most {c}", lambda w, x, c: np.minimum(x, c), REAL),
    ("of which the row maximum is taken off", lambda w, x, c: x - _top(x), ""),
    ("of which the maximum of row j is taken off in column j", lambda w, x, c: x - _row_tops(x), ""),
    ("of which the maximum of the column is taken off", lambda w, x, c: x - largest(x, axis=0), ""),
    ("of which the maximum of column i is taken off in row i", lambda w, x, c: x - _column_tops(x), ""),
    ("of which the row mean is taken off", lambda w, x, c: x - np.mean(x, axis=1, keepdims=True), ""),
    ("of which the maximum of all is taken off", lambda w, x, c: x - largest(x), ""),
    ("over the row maximum", lambda w, x, c: x / _top(x), ""),
    ("over sqrt(D)", lambda w, x, c: x / np.sqrt(_width(w)), ""),
    ("over T once more", lambda w, x, c: x * w.scale, ""),
    ("times T", lambda w, x, c: x / w.scale, ""),
    ("times T^2", lambda w, x, c: x / w.scale**2, ""),
    ("times sqrt(T)", lambda w, x, c: x / np.sqrt(w.scale), ""),
    ("plus log of the temperature", lambda w, x, c: x - np.log(w.scale) * w.together, ""),
    ("0 for the anchor itself", lambda w, x, c: np.where(w.own, 0.0, x), ""),
    ("0 for what is not above 0", lambda w, x, c: np.maximum(x, 0), ""),
    ("the mean of those of both directions", lambda w, x, c: (x + x.T) / 2, ""),
    ("the sum of those of both directions", lambda w, x, c: x + x.T, ""),
    ("the larger of those of both directions", lambda w, x, c: np.maximum(x, x.T), ""),
    ("those of the other direction", lambda w, x, c: x.T, ""),
    ("log-probabilities", lambda w, x, c: x - np.log(np.sum(np.exp(x - _top(x)), 1, keepdims=True)) - _top(x), ""),
    ("log(1 + e^x)", lambda w, x, c: np.logaddexp(0, x), ""),
    ("log sigmoid(x)", lambda w, x, c: -np.logaddexp(0, -x), ""),
    ("sigmoid(x)", lambda w, x, c: 1 / (1 + np.exp(-x)), ""),
    ("tanh(x)", lambda w, x, c: np.tanh(x), ""),
    ("log |x|", lambda w, x, c: np.log(np.abs(x)), ""),
    ("log x", lambda w, x, c: np.log(x), ""),
    ("log(1 + x)", lambda w, x, c: np.log1p(x), ""),
    ("log(e^x + {c})", lambda w, x, c: np.log(np.exp(x) + c), REAL),
    ("log(max(e^x, {c}))", lambda w, x, c: np.maximum(x, np.log(c)), REAL),
    ("plus log(N - 1) for positives", lambda w, x, c: x + np.log(w.samples - 1) * w.together, ""),
    ("less log(N - 1) for positives", lambda w, x, c: x - np.log(w.samples - 1) * w.together, ""),
)  # fmt: skip
_AS_THE_REFERENCE = "as in the reference"
_CHANGED: tuple[_Change, ...] = tuple(
    (f"{_AS_THE_REFERENCE}, {text}{'' if both else ', in the denominator alone'}", _on(f, both), constant, both)
    for both in (True, False)
    for text, f, constant in _CHANGES
)


def _top(x: Any) -> Any:
    return largest(x, axis=1)


def _row_tops(x: Any) -> Any:
    return largest(x, axis=1).T


def _column_tops(x: Any) -> Any:
    return largest(x, axis=0).T


def _width(w: DenseBatch) -> float:
    return float(w.blocks[0].shape[-1]) if w.blocks else float(w.own.shape[1])


def tempered_ways(usual: Callable[[DenseBatch], Any], text: str) -> tuple[Way, ...]:
    """Logits that are similarities over the temperature, or changed.

    `usual`: those of the reference, of a work, for denominator and numerator.
    """
    return (Way(text, lambda w, c: usual(w)), *_changed(usual, text))


def _changed(usual: Callable[[DenseBatch], Any], text: str = _AS_THE_REFERENCE) -> Iterator[Way]:
    """Changes of the usual logits, which `text` is for."""
    for name, of, constant, plain in _CHANGED:
        yield Way(name.replace(_AS_THE_REFERENCE, text), of(usual), constant, plain)


Numbers = Callable[[DenseBatch, float], Any]


def _batch_counts(w: DenseBatch) -> Any:
    return np.bincount(w.labels, minlength=w.own.shape[1]).astype(float)


NUMBERS: tuple[tuple[str, Numbers, str], ...] = (
    ("n_k", lambda w, c: w.counts, ""),
    ("n_k/sum n", lambda w, c: w.counts / np.sum(w.counts), ""),
    ("n_k/max n", lambda w, c: w.counts / np.max(w.counts), ""),
    ("n_k + 1", lambda w, c: w.counts + 1, ""),
    ("n_k + {c}", lambda w, c: w.counts + c, REAL),
    ("n_k/sum n + {c}", lambda w, c: w.counts / np.sum(w.counts) + c, REAL),
    ("n_k in descending order", lambda w, c: np.sort(w.counts)[::-1], ""),
    ("n_k in ascending order", lambda w, c: np.sort(w.counts), ""),
    ("n_k in reverse order", lambda w, c: w.counts[::-1], ""),
    ("n_{k+1}", lambda w, c: np.roll(w.counts, -1), ""),
    ("n_{k-1}", lambda w, c: np.roll(w.counts, 1), ""),
    ("n_k with classes in the order of their numbers as text", lambda w, c: w.counts[_as_text(len(w.counts))], ""),
    ("n_k with classes ranked as text", lambda w, c: w.counts[np.argsort(_as_text(len(w.counts)))], ""),
    ("n_y of the row's target", lambda w, c: w.counts[w.labels][:, None], ""),
    ("the number of targets k in the batch", lambda w, c: _batch_counts(w), ""),
    ("the number of targets k in the batch, at least 1", lambda w, c: np.maximum(_batch_counts(w), 1), ""),
    ("1 + the number of targets k in the batch", lambda w, c: _batch_counts(w) + 1, ""),
    ("the share of targets k in the batch", lambda w, c: _batch_counts(w) / len(w.labels), ""),
    ("the number of targets k in the batch, plus {c}", lambda w, c: _batch_counts(w) + c, REAL),
    ("the share of targets k in the batch, plus {c}", lambda w, c: _batch_counts(w) / len(w.labels) + c, REAL),
    ("(1 - 0.9)/(1 - 0.9^n_k)", lambda w, c: _effective(w, 0.9), ""),
    ("(1 - 0.99)/(1 - 0.99^n_k)", lambda w, c: _effective(w, 0.99), ""),
    ("(1 - 0.999)/(1 - 0.999^n_k)", lambda w, c: _effective(w, 0.999), ""),
    ("(1 - 0.9999)/(1 - 0.9999^n_k)", lambda w, c: _effective(w, 0.9999), ""),
    ("(1 - 0.9)/(1 - 0.9^n_k), scaled to the sum C", lambda w, c: _of_sum(_effective(w, 0.9)), ""),
    ("(1 - 0.99)/(1 - 0.99^n_k), scaled to the sum C", lambda w, c: _of_sum(_effective(w, 0.99)), ""),
    ("(1 - 0.999)/(1 - 0.999^n_k), scaled to the sum C", lambda w, c: _of_sum(_effective(w, 0.999)), ""),
    ("(1 - 0.9999)/(1 - 0.9999^n_k), scaled to the sum C", lambda w, c: _of_sum(_effective(w, 0.9999)), ""),
    ("sum n/n_k", lambda w, c: np.sum(w.counts) / w.counts, ""),
    ("sum n/(C n_k)", lambda w, c: np.sum(w.counts) / (w.counts * len(w.counts)), ""),
    ("(1/n_k) over the sum of these", lambda w, c: (1 / w.counts) / np.sum(1 / w.counts), ""),
    ("C (1/n_k) over the sum of these", lambda w, c: _of_sum(1 / w.counts), ""),
    ("max n/n_k", lambda w, c: np.max(w.counts) / w.counts, ""),
    ("min n/n_k", lambda w, c: np.min(w.counts) / w.counts, ""),
    ("1 - n_k/sum n", lambda w, c: 1 - w.counts / np.sum(w.counts), ""),
    ("log(1 + n_k)", lambda w, c: np.log1p(w.counts), ""),
    ("log n_k", lambda w, c: np.log(w.counts), ""),
    ("log(n_k/sum n)", lambda w, c: np.log(w.counts / np.sum(w.counts)), ""),
    ("the softmax of n_k", lambda w, c: _softmax(w.counts), ""),
    ("the softmax of log n_k over T", lambda w, c: _softmax(np.log(w.counts) * w.scale), ""),
    ("1", lambda w, c: np.ones(w.own.shape[1]), ""),
)  # fmt: skip
"""Numbers of the classes that stand for the counts."""
_USES: tuple[tuple[str, Callable[[Any, Any, Any, float], Any], str], ...] = (
    ("x_ik/T + log({n})", lambda x, n, w, c: x * w.scale + log_of(n), ""),
    ("x_ik/T - log({n})", lambda x, n, w, c: x * w.scale - log_of(n), ""),
    ("x_ik/T + {n}", lambda x, n, w, c: x * w.scale + n, ""),
    ("x_ik/T - {n}", lambda x, n, w, c: x * w.scale - n, ""),
    ("(x_ik + log({n}))/T", lambda x, n, w, c: (x + log_of(n)) * w.scale, ""),
    ("(x_ik - log({n}))/T", lambda x, n, w, c: (x - log_of(n)) * w.scale, ""),
    ("(x_ik + {n})/T", lambda x, n, w, c: (x + n) * w.scale, ""),
    ("(x_ik - {n})/T", lambda x, n, w, c: (x - n) * w.scale, ""),
    ("{n} x_ik/T", lambda x, n, w, c: x * n * w.scale, ""),
    ("x_ik/({n} T)", lambda x, n, w, c: x / n * w.scale, ""),
    ("x_ik/T + T log({n})", lambda x, n, w, c: x * w.scale + log_of(n) / w.scale, ""),
    ("x_ik/T + {c} log({n})", lambda x, n, w, c: x * w.scale + c * log_of(n), REAL),
    ("x_ik/T + {c} ({n})", lambda x, n, w, c: x * w.scale + c * n, REAL),
    ("x_ik/T + {c} ({n})^(-1/4)", lambda x, n, w, c: x * w.scale + c * n**-0.25, REAL),
    ("x_ik/T - {c} ({n})^(-1/4) for the target",
     lambda x, n, w, c: (x - c * w.together * n**-0.25) * w.scale, REAL),
    ("x_ik/T - {c} max_j ({n})_j^(1/4) ({n})^(-1/4) for the target",
     lambda x, n, w, c: x * w.scale - c * w.together * (np.min(n) / n) ** 0.25, REAL),
    ("(x_ik - {c} min_j ({n})_j^(1/4) ({n})^(-1/4))/T for the target",
     lambda x, n, w, c: (x - c * w.together * (np.min(n) / n) ** 0.25) * w.scale, REAL),
    ("x_ik/T - {c}/sqrt({n}) for the target", lambda x, n, w, c: x * w.scale - c * w.together / np.sqrt(n), REAL),
    ("(x_ik - {c}/sqrt({n}))/T for the target", lambda x, n, w, c: (x - c * w.together / np.sqrt(n)) * w.scale, REAL),
    ("x_ik/T + log({n}) for the target", lambda x, n, w, c: x * w.scale + w.together * log_of(n), ""),
    ("x_ik/T - log({n}) for the target", lambda x, n, w, c: x * w.scale - w.together * log_of(n), ""),
    ("x_ik/T + log({n}) for the other classes", lambda x, n, w, c: x * w.scale + ~w.together * log_of(n), ""),
    ("x_ik/T - log({n}) for the other classes", lambda x, n, w, c: x * w.scale - ~w.together * log_of(n), ""),
    ("(x_ik + {n}^{c})/T", lambda x, n, w, c: (x + n**c) * w.scale, REAL),
)  # fmt: skip


def numbered_ways() -> tuple[Way, ...]:
    """Logits with the number of each class, the logarithm of the counts added in the reference."""
    out = [Way("x_ik/T + log(n_k)", lambda w, c: _both(w["similarities"] * w.scale + np.log(w.counts)))]
    for number, n, first in NUMBERS:
        for text, f, second in _USES:
            # One constant at most.
            if not (first and second) and (number, text) != ("n_k", "x_ik/T + log({n})"):
                plain = number in ("n_k", "1", "n_k/sum n") or text == "x_ik/T + log({n})"
                out.append(Way(text.replace("{n}", number), _numbered(f, n), first or second, plain))
    out += [Way("x_ik/T + log(n_k) in the denominator, x_iy/T in the numerator", _half(True))]
    out += [Way("x_ik/T in the denominator, x_iy/T + log(n_y) in the numerator", _half(False))]

    def usual(w: DenseBatch) -> Any:
        return _both(w["similarities"] * w.scale + np.log(w.counts))

    return (*out, *_changed(usual))


_OF_ITEMS = ("n_k", "n_k/sum n", "n_k/max n", "n_k + 1", "n_k + {c}", "n_y of the row's target", "log(1 + n_k)", "1")
"""Numbers of the classes that expected counts of items may stand for."""
_AS_ITEMS = (
    ("n_y of the row's target", "m_i"), ("n_k", "m_j"), ("sum n", "sum m"), ("max n", "max m"), ("x_ik", "s_ij"),
    ("the other classes", "negatives"), ("the target", "positives"),
)  # fmt: skip


def corrected_ways(positives: bool) -> tuple[Way, ...]:
    """Logits of items, less the logarithms of their expected counts; `positives`: for these as well."""

    def usual(w: DenseBatch) -> Any:
        x = w["similarities"] * w.scale
        return _both(x - np.log(w.counts) * (1 if positives else ~w.together))

    text = "s_ij/T - log(m_j)" + " for negatives" * (not positives)
    out = [Way(text, lambda w, c: usual(w))]
    for number, n, first in NUMBERS:
        for use, f, second in _USES if number in _OF_ITEMS else ():
            name = use.replace("{n}", number)
            for of_class, of_item in _AS_ITEMS:
                name = name.replace(of_class, of_item)
            if not (first and second) and name != text:
                # A share of the correction is subtracted as well.
                sign = -1 if "+ {c} log" in name else 1
                out.append(Way(name.replace("+ {c} log", "- {c} log"), _numbered(f, n, sign), first or second,
                               number == "n_k"))  # fmt: skip
    return (*out, *_changed(usual, text))


def _half(denominator: bool) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        x = w["similarities"] * w.scale
        more = x + np.log(w.counts)
        return (more, x) if denominator else (x, more)

    return of


def _numbered(f: Any, n: Numbers, sign: int = 1) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: _both(f(w["similarities"], n(w, c), w, sign * c))


def _effective(w: DenseBatch, beta: float) -> Any:
    return (1 - beta) / (1 - beta**w.counts)


def _of_sum(x: Any) -> Any:
    return x * len(x) / np.sum(x)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def _as_text(size: int) -> Any:
    return np.array(sorted(range(size), key=str))
