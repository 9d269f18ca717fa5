"""Ranks of JAX, which are devices of one process: one request has the rows of all, one outcome what all answered."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.cases.records import Outcome, Probe
from nceref.errors import InputError
from nceref.targets.frameworks.call import CallRequest, call_request
from nceref.targets.ranks.contract import Contract

AXIS = "batch"


def axis_of(contract: Contract) -> str:
    """The name that the target has for the axis of the devices."""
    return contract.axis or AXIS


def check(contract: Contract) -> None:
    """Refuse shards of several sizes: an array is divided evenly among devices."""
    if len(set(contract.shares)) > 1:
        shards = ",".join(map(str, contract.shards))
        msg = f"`shards` must be equal for a target of JAX, which divides arrays evenly, got {shards}; leave it out"
        raise InputError(msg)


def joined_request(probe: Probe, contract: Contract) -> CallRequest:
    """The requests of all ranks for the joined case in one, whose inputs have a first axis of the devices."""
    each = [call_request(contract.shard(probe, rank)) for rank in range(contract.world_size)]
    first = each[0]
    befores = [request.before for request in each if request.before is not None]
    return replace(
        first,
        inputs=_stacked([request.inputs for request in each], first.scalars),
        before=_stacked(befores, first.scalars) if befores else None,
        rooms={n: np.max(room) for n, room in first.rooms.items()},
        devices=contract.world_size,
        axis=axis_of(contract),
    )


def _stacked(each: Sequence[Mapping[str, Any]], scalars: frozenset[str]) -> dict[str, Any]:
    """Arrays and differentiable scalars of all; words and other numbers are those of the first."""
    arrays = {n for n, x in each[0].items() if isinstance(x, np.ndarray) or n in scalars}
    return {n: np.stack([inputs[n] for inputs in each]) if n in arrays else x for n, x in each[0].items()}


def joined_answer(parts: Sequence[tuple[Any, Mapping[str, Any]]]) -> tuple[Any, dict[str, Any]]:
    """Known answers of all ranks in one, with a first axis of the devices."""
    grads = {n: np.stack([grads[n] for _, grads in parts]) for n in parts[0][1]}
    return np.array([value for value, _ in parts], dtype=np.float64), grads


def outcomes_of(outcome: Outcome) -> list[Outcome]:
    """The outcome of each rank, taken out of the one of all devices."""
    return [
        replace(outcome, value=float(value), grads={n: g[rank] for n, g in outcome.grads.items()})
        for rank, value in enumerate(outcome.value)
    ]
