"""Which pairs are positives, which are in the denominator, and with what weights."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, log_sum_exp
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Stage, Way, log_of
from nceref.diagnosis.tape import detached

Weights = Callable[[DenseBatch, float], Any]


def _rank(w: DenseBatch, among: Any, x: Any, largest: bool = True) -> Any:
    """Rank of every candidate among some, 0 for the first; ties to the lower index."""
    key = np.where(among, -x if largest else x, np.inf)
    return np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1, kind="stable")


def _hardest(w: DenseBatch, count: int, skip: int = 0, largest: bool = True) -> Any:
    rank = _rank(w, w.negatives, w["similarities"], largest)
    return w.negatives & (rank >= skip) & (rank < skip + count)


def _kept(w: DenseBatch, share: float, how: Callable[[float], float] = np.ceil, of: int = 0) -> int:
    n = int(np.max(np.sum(w.negatives, axis=1)))
    return min(n, max(1, int(how(round(share * (n + of), 9)))))


def _share(w: DenseBatch) -> float:
    return float(w.inputs.get("fraction", 0.5))


def hardest(w: DenseBatch) -> Any:
    """The positive and the hardest of the others, as many as the fraction says."""
    return w.together | _hardest(w, _kept(w, _share(w)))


def usual(w: DenseBatch) -> Any:
    """The candidates in the denominator of the reference."""
    return hardest(w) if "fraction" in w.inputs else w.candidates


def _worst(w: DenseBatch) -> Any:
    return np.min(np.where(w.together, w["similarities"], np.inf), axis=1, keepdims=True)


def _best(w: DenseBatch) -> Any:
    return np.max(np.where(w.together, w["similarities"], -np.inf), axis=1, keepdims=True)


def _mean_positive(w: DenseBatch) -> Any:
    return np.sum(np.where(w.together, w["similarities"], 0), 1, keepdims=True) / np.sum(w.together, 1, keepdims=True)


def _ranks(w: DenseBatch, share: float, how: Callable[[float], float], of: int = 0) -> Any:
    return w.together | _hardest(w, _kept(w, share, how, of))


def _class_size(w: DenseBatch) -> Any:
    """The number of candidates, beside the anchor, that each candidate shares its class with."""
    other = w.candidates[:, None, :] & (w.kinds[:, None] == w.kinds)[None]
    return np.maximum(np.sum(other, axis=2), 1)


def _present(w: DenseBatch) -> Any:
    return np.isin(w.kinds, w.labels)[None, :]


def _query_by_query(w: DenseBatch) -> Any:
    """The column i of documents and hard negatives that are laid out query by query, each document first."""
    each = w.own.shape[1] // w.samples
    return (w.i % each * w.samples + w.i // each == w.j) * 1.0


def _count(mask: Any) -> Any:
    return np.sum(mask, axis=1, keepdims=True)


MASKS: tuple[tuple[str, Callable[[DenseBatch], Any]], ...] = (
    ("all candidates, the anchor itself as well", lambda w: w.candidates | w.own),
    ("all candidates and all positives", lambda w: w.candidates | w.together),
    ("all pairs", lambda w: np.ones_like(w.own)),
    ("negatives alone", lambda w: w.candidates & ~w.together),
    ("positives", lambda w: w.candidates & w.together),
    ("negatives alone, the anchor itself as well", lambda w: (w.candidates & ~w.together) | w.own),
    ("candidates of the other view or input", lambda w: w.candidates & ~w.view),
    ("candidates of the own view or input and the positive", lambda w: (w.candidates & w.view) | w.together),
    ("candidates of the own view or input", lambda w: w.candidates & w.view),
    ("candidates j < i and the positive", lambda w: (w.candidates & (w.j < w.i)) | w.together),
    ("candidates j > i and the positive", lambda w: (w.candidates & (w.j > w.i)) | w.together),
    ("candidates j > i", lambda w: w.candidates & (w.j > w.i)),
    ("candidates j < i", lambda w: w.candidates & (w.j < w.i)),
    ("candidates j >= i", lambda w: w.candidates & (w.j >= w.i)),
    ("documents and the first hard negative of each query", lambda w: w.candidates & (w.j < 2 * w.samples)),
    ("documents and the last hard negative of each query",
     lambda w: w.candidates & (~w.queue | (w.j >= w.own.shape[1] - w.samples))),
    ("documents and hard negatives of the query", lambda w: w.candidates & (~w.queue | w.of_query)),
    ("documents and hard negatives of other queries", lambda w: w.candidates & ~(w.queue & w.of_query)),
    ("candidates but the first", lambda w: w.candidates & ((w.j > 0) | w.together)),
    ("candidates but the last", lambda w: w.candidates & ((w.j < w.own.shape[1] - 1) | w.together)),
    ("candidates but the next one", lambda w: w.candidates & ((w.j != (w.i + 1) % w.own.shape[1]) | w.together)),
    ("candidates but column i", lambda w: w.candidates & (w.j != w.i)),
    ("candidates but column i, and the positive", lambda w: (w.candidates & (w.j != w.i)) | w.together),
    ("all pairs but column i mod N", lambda w: w.j != w.i % w.samples),
    ("candidates but column i + N", lambda w: w.candidates & (w.j != w.i + w.samples) & (w.i != w.j + w.samples)),
    ("candidates in every second column", lambda w: w.candidates & ((w.j % 2 == 0) | w.together)),
    ("candidates of classes that the batch has", lambda w: w.candidates & _present(w)),
    ("candidates of class 0 left out", lambda w: w.candidates & (w.kinds != 0)[None, :]),
    ("candidates of class 0 left out but the positive",
     lambda w: w.candidates & ((w.kinds != 0)[None, :] | w.together)),
    ("candidates with s_ij > 0", lambda w: w.candidates & (w["similarities"] > 0)),
    ("candidates with s_ij > 0 and the positives", lambda w: (w.candidates & (w["similarities"] > 0)) | w.together),
    ("candidates with s_ij < 0 and the positives", lambda w: (w.candidates & (w["similarities"] < 0)) | w.together),
    ("negatives above the worst positive, and the positives",
     lambda w: (w.negatives & (w["similarities"] > _worst(w))) | w.together),
    ("negatives above the worst positive of the batch, and the positives",
     lambda w: (w.negatives & (w["similarities"] > np.min(_worst(w)))) | w.together),
    ("negatives below the worst positive, and the positives",
     lambda w: (w.negatives & (w["similarities"] < _worst(w))) | w.together),
    ("negatives below the best positive, and the positives",
     lambda w: (w.negatives & (w["similarities"] < _best(w))) | w.together),
    ("negatives above the mean positive, and the positives",
     lambda w: (w.negatives & (w["similarities"] > _mean_positive(w))) | w.together),
    ("negatives above their mean, and the positives", lambda w: (w.negatives & (w["similarities"] > _mean(w)))
     | w.together),
    ("negatives below their mean, and the positives", lambda w: (w.negatives & (w["similarities"] < _mean(w)))
     | w.together),
    ("negatives above their median, and the positives", lambda w: (w.negatives & (w["similarities"] > _median(w)))
     | w.together),
    ("the hardest negative and the positives", lambda w: _hardest(w, 1) | w.together),
    ("the easiest negative and the positives", lambda w: _hardest(w, 1, 0, False) | w.together),
    ("all negatives but the hardest, and the positives", lambda w: _hardest(w, 9999, 1) | w.together),
    ("all negatives but the easiest, and the positives", lambda w: _hardest(w, 9999, 1, False) | w.together),
    ("negatives in the harder half, and the positives", lambda w: _ranks(w, 0.5, np.ceil)),
    ("the first negative of each class, and the positives", lambda w: _first_of_class(w) | w.together),
    ("the anchor's row and column of its own view", lambda w: w.candidates & (w.view | w.together)),
)  # fmt: skip
RANKED: tuple[tuple[str, Callable[[DenseBatch], Any]], ...] = (
    ("the positive and all negatives", lambda w: w.candidates),
    ("the positive and the k easiest negatives", lambda w: w.together | _hardest(w, _kept(w, _share(w)), 0, False)),
    ("the k hardest negatives", lambda w: _hardest(w, _kept(w, _share(w)))),
    ("the positive and the k hardest negatives after the hardest", lambda w: w.together
     | _hardest(w, _kept(w, _share(w)), 1)),
    ("the positive and the k - 1 hardest negatives after the hardest", lambda w: w.together
     | _hardest(w, _kept(w, _share(w)) - 1, 1)),
    ("the positive and the k - 1 hardest negatives", lambda w: w.together | _hardest(w, _kept(w, _share(w)) - 1)),
    ("the positive and the k + 1 hardest negatives", lambda w: w.together | _hardest(w, _kept(w, _share(w)) + 1)),
    ("the positive and the k - 1 easiest negatives", lambda w: w.together
     | _hardest(w, _kept(w, _share(w)) - 1, 0, False)),
    ("the positive and the k + 1 easiest negatives", lambda w: w.together
     | _hardest(w, _kept(w, _share(w)) + 1, 0, False)),
    ("the positive and all negatives but the k hardest", lambda w: w.together
     | (w.negatives & ~_hardest(w, _kept(w, _share(w))))),
    ("the positive and the k hardest negatives, k = floor(fraction (N - 1))", lambda w: _ranks(w, _share(w), np.floor)),
    ("the positive and the k hardest negatives, k = round(fraction (N - 1))", lambda w: _ranks(w, _share(w), np.round)),
    ("the positive and the k hardest negatives, k = floor(fraction N)", lambda w: _ranks(w, _share(w), np.floor, 1)),
    ("the positive and the k hardest negatives, k = ceil(fraction N)", lambda w: _ranks(w, _share(w), np.ceil, 1)),
    ("the positive and the k hardest negatives, k = ceil((1 - fraction) (N - 1))",
     lambda w: _ranks(w, 1 - _share(w), np.ceil)),
    ("the positive and the k hardest negatives, k = floor((1 - fraction) (N - 1))",
     lambda w: _ranks(w, 1 - _share(w), np.floor)),
    ("the positive and the k candidates of the largest s_ij, itself among them", lambda w: w.together | _top(w, 0)),
    ("the k candidates of the largest s_ij, the positive among them", lambda w: _top(w, 0)),
    ("the positive and the candidates of ranks 2 to k, the positive ranked as well", lambda w: w.together | _top(w, 1)),
    ("the positive and the candidates of ranks 2 to k + 1, the positive ranked as well",
     lambda w: w.together | _top(w, 1, 1)),
    ("the positive, and the candidates of ranks 2 to k + 1, the positive again if it is one of them",
     lambda w: w.together * 1.0 + _top(w, 1, 1)),
    ("the positive and all negatives but the k hardest, k = ceil(min(fraction, 1/2) N)", lambda w: w.together
     | (w.negatives & ~_hardest(w, _kept(w, min(_share(w), 0.5), np.ceil, 1)))),
    ("the positive and the first k negatives as they stand", lambda w: w.together
     | (w.negatives & (np.cumsum(w.negatives, axis=1) <= _kept(w, _share(w))))),
    ("the positive and negatives above fraction times s_ii", lambda w: w.together
     | (w.negatives & (w["similarities"] > _share(w) * _worst(w)))),
    ("the positive and negatives above the fraction", lambda w: w.together
     | (w.negatives & (w["similarities"] > _share(w)))),
    ("the positive and the k hardest negatives of all rows", lambda w: w.together | _everywhere(w)),
    ("the positive and the k negatives of the largest |s_ij|", lambda w: w.together | (w.negatives & (
        _rank(w, w.negatives, np.abs(w["similarities"])) < _kept(w, _share(w))))),
    ("the positive and the k negatives that are hardest down the columns", lambda w: w.together | (w.negatives & (
        _kept(w, _share(w)) > _rank(w, w.negatives.T, w["similarities"].T).T))),
)  # fmt: skip
"""Where the loss keeps k = ceil(fraction (N - 1)) negatives."""


def _top(w: DenseBatch, skip: int, more: int = 0) -> Any:
    among = w.together | w.negatives
    rank = _rank(w, among, w["similarities"])
    return among & (rank >= skip) & (rank < _kept(w, _share(w)) + more)


def _everywhere(w: DenseBatch) -> Any:
    """A mask with as many entries as all rows keep together, the hardest of all rows."""
    s = np.where(w.negatives, w["similarities"], -np.inf).ravel()
    keep = np.zeros(s.size, dtype=bool)
    keep[np.argsort(-s, kind="stable")[: _kept(w, _share(w)) * len(w.own)]] = True
    return keep.reshape(w.own.shape) & w.negatives


def _mean(w: DenseBatch) -> Any:
    return np.sum(np.where(w.negatives, w["similarities"], 0), 1, keepdims=True) / np.maximum(_count(w.negatives), 1)


def _median(w: DenseBatch) -> Any:
    n = _count(w.negatives)
    ordered = np.sort(np.where(w.negatives, detached(w["similarities"]), np.inf), axis=1)
    middle = (np.take_along_axis(ordered, np.maximum(k, 0), axis=1) for k in ((n - 1) // 2, n // 2))
    return sum(middle) / 2


def _first_of_class(w: DenseBatch) -> Any:
    same = (w.kinds[:, None] == w.kinds)[None] & w.negatives[:, None, :]
    earlier = np.any(same & (np.arange(len(w.kinds))[None, None, :] < np.arange(len(w.kinds))[None, :, None]), axis=2)
    return w.negatives & ~earlier


WEIGHTS: tuple[tuple[str, Weights, str], ...] = (
    ("all candidates, negatives {c} times", lambda w, c: _negatives(w, c), REAL),
    ("all candidates, positives {c} times", lambda w, c: np.where(w.together, c * usual(w), usual(w)), REAL),
    ("each class averaged", lambda w, c: usual(w) / _class_size(w), ""),
    ("each class averaged, the own one summed", lambda w, c: np.where(w.together, usual(w), usual(w) / _class_size(w)),
     ""),
    ("each candidate over sqrt of the size of its class", lambda w, c: usual(w) / np.sqrt(_class_size(w)), ""),
    ("each candidate times the size of its class", lambda w, c: usual(w) * _class_size(w), ""),
    ("the mean of the negatives and the positives", lambda w, c: np.where(
        w.negatives, usual(w) / np.maximum(_count(w.negatives), 1), usual(w)), ""),
    ("the mean over all candidates", lambda w, c: usual(w) / _count(usual(w)), ""),
    ("the mean of the positives and the negatives", lambda w, c: np.where(
        w.together, usual(w) / np.maximum(_count(w.together), 1), usual(w)), ""),
    ("the mean of the positives and that of the negatives", lambda w, c: np.where(w.together, usual(w) / np.maximum(
        _count(w.together), 1), usual(w) / np.maximum(_count(w.negatives), 1)), ""),
    ("all candidates, negatives N times", lambda w, c: _negatives(w, w.samples), ""),
    ("all candidates, negatives over N", lambda w, c: _negatives(w, 1 / w.samples), ""),
    ("all candidates, negatives times 1 + s_ij", lambda w, c: _negatives(w, 1 + w["similarities"]), ""),
    ("all candidates, negatives times (1 + s_ij)/2", lambda w, c: _negatives(w, (1 + w["similarities"]) / 2), ""),
    ("all candidates, negatives times 1 - s_ij", lambda w, c: _negatives(w, 1 - w["similarities"]), ""),
    ("all candidates, negatives times s_ij above 0", lambda w, c: _negatives(w, np.maximum(w["similarities"], 0)), ""),
    ("all candidates, negatives times e^({c} s_ij)", lambda w, c: _negatives(w, _tilted(w, c)), REAL),
    ("all candidates, negatives times e^({c} s_ij) over its mean", lambda w, c: _negatives(w, _over_mean(w, c)), REAL),
    ("the own class {c} times, the others once", lambda w, c: np.where(
        w.labels[:, None] == w.kinds, c * usual(w), usual(w)), REAL),
    ("candidates of the other view {c} times", lambda w, c: np.where(w.view, usual(w), c * usual(w)), REAL),
    ("candidates of the own view or input {c} times", lambda w, c: np.where(w.view, c * usual(w), usual(w)), REAL),
    ("column j over the number of rows that have it as a positive", lambda w, c: usual(w) / np.maximum(
        np.sum(w.together, axis=0), 1), ""),
    ("the {c} hardest negatives and the positives", lambda w, c: _hardest(w, int(c)) | w.together, INTEGER),
    ("the {c} easiest negatives and the positives", lambda w, c: _hardest(w, int(c), 0, False) | w.together, INTEGER),
    ("negatives but the {c} hardest, and the positives", lambda w, c: _hardest(w, 9999, int(c)) | w.together, INTEGER),
    ("the first {c} columns and the positives", lambda w, c: (usual(w) & (w.j < c)) | w.together, INTEGER),
    ("the first {c} columns", lambda w, c: usual(w) & (w.j < c), INTEGER),
    ("all columns but the first {c}, and the positives", lambda w, c: (usual(w) & (w.j >= c)) | w.together, INTEGER),
    ("candidates in the anchor's block of {c} rows, and the positives",
     lambda w, c: (usual(w) & (w.i // max(c, 1) == w.j // max(c, 1))) | w.together, INTEGER),
    # False negatives, and easy ones, by a threshold of the similarity.
    ("candidates with s_ij > {c}/10, and the positives", lambda w, c: (usual(w) & (w["similarities"] > c / 10))
     | w.together, INTEGER),
    ("candidates with s_ij < {c}/10, and the positives", lambda w, c: (usual(w) & (w["similarities"] < c / 10))
     | w.together, INTEGER),
)  # fmt: skip


def _negatives(w: DenseBatch, times: Any) -> Any:
    return np.where(w.together, usual(w), times * usual(w))


def _tilted(w: DenseBatch, c: float) -> Any:
    return np.exp(np.clip(c * w["similarities"], -80, 80))


def _over_mean(w: DenseBatch, c: float) -> Any:
    e = _tilted(w, c)
    return e * _count(w.negatives) / np.maximum(np.sum(np.where(w.negatives, e, 0.0), axis=1, keepdims=True), 1e-300)


EXTRA: tuple[tuple[str, Callable[[DenseBatch, float], Any], str], ...] = (
    ("all candidates, and {c}", lambda w, c: log_of(c) + np.zeros(len(w.own)), REAL),
    ("all candidates, and e^({c}/T)", lambda w, c: c * w.scale + np.zeros(len(w.own)), REAL),
    ("all candidates, and the other anchors", lambda w, c: log_sum_exp(np.where(
        np.eye(len(w.own), dtype=bool), -np.inf, _among(w, w.anchors) * w.scale)), ""),
    ("all candidates, and e^(l_ii) - 1", lambda w, c: log_of(_itself(w) - 1), ""),
    ("all candidates, and e^(l_ii) + {c}", lambda w, c: log_of(_itself(w) + c), REAL),
    ("all candidates, and {c} e^m with m the largest logit, that of the anchor itself included",
     lambda w, c: log_of(c) + np.max(w["logits"][0], axis=1), REAL),
    ("all candidates, and 1 for each that is masked", lambda w, c: log_of(np.sum(~usual(w), axis=1)), ""),
    ("all candidates, and 1 for each positive", lambda w, c: log_of(np.sum(w.together, axis=1)), ""),
    ("all candidates, and 1 for each negative", lambda w, c: log_of(np.sum(w.negatives, axis=1)), ""),
    ("all candidates, and 1 for each candidate", lambda w, c: log_of(np.sum(usual(w), axis=1)), ""),
    ("all candidates, and N", lambda w, c: log_of(w.samples) + np.zeros(len(w.own)), ""),
    ("all candidates, and 1 for each column up to a multiple of {c}", lambda w, c: log_of(
        -w.own.shape[1] % max(int(c), 1)) + np.zeros(len(w.own)), INTEGER),
    ("all candidates, and {c} e^(s_ip/T)", lambda w, c: log_of(c) + _own_logit(w), REAL),
    ("all candidates, and the first of them again", lambda w, c: w["logits"][0][:, 0], ""),
    ("all candidates, and the last of them again", lambda w, c: w["logits"][0][:, -1], ""),
    ("all candidates, and the hardest negative again", lambda w, c: np.max(
        np.where(w.negatives, w["logits"][0], -np.inf), axis=1), ""),
    ("all candidates, and all positives of the batch", lambda w, c: np.full(len(w.own), log_sum_exp(_own_logit(w))),
     ""),
    ("all candidates, and the positives of the other rows", lambda w, c: log_sum_exp(np.where(
        np.eye(len(w.own), dtype=bool), -np.inf, _own_logit(w)[None, :])), ""),
)  # fmt: skip


def _itself(w: DenseBatch) -> Any:
    if not np.all(np.any(w.own & ~usual(w), axis=1)):
        raise ValueError
    return np.exp(np.sum(np.where(w.own, w["logits"][0], 0.0), axis=1))


def _own_logit(w: DenseBatch) -> Any:
    return log_sum_exp(np.where(w.together, w["logits"][0], -np.inf))


def denominator_stage(text: str) -> Stage:
    """The stage of the denominator: its terms, as logarithms, (n, m) or wider; `text` is that of the reference."""
    out = [Way(text, lambda w, c: w["logits"][0] + log_of(usual(w)))]
    for text, mask in (*MASKS, *RANKED):
        out.append(Way(text, lambda w, c, f=mask: w["logits"][0] + log_of(f(w))))  # type: ignore[misc]
    for text, weights, constant in WEIGHTS:
        out.append(Way(text, lambda w, c, f=weights: w["logits"][0] + log_of(f(w, c)), constant))  # type: ignore[misc]
    for text, more, constant in EXTRA:
        out.append(Way(text, _beside(more), constant))
    out.append(Way("the sum over all rows", _of_all_rows))
    out.append(Way("the mean over rows of their sums", lambda w, c: _of_all_rows(w, c) - np.log(len(w.own))))
    out.append(Way("all candidates, those of row i and of column i", _both_ways))
    out.append(Way("the anchors in column p, as in a softmax down the columns", _down))
    return Stage("denominator", "Z_i over ", tuple(out))


def _beside(more: Callable[[DenseBatch, float], Any]) -> Callable[[DenseBatch, float], Any]:
    def of(w: DenseBatch, c: float) -> Any:
        return np.concatenate([w["logits"][0] + log_of(usual(w)), more(w, c)[:, None]], axis=1)

    return of


def _of_all_rows(w: DenseBatch, c: float) -> Any:
    terms = w["logits"][0] + log_of(usual(w))
    return np.full(terms.shape, -np.inf) + np.where(w.j == 0, log_sum_exp(log_sum_exp(terms)), -np.inf)


def _both_ways(w: DenseBatch, c: float) -> Any:
    terms = w["logits"][0] + log_of(usual(w))
    if terms.shape[0] != terms.shape[1]:
        raise ValueError
    return np.concatenate([terms, np.where(np.eye(len(terms), dtype=bool), -np.inf, terms.T)], axis=1)


def _down(w: DenseBatch, c: float) -> Any:
    terms = w["logits"][0] + log_of(usual(w))
    if terms.shape[0] != terms.shape[1]:
        raise ValueError
    return terms.T


POSITIVES: tuple[tuple[str, Weights, str], ...] = (
    ("the anchor itself as well", lambda w, c: w.positives + w.own, ""),
    ("the first of the positives", lambda w, c: w.positives * (np.cumsum(w.together, axis=1) == 1), ""),
    ("the last of the positives", lambda w, c: w.positives * (
        np.cumsum(w.together[:, ::-1], axis=1)[:, ::-1] == 1), ""),
    ("the first {c} of the positives", lambda w, c: w.positives * (np.cumsum(w.together, axis=1) <= c), INTEGER),
    ("positives with j > i", lambda w, c: w.positives * (w.j > w.i), ""),
    ("positives with j < i", lambda w, c: w.positives * (w.j < w.i), ""),
    ("positives of the other view or input", lambda w, c: w.positives * ~w.view, ""),
    ("positives of the own view or input", lambda w, c: w.positives * w.view, ""),
    ("the nearest of the positives", lambda w, c: w.positives * (w["similarities"] == _best(w)), ""),
    ("the farthest of the positives", lambda w, c: w.positives * (w["similarities"] == _worst(w)), ""),
    ("positives with s_ip > 0", lambda w, c: w.positives * (w["similarities"] > 0), ""),
    ("positives not of class 0", lambda w, c: w.positives * (w.labels != 0)[:, None], ""),
    ("positives of class 0", lambda w, c: w.positives * (w.labels == 0)[:, None], ""),
    ("pairs that do not belong together", lambda w, c: w.negatives.astype(float), ""),
    ("all candidates", lambda w, c: (w.candidates & ~w.own).astype(float), ""),
    ("candidate i", lambda w, c: (w.j == w.i).astype(float), ""),
    ("candidate i + 1", lambda w, c: (w.j == (w.i + 1) % w.own.shape[1]).astype(float), ""),
    ("candidate i - 1", lambda w, c: (w.j == (w.i - 1) % w.own.shape[1]).astype(float), ""),
    ("candidate N - 1 - i", lambda w, c: (w.j == len(w.own) - 1 - w.i).astype(float), ""),
    ("candidate N + (i mod N)", lambda w, c: (w.j == w.samples + w.i % w.samples).astype(float), ""),
    ("candidate 0", lambda w, c: (w.j == 0) * np.ones(w.own.shape), ""),
    ("the positives of the anchor before", lambda w, c: np.roll(w.positives, 1, axis=0), ""),
    ("the positives of the anchor after", lambda w, c: np.roll(w.positives, -1, axis=0), ""),
    ("the positives of the candidate before", lambda w, c: np.roll(w.positives, 1, axis=1), ""),
    ("the positives of the candidate after", lambda w, c: np.roll(w.positives, -1, axis=1), ""),
    ("candidates whose labels differ by at most {c}", lambda w, c: (np.abs(w.labels[:, None] - w.kinds) <= c)
     * ~w.own * 1.0, INTEGER),
    ("column i of d_1 and its hard negatives, d_2 and its hard negatives, ...", lambda w, c: _query_by_query(w), ""),
    ("labels in the order of samples, views of a sample one after the other", lambda w, c: _interleaved(w), ""),
    ("labels repeated as a whole, where each is meant once a view", lambda w, c: _tiled(w), ""),
    ("the targets of all rows", lambda w, c: np.ones((len(w.own), 1)) * np.sum(w.positives, axis=0) / len(w.own), ""),
    ("columns of the own class, numbered as before the anchor was cut out", lambda w, c: _after_the_cut(w), ""),
    ("labels in reverse order", lambda w, c: (w.labels[::-1][:, None] == w.kinds) * ~w.own * 1.0, ""),
    ("labels of the candidates in reverse order", lambda w, c: (w.labels[:, None] == w.kinds[::-1]) * ~w.own * 1.0, ""),
    ("labels of the anchors in ascending order", lambda w, c: (np.sort(w.labels)[:, None] == w.kinds) * ~w.own * 1.0,
     ""),
    ("labels of anchors and of candidates in ascending order", lambda w, c: (
        np.sort(w.labels)[:, None] == np.sort(w.kinds)) * ~w.own * 1.0, ""),
    ("positives with weights over the size of the candidate's class", lambda w, c: w.positives / _class_size(w), ""),
    ("positives with weights 1 - s_ip", lambda w, c: w.positives * (1 - w["similarities"]), ""),
    ("positives with weights 1 + s_ip", lambda w, c: w.positives * (1 + w["similarities"]), ""),
    ("positives with weights (1 + s_ip)/2", lambda w, c: w.positives * (1 + w["similarities"]) / 2, ""),
    ("positives with weights e^(s_ip/T)", lambda w, c: w.positives * np.exp(w["logits"][0]), ""),
    ("positives with weights e^(-s_ip/T)", lambda w, c: w.positives * np.exp(-w["logits"][0]), ""),
    ("(1 - {c}) of the positive and {c}/n of every candidate", lambda w, c: _smooth(w, 1 - c, c, w.candidates), REAL),
    ("(1 - {c}) of the positive and {c}/(n - 1) of every negative", lambda w, c: _smooth(w, 1 - c, c, w.negatives),
     REAL),
    ("the positive and {c}/n of every candidate", lambda w, c: _smooth(w, 1.0, c, w.candidates), REAL),
    ("the positive and {c}/(n - 1) of every negative", lambda w, c: _smooth(w, 1.0, c, w.negatives), REAL),
    ("the positive and {c} of every candidate", lambda w, c: w.positives + c * w.candidates, REAL),
    ("the positive and {c} of every negative", lambda w, c: w.positives + c * w.negatives, REAL),
    ("(1 - {c}) of the positive", lambda w, c: (1 - c) * w.positives, REAL),
    ("the softmax of s_ij/T over the candidates", lambda w, c: _soft(w["logits"][0] + log_of(w.candidates)), ""),
    ("the softmax of s_ji/T over the candidates", lambda w, c: _soft(w["logits"][0].T), ""),
    ("the softmax of the mean of s_ij/T and s_ji/T", lambda w, c: _soft((w["logits"][0] + w["logits"][0].T) / 2), ""),
    ("the softmax of (a_i.a_j + b_i.b_j)/2 over T", lambda w, c: _soft(_within(w, 0.5 * w.scale)), ""),
    ("the softmax of (a_i.a_j + b_i.b_j)/2 times T", lambda w, c: _soft(_within(w, 0.5 / w.scale)), ""),
    ("the softmax of (a_i.a_j + b_i.b_j)/(2 T) down the columns", lambda w, c: _soft(_within(w, 0.5 * w.scale), 0), ""),
    ("the softmax of (a_i.a_j + b_i.b_j)/2 times T down the columns", lambda w, c: _soft(
        _within(w, 0.5 / w.scale), 0), ""),
    ("half of the positive and half of the softmax of s_ij/T", lambda w, c: (
        w.positives + _soft(w["logits"][0] + log_of(w.candidates))) / 2, ""),
)  # fmt: skip


def _soft(x: Any, axis: int = 1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _among(w: DenseBatch, rows: Any) -> Any:
    """Similarities of some rows among themselves."""
    x = w["rows of inputs"][rows]
    return x @ x.T


def _within(w: DenseBatch, factor: float) -> Any:
    """Similarities of the rows of each side among themselves, added."""
    return factor * (_among(w, w.anchors) + _among(w, w.against))


def _smooth(w: DenseBatch, own: float, rest: float, among: Any) -> Any:
    return own * w.positives + rest * among / np.maximum(_count(among), 1)


def _interleaved(w: DenseBatch) -> Any:
    """Positives where row r of n V is taken for sample r // V."""
    n = w.samples
    v = max(len(w.labels) // n, 1)
    names = np.repeat(w.labels[:n], v)
    return (names[:, None] == names[None, :]) * ~w.own * 1.0 if len(names) == w.own.shape[1] else w.positives * np.nan


def _tiled(w: DenseBatch) -> Any:
    n = w.samples
    v = max(len(w.labels) // n, 1)
    names = np.tile(w.labels.reshape(v, n).T.ravel()[:n], v)
    return (names[:, None] == names[None, :]) * ~w.own * 1.0 if len(names) == w.own.shape[1] else w.positives * np.nan


def _after_the_cut(w: DenseBatch) -> Any:
    """Positives where column j of a matrix without its diagonal is taken for candidate j."""
    same = (w.labels[:, None] == w.kinds)[:, :-1]
    out = np.zeros(w.own.shape)
    np.put_along_axis(out, (w.j[:, :-1] + (w.j[:, :-1] >= w.i)), same * 1.0, axis=1)
    return out


def positives_stage(text: str) -> Stage:
    """Weights of positives, (n, m); `text` is that of the reference."""
    ways = tuple(Way(other, f, constant) for other, f, constant in POSITIVES)
    return Stage("positives", "P(i): ", (Way(text, lambda w, c: w.positives), *ways))
