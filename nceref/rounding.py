"""First-order rounding-error analysis of a plan: an error beside every number, dense, in float64.

With unit roundoff u of the format that accumulates, g_n = n u / (1 - n u):

    logits      |ds| <= c u factor sum_k |a_ik| |b_jk|,    c counts the dot product and the normalization of both rows
    statistics  log-sum-exp: the softmax mean of |ds| + u |s - max| + u |s|, plus g of the sum; sums likewise
    head        evaluated at both ends of the interval of every statistic, with signs equal and alternating over rows
    slopes      |dG| from the intervals of the head's slopes and of the exponentials
    gradients   |dG| |B| + g_m |G| |B|, then through the normalization, componentwise
    storage     one rounding to the dtype of the input

Second-order terms enter as a factor exp(2 max |ds|). A bound grows by itself where the problem is ill-conditioned.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.plan import Comparison, Plan
from nceref.rows import LogSumExp, PositiveSet, Sum, Term
from nceref.similarity import Dot, PairedDistance, Part, Rows, SquaredDistance

Array = Any
LARGE = 50.0
"""Exponents beyond this make a bound vacuous anyway; they are cut to stay finite."""


@dataclass(frozen=True)
class Format:
    """Unit roundoff of the accumulating format, and its smallest normal number."""

    u: float
    tiny: float

    def gamma(self, n: Any) -> Any:
        """The constant g_n of n roundings."""
        return n * self.u / np.maximum(1 - n * self.u, 0.5)


class Analysis:
    """One walk through a plan in float64, dense, with an error beside every number."""

    def __init__(self, plan: Plan, fmt: Format) -> None:
        self.plan, self.fmt = plan, fmt
        self.grads: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.terms: dict[str, float] = {}
        self.value = 0.0

    def run(self) -> "Analysis":
        u, plan = self.fmt.u, self.plan
        logits = [_logits(c.logits, self.fmt) for c in plan.comparisons]
        stats: dict[str, Array] = {}
        errors: dict[str, Array] = {}
        for comparison, (s, ds) in zip(plan.comparisons, logits, strict=True):
            for name, term in comparison.terms.items():
                stats[name], errors[name] = _statistic(term, s, ds, self.fmt)
        spread = {name: 2 * u * np.abs(_finite(stats[name])) + 4 * u * plan.constant + errors[name] for name in stats}
        rows, row_errors, slopes, slope_errors = _head(plan, stats, spread, u)
        self._value(rows, row_errors, stats, errors)
        for comparison, (s, ds) in zip(plan.comparisons, logits, strict=True):
            own = {name: term for name, term in comparison.terms.items() if name in slopes}
            g, dg = _block(own, s, ds, stats, errors, slopes, slope_errors, self.fmt)
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
        for rows, exact, size, error in _row_gradients(logits, g, dg, fmt):
            for part in rows.parts:
                if not part.constant:
                    self._add(part.name, *_to_input(part, rows, exact, size, error, fmt))
        raw, error = _by_factor(logits, g, dg, fmt)
        for name, slope in logits.factor.slopes.items():
            self._add(name, slope * raw, abs(slope) * error)
        offset = logits.offset
        if offset is not None and offset.name is not None:
            axis = None if isinstance(offset.value, float) else 0
            count = g.size if axis is None else g.shape[0]
            size = np.sum(np.abs(g), axis=axis)
            self._add(offset.name, np.sum(g, axis=axis), np.sum(dg, axis=axis) + fmt.gamma(count + 3) * size)


def _finite(x: Array) -> Array:
    return np.where(np.isfinite(x), x, 0.0)


def _costs(rows: Rows) -> Array:
    """Relative error of an entry of each row, in units of u: 0 as given, D/2 + 6 after normalization."""
    d = rows.values.shape[1]
    cost = np.zeros((rows.values.shape[0], 1))
    for part in rows.parts:
        if part.length is not None:
            cost[part.span] = d / 2 + 6
    return cost


def _logits(logits: Any, fmt: Format) -> tuple[Array, Array]:
    """Dense logits and the bound on their error."""
    n, m = logits.shape
    s = logits.block(slice(0, n), slice(0, m))
    extra = 2 * fmt.u * np.abs(s) + _offset_error(logits, fmt)
    if isinstance(logits, Dot):
        a, b = logits.anchors, logits.candidates
        cost = _costs(a) + _costs(b).T + a.values.shape[1] + 4
        return s, logits.factor.value * fmt.u * cost * (np.abs(a.values) @ np.abs(b.values).T) + extra
    if isinstance(logits, SquaredDistance):
        x = logits.points.values
        squares = np.sum(x * x, axis=1)
        cost = 2 * _costs(logits.points).max() + x.shape[1] + 6
        return s, 2 * logits.factor.value * fmt.u * cost * (squares[:, None] + squares[None, :]) + extra
    if isinstance(logits, PairedDistance):
        x, y = logits.x.values, logits.y.values
        entry = fmt.u * (_costs(logits.x) * np.abs(x) + _costs(logits.y) * np.abs(y) + np.abs(x - y))
        error = np.sum(2 * np.abs(x - y) * entry + entry * entry, axis=1, keepdims=True)
        return s, error + fmt.gamma(x.shape[1] + 2) * s + extra
    return s, 4 * fmt.u * np.abs(logits.factor.value * logits.source.values) + extra


def _offset_error(logits: Any, fmt: Format) -> Any:
    if logits.offset is None:
        return 0.0
    return 4 * fmt.u * np.abs(logits.offset.value)


def _parts(term: Term, s: Array) -> tuple[Array, Array]:
    """Bool mask and weights of a term's pattern, dense."""
    view = s if term.along == "rows" else s.T
    rows, columns = slice(0, view.shape[0]), slice(0, view.shape[1])
    mask = term.pattern.mask(rows, columns, view)
    mask = np.full(view.shape, mask is None) if mask is None or mask is False else mask
    weight = term.pattern.weight(rows, columns)
    return mask, np.where(mask, 1.0 if weight is None else weight, 0.0)


