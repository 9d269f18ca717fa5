"""Mutants of the reference that every run pushes through the path of the target, to prove that it can fail.

A canary that the executed cases could see, and that passes, means that the checker is broken. One that no case could
see means that a green result would say nothing: the run is inconclusive.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.verification.judge import judge
from nceref.verification.records import Observation, Outcome, Probe

Answer = tuple[Any, Mapping[str, Any]]


@dataclass(frozen=True)
class Canary:
    """A wrong answer made from the right one; `gradient` says that only the gradient is wrong."""

    name: str
    sentence: str
    answer: Callable[[Any, Mapping[str, Any]], Answer]
    gradient: bool = False


def _scaled(grads: Mapping[str, Any], factor: float) -> dict[str, Any]:
    return {name: factor * np.asarray(grad) for name, grad in grads.items()}


def _without_the_largest(grads: Mapping[str, Any]) -> dict[str, Any]:
    """The gradients with the largest entry of each set to 0."""
    out = {}
    for name, grad in grads.items():
        out[name] = np.array(grad, dtype=np.float64)
        out[name].flat[int(np.argmax(np.abs(out[name])))] = 0.0
    return out


CANARIES = (
    Canary("twice the loss", "value and gradients doubled", lambda v, g: (2 * np.asarray(v), _scaled(g, 2.0))),
    Canary("a quarter more", "a value 25 % too large, with its gradient",
           lambda v, g: (1.25 * np.asarray(v), _scaled(g, 1.25))),
    Canary("half the gradient", "a right value with half its gradient", lambda v, g: (v, _scaled(g, 0.5)), True),
    Canary("a missing entry", "a right value, and gradients without their largest entry",
           lambda v, g: (v, _without_the_largest(g)), True),
    Canary("a NaN", "a value that is not a number", lambda v, g: (np.nan * np.asarray(v), g)),
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What became of one canary: ``caught``, ``survived`` or ``unseen`` (no case could have told)."""

    canary: Canary
    result: str
    case: str


def fly(
    observations: Iterable[Observation],
    run: Callable[[Probe, Answer], Outcome],
    canaries: Iterable[Canary] = CANARIES,
) -> tuple[Trial, ...]:
    """Push each canary through `run` on the first judged case that should tell it from the right answer."""
    judged = [o for o in observations if not o.probe.skip and not o.outcome.trouble]
    with_gradients = any(o.probe.grads and o.outcome.grads for o in judged)
    chosen = (c for c in canaries if with_gradients or not c.gradient)
    return tuple(_trial(canary, judged, run) for canary in chosen)


def _trial(canary: Canary, judged: list[Observation], run: Callable[[Probe, Answer], Outcome]) -> Trial:
    for observation in judged:
        probe = observation.probe
        answer = canary.answer(probe.value, probe.grads)
        if not visible(observation, *answer):
            continue
        results = judge(Observation(probe, run(probe, answer)))
        caught = any(result.status == "fail" for result in results)
        return Trial(canary, "caught" if caught else "survived", probe.id)
    return Trial(canary, "unseen", "")


def visible(observation: Observation, value: Any, grads: Mapping[str, Any]) -> bool:
    """Whether an answer is further from the reference than the bound, in anything that is judged here."""
    probe, outcome = observation.probe, observation.outcome
    if probe.bounds is None:
        return False
    if _apart(value, probe.value, probe.bounds.value):
        return True
    judged = [name for name in grads if name in outcome.grads and name not in outcome.unjudged]
    return any(_apart(grads[n], probe.grads[n], probe.bounds.grads[n]) for n in judged if n in probe.grads)


def _apart(got: Any, want: Any, bound: Any) -> bool:
    gap = np.abs(np.asarray(got, dtype=np.float64) - np.asarray(want, dtype=np.float64))
    return bool(np.any(~(gap <= np.asarray(bound))))
