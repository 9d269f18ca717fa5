"""The reference under conventions that a target intends: a probe of the corpus, answered with these."""

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.cases.former_ids import current, warn_of_former
from nceref.cases.judge import constants, judge
from nceref.cases.records import Observation, Outcome, Probe
from nceref.diagnosis.case import OFFSETS, CaseAnalysis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.dense.forms import form_of
from nceref.diagnosis.explanation import variant_value
from nceref.diagnosis.features import temperature_scalar
from nceref.diagnosis.gradient_fit import GradientFit, JudgedGradient
from nceref.diagnosis.options import Option, options
from nceref.engine.parameters import IN_USE, INVERSE_TEMPERATURES, at_temperature
from nceref.errors import InputError
from nceref.losses import all_losses
from nceref.output.text import shown
from nceref.registry import unknown
from nceref.spec import Loss
from nceref.tolerance import Bounds

AXES = frozenset(convention.axis for convention in CONVENTIONS.values())
_SEEN = frozenset({
    "gradient-factor", "arithmetic", "calling", "unknown", "scalar", "ranks", "ranks-value", "ranks-scalar",
})  # fmt: skip
"""Axes of what is seen of a target, which no loss is computed with."""
_BETWEEN_RANKS = "gather"
_CONSTANTS = frozenset({"outer-factor-constant", "offset-constant"})
_TRAINED = "constants-get-gradient"


