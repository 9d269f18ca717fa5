"""How row losses become one number."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.probe.parts.work import INTEGER, REAL, PartWay, Work, log_sum

Mean = Callable[[Any, Work, float], Any]


def _over_classes(x: Any, w: Work, power: float) -> Any:
    """Weighted by a power of the number of rows of each class, the weights made 1 in all."""
    size = np.sum(w.labels[:, None] == w.labels, axis=1).astype(float) ** power
    return np.sum(size * x) / np.sum(size)


def _class_sizes(w: Work) -> Any:
    return np.sum(w.labels[:, None] == w.labels, axis=1).astype(float)


def _chunks(x: Any, size: float, whole: bool = False) -> list[Any]:
    step = max(int(size), 1)
    parts = [x[k : k + step] for k in range(0, len(x), step)]
    return [p for p in parts if len(p) == step] if whole else parts


def _counted(w: Work) -> Any:
    return np.sum(w.together, axis=1)


def _weight(w: Work) -> Any:
    """Weight of the positives of each row, as they are weighed."""
    return np.sum(w["positives"], axis=1)


def _hard(x: Any, share: float, of: Callable[[float], float] = np.ceil) -> Any:
    k = min(len(x), max(1, int(of(round(share * len(x), 9)))))
    return np.sort(x)[::-1][:k]


def _trimmed(x: Any, keep: Any) -> Any:
    return np.sum(x[keep]) / max(np.sum(keep), 1)


def _tail(x: Any, w: Work, c: float) -> Any:
    out = x[int(c) :]
    if not len(out):
        raise ValueError
    return np.mean(out)


def _classwise(x: Any, w: Work) -> list[Any]:
    return [np.mean(x[w.labels == k]) for k in np.unique(w.labels)]


MEANS: tuple[tuple[str, Mean, str], ...] = (
    ("mean_i L_i", lambda x, w, c: np.mean(x), ""),
    ("sum_i L_i", lambda x, w, c: np.sum(x), ""),
    ("mean_i max(L_i, 0)", lambda x, w, c: np.mean(np.maximum(x, 0)), ""),
    ("{c} mean_i L_i", lambda x, w, c: c * np.mean(x), REAL),
    ("mean_i L_i + {c}", lambda x, w, c: np.mean(x) + c, REAL),
    ("sum_i L_i/N^2", lambda x, w, c: np.sum(x) / w.samples**2, ""),
    ("sum_i L_i/N", lambda x, w, c: np.sum(x) / w.samples, ""),
    ("sum_i L_i/(N - 1)", lambda x, w, c: np.sum(x) / (w.samples - 1), ""),
    ("sum_i L_i/(N + 1)", lambda x, w, c: np.sum(x) / (w.samples + 1), ""),
    ("sum_i L_i/(2 N)", lambda x, w, c: np.sum(x) / (2 * w.samples), ""),
    ("sum_i L_i/sqrt(N)", lambda x, w, c: np.sum(x) / np.sqrt(len(x)), ""),
    ("sum_i L_i over the number of candidates", lambda x, w, c: np.sum(x) / w.own.shape[1], ""),
    ("sum_i L_i over rows times candidates", lambda x, w, c: np.sum(x) / w.own.size, ""),
    ("sum_i L_i over the number of positives", lambda x, w, c: np.sum(x) / np.sum(w.together), ""),
    ("sum_i |P(i)| L_i over the number of positives", lambda x, w, c: np.sum(x * _counted(w)) / np.sum(_counted(w)),
     ""),
    ("the mean over all pairs of a row and its positive", lambda x, w, c: np.sum(x * _weight(w)) / np.sum(_weight(w)),
     ""),
    ("sum_i |P(i)| L_i/N", lambda x, w, c: np.sum(x * _weight(w)) / w.samples, ""),
    ("sum_i |P(i)| L_i/N^2", lambda x, w, c: np.sum(x * _weight(w)) / w.samples**2, ""),
    ("mean_i L_i of the rows that have a positive left", lambda x, w, c: _trimmed(x, _weight(w) > 0), ""),
    ("mean_i |P(i)| L_i", lambda x, w, c: np.mean(x * _counted(w)), ""),
    ("mean_i L_i/|P(i)|", lambda x, w, c: np.mean(x / np.maximum(_counted(w), 1)), ""),
    ("sum_i L_i over the number of classes in the batch", lambda x, w, c: np.sum(x) / len(np.unique(w.labels)), ""),
    ("the mean over classes of their means", lambda x, w, c: np.mean(_classwise(x, w)), ""),
    ("the sum over classes of their means", lambda x, w, c: np.sum(_classwise(x, w)), ""),
    ("rows weighted by 1/n_y, n_y rows of the class in the batch, over N", lambda x, w, c: np.mean(
        x / _class_sizes(w)), ""),
    ("rows weighted by N/(C n_y), n_y rows of the class in the batch, over N", lambda x, w, c: np.mean(
        x / _class_sizes(w)) * len(x) / _classes(w), ""),
    ("rows weighted by N/n_y, n_y rows of the class in the batch, over N", lambda x, w, c: np.mean(
        x / _class_sizes(w)) * len(x), ""),
    ("rows weighted by 1 - n_y/N, n_y rows of the class in the batch, over N", lambda x, w, c: np.mean(
        x * (1 - _class_sizes(w) / len(x))), ""),
    ("rows weighted by 1/(1 + n_y), n_y rows of the class in the batch, over their sum", lambda x, w, c: np.sum(
        x / (1 + _class_sizes(w))) / np.sum(1 / (1 + _class_sizes(w))), ""),
    ("rows weighted by 1/sqrt(n_y), n_y rows of the class in the batch, over their sum", lambda x, w, c: _over_classes(
        x, w, -0.5), ""),
    ("rows weighted by n_y rows of the class in the batch, over their sum", lambda x, w, c: _over_classes(x, w, 1), ""),
    ("rows weighted by n_y/N, n_y rows of the class in the batch, over N", lambda x, w, c: np.mean(
        x * _class_sizes(w) / len(x)), ""),
    ("rows weighted by (1 - 0.9)/(1 - 0.9^n_y) of the batch, made C in all, over N", lambda x, w, c: _effective(
        x, w, 0.9), ""),
    ("rows weighted by (1 - 0.99)/(1 - 0.99^n_y) of the batch, made C in all, over N", lambda x, w, c: _effective(
        x, w, 0.99), ""),
    ("rows weighted by (1 - 0.999)/(1 - 0.999^n_y) of the batch, made C in all, over N", lambda x, w, c: _effective(
        x, w, 0.999), ""),
    ("rows weighted by (1 - 0.9999)/(1 - 0.9999^n_y) of the batch, made C in all, over N", lambda x, w, c: _effective(
        x, w, 0.9999), ""),
    ("rows weighted by (1 - 0.9)/(1 - 0.9^n_y) of the batch, over N", lambda x, w, c: np.mean(
        x * 0.1 / (1 - 0.9 ** _class_sizes(w))), ""),
    ("rows weighted by (1 - 0.99)/(1 - 0.99^n_y) of the batch, over N", lambda x, w, c: np.mean(
        x * 0.01 / (1 - 0.99 ** _class_sizes(w))), ""),
    ("rows weighted by (1 - 0.999)/(1 - 0.999^n_y) of the batch, over N", lambda x, w, c: np.mean(
        x * 0.001 / (1 - 0.999 ** _class_sizes(w))), ""),
    ("rows weighted by (1 - 0.999)/(1 - 0.999^n_y) of the batch, over their sum", lambda x, w, c: np.sum(
        x / (1 - 0.999 ** _class_sizes(w))) / np.sum(1 / (1 - 0.999 ** _class_sizes(w))), ""),
    ("rows weighted by the number n_y of their class, over their sum", lambda x, w, c: _by_count(x, w, 1), ""),
    ("rows weighted by 1/n_y of their class, over their sum", lambda x, w, c: _by_count(x, w, -1), ""),
    ("rows weighted by 1/n_y of their class, over N", lambda x, w, c: np.mean(x / w.counts[w.labels]), ""),
    ("rows weighted by y", lambda x, w, c: np.mean(x * w.labels), ""),
    ("rows of class 0 left out, over those that are left", lambda x, w, c: _trimmed(x, w.labels != 0), ""),
    ("rows of class 0 left out, over all", lambda x, w, c: np.mean(x * (w.labels != 0)), ""),
    ("rows of class 0 alone", lambda x, w, c: _trimmed(x, w.labels == 0), ""),
    ("rows of the last class left out, over those that are left", lambda x, w, c: _trimmed(
        x, w.labels != np.max(w.labels)), ""),
    ("rows of the last class left out, over all", lambda x, w, c: np.mean(x * (w.labels != np.max(w.labels))), ""),
    ("rows alone in their class left out, over those that are left", lambda x, w, c: _trimmed(
        x, _class_sizes(w) > 1), ""),
    ("rows alone in their class left out, over all", lambda x, w, c: np.mean(x * (_class_sizes(w) > 1)), ""),
    ("rows without a positive left out", lambda x, w, c: _trimmed(x, _counted(w) > 0), ""),
    ("rows with a positive after them, over all", lambda x, w, c: np.mean(x * (np.any(
        w.together & (w.j > w.i), axis=1))), ""),
    ("rows with a loss above 0 alone", lambda x, w, c: _trimmed(x, x > 0), ""),
    ("rows with a loss above the mean alone", lambda x, w, c: _trimmed(x, x > np.mean(x)), ""),
    ("rows with a loss above the mean, over all", lambda x, w, c: np.mean(x * (x > np.mean(x))), ""),
    ("rows with a loss below the mean alone", lambda x, w, c: _trimmed(x, x < np.mean(x)), ""),
    ("rows with a loss above {c} alone", lambda x, w, c: _trimmed(x, x > c / 10), INTEGER),
    ("rows with p_ip < 1/2 alone", lambda x, w, c: _trimmed(x, x > np.log(2)), ""),
    ("rows with p_ip < 1/2, over all", lambda x, w, c: np.mean(x * (x > np.log(2))), ""),
    ("rows with p_ip < {c}/10 alone", lambda x, w, c: _trimmed(x, x > -np.log(c / 10)), INTEGER),
    ("rows with p_ip < {c}/10, over all", lambda x, w, c: np.mean(x * (x > -np.log(c / 10))), INTEGER),
    ("the mean of the hardest ceil({c} N/10) rows", lambda x, w, c: np.mean(_hard(x, c / 10)), INTEGER),
    ("the mean of the hardest floor({c} N/10) rows", lambda x, w, c: np.mean(_hard(x, c / 10, np.floor)), INTEGER),
    ("the mean of the hardest ceil({c} N/4) rows", lambda x, w, c: np.mean(_hard(x, c / 4)), INTEGER),
    ("the mean of the hardest floor({c} N/4) rows", lambda x, w, c: np.mean(_hard(x, c / 4, np.floor)), INTEGER),
    ("the sum of the hardest floor({c} N/10) rows over N", lambda x, w, c: np.sum(_hard(x, c / 10, np.floor)) / len(x),
     INTEGER),
    ("the mean of the {c} hardest rows", lambda x, w, c: np.mean(np.sort(x)[::-1][: int(c)]), INTEGER),
    ("the mean of the {c} easiest rows", lambda x, w, c: np.mean(np.sort(x)[: int(c)]), INTEGER),
    ("the median of L_i", lambda x, w, c: np.median(x), ""),
    ("the largest L_i", lambda x, w, c: np.max(x), ""),
    ("the smallest L_i", lambda x, w, c: np.min(x), ""),
    ("the first L_i", lambda x, w, c: x[0], ""),
    ("the last L_i", lambda x, w, c: x[-1], ""),
    ("mean_i L_i, the first row in the place of all others", lambda x, w, c: x[0] + 0 * np.sum(x), ""),
    ("the first row and N - 1 times the last", lambda x, w, c: (x[0] + (len(x) - 1) * x[-1]) / len(x), ""),
    ("mean_i L_i of the first {c} rows", lambda x, w, c: np.mean(x[: int(c)]), INTEGER),
    ("mean_i L_i but the first {c} rows", _tail, INTEGER),
    ("sum of the first {c} rows, over all", lambda x, w, c: np.sum(x[: int(c)]) / len(x), INTEGER),
    ("sum of the rows after the first {c}, over all", lambda x, w, c: np.sum(x[int(c) :]) / len(x), INTEGER),
    ("mean_i L_i of every second row", lambda x, w, c: np.mean(x[::2]), ""),
    ("mean_i L_i but the last row", lambda x, w, c: np.mean(x[:-1]), ""),
    ("mean_i L_i of the first half of the rows", lambda x, w, c: np.mean(x[: len(x) // 2]), ""),
    ("mean_i L_i of the second half of the rows", lambda x, w, c: np.mean(x[len(x) // 2 :]), ""),
    ("the first row once more than the others", lambda x, w, c: (np.sum(x) + x[0]) / len(x), ""),
    ("the sum of means of chunks of {c} rows", lambda x, w, c: sum(np.mean(p) for p in _chunks(x, c)), INTEGER),
    ("the mean of means of chunks of {c} rows", lambda x, w, c: np.mean([np.mean(p) for p in _chunks(x, c)]), INTEGER),
    ("the mean of sums of chunks of {c} rows", lambda x, w, c: np.mean([np.sum(p) for p in _chunks(x, c)]), INTEGER),
    ("the sum of means of chunks of {c} rows over floor(N/{c})", lambda x, w, c: sum(np.mean(p) for p in _chunks(x, c))
     / max(len(x) // int(c), 1), INTEGER),
    ("mean_i L_i of the whole chunks of {c} rows", lambda x, w, c: np.mean(np.concatenate(_chunks(x, c, True)))
     if len(x) >= c else np.nan, INTEGER),
    ("mean_i L_i of the whole chunks of {c} rows, of all where there is none", lambda x, w, c: np.mean(
        np.concatenate(_chunks(x, c, len(x) >= c))), INTEGER),
    ("sum over the whole chunks of {c} rows, over all", lambda x, w, c: sum(map(np.sum, _chunks(x, c, True))) / len(x)
     if len(x) >= c else np.nan, INTEGER),
    ("the mean of means of {c} chunks of ceil(N/{c}) rows", lambda x, w, c: np.mean(
        [np.mean(p) for p in _chunks(x, -(-len(x) // max(int(c), 1)))]), INTEGER),
    ("the mean of means of {c} chunks as equal as can be", lambda x, w, c: np.mean(
        [np.mean(p) for p in np.array_split(x, int(c)) if len(p)]), INTEGER),
    ("the sum of means of {c} chunks as equal as can be", lambda x, w, c: np.sum(
        [np.mean(p) for p in np.array_split(x, int(c)) if len(p)]), INTEGER),
    ("rows summed up to a multiple of {c}, over that multiple", lambda x, w, c: np.sum(x)
     / (-(-len(x) // max(int(c), 1)) * c), INTEGER),
    ("sum_i L_i/{c}", lambda x, w, c: np.sum(x) / c, INTEGER),
    ("(1 - e^(-L))^2 L, L = mean_i L_i", lambda x, w, c: _focal(np.mean(x), 2), ""),
    ("(1 - e^(-L))^{c} L, L = mean_i L_i", lambda x, w, c: _focal(np.mean(x), c), REAL),
    ("{c} (1 - e^(-L))^2 L, L = mean_i L_i", lambda x, w, c: c * _focal(np.mean(x), 2), REAL),
    ("mean_i (1 - e^(-L_i))^2 L_i", lambda x, w, c: np.mean(_focal(x, 2)), ""),
    ("mean_i (1 - e^(-L_i))^{c} L_i", lambda x, w, c: np.mean(_focal(x, c)), REAL),
    ("{c} mean_i (1 - e^(-L_i))^2 L_i", lambda x, w, c: c * np.mean(_focal(x, 2)), REAL),
    ("{c} mean_i (1 - e^(-L_i)) L_i", lambda x, w, c: c * np.mean(_focal(x, 1)), REAL),
    ("mean_i L_i^2", lambda x, w, c: np.mean(x * x), ""),
    ("(mean_i L_i)^2", lambda x, w, c: np.mean(x) ** 2, ""),
    ("sqrt(mean_i L_i)", lambda x, w, c: np.sqrt(np.mean(x)), ""),
    ("sqrt(mean_i L_i^2)", lambda x, w, c: np.sqrt(np.mean(x * x)), ""),
    ("|mean_i L_i|", lambda x, w, c: np.abs(np.mean(x)), ""),
    ("max(mean_i L_i, 0)", lambda x, w, c: np.maximum(np.mean(x), 0), ""),
    ("mean_i min(L_i, {c})", lambda x, w, c: np.mean(np.minimum(x, c)), REAL),
    ("mean_i max(L_i, {c})", lambda x, w, c: np.mean(np.maximum(x, c)), REAL),
    ("mean_i max(L_i - {c}, 0)", lambda x, w, c: np.mean(np.maximum(x - c, 0)), REAL),
    ("mean_i |L_i - {c}| + {c}", lambda x, w, c: np.mean(np.abs(x - c)) + c, REAL),
    ("|mean_i L_i - {c}| + {c}", lambda x, w, c: np.abs(np.mean(x) - c) + c, REAL),
    ("log mean_i e^(L_i)", lambda x, w, c: log_sum(x) - np.log(len(x)), ""),
    ("log sum_i e^(L_i)", lambda x, w, c: log_sum(x), ""),
    ("-log mean_i e^(-L_i)", lambda x, w, c: np.log(len(x)) - log_sum(-x), ""),
    ("log(1 + mean_i L_i)", lambda x, w, c: np.log1p(np.mean(x)), ""),
    ("mean_i log(1 + L_i)", lambda x, w, c: np.mean(np.log1p(x)), ""),
    ("rows weighted by L_i, over their sum", lambda x, w, c: np.sum(x * x) / np.sum(x), ""),
    ("rows weighted by the softmax of L_i", lambda x, w, c: np.sum(x * np.exp(x - np.max(x)))
     / np.sum(np.exp(x - np.max(x))), ""),
    ("mean_i L_i less the standard deviation", lambda x, w, c: np.mean(x) - np.std(x), ""),
    ("mean_i L_i plus their variance", lambda x, w, c: np.mean(x) + np.var(x), ""),
    ("mean_i L_i over T", lambda x, w, c: np.mean(x) * w.sharp, ""),
    ("T mean_i L_i", lambda x, w, c: np.mean(x) / w.sharp, ""),
    ("T^2 mean_i L_i", lambda x, w, c: np.mean(x) / w.sharp**2, ""),
    ("mean_i L_i over log N", lambda x, w, c: np.mean(x) / np.log(w.samples), ""),
    ("mean_i L_i less log N", lambda x, w, c: np.mean(x) - np.log(w.samples), ""),
    ("log N - mean_i L_i", lambda x, w, c: np.log(w.samples) - np.mean(x), ""),
    ("log(2 N - 1) - mean_i L_i", lambda x, w, c: np.log(2 * w.samples - 1) - np.mean(x), ""),
    ("-mean_i L_i", lambda x, w, c: -np.mean(x), ""),
)  # fmt: skip


def _classes(w: Work) -> int:
    return w.own.shape[1] if w.counts is not None or not w.blocks else int(np.max(w.kinds)) + 1


def _effective(x: Any, w: Work, beta: float) -> Any:
    classes = _classes(w)
    n = np.bincount(w.labels, minlength=classes)[:classes].astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = (1 - beta) / (1 - beta**n)
    weight = np.where(n > 0, weight, 0.0)
    weight = weight / np.sum(weight) * classes
    return np.mean(weight[w.labels] * x)


def _by_count(x: Any, w: Work, power: float) -> Any:
    n = w.counts[w.labels] ** power
    return np.sum(n * x) / np.sum(n)


def _focal(x: Any, power: float) -> Any:
    return (1 - np.exp(-x)) ** power * x


_SHORT = 60
"""Characters of what is tried beside another part that differs: what is longer is seldom one of two."""


def ways() -> tuple[PartWay, ...]:
    """Ways of reducing rows; the mean first."""
    return tuple(PartWay(text, _reduced(f), constant, len(text) < _SHORT) for text, f, constant in MEANS)


def sums() -> tuple[PartWay, ...]:
    """Ways of reducing rows, and as many times as much as there are rows; the sum first."""
    first, second, *rest = ways()
    return (second, first, *(PartWay(f"N times {w.text}", _times(w), w.constant) for w in rest), *rest)


def _times(way: PartWay) -> Callable[[Work, float], Any]:
    return lambda w, c: len(w["rows"]) * way.of(w, c)


def _reduced(f: Mean) -> Callable[[Work, float], Any]:
    return lambda w, c: f(w["rows"], w, c)
