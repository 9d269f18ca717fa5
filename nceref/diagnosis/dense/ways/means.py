"""How row losses become one number: the weight of each row and what the sum is divided by, or another statistic.

A mean takes rows along the last axis, so that those of many other losses are reduced at once.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, log_sum_exp
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Way

Mean = Callable[[Any, DenseBatch, float], Any]
Number = Callable[[DenseBatch, float], Any]


def _class_sizes(w: DenseBatch) -> Any:
    return np.sum(w.labels[:, None] == w.labels, axis=1).astype(float)


def _classes(w: DenseBatch) -> int:
    return w.own.shape[1] if w.counts is not None or not w.blocks else int(np.max(w.kinds)) + 1


def _effective(w: DenseBatch, beta: float) -> Any:
    return (1 - beta) / (1 - beta ** _class_sizes(w))


def _made_one_a_class(w: DenseBatch, weight: Any) -> Any:
    """Weights of rows such that those of all classes, each counted once, add up to the number of classes."""
    first = np.unique(w.labels, return_index=True)[1]
    return weight * _classes(w) / np.sum(weight[first])


def _numbers(w: DenseBatch) -> Any:
    return np.arange(len(w.labels))


def _chunk(w: DenseBatch, size: float) -> Any:
    return _numbers(w) // max(int(size), 1)


def _of_a_chunk(chunk: Any) -> Any:
    """The number of rows in the chunk of each row."""
    return np.bincount(chunk)[chunk]


def _split(w: DenseBatch, parts: float) -> Any:
    n, parts = len(w.labels), max(int(parts), 1)
    return np.repeat(np.arange(parts), [len(p) for p in np.array_split(np.arange(n), parts)])


MASKS: tuple[tuple[str, Number, str], ...] = (
    # Slices that miss some of the batch, such as one of two views, and blocks that do not divide it.
    ("the first half of the rows", lambda w, c: _numbers(w) < len(w.labels) // 2, ""),
    ("the second half of the rows", lambda w, c: _numbers(w) >= len(w.labels) // 2, ""),
    ("every second row", lambda w, c: _numbers(w) % 2 == 0, ""),
    ("all rows but the last", lambda w, c: _numbers(w) < len(w.labels) - 1, ""),
    ("the first row", lambda w, c: _numbers(w) == 0, ""),
    ("the last row", lambda w, c: _numbers(w) == len(w.labels) - 1, ""),
    ("the first {c} rows", lambda w, c: _numbers(w) < c, INTEGER),
    ("all rows but the first {c}", lambda w, c: _numbers(w) >= c, INTEGER),
    ("whole chunks of {c} rows", lambda w, c: _chunk(w, c) < len(w.labels) // max(int(c), 1), INTEGER),
    ("whole chunks of {c} rows, or all rows of a batch below {c}", lambda w, c: (
        _chunk(w, c) < len(w.labels) // max(int(c), 1)) | (len(w.labels) < c), INTEGER),
    # Background, padding and ignored classes: class 0 or the last one (fvcore, HRNet, TimDettmers/ConvE).
    ("rows of all classes but 0", lambda w, c: w.labels != 0, ""),
    ("rows of class 0", lambda w, c: w.labels == 0, ""),
    ("rows of all classes but the last", lambda w, c: w.labels != np.max(w.labels), ""),
    ("rows that are not alone in their class", lambda w, c: _class_sizes(w) > 1, ""),
    # Anchors without a positive (HobbitLong/SupContrast).
    ("rows with a positive", lambda w, c: np.any(w.together, axis=1), ""),
    ("rows with a positive that is left", lambda w, c: np.sum(w["positives"], axis=1) > 0, ""),
    ("rows with a positive after them", lambda w, c: np.any(w.together & (w.j > w.i), axis=1), ""),
)  # fmt: skip
"""Which rows count."""
WEIGHTS: tuple[tuple[str, Number, str], ...] = (
    ("|P(i)|", lambda w, c: np.sum(w["positives"], axis=1), ""),
    ("the number of their positives", lambda w, c: np.sum(w.together, axis=1), ""),
    ("1/|P(i)|", lambda w, c: 1 / np.maximum(np.sum(w.together, axis=1), 1), ""),
    # Weights of classes: inverse frequency, and effective numbers (Cui et al. 2019, vandit15/Class-balanced-loss).
    ("1/(C n_y), n_y rows of the class in the batch", lambda w, c: 1 / _class_sizes(w) / _classes(w), ""),
    ("1/n_y of the batch, made C in all", lambda w, c: _made_one_a_class(w, 1 / _class_sizes(w)), ""),
    ("1/sqrt(n_y), n_y rows of the class in the batch", lambda w, c: _class_sizes(w) ** -0.5, ""),
    ("1/(1 + n_y), n_y rows of the class in the batch", lambda w, c: 1 / (1 + _class_sizes(w)), ""),
    ("n_y rows of the class in the batch", lambda w, c: _class_sizes(w), ""),
    ("1 - n_y/N, n_y rows of the class in the batch", lambda w, c: 1 - _class_sizes(w) / len(w.labels), ""),
    *((f"(1 - {b})/(1 - {b}^n_y) of the batch", lambda w, c, b=b: _effective(w, b), "")
      for b in (0.9, 0.99, 0.999, 0.9999)),
    *((f"(1 - {b})/(1 - {b}^n_y) of the batch, made C in all", lambda w, c, b=b: _made_one_a_class(w, _effective(w, b)),
       "") for b in (0.9, 0.99, 0.999, 0.9999)),
    ("the number n_y of their class", lambda w, c: w.counts[w.labels], ""),
    ("1/n_y of their class", lambda w, c: 1 / w.counts[w.labels], ""),
    ("y", lambda w, c: w.labels, ""),
    # A row that is loaded again by a tile that is padded, or counted again by a loop.
    ("2 for the first and 1 for the others", lambda w, c: 1.0 + (_numbers(w) == 0), ""),
    ("1 for the first, N - 1 for the last and 0 for the others", lambda w, c: (_numbers(w) == 0)
     + (len(w.labels) - 1.0) * (_numbers(w) == len(w.labels) - 1), ""),
)  # fmt: skip
"""What each row is multiplied by."""
PARTS: tuple[tuple[str, Number, str], ...] = (
    ("classes in the batch", lambda w, c: 1 / _class_sizes(w), ""),
    # Gradient accumulation: a mean a chunk, of chunks that are not of one size.
    ("chunks of {c} rows", lambda w, c: 1 / _of_a_chunk(_chunk(w, c)), INTEGER),
    ("{c} chunks of ceil(N/{c}) rows", lambda w, c: 1 / _of_a_chunk(_chunk(w, -(-len(w.labels) // max(int(c), 1)))),
     INTEGER),
    ("{c} chunks as equal as can be", lambda w, c: 1 / _of_a_chunk(_split(w, c)), INTEGER),
)  # fmt: skip
"""Parts of the rows of which each has a mean: a row weighs one over the rows of its part."""
DIVISORS: tuple[tuple[str, Number, str], ...] = (
    ("/N^2", lambda w, c: w.samples**2, ""),
    ("/N", lambda w, c: w.samples, ""),
    ("/(N - 1)", lambda w, c: w.samples - 1, ""),
    ("/(N + 1)", lambda w, c: w.samples + 1, ""),
    ("/(2 N)", lambda w, c: 2 * w.samples, ""),
    ("/sqrt(N)", lambda w, c: np.sqrt(len(w.labels)), ""),
    (" over the number of candidates", lambda w, c: w.own.shape[1], ""),
    (" over rows times candidates", lambda w, c: w.own.size, ""),
    (" over the number of positives", lambda w, c: np.sum(w.together), ""),
    (" over rows times classes in the batch", lambda w, c: len(w.labels) * len(np.unique(w.labels)), ""),
    (" over the number of classes in the batch", lambda w, c: len(np.unique(w.labels)), ""),
    ("/{c}", lambda w, c: c, INTEGER),
    (" over the number of chunks of {c} rows", lambda w, c: -(-len(w.labels) // max(int(c), 1)), INTEGER),
    (" over the next multiple of {c}", lambda w, c: -(-len(w.labels) // max(int(c), 1)) * c, INTEGER),
)
"""What a sum over all rows is divided by."""


def _mean(x: Any) -> Any:
    return np.mean(x, axis=-1)


def _sum(x: Any) -> Any:
    return np.sum(x, axis=-1)


def _hardest(x: Any, share: float, of: Callable[[float], float] = np.ceil) -> Any:
    n = x.shape[-1]
    return np.sort(x, axis=-1)[..., max(0, n - max(1, int(of(round(share * n, 9))))) :]


def _focal(x: Any, power: float) -> Any:
    return (1 - np.exp(-x)) ** power * x


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


ROWS: tuple[tuple[str, Callable[[Any, float], Any], str], ...] = (
    ("max(L_i, 0)", lambda x, c: np.maximum(x, 0), ""),
    # The focal loss (Lin et al. 2017) on a row that is -log p.
    ("(1 - e^(-L_i))^2 L_i", lambda x, c: _focal(x, 2), ""),
    ("(1 - e^(-L_i))^{c} L_i", lambda x, c: _focal(x, c), REAL),
    ("{c} (1 - e^(-L_i))^2 L_i", lambda x, c: c * _focal(x, 2), REAL),
    ("{c} (1 - e^(-L_i)) L_i", lambda x, c: c * _focal(x, 1), REAL),
    ("L_i^2", lambda x, c: x * x, ""),
    ("log(1 + L_i)", lambda x, c: np.log1p(x), ""),
    ("min(L_i, {c})", lambda x, c: np.minimum(x, c), REAL),
    ("max(L_i, {c})", lambda x, c: np.maximum(x, c), REAL),
    ("max(L_i - {c}, 0)", lambda x, c: np.maximum(x - c, 0), REAL),
    # Flooding (Ishida et al. 2020), of rows.
    ("(|L_i - {c}| + {c})", lambda x, c: np.abs(x - c) + c, REAL),
)  # fmt: skip
"""What becomes of each row."""
THRESHOLDS: tuple[tuple[str, Callable[[Any, float], Any], str], ...] = (
    # Online hard example mining by a threshold of the loss or of the probability.
    ("rows with a loss above 0", lambda x, c: x > 0, ""),
    ("rows with a loss above the mean", lambda x, c: x > np.mean(x, axis=-1, keepdims=True), ""),
    ("rows with a loss below the mean", lambda x, c: x < np.mean(x, axis=-1, keepdims=True), ""),
    ("rows with a loss above {c}/10", lambda x, c: x > c / 10, INTEGER),
    ("rows with p_ip < 1/2", lambda x, c: x > np.log(2), ""),
    ("rows with p_ip < {c}/10", lambda x, c: x > -np.log(c / 10), INTEGER),
)
"""Which rows count, by what they are."""


def _lengths(w: DenseBatch) -> Any:
    """Lengths of all rows that are compared, of all inputs."""
    return np.concatenate([np.sqrt(np.sum(x * x, axis=-1)) for x in w.blocks])


WHOLE: tuple[tuple[str, Mean, str], ...] = (
    ("{c} J", lambda x, w, c: c * x, REAL),
    ("J + {c}", lambda x, w, c: x + c, REAL),
    ("-J", lambda x, w, c: -x, ""),
    ("J/T", lambda x, w, c: x * w.scale, ""),
    ("T J", lambda x, w, c: x / w.scale, ""),
    ("T^2 J", lambda x, w, c: x / w.scale**2, ""),
    ("J/log N", lambda x, w, c: x / np.log(w.samples), ""),
    # Bounds of mutual information (van den Oord et al. 2018).
    ("J - log N", lambda x, w, c: x - np.log(w.samples), ""),
    ("log N - J", lambda x, w, c: np.log(w.samples) - x, ""),
    ("log(2 N - 1) - J", lambda x, w, c: np.log(2 * w.samples - 1) - x, ""),
    ("(1 - e^(-J))^2 J", lambda x, w, c: _focal(x, 2), ""),
    ("(1 - e^(-J))^{c} J", lambda x, w, c: _focal(x, c), REAL),
    ("{c} (1 - e^(-J))^2 J", lambda x, w, c: c * _focal(x, 2), REAL),
    ("J^2", lambda x, w, c: x**2, ""),
    ("sqrt(J)", lambda x, w, c: np.sqrt(x), ""),
    ("|J|", lambda x, w, c: np.abs(x), ""),
    ("max(J, 0)", lambda x, w, c: np.maximum(x, 0), ""),
    ("log(1 + J)", lambda x, w, c: np.log1p(x), ""),
    # Penalties on the lengths of embeddings (Sohn 2016, N-pair loss).
    ("J + {c} mean_i |x_i|^2", lambda x, w, c: x + c * np.mean(_lengths(w) ** 2), REAL),
    ("J + {c} mean_i |x_i|", lambda x, w, c: x + c * np.mean(_lengths(w)), REAL),
    # Flooding (Ishida et al. 2020).
    ("|J - {c}| + {c}", lambda x, w, c: np.abs(x - c) + c, REAL),
)  # fmt: skip
"""What becomes of the mean."""


def _unequal(x: Any, c: float, halves: bool) -> Any:
    """The mean of the first half of the rows and that of the second, weighted; refused where they are no two parts."""
    if not halves:
        raise ValueError
    n = x.shape[-1] // 2
    return c * _mean(x[..., :n]) + (1 - c) * _mean(x[..., n:])


STATISTICS: tuple[tuple[str, Mean, str], ...] = (
    ("{c} of the first direction and 1 - {c} of the second", lambda x, w, c: _unequal(
        x, c, len(w.own) == 2 * w.own.shape[1]), REAL),
    ("{c} of the first view and 1 - {c} of the second", lambda x, w, c: _unequal(
        x, c, len(w.own) == w.own.shape[1] == 2 * w.samples), REAL),
    *((f"the mean of the hardest {text}", lambda x, w, c, of=of, k=k: _mean(_hardest(x, c / k, of)), INTEGER)
      for k in (10, 4) for text, of in ((f"ceil({{c}} N/{k}) rows", np.ceil), (f"floor({{c}} N/{k}) rows", np.floor))),
    ("the sum of the hardest floor({c} N/10) rows over N", lambda x, w, c: np.sum(_hardest(x, c / 10, np.floor), -1)
     / x.shape[-1], INTEGER),
    ("the mean of the {c} hardest rows", lambda x, w, c: _mean(np.sort(x, axis=-1)[..., -int(c) :]), INTEGER),
    ("the mean of the {c} easiest rows", lambda x, w, c: _mean(np.sort(x, axis=-1)[..., : int(c)]), INTEGER),
    ("the median of L_i", lambda x, w, c: np.median(x, axis=-1), ""),
    ("the largest L_i", lambda x, w, c: np.max(x, axis=-1), ""),
    ("the smallest L_i", lambda x, w, c: np.min(x, axis=-1), ""),
    ("sqrt(mean_i L_i^2)", lambda x, w, c: np.sqrt(_mean(x * x)), ""),
    ("log mean_i e^(L_i)", lambda x, w, c: log_sum_exp(x) - np.log(x.shape[-1]), ""),
    ("log sum_i e^(L_i)", lambda x, w, c: log_sum_exp(x), ""),
    ("-log mean_i e^(-L_i)", lambda x, w, c: np.log(x.shape[-1]) - log_sum_exp(-x), ""),
    ("rows weighted by L_i, over their sum", lambda x, w, c: np.sum(x * x, axis=-1) / np.sum(x, axis=-1), ""),
    ("rows weighted by the softmax of L_i", lambda x, w, c: np.sum(x * _softmax(x), axis=-1), ""),
    ("mean_i L_i less the standard deviation", lambda x, w, c: _mean(x) - np.std(x, axis=-1), ""),
    ("mean_i L_i plus their variance", lambda x, w, c: _mean(x) + np.var(x, axis=-1), ""),
)  # fmt: skip
"""Numbers of all rows that are no weighted mean."""


_SUMS: tuple[tuple[Any, ...], ...] = (
    (MASKS, "mean of L_i over {}", "sum of L_i over {}, over the number of all rows", "sum of L_i over {}"),
    (WEIGHTS, "rows weighted by {}, over their sum", "rows weighted by {}, over N", "rows weighted by {}, added up"),
    (PARTS, "the mean of means of {}", "the sum of means of {} over N", "the sum of means of {}"),
)
"""How weights of rows are written: over the sum of the weights, over the number of rows, as a sum."""


def _linear() -> Iterator[tuple[str, Mean, str]]:
    """Weighted sums of the rows."""
    for text, d, constant in DIVISORS:
        yield f"sum_i L_i{text}", _sum_over(d), constant
    for table, *texts in _SUMS:
        for text, g, constant in table:
            for name, mean in zip(texts, _weighted(g), strict=True):
                yield name.replace("{}", text), mean, constant


def _sum_over(d: Number) -> Mean:
    return lambda x, w, c: np.sum(x, axis=-1) / d(w, c)


def _weighted(g: Number) -> tuple[Mean, Mean, Mean]:
    return (
        lambda x, w, c: x @ g(w, c) / np.sum(g(w, c)),
        lambda x, w, c: x @ g(w, c) / x.shape[-1],
        lambda x, w, c: x @ (g(w, c) * 1.0),
    )


def _curved(sums: bool) -> Iterator[tuple[str, Mean, str]]:
    """Ways that are no weighted sum of the rows."""
    whole, name = (_sum, "sum_i") if sums else (_mean, "mean_i")
    for text, f, constant in WHOLE:
        yield f"{text}, J = {name} L_i", _of_whole(f, whole), constant
    for text, of, constant in ROWS:
        yield f"{name} {text}", _of_rows(of, whole), constant
    for text, of, constant in THRESHOLDS:
        for rest, mean in zip(_SUMS[0][1:], _kept(of), strict=True):
            yield rest.replace("{}", text), mean, constant
    yield from STATISTICS


def _of_whole(f: Mean, whole: Callable[[Any], Any]) -> Mean:
    return lambda x, w, c: f(whole(x), w, c)


def _of_rows(of: Callable[[Any, float], Any], whole: Callable[[Any], Any]) -> Mean:
    return lambda x, w, c: whole(of(x, c))


def _kept(of: Callable[[Any, float], Any]) -> tuple[Mean, Mean, Mean]:
    return (
        lambda x, w, c: _sum(x * of(x, c)) / np.maximum(_sum(of(x, c)), 1),
        lambda x, w, c: _mean(x * of(x, c)),
        lambda x, w, c: _sum(x * of(x, c)),
    )


def ways(sums: bool = False) -> tuple[Way, ...]:
    """Ways of reducing rows: the mean first, or the sum, and the other one after it."""
    first: list[tuple[str, Mean, str]] = [
        ("mean_i L_i", lambda x, w, c: _mean(x), ""), ("sum_i L_i", lambda x, w, c: _sum(x), ""),
    ]  # fmt: skip
    linear = [Way(text, _reduced(f), k, linear=True) for text, f, k in (*first[:: -1 if sums else 1], *_linear())]
    return (*linear, *(Way(text, _reduced(f), k) for text, f, k in _curved(sums)))


def _reduced(f: Mean) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: f(w["rows"], w, c)
