"""What training is made of: the members of an ensemble, and the batches that they draw."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import integer
from nceref.errors import InputError

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """What is drawn for one step; checked when it is made.

    Attributes
    ----------
    views : tuple of arrays
        One or more, each (N, F), row by row of the same samples; for a loss over data and noise, one of each.
    labels : array of int, optional
        Of the samples, (N,).
    given : mapping
        Further arguments of the loss that belong to these samples, such as the log-density of the noise.
    """

    views: tuple[Array, ...]
    labels: Array | None = None
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Bad data would look like a divergence of the network, many steps later.
        if not isinstance(self.views, tuple | list) or not self.views:
            msg = f"`views` must be a tuple of at least one array (N, F), got {type(self.views).__name__}"
            raise InputError(msg)
        for number, view in enumerate(self.views):
            if np.ndim(view) != 2 or not np.size(view):
                msg = f"`views` must be arrays (N, F) with N, F >= 1, got shape {np.shape(view)} for view {number}"
                raise InputError(msg)
            if np.asarray(view).dtype.kind not in "fiub":
                msg = f"`views` must be real numbers, got {np.asarray(view).dtype} for view {number}; convert it first"
                raise InputError(msg)
            if not (sound := np.isfinite(view).all(axis=1)).all():
                msg = f"`views` must be finite, row {sound.argmin()} of view {number} is not; clean the data"
                raise InputError(msg)
        if self.labels is not None and np.shape(self.labels) != (len(self.views[0]),):
            msg = f"`labels` must be of shape ({len(self.views[0])},), like the views, got {np.shape(self.labels)}"
            raise InputError(msg)

    @property
    def shapes(self) -> tuple[Any, ...]:
        """Of views and labels."""
        return (*map(np.shape, self.views), np.shape(self.labels) if self.labels is not None else "no labels")


@dataclass(frozen=True)
class Member:
    """One of an ensemble: its seed draws weights and batches; without a temperature the loss gets none."""

    seed: int
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            msg = f"`temperature` must be > 0 and finite, got {self.temperature!r}"
            raise InputError(msg)
        integer("`seed`", self.seed, least=0)
