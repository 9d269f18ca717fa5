"""Members of an ensemble, and the batches that they draw."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import checked_number, integer, real_array
from nceref.engine.parameters import TEMPERATURE
from nceref.errors import InputError
from nceref.output.text import shown

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of one step; checked when the batch is made.

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
        views = tuple(_checked_view(number, view) for number, view in enumerate(self.views))
        object.__setattr__(self, "views", views)
        if self.labels is not None:
            object.__setattr__(self, "labels", _checked_labels(self.labels, len(views[0])))
        if not isinstance(self.given, Mapping) or not all(isinstance(name, str) for name in self.given):
            msg = f"`given` must map names of arguments to arrays or numbers, got {shown(self.given)}"
            raise InputError(msg)

    @property
    def shapes(self) -> tuple[Any, ...]:
        """The shapes of views and labels."""
        return (*map(np.shape, self.views), np.shape(self.labels) if self.labels is not None else "no labels")


def _checked_view(number: int, view: Any) -> Array:
    x: Array = real_array(f"views[{number}]", view)
    if x.ndim != 2 or not x.size:
        msg = f"`views` must be arrays (N, F) with N, F >= 1, got shape {x.shape} for view {number}"
        raise InputError(msg)
    if not (sound := np.isfinite(x).all(axis=1)).all():
        msg = f"`views` must be finite, row {sound.argmin()} of view {number} is not; clean the data"
        raise InputError(msg)
    return x


def _checked_labels(labels: Any, samples: int) -> Array:
    x: Array = real_array("labels", labels)
    if x.dtype.kind not in "iu" or x.shape != (samples,):
        msg = f"`labels` must be integers of shape ({samples},), like the views, got {x.dtype} of shape {x.shape}"
        raise InputError(msg)
    return x


@dataclass(frozen=True)
class Member:
    """One of an ensemble: its seed draws weights and batches; without a temperature the loss gets none."""

    seed: int
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None:
            object.__setattr__(self, "temperature", checked_number(TEMPERATURE, self.temperature))
        object.__setattr__(self, "seed", integer("`seed`", self.seed, least=0))
