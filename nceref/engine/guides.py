"""Candidates that a second similarity leaves out: a guide says who is too similar to be a negative.

The guide compares rows of its own, and decides by numbers alone: nothing of it has a gradient.
"""

from dataclasses import dataclass, replace
from typing import Any

from nceref.engine.embeddings import embed
from nceref.engine.namespaces import array_namespace
from nceref.engine.patterns import Mask, Pattern

Array = Any


TIES = 8
"""Units of the last place that similarities of equal rows may differ by, where they stand in different blocks."""


@dataclass(frozen=True, eq=False)
class NotAbove(Pattern):
    """The pairs of another pattern whose similarity by the guide is not above the limit of the anchor.

    `anchors` and `candidates` are rows of the guide, (n, E) and (m, E), and `limits` is (n,).
    """

    among: Pattern
    anchors: Array
    candidates: Array
    limits: Array
    symmetric = False

    def touches(self, rows: slice, columns: slice) -> bool:
        return self.among.touches(rows, columns)

    def window(self, rows: slice, columns: slice) -> "NotAbove":
        """The pattern of a block, counted from its corner."""
        return replace(
            self,
            among=self.among.window(rows, columns),
            anchors=self.anchors[rows, :],
            candidates=self.candidates[columns, :],
            limits=self.limits[rows],
        )

    def mask(self, rows: slice, columns: slice, s: Array) -> Mask:
        inside = self.among.mask(rows, columns, s)
        if inside is False:
            return False
        kept = self.anchors[rows, :] @ self.candidates[columns, :].T <= self.limits[rows][:, None]
        return kept if inside is None else kept & inside


def guide_rows(normalize: str, **inputs: Array) -> list[Array]:
    """Rows of the guide as they enter its similarities; those of several views stand view by view, None is left out."""
    return [embed(normalize, **{name: x}).values for name, x in inputs.items() if x is not None]


def limits(anchors: Array, positives: Array, margin: float, margin_of: str) -> Array:
    """Limits that the guide's similarity of a candidate must not exceed, (n,): that of the positive less a margin.

    `margin_of` says what the margin is: a difference, "absolute", or a part of the size of the positive's similarity,
    "relative". An equal similarity is not above: what rounding usually adds is let through.
    """
    xp = array_namespace(anchors)
    own = xp.vecdot(anchors, positives, axis=-1)
    taken = margin * xp.abs(own) if margin_of == "relative" else margin
    longest = xp.max(xp.linalg.vector_norm(positives, axis=1))
    room = TIES * float(xp.finfo(anchors.dtype).eps) * longest
    return own - taken + room * xp.linalg.vector_norm(anchors, axis=1)


def rounding(width: int, eps: float) -> float:
    """A bound on the rounding of an inner product of rows of length 1, of a difference of two, and of their lengths."""
    return (2 * width + 16) * float(eps)
