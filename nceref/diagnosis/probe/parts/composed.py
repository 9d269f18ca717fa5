"""The formula of a target as the reference with some of its parts done otherwise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.diagnosis.probe.calls import Calls, NoNumber, drawn_as_trained, drawn_together, random_rows
from nceref.diagnosis.probe.parts.formula import Composition, lines
from nceref.diagnosis.probe.parts.layouts import parts, works
from nceref.diagnosis.probe.parts.search import TargetCall, effort, explained
from nceref.diagnosis.probe.parts.work import LossPart
from nceref.diagnosis.probe.recover import LENGTHS, SHARES, SIZES, TEMPERATURES, scalars
from nceref.diagnosis.probe.sheet import Sheet, sheet_or_inputs
from nceref.errors import InputError
from nceref.spec import Loss

LARGE = (
    {"N": 70, "D": 9, "E": 9, "C": 4, "M": 7, "K": 7, "V": 2},
    {"N": 9, "D": 80, "E": 80, "C": 5, "M": 70, "K": 70, "V": 2},
    {"N": 12, "D": 9, "E": 9, "C": 24, "M": 5, "K": 6, "V": 3},
    {"N": 10, "D": 6, "E": 6, "C": 6, "M": 5, "K": 6, "V": 2},
)
"""Where small cases are right, the last of them at a small temperature."""
SHARP = 0.04
MORE = (
    {"N": 24, "D": 7, "E": 7, "C": 6, "M": 9, "K": 9, "V": 2},
    {"N": 21, "D": 6, "E": 6, "C": 5, "M": 8, "K": 8, "V": 2},
)
"""More rows than `SIZES` has."""
BEYOND = (
    {"N": 129, "D": 5, "E": 5, "C": 40, "M": 5, "K": 6, "V": 2},
    {"N": 10, "D": 150, "E": 150, "C": 5, "M": 7, "K": 130, "V": 2},
)
"""Above them, what holds up to a size is told from what holds of every multiple of it."""
TRAINED = (
    {"N": 6, "D": 8, "E": 8, "C": 4, "M": 5, "K": 6, "V": 2},
    {"N": 9, "D": 6, "E": 6, "C": 5, "M": 6, "K": 7, "V": 2},
)
"""With rows that belong together near each other, at a temperature that is not warm."""
COOL = 0.15
EFFORT, EFFORT_OF_LARGE = 300_000.0, 60_000.0
"""Evaluations of a part for all searches for one target (see `TargetCall`); on larger cases, where most are right."""
_DEPARTS, _CHOICES, _SEARCHES = 100.0, 8, 2
"""How much farther than rounding the reference must be; how many formulas are tried on fresh calls, and of
how many variants of the loss."""

Explained = tuple[Composition, Mapping[str, Any], tuple[str, str, tuple[str, ...]]]


def compositions(calls: Calls, loss: Loss, settings: Mapping[str, Any]) -> Iterator[Explained]:
    """Formulas that predict the calls they were looked for on, with the settings that they were called with.

    `settings`: what is set in every call. `settings`: with what the variant of the loss sets. `lines`: the target's
    formula, the reference's, and what differs.
    """
    searched = 0
    usual, large = (*SIZES, *MORE, *TRAINED), (*LARGE, *MORE, *SIZES)
    for sizes, left in ((usual, EFFORT), (large, EFFORT_OF_LARGE)):
        for given in _variants(loss, settings):
            try:
                made, batches = _batches(calls, loss, given, sizes)
            except (NoNumber, InputError):
                continue
            # What no case shows is looked for on larger ones.
            if made is None or not _departs(made, batches[0]):
                continue
            for number, choice in enumerate(explained(made, batches, left)):
                yield Composition(calls.reduction, choice), given, lines(made, choice)
                if number + 1 >= _CHOICES:
                    break
            left -= effort(batches)
            if left < 0:
                calls.limit = calls.limit or f"{EFFORT:,.0f} evaluations of parts of the loss"
            searched += 1
            if searched == _SEARCHES:
                return


def _variants(loss: Loss, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for variant in loss.variants:
        given = {**variant, **settings}
        if not any(str(given) == str(x) for x in seen):
            seen.append(given)
            yield given


def _batches(
    calls: Calls, loss: Loss, settings: Mapping[str, Any], sizes: Sequence[Mapping[str, int]]
) -> tuple[tuple[LossPart, ...] | None, list[TargetCall]]:
    """The parts and a batch for each size, one that the reference fails first; no parts where they do not fit."""
    rng = np.random.default_rng(0)
    made: tuple[LossPart, ...] | None = None
    batches = []
    for number, size in enumerate(sizes):
        k = number % len(TEMPERATURES)
        warm = SHARP if size is LARGE[-1] else COOL if size in TRAINED else TEMPERATURES[k]
        one = sheet_or_inputs(loss, settings, size, scalars(loss, warm, SHARES[k]), 10 + number)
        batch, made = _batch(calls, one, rng, _drawn(size, number))
        if batch is None:
            return None, []
        batches.append(batch)
    assert made is not None
    batches.sort(key=lambda b: (not _departs(made, b), b.works[0].own.size))
    return made, batches


def _drawn(size: Mapping[str, int], number: int) -> Callable[[Sheet, Any, Any], Any]:
    if size in TRAINED:
        return drawn_as_trained
    return drawn_together if size in MORE or number % 2 else (lambda one, x, rng: x)


def _batch(
    calls: Calls, one: Sheet, rng: Any, drawn: Callable[[Sheet, Any, Any], Any]
) -> tuple[TargetCall | None, tuple[LossPart, ...] | None]:
    x = random_rows(one, int(one.symbols.get("D", 0)), rng, LENGTHS)
    x = calls.rows(drawn(one, x, rng))
    inputs = one.call(x)
    work = works(one.loss.name, inputs)
    if work is None:
        return None, None
    y = calls.value(one, x)
    return TargetCall(work, y, calls.noise(y), one.quantities), parts(one.loss.name, inputs, calls.reduction)


def _departs(made: Sequence[LossPart], batch: TargetCall) -> bool:
    return abs(batch.tried(made, {}) - batch.y) > _DEPARTS * batch.room
