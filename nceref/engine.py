"""The only backward driver of the package: fold row statistics over blocks, then pull the gradient back over blocks.

    fold      s = logits.block(rows, columns)         for every block: each statistic takes it in
    head      statistics -> row values, by hand with its derivative
    pull      s again, g = sum over statistics of slope * d statistic / d s, and the logits take g in

No n x m array ever exists: memory beyond inputs and gradients is O(n + m + block^2). The blocks of the second pass
are recomputed; that is the price of not storing them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device, is_numpy_array

from nceref.embeddings import Gradients, merge
from nceref.errors import InputError
from nceref.namespaces import array_namespace
from nceref.plan import Comparison, Plan
from nceref.rows import Term
from nceref.threads import block_size, share

Array = Any


def _spans(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def _steps(comparison: Comparison) -> tuple[int, int]:
    """Height and width of a block; whole rows come in strips of about the same area, but of 16 rows at least."""
    block, m = block_size(), comparison.logits.shape[1]
    return (max(16, block * block // m), m) if comparison.whole_rows else (block, block)


def _strips(comparison: Comparison) -> list[slice]:
    return _spans(comparison.logits.shape[0], _steps(comparison)[0])


def _blocks(comparison: Comparison, terms: dict[str, Term], strips: Sequence[slice]) -> Iterator[tuple[slice, slice]]:
    """The blocks of some strips of rows that at least one of the terms touches; of two mirrored ones, the upper."""
    columns_of = _spans(comparison.logits.shape[1], _steps(comparison)[1])
    for rows in strips:
        for columns in columns_of:
            if comparison.symmetric and columns.start < rows.start:
                continue
            views = ((term, view) for term in terms.values() for view in flips(comparison, term, rows, columns))
            if any(term.pattern.touches(*((columns, rows) if flip else (rows, columns))) for term, flip in views):
                yield rows, columns


def flips(comparison: Comparison, term: Term, rows: slice, columns: slice) -> tuple[bool, ...]:
    """How a term looks at a block: as it is, transposed, or, for mirrored blocks of symmetric logits, both."""
    if comparison.symmetric and rows.start != columns.start:
        return False, True
    return (term.along == "columns",)


def _shared(comparison: Comparison, work: Any) -> list[Any]:
    """Results of `work` on shares of the strips of rows, one a thread."""
    logits = comparison.logits
    return share(work, _strips(comparison), math.prod(logits.shape), is_numpy_array(logits.like))


def oriented(flip: bool, s: Array, rows: slice, columns: slice) -> tuple[Array, slice, slice]:
    """The block as a term sees it: its own rows first."""
    return (array_namespace(s).matrix_transpose(s), columns, rows) if flip else (s, rows, columns)


def _starts(comparison: Comparison, term: Term) -> dict[int, Any]:
    """An empty state of the term's statistic for every span of rows (or of columns)."""
    axis = ("rows", "columns").index(term.along)
    like = comparison.logits.like
    zeros = array_namespace(like).zeros(comparison.logits.shape[axis], dtype=like.dtype, device=device(like))
    return {span.start: term.statistic.start(zeros[span]) for span in _spans(zeros.shape[0], _steps(comparison)[axis])}


def _fold(comparison: Comparison) -> dict[str, Array]:
    """The statistics of one comparison."""

    def work(strips: Sequence[slice]) -> dict[str, dict[int, Any]]:
        states = {name: _starts(comparison, term) for name, term in comparison.terms.items()}
        for rows, columns in _blocks(comparison, dict(comparison.terms), strips):
            block = comparison.logits.block(rows, columns)
            for name, term in comparison.terms.items():
                for flip in flips(comparison, term, rows, columns):
                    _fold_block(term, states[name], *oriented(flip, block, rows, columns))
        return states

    shares = _shared(comparison, work)
    return {name: _joined(term, [states[name] for states in shares]) for name, term in comparison.terms.items()}


def _fold_block(term: Term, states: dict[int, Any], s: Array, rows: slice, columns: slice) -> None:
    mask = term.pattern.mask(rows, columns, s)
    if mask is not False:
        weight = term.pattern.weight(rows, columns)
        states[rows.start] = term.statistic.fold(states[rows.start], s, mask, weight)


def _joined(term: Term, shares: list[dict[int, Any]]) -> Array:
    """The statistic of all rows, from the states of every thread."""
    out = []
    for start, state in shares[0].items():
        for other in shares[1:]:
            state = term.statistic.merge(state, other[start])
        out.append(term.statistic.finish(state))
    return out[0] if len(out) == 1 else array_namespace(*out).concat(out, axis=0)


