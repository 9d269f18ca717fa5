"""The dense view of a small batch: what people plot and argue about."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nceref.engine.arrays import check_finite
from nceref.engine.namespaces import array_namespace, device
from nceref.engine.passes import evaluate, tile_slopes
from nceref.engine.plan import Comparison, Plan
from nceref.engine.statistics import FittedTerm, Term
from nceref.engine.tiles import Tile, View
from nceref.errors import InputError

Array = Any


@dataclass(frozen=True, eq=False)
class Anatomy:
    """Quantities of every pair of a batch that is small enough to look at: all but `rows` are (n, m).

    Attributes
    ----------
    rows : array
        Row values of the loss.
    logits : array
        After temperature, scale and offsets. PaCo: the contrast candidates, then the centers; NCE: one column, data
        rows first.
    taking_part : array of bool
        Pairs that enter any statistic.
    probabilities : array
        Softmax of the logits over the pairs of the row that take part.
    slopes : array
        D value / d logits under the reduction "mean".
    relative_penalties : array
        Each repelled pair's share of the repulsion of its row; 0 in a row without any.
    """

    rows: Array
    logits: Array
    taking_part: Array
    probabilities: Array
    slopes: Array
    relative_penalties: Array


LARGEST_ANATOMY = 4_000_000


def anatomy(plan: Plan) -> Anatomy:
    """The dense view of a plan.

    Raises
    ------
    InputError
        For more than four million pairs in a comparison: the view holds several arrays of them.
    """
    for comparison in plan.comparisons[: plan.shown]:
        if math.prod(comparison.logits.shape) > LARGEST_ANATOMY:
            msg = f"the anatomy would hold {comparison.logits.shape} pairs; pass a batch of at most 2000 rows"
            raise InputError(msg)
    evaluation = evaluate(plan, "mean")
    slopes = evaluation.slopes()
    views = [_dense(comparison, slopes) for comparison in plan.comparisons[: plan.shown]]
    xp = array_namespace(evaluation.rows)
    s, g, part = (xp.concat(list(arrays), axis=plan.stack) for arrays in zip(*views, strict=True))
    for x, what in ((evaluation.rows, "a row of the loss"), (s, "a logit"), (g, "the slope of a logit")):
        check_finite(x, what)
    exponent = xp.where(part, s, -xp.inf)
    top = xp.max(exponent, axis=1, keepdims=True)
    mass = xp.exp(exponent - xp.where(top == -xp.inf, 0.0, top))
    return Anatomy(evaluation.rows, s, part, _shares(mass), g, _shares(xp.where(g > 0, g, 0.0)))


def _shares(x: Array) -> Array:
    xp = array_namespace(x)
    total = xp.sum(x, axis=1, keepdims=True)
    return x / xp.where(total > 0, total, 1.0)


def roles(plan: Plan, word: str) -> list[Array]:
    """The pairs in a role, for each comparison that belongs into a picture.

    Pairs count that a statistic with `word` in its name looks at. Each array is (n, m).
    """
    views = []
    for comparison in plan.comparisons[: plan.shown]:
        s = comparison.logits.block(*(slice(0, size) for size in comparison.logits.shape))
        views.append(_covered([term for name, term in comparison.terms.items() if word in name], s))
    return views


def _covered(terms: Sequence[Term | FittedTerm], s: Array) -> Array:
    xp = array_namespace(s)
    rows, columns = slice(0, s.shape[0]), slice(0, s.shape[1])
    part = xp.zeros(s.shape, dtype=xp.bool, device=device(s))
    for term in terms:
        view = View(Tile(s, rows, columns), term.along == "columns")
        part = part | (term.pattern.inside(view) > 0)
    return part


def _dense(comparison: Comparison, slopes: dict[str, Any]) -> tuple[Array, Array, Array]:
    """The logits, d value / d logits, and the mask of the pairs that take part."""
    rows, columns = (slice(0, size) for size in comparison.logits.shape)
    s = comparison.logits.block(rows, columns)
    # No logits are within a bound of -inf: the statistics with maxima, which hold for any.
    terms, _ = comparison.fitted(-math.inf)
    active = {name: term for name, term in terms.items() if name in slopes}
    # The one tile has all pairs in both directions, also where the passes would mirror.
    tile = Tile(s, rows, columns)
    prepared = {name: term.statistic.prepare(slopes[name], _folded(term, tile)) for name, term in active.items()}
    g = tile_slopes(tile, active, prepared, mirrored=False)
    return s, array_namespace(s).zeros_like(s) if g is None else g, _covered(list(active.values()), s)


def _folded(term: FittedTerm, tile: Tile) -> Array:
    """The statistic of the tile itself: in that of the passes, logits may be rounded another way."""
    view, statistic = View(tile, term.along == "columns"), term.statistic
    zeros = array_namespace(tile.s).zeros(view.s.shape[0], dtype=tile.s.dtype, device=device(tile.s))
    return statistic.finish(statistic.fold(statistic.start(zeros), view, term.pattern))
