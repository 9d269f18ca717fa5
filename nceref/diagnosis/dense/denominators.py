"""The denominator of a batch: who is in it, masks and weights as the deviations set them, and its logarithm."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import Array, DenseBatch, Deviations, log_add, log_sum_exp
from nceref.diagnosis.tape import detached, edge, edges, joined


@dataclass(frozen=True, eq=False)
class Denominator:
    """Logarithms of the denominators.

    Attributes
    ----------
    log : array, (n,) or (n, m)
        One a row, or one a pair.
    inside : array, (n, m)
        Logarithms of the weights of the entries; -inf for who is outside.
    noise : float
        How many times larger than the result a number was that cancelled.
    """

    log: Array
    inside: Array
    noise: float = 0.0


def row_denominators(batch: DenseBatch, deviations: Deviations) -> Denominator:
    """The denominator of every row."""
    inside = _inside(batch, deviations)
    logits = edges(batch.logits, partial(kinds, batch), "{} in the denominator")
    logits = edge(logits, "the denominator")
    terms = logits + inside
    extra = _extra_terms(batch, deviations)
    if extra is not None:
        terms = np.concatenate([terms, extra[:, None]], axis=1)
    if "other-positives-dropped" in deviations:
        others = log_sum_exp(np.where(_padded(batch.positives > 0, terms), -np.inf, terms))
        return Denominator(log_add(logits, others[..., None]), inside)
    if "denominators-added-as-logs" in deviations:
        own = _padded(batch.same_view, terms)
        parts = (log_sum_exp(np.where(mask, terms, -np.inf)) for mask in (own, ~own))
        return Denominator(sum(parts), inside)
    log = log_sum_exp(terms, of="the denominator") if batch.estimate is None else _estimated(batch, terms, deviations)
    return Denominator(*_cancelled(batch, log, inside, deviations))


def kinds(batch: DenseBatch) -> dict[str, Array]:
    """Kinds of entries that a batch may have, by name."""
    view = batch.same_view
    pushed = np.where(batch.candidates & (batch.positives == 0), detached(batch.logits), -np.inf)
    by_name = {
        "the negatives but the hardest": (batch.positives == 0) & (pushed < np.max(pushed, axis=-1, keepdims=True)),
        "the positives": batch.positives > 0, "the negatives": batch.positives == 0, "the queue": batch.in_queue,
        "the centers": batch.centers, "the own view": view, "the other view": None if view is None else ~view,
    }  # fmt: skip
    return {name: pairs for name, pairs in by_name.items() if pairs is not None}


def _padded(mask: Array, terms: Array) -> Array:
    """The mask with False for the columns that were put beside the matrix."""
    missing = terms.shape[-1] - mask.shape[-1]
    return np.pad(mask, ((0, 0), (0, missing))) if missing else mask


_MASKS: Mapping[str, Callable[[DenseBatch, Any], Array]] = {
    "self-contrast-kept": lambda s, v: s.candidates | s.own,
    "self-contrast-subtracted-as-e": lambda s, v: s.candidates | s.own,
    "self-mask-shifted": lambda s, v: (s.candidates | s.own) & ~np.roll(s.own, v, axis=-1),
    "positive-dropped-from-denominator": lambda s, v: s.candidates & ~(s.positives > 0),
    "positive-kept-in-denominator": lambda s, v: s.candidates | (s.positives > 0),
    "cross-view-only": lambda s, v: s.candidates & ~s.view,
    "same-view-only": lambda s, v: s.candidates & (s.view | s.together),
    "queue-dropped": lambda s, v: (s.candidates & ~s.queue) | (_part(s, s.excluded) & (v == "in-batch")),
    **dict.fromkeys(
        ("in-batch-negatives-added", "accidental-hits-kept"), lambda s, v: s.candidates | _part(s, s.excluded)
    ),
    "in-batch-negatives-dropped": lambda s, v: s.candidates & (s.queue | (s.positives > 0)),
    "centers-dropped": lambda s, v: s.candidates & ~_part(s, s.centers),
    "a-negative-dropped": lambda s, v: _without(s, v),
}


def _part(batch: DenseBatch, mask: Array) -> Array:
    """Some of the candidates; nobody where the batch has none of that kind."""
    return np.zeros_like(batch.candidates) if mask is None else mask


def _without(batch: DenseBatch, which: str) -> Array:
    """One negative a row left out: that of the last or of the first column, or the one after the anchor.

    Of a queue it is the last or the first row; columns that are nobody's candidate do not count.
    """
    n, m = batch.candidates.shape
    inside = (
        batch.candidates if batch.in_queue is None or not np.any(batch.in_queue) else batch.candidates & batch.in_queue
    )
    column = {
        "last": np.full(n, m - 1 - np.argmax(np.any(inside, axis=0)[::-1])),
        "first": np.full(n, np.argmax(np.any(inside, axis=0))),
        "next": (np.arange(n) + (1 if inside is batch.candidates else n)) % m,
    }[which]
    gone = np.arange(m) == column[:, None]
    return batch.candidates & ~(gone & ~(batch.positives > 0))


def _inside(batch: DenseBatch, deviations: Deviations) -> Array:
    """Logarithms of the weights of the entries in the denominator."""
    mask = batch.candidates
    for id in deviations:
        if id in _MASKS:
            mask = _MASKS[id](batch, deviations[id])
    inside = np.where(mask, 0.0, -np.inf)
    if "positive-counted-twice" in deviations:
        inside = np.where(batch.positives > 0, np.log(2), inside)
    kind, constant = deviations.get("mask-leaks", ("", 0.0))
    if kind == "added":
        inside = np.where(masked(batch), constant, inside)
    if kind == "times":
        inside = np.where(masked(batch), (constant - 1) * batch.logits, inside)
    return inside


def masked(batch: DenseBatch) -> Array:
    """Entries of the matrix that are masked out."""
    return ~batch.candidates if batch.excluded is None else ~batch.candidates & ~batch.excluded


def _extra_terms(batch: DenseBatch, deviations: Deviations) -> Array:
    """Logarithm of what is added to the denominator beside the entries, a row each; None for nothing."""
    count = np.sum(masked(batch), axis=-1)
    with np.errstate(divide="ignore"):
        if "masked-entries-count-one" in deviations:
            return np.log(count)
        how, size = deviations.get("mask-leaks", ("", 0.0))
        if how == "set":
            return np.log(count) + size
        if how == "cosine":
            return np.log(count) + size / batch.temperature
    return np.zeros(len(count)) if "phantom-candidate" in deviations else None


def _cancelled(batch: DenseBatch, log: Array, inside: Array, deviations: Deviations) -> tuple[Array, Array, float]:
    """The denominator less a constant, and how much cancelled."""
    if "self-contrast-subtracted-as-e" in deviations:
        # log(S - e) = log S + log(1 - e / S), which does not overflow; NaN as in the program where S is below e.
        left = 1 - np.exp(1 - log)
        noise = float(np.max(1 / np.abs(detached(left)), initial=0.0))
        return (
            np.where(detached(left) > 0, log + np.log(np.where(detached(left) > 0, left, 1.0)), np.nan),
            inside,
            noise,
        )
    if "self-contrast-in-gradient" in deviations:
        # Adds nothing to the value, and the pair of the anchor with itself to the gradient.
        ghost = np.sum(np.where(batch.own, np.exp(batch.logits - detached(log)[..., None]), 0.0), axis=-1)
        return log + (ghost - detached(ghost)), inside, float(np.max(detached(ghost), initial=0.0))
    return log, inside, 0.0


def _estimated(batch: DenseBatch, terms: Array, deviations: Deviations) -> Array:
    """Logarithm of the positive plus the corrected estimate of the negatives, which is held above its floor."""
    prior, concentration, log_floor = batch.estimate or (0.0, 0.0, 0.0)
    log_floor = edge(log_floor, "the floor of the estimate")
    prior = 0.0 if "correction-missing" in deviations else prior
    concentration = 0.0 if "importance-weights-missing" in deviations else concentration
    positive = np.sum(np.where(batch.positives > 0, batch.logits, 0.0), axis=-1)
    twice = "positive-counted-twice" in deviations
    negatives = np.where(_padded(batch.positives > 0, terms), -np.inf, terms)
    count = np.sum(detached(negatives) > -np.inf, axis=-1)
    weights = concentration * np.where(detached(negatives) > -np.inf, negatives, 0.0)
    level = np.where(detached(negatives) > -np.inf, weights, -np.inf)
    weights = edge(weights, "the weights", "the weights of the negatives")
    level = edge(level, "the weights", "the sum of the weights")
    mass = edge(log_sum_exp(negatives + weights) - log_sum_exp(level) + np.log(count), "the mass of the negatives")
    floor = np.log(count) + log_floor
    top = np.maximum(np.maximum(detached(mass), detached(positive)), detached(floor))
    corrected = edge(positive, "the positive in the estimate")
    estimate = (np.exp(mass - top) - prior * count * np.exp(corrected - top)) / (1 - prior)
    # At the floor the negatives get no gradient; the temperature gets that of the floor.
    least = joined(np.exp(floor - top), edge(estimate, "the estimate at its floor", passes=0.0))
    kept = edge(np.where(estimate > least, estimate, least), "the estimate")
    shown = 0.0 if "positive-dropped-from-denominator" in deviations else (2.0 if twice else 1.0)
    shown = shown * np.exp(edge(positive, "the positive beside the estimate") - top)
    return np.log(shown + kept) + top
