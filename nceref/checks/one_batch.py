"""How far one batch of random rows is off chance, the mean over all of them: a standard deviation, drawn."""

import math
from dataclasses import replace
from typing import Any

from nceref.checks.expect import ExpectedReadings
from nceref.checks.random_rows import points
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.spec import Array, Choice, Labels, Loss, Scalar

_BATCHES, _ENTRIES = (64, 1024), 1 << 16
"""Fewest and most batches, and entries of all: the deviation is off by a tenth, of small batches by a fiftieth."""
_ROWS, _MOST_SHARED = 128, 1024
_SIZES = {"queue": "queue", "negatives": "hard_negatives"}
"""Arrays that a batch may lack, each with the setting that counts its rows."""


def with_spread(expected: ExpectedReadings) -> ExpectedReadings:
    """The readings, with the standard deviation of one batch at chance where it can be drawn.

    That takes the samples of a batch, `n`, and `dim`. A batch of more than 128 rows is drawn smaller. Its deviation is
    multiplied by the square root of the ratio, as that of the mean of the positives; what pairs of rows add falls
    faster. Where all rows share class weights, centers or a queue, that of the smaller batch stands: more rows lower
    it, but not in that ratio.
    """
    if not expected.normalized or not get_loss(expected.address).declaration.has_rows:
        return expected
    readings = list(expected.readings)
    for i, reading in enumerate(readings):
        if reading.situation == "chance" and reading.value is not None and reading.spread is None:
            readings[i] = replace(reading, spread=_spread(expected))
    return replace(expected, readings=tuple(readings))


def _spread(expected: ExpectedReadings) -> float | None:
    """None where a size is missing, the positives are no labels, or a batch is too large."""
    import numpy as np

    loss, settings = get_loss(expected.address), {k: v for k, v in expected.settings.items() if v is not None}
    if not {"n", "dim"} <= settings.keys() or "positives" in settings:
        return None
    if not _can_be_drawn(loss.declaration, settings):
        return None
    counts = _counts(loss.declaration, settings)
    others = [count for letter, count in counts if letter != "N"]
    each = sum(count for letter, count in counts if letter == "N")
    n = min(settings["n"], max(1, _ROWS // each))
    if "classes" in settings and n < settings["n"] and not others:
        n -= n % settings["classes"]
    if n < 1 or sum(others) > _MOST_SHARED:
        return None
    rng = np.random.default_rng(0)
    try:
        batches = min(max(_BATCHES[0], _ENTRIES // (n * each * settings["dim"])), _BATCHES[1])
        values = [loss(**_batch(loss.declaration, {**settings, "n": n}, rng)) for _ in range(batches)]
    except InputError:
        # An anchor without a positive, or a number beyond the range.
        return None
    return float(np.std(values, ddof=1)) * (1.0 if others else math.sqrt(n / settings["n"]))


def _arrays(loss: Loss, settings: dict[str, Any]) -> list[Array]:
    """The arrays of rows that a batch has."""
    arrays = [p for p in loss.parameters if isinstance(p, Array) and p.like != "counts"]
    return [p for p in arrays if p.required or settings.get(_SIZES.get(p.name, ""))]


def _can_be_drawn(loss: Loss, settings: dict[str, Any]) -> bool:
    """Whether the batch is made of rows of which a size is known, as those of a loss of one's own need not be."""
    known = {("N", "D"), ("C", "D"), ("K", "D"), ("C", "E")}
    labels = any(isinstance(p, Labels) and (p.required or p.name == "labels") for p in loss.parameters)
    return all(p.shape in known for p in _arrays(loss, settings)) and ("classes" in settings or not labels)


def _counts(loss: Loss, settings: dict[str, Any]) -> list[tuple[str, int]]:
    """Rows of each of them, a sample for N."""
    each = {"N": settings.get("views", 1), "C": settings.get("classes", 0), "K": settings.get("queue", 0)}
    return [(p.shape[0], each[p.shape[0]]) for p in _arrays(loss, settings)]


def _batch(loss: Loss, settings: dict[str, Any], rng: Any) -> dict[str, Any]:
    """Arguments of the loss: independent uniform rows, balanced labels, centers 0, counts 1."""
    import numpy as np

    n = settings["n"] * settings.get("views", 1)
    letters = {"N": n, "C": settings.get("classes", 0), "K": settings.get("queue", 0)}
    arrays = _arrays(loss, settings)
    sizes = [letters[p.shape[0]] for p in arrays]
    rows = points(rng, 1, sum(sizes), settings["dim"])[0]
    out: dict[str, Any] = {}
    for array, drawn in zip(arrays, np.split(rows, np.cumsum(sizes)[:-1]), strict=True):
        out[array.name] = drawn if array.shape[1] == "D" else 0 * drawn
    for p in loss.parameters:
        if isinstance(p, Labels) and (p.name in ("labels", "target") or "queue" in out):
            each = settings["n"] if p.shape[0] == "N" else letters[p.shape[0]]
            out[p.name] = np.resize(np.arange(each) % settings["classes"], letters[p.shape[0]])
        elif isinstance(p, Array) and p.like == "counts":
            out[p.name] = np.ones(letters[p.shape[0]])
        elif isinstance(p, Scalar | Choice) and p.name in settings:
            out[p.name] = settings[p.name]
    return out
