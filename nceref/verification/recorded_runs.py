"""Recorded answers that are explained together: corpora of vectors have cases of several settings."""

from dataclasses import replace
from typing import Any

import numpy as np

from nceref.cases.records import Observation
from nceref.verification.target_run import TargetRun


def of_one_kind(failing: TargetRun) -> TargetRun:
    """The cases of the first settings with which recorded answers fail: with others, something else may be wrong."""
    wrong = {r.case for r in failing.results if r.status == "fail"}
    kinds: dict[Any, list[Observation]] = {}
    for observation in failing.observations:
        kinds.setdefault(_kind(observation), []).append(observation)
    first = next((each for each in kinds.values() if any(o.probe.id in wrong for o in each)), failing.observations)
    ids = {o.probe.id for o in first}
    results = tuple(r for r in failing.results if r.case in ids)
    return replace(failing, observations=tuple(map(_without_part, first)), results=results)


def _without_part(observation: Observation) -> Observation:
    """The observation without gradients of which some rows are not judged: patterns need all rows."""
    probe, outcome = observation.probe, observation.outcome
    rooms = probe.bounds.grads if probe.bounds is not None else {}
    kept = {name: g for name, g in outcome.grads.items() if np.all(np.isfinite(rooms.get(name, 0.0)))}
    return (
        observation if len(kept) == len(outcome.grads) else replace(observation, outcome=replace(outcome, grads=kept))
    )


def _kind(observation: Observation) -> Any:
    """The settings of a case, and which arrays it has: the key that cases of one kind share."""
    given = ((name, x) for name, x in observation.probe.inputs.items() if x is not None)
    return frozenset((name, x if isinstance(x, str) else np.ndim(x)) for name, x in given)
