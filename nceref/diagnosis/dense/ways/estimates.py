"""Ways of weighing and correcting the negatives of a row, and of weighing its positive."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, log_sum_exp
from nceref.diagnosis.dense.ways.way import REAL, Stage, Way


def _exp(w: DenseBatch) -> Any:
    return np.exp(w["logits"][0])


def _positive(w: DenseBatch) -> Any:
    return np.sum(np.where(w.together, np.exp(w["logits"][1]), 0.0), axis=1)


def _inside(w: DenseBatch) -> Any:
    return w["negatives"]


def _row_sum(w: DenseBatch, x: Any) -> Any:
    return np.sum(np.where(_inside(w), x, 0.0), axis=1, keepdims=True)


def _n(w: DenseBatch) -> Any:
    return np.sum(_inside(w), axis=1, keepdims=True)


def _b(w: DenseBatch) -> float:
    return float(w.inputs.get("concentration", 0.0))


_SETS: tuple[tuple[str, Callable[[DenseBatch], Any]], ...] = (
    ("j not in {i, p}", lambda w: w.negatives),
    ("j != i, p as well", lambda w: w.candidates & ~w.own),
    ("all j but p, i itself as well", lambda w: ~w.together),
    ("all j", lambda w: np.ones_like(w.own)),
    ("j != p in the other view", lambda w: w.negatives & ~w.view),
    ("j != i in the own view", lambda w: w.negatives & w.view),
    ("j in the other view, p as well", lambda w: ~w.view),
    ("j < i but p", lambda w: w.negatives & (w.j < w.i)),
    ("j > i but p", lambda w: w.negatives & (w.j > w.i)),
    ("j not in {i, p} with s_ij > 0", lambda w: w.negatives & (w["similarities"] > 0)),
)


def _weight(
    base: Callable[[DenseBatch, float], Any], over: Callable[[DenseBatch, Any], Any]
) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        x = base(w, c)
        return x / over(w, x)

    return of


_BASE: tuple[tuple[str, Callable[[DenseBatch, float], Any], str], ...] = (
    ("e^(b l_ij)", lambda w, c: _exp(w) ** _b(w), ""),
    ("e^(-b l_ij)", lambda w, c: _exp(w) ** -_b(w), ""),
    ("b e^(l_ij)", lambda w, c: _b(w) * _exp(w), ""),
    ("e^(b s_ij)", lambda w, c: np.exp(_b(w) * w["similarities"]), ""),
    ("e^(-b s_ij)", lambda w, c: np.exp(-_b(w) * w["similarities"]), ""),
    ("e^(l_ij)", lambda w, c: _exp(w), ""),
    ("e^(l_ij/b)", lambda w, c: _exp(w) ** (1 / _b(w)), ""),
    ("e^((1 + b) l_ij)", lambda w, c: _exp(w) ** (1 + _b(w)), ""),
    ("e^((1 - b) l_ij)", lambda w, c: _exp(w) ** (1 - _b(w)), ""),
    ("e^(2 b l_ij)", lambda w, c: _exp(w) ** (2 * _b(w)), ""),
    ("e^(b |s_ij|/T)", lambda w, c: np.exp(_b(w) * np.abs(w["logits"][0])), ""),
    ("b l_ij", lambda w, c: _b(w) * w["logits"][0], ""),
    ("1 + b l_ij", lambda w, c: 1 + _b(w) * w["logits"][0], ""),
    ("1 + b s_ij", lambda w, c: 1 + _b(w) * w["similarities"], ""),
    ("s_ij^b above 0", lambda w, c: np.maximum(w["similarities"], 0) ** _b(w), ""),
    ("1", lambda w, c: np.ones(w.own.shape), ""),
    ("e^(b (l_ij - l_ip))", lambda w, c: (_exp(w) / _positive(w)[:, None]) ** _b(w), ""),
    ("(sum_j e^(l_ij))^b", lambda w, c: _row_sum(w, _exp(w)) ** _b(w) + np.zeros(w.own.shape), ""),
    ("b sum_j e^(l_ij)", lambda w, c: _row_sum(w, _exp(w)) * _b(w) + np.zeros(w.own.shape), ""),
    ("e^({c} l_ij)", lambda w, c: np.exp(c * w["logits"][0]), REAL),
)
_OVER: tuple[tuple[str, Callable[[DenseBatch, Any], Any]], ...] = (
    (" over its mean", lambda w, x: _row_sum(w, x) / _n(w)),
    ("", lambda w, x: 1.0),
    (" over its sum", lambda w, x: _row_sum(w, x)),
    (" over its mean with the masked entries counted as 0", lambda w, x: _row_sum(w, x) / w.own.shape[1]),
    (" over its mean with the masked entries counted as 1", lambda w, x: np.mean(np.where(_inside(w), x, 1.0), axis=1,
     keepdims=True)),
    (" over its mean with the masked entries", lambda w, x: np.mean(x, axis=1, keepdims=True)),
    (" over its mean with the anchor itself counted as 0", lambda w, x: _row_sum(w, x) / (w.own.shape[1] - 1)),
    (" over its mean over all rows", lambda w, x: np.sum(_row_sum(w, x)) / np.sum(_inside(w))),
    (" over its sum over all rows", lambda w, x: np.sum(_row_sum(w, x))),
    (" over its largest", lambda w, x: np.max(np.where(_inside(w), x, 0), axis=1, keepdims=True)),
    (" over N", lambda w, x: w.samples),
    (" over the mean of e^(l_ij)", lambda w, x: _row_sum(w, _exp(w)) / _n(w)),
    (" over the sum of e^(l_ij)", lambda w, x: _row_sum(w, _exp(w))),
    (" over the mean of e^(l_ij) with the masked entries counted as 0", lambda w, x: _row_sum(w, _exp(w))
     / w.own.shape[1]),
)  # fmt: skip


def _importance() -> tuple[Way, ...]:
    out = []
    for text, base, constant in _BASE:
        for over, by in _OVER:
            out.append(Way(text + over, _weight(base, by), constant, plain=not constant))
    return tuple(out)


_COUNTS: tuple[tuple[str, Callable[[DenseBatch], Any]], ...] = (
    ("n = 2N - 2", lambda w: 2.0 * w.samples - 2),
    ("n = 2N", lambda w: 2.0 * w.samples),
    ("n = 2N - 1", lambda w: 2.0 * w.samples - 1),
    ("n = N", lambda w: float(w.samples)),
    ("n = N - 1", lambda w: float(w.samples) - 1),
    ("n = N - 2", lambda w: float(w.samples) - 2),
    ("n = 1", lambda w: 1.0),
    ("n = (2N - 2)^2", lambda w: (2.0 * w.samples - 2) ** 2),
    ("n = 2N (2N - 2)", lambda w: (2.0 * w.samples) * (2.0 * w.samples - 2)),
    ("n = 4N^2", lambda w: 4.0 * w.samples**2),
    ("n = 2N (2N - 1)", lambda w: 2.0 * w.samples * (2.0 * w.samples - 1)),
    ("n = 2 (2N - 2)", lambda w: 2 * (2.0 * w.samples - 2)),
)


def _prior(w: DenseBatch) -> float:
    return float(w.inputs["positive_prior"])


Correction = Callable[[Any, Any, float, Any, DenseBatch], Any]
_CORRECTIONS: tuple[tuple[str, Correction], ...] = (
    ("(S_i - prior n e^(l_ip))/(1 - prior)", lambda s, p, t, n, w: (s - t * n * p) / (1 - t)),
    ("S_i - prior n e^(l_ip)", lambda s, p, t, n, w: s - t * n * p),
    ("S_i", lambda s, p, t, n, w: s),
    ("S_i/(1 - prior)", lambda s, p, t, n, w: s / (1 - t)),
    ("(S_i + prior n e^(l_ip))/(1 - prior)", lambda s, p, t, n, w: (s + t * n * p) / (1 - t)),
    ("S_i/(1 - prior) - prior n e^(l_ip)", lambda s, p, t, n, w: s / (1 - t) - t * n * p),
    ("S_i - prior n e^(l_ip)/(1 - prior)", lambda s, p, t, n, w: s - t * n * p / (1 - t)),
    ("(S_i - prior n e^(l_ip))/prior", lambda s, p, t, n, w: (s - t * n * p) / t),
    ("(S_i - (1 - prior) n e^(l_ip))/prior", lambda s, p, t, n, w: (s - (1 - t) * n * p) / t),
    ("(S_i - prior n e^(l_ip))/(1 + prior)", lambda s, p, t, n, w: (s - t * n * p) / (1 + t)),
    ("((1 - prior) S_i - prior n e^(l_ip))", lambda s, p, t, n, w: (1 - t) * s - t * n * p),
    ("(S_i - prior^2 n e^(l_ip))/(1 - prior)", lambda s, p, t, n, w: (s - t * t * n * p) / (1 - t)),
    ("n_j (S_i - prior n e^(l_ip))/(1 - prior), n_j = 2N - 2", lambda s, p, t, n, w: (2 * w.samples - 2)
     * (s - t * n * p) / (1 - t)),
    ("(S_i - prior n_j n e^(l_ip))/(1 - prior), n_j = 2N - 2", lambda s, p, t, n, w: (
        s - t * (2 * w.samples - 2) * n * p) / (1 - t)),
    ("(S_i - prior n mean e^(l_ip))/(1 - prior)", lambda s, p, t, n, w: (s - t * n * np.mean(p)) / (1 - t)),
    ("(S_i - prior n l_ip)/(1 - prior)", lambda s, p, t, n, w: (s - t * n * np.log(p)) / (1 - t)),
    ("(S_i/n - prior e^(l_ip))/(1 - prior)", lambda s, p, t, n, w: (s / n - t * p) / (1 - t)),
)  # fmt: skip
Floor = Callable[[Any, DenseBatch, float], Any]
_FLOORS: tuple[tuple[str, Floor, str], ...] = (
    ("n e^(-1/T)", lambda n, w, c: n * np.exp(-w.scale), ""),
    ("e^(-1/T)", lambda n, w, c: np.exp(-w.scale), ""),
    ("n e^(1/T)", lambda n, w, c: n * np.exp(w.scale), ""),
    ("e^(1/T)", lambda n, w, c: np.exp(w.scale), ""),
    ("n/T", lambda n, w, c: n * w.scale, ""),
    ("1/T", lambda n, w, c: w.scale, ""),
    ("n T", lambda n, w, c: n / w.scale, ""),
    ("T", lambda n, w, c: 1 / w.scale, ""),
    ("n e^(-T)", lambda n, w, c: n * np.exp(-1 / w.scale), ""),
    ("e^(-T)", lambda n, w, c: np.exp(-1 / w.scale), ""),
    ("n e^T", lambda n, w, c: n * np.exp(1 / w.scale), ""),
    ("n e^(-1)", lambda n, w, c: n * np.exp(-1), ""),
    ("e^(-1)", lambda n, w, c: np.exp(-1), ""),
    ("n e", lambda n, w, c: n * np.exp(1), ""),
    ("-1/T", lambda n, w, c: -w.scale, ""),
    ("-n/T", lambda n, w, c: -n * w.scale, ""),
    ("0", lambda n, w, c: 0.0, ""),
    ("n", lambda n, w, c: n, ""),
    ("1", lambda n, w, c: 1.0, ""),
    ("nothing: no floor", lambda n, w, c: -np.inf, ""),
    ("N e^(-1/T)", lambda n, w, c: w.samples * np.exp(-w.scale), ""),
    ("2N e^(-1/T)", lambda n, w, c: 2 * w.samples * np.exp(-w.scale), ""),
    ("(2N - 1) e^(-1/T)", lambda n, w, c: (2 * w.samples - 1) * np.exp(-w.scale), ""),
    ("n^2 e^(-1/T)", lambda n, w, c: n * n * np.exp(-w.scale), ""),
    ("{c}", lambda n, w, c: c, REAL),
    ("n {c}", lambda n, w, c: n * c, REAL),
)  # fmt: skip
_HEADS: tuple[tuple[str, Callable[[Any, Any, DenseBatch, Any], Any]], ...] = (
    ("-log( e^(l_ip) / (e^(l_ip) + G_i) )", lambda p, g, w, n: np.log(p + g) - np.log(p)),
    ("-log( e^(l_ip) / G_i )", lambda p, g, w, n: np.log(g) - np.log(p)),
    ("-log( e^(l_ip) / (e^(l_ip) + n G_i) )", lambda p, g, w, n: np.log(p + n * g) - np.log(p)),
    ("-log( e^(l_ip) / (e^(l_ip) + G_i/n) )", lambda p, g, w, n: np.log(p + g / n) - np.log(p)),
    ("-log( e^(l_ip) / (2 e^(l_ip) + G_i) )", lambda p, g, w, n: np.log(2 * p + g) - np.log(p)),
    ("-e^(l_ip) / (e^(l_ip) + G_i)", lambda p, g, w, n: -p / (p + g)),
    ("log(1 + G_i)", lambda p, g, w, n: np.log1p(g)),
    ("log( e^(l_ip) + G_i )", lambda p, g, w, n: np.log(p + g)),
    ("-log( e^(l_ip) / (e^(l_ip) + mean_i G_i) )", lambda p, g, w, n: np.log(p + np.mean(g)) - np.log(p)),
    ("-log( e^(l_ip) / (e^(l_ip) + sum_i G_i) )", lambda p, g, w, n: np.log(p + np.sum(g)) - np.log(p)),
)


def estimated() -> tuple[Stage, ...]:
    """Parts between logits and rows: a corrected estimate of the negatives, held above a floor."""
    counts = tuple(Way(t, lambda w, c, f=f: f(w)) for t, f in _COUNTS)  # type: ignore[misc]
    same = Way("the same n", lambda w, c: w["count"])
    corrections = tuple(Way(t, _corrected(f)) for t, f in _CORRECTIONS)
    floors = tuple(Way(t, _floored(f), k) for t, f, k in _FLOORS)
    heads = tuple(Way(t, _head(f)) for t, f in _HEADS)
    sums = (
        Way("sum_j w_ij e^(l_ij)", lambda w, c: _row_sum(w, w["importance"] * _exp(w))[:, 0]),
        Way("mean_j w_ij e^(l_ij)", lambda w, c: (_row_sum(w, w["importance"] * _exp(w)) / _n(w))[:, 0]),
        Way("sum_j w_ij sum_j e^(l_ij)", lambda w, c: (_row_sum(w, w["importance"]) * _row_sum(w, _exp(w)))[:, 0]),
        Way("mean_j w_ij sum_j e^(l_ij)", lambda w, c: (
            _row_sum(w, w["importance"]) * _row_sum(w, _exp(w)) / _n(w))[:, 0]),
        Way("sum_j w_ij e^(l_ij) over the mean of e^(l_ij)", lambda w, c: (_row_sum(w, w["importance"] * _exp(w))
            / _row_sum(w, _exp(w)) * _n(w))[:, 0]),
        Way("sum_j (w_ij e^(l_ij))^2", lambda w, c: _row_sum(w, (w["importance"] * _exp(w)) ** 2)[:, 0]),
        Way("max_j w_ij e^(l_ij)", lambda w, c: np.max(np.where(_inside(w), w["importance"] * _exp(w), 0), 1)),
        Way("sum_j w_ij", lambda w, c: _row_sum(w, w["importance"])[:, 0]),
        Way("N sum_j w_ij e^(l_ij)", lambda w, c: w.samples * _row_sum(w, w["importance"] * _exp(w))[:, 0]),
        Way("{c} sum_j w_ij e^(l_ij)", lambda w, c: c * _row_sum(w, w["importance"] * _exp(w))[:, 0], REAL),
    )  # fmt: skip
    return (
        Stage("negatives", "j: ", tuple(Way(t, lambda w, c, f=f: f(w)) for t, f in _SETS)),  # type: ignore[misc]
        Stage("importance", "w_ij = ", _importance()),
        Stage("mass", "S_i = ", sums),
        Stage("count", "of the candidates ", counts),
        Stage("correction", "G_i = max(E_i, floor), E_i = ", corrections),
        Stage("count of the floor", "in the floor ", (same, *counts)),
        Stage("floor", "floor = ", floors),
        Stage("rows", "L_i = ", heads),
    )


def _corrected(f: Correction) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: f(w["mass"], _positive(w), _prior(w), w["count"], w)


def _floored(f: Floor) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: np.maximum(w["correction"], f(w["count of the floor"], w, c))


def _head(f: Callable[[Any, Any, DenseBatch, Any], Any]) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: f(_positive(w), w["floor"], w, w["count of the floor"])


def _closeness(w: DenseBatch) -> Any:
    """Similarity of each pair of views, a number a sample."""
    return np.sum(np.where(w.together, w["similarities"], 0.0), axis=1)[: w.samples]


def _mass(w: DenseBatch, power: float) -> Any:
    x = _closeness(w) * power
    return np.exp(x - np.max(x))


def _sigma(w: DenseBatch) -> float:
    return float(w.inputs["sigma"])


_WEIGHTS: tuple[tuple[str, Callable[[DenseBatch, float], Any], str], ...] = (
    ("2 - e^(s_ip/sigma) / mean_k e^(s_kp/sigma)", lambda w, c: 2 - _relative(w, 1 / _sigma(w)), ""),
    ("2 - e^(s_ip/sigma) / sum_k e^(s_kp/sigma)", lambda w, c: 2 - _relative(w, 1 / _sigma(w)) / w.samples, ""),
    ("2 - e^(s_ip/sigma) / sum_k e^(s_kp/sigma), k over both views", lambda w, c: 2 - _relative(w, 1 / _sigma(w))
     / (2 * w.samples), ""),
    ("max(2 - e^(s_ip/sigma) / mean_k e^(s_kp/sigma), 0)", lambda w, c: np.maximum(2 - _relative(w, 1 / _sigma(w)), 0),
     ""),
    ("max(2 - e^(s_ip/sigma) / mean_k e^(s_kp/sigma), {c})", lambda w, c: np.maximum(
        2 - _relative(w, 1 / _sigma(w)), c), REAL),
    ("2 - 2 e^(s_ip/sigma) / mean_k e^(s_kp/sigma)", lambda w, c: 2 - 2 * _relative(w, 1 / _sigma(w)), ""),
    ("{c} - e^(s_ip/sigma) / mean_k e^(s_kp/sigma)", lambda w, c: c - _relative(w, 1 / _sigma(w)), REAL),
    ("1 - e^(s_ip/sigma) / sum_k e^(s_kp/sigma)", lambda w, c: 1 - _relative(w, 1 / _sigma(w)) / w.samples, ""),
    ("e^(s_ip/sigma) / mean_k e^(s_kp/sigma)", lambda w, c: _relative(w, 1 / _sigma(w)), ""),
    ("1 + e^(s_ip/sigma) / mean_k e^(s_kp/sigma)", lambda w, c: 1 + _relative(w, 1 / _sigma(w)), ""),
    ("2 - e^(s_ip/T) / mean_k e^(s_kp/T)", lambda w, c: 2 - _relative(w, w.scale), ""),
    ("2 - e^(s_ip sigma) / mean_k e^(s_kp sigma)", lambda w, c: 2 - _relative(w, _sigma(w)), ""),
    ("2 - e^(s_ip) / mean_k e^(s_kp)", lambda w, c: 2 - _relative(w, 1.0), ""),
    ("2 - e^(-s_ip/sigma) / mean_k e^(-s_kp/sigma)", lambda w, c: 2 - _relative(w, -1 / _sigma(w)), ""),
    ("2 - e^(s_ip/(sigma T)) / mean_k e^(s_kp/(sigma T))", lambda w, c: 2 - _relative(w, w.scale / _sigma(w)), ""),
    ("2 - e^(s_ip/sigma^2) / mean_k e^(s_kp/sigma^2)", lambda w, c: 2 - _relative(w, 1 / _sigma(w) ** 2), ""),
    ("2 - e^(s_ip/(2 sigma^2)) / mean_k e^(s_kp/(2 sigma^2))", lambda w, c: 2 - _relative(w, 0.5 / _sigma(w) ** 2), ""),
    ("2 - e^(s_ip/sigma) / max_k e^(s_kp/sigma)", lambda w, c: 2 - _mass(w, 1 / _sigma(w)), ""),
    ("2 - e^(s_ip/sigma)", lambda w, c: 2 - np.exp(_closeness(w) / _sigma(w)), ""),
    ("1/(e^(s_ip/sigma) / mean_k e^(s_kp/sigma))", lambda w, c: 1 / _relative(w, 1 / _sigma(w)), ""),
    ("2 - e^(s_ip/sigma) / mean e^(s_jk/sigma) over all pairs", lambda w, c: 2 - np.exp(_closeness(w) / _sigma(w))
     / np.mean(np.exp(w["similarities"] / _sigma(w))), ""),
    ("1", lambda w, c: np.ones(w.samples), ""),
)  # fmt: skip


def _relative(w: DenseBatch, power: float) -> Any:
    mass = _mass(w, power)
    return mass / np.mean(mass)


_WEIGHED: tuple[tuple[str, Callable[[Any, Any, Any, DenseBatch], Any]], ...] = (
    ("log Z_i - w_i l_ip", lambda z, x, w, o: z - w * x),
    ("w_i (log Z_i - l_ip)", lambda z, x, w, o: w * (z - x)),
    ("w_i log Z_i - l_ip", lambda z, x, w, o: w * z - x),
    ("log Z_i - l_ip + w_i", lambda z, x, w, o: z - x + w),
    ("log Z_i - l_ip - log w_i", lambda z, x, w, o: z - x - np.log(w)),
    ("log( e^(w_i l_ip) + Z_i ) - w_i l_ip", lambda z, x, w, o: np.logaddexp(w * x, z) - w * x),
    ("log( e^(l_ip) + Z_i ) - w_i l_ip", lambda z, x, w, o: np.logaddexp(x, z) - w * x),
    ("w_i (log( e^(l_ip) + Z_i ) - l_ip)", lambda z, x, w, o: w * (np.logaddexp(x, z) - x)),
    ("log Z_i - w_i s_ip", lambda z, x, w, o: z - w * x / o.scale),
    ("(log Z_i - w_i l_ip)/w_i", lambda z, x, w, o: z / w - x),
    ("log Z_i - w_i l_ip over the mean of w", lambda z, x, w, o: z - w / np.mean(w) * x),
    ("w_i (log Z_i - l_ip) over the mean of w", lambda z, x, w, o: w / np.mean(w) * (z - x)),
    ("log Z_i - l_ip", lambda z, x, w, o: z - x),
)


def weighed() -> tuple[Stage, ...]:
    """Parts between denominator and mean: a weight on each positive."""

    def head(f: Callable[[Any, Any, Any, DenseBatch], Any]) -> Callable[[DenseBatch, float], Any]:
        def of(w: DenseBatch, c: float) -> Any:
            positive = np.sum(np.where(w.together, w["logits"][1], 0.0), axis=1)
            weight = np.tile(w["weights"], 2)
            return f(log_sum_exp(w["denominator"]), positive, weight, w)

        return of

    weights = tuple(Way(t, lambda w, c, f=f: f(w, c), k) for t, f, k in _WEIGHTS)  # type: ignore[misc]
    return (
        Stage("weights", "w_i = ", weights),
        Stage("rows", "L_i = ", tuple(Way(t, head(f)) for t, f in _WEIGHED)),
    )
