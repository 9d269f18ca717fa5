"""The formula of a target as the reference with some of its parts done otherwise."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from nceref.diagnosis.dense.forms import batches, stages
from nceref.diagnosis.probe.calls import Calls, NoNumber, drawn_as_trained, drawn_together, random_rows
from nceref.diagnosis.probe.composition import Composition, Lines, lines
from nceref.diagnosis.probe.design import Design, design, scalars
from nceref.diagnosis.probe.search import Replacement, TargetCall, effort, one_change, several_changes
from nceref.errors import InputError
from nceref.spec import Loss

SIZES = (
    {"N": 5, "D": 16, "E": 16, "C": 3, "M": 3, "K": 4, "V": 2},
    {"N": 6, "D": 9, "E": 9, "C": 4, "M": 5, "K": 3, "V": 3},
    {"N": 4, "D": 11, "E": 11, "C": 3, "M": 4, "K": 6, "V": 4},
    {"N": 7, "D": 8, "E": 8, "C": 5, "M": 6, "K": 5, "V": 2},
    {"N": 8, "D": 10, "E": 10, "C": 4, "M": 2, "K": 7, "V": 3},
)
TEMPERATURES = (0.5, 0.6, 0.43, 0.7, 0.54)
SHARES = (0.5, 0.2, 0.8, 0.35, 0.65)
"""Where in their typical range other scalars are."""
LENGTHS = (0.6, 1.6)
LARGE = (
    {"N": 70, "D": 9, "E": 9, "C": 4, "M": 7, "K": 7, "V": 2},
    {"N": 9, "D": 80, "E": 80, "C": 5, "M": 70, "K": 70, "V": 2},
    {"N": 12, "D": 9, "E": 9, "C": 24, "M": 5, "K": 6, "V": 3},
    {"N": 10, "D": 6, "E": 6, "C": 6, "M": 5, "K": 6, "V": 2},
)
"""Where small cases are right, the last of them at a small temperature."""
SMALL_TEMPERATURE = 0.04
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
"""With rows that belong together near each other, at a temperature as in training."""
TRAINED_TEMPERATURE = 0.15
EFFORT, EFFORT_OF_LARGE = 300_000.0, 60_000.0
"""Evaluations of a part for all searches for one target (see `TargetCall`); on larger cases, where most are right."""
_DEPARTS, _CHOICES, _SEARCHES = 100.0, 8, 2
"""How much farther than rounding the reference must be; how many formulas are tried on fresh calls, and of
how many variants of the loss."""

Explained = tuple[Composition, Mapping[str, Any], Lines]


def compositions(calls: Calls, loss: Loss, settings: Mapping[str, Any]) -> tuple[Iterator[Explained], ...]:
    """Formulas that predict the calls they were looked for on, with the settings that they were called with.

    `settings`: what is set in every call. Result: those with one change, and then, of the same calls, those with
    several; each with what the variant of the loss sets and the lines of `formula.lines`.
    """
    searches: list[_Search] = []
    return _formulas(calls, _searches(calls, loss, settings, searches), one_change), _formulas(
        calls, searches, several_changes
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """Calls of one variant of a loss, and what is tried at most."""

    given: Mapping[str, Any]
    batches: Sequence[TargetCall]
    most: float


def _searches(calls: Calls, loss: Loss, settings: Mapping[str, Any], kept: list[_Search]) -> Iterator[_Search]:
    usual, large = (*SIZES, *MORE, *TRAINED), (*LARGE, *MORE, *SIZES)
    count = 0
    for sizes, most in ((usual, EFFORT), (large, EFFORT_OF_LARGE)):
        for given in _variants(loss, settings):
            try:
                batches = _batches(calls, loss, given, sizes)
            except (NoNumber, InputError):
                continue
            # What no case shows is looked for on larger ones.
            if batches and _departs(batches[0]):
                count += 1
                # A setting that changes no number, such as what becomes of anchors that no call has, shows nothing new.
                if _numbers(batches) not in [_numbers(one.batches) for one in kept]:
                    kept.append(_Search(given, batches, most))
                    yield kept[-1]
                if count == _SEARCHES:
                    return


def _numbers(batches: Sequence[TargetCall]) -> list[tuple[float, float]]:
    """Values of the target and of the reference."""
    return [(b.y, b.reference) for b in batches]


def _formulas(
    calls: Calls, searches: Iterable[_Search], how: Callable[..., Iterator[Replacement]]
) -> Iterator[Explained]:
    for one in searches:
        for choice in islice(how(one.batches, one.most), _CHOICES):
            yield Composition(calls.reduction, choice), one.given, lines(one.batches[0].stages, choice)
        if effort(one.batches) > one.most:
            calls.limit = calls.limit or f"{EFFORT:,.0f} evaluations of parts of the loss"


def _variants(loss: Loss, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for variant in loss.variants:
        given = {**variant, **settings}
        if not any(str(given) == str(x) for x in seen):
            seen.append(given)
            yield given


def _batches(
    calls: Calls, loss: Loss, settings: Mapping[str, Any], sizes: Sequence[Mapping[str, int]]
) -> list[TargetCall]:
    """A call of each size, one that the reference fails first; none where the loss has no parts."""
    rng = np.random.default_rng(0)
    batches = []
    for number, size in enumerate(sizes):
        k = number % len(TEMPERATURES)
        temperature = (
            SMALL_TEMPERATURE if size is LARGE[-1] else TRAINED_TEMPERATURE if size in TRAINED else TEMPERATURES[k]
        )
        one = design(loss, settings, size, scalars(loss, temperature, SHARES[k]), 10 + number)
        batch = _batch(calls, one, rng, _drawn(size, number))
        if batch is None:
            return []
        batches.append(batch)
    return sorted(batches, key=lambda b: (not _departs(b), b.directions[0].own.size))


def _drawn(size: Mapping[str, int], number: int) -> Callable[[Design, Any, Any], Any]:
    if size in TRAINED:
        return drawn_as_trained
    return drawn_together if size in MORE or number % 2 else (lambda one, x, rng: x)


def _batch(calls: Calls, one: Design, rng: Any, drawn: Callable[[Design, Any, Any], Any]) -> TargetCall | None:
    x = random_rows(one, int(one.symbols.get("D", 0)), rng, LENGTHS)
    x = calls.rows(drawn(one, x, rng))
    inputs = one.call(x)
    work = batches(one.loss, inputs)
    if work is None:
        return None
    y = calls.value(one, x)
    made = stages(one.loss, inputs, calls.reduction)
    return TargetCall(made, work, y, calls.noise(y), one.quantities)


def _departs(batch: TargetCall) -> bool:
    return abs(batch.reference - batch.y) > _DEPARTS * batch.room
