"""The dense forms on the inputs of a probe: values under any knobs, and gradients by the complex step."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from nceref import registry
from nceref.inputs import bind
from nceref.scene import Dense, Knobs, Member, Rows
from nceref.spec import Loss
from nceref.stages import reduced
from nceref.verification.records import Probe

STEP = 1e-30
"""Of the complex step; so small that only the first order is left."""


@cache
def member(name: str) -> Member:
    """The dense form of a loss.

    Raises
    ------
    KeyError
        If there is none.
    """
    return _members()[name]


@cache
def _members() -> Mapping[str, Member]:
    found = registry.discover("nceref.dense", "DENSE", Dense).values()
    return {loss: form for dense in found for loss, form in dense.losses.items()}


def prepared(loss: Loss, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The checked inputs of a dense form."""
    given = bind(loss, (), dict(inputs))
    embeddings = given.get("embeddings")
    return {**given, "views": embeddings is not None and embeddings.ndim == 3}


def evaluated(form: Member, inputs: Mapping[str, Any], knobs: Knobs) -> Rows:
    """Row losses under the knobs."""
    with np.errstate(all="ignore"):
        return form.rows(form.arrange(inputs, knobs), knobs)


def value(probe: Probe, knobs: Knobs) -> Any:
    """Value of the loss of a probe under the knobs; rows under the reduction ``none``."""
    form = member(probe.loss.name)
    found = evaluated(form, prepared(probe.loss, probe.inputs), knobs)
    with np.errstate(all="ignore"):
        return reduced(found, knobs, probe.reduction)


def gradients(
    probe: Probe, knobs: Knobs, names: tuple[str, ...], outer: Callable[[Mapping[str, Any]], Any] | None = None
) -> dict[str, Any]:
    """Gradients by the named inputs, every entry perturbed at once in a batch.

    Parameters
    ----------
    probe : Probe
        Its inputs and its reduction; under ``none`` the gradients are those of the sum of the rows.
    knobs : mapping
        Conventions.
    names : tuple of str
        Float arrays and scalars.
    outer : callable, optional
        ``outer(inputs)``: what multiplies the result.
    """
    form, inputs = member(probe.loss.name), prepared(probe.loss, probe.inputs)
    out = {}
    for name in names:
        x = np.asarray(inputs[name], dtype=np.float64)
        steps = np.eye(x.size).reshape(x.size, *x.shape) if x.ndim else np.ones((1, 1, 1))
        moved = {**inputs, name: x + 1j * STEP * steps}
        with np.errstate(all="ignore"):
            result = np.asarray(reduced(evaluated(form, moved, knobs), knobs, probe.reduction))
            result = np.sum(result, axis=-1) if probe.reduction == "none" else result
            result = result if outer is None else result.reshape(-1) * np.ravel(outer(moved))
        slopes = np.broadcast_to(np.imag(result).reshape(-1) / STEP, (x.size,))
        out[name] = slopes.reshape(x.shape) if x.ndim else float(slopes[0])
    return out
