"""Who is in the denominator of a scene: masks and weights as the knobs want them, and its logarithm."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.verification.dense.scene import Array, Knobs, Scene, beside, log_add, log_sum_exp, real


@dataclass(frozen=True, eq=False)
class Denominator:
    """Logarithms of the denominators.

    Attributes
    ----------
    log : array, (..., n) or (..., n, m)
        One a row, or one a pair.
    inside : array, (n, m)
        Logarithms of the weights of the entries; -inf for who is outside.
    noise : float
        How many times larger than the result a number was that cancelled.
    """

    log: Array
    inside: Array
    noise: float = 0.0


def denominator(scene: Scene, knobs: Knobs) -> Denominator:
    """The denominator of every row."""
    inside = _inside(scene, knobs)
    logits = real(scene.logits) if "denominator-detached" in knobs else scene.logits
    terms = logits + inside
    loose = _loose(scene, knobs)
    if loose is not None:
        terms = beside(terms, np.broadcast_to(loose[..., None], (*terms.shape[:-1], 1)))
    if "other-positives-dropped" in knobs:
        others = log_sum_exp(np.where(_padded(scene.positives > 0, terms), -np.inf, terms))
        return Denominator(log_add(logits, others[..., None]), inside)
    if "denominators-added-as-logs" in knobs:
        own = _padded(scene.view, terms)
        parts = (log_sum_exp(np.where(mask, terms, -np.inf)) for mask in (own, ~own))
        return Denominator(sum(parts), inside)
    log = log_sum_exp(terms) if scene.estimate is None else _estimated(scene, terms, knobs)
    return Denominator(*_cancelled(scene, log, inside, knobs))


def _padded(mask: Array, terms: Array) -> Array:
    """The mask with False for the columns that were put beside the matrix."""
    missing = terms.shape[-1] - mask.shape[-1]
    return np.pad(mask, ((0, 0), (0, missing))) if missing else mask


_MASKS: Mapping[str, Callable[[Scene, Any], Array]] = {
    "self-contrast-kept": lambda s, v: s.candidates | s.own,
    "self-contrast-subtracted-as-e": lambda s, v: s.candidates | s.own,
    "self-mask-shifted": lambda s, v: (s.candidates | s.own) & ~np.roll(s.own, v, axis=-1),
    "positive-dropped-from-denominator": lambda s, v: s.candidates & ~(s.positives > 0),
    "positive-kept-in-denominator": lambda s, v: s.candidates | (s.positives > 0),
    "cross-view-only": lambda s, v: s.candidates & ~_part(s, s.view),
    "same-view-only": lambda s, v: s.candidates & (_part(s, s.view) | (s.positives > 0)),
    "queue-dropped": lambda s, v: (s.candidates & ~_part(s, s.extra)) | (_part(s, s.spare) & (v == "in-batch")),
    "in-batch-negatives-added": lambda s, v: s.candidates | _part(s, s.spare),
    "centers-dropped": lambda s, v: s.candidates & ~_part(s, s.centers),
    "a-negative-dropped": lambda s, v: _without(s, v),
}


def _part(scene: Scene, mask: Array) -> Array:
    """Some of the candidates; nobody where the scene has none of that kind."""
    return np.zeros_like(scene.candidates) if mask is None else mask


def _without(scene: Scene, which: str) -> Array:
    """One negative a row left out: that of the last or of the first column, or the one after the anchor.

    Of a queue it is the last or the first row; columns that are nobody's candidate do not count.
    """
    n, m = scene.candidates.shape
    inside = scene.candidates if scene.extra is None or not np.any(scene.extra) else scene.candidates & scene.extra
    column = {
        "last": np.full(n, m - 1 - np.argmax(np.any(inside, axis=0)[::-1])),
        "first": np.full(n, np.argmax(np.any(inside, axis=0))),
        "next": (np.arange(n) + 1) % m,
    }[which]
    gone = np.arange(m) == column[:, None]
    return scene.candidates & ~(gone & ~(scene.positives > 0))


def _inside(scene: Scene, knobs: Knobs) -> Array:
    """Logarithms of the weights of the entries in the denominator."""
    mask = scene.candidates
    for id in knobs:
        if id in _MASKS:
            mask = _MASKS[id](scene, knobs[id])
    inside = np.where(mask, 0.0, -np.inf)
    if "positive-counted-twice" in knobs:
        inside = np.where(scene.positives > 0, np.log(2), inside)
    kind, constant = knobs.get("mask-leaks", ("", 0.0))
    if kind == "added":
        inside = np.where(masked(scene), constant, inside)
    return inside


def masked(scene: Scene) -> Array:
    """Entries of the matrix that are masked out."""
    return ~scene.candidates if scene.spare is None else ~scene.candidates & ~scene.spare


def _loose(scene: Scene, knobs: Knobs) -> Array:
    """Logarithm of what is added to the denominator beside the entries, a row each; None for nothing."""
    count = np.sum(masked(scene), axis=-1)
    with np.errstate(divide="ignore"):
        if "masked-entries-count-one" in knobs:
            return np.log(count)
        how, size = knobs.get("mask-leaks", ("", 0.0))
        if how == "set":
            return np.log(count) + size
        if how == "cosine":
            heat = scene.heat[..., 0] if np.ndim(scene.heat) > 2 else scene.heat
            return np.log(count) + size / heat
    return np.zeros(len(count)) if "phantom-candidate" in knobs else None


def _cancelled(scene: Scene, log: Array, inside: Array, knobs: Knobs) -> tuple[Array, Array, float]:
    """The denominator less a constant, and how much cancelled."""
    if "self-contrast-subtracted-as-e" in knobs:
        left = 1 - np.exp(1 - log)
        noise = float(np.max(1 / np.abs(real(left)), initial=0.0))
        return np.where(real(left) > 0, log + np.log(np.where(real(left) > 0, left, 1.0)), np.nan), inside, noise
    if "self-contrast-in-gradient" in knobs:
        ghost = np.sum(np.where(scene.own, np.exp(scene.logits - real(log)[..., None]), 0.0), axis=-1)
        return log + (ghost - real(ghost)), inside, float(np.max(real(ghost), initial=0.0))
    return log, inside, 0.0


def _estimated(scene: Scene, terms: Array, knobs: Knobs) -> Array:
    """Logarithm of the positive plus the corrected estimate of the negatives, which is held above its floor."""
    prior, concentration, log_floor = scene.estimate or (0.0, 0.0, 0.0)
    prior = 0.0 if "correction-missing" in knobs else prior
    concentration = 0.0 if "importance-weights-missing" in knobs else concentration
    positive = np.sum(np.where(scene.positives > 0, scene.logits, 0.0), axis=-1)
    twice = "positive-counted-twice" in knobs
    negatives = np.where(_padded(scene.positives > 0, terms), -np.inf, terms)
    count = np.sum(real(negatives) > -np.inf, axis=-1)
    weights = concentration * np.where(real(negatives) > -np.inf, negatives, 0.0)
    level = np.where(real(negatives) > -np.inf, weights, -np.inf)
    weights = real(weights) if "weights-detached" in knobs else weights
    level = real(level) if "weights-detached" in knobs else level
    mass = log_sum_exp(negatives + weights) - log_sum_exp(level) + np.log(count)
    floor = np.log(count) + log_floor + 0 * real(mass)
    top = np.maximum(np.maximum(real(mass), real(positive)), real(floor))
    estimate = (np.exp(mass - top) - prior * count * np.exp(positive - top)) / (1 - prior)
    kept = np.where(real(estimate) > real(np.exp(floor - top)), estimate, np.exp(floor - top))
    shown = 0.0 if "positive-dropped-from-denominator" in knobs else (2.0 if twice else 1.0)
    return np.log(shown * np.exp(positive - top) + kept) + top
