"""The features of batches: one encoder for every view, or a slow copy of it for the last one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.training.batch import Batch
from nceref.training.network import Network, Parameters

Array = npt.NDArray[Any]
EncoderVjp = Callable[[Array], Parameters]
"""The backward pass of an encoder: from the gradient by the features to that by the weights."""
Encoded = tuple[Array, EncoderVjp]
"""Features of all members, (E, rows, D), view after view."""


def encoded(network: Network, weights: Parameters, batches: Sequence[Batch], dtype: str) -> Encoded:
    """The features of all views, and the backward pass.

    Weights have the E members on the leading axis; there is one batch for each, all of the same shapes. Features stand
    view after view.
    """
    features, vjp = network(_rows(batches, dtype, slice(None)), *weights)
    return features, lambda g: vjp(g)[1]


def encoded_with_keys(
    network: Network, weights: Parameters, slow: Parameters, batches: Sequence[Batch], dtype: str
) -> Encoded:
    """The features of all views, those of the last by a slow copy of the encoder, which has no gradient.

    `slow` are the weights of the copy. The backward pass drops the gradient by the keys.
    """
    features, vjp = network(_rows(batches, dtype, slice(-1)), *weights)
    keys, _ = network(_rows(batches, dtype, slice(-1, None)), *slow)
    count = features.shape[-2]
    return np.concatenate([features, keys], axis=-2), lambda g: vjp(g[..., :count, :])[1]


def momentum_update(slow: Parameters, weights: Parameters, momentum: float) -> Parameters:
    """The slow copy one step on, momentum slow + (1 - momentum) weights (MoCo, equation 2).

    Neither is changed in place; the momentum is from 0 to 1.
    """
    # Python floats: NumPy's own scalars would turn float32 into float64.
    return tuple(float(momentum) * v + float(1 - momentum) * w for v, w in zip(slow, weights, strict=True))


def views(features: Array, batch: Batch) -> tuple[Array, ...]:
    """The features of one member, view by view.

    Features stand view after view, with as many rows as the views of the batch.
    """
    stops = np.cumsum([len(view) for view in batch.views])[:-1]
    return tuple(np.split(features, stops))


def _rows(batches: Sequence[Batch], dtype: str, chosen: slice) -> Array:
    return np.stack([np.concatenate(batch.views[chosen]) for batch in batches]).astype(dtype)
