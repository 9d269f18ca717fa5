"""The form of a loss that nobody has stated densely: its own program, on other numbers and with other reductions.

It is no second witness, and most conventions need a matrix of pairs to change; those here need none.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseForm, DenseRows, Deviations
from nceref.diagnosis.dense.temperatures import SCALE_CONVENTIONS, TEMPERATURE_CONVENTIONS, inverse_temperature
from nceref.diagnosis.tape import Variable, detached, recorded
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.engine.passes import Evaluation
from nceref.errors import InputError
from nceref.spec import Array, Choice, Labels, Loss

_REDUCTIONS = ("sum-instead-of-mean", "mean-instead-of-sum", "divided-by-n-twice", "last-row-missing")
_NORMALIZE = {"rows-not-normalized": "none", "rows-normalized": "l2"}


def program_form(loss: Loss) -> DenseForm:
    """The form of a loss by its own program.

    Result: with the conventions that are another temperature, another ``normalize`` or another reduction.
    """
    names = {p.name for p in loss.parameters}
    temperatures = TEMPERATURE_CONVENTIONS if "temperature" in names else SCALE_CONVENTIONS
    conventions = (
        *(_REDUCTIONS if loss.has_rows else ()),
        # After the softmax it is no other temperature.
        *(id for id in temperatures if names & INVERSE_TEMPERATURES.keys() and id != "temperature-after-softmax"),
        *(_NORMALIZE if any(isinstance(p, Choice) and p.name == "normalize" for p in loss.parameters) else ()),
    )
    return DenseForm(partial(_arrange, loss), partial(_rows, loss), conventions)


def _arrange(loss: Loss, inputs: Mapping[str, Any], deviations: Deviations) -> dict[str, Any]:
    """The arguments of the program under the deviations."""
    given = {p.name: inputs[p.name] for p in loss.parameters}
    scale = _scale(loss)
    if scale:
        given[scale] = _moved_scale(scale, inputs, deviations)
    for id, option in _NORMALIZE.items():
        if id in deviations:
            given["normalize"] = option
    return given


def _scale(loss: Loss) -> str:
    """The name of its temperature or scale; empty where it has none."""
    return next((p.name for p in loss.parameters if p.name in INVERSE_TEMPERATURES), "")


def _moved_scale(scale: str, inputs: Mapping[str, Any], deviations: Deviations) -> Any:
    """The temperature or the scale under the deviations, as it is without one."""
    if not {*deviations} & {*TEMPERATURE_CONVENTIONS, *SCALE_CONVENTIONS}:
        return inputs[scale]
    with np.errstate(all="ignore"):
        factor = inverse_temperature(inputs, deviations)
        # What is beyond the range is infinite then, and the program refuses it.
        return np.divide(1, factor) if INVERSE_TEMPERATURES[scale] < 0 else factor


def _evaluated(loss: Loss, given: Mapping[str, Any], keep: bool) -> Evaluation | None:
    """The first pass of the program; None where it refuses the numbers."""
    scale = _scale(loss)
    given = {name: detached(x) for name, x in given.items()}
    given |= {scale: float(given[scale])} if scale else {}
    if scale and not 0 < given[scale] < np.inf:
        return None
    try:
        with np.errstate(all="ignore"):
            return BoundLoss(loss, given).evaluate("sum" if loss.has_rows else "mean", keep)
    except InputError:
        return None


def _rows(loss: Loss, given: Mapping[str, Any], deviations: Deviations) -> DenseRows:
    moved = {name: x for name, x in given.items() if isinstance(x, Variable)}
    evaluation = _evaluated(loss, given, keep=bool(moved))
    samples = _samples(loss, given)
    if evaluation is None:
        return DenseRows(np.array([np.nan]), samples=samples)
    values, weights = np.ravel(evaluation.rows), np.ravel(evaluation.weights)
    logits = [getattr(comparison.logits, "bound", 0.0) for comparison in evaluation.plan.comparisons]
    size = max(0.0, *logits) + float(np.max(np.abs(values), initial=0.0))
    rows = recorded(values, [(x, partial(_pulled, evaluation, name)) for name, x in moved.items()])
    return DenseRows(rows, weights, size=size, divisor=_divisor(loss, evaluation), samples=samples)


def _pulled(evaluation: Evaluation, name: str, g: Any) -> Any:
    """The program's own gradient by one input, from that of its rows."""
    weights = np.ravel(evaluation.weights)
    # The program weighs its rows itself.
    cotangent = np.where(weights != 0, g / weights, 0.0).reshape(evaluation.rows.shape)
    return evaluation.gradients(cotangent).get(name, 0.0)


def _samples(loss: Loss, given: Mapping[str, Any]) -> int:
    """The length of its first array."""
    arrays = [given[p.name] for p in loss.parameters if isinstance(p, Array | Labels) and given[p.name] is not None]
    return len(arrays[0]) if arrays else 1


def _divisor(loss: Loss, evaluation: Evaluation) -> int | None:
    # The weights of a mean that is no mean over rows are divided already.
    return evaluation.plan.divisor if loss.has_rows else 1