def _oriented(term: Term, x: Array) -> Array:
    return x if term.along == "rows" else x.T


def _statistic(term: Term, s: Array, ds: Array, fmt: Format) -> tuple[Array, Array]:
    """A statistic of every row and the bound on its error."""
    mask, weight = _parts(term, s)
    s, ds = _oriented(term, s), _oriented(term, ds)
    if isinstance(term.statistic, LogSumExp):
        return _log_sum_exp(term.statistic.k, s, ds, mask, weight, fmt)
    if isinstance(term.statistic, Sum):
        return _sum(term.statistic, s, ds, weight, fmt)
    peak, dpeak = _log_sum_exp(1.0, s, ds, mask, mask * 1.0, fmt)
    mass = np.sum(weight, axis=1)
    one = np.where(mass > 0, mass, 1.0)
    if term.statistic.inside:
        level, dlevel = _log_sum_exp(1.0, s, ds, mask, weight, fmt)
        level, dlevel = level - np.log(one), dlevel + 4 * fmt.u * np.abs(np.log(one))
    else:
        total, dtotal = _sum(Sum(), s, ds, weight, fmt)
        level, dlevel = total / one, dtotal / one + 3 * fmt.u * np.abs(total / one)
    # One positive: peak and level are the same bits, so that their difference has no error at all.
    alone = np.sum(mask, axis=1) == 1
    together = np.where(alone, np.maximum(dpeak, dlevel), dlevel)
    return np.stack([peak, level, mass], axis=1), np.stack([dpeak, together, fmt.gamma(s.shape[1]) * mass], axis=1)


def _log_sum_exp(k: float, s: Array, ds: Array, mask: Array, weight: Array, fmt: Format) -> tuple[Array, Array]:
    x = np.where(mask, k * s, -np.inf)
    top = np.max(x, axis=1)
    shift = np.where(np.isfinite(top), top, 0.0)
    mass = weight * np.exp(x - shift[:, None])
    total = np.sum(mass, axis=1)
    some = total > 0
    out = np.where(some, shift + np.log(np.where(some, total, 1.0)), -np.inf)
    share = mass / np.where(some, total, 1.0)[:, None]
    entry = np.where(mask, k * ds + fmt.u * (np.abs(k * s) + np.abs(k * s - shift[:, None])), 0.0)
    growth = np.exp(np.minimum(2 * np.max(entry, axis=1), LARGE))
    error = growth[:, None] * share * entry
    return out, np.sum(error, axis=1) + fmt.gamma(s.shape[1] + 8) + 2 * fmt.u * np.abs(_finite(out))


