"""Which number multiplies the similarities: the temperature or the logit scale, and all that is made of them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.dense.batch import Array, Deviations
from nceref.diagnosis.tape import Variable, detached, edge, stage

_FACTORS = {id: c.factor for id, c in CONVENTIONS.items() if c.axis == "temperature" and c.factor}
"""What multiplies the similarities, from the temperature (or the inverse of the scale) and a setting."""
TEMPERATURE_CONVENTIONS = tuple(id for id in _FACTORS if "temperature" in id)
SCALE_CONVENTIONS = (
    "temperature-ignored",
    *(id for id in _FACTORS if id.startswith("scale")),
    "temperature-off-by-a-factor",
)
PARTIAL_TEMPERATURES = (
    "temperature-missing-on-positive",
    "temperature-missing-on-negatives",
    "temperature-off-on-positive",
)


def inverse_temperature(inputs: Mapping[str, Any], deviations: Deviations) -> Array:
    """The factor of the similarities.

    `deviations`: of those of the axis ``temperature`` the first counts.
    """
    t = temperature(inputs, deviations)
    for id in deviations:
        if id in _FACTORS:
            return _FACTORS[id](t, deviations[id])
    return 1 / t


def temperature(inputs: Mapping[str, Any], deviations: Deviations) -> Array:
    """The temperature, or the inverse of the logit scale."""
    t = inputs["temperature"] if "temperature" in inputs else 1 / inputs[_scale(inputs)]
    if "gradient-clamped" in deviations:
        t = np.where(1 / t >= deviations["gradient-clamped"], detached(t), t)
    return edge(t, "the temperature")


def log_counts(counts: Array, inputs: Mapping[str, Any], deviations: Deviations, name: str) -> Array:
    """Logarithms of counts that a logit has beside the similarity over the temperature.

    `name`: of the conventions that leave them out, or give them the other sign, no logarithm or a temperature.
    """
    if f"{name}-missing" in deviations:
        return np.zeros_like(counts)
    numbers = counts if f"{name}-without-log" in deviations else np.log(counts)
    sign = -1.0 if {f"{name}-added", f"{name}-subtracted"} & {*deviations} else 1.0
    by = inverse_temperature(inputs, deviations) if f"{name}-divided-by-temperature" in deviations else 1.0
    return sign * numbers * by


def _scale(inputs: Mapping[str, Any]) -> str:
    return "logit_scale" if "logit_scale" in inputs else "scale"


def tempered(
    similarities: Callable[..., Array], positives: Array, inputs: Mapping[str, Any], deviations: Deviations
) -> tuple[Array, Array]:
    """Logits of the denominator and of the numerator.

    `similarities`: with ``part`` those that a part of the loss is made of, which its gradient goes through.
    """
    by, s = inverse_temperature(inputs, deviations), similarities(part="denominator")
    logits = numerator = s * by
    if isinstance(logits, Variable):
        for kind, pairs in (("positives", positives > 0), ("negatives", positives == 0)):
            by = edge(np.broadcast_to(by, s.shape), f"the temperature of the {kind}", where=pairs)
        ways = {part: edge(by, f"the temperature in the {part}") for part in ("denominator", "numerator")}
        own = {"denominator": s, "numerator": similarities(part="numerator")}
        logits, numerator = (
            stage(own[part] * each, own[part], "the division by the temperature") for part, each in ways.items()
        )
    if "temperature-off-on-positive" in deviations:
        times = deviations["temperature-off-on-positive"]
        return np.where(positives > 0, logits / times, logits), numerator / times
    if "temperature-missing-on-positive" in deviations:
        everywhere = deviations["temperature-missing-on-positive"] == "everywhere"
        plain = similarities()
        return (np.where(positives > 0, plain, logits) if everywhere else logits), plain
    if "temperature-missing-on-negatives" in deviations:
        whole = deviations["temperature-missing-on-negatives"] == "denominator"
        plain = similarities()
        return (plain if whole else np.where(positives > 0, logits, plain)), numerator
    return logits, numerator


def afterward(row: Array, t: Any, deviations: Deviations) -> Array:
    """A row -log p with the temperature applied to the probability or to its logarithm, where a deviation says so.

    `t`: the temperature.
    """
    if "temperature-after-softmax" not in deviations:
        return row
    how = deviations["temperature-after-softmax"]
    return row / t if how == "log p / T" else row * t if how == "T log p" else row + np.log(t)
