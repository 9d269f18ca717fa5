"""Which number multiplies the similarities: the temperature or the logit scale, and all that is made of them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nceref.verification.dense.scene import Array, Knobs, real

_FACTORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "temperature-multiplied": lambda t, v: t,
    "temperature-exponentiated": lambda t, v: np.exp(t),
    "temperature-missing": lambda t, v: 1.0,
    "temperature-squared": lambda t, v: 1 / (t * t),
    "temperature-square-root": lambda t, v: 1 / np.sqrt(t),
    "temperature-ignored": lambda t, v: 1 / v,
    "temperature-off-by-a-factor": lambda t, v: 1 / (v * t),
    "temperature-after-softmax": lambda t, v: 1.0,
    "temperature-clamped": lambda t, v: np.where(real(t) < v, 1 / v, 1 / t),
    "epsilon-in-temperature": lambda t, v: 1 / (t + v),
    "scale-divides": lambda t, v: t,
    "scale-exponentiated": lambda t, v: np.exp(1 / t),
    "scale-without-exponential": lambda t, v: -np.log(t),
    "scale-missing": lambda t, v: 1.0,
    "scale-clamped": lambda t, v: np.where(real(1 / t) > v, v, 1 / t),
}
"""What multiplies the similarities, from the temperature (or the inverse of the scale) and what the knob is set to."""
TEMPERATURES = tuple(id for id in _FACTORS if "temperature" in id)
SCALES = ("temperature-ignored", *(id for id in _FACTORS if id.startswith("scale")), "temperature-off-by-a-factor")
PLACES = ("temperature-missing-on-positive", "temperature-missing-on-negatives")


def factor(inputs: Mapping[str, Any], knobs: Knobs) -> Array:
    """What multiplies the similarities."""
    t = heat(inputs, knobs)
    for id in knobs:
        if id in _FACTORS:
            return _FACTORS[id](t, knobs[id])
    return 1 / t


def heat(inputs: Mapping[str, Any], knobs: Knobs) -> Array:
    """The temperature, or the inverse of the logit scale."""
    t = inputs["temperature"] if "temperature" in inputs else 1 / inputs[_scale(inputs)]
    if "gradient-clamped" in knobs:
        t = np.where(real(1 / t) >= knobs["gradient-clamped"], real(t), t)
    return real(t) if "temperature-detached" in knobs else t


def _scale(inputs: Mapping[str, Any]) -> str:
    return "logit_scale" if "logit_scale" in inputs else "scale"


def tempered(s: Array, positives: Array, inputs: Mapping[str, Any], knobs: Knobs) -> tuple[Array, Array]:
    """Logits of the denominator and of the numerator."""
    logits = s * factor(inputs, knobs)
    if "temperature-missing-on-positive" in knobs:
        everywhere = knobs["temperature-missing-on-positive"] == "everywhere"
        return (np.where(positives > 0, s, logits) if everywhere else logits), s + 0 * logits
    if "temperature-missing-on-negatives" in knobs:
        whole = knobs["temperature-missing-on-negatives"] == "denominator"
        return (s + 0 * logits if whole else np.where(positives > 0, logits, s)), logits
    return logits, logits


def afterward(row: Array, t: Any, knobs: Knobs) -> Array:
    """A row -log p with the temperature applied to the probability or to its logarithm, where the knob says so."""
    if "temperature-after-softmax" not in knobs:
        return row
    t = t[..., 0] if np.ndim(t) > 2 else t
    how = knobs["temperature-after-softmax"]
    return row / t if how == "log p / T" else row * t if how == "T log p" else row + np.log(t)
