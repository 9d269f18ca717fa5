"""How a row loss is made of logits, positives and denominator."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from nceref.diagnosis.probe.parts.work import REAL, PartWay, Work, log_of, log_sum

Head = Callable[[Work, float], Any]


class _Row:
    """What most heads need: log-probabilities of all pairs, and the positives."""

    def __init__(self, w: Work) -> None:
        self.w = w
        self.x, self.y = w["logits"]
        self.q = w["positives"]
        self.terms = w["denominator"]
        self.log_z = log_sum(self.terms)
        self.log_p = np.where(self.q != 0, self.y - self.log_z[:, None], 0.0)
        self.total = np.sum(self.q, axis=1)
        self.over = np.where(self.total > 0, self.total, 1.0)

    @cached_property
    def negatives(self) -> Any:
        """Logarithm of the denominator without positives."""
        m = self.x.shape[1]
        mask = np.ones(self.terms.shape, dtype=bool)
        mask[:, :m] = self.q == 0
        return log_sum(np.where(mask, self.terms, -np.inf))

    def mean(self, of: Any) -> Any:
        return np.sum(np.where(self.q != 0, self.q * of, 0.0), axis=1) / self.over

    def sum(self, of: Any) -> Any:
        return np.sum(np.where(self.q != 0, self.q * of, 0.0), axis=1)

    @cached_property
    def positive(self) -> Any:
        """Logarithm of the weighted sum of the positives."""
        return log_sum(self.y + log_of(np.maximum(self.q, 0)))

    @cached_property
    def p(self) -> Any:
        return np.exp(self.log_p)

    @cached_property
    def top(self) -> Any:
        return np.max(self.x, axis=1)


# Solving for a constant asks the same logits some hundred times.
_row = lru_cache(maxsize=16)(_Row)


def _softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def _focal(log_p: Any, power: float) -> Any:
    return -((1 - np.exp(log_p)) ** power) * log_p


BASES: dict[str, Callable[[_Row], Any]] = {
    "mean": lambda r: -r.mean(r.log_p),
    "sum": lambda r: -r.sum(r.log_p),
    "in": lambda r: np.log(r.over) - r.positive + r.log_z,
}
BASE_TEXTS = {
    "mean": "-mean_p log( e^(l_ip) / Z_i )",
    "sum": "-sum_p q_ip log( e^(l_ip) / Z_i )",
    "in": "-log( mean_p e^(l_ip) / Z_i )",
}
HEADS: tuple[tuple[str, Callable[[_Row, float], Any], str], ...] = (
    ("-mean_p log( e^(l_ip) / Z_i )", lambda r, c: -r.mean(r.log_p), ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i )", lambda r, c: -r.sum(r.log_p), ""),
    ("-log( mean_p e^(l_ip) / Z_i )", lambda r, c: np.log(r.over) - r.positive + r.log_z, ""),
    ("-log( sum_p e^(l_ip) / Z_i )", lambda r, c: -r.positive + r.log_z, ""),
    ("log Z_i - sum_p q_ip l_ip", lambda r, c: r.log_z - r.sum(r.y), ""),
    ("-sum_p q_ip l_ip/(|P(i)| + 1) + log Z_i", lambda r, c: r.log_z - r.sum(r.y) / (r.total + 1), ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i )/(|P(i)| + 1)", lambda r, c: -r.sum(r.log_p) / (r.total + 1), ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i )/N", lambda r, c: -r.sum(r.log_p) / r.w.samples, ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i )/sqrt(|P(i)|)", lambda r, c: -r.sum(r.log_p) / np.sqrt(r.over), ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i )/|P(i)|^2", lambda r, c: -r.sum(r.log_p) / r.over**2, ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i ) over the mean of |P|", lambda r, c: -r.sum(r.log_p) / np.mean(r.over), ""),
    ("-sum_p q_ip log( e^(l_ip) / Z_i ) over the number of classes in the batch", lambda r, c: -r.sum(r.log_p)
     / len(np.unique(r.w.labels)), ""),
    ("-log( sum_p e^(l_ip) / Z_i ) + log of the number of classes in the batch", lambda r, c: -r.positive + r.log_z
     + np.log(len(np.unique(r.w.labels))), ""),
    ("-log( sum_p e^(l_ip) / Z_i )/|P(i)|", lambda r, c: (-r.positive + r.log_z) / r.over, ""),
    ("-log( mean_p e^(l_ip) / Z_i )/|P(i)|", lambda r, c: (np.log(r.over) - r.positive + r.log_z) / r.over, ""),
    ("-log( sum_p e^(l_ip) / Z_i ) + log N", lambda r, c: -r.positive + r.log_z + np.log(r.w.samples), ""),
    ("-log( max_p e^(l_ip) / Z_i )", lambda r, c: -np.max(np.where(r.q > 0, r.y, -np.inf), axis=1) + r.log_z, ""),
    ("-log( min_p e^(l_ip) / Z_i )", lambda r, c: -np.min(np.where(r.q > 0, r.y, np.inf), axis=1) + r.log_z, ""),
    ("-mean_p e^(l_ip)/Z_i", lambda r, c: -r.mean(r.p), ""),
    ("-sum_p e^(l_ip)/Z_i", lambda r, c: -r.sum(r.p), ""),
    ("1 - mean_p e^(l_ip)/Z_i", lambda r, c: 1 - r.mean(r.p), ""),
    ("mean_p (1 - e^(l_ip)/Z_i)^2", lambda r, c: r.mean((1 - r.p) ** 2), ""),
    ("-mean_p log( e^(l_ip) / Z_i + {c} )", lambda r, c: -r.mean(np.log(r.p + c)), REAL),
    ("-mean_p log( max(e^(l_ip) / Z_i, {c}) )", lambda r, c: -r.mean(np.log(np.maximum(r.p, c))), REAL),
    ("-mean_p log( e^(l_ip) / Z_i held between {c} and 1 - {c} )", lambda r, c: -r.mean(np.log(np.clip(r.p, c, 1 - c))),
     REAL),
    ("-mean_p log( e^(l_ip) / (Z_i + {c}) + {c} )", lambda r, c: -r.mean(np.log(
        np.exp(r.y) / (np.exp(r.log_z)[:, None] + c) + c)), REAL),
    ("-mean_p log( (e^(l_ip) + {c}) / (Z_i + {c}) )", lambda r, c: -r.mean(np.log(
        (np.exp(r.y) + c) / (np.exp(r.log_z)[:, None] + c))), REAL),
    ("-mean_p log( (e^(l_ip) + {c}) / Z_i )", lambda r, c: -r.mean(np.log(np.exp(r.y) + c) - r.log_z[:, None]), REAL),
    ("-mean_p log( e^(l_ip) / (Z_i + {c}) )", lambda r, c: -r.mean(r.y - np.log(np.exp(r.log_z) + c)[:, None]), REAL),
    ("-mean_p log( e^(l_ip - M_i) / (Z_i e^(-M_i) + {c}) + {c} ), M_i the largest logit", lambda r, c: -r.mean(np.log(
        np.exp(r.y - r.top[:, None]) / (np.exp(r.log_z - r.top)[:, None] + c) + c)), REAL),
    ("-mean_p log( e^(l_ip) / max(Z_i, {c}) )", lambda r, c: -r.mean(r.y - np.maximum(r.log_z, np.log(c))[:, None]),
     REAL),
    ("-mean_p (1 - p_ip)^2 log p_ip, p_ip = e^(l_ip)/Z_i", lambda r, c: r.mean(_focal(r.log_p, 2)), ""),
    ("-mean_p (1 - p_ip)^{c} log p_ip, p_ip = e^(l_ip)/Z_i", lambda r, c: r.mean(_focal(r.log_p, c)), REAL),
    ("-{c} mean_p (1 - p_ip)^2 log p_ip, p_ip = e^(l_ip)/Z_i", lambda r, c: c * r.mean(_focal(r.log_p, 2)), REAL),
    ("-mean_p p_ip^{c} log p_ip, p_ip = e^(l_ip)/Z_i", lambda r, c: -r.mean(r.p**c * r.log_p), REAL),
    ("mean_p (1 - p_ip^{c})/{c}, p_ip = e^(l_ip)/Z_i", lambda r, c: r.mean((1 - r.p**c) / c), REAL),
    ("-mean_p log( p_ip - m ), p_ip = e^(l_ip)/Z_i", lambda r, c: -r.mean(np.log(r.p - _margin(r))), ""),
    ("-mean_p log( max(p_ip - m, {c}) ), p_ip = e^(l_ip)/Z_i", lambda r, c: -r.mean(np.log(
        np.maximum(r.p - _margin(r), c))), REAL),
    ("-mean_p log p_ip + m, p_ip = e^(l_ip)/Z_i", lambda r, c: -r.mean(r.log_p) + _margin(r), ""),
    ("-mean_p log p_ip - m, p_ip = e^(l_ip)/Z_i", lambda r, c: -r.mean(r.log_p) - _margin(r), ""),
    ("log( sum_k e^(p_ik - m [k = y]) ) - p_iy + m, p_ik = e^(l_ik)/Z_i", lambda r, c: _again(r, _margin(r)), ""),
    ("log( sum_k e^(s (p_ik - m [k = y])) ) - s (p_iy - m), p_ik = e^(l_ik)/Z_i", lambda r, c: _again(
        r, _margin(r), r.w.sharp), ""),
    ("log( sum_k e^(p_ik) ) - p_iy, p_ik = e^(l_ik)/Z_i", lambda r, c: _again(r, 0.0), ""),
    ("log(1 + sum_n e^(l_in) sum_p e^(-l_ip))", lambda r, c: _softplus(r.negatives + _minus(r)), ""),
    ("log(1 + sum_n e^(l_in)/sum_p e^(l_ip))", lambda r, c: _softplus(r.negatives - r.positive), ""),
    ("log(1 + sum_n e^(l_in)) + log(1 + sum_p e^(-l_ip))", lambda r, c: _softplus(r.negatives) + _softplus(_minus(r)),
     ""),
    ("-mean_p log( e^(l_ip) / (e^(l_ip) + sum_n e^(l_in)) )", lambda r, c: r.mean(_softplus(
        r.negatives[:, None] - r.y)), ""),
    ("-sum_p q_ip log( e^(l_ip) / (e^(l_ip) + sum_n e^(l_in)) )", lambda r, c: r.sum(_softplus(
        r.negatives[:, None] - r.y)), ""),
    ("-log( mean_p e^(l_ip) / (mean_p e^(l_ip) + sum_n e^(l_in)) )", lambda r, c: _softplus(
        r.negatives - r.positive + np.log(r.over)), ""),
    ("-log( sum_p e^(l_ip) / sum_n e^(l_in) )", lambda r, c: r.negatives - r.positive, ""),
    ("-mean_p log( e^(l_ip) / sum_n e^(l_in) )", lambda r, c: r.negatives - r.mean(r.y), ""),
    ("-log( e^(mean_p l_ip) / (e^(mean_p l_ip) + sum_n e^(l_in)) )", lambda r, c: _softplus(r.negatives - r.mean(r.y)),
     ""),
    ("log(1 + sum_n e^(l_in))", lambda r, c: _softplus(r.negatives), ""),
    ("sum_j log(1 + e^(l_ij)) over negatives and log(1 + e^(-l_ip))", lambda r, c: _bce(r, 1.0), ""),
    ("mean of log(1 + e^(l_ij)) over negatives and log(1 + e^(-l_ip)) over positives", lambda r, c: _bce(r, None), ""),
    ("mean_j of log(1 + e^(l_ij)) for negatives and log(1 + e^(-l_ij)) for positives", lambda r, c: _bce(r, 0.0), ""),
    ("-log(1 - p_in) summed over negatives, and -log p_ip", lambda r, c: _one_minus(r), ""),
    ("max(0, {c} - l_ip + max_n l_in)", lambda r, c: np.maximum(0, c - r.mean(r.y) + _hard(r)), REAL),
    ("mean_n max(0, {c} - l_ip + l_in)", lambda r, c: _hinge(r, c), REAL),
    ("log Z_i, the largest logit never added back, - l_ip", lambda r, c: r.log_z - r.top - r.mean(r.y), ""),
    ("log Z_i - l_ip + M_i, M_i the largest logit", lambda r, c: r.log_z - r.mean(r.y) + r.top, ""),
    ("log Z_i - l_ip less M, M the largest logit of all", lambda r, c: r.log_z - r.mean(r.y) - np.max(r.x), ""),
    ("log Z_i - l_ip plus M, M the largest logit of all", lambda r, c: r.log_z - r.mean(r.y) + np.max(r.x), ""),
    ("log( 1 + Z_i e^(-M_i) ) + M_i - l_ip, M_i the largest logit", lambda r, c: _softplus(r.log_z - r.top) + r.top
     - r.mean(r.y), ""),
    ("log( e^(l_ip) + Z_i e^(-M_i) ) - l_ip, M_i the largest logit", lambda r, c: np.logaddexp(
        r.mean(r.y), r.log_z - r.top) - r.mean(r.y), ""),
    ("log( e^(l_ip - M_i) + sum_n e^(l_in) ) + M_i - l_ip", lambda r, c: np.logaddexp(
        r.mean(r.y) - r.top, r.negatives) + r.top - r.mean(r.y), ""),
    ("log( e^(l_ip - M_i) + sum_n e^(l_in) ) - (l_ip - M_i)", lambda r, c: np.logaddexp(
        r.mean(r.y) - r.top, r.negatives) - r.mean(r.y) + r.top, ""),
    ("log( 1 + sum_n e^(l_in) ) - (l_ip - M_i), M_i the largest logit", lambda r, c: _softplus(r.negatives)
     - r.mean(r.y) + r.top, ""),
    ("log( 1 + sum_n e^(l_in - l_ip) ), log(1 + e^(-M_i)) more", lambda r, c: _softplus(r.negatives - r.positive)
     + _softplus(-r.top), ""),
    ("-mean_p log p_ip + sum_j q log q", lambda r, c: -r.sum(r.log_p) + np.sum(
        np.where(r.q > 0, r.q * log_of(r.q), 0), 1), ""),
    ("-sum_p q_ip log p_ip - entropy of p", lambda r, c: -r.sum(r.log_p) + _entropy(r), ""),
    ("-sum_p q_ip log p_ip + 0.1 times the entropy of p", lambda r, c: -r.sum(r.log_p) - 0.1 * _entropy(r), ""),
    ("-sum_p q_ip log p_ip + {c} times sum_j p log p", lambda r, c: -r.sum(r.log_p) + c * _entropy(r), REAL),
    ("-sum_p q_ip log p_ip + {c} (log Z_i)^2", lambda r, c: -r.sum(r.log_p) + c * r.log_z**2, REAL),
    ("-sum_p q_ip log p_ip + {c} mean_j l_ij^2", lambda r, c: -r.sum(r.log_p) + c * np.mean(r.x**2, axis=1), REAL),
    ("-sum_p q_ip log p_ip + {c} mean_j s_ij^2", lambda r, c: -r.sum(r.log_p) + c * np.mean(
        r.w["similarities"] ** 2, axis=1), REAL),
    ("{c} log Z_i - l_ip", lambda r, c: c * r.log_z - r.mean(r.y), REAL),
    ("log Z_i - {c} l_ip", lambda r, c: r.log_z - c * r.mean(r.y), REAL),
    ("T log Z_i - l_ip", lambda r, c: r.log_z / r.w.sharp - r.mean(r.y), ""),
    ("log Z_i/T - l_ip", lambda r, c: r.log_z * r.w.sharp - r.mean(r.y), ""),
    ("log Z_i - T l_ip", lambda r, c: r.log_z - r.mean(r.y) / r.w.sharp, ""),
    ("log Z_i - l_ip/T", lambda r, c: r.log_z - r.mean(r.y) * r.w.sharp, ""),
    ("Z_i - l_ip", lambda r, c: np.exp(r.log_z) - r.mean(r.y), ""),
    ("Z_i/e^(l_ip)", lambda r, c: r.mean(np.exp(-r.log_p)), ""),
    ("log(1 + Z_i/e^(l_ip))", lambda r, c: r.mean(np.log1p(np.exp(-r.log_p))), ""),
    ("log Z_i", lambda r, c: r.log_z, ""),
    ("-l_ip", lambda r, c: -r.mean(r.y), ""),
    ("log Z_i - l_ip less log of the number of candidates", lambda r, c: -r.mean(r.log_p) - np.log(
        np.sum(np.isfinite(r.terms), 1)), ""),
    ("log(Z_i) - l_ip in base 2", lambda r, c: -r.mean(r.log_p) / np.log(2), ""),
    ("log(Z_i) - l_ip in base 10", lambda r, c: -r.mean(r.log_p) / np.log(10), ""),
    ("log( Z_i rounded to float16 ) - l_ip", lambda r, c: np.log(np.float16(np.exp(r.log_z)).astype(float))
     - r.mean(r.y), ""),
    ("(log Z_i) rounded to float16, - l_ip", lambda r, c: np.float16(r.log_z).astype(float) - r.mean(r.y), ""),
    ("log Z_i - l_ip, both rounded to float16", lambda r, c: np.float16(r.log_z).astype(float)
     - np.float16(r.mean(r.y)).astype(float), ""),
    ("log Z_i - l_ip rounded to {c} digits", lambda r, c: np.round(-r.mean(r.log_p), int(c)), "integer"),
    ("log Z_i - sum_p l_ip over the largest |P|", lambda r, c: -r.sum(r.log_p) / np.max(r.over), ""),
    ("-mean_p log( e^(l_ip) / Z_p )", lambda r, c: -r.mean(r.y - _of_positive(r)), ""),
    ("the mean over p of -log( e^(l_ip) / Z_i ) and -log( e^(l_ip) / Z_p )", lambda r, c: -r.mean(
        r.y - (r.log_z[:, None] + _of_positive(r)) / 2), ""),
    ("-log( e^(l_ip) / (Z_i + Z_p) )", lambda r, c: -r.mean(r.y - np.logaddexp(r.log_z[:, None], _of_positive(r))), ""),
    ("-mean_p log( e^(l_ip) / (sum of all Z) )", lambda r, c: -r.mean(r.y - log_sum(r.log_z)), ""),
    ("-log( sum of all e^(l_ip) / sum of all Z )", lambda r, c: log_sum(r.log_z) - log_sum(r.positive) + 0 * r.log_z,
     ""),
    ("log Z_i - the mean of all l_ip", lambda r, c: r.log_z - np.mean(r.mean(r.y)), ""),
    ("-log( sum of all e^(l_ip) / Z_i )", lambda r, c: r.log_z - log_sum(r.positive), ""),
    ("log Z_0 - l_ip", lambda r, c: r.log_z[0] - r.mean(r.y), ""),
    ("log of the mean Z - l_ip", lambda r, c: log_sum(r.log_z) - np.log(len(r.log_z)) - r.mean(r.y), ""),
)  # fmt: skip


def _margin(r: _Row) -> float:
    return float(r.w.scalars["margin"])


def _minus(r: _Row) -> Any:
    return log_sum(np.where(r.q > 0, -r.y, -np.inf))


def _of_positive(r: _Row) -> Any:
    """Denominators of the candidates as anchors, a row."""
    if r.log_z.size != r.x.shape[1]:
        raise ValueError
    return r.log_z[None, :]


def _again(r: _Row, margin: float, scale: float = 1.0) -> Any:
    """Cross-entropy of the probabilities, less a margin for the target."""
    p = np.exp(r.terms[:, : r.x.shape[1]] - r.log_z[:, None])
    x = scale * (p - margin * (r.q > 0))
    return log_sum(x) - np.sum(r.q * x, axis=1)


def _bce(r: _Row, weight: float | None) -> Any:
    inside = np.isfinite(r.terms[:, : r.x.shape[1]]) & (r.q == 0)
    push, pull = np.where(inside, _softplus(r.x), 0.0), np.where(r.q > 0, _softplus(-r.y), 0.0)
    if weight is None:
        return np.sum(push, 1) / np.maximum(np.sum(inside, 1), 1) + np.sum(pull, 1) / np.maximum(np.sum(r.q > 0, 1), 1)
    total = np.sum(push, axis=1) + np.sum(pull, axis=1)
    return total if weight else total / np.maximum(np.sum(inside | (r.q > 0), axis=1), 1)


def _one_minus(r: _Row) -> Any:
    p = np.exp(r.terms[:, : r.x.shape[1]] - r.log_z[:, None])
    return -r.mean(r.log_p) - np.sum(np.where(r.q == 0, np.log1p(-np.where(r.q == 0, p, 0.0)), 0.0), axis=1)


def _hard(r: _Row) -> Any:
    return np.max(np.where(r.q == 0, r.terms[:, : r.x.shape[1]], -np.inf), axis=1)


def _hinge(r: _Row, c: float) -> Any:
    inside = np.isfinite(r.terms[:, : r.x.shape[1]]) & (r.q == 0)
    gap = np.maximum(0, c - r.mean(r.y)[:, None] + r.x)
    return np.sum(np.where(inside, gap, 0), axis=1) / np.maximum(np.sum(inside, axis=1), 1)


def _entropy(r: _Row) -> Any:
    log_p = r.terms - r.log_z[:, None]
    return np.sum(np.where(np.isfinite(log_p), np.exp(log_p) * log_p, 0.0), axis=1)


_SHORT = 60
"""Characters of what is tried beside another part that differs."""


def ways(base: str, factor: Callable[[Work], Any] | None = None) -> tuple[PartWay, ...]:
    """Ways of making row losses; the first is `base`, of `BASES`.

    `factor`: what multiplies every row.
    """
    first = BASES[base]
    out = [PartWay(BASE_TEXTS[base], _rowwise(lambda r, c: first(r), factor))]
    seen = {BASE_TEXTS[base]}
    for text, f, constant in HEADS:
        if text not in seen:
            out.append(PartWay(text, _rowwise(f, factor), constant, plain=len(text) < _SHORT))
    return tuple(out)


def _rowwise(f: Callable[[_Row, float], Any], factor: Callable[[Work], Any] | None) -> Head:
    def of(w: Work, c: float) -> Any:
        r = _row(w)
        rows = np.where(r.total > 0, f(r, c), 0.0)
        return rows if factor is None else rows * factor(w)

    return of
