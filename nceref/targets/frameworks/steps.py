"""One request as a call for each micro-batch, in the order of a training loop with gradient accumulation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.targets.frameworks.call import Answer, CallRequest
from nceref.targets.frameworks.framework import Reply
from nceref.targets.target import Deferred

Pair = tuple[Any, Mapping[str, Any]]
"""Value and gradients by input."""
ONE_CALL = (0, 1)
STEP: ContextVar[tuple[int, int]] = ContextVar("step", default=ONE_CALL)
"""The step that a target is called in, from 0 on, and the number of steps; after an error, those of the error."""
COUNTS = (
    "accumulation_steps",
    "gradient_accumulation_steps",
    "grad_accum_steps",
    "accum_steps",
    "accumulate_grad_batches",
    "accum_iter",
    "accum_freq",
)
"""Parameters of a target that take the number of steps, as training loops call it."""


def number_of_steps() -> dict[str, Any]:
    """The number of steps, for a target that takes it, under each of its names."""
    return dict.fromkeys(COUNTS, Deferred(lambda: STEP.get()[1]))


def rows_by_share(count: int, shares: Sequence[int]) -> tuple[Any, ...]:
    """Indices of the rows for each share, consecutive ones; `count` is a multiple of the sum of the shares."""
    ends = np.cumsum(shares) * (count // sum(shares))
    return tuple(np.split(np.arange(count), ends[:-1]))


def in_steps(request: CallRequest, call: Callable[[CallRequest], Answer]) -> Answer:
    """The answer to a request: that of its one call, or those of all steps as one."""
    if not request.shares:
        return call(request)
    answers = []
    for step, part in enumerate(_parts(request)):
        STEP.set((step, len(request.shares)))
        answers.append(call(part))
    STEP.set(ONE_CALL)
    unjudged = {name: why for each in answers for name, why in each.unjudged.items()}
    remarks = {id: words for each in answers for id, words in each.remarks.items()}
    # A gradient that one step lacks is no sum over the steps.
    names = [n for n in answers[0].grads if all(n in each.grads for each in answers) and n not in unjudged]
    value, grads = joined_answer([(each.value, {n: each.grads[n] for n in names}) for each in answers], request)
    return Answer(value, grads, unjudged, remarks)


def _parts(request: CallRequest) -> Iterator[CallRequest]:
    """The request of each step."""
    for own in _rows(request):
        # A table of samples by samples has those of the step along both axes.
        cut = {n: request.inputs[n][np.ix_(*[own] * axes)] for n, axes in request.split.items()}
        yield replace(request, inputs={**request.inputs, **cut}, shares=(), split={})


def _rows(request: CallRequest) -> tuple[Any, ...]:
    return rows_by_share(max((len(request.inputs[name]) for name in request.split), default=0), request.shares)


def joined_answer(each: Sequence[Pair], request: CallRequest) -> Pair:
    """Values and gradients of all steps in one: those of the rows one below the other, others with an axis of steps."""
    joins = {n: np.concatenate if n in request.split else np.stack for n in each[0][1]}
    grads = {n: join([grads[n] for _, grads in each]) for n, join in joins.items()}
    return np.array([value for value, _ in each], dtype=np.float64), grads


def answers_of_steps(joined: Pair, request: CallRequest) -> list[Pair]:
    """Value and gradients of each step, out of those of `joined_answer`."""
    value, grads = joined
    return [
        (value[step], {n: g[own] if n in request.split else g[step] for n, g in grads.items()})
        for step, own in enumerate(_rows(request))
    ]


def of_step(known: Pair, request: CallRequest) -> Reply:
    """The part of a known answer that belongs to the step in which it is asked for."""
    answers = answers_of_steps(known, request)
    return lambda inputs: answers[STEP.get()[0]]
