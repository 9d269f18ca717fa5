"""Tolerances: how far the value and the gradients of a right program may be from the exact ones, by error analysis.

Every tolerance of the package comes from here.

`close` is for identities between two results; `bounds` walks through a loss with an error beside every number.
With unit roundoff u of the format that accumulates, g_n = n u / (1 - n u):

    logits      |ds| <= c u factor sum_k |a_ik| |b_jk|,    c counts the dot product and the normalization of both rows
    statistics  log-sum-exp: the softmax mean of |ds| + u |s - max| + u |s|, plus g of the sum; sums likewise
    head        its slopes times the statistics' errors, and what it rounds itself, operation by operation (`intervals`)
    slopes      |dG| from the intervals of the head's slopes and of the exponentials
    ranks       the whole slope of a candidate that rounding may take into the hardest ones, or push out of them
    gradients   |dG| |B| + g_m |G| |B|, then through the normalization, componentwise
    storage     one rounding to the dtype of the input

A bound grows by itself where the problem is ill-conditioned.

What is derived: that an error is at most so many roundings of such a size, and how a stage passes on the errors of the
one before. What is a safety factor: the number of roundings c is counted for any usual order of operations and rounded
up, by 2 to 4 a stage; terms of second order are covered by a factor exp(2 max |ds|). What is assumed: elementary
functions are right to 4 units in the last place. What is not proved: the analysis is float64 arithmetic, rounded
outwards in the heads alone. What is sampled: one thing, in the bounds of textbook programs, how much a row may magnify
what its log-sum-exp loses (`implementation._sensitivity`), which is read off at two points.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nceref.engine.arguments import (
    bind,
    checked_number,
    converted,
    declared,
    one_of,
    real_array,
    refuse_other_libraries,
)
from nceref.engine.arrays import check_finite
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.entry_point import entry_point
from nceref.engine.plan import Comparison, Plan
from nceref.engine.scaling import product
from nceref.spec import Scalar
from nceref.tolerance.backward import block_slopes, by_factor, row_gradients, to_input
from nceref.tolerance.forward import RoundingFormat, finite, logits_error, statistic
from nceref.tolerance.intervals import Interval, statistics

Array = Any
_VACUOUS = 1e100
"""A number in place of an infinite bound, which times 0 would be no number."""


@entry_point
def close(actual: Any, expected: Any, *, scale: float | None = None, ulps: float = 16, dtype: Any = np.float64) -> bool:
    """Whether two results agree within a few units in the last place.

    Parameters
    ----------
    actual, expected : float or array
        Shapes must be equal.
    scale : float, optional
        Magnitude of what was added up on the way; default: that of the expected value, entry by entry.
    ulps : float
        Roundings allowed, of size ``eps * max(|expected|, scale)``.
    dtype : dtype
        The format in which the computation was done.

    Returns
    -------
    bool
        False for other shapes, and for what is infinite or NaN.
    """
    scale = 0.0 if scale is None else checked_number(_SCALE, scale)
    ulps, info = checked_number(_ULPS, ulps), converted("dtype", dtype, _format, dtype)
    a, b = (real_array(name, x).astype(float) for name, x in (("actual", actual), ("expected", expected)))
    if a.shape != b.shape or not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return False
    unit = info.eps * np.maximum(np.abs(b), scale)
    return bool(np.all(np.abs(a - b) <= ulps * unit + info.tiny))


_SCALE, _ULPS = (Scalar(name, "", "", low=0.0, low_closed=True) for name in ("scale", "ulps"))


def _format(dtype: Any) -> Any:
    """The `finfo` of a floating format; None, which would be float64 for NumPy, is refused."""
    return np.finfo(one_of("dtype", dtype, ()) if dtype is None else dtype)


@dataclass(frozen=True)
class Bounds:
    """Bounds on the distance of a correct program from the exact loss.

    Attributes
    ----------
    value : float or array
        Bound on the absolute error of the value; under the reduction "none", one number a row.
    grads : dict
        One array (or float) of bounds for every differentiable input.
    terms : mapping
        What the bound of the value is made of, by stage; they add up to `value`, but for the last digit.
    """

    value: Any
    grads: dict[str, Any]
    terms: Mapping[str, Any] = field(default_factory=dict)

    def explain(self) -> str:
        """The terms, one a line; of several rows, those of the worst."""
        worst = int(np.argmax(self.value))
        parts = {**self.terms, "value": self.value}
        return "\n".join(f"{stage:<12} {np.ravel(size)[worst]:.3e}" for stage, size in parts.items())


@entry_point
def bounds(declaration: Any, /, *arrays: Any, accumulate: Any = None, **named: Any) -> Bounds:
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

    Raises
    ------
    InputError
        For arguments that the loss refuses, and where a bound is larger than any number.
    """
    loss = declared(declaration)
    inputs = bind(loss, arrays, named)
    refuse_other_libraries(inputs, "bounds")
    stored = {name: x.dtype for name, x in inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    wide = np.result_type(np.float32, *stored.values()) if accumulate is None else _accumulated(accumulate)
    info = np.finfo(wide)
    # The walk is in float64 whatever the format is, which enters through `RoundingFormat` alone.
    wider = {name: x.astype(np.float64) if name in stored else x for name, x in inputs.items()}
    with BoundLoss(loss, inputs).naming_arguments():
        result = Analysis(loss.plan(**wider), RoundingFormat(float(info.eps) / 2, float(info.tiny))).run()
        grads = {name: b + _storage(stored.get(name), result.sizes[name]) for name, b in result.grads.items()}
        check_finite(result.value, "the bound of the value")
        for name, b in grads.items():
            check_finite(np.asarray(b), f"the bound of the gradient of `{name}`")
    return Bounds(result.value, {name: float(b) if np.ndim(b) == 0 else b for name, b in grads.items()}, result.terms)


def _accumulated(given: Any) -> Any:
    """The format that computes, float32 or float64, by its name or dtype."""
    name = given if isinstance(given, str) else converted("accumulate", given, np.dtype, given).name
    return np.dtype(one_of("accumulate", name, ("float32", "float64")))


def _storage(dtype: Any, size: Any) -> Any:
    """One rounding of a gradient to the dtype of its input."""
    if dtype is None:
        return 0.0
    info = np.finfo(dtype)
    # The second term is for gradients below the normal numbers, whose spacing is that.
    return np.asarray(size, dtype=np.float64) * float(info.eps) / 2 + float(info.smallest_subnormal)


class Analysis:
    """One walk through a plan in float64, dense, with an error beside every number.

    The stages are called in order: `fold`, `apply_head`, `vjp`, `finish`. Between two of them a caller may widen what
    the last one left (see `implementation_bounds`).

    Parameters
    ----------
    plan : Plan
        Of float64 arrays, small enough for dense n x m arrays.
    fmt : RoundingFormat
        The arithmetic of the program that is judged.
    reduction : {"mean", "sum", "none"}
        With "none", gradients are those of the sum of the rows.
    like : Analysis, optional
        Of the same plan and reduction, in another arithmetic: what is exact in it is not computed again.

    Attributes
    ----------
    stats, errors : dict of array
        After `fold`: every statistic by the name of its term, and the bound on its error.
    rows, row_errors, slopes, slope_errors, weights : array, or dict of array by statistic
        After `apply_head`: rows of the head, d value / d statistic, their errors, and the weight of each row.
    spread : dict of array
        How far each statistic may be off where the head reads it.
    blocks : list of (array, array)
        After `vjp`: d value / d logits of every comparison, and its error.
    value, grads, sizes, terms
        After `finish`: bounds of value and gradients, magnitudes of the gradients, and what the first is made of.
    """

    def __init__(
        self, plan: Plan, fmt: RoundingFormat, reduction: str = "mean", like: "Analysis | None" = None
    ) -> None:
        self.plan, self.fmt, self.reduction, self.like = plan, fmt, reduction, like
        self.stats: dict[str, Array] = {}
        self.errors: dict[str, Array] = {}
        self.grads: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.terms: dict[str, float] = {}
        self.value = 0.0

    def run(self) -> "Analysis":
        """Fill in the bounds of the value and of every gradient."""
        self.fold()
        self.apply_head()
        self.vjp()
        self.finish()
        return self

    def passed_on(self, x: Any, error: Any) -> tuple[Any, Any]:
        """Numbers and the bounds on their errors, as the next stage reads them."""
        return x, error

    def logits_of(self, comparison: Comparison) -> tuple[Array, Array]:
        """Logits and the bound on their error."""
        return self.passed_on(*logits_error(comparison.logits, self.fmt))

    def fold(self) -> None:
        """Compute the logits and the statistics, with the bounds on their errors."""
        self.logits = [self.logits_of(c) for c in self.plan.comparisons]
        for comparison, (s, ds) in zip(self.plan.comparisons, self.logits, strict=True):
            for name, term in comparison.terms.items():
                self.stats[name], self.errors[name] = statistic(term, s, ds, self.fmt)

    def apply_head(self) -> None:
        """Rows and slopes, and how far they move over the intervals of the statistics, one statistic at a time."""
        self.spread = self.spread_of_statistics()
        if self.like is None:
            self.rows, self.slopes = self.head_at(self.stats)
            self.weights = self.row_weights(self.stats, self.rows)
        else:
            self.rows, self.slopes, self.weights = self.like.rows, self.like.slopes, self.like.weights
        self.row_errors, self.slope_errors = self.moved_by(self.spread)

    def spread_of_statistics(self) -> dict[str, Array]:
        """The largest error of each statistic where the head reads it."""
        fmt, constant = self.fmt, self.plan.constant
        return {
            name: fmt.u * (fmt.count(2) * np.abs(finite(x)) + fmt.count(4) * constant) + self.errors[name]
            for name, x in self.stats.items()
        }

    def moved_by(self, spread: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Errors of rows and slopes for errors of the statistics, with the head's own roundings.

        Parameters
        ----------
        spread : mapping
            How far each statistic may be off.

        Returns
        -------
        rows : array
        slopes : dict of array
        """
        with np.errstate(all="ignore"):
            rows, vjp = self.plan.head(statistics(self.stats, spread, self.fmt))
            # Which rows count is in the masses of the positives, which are exact; the weight of each is rounded.
            slopes = vjp(self._in_units(self.weights))
            own = {name: 2 * self.fmt.u * np.abs(np.asarray(slope)) for name, slope in self.slopes.items()}
            return _error(rows), {name: _error(slopes[name]) + own[name] for name in self.slopes}

    def own_rounding(self) -> Array:
        """The errors of rows where all statistics are exact."""
        return self.rows_moved_by({name: np.zeros_like(x) for name, x in self.stats.items()})

    def rows_moved_by(self, spread: Mapping[str, Array]) -> Array:
        """Errors of rows for errors of the statistics: the first part of `moved_by`, without the slopes."""
        with np.errstate(all="ignore"):
            return _error(self.plan.head(statistics(self.stats, spread, self.fmt))[0])

    def head_at(self, stats: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Rows, and slopes of the reduced value, for given statistics."""
        rows, vjp = self.plan.head(dict(stats))
        return rows, vjp(self._in_units(self.row_weights(stats, rows)))

    def weighted(self, x: Array) -> Array:
        """Numbers by row of the head as parts of the value: times the weight, and times what rows are measured in."""
        return self._in_units(x, self.weights)

    def _in_units(self, *x: Array) -> Array:
        unit = self.plan.row_unit
        return product(*x) if unit is None else product(*x, unit)

    def row_weights(self, stats: Any, rows: Array) -> Array:
        """The factor of each row in the sum of the rows."""
        return self.plan.weights(stats, rows, self.reduction)

    def vjp(self) -> None:
        """Slopes of the logits of every comparison, and their errors."""
        for name, slope in self.slopes.items():
            self.slopes[name], self.slope_errors[name] = self.passed_on(slope, self.slope_errors[name])
        self.blocks = []
        for comparison, (s, ds) in zip(self.plan.comparisons, self.logits, strict=True):
            own = {name: term for name, term in comparison.terms.items() if name in self.slopes}
            self.blocks.append(
                block_slopes(own, s, ds, self.stats, self.errors, self.slopes, self.slope_errors, self.fmt)
            )

    def finish(self) -> None:
        """The value and the gradients of the inputs."""
        self.blocks = [self.passed_on(*block) for block in self.blocks]
        self._value()
        for comparison, (g, dg) in zip(self.plan.comparisons, self.blocks, strict=True):
            self._inputs(comparison, g, dg)
        # Slopes by no statistic are those by scalars that the head itself reads.
        for name in set(self.slopes) - set(self.stats):
            self._add(name, self.slopes[name], self.slope_errors[name])

    def _value(self) -> None:
        self.terms = {
            "rows": float(np.sum(self.weighted(self.row_errors))),
            "reduction": float(self.summing(self.rows.size) * np.sum(self.weighted(np.abs(self.rows)))),
            "underflow": 4 * self.fmt.tiny,
        }
        self.value = sum(self.terms.values())

    def summing(self, count: int) -> Any:
        """Relative error of adding up and dividing so many rows."""
        return self.fmt.gamma(self.fmt.ratio * count + 3)

    def _add(self, name: str, size: Any, error: Any) -> None:
        error = error + 2 * self.fmt.u * np.abs(size) + 4 * self.fmt.tiny
        self.grads[name] = self.grads.get(name, 0.0) + error
        self.sizes[name] = self.sizes.get(name, 0.0) + np.abs(size)

    def _inputs(self, comparison: Comparison, g: Array, dg: Array) -> None:
        logits, fmt = comparison.logits, self.fmt
        for rows, exact, size, error in row_gradients(logits, g, dg, fmt):
            for part in rows.parts:
                # An input on both sides comes twice: `_add` adds its bounds up.
                if not part.constant:
                    self._add(part.name, *to_input(part, rows, exact, size, error, fmt))
        if logits.factor.name is not None:
            self._add(logits.factor.name, *by_factor(logits, g, dg, fmt))
        offset = logits.offset
        if offset is not None and offset.name is not None:
            axis = None if isinstance(offset.value, float) else 0
            count = g.size if axis is None else g.shape[0]
            size = np.sum(np.abs(g), axis=axis)
            self._add(
                offset.name, np.sum(g, axis=axis), np.sum(dg, axis=axis) + fmt.gamma(fmt.ratio * count + 3) * size
            )


def _error(x: Any) -> Array:
    """The errors of intervals, 0 of what is none; in place of infinite ones a number that 0 makes 0."""
    if not isinstance(x, Interval):
        return np.zeros_like(x)
    return np.where((error := x.error) < np.inf, error, _VACUOUS)
