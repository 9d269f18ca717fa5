"""Features of earlier batches, latest first, as MoCo, SupCon and PaCo compare with them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Queue:
    """A queue of at most `size` rows, and their labels where there are any."""

    size: int
    rows: Array | None = None
    labels: Array | None = None

    @property
    def full(self) -> bool:
        """Whether it holds all rows that it can."""
        return not self.size or (self.rows is not None and len(self.rows) == self.size)

    def pushed(self, rows: Array, labels: Array | None) -> "Queue":
        """The queue with new rows in front; the oldest go."""
        return Queue(self.size, self._first(rows, self.rows), self._first(labels, self.labels))

    def _first(self, new: Array | None, old: Array | None) -> Array | None:
        # A new array each time: whoever holds the old queue keeps it as it was.
        parts = [part for part in (new, old) if part is not None]
        return np.concatenate(parts)[: self.size] if parts else None
