"""Distances between unit rows: those of pairs, or those of all points to one another."""

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, DenseRows, embed, log_sum_exp
from nceref.diagnosis.dense.ways.distances import apart_stages, paired_stages
from nceref.diagnosis.tape import detached, edge


def _power(squares, exponent):
    """Distances to a power; 0 where the points coincide."""
    apart = detached(squares) > 0
    return np.where(apart, np.where(apart, squares, 1.0) ** (exponent / 2), 0.0)


def _exponent(default, deviations):
    return 1.0 if "distance-not-squared" in deviations else 2.0 if "distance-squared" in deviations else default


def _paired(inputs, deviations):
    unit = embed(inputs, {"first": "x", "second": "y"}, deviations)
    return unit["first"] - unit["second"], inputs["exponent"]


def _paired_rows(arranged, deviations):
    between, exponent = arranged
    rows = _power(np.sum(between * between, axis=-1), _exponent(exponent, deviations))
    rows = rows / between.shape[-1] if "mean-over-dimensions" in deviations else rows
    # The squared distance of two unit rows is at most 4.
    return DenseRows(rows, size=4.0 + float(np.max(np.abs(detached(rows)))), samples=rows.shape[-1])


def _apart(inputs, deviations):
    x = embed(inputs, {"first": "x"}, deviations)["first"]
    between = _of_pairs(x[..., :, None, :], x, 1) - _of_pairs(x[..., None, :, :], x, -1)
    off = ~np.eye(x.shape[-2], dtype=bool)
    diagonal = inputs["include_diagonal"] or "diagonal-included" in deviations
    t = 1.0 if "temperature-missing" in deviations else inputs["t"] * deviations.get("temperature-off-by-a-factor", 1)
    return np.sum(between * between, axis=-1), off | diagonal, t


def _of_pairs(points, x, order):
    """The points of all pairs, of which those of the lower index come first; `order`: of the rows 1, else -1."""
    n = x.shape[-2]
    first = order * np.subtract.outer(np.arange(n), np.arange(n))[..., None] < 0
    points = edge(
        np.broadcast_to(points, (*x.shape[:-2], n, n, x.shape[-1])), "the first point of each pair", where=first
    )
    return edge(points, "the second point of each pair", where=~first)


def _potential(arranged, deviations):
    """The logarithm of the mean potential, one number for all points."""
    squares, pairs, t = arranged
    n = len(pairs)
    logits = -t * _power(squares, _exponent(2.0, deviations))
    flat = np.reshape(np.where(pairs, logits, -np.inf), n * n)
    total = log_sum_exp(flat)
    # Pairs are counted once, i < j, unless the points themselves are among them.
    whole = bool(np.all(pairs))
    count = np.log(np.sum(pairs)) if "sum-instead-of-mean" not in deviations else np.log(1 if whole else 2)
    mean = total - count
    if "epsilon-in-log" in deviations:
        mean = np.log(np.exp(mean) + deviations["epsilon-in-log"][1])
    value = np.exp(mean) if "logarithm-missing" in deviations else mean
    return DenseRows(value[..., None], size=float(np.max(np.abs(detached(logits)))), samples=n)


def _pairs(inputs):
    n = len(inputs["x"])
    r, everyone = np.arange(n), np.ones((n, n), dtype=bool)
    return (DenseBatch(None, None, everyone, np.eye(n), ~everyone, samples=n, inputs=inputs, rows=("x", "y"),
                       anchors=r, against=n + r, labels=r, kinds=r),)  # fmt: skip


def _points(inputs):
    n = len(inputs["x"])
    r, own = np.arange(n), np.eye(n, dtype=bool)
    inside = own | ~own if inputs["include_diagonal"] else ~own
    return (DenseBatch(None, None, inside, np.zeros((n, n)), own, samples=n, inputs=inputs, rows=("x",), anchors=r,
                       against=r, labels=r, kinds=r),)  # fmt: skip


_EVERY = (*of_kind("rows"), "first-input-detached", "distance-not-squared")

DENSE = DenseFamily(
    name="distances",
    losses={
        "alignment": DenseForm(
            _paired,
            _paired_rows,
            (
                *_EVERY,
                *of_kind("two inputs", "mean"),
                "distance-squared",
                "keys-detached",
                "mean-over-dimensions",
                "mean-over-nonzero-rows",
            ),
            paired_stages,
            _pairs,
        ),
        "uniformity": DenseForm(
            _apart,
            _potential,
            (
                *_EVERY,
                "sum-instead-of-mean",
                "diagonal-included",
                "logarithm-missing",
                "epsilon-in-log",
                "temperature-missing",
                "temperature-off-by-a-factor",
            ),
            apart_stages,
            _points,
        ),
    },
)
