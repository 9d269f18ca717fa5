"""The one place where a tolerance is computed: bounds by rounding-error analysis, never by guess.

`close` is for identities between two results; `bounds` walks through a loss with an error beside every number.
With unit roundoff u of the format that accumulates, g_n = n u / (1 - n u):

    logits      |ds| <= c u factor sum_k |a_ik| |b_jk|,    c counts the dot product and the normalization of both rows
    statistics  log-sum-exp: the softmax mean of |ds| + u |s - max| + u |s|, plus g of the sum; sums likewise
    head        evaluated at both ends of the interval of every statistic, with signs equal and alternating over rows
    slopes      |dG| from the intervals of the head's slopes and of the exponentials
    gradients   |dG| |B| + g_m |G| |B|, then through the normalization, componentwise
    storage     one rounding to the dtype of the input

Second-order terms enter as a factor exp(2 max |ds|). A bound grows by itself where the problem is ill-conditioned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nceref.inputs import bind
from nceref.plan import Comparison, Plan
from nceref.rounding_backward import block_slopes, by_factor, row_gradients, to_input
from nceref.rounding_forward import Format, finite, logits_error, statistic

Array = Any


def close(actual: Any, expected: Any, *, scale: float | None = None, ulps: float = 16, dtype: Any = np.float64) -> bool:
    """Whether two results agree within a few units in the last place.

    Parameters
    ----------
    actual, expected : float or array
        Shapes must be equal.
    scale : float, optional
        Magnitude of what was added up on the way; default: that of the expected value, entry by entry.
    ulps : float
        Roundings allowed, of size eps * max(|expected|, scale).
    dtype : dtype
        The format in which the computation was done.
    """
    a, b = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if a.shape != b.shape or not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return False
    unit = np.finfo(dtype).eps * np.maximum(np.abs(b), 0.0 if scale is None else scale)
    return bool(np.all(np.abs(a - b) <= ulps * unit + np.finfo(dtype).tiny))


@dataclass(frozen=True)
class Bounds:
    """How far a correct program may be from the exact loss.

    Attributes
    ----------
    value : float
        Bound on the absolute error of the value under the reduction "mean".
    grads : dict
        One array (or float) of bounds for every differentiable input.
    terms : dict
        What the bound of the value is made of, by stage; they add up to `value`.
    """

    value: float
    grads: dict[str, Any]
    terms: dict[str, float] = field(default_factory=dict)

    def explain(self) -> str:
        """The terms, one a line."""
        lines = [f"{stage:<12} {size:.3e}" for stage, size in self.terms.items()]
        return "\n".join([*lines, f"{'value':<12} {self.value:.3e}"])


def bounds(declaration: Any, *arrays: Any, accumulate: Any = None, **named: Any) -> Bounds:
    """Error bounds for one call of a loss, from the dtypes of its arrays.

    Parameters
    ----------
    declaration : Loss or LossFunction
        The loss.
    *arrays, **named
        Its arguments, NumPy arrays of a batch small enough for dense n x m arrays.
    accumulate : dtype, optional
        The format that computes; default: the widest of the arrays' dtypes, at least float32.

    Returns
    -------
    Bounds
    """
    loss = getattr(declaration, "declaration", declaration)
    inputs = bind(loss, arrays, named)
    stored = {name: x.dtype for name, x in inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    wide = np.dtype(accumulate or np.result_type(np.float32, *stored.values()))
    info = np.finfo(wide)
    wider = {name: x.astype(np.float64) if name in stored else x for name, x in inputs.items()}
    with np.errstate(over="ignore", under="ignore"):
        result = Analysis(loss.plan(**wider), Format(float(info.eps) / 2, float(info.tiny))).run()
    grads = {name: b + _storage(stored.get(name), result.sizes[name]) for name, b in result.grads.items()}
    return Bounds(result.value, {name: float(b) if np.ndim(b) == 0 else b for name, b in grads.items()}, result.terms)


def _storage(dtype: Any, size: Any) -> Any:
    """One rounding of a gradient to the dtype of its input."""
    if dtype is None:
        return 0.0
    info = np.finfo(dtype)
    return np.asarray(size, dtype=np.float64) * float(info.eps) / 2 + float(info.smallest_subnormal)


class Analysis:
    """One walk through a plan in float64, dense, with an error beside every number."""

    def __init__(self, plan: Plan, fmt: Format) -> None:
        self.plan, self.fmt = plan, fmt
        self.grads: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.terms: dict[str, float] = {}
        self.value = 0.0

    def run(self) -> "Analysis":
        """Fill in the bounds of the value and of every gradient."""
        u, plan = self.fmt.u, self.plan
        logits = [logits_error(c.logits, self.fmt) for c in plan.comparisons]
        stats: dict[str, Array] = {}
        errors: dict[str, Array] = {}
        for comparison, (s, ds) in zip(plan.comparisons, logits, strict=True):
            for name, term in comparison.terms.items():
                stats[name], errors[name] = statistic(term, s, ds, self.fmt)
        spread = {name: 2 * u * np.abs(finite(stats[name])) + 4 * u * plan.constant + errors[name] for name in stats}
        rows, row_errors, slopes, slope_errors = _head(plan, stats, spread, u)
        self._value(rows, row_errors, stats, errors)
        for comparison, (s, ds) in zip(plan.comparisons, logits, strict=True):
            own = {name: term for name, term in comparison.terms.items() if name in slopes}
            g, dg = block_slopes(own, s, ds, stats, errors, slopes, slope_errors, self.fmt)
            self._inputs(comparison, g, dg)
        for name in set(slopes) - set(stats):
            self._add(name, slopes[name], slope_errors[name])
        return self

    def _value(self, rows: Array, row_errors: Array, stats: Any, errors: Any) -> None:
        weights = _row_weights(self.plan, stats, rows)
        n = rows.size
        self.terms = {
            "rows": float(np.sum(weights * row_errors)),
            "reduction": float(self.fmt.gamma(n + 3) * np.sum(weights * np.abs(rows))),
            "underflow": 4 * self.fmt.tiny,
        }
        self.value = sum(self.terms.values())

    def _add(self, name: str, size: Any, error: Any) -> None:
        error = error + 2 * self.fmt.u * np.abs(size) + 4 * self.fmt.tiny
        self.grads[name] = self.grads.get(name, 0.0) + error
        self.sizes[name] = self.sizes.get(name, 0.0) + np.abs(size)

    def _inputs(self, comparison: Comparison, g: Array, dg: Array) -> None:
        logits, fmt = comparison.logits, self.fmt
        for rows, exact, size, error in row_gradients(logits, g, dg, fmt):
            for part in rows.parts:
                if not part.constant:
                    self._add(part.name, *to_input(part, rows, exact, size, error, fmt))
        raw, error = by_factor(logits, g, dg, fmt)
        for name, slope in logits.factor.slopes.items():
            self._add(name, slope * raw, abs(slope) * error)
        offset = logits.offset
        if offset is not None and offset.name is not None:
            axis = None if isinstance(offset.value, float) else 0
            count = g.size if axis is None else g.shape[0]
            size = np.sum(np.abs(g), axis=axis)
            self._add(offset.name, np.sum(g, axis=axis), np.sum(dg, axis=axis) + fmt.gamma(count + 3) * size)


def _row_weights(plan: Plan, stats: Any, rows: Array) -> Array:
    w = np.ones_like(rows) if plan.anchor_weights is None else np.asarray(plan.anchor_weights, dtype=np.float64)
    w = w if plan.counted is None else np.where(plan.counted(stats), w, 0.0)
    return w / (np.sum(w) if plan.divisor is None else plan.divisor)


def _head(plan: Plan, stats: Any, spread: Any, u: float) -> Any:
    """Rows and slopes, and how far they move over the intervals of the statistics, one statistic at a time."""

    def at(moved: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
        rows, pull = plan.head(dict(moved))
        return rows, pull(_row_weights(plan, moved, rows))

    rows, slopes = at(stats)
    row_errors = 8 * u * np.abs(rows)
    errors = {name: 12 * u * np.abs(np.asarray(slope)) for name, slope in slopes.items()}
    for moved in _moves(stats, spread):
        other_rows, other = at(moved)
        row_errors = row_errors + np.abs(other_rows - rows)
        for name in slopes:
            errors[name] = errors[name] + np.abs(np.asarray(other[name]) - slopes[name])
    return rows, row_errors, slopes, errors


def _moves(stats: Any, spread: Any) -> Any:
    """The statistics with one of them at the ends of its interval: all rows up, all down, and in turns."""
    for name, stat in stats.items():
        turns = np.where(np.arange(stat.shape[0]) % 2, 1.0, -1.0)
        for sign in (np.ones_like(turns), -np.ones_like(turns), turns, -turns):
            if stat.ndim == 1:
                yield {**stats, name: stat + sign * spread[name]}
                continue
            for column in range(2):
                pick = np.arange(stat.shape[1]) == column
                yield {**stats, name: stat + np.where(pick, sign[:, None] * spread[name], 0.0)}
