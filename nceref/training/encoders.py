"""From batches to features: one encoder for every view, or a slow copy of it for the last one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.training.batch import Batch
from nceref.training.network import Network, Parameters

Array = npt.NDArray[Any]
EncoderVjp = Callable[[Array], Parameters]
"""From the gradient by the features to that by the weights."""
Encoded = tuple[Array, EncoderVjp]
"""Features of all members, (E, rows, D), view after view."""


def encoded(network: Network, weights: Parameters, batches: Sequence[Batch], dtype: str) -> Encoded:
    """All views through the encoder.

    `weights`: of the E members, on the leading axis. `batches`: one for each member, all of the same shapes.
    `features`: view after view. `vjp`: from the gradient by the features to that by the weights.
    """
    features, vjp = network(_rows(batches, dtype, slice(None)), *weights)
    return features, lambda g: vjp(g)[1]


def encoded_with_keys(
    network: Network, weights: Parameters, slow: Parameters, batches: Sequence[Batch], dtype: str
) -> Encoded:
    """All views but the last one through the encoder, the last one through its slow copy, which has no gradient.

    `network` and `weights` and `batches` and `dtype`: as in `encoded`. `slow`: weights of the slow copy. Result: as in
    `encoded`; the gradient by the keys is dropped.
    """
    features, vjp = network(_rows(batches, dtype, slice(-1)), *weights)
    keys, _ = network(_rows(batches, dtype, slice(-1, None)), *slow)
    count = features.shape[-2]
    return np.concatenate([features, keys], axis=-2), lambda g: vjp(g[..., :count, :])[1]


def momentum_update(slow: Parameters, weights: Parameters, momentum: float) -> Parameters:
    """The slow copy one step on, momentum slow + (1 - momentum) weights (MoCo, equation 2).

    `slow` and `weights`: of equal shapes; not changed. `momentum`: 0 to 1.
    """
    # Python floats: NumPy's own scalars would turn float32 into float64.
    return tuple(float(momentum) * v + float(1 - momentum) * w for v, w in zip(slow, weights, strict=True))


def views(features: Array, batch: Batch) -> tuple[Array, ...]:
    """The features of one member, view by view.

    `features`: view after view. `batch`: whose views have so many rows each. Result: (N, D) each.
    """
    stops = np.cumsum([len(view) for view in batch.views])[:-1]
    return tuple(np.split(features, stops))


def _rows(batches: Sequence[Batch], dtype: str, chosen: slice) -> Array:
    return np.stack([np.concatenate(batch.views[chosen]) for batch in batches]).astype(dtype)
