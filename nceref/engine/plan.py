"""The plan that a loss hands to the engine: comparisons with their row statistics, and a head over the statistics."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.engine.distances import PairedDistance, SquaredDistance
from nceref.engine.heads import Head
from nceref.engine.label_patterns import OtherLabel, SameLabel
from nceref.engine.namespaces import array_namespace, device
from nceref.engine.scaling import power_of_two
from nceref.engine.similarity import Dot, Given
from nceref.engine.statistics import FittedTerm, Term
from nceref.errors import InputError

Array = Any
Logits = Dot | Given | SquaredDistance | PairedDistance


@dataclass(frozen=True, eq=False)
class Comparison:
    """Logits of n anchors against m candidates, and the statistics to take of them.

    Attributes
    ----------
    logits : Dot, Given, SquaredDistance or PairedDistance
        How two rows are compared (see `similarity`).
    terms : mapping of str to Term
        Each statistic with its pattern, by the name under which the head reads it.
    """

    logits: Logits
    terms: Mapping[str, Term]

    @property
    def symmetric(self) -> bool:
        """Whether s_ij = s_ji, so that one block serves two: the engine then visits each pair of blocks once.

        Blocks of whole rows are not square, and have no mirror image among the blocks.
        """
        return self.logits.symmetric and not self.whole_rows

    def sorted_by_label(self) -> "tuple[Comparison, Array | None]":
        """The comparison with anchors and candidates sorted by label.

        Where anchors are candidates as well, they come first and keep one order: the anchor itself stays on the
        diagonal.

        The comparison is the same object where not all patterns are by label, or the logits have an offset. The order,
        (n,), has the anchor that row i came from; None where nothing moved.
        """
        labelled = [t.pattern for t in self.terms.values() if isinstance(t.pattern, SameLabel | OtherLabel)]
        if len(labelled) < len(self.terms) or not isinstance(self.logits, Dot) or self.logits.offset is not None:
            return self, None
        names, n = labelled[0], self.logits.shape[0]
        # All patterns of a comparison have the same labels: those of the first order the rows.
        rows = np.argsort(names.anchors, kind="stable")
        shared = n if any(pattern.own for pattern in labelled) else 0
        rest = np.argsort(names.candidates[shared:], kind="stable") + shared
        columns = np.concatenate([rows[:shared], rest])
        terms = {
            name: Term(t.statistic, p.reordered(rows, columns))
            for (name, t), p in zip(self.terms.items(), labelled, strict=True)
        }
        return Comparison(self.logits.reordered(rows, columns), terms), rows

    def fitted(self, most: float) -> tuple[dict[str, FittedTerm], bool]:
        """The terms with the statistics that suit the range of the logits.

        `most` is the largest |s| for which exponentials are taken without a maximum. The second result is whether no
        |s| is larger than that; False where no statistic exponentiates.
        """
        # A bound costs a pass over the rows.
        exponentiates = any(term.statistic.exponentiates for term in self.terms.values())
        bound = self.logits.bound if exponentiates else math.inf
        fitted = {
            name: FittedTerm(term.statistic.within(bound, most), term.pattern, term.along)
            for name, term in self.terms.items()
        }
        return fitted, bound <= most

    @property
    def whole_rows(self) -> bool:
        """Whether a pattern has to see all candidates of a row at once."""
        return any(term.pattern.whole_rows for term in self.terms.values())


@dataclass(frozen=True, eq=False)
class Plan:
    """A loss with its arguments filled in.

    Attributes
    ----------
    comparisons : tuple of Comparison
        Statistic names are unique across comparisons.
    head : callable
        Statistics to row values in units of `row_unit`, with the backward pass (see `heads`).
    anchor_weights : array or None
        Weight of each row in the mean and in the sum; None: all 1.
    counted : callable or None
        Statistics to a bool array: rows that take part in the mean; None: all.
    divisor : int or None
        What the mean divides by; None: the weights of the counted rows.
    row_unit : array or None
        Power of two that the head measures each row in; None: 1.
    constant : float
        The largest number that the head itself adds to a statistic: its rounding enters the tolerance.
    shown : int or None
        How many comparisons, from the first on, belong into a picture; None: all.
    stack : int
        How several comparisons share a picture: 1, the same anchors with more candidates; 0, more anchors.
    """

    comparisons: tuple[Comparison, ...]
    head: Head
    anchor_weights: Array | None = None
    counted: Callable[[dict[str, Array]], Array] | None = None
    divisor: int | None = None
    row_unit: Array | None = None
    constant: float = 0.0
    shown: int | None = None
    stack: int = 1

    def row_shape(self) -> tuple[int, ...]:
        """Shape of the rows, from the head on statistics that are all 1: no pair is looked at."""
        stats = {}
        for comparison in self.comparisons:
            like = comparison.logits.like
            xp = array_namespace(like)
            for name, term in comparison.terms.items():
                size = comparison.logits.shape[0 if term.along == "rows" else 1]
                zeros = xp.zeros(size, dtype=like.dtype, device=device(like))
                stats[name] = xp.ones_like(term.statistic.finish(term.statistic.start(zeros)))
        return tuple(self.head(stats)[0].shape)

    def weights(self, stats: dict[str, Array], rows: Array, reduction: str) -> Array:
        """The factor of each row in the sum of the rows.

        Raises `InputError` if the weights of a mean add up to 0.
        """
        xp = array_namespace(rows)
        if reduction == "mean" and self.anchor_weights is None and self.counted is None:
            # The usual case: equal weights need not be added up.
            return xp.full_like(rows, 1 / (self.divisor or math.prod(rows.shape)))
        w = xp.ones_like(rows) if self.anchor_weights is None else xp.astype(self.anchor_weights, rows.dtype)
        if self.counted is not None:
            w = xp.where(self.counted(stats), w, 0.0)
        if reduction != "mean":
            return w
        if self.divisor is not None:
            return w / self.divisor
        # In units of the largest, no sum of weights leaves the range.
        w = w / power_of_two(xp.max(w))
        total = float(xp.sum(w))
        if not total > 0:
            without_positive = self.counted is not None and not bool(xp.any(self.counted(stats)))
            reason = (
                "no anchor has a positive, which `no_positive` skips"
                if without_positive
                else "all `anchor_weights` that count are 0"
            )
            msg = f"no mean can be taken: {reason}"
            raise InputError(msg)
        return w / total
