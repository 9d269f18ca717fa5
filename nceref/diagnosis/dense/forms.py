"""The dense forms on the inputs of a probe: values under any deviations, and gradients by the complex step."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from nceref import registry
from nceref.cases.records import Probe
from nceref.diagnosis.conventions import in_float32
from nceref.diagnosis.dense.batch import DenseFamily, DenseForm, DenseRows, Deviations
from nceref.diagnosis.dense.program import program_form
from nceref.diagnosis.dense.stages import reduced
from nceref.spec import Loss

STEP = 2.0**-60
"""Of the complex step: its square vanishes beside 1, over a squared temperature of 0.001 too."""


@cache
def form_of(loss: Loss) -> DenseForm:
    """The dense form of a loss, or its own program where it has none."""
    return _members()[loss.name] if is_dense(loss) else program_form(loss)


def is_dense(loss: Loss) -> bool:
    """Whether a loss has a dense form."""
    return loss.name in _members()


@cache
def _members() -> Mapping[str, DenseForm]:
    families = registry.discover("nceref.diagnosis.dense.losses", "DENSE", DenseFamily).values()
    return {loss: form for dense in families for loss, form in dense.losses.items()}


def prepared(probe: Probe) -> dict[str, Any]:
    """The checked inputs of a dense form.

    Result: arguments by name, and ``views``: whether the embeddings have an axis of views.
    """
    given = probe.bound.arguments
    embeddings = given.get("embeddings")
    return {**given, "views": embeddings is not None and embeddings.ndim == 3}


def substituted(inputs: Mapping[str, Any], deviations: Deviations) -> Mapping[str, Any]:
    """The inputs with another number in the place of a scalar that is rounded or ignored; ignored, it has no gradient.

    `deviations`: ``scalar-ignored`` holds the name and the number, ``scalar-in-float32`` the name.
    """
    rounded = deviations.get("scalar-in-float32")
    if rounded is not None:
        return {**inputs, rounded: in_float32(inputs[rounded])}
    if deviations.get("scalar-ignored") is None:
        return inputs
    name, number = deviations["scalar-ignored"]
    return {**inputs, name: number}


def evaluated(form: DenseForm, inputs: Mapping[str, Any], deviations: Deviations) -> DenseRows:
    """Row losses under the deviations.

    `inputs`: what `prepared` made of them. Result: what leaves the range is not finite; nothing is raised.
    """
    with np.errstate(all="ignore"):
        return form.rows(form.arrange(substituted(inputs, deviations), deviations), deviations)


def value(probe: Probe, deviations: Deviations) -> Any:
    """Value of the loss of a probe under the deviations; rows under the reduction ``none``.

    Result: real, without a bound: `CaseAnalysis` has one.
    """
    rows = evaluated(form_of(probe.loss), prepared(probe), deviations)
    with np.errstate(all="ignore"):
        return reduced(rows, deviations, probe.reduction)


def gradient(
    form: DenseForm,
    inputs: Mapping[str, Any],
    deviations: Deviations,
    name: str,
    reduction: str = "mean",
    outer: Callable[[Mapping[str, Any]], Any] | None = None,
) -> Any:
    """Gradient by one input, every entry perturbed at once in a batch.

    `form`: the dense form of the loss. `inputs`: what `prepared` made of its inputs. `deviations`: conventions. `name`:
    a float array or a scalar. `reduction`: under ``none`` the gradient is that of the sum of the rows. `outer`:
    ``outer(inputs)``: what multiplies the result. Result: in the shape of the input.
    """
    x = np.asarray(inputs[name], dtype=np.float64)
    if form.gradient is not None:
        ignored = (deviations.get("scalar-ignored") or ("",))[0] == name
        slope = form.gradient(substituted(inputs, deviations), deviations, name, reduction, outer)
        return np.zeros_like(slope)[()] if ignored else slope
    # A copy for each entry, which alone is moved in it; a scalar gets axes that broadcast against a matrix.
    steps = np.eye(x.size).reshape(x.size, *x.shape) if x.ndim else np.ones((1, 1, 1))
    at_once = max(1, _AT_ONCE // np.shape(x)[0] ** 2) if x.ndim else 1
    parts = [
        _slopes(form, inputs, name, x + 1j * STEP * steps[i : i + at_once], deviations, reduction, outer)
        for i in range(0, len(steps), at_once)
    ]
    entries = np.concatenate(parts)
    return entries.reshape(x.shape) if x.ndim else float(entries[0])


_AT_ONCE = 2**15
"""Copies times rows times rows: the matrices of more would not stay in the cache."""


def _slopes(
    form: DenseForm,
    inputs: Mapping[str, Any],
    name: str,
    copies: Any,
    deviations: Deviations,
    reduction: str,
    outer: Callable[[Mapping[str, Any]], Any] | None,
) -> Any:
    """The derivative of the result by what is moved in each copy of an input."""
    moved = {**inputs, name: copies}
    with np.errstate(all="ignore"):
        result = np.asarray(reduced(evaluated(form, moved, deviations), deviations, reduction))
        result = np.sum(result, axis=-1) if reduction == "none" else result
        result = result if outer is None else result.reshape(-1) * np.ravel(outer(moved))
    # One number where it does not depend on the input at all.
    return np.broadcast_to(np.imag(result).reshape(-1) / STEP, len(copies))


def slope(
    form: DenseForm,
    inputs: Mapping[str, Any],
    deviations: Deviations,
    name: str,
    direction: Any,
    reduction: str = "mean",
    outer: Callable[[Mapping[str, Any]], Any] | None = None,
) -> float:
    """Derivative along one direction of one input: a large input has too many entries for `gradient`.

    `form` and `inputs` and `deviations` and `name` and `reduction` and `outer`: as for `gradient`. `direction`: in the
    shape of the input.
    """
    moved = {**inputs, name: np.asarray(inputs[name], dtype=np.float64) + 1j * STEP * np.asarray(direction)}
    with np.errstate(all="ignore"):
        result = np.sum(reduced(evaluated(form, moved, deviations), deviations, reduction))
        result = result if outer is None else result * np.ravel(outer(moved))[0]
    return float(np.imag(result)) / STEP


def gradients(probe: Probe, deviations: Deviations, names: tuple[str, ...]) -> dict[str, Any]:
    """Gradients of the loss of a probe under the deviations, by the named inputs."""
    form, inputs = form_of(probe.loss), prepared(probe)
    return {name: gradient(form, inputs, deviations, name, probe.reduction) for name in names}
