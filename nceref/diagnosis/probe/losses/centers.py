"""Rows with labels, and class centers as more candidates, whose logits are inner products as they are."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.probe.losses.labelled import names
from nceref.diagnosis.probe.losses.labelled import works as labelled_works
from nceref.diagnosis.probe.parts.layouts import PartedFamily, PartedLoss, Texts, compared, softmaxed
from nceref.diagnosis.probe.parts.work import LossPart, PartWay, Work


def _works(inputs):
    made = labelled_works(inputs)
    return None if made is None else [_centered(made[0], inputs)]


def _centered(w, inputs):
    """With the class centers as more candidates, whose logits are given."""
    features = inputs["embeddings"] if inputs.get("center_features") is None else inputs["center_features"]
    n, c = len(w.labels), len(inputs["centers"])
    nobody = np.zeros((n, c), dtype=bool)
    own = np.arange(c) == w.labels[:, None]
    w.more = {
        "features": features, "centers": inputs["centers"], "prior": inputs.get("class_prior"),
        "bias": inputs.get("center_bias"), "at": w.positives.shape[1],
    }  # fmt: skip
    w.own, w.view = (np.concatenate([x, nobody], axis=1) for x in (w.own, w.view))
    w.inside = np.concatenate([w.inside, ~nobody], axis=1)
    w.positives = np.concatenate([w.positives, own], axis=1)
    w.kinds = np.concatenate([w.kinds, np.arange(c)])
    return w


def _logits_with_centers(change: Callable[[Any, Work], Any], offset: float = 1.0) -> Callable[[Work, float], Any]:
    def of(w: Work, c: float) -> Any:
        more = w.more
        x = change(more["features"] @ more["centers"].T, w)
        if more["prior"] is not None:
            x = x + offset * np.log(more["prior"])
        if more["bias"] is not None:
            x = x + more["bias"]
        both = np.concatenate([w["similarities"] * w.sharp, x], axis=1)
        return both, both

    return of


def _unit(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _unit_scores(w: Work, centers: bool = True) -> Any:
    return _unit(w.more["features"]) @ (_unit(w.more["centers"]) if centers else w.more["centers"]).T


_CENTERS: tuple[tuple[str, Callable[[Any, Work], Any]], ...] = (
    ("s_ij/T, c_k.f_i for centers", lambda x, w: x),
    ("s_ij/T, c_k.f_i/T for centers", lambda x, w: x * w.sharp),
    ("s_ij/T, cosines of c_k and f_i for centers", lambda x, w: _unit_scores(w)),
    ("s_ij/T, cosines of c_k and f_i over T for centers", lambda x, w: _unit_scores(w) * w.sharp),
    ("s_ij/T, c_k.f_i/|f_i| for centers", lambda x, w: _unit_scores(w, False)),
    ("s_ij/T, c_k.f_i/(T |f_i|) for centers", lambda x, w: _unit_scores(w, False) * w.sharp),
    ("s_ij/T, 0 for centers", lambda x, w: 0 * x),
    ("s_ij/T, -c_k.f_i for centers", lambda x, w: -x),
    ("s_ij/T, T c_k.f_i for centers", lambda x, w: x / w.sharp),
    ("s_ij/T, alpha c_k.f_i for centers", lambda x, w: x * w.scalars["alpha"]),
)
_SHARES: tuple[tuple[str, Callable[[Any, Any, float, Work], Any]], ...] = (
    ("samples with the weight alpha and the own center with 1", lambda p, o, a, w: a * p + o),
    ("samples and the own center with the weight alpha", lambda p, o, a, w: a * (p + o)),
    ("samples with the weight 1 and the own center with alpha", lambda p, o, a, w: p + a * o),
    ("samples and the own center with the weight 1", lambda p, o, a, w: p + o),
    ("samples with the weight alpha alone", lambda p, o, a, w: a * p),
    ("samples alone", lambda p, o, a, w: p + 0 * o),
    ("the own center alone", lambda p, o, a, w: o + 0 * p),
    ("samples with the weight alpha, the own center with 0", lambda p, o, a, w: a * p + 0 * o),
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


def _shared(f: Callable[[Any, Any, float, Work], Any]) -> Callable[[Work, float], Any]:
    def of(w: Work, c: float) -> Any:
        center = w.j >= w.more["at"]
        return f(w.positives * ~center, w.positives * center, w.scalars["alpha"], w)

    return of


def _parts(inputs, reduction):
    ways = tuple(PartWay(text, _logits_with_centers(f)) for text, f in _CENTERS)
    ways += (PartWay("s_ij/T, c_k.f_i with the log-prior subtracted", _logits_with_centers(lambda x, w: x, -1.0)),)
    ways += (PartWay("s_ij/T, c_k.f_i without the log-prior", _logits_with_centers(lambda x, w: x, 0.0)),)
    ways += tuple(PartWay(text, f) for text, f in _MEETING)
    form = "mean" if inputs.get("form") == "normalized" else "sum"
    texts = Texts("", "all j != i and all centers")
    made = softmaxed(compared(names(inputs), inputs), LossPart("logits", "l_ij = ", ways), texts, form, reduction)
    shares = tuple(PartWay(text, _shared(f)) for text, f in _SHARES)
    return tuple(LossPart(p.name, p.symbol, shares) if p.name == "positives" else p for p in made)


def _as_samples(scale: Callable[[Work], float]) -> Callable[[Work, float], Any]:
    def of(w: Work, c: float) -> Any:
        z = w["rows of inputs"][: len(w.labels)]
        if z.shape[1] != w.more["centers"].shape[1]:
            raise ValueError
        both = np.concatenate([w["similarities"] * w.sharp, z @ _unit(w.more["centers"]).T * scale(w)], axis=1)
        return both, both

    return of


_MEETING: tuple[tuple[str, Callable[[Work, float], Any]], ...] = (
    ("s_ij/T, centers of length 1 compared with z_i over T", _as_samples(lambda w: w.sharp)),
    ("s_ij/T, centers of length 1 compared with z_i", _as_samples(lambda w: 1.0)),
)
PARTED = PartedFamily("centers", {"paco": PartedLoss(_works, _parts)})
