"""Values that are right: what arrays, labels and scalars of each kind look like, as tables of functions."""

import math
from dataclasses import replace

import numpy as np


def _rows(x):
    return x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x.reshape(-1, 1)


def _scaled(low, high, each_row=False):
    def make(rng, shape):
        spread = (*shape[:-1], 1) if each_row and len(shape) > 1 else ()
        return rng.standard_normal(shape) * 10.0 ** rng.uniform(low, high, spread)

    return make


def _normal(rng, shape):
    return rng.standard_normal(shape)


def _near_the_end(rng, shape):
    return np.clip(0.5 * rng.standard_normal(shape), -1, 1) * 1.7e308


def _one_row(rng, shape):
    return np.broadcast_to(rng.standard_normal(shape[-1:]), shape).copy()


def _nearly_one_row(rng, shape):
    return _one_row(rng, shape) + 1e-9 * rng.standard_normal(shape)


def _opposed(rng, shape):
    return _one_row(rng, shape) * rng.choice([-1.0, 1.0], (*shape[:-1], 1))


def _multiples(rng, shape):
    return _one_row(rng, shape) * 2.0 ** rng.integers(-30, 30, (*shape[:-1], 1))


def _one_hot(rng, shape):
    x = np.zeros(shape)
    rows = _rows(x)
    rows[np.arange(len(rows)), rng.integers(0, rows.shape[1], len(rows))] = 1.0
    return x


def _unit(rng, shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _integers(rng, shape):
    return rng.integers(-3, 4, shape) + 0.0


def _with_a_zero_row(rng, shape):
    x = rng.standard_normal(shape)
    _rows(x)[rng.integers(0, len(_rows(x)))] = 0.0
    return x


ORDINARY = 3
"""So many of the first kinds of each table are numbers of ordinary size."""
EMBEDDINGS = {
    "normal": _normal,
    "unit": _unit,
    "small": _scaled(-3, 0),
    "integers": _integers,
    "one-hot": _one_hot,
    "duplicates": _one_row,
    "nearly duplicates": _nearly_one_row,
    "multiples": _multiples,
    "opposed": _opposed,
    "tiny": _scaled(-150, -3),
    "huge": _scaled(3, 150),
    "subnormal": _scaled(-318, -305),
    "near the end of the range": _near_the_end,
    "mixed scales of rows": _scaled(-140, 140, each_row=True),
    "large": _scaled(0, 3),
    "zero row": _with_a_zero_row,
}


def _frequencies(rng, shape):
    x = rng.random(shape) + 0.05
    return x / x.sum()


def _steep_frequencies(rng, shape):
    x = 10.0 ** rng.uniform(-30, 0, shape)
    return x / x.sum()


def _counts(rng, shape):
    return rng.integers(1, 100, shape) + 0.0


def _counts_times(low, high):
    return lambda rng, shape: _counts(rng, shape) * 10.0 ** rng.uniform(low, high)


def _wide(rng, shape):
    return 10.0 ** rng.uniform(-300, 300, shape)


def _truths(rng, shape):
    return (rng.random(shape) < 0.6) + 0.0


def _weights(rng, shape):
    return _truths(rng, shape) * rng.random(shape)


def _weights_times(low, high):
    def make(rng, shape):
        return _weights(rng, shape) * 10.0 ** rng.uniform(low, high)

    return make


def _weights_of_all_sizes(rng, shape):
    return 10.0 ** rng.uniform(-322, 308, shape)


def _all(number):
    return lambda rng, shape: np.full(shape, number)


WEIGHTS = {
    "ones": _all(1.0),
    "truths": _truths,
    "weights": _weights,
    "zeros": _all(0.0),
    "tiny": _weights_times(-300, -3),
    "huge": _weights_times(3, 300),
    "subnormal": _weights_times(-323, -308),
    "smallest": _all(5e-324),
    "largest": _all(1.7e308),
    "of all sizes": _weights_of_all_sizes,
}
VECTORS = {name: EMBEDDINGS[name] for name in ("normal", "small", "large", "tiny", "huge", "subnormal", "integers")}
ARRAYS = {
    "embedding": EMBEDDINGS,
    "guide": EMBEDDINGS,
    "center": EMBEDDINGS,
    "vector": VECTORS,
    "counts": {"counts": _counts, "frequencies": _frequencies, "large": _counts_times(3, 12), "wide": _wide},
    "prior": {"frequencies": _frequencies, "steep": _steep_frequencies},
    "mask": WEIGHTS,
    "weights": WEIGHTS,
}
"""By what a parameter is declared to look like; the first of each is the plainest."""


def in_dtype(x, dtype, low):
    """The numbers in another format: those beyond its range go to its end, and positive ones stay positive."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        out = np.clip(x, -float(info.max), float(info.max)).astype(dtype)
        out = np.where(np.isfinite(out), out, np.sign(x) * info.max).astype(dtype)
    if low is not None:
        out = np.where((x > low) & (out <= low), info.smallest_subnormal, out).astype(dtype)
    return out


def _few(rng, n, classes):
    return rng.integers(0, classes, n)


def _pairs(rng, n, classes):
    return np.arange(n) // 2


LABELS = {
    "few": _few,
    "pairs": _pairs,
    "negative": lambda rng, n, classes: _few(rng, n, classes) - 2,
    "gaps": lambda rng, n, classes: 1000 * _few(rng, n, classes) - 500,
    "huge": lambda rng, n, classes: np.iinfo(np.int64).max - _few(rng, n, classes),
    "least and largest": lambda rng, n, classes: rng.choice([np.iinfo(np.int64).min, np.iinfo(np.int64).max], n),
}
CLASS_LABELS = {"few": _few}
"""Where labels count classes."""


def scalars(p):
    """Functions of a generator by name: values in the domain of a scalar."""
    low, high = p.low, p.high
    kinds = {"typical": lambda rng: rng.uniform(*p.typical)}
    if math.isfinite(high) and high > 1e6:
        free = scalars(replace(p, high=math.inf))
        kinds = {name: lambda rng, f=f: min(f(rng), math.nextafter(high, 0)) for name, f in free.items()}
    elif math.isfinite(high):
        kinds["anywhere"] = lambda rng: low + (high - low) * (1 - rng.random()) * 0.999999
        kinds["just below the end"] = lambda rng: high if p.high_closed else math.nextafter(high, 0)
    else:
        kinds["some size"] = lambda rng: 10.0 ** rng.uniform(-2.5, 1.5)
        kinds["a round number"] = lambda rng: float(rng.integers(1, 5))
        kinds["very large"] = lambda rng: 10.0 ** rng.uniform(2, 12)
        kinds["any size"] = lambda rng: 10.0 ** rng.uniform(-323, 308)
        kinds["the largest"] = lambda rng: 1.7976931348623157e308
    kinds["very small"] = lambda rng: 10.0 ** rng.uniform(-12, -2)
    kinds["the smallest normal"] = lambda rng: 2.2250738585072014e-308
    kinds["the smallest"] = lambda rng: 5e-324
    if low == -math.inf:
        kinds["zero"] = lambda rng: 0.0
        kinds["negative"] = lambda rng: -(10.0 ** rng.uniform(-2, 3))
        kinds["very negative"] = lambda rng: -(10.0 ** rng.uniform(3, 308))
    elif p.low_closed:
        kinds["the least"] = lambda rng: low
    return kinds
