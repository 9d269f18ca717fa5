"""Distances between rows: those of pairs, or those of all points to one another."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nceref.diagnosis.dense.ways.lineup import mean_stage
from nceref.diagnosis.dense.ways.rows import ways
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Stage, Way


def _between(w: Any) -> Any:
    z = w["rows of inputs"]
    return z[w.anchors], z[w.against]


def _distance(f: Any) -> Any:
    def of(w: Any, c: Any) -> Any:
        a, b = _between(w)
        return f(a, b, w.inputs["exponent"], c)

    return of


def _length(x: Any) -> Any:
    return np.sqrt(np.sum(x * x, axis=-1))


_POWERS = (
    ("|a - b|^e", lambda a, b, e, c: _length(a - b) ** e, ""),
    ("|a - b|", lambda a, b, e, c: _length(a - b), ""),
    ("|a - b|^2", lambda a, b, e, c: _length(a - b) ** 2, ""),
    ("|a - b|^(2 e)", lambda a, b, e, c: _length(a - b) ** (2 * e), ""),
    ("|a - b|^(e/2)", lambda a, b, e, c: _length(a - b) ** (e / 2), ""),
    ("|a - b + {c}|^e", lambda a, b, e, c: _length(a - b + c) ** e, REAL),
    ("(|a - b| + {c})^e", lambda a, b, e, c: (_length(a - b) + c) ** e, REAL),
    ("(|a - b|^2 + {c})^(e/2)", lambda a, b, e, c: (_length(a - b) ** 2 + c) ** (e / 2), REAL),
    ("max(|a - b|, {c})^e", lambda a, b, e, c: np.maximum(_length(a - b), c) ** e, REAL),
    ("max(|a - b|^2, {c})^(e/2)", lambda a, b, e, c: np.maximum(_length(a - b) ** 2, c) ** (e / 2), REAL),
    ("|a - b|^e/D", lambda a, b, e, c: _length(a - b) ** e / a.shape[1], ""),
    ("|a - b|^2/D", lambda a, b, e, c: _length(a - b) ** 2 / a.shape[1], ""),
    ("(|a - b|/sqrt(D))^e", lambda a, b, e, c: (_length(a - b) / np.sqrt(a.shape[1])) ** e, ""),
    ("(|a - b|/2)^e", lambda a, b, e, c: (_length(a - b) / 2) ** e, ""),
    ("|a - b|^e/2", lambda a, b, e, c: _length(a - b) ** e / 2, ""),
    ("e |a - b|", lambda a, b, e, c: _length(a - b) * e, ""),
    ("(sum_d |a_d - b_d|)^e", lambda a, b, e, c: np.sum(np.abs(a - b), axis=1) ** e, ""),
    ("sum_d |a_d - b_d|^e", lambda a, b, e, c: np.sum(np.abs(a - b) ** e, axis=1), ""),
    ("mean_d |a_d - b_d|^e", lambda a, b, e, c: np.mean(np.abs(a - b) ** e, axis=1), ""),
    ("(sum_d |a_d - b_d|^e)^(1/e)", lambda a, b, e, c: np.sum(np.abs(a - b) ** e, axis=1) ** (1 / e), ""),
    ("(max_d |a_d - b_d|)^e", lambda a, b, e, c: np.max(np.abs(a - b), axis=1) ** e, ""),
    ("|a_d - b_d|^e of coordinate d over the batch", lambda a, b, e, c: np.sum((a - b) ** 2, axis=0) ** (e / 2), ""),
    ("mean_j |a_i - b_j|^e", lambda a, b, e, c: np.mean(_length(a[:, None] - b) ** e, axis=1), ""),
    ("1 - a.b", lambda a, b, e, c: 1 - np.sum(a * b, axis=1), ""),
    ("(1 - a.b)^e", lambda a, b, e, c: (1 - np.sum(a * b, axis=1)) ** e, ""),
    ("-a.b", lambda a, b, e, c: -np.sum(a * b, axis=1), ""),
    ("angle(a, b)^e", lambda a, b, e, c: np.arccos(np.clip(np.sum(a * b, axis=1), -1, 1)) ** e, ""),
    ("||a| - |b||^e", lambda a, b, e, c: np.abs(_length(a) - _length(b)) ** e, ""),
)


def paired_stages(inputs: Mapping[str, Any], reduction: str) -> tuple[Stage, ...]:
    """The stages of a loss of the distances of pairs."""
    return (
        Stage("rows of inputs", "rows: ", ways(("x", "y"), inputs.get("normalize") == "none")),
        Stage("rows", "L_i = ", tuple(Way(t, _distance(f), k) for t, f, k in _POWERS)),
        mean_stage(reduction),
    )


def _squares(w: Any) -> Any:
    z = w["rows of inputs"]
    return np.sum((z[:, None] - z[None]) ** 2, axis=-1)


def _all_pairs(f: Any) -> Any:
    return lambda w, c: f(_squares(w), w["rows of inputs"], w.inputs["t"], c)


_POTENTIALS = (
    ("-t |a - b|^2", lambda d, z, t, c: -t * d, ""),
    ("-t |a - b|", lambda d, z, t, c: -t * np.sqrt(d), ""),
    ("-t |a - b|^4", lambda d, z, t, c: -t * d * d, ""),
    ("-t |a - b|^2/2", lambda d, z, t, c: -t * d / 2, ""),
    ("-2 t |a - b|^2", lambda d, z, t, c: -2 * t * d, ""),
    ("-|a - b|^2", lambda d, z, t, c: -d, ""),
    ("-|a - b|^2/t", lambda d, z, t, c: -d / t, ""),
    ("-|a - b|^2/(2 t^2)", lambda d, z, t, c: -d / (2 * t * t), ""),
    ("-t^2 |a - b|^2", lambda d, z, t, c: -t * t * d, ""),
    ("-|a - b|^t", lambda d, z, t, c: -(d ** (t / 2)), ""),
    ("t |a - b|^2", lambda d, z, t, c: t * d, ""),
    ("-{c} |a - b|^2", lambda d, z, t, c: -c * d, REAL),
    ("-t |a - b|^{c}", lambda d, z, t, c: -t * d ** (c / 2), REAL),
    ("-t (|a - b|^2 + {c})", lambda d, z, t, c: -t * (d + c), REAL),
    ("-t |a - b|^2/D", lambda d, z, t, c: -t * d / z.shape[1], ""),
    ("-t (sum_d |a_d - b_d|)", lambda d, z, t, c: -t * np.sum(np.abs(z[:, None] - z), axis=-1), ""),
    ("-t (1 - a.b)", lambda d, z, t, c: -t * (1 - z @ z.T), ""),
    ("t a.b", lambda d, z, t, c: t * (z @ z.T), ""),
    ("2 t a.b", lambda d, z, t, c: 2 * t * (z @ z.T), ""),
    ("-t (|a|^2 + |b|^2)", lambda d, z, t, c: -t * (np.sum(z * z, 1)[:, None] + np.sum(z * z, 1)), ""),
    ("-t |a|^2", lambda d, z, t, c: -t * np.sum(z * z, 1)[:, None] + 0 * d, ""),
    ("-t |a|", lambda d, z, t, c: -t * np.sqrt(np.sum(z * z, 1))[:, None] + 0 * d, ""),
    ("-t |a - mean|^2", lambda d, z, t, c: -t * np.sum((z - z.mean(0)) ** 2, 1)[:, None] + 0 * d, ""),
)


def _set(f: Any) -> Any:
    return lambda w, c: f(w, c) * 1.0


_SETS = (
    ("the pairs of the reference", lambda w, c: w.candidates, ""),
    ("all pairs, a point and itself as well", lambda w, c: np.ones_like(w.own), ""),
    ("pairs of different points", lambda w, c: ~w.own, ""),
    ("pairs of neighbors in the batch", lambda w, c: np.abs(w.i - w.j) == 1, ""),
    ("pairs of neighbors in the batch, the last and the first as well",
     lambda w, c: w.j == (w.i + 1) % w.samples, ""),
    ("pairs of the two halves of the batch", lambda w, c: (w.i < w.samples // 2) & (w.j >= w.samples // 2), ""),
    ("pairs of points i and N - 1 - i", lambda w, c: (w.j == w.samples - 1 - w.i) & ~w.own, ""),
    ("pairs with the first point", lambda w, c: (w.i == 0) & (w.j > 0), ""),
    ("pairs of the first {c} points", lambda w, c: w.candidates & (w.i < c) & (w.j < c), INTEGER),
    ("pairs less than {c} apart in the batch", lambda w, c: w.candidates & (np.abs(w.i - w.j) < c), INTEGER),
    ("pairs within blocks of {c} points", lambda w, c: w.candidates & (w.i // max(c, 1) == w.j // max(c, 1)), INTEGER),
    ("pairs without the last point", lambda w, c: w.candidates & (w.i < w.samples - 1) & (w.j < w.samples - 1), ""),
    ("pairs without the first point", lambda w, c: w.candidates & (w.i > 0) & (w.j > 0), ""),
    ("the nearest other point of each", lambda w, c: ~w.own & (_nearest(w) == w.j), ""),
)  # fmt: skip


def _nearest(w: Any) -> Any:
    return np.argmin(np.where(w.own, np.inf, _squares(w)), axis=1)[:, None]


def _potential(f: Any) -> Any:
    return lambda w, c: f(w["exponents"], w["pairs"], w, c)


def _mean(e: Any, m: Any) -> Any:
    return np.sum(m * np.exp(e)) / np.sum(m)


_TOTALS = (
    ("log mean e^(f_ij)", lambda e, m, w, c: np.log(_mean(e, m)), ""),
    ("log sum e^(f_ij)", lambda e, m, w, c: np.log(np.sum(m * np.exp(e))), ""),
    ("log sum_{i < j} e^(f_ij)", lambda e, m, w, c: np.log(np.sum(m * np.exp(e)) / 2), ""),
    ("mean e^(f_ij)", lambda e, m, w, c: _mean(e, m), ""),
    ("log( mean e^(f_ij) + {c} )", lambda e, m, w, c: np.log(_mean(e, m) + c), REAL),
    ("log sum e^(f_ij) - 2 log N", lambda e, m, w, c: np.log(np.sum(m * np.exp(e)) / w.samples**2), ""),
    ("log sum e^(f_ij) - log N", lambda e, m, w, c: np.log(np.sum(m * np.exp(e)) / w.samples), ""),
    ("log sum_{i < j} e^(f_ij) - log(N (N - 1))", lambda e, m, w, c: np.log(np.sum(m * np.exp(e)) / 2 / (
        w.samples * (w.samples - 1))), ""),
    ("mean_i log mean_j e^(f_ij)", lambda e, m, w, c: np.mean(np.log(np.sum(m * np.exp(e), 1) / np.sum(m, 1))), ""),
    ("mean_i log sum_j e^(f_ij)", lambda e, m, w, c: np.mean(np.log(np.sum(m * np.exp(e), 1))), ""),
    ("sum_i log mean_j e^(f_ij)", lambda e, m, w, c: np.sum(np.log(np.sum(m * np.exp(e), 1) / np.sum(m, 1))), ""),
    ("mean_i log mean_j e^(f_ij) over N", lambda e, m, w, c: np.mean(np.log(np.mean(m * np.exp(e), 1))), ""),
    ("mean f_ij", lambda e, m, w, c: np.sum(m * e) / np.sum(m), ""),
    ("log mean e^(f_ij), no more than {c}", lambda e, m, w, c: np.minimum(np.log(_mean(e, m)), c), REAL),
    ("{c} log mean e^(f_ij)", lambda e, m, w, c: c * np.log(_mean(e, m)), REAL),
    ("-log mean e^(f_ij)", lambda e, m, w, c: -np.log(_mean(e, m)), ""),
    ("log(mean e^(f_ij))/t", lambda e, m, w, c: np.log(_mean(e, m)) / w.inputs["t"], ""),
    ("log(1 + mean e^(f_ij))", lambda e, m, w, c: np.log1p(_mean(e, m)), ""),
)  # fmt: skip


def apart_stages(inputs: Mapping[str, Any], reduction: str) -> tuple[Stage, ...]:
    """The stages of a loss of the distances of all points to one another."""
    return (
        Stage("rows of inputs", "rows: ", ways(("x",), inputs.get("normalize") == "none")),
        Stage("exponents", "f_ij = ", tuple(Way(t, _all_pairs(f), k) for t, f, k in _POTENTIALS)),
        Stage("pairs", "over ", tuple(Way(t, _set(f), k) for t, f, k in _SETS)),
        Stage("mean", "L = ", tuple(Way(t, _potential(f), k) for t, f, k in _TOTALS)),
    )
