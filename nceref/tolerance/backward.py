"""Error bounds of the backward pass: slopes of the logits, then gradients of the inputs.

Names are those of `forward`; `g` are slopes d value / d logits (n, m), `dg` the bound on their error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.engine.distances import PairedDistance, SquaredDistance
from nceref.engine.embeddings import Part, Rows
from nceref.engine.scaling import scaled_product, shifted
from nceref.engine.similarity import Dot
from nceref.engine.statistics import LogSumExp, PositiveSet, Sum
from nceref.tolerance.forward import (
    LARGE,
    RoundingFormat,
    covered,
    distance_error,
    entry_costs,
    far_from,
    finite,
    linear,
    log_share,
    most_change,
    oriented,
    pattern,
    products,
    unsure,
)

Array = Any


def block_slopes(
    terms: Any, s: Array, ds: Array, stats: Any, errors: Any, slopes: Any, slope_errors: Any, fmt: RoundingFormat
) -> Any:
    """D value / d logits, dense, and the bound on its error.

    `terms` are those of one comparison that the value depends on. `stats` and `errors` have every statistic and the
    bound on its error by the name of its term, `slopes` and `slope_errors` the same of d value / d statistic.
    """
    g, dg, size = np.zeros_like(s), np.zeros_like(s), np.zeros_like(s)
    for name, term in terms.items():
        mask, weight = pattern(term, s)
        sv, dv = oriented(term, s), oriented(term, ds)
        out, dout, slope, dslope = stats[name], errors[name], slopes[name], slope_errors[name]
        kind = _vjp_error if not isinstance(term.statistic, PositiveSet) else _positive_error
        near = unsure(term, sv, dv, fmt) if term.pattern.whole_rows else None
        seen, weight = (mask, weight) if near is None else (mask | near, np.where(near, 1.0, weight))
        part, dpart, spart = kind(term.statistic, sv, dv, seen, weight, out, dout, slope, dslope, fmt)
        if near is not None:
            # What may change places has its whole slope as its error, in the pattern or outside.
            part, dpart = np.where(mask, part, 0.0), dpart + near * np.abs(part)
        g, dg, size = g + oriented(term, part), dg + oriented(term, dpart), size + oriented(term, spart)
    return g, dg + 2 * fmt.u * size + fmt.tiny


def _share(
    k: float, s: Array, ds: Array, out: Array, dout: Array, mask: Array, weight: Array, fmt: RoundingFormat
) -> Any:
    """W exp(k s - out) and the bound on its error.

    A share p whose exponent moves by up to r is between p e^-r and p e^r. It is at most 1, and a program without
    cancellation keeps it there, however far its logits are rounded.
    """
    exponent, level = np.where(mask, k * s, -np.inf), finite(out)[:, None]
    relative = k * ds + dout[:, None] + fmt.u * (np.abs(k * s) + np.abs(level) + np.abs(k * s - level) + 6)
    relative = np.minimum(relative, np.finfo(float).max)
    # In the exponent, where nothing underflows: a share of 0 may be one that a rounded logit has hidden.
    largest = np.exp(np.minimum(log_share(exponent, out, weight) + relative, LARGE if fmt.textbook else 0.0))
    return weight * np.exp(exponent - level), -largest * np.expm1(-relative)


def _vjp_error(
    stat: Any, s: Any, ds: Any, mask: Any, weight: Any, out: Any, dout: Any, slope: Any, dslope: Any, fmt: Any
) -> Any:
    if isinstance(stat, LogSumExp):
        derivative, far = (
            stat.by_logit * x for x in _share(stat.k, s, ds, out, dout, mask, weight / (stat.count or 1), fmt)
        )
    else:
        derivative = weight * stat.slope(s)
        # The slope of a sum of the logits themselves is 1, without an error of its own.
        if np.all(derivative == weight):
            far = 4 * fmt.u * np.abs(derivative)
        else:
            far = np.abs(derivative) * np.expm1(np.minimum(ds + fmt.u * (np.abs(s) + 8), LARGE))
            # A slope of 0 may be one that a rounded logit has hidden.
            far = np.where(2 * ds >= LARGE, weight * most_change(stat.slope, s, ds), far)
    part = slope[:, None] * derivative
    # Where a rounded logit has hidden the largest share, the slope is wrong for all of it.
    most = np.maximum(np.abs(derivative), far)
    error = np.abs(slope)[:, None] * far + 2 * fmt.u * np.abs(part) + dslope[:, None] * most
    if not isinstance(stat, LogSumExp) and not linear(stat, s):
        # An exponential below the range is lost; of a textbook program, 1 - sigmoid where a sigmoid is all there is.
        lost = fmt.tiny + (4 * fmt.u if fmt.textbook else 0.0)
        error = error + lost * np.abs(slope)[:, None] * weight
    return part, error, np.abs(part)


def _positive_error(
    stat: Any, s: Any, ds: Any, mask: Any, weight: Any, out: Any, dout: Any, slope: Any, dslope: Any, fmt: Any
) -> Any:
    share, share_error = _share(1.0, s, ds, out[:, 0], dout[:, 0], mask, mask * 1.0, fmt)
    mass = np.where(out[:, 2:] > 0, out[:, 2:], 1.0)
    if stat.inside:
        target, target_error = _share(1.0, s, ds, out[:, 1], dout[:, 1], mask, weight / mass, fmt)
    else:
        target = weight / mass
        target_error = target * fmt.gamma(fmt.ratio * s.shape[1] + 3)
    # One positive: share and target are both 1, and a program may subtract neither.
    alone = (np.sum(mask, axis=1) == 1)[:, None] & (not fmt.textbook)
    gap = np.where(alone, 0.0, share_error + target_error + 2 * fmt.u * (share + target))
    part = slope[:, :1] * share + slope[:, 1:] * (share - target)
    # As in `_vjp_error`.
    most, most_apart = np.maximum(share, share_error), np.maximum(np.abs(share - target), gap)
    error = np.abs(slope[:, :1]) * (share_error + 2 * fmt.u * share) + dslope[:, :1] * most
    return part, error + np.abs(slope[:, 1:]) * gap + dslope[:, 1:] * most_apart, np.abs(part)


def shifted_slopes(
    comparison: Any, block: Any, relative: Array, load: Array, total: Array, fmt: RoundingFormat
) -> Array:
    """The bound on D value / d logits of a program that subtracts 1 from a probability, after a shift by the maximum.

    `block` has the logits, the bound on their error, and the bound on their slopes without this. By anchor, `relative`
    is the relative error of a probability, `load` its factor, and `total` the bound on the sum of the slopes, which is
    0: it arrives at a maximum that is not detached.
    """
    s, ds, dg = block
    dg = dg + 4 * fmt.tiny * np.maximum(load, 1.0)[:, None]
    own = np.where(covered(comparison, s), s, -np.inf)
    positives = [oriented(t, pattern(t, s)[0]) for t in comparison.terms.values() if _subtracts(t.statistic, s)]
    # One direction after the other: the largest logit of a column need not be that of its row.
    for first in {term.along: term for term in comparison.terms.values()}.values():
        seen = _Direction(*(oriented(first, x) for x in (s, ds, own)))
        added = seen.positives([oriented(first, mask) for mask in positives], relative, load, fmt)
        dg = dg + oriented(first, added + seen.at_the_maximum(total, fmt))
    return dg


def _subtracts(stat: Any, s: Array) -> bool:
    """Whether the slope of a statistic is what is subtracted from a probability."""
    return isinstance(stat, PositiveSet) or (isinstance(stat, Sum) and linear(stat, s))


@dataclass(frozen=True, eq=False)
class _Direction:
    """Logits whose rows are reduced, those of a column first where columns are: `own` is -inf where nothing looks."""

    s: Array
    ds: Array
    own: Array

    @property
    def top(self) -> Array:
        return np.max(self.own, axis=1, keepdims=True)

    def positives(self, masks: list[Array], relative: Array, load: Array, fmt: RoundingFormat) -> Array:
        """The room of a probability from which a share of 1 is subtracted."""
        probability = np.exp(self.own - np.where(np.isfinite(self.top), self.top, 0.0))
        out = np.zeros_like(self.s)
        for mask in masks:
            target = 4 * fmt.u / np.maximum(np.sum(mask, axis=1, keepdims=True), 1)
            out = out + mask * load[:, None] * (probability * relative[:, None] + target)
        return out

    def at_the_maximum(self, total: Array, fmt: RoundingFormat) -> Array:
        """The sum of the slopes of a row at its largest logit, 0 elsewhere."""
        peak = np.max(self.s, axis=1, keepdims=True)
        largest: Array = self.s >= peak - 16 * fmt.u * np.abs(peak) - 2 * self.ds
        return largest * total[:, None]


def row_gradients(logits: Any, g: Array, dg: Array, fmt: RoundingFormat) -> Iterator[tuple[Rows, Array, Array, Array]]:
    """The gradient of every matrix of rows, the sum of magnitudes in it, and the bound on its error.

    The sum of magnitudes is there because rounding errors are relative to it.
    """
    size = np.abs(g)
    if isinstance(logits, Dot):
        for rows, other, way, error, way_size in (
            (logits.anchors, logits.candidates, g, dg, size),
            (logits.candidates, logits.anchors, g.T, dg.T, size.T),
        ):
            values, exponent = other.balanced
            b, f = np.abs(values), logits.factor.times_power(exponent)
            total = f * way_size @ b
            cost = fmt.gamma(fmt.ratio * way.shape[1] + 8 + float(np.max(entry_costs(other, fmt))))
            yield rows, f * way @ values, total, f * error @ b + cost * total
    elif isinstance(logits, SquaredDistance):
        x, f = logits.centered, logits.factor.times_power(logits.points.balanced[1])
        far = far_from(logits, fmt)
        # A pair counts for both of its points.
        both, both_error, both_size = g + g.T, dg + dg.T, size + size.T
        exact = -2 * f * (np.sum(both, axis=1)[:, None] * x - both @ x)
        total = 2 * f * (np.sum(both_size, axis=1)[:, None] * far + both_size @ far)
        error = 2 * f * (np.sum(both_error, axis=1)[:, None] * np.abs(x) + both_error @ np.abs(x))
        cost = fmt.gamma(fmt.ratio * 2 * g.shape[1] + 12 + float(np.max(entry_costs(logits.points, fmt))))
        yield logits.points, exact, total, error + cost * total
    elif isinstance(logits, PairedDistance):
        exact, error = _paired_gradients(logits, g, dg, fmt)
        yield logits.x, exact, np.abs(exact), error
        yield logits.y, -exact, np.abs(exact), error
    else:
        f = logits.factor.times_power(0)
        yield logits.source, f * g, np.abs(f * g), f * dg + 4 * fmt.u * np.abs(f * g)


def _paired_gradients(logits: PairedDistance, g: Array, dg: Array, fmt: RoundingFormat) -> tuple[Array, Array]:
    """The gradient by x of distances of pairs, and the bound on its error; by y it is the same with the other sign."""
    x, y = logits.x.values, logits.y.values
    distance, directions = logits.block(slice(0, len(x)), slice(0, 1)), logits.directions
    apart = np.where(distance > 0, distance, 1.0)
    costs = entry_costs(logits.x, fmt), entry_costs(logits.y, fmt)
    entry = fmt.u * (costs[0] * np.abs(x) + costs[1] * np.abs(y) + np.abs(x - y))
    entry = entry + 4 * fmt.u * (np.abs(x) + np.abs(y)) * fmt.textbook
    # Two unit vectors are at most 2 apart, however wrong the difference is.
    turn = np.minimum(2 * np.linalg.norm(entry, axis=1, keepdims=True) / apart, 2.0)
    error = dg * np.abs(directions) + np.abs(g) * (turn + fmt.gamma(fmt.ratio * x.shape[1] + 10))
    if fmt.textbook:
        # A distance that comes out of squares divides the difference: near pairs turn and stretch with it.
        error = error + (dg + np.abs(g)) * np.minimum(distance_error(logits, distance, fmt) / apart, 2.0)
    return g * directions, error


def to_input(
    part: Part, rows: Rows, exact: Array, size: Array, error: Array, fmt: RoundingFormat
) -> tuple[Array, Array]:
    """The gradient of one input and its bound, from those of its rows: back through the normalization, if any.

    `part` has the input and its rows; `exact`, `size` and `error` are those of `row_gradients`.
    """
    exact, size, error = (x[part.span, :] for x in (exact, size, error))
    if part.length is not None:
        z = np.abs(rows.values[part.span, :])
        # (g - (g.z) z) / |w|, with magnitudes in place of numbers wherever rounding errors are taken of it.
        inner = np.sum(exact * rows.values[part.span, :], axis=1, keepdims=True)
        exact = exact - inner * rows.values[part.span, :]
        along = z * np.sum(z * size, axis=1, keepdims=True)
        # Below the normal numbers, what the length divides is rounded to their spacing; a textbook program flushes it.
        error = error + (8 if fmt.textbook else 8 * fmt.u) * fmt.tiny
        error = error + z * np.sum(z * error, axis=1, keepdims=True)
        cost = 3.5 * fmt.ratio * z.shape[1] + (12 if fmt.textbook else 40)
        error = part.per_length(error + fmt.u * cost * (size + along))
        exact = part.per_length(exact)
    return _shaped(exact, part.source), _shaped(error, part.source)


def _shaped(rows: Array, x: Array) -> Array:
    """Rows in the shape of their input; views that are no anchors add nothing."""
    if x.ndim == 3:
        n, views, width = x.shape
        full = np.zeros((views, n, width))
        full[: rows.shape[0] // n] = rows.reshape(-1, n, width)
        return full.transpose(1, 0, 2)
    return rows[:, 0] if x.ndim == 1 else rows


def by_factor(logits: Any, g: Array, dg: Array, fmt: RoundingFormat) -> tuple[float, float]:
    """D value / d scalar of the factor = d factor / d scalar <similarities, G>, and the bound on its error.

    The factor of the logits has an input in it.
    """
    if isinstance(logits, Dot):
        (a, i), (b, j) = logits.anchors.balanced, logits.candidates.balanced
        (raw, size), exponent = products(logits), i + j
        rows = float(np.max(entry_costs(logits.anchors, fmt)) + np.max(entry_costs(logits.candidates, fmt)))
        cost = fmt.gamma(fmt.ratio * (g.shape[1] + a.size) + 20 + rows)
        reach = 2 * a.shape[1] * max(1.0, float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    else:
        raw, exponent = logits.source.balanced
        size, cost, reach = np.abs(raw), fmt.gamma(fmt.ratio * g.size + 6), 1.0
    # Of tiny slopes, products with tiny rows would be lost before the factor.
    (slopes, own), (errors, of_errors) = (scaled_product(x) for x in (g, dg + cost * np.abs(g)))
    inner, error = float(np.sum(raw * slopes)), float(np.sum(size * errors))
    # A program loses what is below its range, at most a product as a whole. Sums in a wider format do not.
    least = shifted(reach * 2 * fmt.u * fmt.tiny, -own) if fmt.ratio == 1 else 0.0
    lost = float(np.sum(np.minimum(size * np.abs(slopes), least)))
    exact, *parts = (
        logits.factor.gradient(x, exponent + power) for x, power in ((inner, own), (error, of_errors), (lost, own))
    )
    return exact, sum(abs(part) for part in parts)
