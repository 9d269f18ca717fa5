"""Rows with labels, and class centers as more candidates, whose logits are inner products as they are."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.ways.way import Stage, Way, unit


def _logits_with_centers(
    change: Callable[[Any, DenseBatch], Any], offset: float = 1.0
) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        prior, bias = w.inputs["class_prior"], w.inputs["center_bias"]
        x = change(_features(w) @ w.inputs["centers"].T, w)
        if prior is not None:
            x = x + offset * np.log(prior)
        if bias is not None:
            x = x + bias
        both = np.concatenate([w["similarities"] * w.scale, x], axis=1)
        return both, both

    return of


def _features(w: DenseBatch) -> Any:
    return w.inputs["embeddings"] if w.inputs["center_features"] is None else w.inputs["center_features"]


def _unit_scores(w: DenseBatch, centers: bool = True) -> Any:
    return unit(_features(w)) @ (unit(w.inputs["centers"]) if centers else w.inputs["centers"]).T


_CENTERS: tuple[tuple[str, Callable[[Any, DenseBatch], Any]], ...] = (
    ("s_ij/T, c_k.f_i for centers", lambda x, w: x),
    ("s_ij/T, c_k.f_i/T for centers", lambda x, w: x * w.scale),
    ("s_ij/T, cosines of c_k and f_i for centers", lambda x, w: _unit_scores(w)),
    ("s_ij/T, cosines of c_k and f_i over T for centers", lambda x, w: _unit_scores(w) * w.scale),
    ("s_ij/T, c_k.f_i/|f_i| for centers", lambda x, w: _unit_scores(w, False)),
    ("s_ij/T, c_k.f_i/(T |f_i|) for centers", lambda x, w: _unit_scores(w, False) * w.scale),
    ("s_ij/T, 0 for centers", lambda x, w: 0 * x),
    ("s_ij/T, -c_k.f_i for centers", lambda x, w: -x),
    ("s_ij/T, T c_k.f_i for centers", lambda x, w: x / w.scale),
    ("s_ij/T, alpha c_k.f_i for centers", lambda x, w: x * w.inputs["alpha"]),
)
_SHARES: tuple[tuple[str, Callable[[Any, Any, float, DenseBatch], Any]], ...] = (
    ("samples with the weight alpha and the own center with 1", lambda p, o, a, w: a * p + o),
    ("samples and the own center with the weight alpha", lambda p, o, a, w: a * (p + o)),
    ("samples with the weight 1 and the own center with alpha", lambda p, o, a, w: p + a * o),
    ("samples and the own center with the weight 1", lambda p, o, a, w: p + o),
    ("samples with the weight alpha alone", lambda p, o, a, w: a * p),
    ("samples alone", lambda p, o, a, w: p + 0 * o),
    ("the own center alone", lambda p, o, a, w: o + 0 * p),
    ("samples with the weight alpha and the own center with 1 - alpha", lambda p, o, a, w: a * p + (1 - a) * o),
    ("samples with the weight 1 - alpha and the own center with alpha", lambda p, o, a, w: (1 - a) * p + a * o),
    ("samples with the weight alpha/|P(i)| and the own center with 1", lambda p, o, a, w: a * p / np.maximum(
        np.sum(p, axis=1, keepdims=True), 1) + o),
    ("samples with the weight 1/|P(i)| and the own center with 1", lambda p, o, a, w: p / np.maximum(
        np.sum(p, axis=1, keepdims=True), 1) + o),
    ("samples with the weight alpha/(|P(i)| + 1) and the own center with 1", lambda p, o, a, w: a * p / (
        np.sum(p, axis=1, keepdims=True) + 1) + o),
    ("samples with the weight 1/alpha and the own center with 1", lambda p, o, a, w: p / a + o),
    ("samples with the weight alpha^2 and the own center with 1", lambda p, o, a, w: a * a * p + o),
    ("samples with the weight alpha and the own center with 1/alpha", lambda p, o, a, w: a * p + o / a),
)  # fmt: skip


def _shared(f: Callable[[Any, Any, float, DenseBatch], Any]) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        return f(w.together * ~w.centers * 1.0, w.together * w.centers * 1.0, w.inputs["alpha"], w)

    return of


def _as_samples(scale: Callable[[DenseBatch], float]) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        z = w["rows of inputs"][: len(w.labels)]
        if z.shape[1] != w.inputs["centers"].shape[1]:
            raise ValueError
        both = np.concatenate([w["similarities"] * w.scale, z @ unit(w.inputs["centers"]).T * scale(w)], axis=1)
        return both, both

    return of


_MEETING: tuple[tuple[str, Callable[[DenseBatch, float], Any]], ...] = (
    ("s_ij/T, centers of length 1 compared with z_i over T", _as_samples(lambda w: w.scale)),
    ("s_ij/T, centers of length 1 compared with z_i", _as_samples(lambda w: 1.0)),
)


def logits_stage() -> Stage:
    """Logits of samples and of centers."""
    ways = tuple(Way(text, _logits_with_centers(f)) for text, f in _CENTERS)
    ways += (Way("s_ij/T, c_k.f_i with the log-prior subtracted", _logits_with_centers(lambda x, w: x, -1.0)),)
    ways += (Way("s_ij/T, c_k.f_i without the log-prior", _logits_with_centers(lambda x, w: x, 0.0)),)
    return Stage("logits", "l_ij = ", (*ways, *(Way(text, f) for text, f in _MEETING)))


def positives_stage() -> Stage:
    """Weights of samples and of the own center."""
    return Stage("positives", "P(i): ", tuple(Way(text, _shared(f)) for text, f in _SHARES))