def intentions(loss: Loss, settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that are conventions of the closed list, by axis.

    `settings`: what names an axis and is an id, alone or with what it is set to, as in ``temperature-clamped=0.01``.
    Where the loss has a parameter of that name, other values are the parameter's. Result: texts by axis, each of which
    `intended` can do. Raises `InputError` for an id that the axis does not have, that means nothing for the loss, or
    that needs a setting.
    """
    own = {p.name for p in loss.parameters} | {"reduction"}
    out = {}
    for axis, given in settings.items():
        text = current(given) if isinstance(given, str) and axis in AXES else given
        if axis in AXES and isinstance(text, str) and (axis not in own or text.partition("=")[0] in CONVENTIONS):
            listed = {c.id: c for c in CONVENTIONS.values() if c.axis == axis}
            id = text.partition("=")[0]
            if id not in listed:
                offered = tuple(each for each in listed if each in form_of(loss).conventions) or tuple(listed)
                error = unknown(f"value of {axis}", id, offered, "nceref verify --conventions")
                msg = f"{error}; for {loss.name} there are {', '.join(offered)}"
                raise InputError(msg)
            warn_of_former([given])
            _must_apply(loss, text)
            _option(text)
            out[axis] = text
    return out


def _must_apply(loss: Loss, text: str) -> None:
    id = text.partition("=")[0]
    axis = CONVENTIONS[id].axis
    hot = any(p.name in INVERSE_TEMPERATURES for p in loss.parameters)
    # A run on ranks says which of these it can do.
    if axis == _BETWEEN_RANKS:
        return
    if axis in _SEEN:
        msg = f"`{axis}={id}` is what may be seen of a target; no loss is computed with it, so it cannot be intended"
    elif (axis in ("factor", "offset") and (hot or "temperature" not in id)) or id in form_of(loss).conventions:
        return
    elif axis == "factor":
        msg = f"`{axis}={id}` means nothing for {loss.name}, which has no temperature"
    else:
        others = [name for name, other in all_losses().items() if id in form_of(other.declaration).conventions]
        msg = f"`{axis}={id}` means nothing for {loss.name}; it is for {', '.join(others)}"
    raise InputError(msg)


def _option(text: str) -> Option:
    """The convention of a text with what it is set to: what is given, or the most usual."""
    id, equals, given = text.partition("=")
    usual = [x for x in CONVENTIONS[id].settings if x is not None]
    described = {CONVENTIONS[id].describe(x): x for x in usual}
    named = {name: name for name in OFFSETS} if id == "offset-log-n" else described
    numbers = id in _CONSTANTS or any(isinstance(x, float) for x in usual)
    if not equals and id not in _CONSTANTS and id != "offset-log-n":
        return next(options((id,)))
    if given in named:
        return Option(id, named[given])
    if numbers and math.isfinite(number := _number(given)):
        return Option(id, number)
    raise InputError(_without_setting(text, named, numbers))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _without_setting(text: str, named: Iterable[str], numbers: bool) -> str:
    id = text.partition("=")[0]
    axis, words = CONVENTIONS[id].axis, list(named)
    if not numbers and not words:
        return f"`{axis}={id}` takes no setting, got {shown(text)}"
    kinds = ["a number"] * numbers + words[:10]
    example = f"--set '{axis}={id}={'0.5' if numbers else words[0]}'"
    return f"`{axis}={id}` must be set to one of {', '.join(kinds)}, as in {example}, got {shown(text)}"


def intended(probe: Probe, conventions: Mapping[str, str]) -> Probe:
    """The probe with what the loss under these conventions answers, and bounds that have grown with it.

    `probe`: with the reference's own answer. `conventions`: what `intentions` made of the settings. Result: skipped
    where the conventions give no number.
    """
    conventions = {axis: text for axis, text in conventions.items() if axis != _BETWEEN_RANKS}
    if probe.skip or not conventions:
        return probe
    # An analysis is of a target; the reference stands in for one.
    analysis = CaseAnalysis(Observation(probe, Outcome(probe.value, probe.grads)))
    # In the order of the closed list, so that a factor comes before an offset.
    chosen = tuple(sorted(map(_option, conventions.values()), key=lambda option: option.rank))
    value, allowed = variant_value(analysis, chosen)
    fit = GradientFit(chosen, [])
    judged = {name: JudgedGradient(analysis, name, np.asarray(g), constant=False) for name, g in probe.grads.items()}
    if judged and _TRAINED in fit.deviations:
        inputs = {name: np.asarray(probe.inputs[name]) for name in constants(probe)}
        judged |= {name: JudgedGradient(analysis, name, x, constant=True) for name, x in inputs.items()}
    grads = {name: fit.expected(one) for name, one in judged.items()}
    if not all(np.all(np.isfinite(x)) for x in (value, *grads.values())):
        return replace(probe, skip=f"with {' and '.join(conventions.values())} it has no finite value")
    bounds = Bounds(
        np.reshape(allowed, np.shape(probe.value))[()], {name: fit.allowed(one) for name, one in judged.items()}
    )
    value = np.reshape(value, np.shape(probe.value))[()]
    return replace(probe, value=value, grads=grads, bounds=bounds, trains_constants=_TRAINED in fit.deviations)


def options_of(chosen: Iterable[Option], observations: Sequence[Observation]) -> str:
    """Options of the command under which a target with these conventions conforms; empty where there are none.

    `observations`: of the corpus, with the reference's own answers: on each of them the target must be right then.
    Result: such as ``--set factor=outer-factor-2``.
    """
    stated = {option.axis: _stated(option) for option in chosen}
    if not stated or not observations:
        return ""
    try:
        given = intentions(observations[0].probe.loss, stated)
    except InputError:
        return ""
    moved = (Observation(intended(o.probe, given), o.outcome) for o in observations)
    wrong = [(o.probe, r) for o in moved for r in judge(o) if r.status in ("fail", "error")]
    if any(not (r.quantity.endswith(".finite") and _is_beyond(probe)) for probe, r in wrong):
        return ""
    return " ".join(f"--set {shlex.quote(f'{axis}={text}')}" for axis, text in stated.items())


def _is_beyond(probe: Probe) -> bool:
    """Whether a number that is not finite is a limit there."""
    scalar = temperature_scalar(probe)
    return scalar is not None and at_temperature(*scalar) < IN_USE


def _stated(option: Option) -> str:
    """A convention as `--set` takes it, with what it is set to."""
    if option.value is None:
        return option.id
    number = isinstance(option.value, float)
    short = f"{option.value:g}" if number else option.setting
    return f"{option.id}={short if not number or float(short) == option.value else repr(float(option.value))}"
