"""Distances between unit rows: those of pairs, or those of all points to one another."""

import numpy as np

from nceref.verification.dense.scene import Dense, Member, Rows, embed, log_sum_exp, real


def _power(squares, exponent):
    """Distances to a power; 0 where the points coincide."""
    apart = real(squares) > 0
    return np.where(apart, np.where(apart, squares, 1.0) ** (exponent / 2), 0.0)


def _exponent(default, knobs):
    return 1.0 if "distance-not-squared" in knobs else 2.0 if "distance-squared" in knobs else default


def _paired(inputs, knobs):
    unit = embed(inputs, {"first": "x", "second": "y"}, knobs)
    return unit["first"] - unit["second"], inputs["exponent"]


def _paired_rows(arranged, knobs):
    between, exponent = arranged
    rows = _power(np.sum(between * between, axis=-1), _exponent(exponent, knobs))
    rows = rows / between.shape[-1] if "mean-over-dimensions" in knobs else rows
    return Rows(rows, size=4.0 + float(np.max(np.abs(real(rows)))), samples=rows.shape[-1])


def _apart(inputs, knobs):
    x = embed(inputs, {"first": "x"}, knobs)["first"]
    between = x[..., :, None, :] - x[..., None, :, :]
    off = ~np.eye(x.shape[-2], dtype=bool)
    diagonal = inputs["include_diagonal"] or "diagonal-included" in knobs
    t = {"temperature-missing": 1.0}.get(
        next(iter(knobs), ""), inputs["t"] * knobs.get("temperature-off-by-a-factor", 1)
    )
    return np.sum(between * between, axis=-1), off | diagonal, t


def _potential(arranged, knobs):
    """The logarithm of the mean potential, one number for all points."""
    squares, pairs, t = arranged
    n = len(pairs)
    logits = -t * _power(squares, _exponent(2.0, knobs))
    flat = np.where(pairs, logits, -np.inf).reshape(*logits.shape[:-2], n * n)
    total = log_sum_exp(flat)
    # Pairs are counted once, i < j, unless the points themselves are among them.
    whole = bool(np.all(pairs))
    count = np.log(np.sum(pairs)) if "sum-instead-of-mean" not in knobs else np.log(1 if whole else 2)
    mean = total - count
    if "epsilon-in-log" in knobs:
        mean = np.log(np.exp(mean) + knobs["epsilon-in-log"][1])
    value = np.exp(mean) if "logarithm-missing" in knobs else mean
    return Rows(value[..., None], size=float(np.max(np.abs(real(logits)))), samples=n)


_EVERY = ("epsilon-in-norm",
          "rows-not-normalized", "rows-normalized", "columns-normalized", "matrix-normalized", "sum-instead-of-mean",
          "first-input-detached", "normalization-detached", "distance-not-squared")  # fmt: skip

DENSE = Dense(
    name="distances",
    losses={
        "alignment": Member(
            _paired, _paired_rows,
            (*_EVERY, "first-input-not-normalized", "second-input-not-normalized", "distance-squared", "keys-detached",
             "mean-over-dimensions",
             "mean-instead-of-sum", "divided-by-n-twice", "last-row-missing", "mean-over-nonzero-rows"),
        ),
        "uniformity": Member(
            _apart, _potential,
            (*_EVERY, "diagonal-included", "logarithm-missing", "epsilon-in-log", "temperature-missing",
             "temperature-off-by-a-factor"),
        ),
    },
)  # fmt: skip