def _pull(comparison: Comparison, stats: dict[str, Array], slopes: dict[str, Array]) -> Gradients:
    """Gradients of one comparison, given d value / d statistic."""
    active = {name: term for name, term in comparison.terms.items() if name in slopes}
    total: Any = comparison.logits.gradient()

    def work(strips: Sequence[slice]) -> Any:
        gradient = total.fork()
        for rows, columns in _blocks(comparison, active, strips):
            block = comparison.logits.block(rows, columns)
            g = block_slope(comparison, active, block, rows, columns, stats, slopes)
            if g is not None:
                gradient.add(rows, columns, g)
        return gradient

    for gradient in _shared(comparison, work):
        total.join(gradient)
    grads: Gradients = total.finish()
    return grads


def block_slope(
    comparison: Comparison, terms: dict[str, Term], block: Array, rows: slice, columns: slice, stats: Any, slopes: Any
) -> Array | None:
    """D value / d logits on one block, with that of its mirror transposed; None where no statistic reaches it."""
    total = None
    for name, term in terms.items():
        for flip in flips(comparison, term, rows, columns):
            s, r, c = oriented(flip, block, rows, columns)
            mask = term.pattern.mask(r, c, s)
            if mask is False:
                continue
            pulled = term.statistic.pull(slopes[name][r, ...], stats[name][r, ...], s, mask, term.pattern.weight(r, c))
            g, _, _ = oriented(flip, pulled, r, c)
            total = g if total is None else total + g
    return total


def statistics(plan: Plan) -> dict[str, Array]:
    """All row statistics of a plan, by name."""
    return {name: stat for comparison in plan.comparisons for name, stat in _fold(comparison).items()}


def _weights(plan: Plan, stats: dict[str, Array], rows: Array, reduction: str) -> Array:
    """What each row is multiplied by before the rows are added up."""
    xp = array_namespace(rows)
    w = xp.ones_like(rows) if plan.anchor_weights is None else xp.astype(plan.anchor_weights, rows.dtype)
    if plan.counted is not None:
        w = xp.where(plan.counted(stats), w, 0.0)
    if reduction != "mean":
        return w
    total = float(xp.sum(w)) if plan.divisor is None else plan.divisor
    if not 0 < total < math.inf:
        lonely = plan.counted is not None and not bool(xp.any(plan.counted(stats)))
        reason = "no anchor has a positive" if lonely else f"the weights of the anchors add up to {total}"
        msg = f"no mean can be taken: {reason}"
        raise InputError(msg)
    return w / total


def check_finite(x: Any, what: str) -> None:
    """Refuse a result that left the range of its dtype."""
    if isinstance(x, float):
        finite, dtype = math.isfinite(x), "float64"
    else:
        xp = array_namespace(x)
        finite, dtype = bool(xp.all(xp.isfinite(x))), str(x.dtype)
    if not finite:
        msg = (
            f"{what} leaves the range of {dtype}: raise the temperature, shrink or normalize the rows, or pass float64"
        )
        raise InputError(msg)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One forward pass: row values, the weights of the rows under the reduction, and what the pullback needs."""

    plan: Plan
    stats: dict[str, Array]
    rows: Array
    weights: Array
    head_pull: Any

    def value(self, reduction: str) -> Any:
        """The reduced value, a Python float for NumPy; the weighted rows for "none"."""
        weighted = self.weights * self.rows
        if reduction == "none":
            return weighted
        return as_scalar(array_namespace(weighted).sum(weighted))

    def slopes(self, cotangent: Array | None = None) -> dict[str, Any]:
        """D value / d statistic, and / d scalar where the head reads one."""
        slopes: dict[str, Any] = self.head_pull(self.weights if cotangent is None else self.weights * cotangent)
        return slopes

    def gradients(self, cotangent: Array | None = None) -> Gradients:
        """Gradients of the value, or of <cotangent, rows>, by input name."""
        total: Gradients = {}
        with np.errstate(all="ignore"):
            slopes = self.slopes(cotangent)
            for comparison in self.plan.comparisons:
                own = {name: slopes.pop(name) for name in comparison.terms if name in slopes}
                merge(total, _pull(comparison, self.stats, own))
            merge(total, slopes)
        return {name: as_scalar(g) for name, g in total.items()}


def evaluate(plan: Plan, reduction: str) -> Evaluation:
    """Fold the statistics and apply the head.

    Raises
    ------
    InputError
        If a number leaves the range of the dtype; NumPy's own warnings about it are not let through.
    """
    with np.errstate(all="ignore"):
        stats = statistics(plan)
        for stat in stats.values():
            # -inf is an empty row, and a head knows what it means.
            check_finite(array_namespace(stat).where(stat == -math.inf, 0.0, stat), "a logit")
        rows, head_pull = plan.head(stats)
        check_finite(rows, "a row of the loss")
    return Evaluation(plan, stats, rows, _weights(plan, stats, rows, reduction), head_pull)


def as_scalar(x: Any) -> Any:
    """A Python float for a NumPy scalar; arrays, and scalars of another library, stay what they are."""
    return float(x) if isinstance(x, float | np.floating) or (is_numpy_array(x) and x.ndim == 0) else x
