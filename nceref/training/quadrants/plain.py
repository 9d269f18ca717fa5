"""The step of the published script as one would write it: layer by layer, with the framework's clamp of short features.

It takes over where `fused` cannot go: where a feature is shorter than the clamp, or a run diverges.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.training.network import Linear, Network, Tanh
from nceref.training.quadrants.samples import HIDDEN

Array = npt.NDArray[Any]

ENCODER = Network((Linear(2, HIDDEN, bias=False), Linear(HIDDEN, 2, bias=False), Tanh()))
CLAMP = 1e-8
"""Least length that a feature is divided by, the default of the framework's cosine."""


def step(parameters: tuple[Array, ...], x: Array, temperature: Array, rate: Array) -> tuple[tuple[Array, ...], Array]:
    """One step of R runs.

    `x` are anchor, positive and three negatives. Returns the parameters after the step, and the logits: cosines over
    the temperature, the positive first.
    """
    features, vjp = ENCODER(x, *parameters)
    cosines, vjp_cosines = cosine(features[:, :1], features[:, 1:])
    logits = cosines / temperature.astype(x.dtype)[:, None]
    # Less the largest: at a temperature of 0.001 logits reach 1000, and their exponentials overflow.
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    # The declared slope of the loss by its logits: P - [j is the positive].
    p[:, 0] -= 1
    by_anchor, by_candidates = vjp_cosines(p / temperature.astype(x.dtype)[:, None])
    _, gradients = vjp(np.concatenate([by_anchor, by_candidates], axis=1))
    rates = rate.astype(x.dtype)[:, None, None]
    return tuple(w - rates * g for w, g in zip(parameters, gradients, strict=True)), logits


def in_range(parameters: tuple[Array, ...]) -> Array:
    """Whether no product of the two layers overflows, (R,): else features depend on the order in which one sums."""
    first, second = map(np.abs, parameters)
    with np.errstate(all="ignore"):
        return np.asarray(np.isfinite(second @ first).all(axis=(1, 2)))


def cosine(a: Array, b: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Cosines of (R, 1, D) and (R, K, D) rows, (R, K); a row shorter than `CLAMP` is divided by that instead.

    As in the framework, the clamp counts in the value only: the derivative of the length is that of the length itself.

    The backward pass takes the gradient by the cosines to those by the anchors `a` and the candidates `b`.
    """
    (u, vjp_u), (v, vjp_v) = _clamped_unit(a), _clamped_unit(b)

    def vjp(g: Array) -> tuple[Array, Array]:
        return vjp_u((g[..., None] * v).sum(axis=1, keepdims=True)), vjp_v(g[..., None] * u)

    return (u * v).sum(axis=-1), vjp


def _clamped_unit(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """The unit u = x / max(|x|, clamp), and its vjp (g - (g.u) d) / max(|x|, clamp).

    The direction d is 0 for a row of zeros.
    """
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    divisor = np.maximum(length, x.dtype.type(CLAMP))
    unit = x / divisor
    direction = x / np.where(length > 0, length, 1).astype(x.dtype)
    return unit, lambda g: (g - (g * unit).sum(axis=-1, keepdims=True) * direction) / divisor
