"""Explanations by rows: which of them are missing, and how the rest become one number."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.errors import InputError
from nceref.losses import LossFunction
from nceref.spec import Array
from nceref.tolerance.implementation import FORMATS
from nceref.verification.diagnosis.features import samples, temperature_scalar
from nceref.verification.diagnosis.gaps import VALUE, Hypothesis, gaps, usable
from nceref.verification.records import Observation, Probe


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of the reference, what the declared mean divides their sum by, and what a program may round to 0."""

    rows: Any
    divisor: float
    samples: int
    floor: float


Weights = Callable[[Batch], Any]
"""The share of each row in the value, in the shape of the rows; None where the question does not arise."""


def _part(keep: Callable[[Batch], Any], own: bool) -> Weights:
    """Some rows only: divided by their own number, or still by that of all."""

    def weights(batch: Batch) -> Any:
        kept = keep(batch)
        if kept is None or np.all(kept):
            return None
        return kept / (max(np.sum(kept), 1) if own else batch.divisor)

    return weights


def _all_but_last(batch: Batch) -> Any:
    return np.arange(batch.rows.size).reshape(batch.rows.shape) < batch.rows.size - 1


def _first_view(batch: Batch) -> Any:
    flat = batch.rows.ndim == 1 and batch.rows.size == 2 * batch.samples
    return np.arange(batch.rows.size) < batch.samples if flat else None


def _direction(number: int) -> Callable[[Batch], Any]:
    def keep(batch: Batch) -> Any:
        if batch.rows.ndim != 2 or batch.rows.shape[0] != 2:
            return None
        return np.broadcast_to(np.arange(2)[:, None] == number, batch.rows.shape)

    return keep


def _uniform(share: Callable[[Batch], float]) -> Weights:
    return lambda batch: np.full(batch.rows.shape, share(batch))


MEANS: tuple[tuple[str, Weights], ...] = (
    ("sum-instead-of-mean", _uniform(lambda batch: 1.0)),
    ("divided-by-n-twice", _uniform(lambda batch: 1 / (batch.divisor * batch.samples))),
    ("lonely-anchors-counted", _uniform(lambda batch: 1 / batch.rows.size)),
    ("mean-over-nonzero-rows", _part(lambda batch: batch.rows > batch.floor, own=True)),
    ("last-row-missing", _part(_all_but_last, own=True)),
    ("last-row-missing", _part(_all_but_last, own=False)),
    ("first-view-only", _part(_first_view, own=True)),
    ("first-view-only", _part(_first_view, own=False)),
    ("one-direction-only", _part(_direction(0), own=True)),
    ("other-direction-only", _part(_direction(1), own=True)),
    ("directions-summed", lambda batch: np.full(batch.rows.shape, 2 / batch.divisor) if batch.rows.ndim == 2 else None),
)
"""What may stand in place of the mean."""

SUMS: tuple[tuple[str, Weights], ...] = (
    ("mean-instead-of-sum", _uniform(lambda batch: 1 / batch.rows.size)),
    ("last-row-missing", _part(_all_but_last, own=False)),
    ("first-view-only", _part(_first_view, own=False)),
)
"""What may stand in place of the sum."""


def additions(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    """Other ways in which rows become one number, for a loss with rows."""
    if not observations or not observations[0].probe.loss.has_rows:
        return
    options = {"mean": MEANS, "sum": SUMS}.get(observations[0].probe.reduction, ())
    batches: dict[int, Batch | None] = {}
    for id, weights in options:
        yield Hypothesis(id, _added(weights, batches))


def _added(weights: Weights, batches: dict[int, Batch | None]) -> Callable[[Probe], Any]:
    def expected(probe: Probe) -> Any:
        if id(probe) not in batches:
            batches[id(probe)] = _batch(probe)
        batch = batches[id(probe)]
        if batch is None:
            return None
        share = weights(batch)
        if share is None:
            # Nothing to leave out here, such as no row that is 0.
            return probe.value, probe.grads
        _, grads = LossFunction(probe.loss).value_and_grad(**probe.inputs, reduction="none", cotangent=share)
        return float(np.sum(share * batch.rows)), {name: grads[name] for name in probe.grads}

    return expected


def _batch(probe: Probe) -> Batch | None:
    """None with weighted anchors, whose rows hold their weights already."""
    if probe.inputs.get("anchor_weights") is not None:
        return None
    try:
        rows = np.asarray(LossFunction(probe.loss)(**probe.inputs, reduction="none"))
    except InputError:
        return None
    total, mean = float(np.sum(rows)), float(probe.value)
    whole = probe.reduction == "mean" and mean != 0
    found = temperature_scalar(probe)
    largest = max(1.0, found[1] ** INVERSE_TEMPERATURES[found[0]]) if found else 1.0
    floor = FORMATS[probe.dtype].storage.u * largest
    return Batch(rows, float(round(total / mean)) if whole else float(rows.size), samples(probe), floor)


def departing_rows(observations: Sequence[Observation]) -> str:
    """Which rows depart under ``reduction="none"``: a sentence, empty unless it is the same part on all cases."""
    found = set()
    for observation in usable(observations):
        gap = gaps(observation)[VALUE]
        if gap.got.ndim == 0 or gap.right:
            continue
        found.add(named_part(~(np.abs(gap.got - gap.want) <= gap.bound), samples(observation.probe)))
    return f"only {found.pop()} departs" if len(found) == 1 and "" not in found else ""


def named_part(departs: Any, n: int) -> str:
    """The name of a part of the rows: ``the last row``, ``the second view``; empty for anything else."""
    departs = np.asarray(departs)
    flat, size = departs.ravel(), departs.size
    if flat.all() or not flat.any():
        return ""
    place = np.arange(size)
    parts = {"the last row": place == size - 1, "the first row": place == 0}
    halves = "direction" if departs.ndim == 2 and departs.shape[0] == 2 else "view" if size == 2 * n else ""
    if halves:
        parts |= {f"the first {halves}": place < size // 2, f"the second {halves}": place >= size // 2}
    for words, part in parts.items():
        if np.array_equal(flat, part):
            return words
    first, last = int(np.flatnonzero(flat)[0]), int(np.flatnonzero(flat)[-1])
    return f"the block of rows {first} to {last}" if flat[first : last + 1].all() and last > first else ""


def rows_of(probe: Probe, name: str) -> Any:
    """The input as (rows, D) where it is an array of embedding rows, else None."""
    declared = next((p for p in probe.loss.parameters if p.name == name), None)
    x = np.asarray(probe.inputs.get(name))
    return x.reshape(-1, x.shape[-1]) if isinstance(declared, Array) and x.ndim > 1 else None