def _sum(statistic: Sum, s: Array, ds: Array, weight: Array, fmt: Format) -> tuple[Array, Array]:
    f, slope = statistic.f(s), np.abs(statistic.slope(s))
    entry = slope * ds * np.exp(np.minimum(ds, LARGE)) + 4 * fmt.u * np.abs(f)
    size = weight * np.abs(f)
    count = np.sum(weight > 0, axis=1)
    return np.sum(weight * f, axis=1), np.sum(weight * entry, axis=1) + fmt.gamma(count + 1) * np.sum(size, axis=1)


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


def _block(
    terms: Any, s: Array, ds: Array, stats: Any, errors: Any, slopes: Any, slope_errors: Any, fmt: Format
) -> Any:
    """D value / d logits, dense, and the bound on its error."""
    g, dg, size = np.zeros_like(s), np.zeros_like(s), np.zeros_like(s)
    for name, term in terms.items():
        mask, weight = _parts(term, s)
        sv, dv = _oriented(term, s), _oriented(term, ds)
        out, dout, slope, dslope = stats[name], errors[name], slopes[name], slope_errors[name]
        kind = _pull_error if not isinstance(term.statistic, PositiveSet) else _positive_error
        part, dpart, spart = kind(term.statistic, sv, dv, mask, weight, out, dout, slope, dslope, fmt)
        g, dg, size = g + _oriented(term, part), dg + _oriented(term, dpart), size + _oriented(term, spart)
    return g, dg + 2 * fmt.u * size + fmt.tiny


def _share(k: float, s: Array, ds: Array, out: Array, dout: Array, mask: Array, weight: Array, fmt: Format) -> Any:
    """W exp(k s - out) and its relative error."""
    out = _finite(out)[:, None]
    relative = k * ds + dout[:, None] + fmt.u * (np.abs(k * s) + np.abs(out) + np.abs(k * s - out) + 6)
    return weight * np.exp(np.where(mask, k * s - out, -np.inf)), np.expm1(np.minimum(relative, LARGE))


def _pull_error(
    stat: Any, s: Any, ds: Any, mask: Any, weight: Any, out: Any, dout: Any, slope: Any, dslope: Any, fmt: Any
) -> Any:
    if isinstance(stat, LogSumExp):
        pulled, relative = _share(stat.k, s, ds, out, dout, mask, weight, fmt)
        pulled = stat.k * pulled
    else:
        pulled = weight * stat.slope(s)
        relative = 4 * fmt.u if np.all(pulled == weight) else np.expm1(np.minimum(ds + fmt.u * (np.abs(s) + 8), LARGE))
    part = slope[:, None] * pulled
    return part, np.abs(part) * (relative + 2 * fmt.u) + dslope[:, None] * np.abs(pulled), np.abs(part)


def _positive_error(
    stat: Any, s: Any, ds: Any, mask: Any, weight: Any, out: Any, dout: Any, slope: Any, dslope: Any, fmt: Any
) -> Any:
    share, relative = _share(1.0, s, ds, out[:, 0], dout[:, 0], mask, mask * 1.0, fmt)
    mass = np.where(out[:, 2:] > 0, out[:, 2:], 1.0)
    if stat.inside:
        target, far = _share(1.0, s, ds, out[:, 1], dout[:, 1], mask, weight, fmt)
        target = target / mass
    else:
        target, far = weight / mass, fmt.gamma(s.shape[1] + 3)
    alone = (np.sum(mask, axis=1) == 1)[:, None]
    gap = np.where(alone, 0.0, share * relative + target * far + 2 * fmt.u * (share + target))
    part = slope[:, :1] * share + slope[:, 1:] * (share - target)
    error = np.abs(slope[:, :1]) * share * (relative + 2 * fmt.u) + dslope[:, :1] * share
    return part, error + np.abs(slope[:, 1:]) * gap + dslope[:, 1:] * np.abs(share - target), np.abs(part)


