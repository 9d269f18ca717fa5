"""How a row loss is made of logits, positives and denominator: probabilities of the positives, and what joins them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, log_sum_exp
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Stage, Way, largest, log_of

Of = Callable[[DenseBatch, float], Any]


def _z(w: DenseBatch) -> Any:
    """Logarithms of the denominators, a column."""
    return log_sum_exp(w["denominator"])[:, None]


def _y(w: DenseBatch) -> Any:
    return w["logits"][1]


def _top(w: DenseBatch) -> Any:
    """The largest logit of each row, a column."""
    return largest(w["logits"][0], axis=1)


def _nearest(w: DenseBatch) -> Any:
    """The largest term of each denominator, a column."""
    return largest(w["denominator"], axis=1)


def _candidates(w: DenseBatch) -> Any:
    """Terms of the denominator but those that are beside the logits."""
    return w["denominator"][:, : w["logits"][0].shape[1]]


def _negatives(w: DenseBatch) -> Any:
    """Logarithms of the denominators without positives, a column."""
    positive = np.zeros(w["denominator"].shape, dtype=bool)
    positive[:, : w["positives"].shape[1]] = w["positives"] != 0
    return log_sum_exp(np.where(positive, -np.inf, w["denominator"]))[:, None]


def _of_positive(w: DenseBatch) -> Any:
    """Logarithms of the denominators of the candidates as anchors, a row."""
    z = log_sum_exp(w["denominator"])
    if z.size != w["logits"][0].shape[1]:
        raise ValueError
    return z[None, :]


def _beside_all(w: DenseBatch) -> Any:
    """Logarithms of probabilities beside the negatives of each row, the mean over the rows."""
    if w.height or np.any(np.sum(w["positives"] > 0, axis=1) > 1):
        # The table of several batches is none of theirs, and that of all positives would be large.
        raise ValueError
    own = np.sum(np.where(w["positives"] > 0, _y(w), 0.0), axis=1)
    return _y(w) - np.mean(np.logaddexp(own[:, None], _negatives(w)[:, 0]), axis=-1)[:, None]


def _all_positives(w: DenseBatch) -> Any:
    return log_sum_exp(log_sum_exp(_y(w) + log_of(np.maximum(w["positives"], 0))))


def _margin(w: DenseBatch) -> float:
    return float(w.inputs["margin"])


def _twice(w: DenseBatch, margin: float = 0.0, scale: float = 1.0) -> Any:
    """Log-softmax of the probabilities, less a margin for the positives."""
    x = scale * (np.exp(_candidates(w) - _z(w)) - margin * (w["positives"] > 0))
    return x - log_sum_exp(x)[:, None]


def _half(x: Any) -> Any:
    return np.float16(x).astype(float)


PROBABILITIES: tuple[tuple[str, Of, str], ...] = (
    ("e^(l_ip)/Z_i", lambda w, c: _y(w) - _z(w), ""),
    # Constants that keep a logarithm finite, in every place where one is met in public code.
    ("e^(l_ip)/Z_i + {c}", lambda w, c: np.log(np.exp(_y(w) - _z(w)) + c), REAL),
    ("max(e^(l_ip)/Z_i, {c})", lambda w, c: np.log(np.maximum(np.exp(_y(w) - _z(w)), c)), REAL),
    ("e^(l_ip)/Z_i held between {c} and 1 - {c}", lambda w, c: np.log(np.clip(np.exp(_y(w) - _z(w)), c, 1 - c)), REAL),
    ("e^(l_ip)/(Z_i + {c})", lambda w, c: _y(w) - np.log(np.exp(_z(w)) + c), REAL),
    ("e^(l_ip)/max(Z_i, {c})", lambda w, c: _y(w) - np.maximum(_z(w), np.log(c)), REAL),
    ("(e^(l_ip) + {c})/Z_i", lambda w, c: np.log(np.exp(_y(w)) + c) - _z(w), REAL),
    ("(e^(l_ip) + {c})/(Z_i + {c})", lambda w, c: np.log((np.exp(_y(w)) + c) / (np.exp(_z(w)) + c)), REAL),
    ("max(e^(l_ip), {c})/max(Z_i, {c})", lambda w, c: np.maximum(_y(w), np.log(c))
     - np.maximum(_z(w), np.log(c)), REAL),
    ("e^(l_ip)/(Z_i + {c}) + {c}", lambda w, c: np.log(np.exp(_y(w)) / (np.exp(_z(w)) + c) + c), REAL),
    ("e^(l_ip - M_i)/(Z_i e^(-M_i) + {c}) + {c}, M_i the largest logit", lambda w, c: np.log(
        np.exp(_y(w) - _top(w)) / (np.exp(_z(w) - _top(w)) + c) + c), REAL),
    # A margin of the probability in place of the cosine.
    ("e^(l_ip)/Z_i - m", lambda w, c: np.log(np.exp(_y(w) - _z(w)) - _margin(w)), ""),
    ("max(e^(l_ip)/Z_i - m, {c})", lambda w, c: np.log(np.maximum(np.exp(_y(w) - _z(w)) - _margin(w), c)), REAL),
    # A softmax of what is one already, as where a model ends in a softmax and the loss has its own.
    ("e^(q_ip)/sum_k e^(q_ik), q_ik = e^(l_ik)/Z_i", lambda w, c: _twice(w), ""),
    ("e^(q_ip)/sum_k e^(q_ik), q_ik = e^(l_ik)/Z_i - m [k = p]", lambda w, c: _twice(w, _margin(w)), ""),
    ("e^(q_ip)/sum_k e^(q_ik), q_ik = s (e^(l_ik)/Z_i - m [k = p])", lambda w, c: _twice(w, _margin(w), w.scale), ""),
    # Who is in the denominator of one positive.
    ("e^(l_ip)/(e^(l_ip) + sum_n e^(l_in))", lambda w, c: _y(w) - np.logaddexp(_y(w), _negatives(w)), ""),
    ("e^(l_ip)/sum_n e^(l_in)", lambda w, c: _y(w) - _negatives(w), ""),
    ("e^(l_ip)/(1 + sum_n e^(l_in))", lambda w, c: _y(w) - np.logaddexp(0, _negatives(w)), ""),
    ("1/(1 + sum_n e^(l_in))", lambda w, c: 0 * _y(w) - np.logaddexp(0, _negatives(w)), ""),
    ("e^(l_ip)/(1 + Z_i)", lambda w, c: _y(w) - np.logaddexp(0, _z(w)), ""),
    ("e^(l_ip)/(e^(l_ip) + Z_i)", lambda w, c: _y(w) - np.logaddexp(_y(w), _z(w)), ""),
    ("e^(l_ip)/Z_p", lambda w, c: _y(w) - _of_positive(w), ""),
    ("e^(l_ip)/sqrt(Z_i Z_p)", lambda w, c: _y(w) - (_z(w) + _of_positive(w)) / 2, ""),
    ("e^(l_ip)/(Z_i + Z_p)", lambda w, c: _y(w) - np.logaddexp(_z(w), _of_positive(w)), ""),
    # Sums over the whole batch where one row is meant; a column beside a row makes a table of both.
    ("e^(l_ip)/(e^(l_ip) + sum_n e^(l_jn)), the mean over all rows j", lambda w, c: _beside_all(w), ""),
    ("e^(l_ip) over the sum of all Z", lambda w, c: _y(w) - log_sum_exp(_z(w)[:, 0]), ""),
    ("e^(l_ip) over the mean of all Z", lambda w, c: _y(w) - log_sum_exp(_z(w)[:, 0]) + np.log(len(_z(w))), ""),
    ("e^(l_ip)/Z_0", lambda w, c: _y(w) - _z(w)[0], ""),
    ("the sum of all e^(l_ip) over Z_i", lambda w, c: _all_positives(w) - _z(w) + 0 * _y(w), ""),
    ("the sum of all e^(l_ip) over the sum of all Z", lambda w, c: _all_positives(w) - log_sum_exp(_z(w)[:, 0])
     + 0 * _y(w), ""),
    ("e^m/Z_i, m the mean of all l_ip", lambda w, c: np.mean(_mean(w, _y(w))) - _z(w) + 0 * _y(w), ""),
    # A maximum that is subtracted in one place and not in the other, or added again in the wrong one.
    ("e^(l_ip + M_i)/Z_i, M_i the largest logit", lambda w, c: _y(w) - _z(w) + _top(w), ""),
    ("e^(l_ip - M_i)/Z_i, M_i the largest logit", lambda w, c: _y(w) - _z(w) - _top(w), ""),
    ("e^(l_ip + M_i)/Z_i, M_i the largest logit of the denominator", lambda w, c: _y(w) - _z(w) + _nearest(w), ""),
    ("e^(l_ip - M_i)/Z_i, M_i the largest logit of the denominator", lambda w, c: _y(w) - _z(w) - _nearest(w), ""),
    ("e^(l_ip + M)/Z_i, M the largest logit of all", lambda w, c: _y(w) - _z(w) + largest(w["logits"][0]), ""),
    ("e^(l_ip - M)/Z_i, M the largest logit of all", lambda w, c: _y(w) - _z(w) - largest(w["logits"][0]), ""),
    ("e^(l_ip - M_i)/(1 + Z_i e^(-M_i)), M_i the largest logit", lambda w, c: _y(w) - _top(w) - np.logaddexp(
        0, _z(w) - _top(w)), ""),
    ("e^(l_ip)/(e^(l_ip) + Z_i e^(-M_i)), M_i the largest logit", lambda w, c: _y(w) - np.logaddexp(
        _y(w), _z(w) - _top(w)), ""),
    ("e^(l_ip - M_i)/(e^(l_ip - M_i) + sum_n e^(l_in)), M_i the largest logit", lambda w, c: _y(w) - _top(w)
     - np.logaddexp(_y(w) - _top(w), _negatives(w)), ""),
    ("e^(l_ip - M_i)/(1 + sum_n e^(l_in)), M_i the largest logit", lambda w, c: _y(w) - _top(w) - np.logaddexp(
        0, _negatives(w)), ""),
    ("e^(l_ip)/((e^(l_ip) + sum_n e^(l_in)) (1 + e^(-M_i))), M_i the largest logit", lambda w, c: _y(w) - np.logaddexp(
        _y(w), _negatives(w)) - np.logaddexp(0, -_top(w)), ""),
    # The temperature, or a factor, on one of both.
    ("e^({c} l_ip)/Z_i", lambda w, c: c * _y(w) - _z(w), REAL),
    ("e^(l_ip)/Z_i^{c}", lambda w, c: _y(w) - c * _z(w), REAL),
    ("e^(T l_ip)/Z_i", lambda w, c: _y(w) / w.scale - _z(w), ""),
    ("e^(l_ip/T)/Z_i", lambda w, c: _y(w) * w.scale - _z(w), ""),
    ("e^(l_ip)/Z_i^T", lambda w, c: _y(w) - _z(w) / w.scale, ""),
    ("e^(l_ip)/Z_i^(1/T)", lambda w, c: _y(w) - _z(w) * w.scale, ""),
    ("e^(l_ip - Z_i)", lambda w, c: _y(w) - np.exp(_z(w)), ""),
    ("e^(l_ip)", lambda w, c: _y(w), ""),
    ("1/Z_i", lambda w, c: 0 * _y(w) - _z(w), ""),
    ("n e^(l_ip)/Z_i, n the number of candidates", lambda w, c: _y(w) - _z(w) + np.log(
        np.sum(np.isfinite(w["denominator"]), axis=1, keepdims=True)), ""),
    # Half precision on the way.
    ("e^(l_ip)/Z_i, Z_i rounded to float16", lambda w, c: _y(w) - np.log(_half(np.exp(_z(w)))), ""),
    ("e^(l_ip)/Z_i, log Z_i rounded to float16", lambda w, c: _y(w) - _half(_z(w)), ""),
    ("e^(l_ip)/Z_i, l_ip and log Z_i rounded to float16", lambda w, c: _half(_y(w)) - _half(_z(w)), ""),
)  # fmt: skip
"""What stands for the probability of a positive, and its logarithm, (n, m)."""


def _log_p(w: DenseBatch) -> Any:
    return w["probabilities"]


def _p(w: DenseBatch) -> Any:
    return np.exp(w["probabilities"])


def _over(w: DenseBatch) -> Any:
    """|P(i)|: the weight of the positives of each row; 1 where there is none."""
    total = np.sum(w["positives"], axis=1)
    return np.where(total > 0, total, 1.0)


def _sum(w: DenseBatch, of: Any) -> Any:
    q = w["positives"]
    return np.sum(np.where(q != 0, q * of, 0.0), axis=1)


def _mean(w: DenseBatch, of: Any) -> Any:
    return _sum(w, of) / _over(w)


def _inside(w: DenseBatch, log: bool = True) -> Any:
    """Logarithm of the weighted sum of the probabilities, or of the exponentials of the logits, of the positives."""
    return log_sum_exp((_log_p(w) if log else _y(w)) + log_of(np.maximum(w["positives"], 0)))


def _best(w: DenseBatch, how: Any, worst: float) -> Any:
    return how(np.where(w["positives"] > 0, _log_p(w), worst), axis=1)


def _classes(w: DenseBatch) -> int:
    return len(np.unique(w.labels))


def _focal(w: DenseBatch, power: float) -> Any:
    return -_mean(w, (1 - _p(w)) ** power * _log_p(w))


def _minus(w: DenseBatch) -> Any:
    return log_sum_exp(np.where(w["positives"] > 0, -_y(w), -np.inf))


def _others(w: DenseBatch) -> Any:
    """Candidates that are no positives."""
    return np.isfinite(_candidates(w)) & (w["positives"] == 0)


def _one_by_one(w: DenseBatch) -> tuple[Any, Any]:
    """Cross-entropies of candidates that are judged one by one: of those that are no positives, and of these."""
    push, pull = np.logaddexp(0, w["logits"][0]), np.logaddexp(0, -_y(w))
    return np.where(_others(w), push, 0.0), np.where(w["positives"] > 0, pull, 0.0)


def _count(mask: Any) -> Any:
    return np.maximum(np.sum(mask, axis=1), 1)


def _one_minus(w: DenseBatch) -> Any:
    negative = w["positives"] == 0
    p = np.where(negative, np.exp(_candidates(w) - _z(w)), 0.0)
    return -_mean(w, _log_p(w)) - np.sum(np.where(negative, np.log1p(-p), 0.0), axis=1)


def _hinge(w: DenseBatch, c: float) -> Any:
    gap = np.maximum(0, c - _mean(w, _y(w))[:, None] + w["logits"][0])
    return np.sum(np.where(_others(w), gap, 0), axis=1) / _count(_others(w))


def _entropy(w: DenseBatch) -> Any:
    log_p = w["denominator"] - _z(w)
    return np.sum(np.where(np.isfinite(log_p), np.exp(log_p) * log_p, 0.0), axis=1)


BASES = {"mean": "-mean_p log p_ip", "sum": "-sum_p q_ip log p_ip", "in": "-log mean_p p_ip"}
"""The rows of references: the mean over positives outside of the logarithm, their sum, the mean inside."""
HEADS: tuple[tuple[str, Of, str], ...] = (
    # What joins the positives of a row (Khosla et al. 2020: outside and inside of the logarithm), and its divisor.
    (BASES["mean"], lambda w, c: -_mean(w, _log_p(w)), ""),
    (BASES["sum"], lambda w, c: -_sum(w, _log_p(w)), ""),
    (BASES["in"], lambda w, c: np.log(_over(w)) - _inside(w), ""),
    ("-log sum_p p_ip", lambda w, c: -_inside(w), ""),
    ("-log max_p p_ip", lambda w, c: -_best(w, np.max, -np.inf), ""),
    ("-log min_p p_ip", lambda w, c: -_best(w, np.min, np.inf), ""),
    *((f"-sum_p q_ip log p_ip{text}", lambda w, c, d=d: -_sum(w, _log_p(w)) / d(w), "") for text, d in (
        ("/(|P(i)| + 1)", lambda w: np.sum(w["positives"], axis=1) + 1),
        ("/N", lambda w: w.samples),
        ("/sqrt(|P(i)|)", lambda w: np.sqrt(_over(w))),
        ("/|P(i)|^2", lambda w: _over(w) ** 2),
        (" over the mean of |P|", lambda w: np.mean(_over(w))),
        (" over the largest |P|", lambda w: np.max(_over(w))),
        (" over the number of classes in the batch", _classes),
    )),
    ("log Z_i - sum_p q_ip l_ip", lambda w, c: _z(w)[:, 0] - _sum(w, _y(w)), ""),
    ("log Z_i - sum_p q_ip l_ip/(|P(i)| + 1)", lambda w, c: _z(w)[:, 0] - _sum(w, _y(w)) / (
        np.sum(w["positives"], axis=1) + 1), ""),
    ("-log sum_p p_ip + log N", lambda w, c: -_inside(w) + np.log(w.samples), ""),
    ("-log sum_p p_ip + log of the number of classes in the batch", lambda w, c: -_inside(w) + np.log(_classes(w)), ""),
    ("-log(sum_p p_ip)/|P(i)|", lambda w, c: -_inside(w) / _over(w), ""),
    ("-log(mean_p p_ip)/|P(i)|", lambda w, c: (np.log(_over(w)) - _inside(w)) / _over(w), ""),
    ("-mean_p log p_ip in base 2", lambda w, c: -_mean(w, _log_p(w)) / np.log(2), ""),
    ("-mean_p log p_ip in base 10", lambda w, c: -_mean(w, _log_p(w)) / np.log(10), ""),
    ("-mean_p log p_ip rounded to {c} digits", lambda w, c: np.round(-_mean(w, _log_p(w)), int(c)), INTEGER),
    ("-mean_p log p_ip + m", lambda w, c: -_mean(w, _log_p(w)) + _margin(w), ""),
    ("-mean_p log p_ip - m", lambda w, c: -_mean(w, _log_p(w)) - _margin(w), ""),
    # The logarithm left out, or another function: Brier, focal (Lin et al. 2017), generalized cross-entropy
    # (Zhang and Sabuncu 2018).
    ("-mean_p p_ip", lambda w, c: -_mean(w, _p(w)), ""),
    ("-sum_p p_ip", lambda w, c: -_sum(w, _p(w)), ""),
    ("1 - mean_p p_ip", lambda w, c: 1 - _mean(w, _p(w)), ""),
    ("mean_p (1 - p_ip)^2", lambda w, c: _mean(w, (1 - _p(w)) ** 2), ""),
    ("mean_p 1/p_ip", lambda w, c: _mean(w, 1 / _p(w)), ""),
    ("mean_p log(1 + 1/p_ip)", lambda w, c: _mean(w, np.log1p(1 / _p(w))), ""),
    ("-mean_p (1 - p_ip)^2 log p_ip", lambda w, c: _focal(w, 2), ""),
    ("-mean_p (1 - p_ip)^{c} log p_ip", lambda w, c: _focal(w, c), REAL),
    ("-{c} mean_p (1 - p_ip)^2 log p_ip", lambda w, c: c * _focal(w, 2), REAL),
    ("-mean_p p_ip^{c} log p_ip", lambda w, c: -_mean(w, _p(w) ** c * _log_p(w)), REAL),
    ("mean_p (1 - p_ip^{c})/{c}", lambda w, c: _mean(w, (1 - _p(w) ** c) / c), REAL),
    # Other losses of the same logits: multi-similarity (Wang et al. 2019), circle (Sun et al. 2020), cross-entropy of
    # each pair, triplets.
    ("log(1 + sum_n e^(l_in) sum_p e^(-l_ip))", lambda w, c: np.logaddexp(0, _negatives(w)[:, 0] + _minus(w)), ""),
    ("log(1 + sum_n e^(l_in)/sum_p e^(l_ip))", lambda w, c: np.logaddexp(0, _negatives(w)[:, 0] - _inside(w, False)),
     ""),
    ("log(1 + sum_n e^(l_in)) + log(1 + sum_p e^(-l_ip))", lambda w, c: np.logaddexp(0, _negatives(w)[:, 0])
     + np.logaddexp(0, _minus(w)), ""),
    ("-log( mean_p e^(l_ip)/(mean_p e^(l_ip) + sum_n e^(l_in)) )", lambda w, c: np.logaddexp(
        0, _negatives(w)[:, 0] - _inside(w, False) + np.log(_over(w))), ""),
    ("-log( e^(mean_p l_ip)/(e^(mean_p l_ip) + sum_n e^(l_in)) )", lambda w, c: np.logaddexp(
        0, _negatives(w)[:, 0] - _mean(w, _y(w))), ""),
    ("-log( sum_p e^(l_ip)/sum_n e^(l_in) )", lambda w, c: _negatives(w)[:, 0] - _inside(w, False), ""),
    ("sum_n log(1 + e^(l_in)) + sum_p log(1 + e^(-l_ip))", lambda w, c: np.sum(sum(_one_by_one(w)), axis=1), ""),
    ("mean_n log(1 + e^(l_in)) + mean_p log(1 + e^(-l_ip))", lambda w, c: np.sum(_one_by_one(w)[0], 1) / _count(
        _others(w)) + np.sum(_one_by_one(w)[1], 1) / _count(w["positives"] > 0), ""),
    ("the mean over j of log(1 + e^(l_in)) and log(1 + e^(-l_ip))", lambda w, c: np.sum(sum(_one_by_one(w)), axis=1)
     / _count(_others(w) | (w["positives"] > 0)), ""),
    ("-mean_p log p_ip - sum_n log(1 - p_in)", lambda w, c: _one_minus(w), ""),
    ("max(0, {c} - l_ip + max_n l_in)", lambda w, c: np.maximum(0, c - _mean(w, _y(w)) + np.max(
        np.where(w["positives"] == 0, _candidates(w), -np.inf), axis=1)), REAL),
    ("mean_n max(0, {c} - l_ip + l_in)", _hinge, REAL),
    # The entropy of the target or of the prediction, and penalties beside the loss.
    ("-sum_p q_ip log p_ip + sum_j q log q", lambda w, c: -_sum(w, _log_p(w)) + _sum(w, log_of(w["positives"])), ""),
    ("-sum_p q_ip log p_ip - entropy of p", lambda w, c: -_sum(w, _log_p(w)) + _entropy(w), ""),
    ("-sum_p q_ip log p_ip + 0.1 times the entropy of p", lambda w, c: -_sum(w, _log_p(w)) - 0.1 * _entropy(w), ""),
    ("-sum_p q_ip log p_ip + {c} times sum_j p log p", lambda w, c: -_sum(w, _log_p(w)) + c * _entropy(w), REAL),
    ("-sum_p q_ip log p_ip + {c} (log Z_i)^2", lambda w, c: -_sum(w, _log_p(w)) + c * _z(w)[:, 0] ** 2, REAL),
    ("-sum_p q_ip log p_ip + {c} mean_j l_ij^2", lambda w, c: -_sum(w, _log_p(w)) + c * np.mean(
        w["logits"][0] ** 2, axis=1), REAL),
    ("-sum_p q_ip log p_ip + {c} mean_j s_ij^2", lambda w, c: -_sum(w, _log_p(w)) + c * np.mean(
        w["similarities"] ** 2, axis=1), REAL),
)  # fmt: skip
"""What joins the probabilities of the positives of a row."""


def stages(base: str, factor: Callable[[DenseBatch], Any] | None = None) -> tuple[Stage, Stage]:
    """The stages between a denominator and the rows; `base` of `BASES` is that of the reference.

    `factor`: what multiplies every row.
    """
    ordered = sorted(HEADS, key=lambda head: head[0] != BASES[base])
    heads = tuple(Way(text, _rowwise(f, factor), constant) for text, f, constant in ordered)
    probabilities = tuple(Way(text, f, constant) for text, f, constant in PROBABILITIES)
    return Stage("probabilities", "p_ip = ", probabilities), Stage("rows", "L_i = ", heads)


def _rowwise(f: Of, factor: Callable[[DenseBatch], Any] | None) -> Of:
    def of(w: DenseBatch, c: float) -> Any:
        rows = np.where(np.sum(w["positives"], axis=1) > 0, f(w, c), 0.0)
        return rows if factor is None else rows * factor(w)

    return of
