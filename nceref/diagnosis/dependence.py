"""What the value of a target depends on, by calls in which one part of the inputs is replaced at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Probe
from nceref.diagnosis.fresh import FreshCalls, judged
from nceref.diagnosis.gaps import VALUE, gaps
from nceref.spec import Array, Labels, Scalar
from nceref.tolerance.implementation import FORMATS

Inputs = Mapping[str, Any]
_SAME = 8.0
"""Units in the last place by which a value may move that does not depend on what was replaced: sums in other orders."""
_CHANGES = 4.0
"""Bounds by which the reference must move, for it to depend on what was replaced."""


@dataclass(frozen=True)
class Ignored:
    """A part of the inputs that the value does not depend on, though the reference does.

    Attributes
    ----------
    letter : str
        ``N`` for rows, ``D`` for features.
    kept, size : int
        The value depends on the first `kept` of `size`.
    """

    letter: str
    kept: int
    size: int


def axes(probe: Probe, letter: str) -> dict[str, tuple[int, ...]]:
    """The axes with a letter of a shape, by name of the array that is given.

    Result: without arrays that have no such axis.
    """
    out = {}
    for p in probe.loss.parameters:
        x = probe.inputs.get(p.name)
        if isinstance(p, Array | Labels) and isinstance(x, np.ndarray):
            alternative = getattr(p, "alternative", None)
            letters = alternative if alternative is not None and len(alternative) == x.ndim else p.shape
            places = tuple(k for k, own in enumerate(letters) if own == letter)
            if places:
                out[p.name] = places
    return out


def size_of(probe: Probe, letter: str) -> int:
    """The size that a letter stands for; 0 where no array has it."""
    return next((int(np.shape(probe.inputs[name])[places[0]]) for name, places in axes(probe, letter).items()), 0)


def shortened(probe: Probe, letter: str, keep: Any) -> dict[str, Any]:
    """The inputs with some of the rows, or features, only."""
    out = dict(probe.inputs)
    for name, places in axes(probe, letter).items():
        for place in places:
            out[name] = out[name][(slice(None),) * place + (keep,)]
    return out


def ignored_tail(observation: Observation, letter: str, calls: FreshCalls) -> Ignored | None:
    """The rows or features at the end that the value does not depend on, by bisection; None where there are none."""
    probe, size = observation.probe, size_of(observation.probe, letter)
    moved = [name for name in axes(probe, letter) if _is_embedding(probe, name)]
    if size < 2 or not moved:
        return None

    def depends(kept: int) -> bool | None:
        return _depends(observation, _replaced(probe, moved, letter, kept), calls)

    # The last one alone: most programs depend on it, and one call shows that.
    if depends(size - 1) is not False or not _reference_depends(
        probe, _replaced(probe, moved, letter, size - 1), calls
    ):
        return None
    low, high = 0, size - 1
    # Down to the first place from which on nothing matters.
    while low < high:
        middle = (low + high) // 2
        here = depends(middle)
        if here is None:
            return None
        low, high = (middle + 1, high) if here else (low, middle)
    return Ignored(letter, low, size) if low > 0 else None


def _is_embedding(probe: Probe, name: str) -> bool:
    declared = next(p for p in probe.loss.parameters if p.name == name)
    return isinstance(declared, Array) and declared.like in ("embedding", "vector", "center")


def _replaced(probe: Probe, names: Sequence[str], letter: str, first: int) -> dict[str, Any]:
    """The inputs with others in the place of all from `first` on."""
    rng, out = np.random.default_rng(first + 1), dict(probe.inputs)
    for name in names:
        place = axes(probe, letter)[name][0]
        x = np.moveaxis(np.array(out[name]), place, 0)
        x[first:] = -x[first:] * (1 + 0.5 * rng.random(x[first:].shape)) + 0.1 * rng.standard_normal(x[first:].shape)
        out[name] = np.moveaxis(x, 0, place)
    return out


def _depends(observation: Observation, inputs: Inputs, calls: FreshCalls) -> bool | None:
    """Whether the value moves with the inputs; None without an answer."""
    moved = calls.outcome(replace(observation.probe, inputs=inputs, id="replaced", mode="no-grad"))
    if moved is None or moved.trouble or np.shape(moved.value) != np.shape(observation.outcome.value):
        return None
    was, now = np.asarray(observation.outcome.value), np.asarray(moved.value)
    slack = _SAME * FORMATS[observation.probe.dtype].storage.u * np.maximum(1.0, np.abs(was))
    return bool(np.any(~(np.abs(now - was) <= slack)))


def _reference_depends(probe: Probe, inputs: Inputs, calls: FreshCalls) -> bool:
    there = judged(calls.like, inputs, "replaced") if calls.like is not None else None
    if there is None or there.bounds is None or probe.bounds is None:
        return False
    room = np.max(probe.bounds.value) + np.max(there.bounds.value)
    return bool(np.any(np.abs(np.asarray(there.value) - np.asarray(probe.value)) > _CHANGES * room))


def ignored_inputs(observation: Observation, calls: FreshCalls) -> list[str]:
    """Inputs that can be replaced as a whole without a change of the value, where the reference changes."""
    probe, out = observation.probe, []
    for name, inputs in _one_replaced(probe, calls):
        if _reference_depends(probe, inputs, calls) and _depends(observation, inputs, calls) is False:
            out.append(name)
    return out


def _one_replaced(probe: Probe, calls: FreshCalls) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each input that varies, replaced by another."""
    assert calls.like is not None
    rng = np.random.default_rng(3)
    vary = {name for name, *_ in calls.like.ranges}
    for p in probe.loss.parameters:
        x = probe.inputs.get(p.name)
        if isinstance(p, Labels) and isinstance(x, np.ndarray) and len(x) > 2:
            yield p.name, {**probe.inputs, p.name: np.roll(x, 1)}
        elif isinstance(p, Scalar) and p.name in vary and isinstance(x, float):
            yield p.name, {**probe.inputs, p.name: 0.8125 * x}
        elif isinstance(p, Array) and isinstance(x, np.ndarray) and p.like in ("embedding", "vector", "center"):
            yield p.name, {**probe.inputs, p.name: rng.permutation(-x, axis=0) + 0.2 * rng.standard_normal(x.shape)}
        elif isinstance(p, Array) and isinstance(x, np.ndarray) and len(x) > 1:
            yield p.name, {**probe.inputs, p.name: np.roll(x, 1, axis=0)}


def bisected(
    low: Any, high: Any, middle: Callable[[Any, Any], Any], fails: Callable[[Any], bool | None]
) -> tuple[Any, Any] | None:
    """The point where a target begins to fail between a setting at which it is right and one at which it fails.

    `low` and `high`: right, and wrong. `middle`: a setting between two; None where they are next to each other.
    `fails`: whether the target fails at a setting; None without an answer. Result: the last that is right and the first
    that is wrong; None where a call has no answer.
    """
    while (there := middle(low, high)) is not None:
        wrong = fails(there)
        if wrong is None:
            return None
        low, high = (low, there) if wrong else (there, high)
    return low, high


def is_wrong(observation: Observation) -> bool:
    """Whether the value is beyond its bound."""
    return not gaps(observation)[VALUE].right