def _row_gradients(logits: Any, g: Array, dg: Array, fmt: Format) -> Iterator[tuple[Rows, Array, Array, Array]]:
    """For every matrix of rows: its gradient, the sum of magnitudes in it, and the bound on its error."""
    f, size = logits.factor.value, np.abs(g)
    if isinstance(logits, Dot):
        for rows, other, way, error, way_size in (
            (logits.anchors, logits.candidates, g, dg, size),
            (logits.candidates, logits.anchors, g.T, dg.T, size.T),
        ):
            b = np.abs(other.values)
            total = f * way_size @ b
            cost = fmt.gamma(way.shape[1] + 8 + float(np.max(_costs(other))))
            yield rows, f * way @ other.values, total, f * error @ b + cost * total
    elif isinstance(logits, SquaredDistance):
        x = logits.points.values
        both, both_error, both_size = g + g.T, dg + dg.T, size + size.T
        exact = -2 * f * (np.sum(both, axis=1)[:, None] * x - both @ x)
        total = 2 * f * (np.sum(both_size, axis=1)[:, None] * np.abs(x) + both_size @ np.abs(x))
        error = 2 * f * (np.sum(both_error, axis=1)[:, None] * np.abs(x) + both_error @ np.abs(x))
        cost = fmt.gamma(2 * g.shape[1] + 10 + float(np.max(_costs(logits.points))))
        yield logits.points, exact, total, error + cost * total
    elif isinstance(logits, PairedDistance):
        x, y = logits.x.values, logits.y.values
        gap = fmt.u * (_costs(logits.x) * np.abs(x) + _costs(logits.y) * np.abs(y) + np.abs(x - y))
        error = 2 * (dg * np.abs(x - y) + size * gap) + 4 * fmt.u * np.abs(2 * g * (x - y))
        yield logits.x, 2 * g * (x - y), np.abs(2 * g * (x - y)), error
        yield logits.y, -2 * g * (x - y), np.abs(2 * g * (x - y)), error
    else:
        yield logits.source, f * g, np.abs(f * g), np.abs(f) * dg + 4 * fmt.u * np.abs(f * g)


def _to_input(part: Part, rows: Rows, exact: Array, size: Array, error: Array, fmt: Format) -> tuple[Array, Array]:
    """The gradient of one input and its bound, from those of its rows."""
    exact, size, error = (x[part.span, :] for x in (exact, size, error))
    if part.length is not None:
        z = np.abs(rows.values[part.span, :])
        inner = np.sum(exact * rows.values[part.span, :], axis=1, keepdims=True)
        exact = exact - inner * rows.values[part.span, :]
        along = z * np.sum(z * size, axis=1, keepdims=True)
        error = error + z * np.sum(z * error, axis=1, keepdims=True)
        error = (error + fmt.u * (3.5 * z.shape[1] + 40) * (size + along)) / part.length
        exact = exact / part.length
    x = part.source
    return tuple(_shaped(value, x) for value in (exact, error))  # type: ignore[return-value]


def _shaped(rows: Array, x: Array) -> Array:
    """Rows in the shape of their input; views that are no anchors add nothing."""
    if x.ndim == 3:
        n, views, width = x.shape
        full = np.zeros((views, n, width))
        full[: rows.shape[0] // n] = rows.reshape(-1, n, width)
        return full.transpose(1, 0, 2)
    return rows[:, 0] if x.ndim == 1 else rows


def _by_factor(logits: Any, g: Array, dg: Array, fmt: Format) -> tuple[float, float]:
    """D value / d factor = <similarities, G>, and the bound on its error."""
    if not logits.factor.slopes:
        return 0.0, 0.0
    if isinstance(logits, Dot):
        a, b = logits.anchors.values, logits.candidates.values
        raw, size = a @ b.T, np.abs(a) @ np.abs(b).T
        cost = fmt.gamma(
            g.shape[1] + a.size + 20 + float(np.max(_costs(logits.anchors)) + np.max(_costs(logits.candidates)))
        )
    else:
        raw = logits.source.values
        size, cost = np.abs(raw), fmt.gamma(g.size + 6)
    return float(np.sum(raw * g)), float(np.sum(size * (dg + cost * np.abs(g))))
