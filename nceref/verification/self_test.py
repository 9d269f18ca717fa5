"""The verifier's test of itself: wrong answers, made from the right one, that every run must reject.

They take the same path as the answers of the target. A wrong answer that the executed cases could see, and that passes,
means that the checker is broken. One that no case could see means that a green result would say nothing: the run is
inconclusive.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.judge import judge
from nceref.cases.records import Observation, Outcome, Probe

Answer = tuple[Any, Mapping[str, Any]]
"""Value and gradients by input."""


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer made from the right one; `gradient_only` where its value is right."""

    name: str
    sentence: str
    answer: Callable[[Any, Mapping[str, Any]], Answer]
    gradient_only: bool = False


def _scaled(grads: Mapping[str, Any], factor: float) -> dict[str, Any]:
    return {name: factor * np.asarray(grad) for name, grad in grads.items()}


def _without_the_largest(grads: Mapping[str, Any]) -> dict[str, Any]:
    """The gradients with the largest entry of each set to 0."""
    out = {}
    for name, grad in grads.items():
        out[name] = np.array(grad, dtype=np.float64)
        out[name].flat[int(np.argmax(np.abs(out[name])))] = 0.0
    return out


WRONG_ANSWERS = (
    WrongAnswer("twice the loss", "value and gradients doubled", lambda v, g: (2 * np.asarray(v), _scaled(g, 2.0))),
    WrongAnswer(
        "a quarter more",
        "a value 25 % too large, with its gradient",
        lambda v, g: (1.25 * np.asarray(v), _scaled(g, 1.25)),
    ),
    WrongAnswer("half the gradient", "a right value with half its gradient", lambda v, g: (v, _scaled(g, 0.5)), True),
    WrongAnswer(
        "a missing entry",
        "a right value, and gradients without their largest entry",
        lambda v, g: (v, _without_the_largest(g)),
        True,
    ),
    WrongAnswer("a NaN", "a value that is not a number", lambda v, g: (np.nan * np.asarray(v), g)),
)


@dataclass(frozen=True)
class SelfTestTrial:
    """The result of one wrong answer.

    Its `result` is ``caught``, ``survived``, ``unseen`` (no case could have seen it), or ``lost``: the process of the
    target did not hand it on, for the reason `why`.
    """

    wrong_answer: WrongAnswer
    result: str
    case: str
    why: str = ""

    def record(self, run: str) -> dict[str, str]:
        """The trial as plain data, with the name of its run."""
        wrong = self.wrong_answer
        return {
            "wrong_answer": wrong.name,
            "sentence": wrong.sentence,
            "result": self.result,
            "case": self.case,
            "run": run,
            "why": self.why,
        }


def run_self_test(
    observations: Iterable[Observation],
    run: Callable[[Probe, Answer], Outcome],
    wrong_answers: Iterable[WrongAnswer] = WRONG_ANSWERS,
) -> tuple[SelfTestTrial, ...]:
    """Judge each wrong answer on the first case that can distinguish it from the right one.

    Where the target has no gradients in `observations`, no wrong gradient is tried. `run` gives the outcome of a
    program with this answer, through the arrays of the target's framework.
    """
    judged = [o for o in observations if not o.probe.skip and not o.outcome.trouble]
    with_gradients = any(o.probe.grads and o.outcome.grads for o in judged)
    return tuple(_trial(wrong, judged, run) for wrong in wrong_answers if with_gradients or not wrong.gradient_only)


def _trial(wrong: WrongAnswer, judged: list[Observation], run: Callable[[Probe, Answer], Outcome]) -> SelfTestTrial:
    for observation in judged:
        probe = observation.probe
        answer = wrong.answer(probe.value, probe.grads)
        # Where the bounds are wider than the change, a wrong answer passes by right, and that proves nothing.
        if _visible(observation, *answer):
            outcome = run(probe, answer)
            if outcome.trouble:
                return SelfTestTrial(wrong, "lost", probe.id, outcome.sentence)
            results = judge(Observation(probe, outcome))
            caught = any(result.status == "fail" for result in results)
            return SelfTestTrial(wrong, "caught" if caught else "survived", probe.id)
    return SelfTestTrial(wrong, "unseen", "")


def _visible(observation: Observation, value: Any, grads: Mapping[str, Any]) -> bool:
    """Whether an answer is further from the reference than the bound, in anything that is judged here."""
    probe, outcome = observation.probe, observation.outcome
    if probe.bounds is None:
        return False
    if _apart(value, probe.value, probe.bounds.value):
        return True
    judged = [name for name in grads if name in outcome.grads and name not in outcome.unjudged]
    return any(_apart(grads[n], probe.grads[n], probe.bounds.grads[n]) for n in judged if n in probe.grads)


def _apart(actual: Any, expected: Any, bound: Any) -> bool:
    gap = np.abs(np.asarray(actual, dtype=np.float64) - np.asarray(expected, dtype=np.float64))
    # Written so that NaN is apart.
    return bool(np.any(~(gap <= np.asarray(bound))))
