"""Measurement of parameters that a module holds in place of inputs: by which function its value is the reference's."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.corpus.resizing import MOST_FEATURES, MOST_ROWS, Resizing
from nceref.cases.parametrization import PARAMETRIZATIONS, candidates
from nceref.cases.records import Observation, Probe
from nceref.errors import TargetError
from nceref.spec import Array, Parameter, Scalar
from nceref.tolerance.implementation import FORMATS
from nceref.verification.request import Request
from nceref.verification.trials import Trial, trial_of

_FACTORS = (0.5, 2.0, 1.5)
"""Factors of a scalar: a single value may be a fixed point of two functions."""
_ROOM = 64.0
"""Factor on the bound, as a held number is rounded. Two functions are much farther apart, and the judge is strict."""


def measure_parameters(request: Request, run: Any) -> tuple[Request, dict[str, str], dict[str, str]]:
    """The parametrization of each input that the target holds, in the sizes that it takes.

    The request has the sizes of the target's parameter where it takes no others. The other results, and the
    `TargetError`, are those of `measure_forms`.
    """
    try:
        return request, *measure_forms(request, run)
    except TargetError:
        for resizing in _own_sizes(request, run):
            resized = replace(request, resizing=resizing)
            with suppress(TargetError):
                return resized, *measure_forms(resized, run)
        raise


def _own_sizes(request: Request, run: Any) -> Iterator[Resizing]:
    """The sizes of an array that the target holds, as it is and transposed, for all cases."""
    declared = {p.name: p for p in request.loss.parameters}
    given = request.resizing
    for name, shape in run.target.sizes.items():
        if not isinstance(p := declared[name], Array):
            continue
        for letters in (p.shape, p.shape[::-1]):
            sizes = dict(zip(letters, shape, strict=True))
            features, classes = sizes.get("D", 0), sizes.get("C", 0)
            if features <= MOST_FEATURES and classes <= MOST_ROWS and given.features in (0, features):
                yield replace(given, features=features, classes=classes)


def measure_forms(request: Request, run: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The parametrization of each input that the target holds, and the inputs for which none was found.

    The results are names of parametrizations by input, and paths by input of scalars for which no function, or more
    than one, fits. `request.param` has what the user stated; `run.forms` is set on the way. Raises `TargetError` if a
    parameter was stated without its function and none was found, or if it can take no other shape.
    """
    declared = {p.name: p for p in request.loss.parameters}
    choices = {name: _choices(request, declared[name]) for name in run.target.parameters}
    held = [declared[name] for name in choices]
    arrays = any(isinstance(p, Array) for p in held)
    # Weights must take the sizes of the cases, which only a call shows.
    if not arrays and all(len(names) == 1 for names in choices.values()):
        return {name: names[0] for name, names in choices.items()}, {}
    finest = min(request.dtypes, key=lambda name: FORMATS[name].storage.u)
    runs: list[Trial] = []
    trouble = ""
    # Bounds of 16 bits tell too little apart, and a module may have numbers of its own in float32.
    for dtype in dict.fromkeys((finest, "float64", "float32")):
        trials = _trials(request, run, choices, dtype)
        ran = [trial for trial in trials if not trial.trouble]
        # A loss with another factor, or a constant beside it, is told apart from one with another temperature.
        fitting = [trial for trial in ran if trial.right] or [trial for trial in ran if _is_parallel(trial)]
        if len(fitting) == 1:
            return dict(fitting[0].options), {}
        runs, trouble = runs or [*fitting, *ran], trouble or next((t.reason for t in trials if t.trouble), "")
    if not runs and arrays:
        raise TargetError(_refused(request, run, trouble))
    # Without trouble at least: an array in one of its two orders. Where all is trouble, the run itself says so.
    forms = runs[0].options if runs else {name: names[0] for name, names in choices.items()}
    scalars = [p.name for p in held if isinstance(p, Scalar) and len(choices[p.name]) > 1] if runs else []
    unknown = {name: run.target.parameters[name] for name in scalars}
    if request.param.keys() & unknown.keys():
        raise TargetError(unmeasured(request, unknown))
    return {n: form for n, form in forms.items() if n not in unknown}, unknown


def _trials(request: Request, run: Any, choices: Mapping[str, Sequence[str]], dtype: str) -> list[Trial]:
    """The trials of all parametrizations; most are told apart by two cases."""
    probes, trials = _probes(request, run, choices, dtype), []
    for combination in product(*choices.values()):
        forms = dict(zip(choices, combination, strict=True))
        run.forms.clear()
        run.forms.update(forms)
        trials.append(trial_of(request.loss.name, forms, run, probes, _has_one_change))
    return trials


def _is_parallel(trial: Trial) -> bool:
    """Whether the target is the reference times a factor, or with a constant beside it, seen on more than two cases."""
    return len(trial.observations) > 2 and _has_one_change(trial.observations)


def unmeasured(request: Request, unknown: Mapping[str, str]) -> str:
    """The sentence for a parameter of which no function was found that gives the reference's value."""
    declared = {p.name: p for p in request.loss.parameters}
    name, path = next(iter(unknown.items()))
    ways = [PARAMETRIZATIONS[form].written.format(path) for form in candidates(declared[name])]
    return (
        f"{request.name} holds `{name}` in its parameter {path}, but its value is that of the reference by none of"
        f" {', '.join(ways)}, or by several; state which it is, and what else differs can be named:"
        f" --param '{name}={ways[1]}'"
    )


def _choices(request: Request, parameter: Parameter) -> tuple[str, ...]:
    stated = request.param.get(parameter.name, ("", ""))[1]
    return (stated,) if stated else candidates(parameter)


def _has_one_change(observations: Sequence[Observation]) -> bool:
    """Whether one factor, or one constant, leads from the reference to the target in all cases."""
    values = [(o.outcome.value, o.probe.value, o.probe.bounds.value) for o in observations if o.probe.bounds]
    theirs, reference, bounds = np.array([[np.sum(x) for x in each] for each in values], dtype=np.float64).T
    shifts = theirs - reference
    with np.errstate(all="ignore"):
        ratio = theirs[0] / reference[0]
        # The rounding of the ratio changes another value as well.
        rounding = bounds + bounds[0] * abs(reference / reference[0])
        by_factor = abs(theirs - ratio * reference) <= 2 * abs(ratio) * rounding
    by_constant = abs(shifts - shifts[0]) <= 2 * (bounds + bounds[0])
    return bool(np.all(np.isfinite(theirs)) and (np.all(by_factor) or np.all(by_constant)))


def _probes(request: Request, run: Any, names: Collection[str], dtype: str) -> list[Probe]:
    """One case of the corpus with several values of the scalars that are held."""
    cases = designed_inputs(
        request.loss,
        request.settings,
        "quick",
        dtype,
        request.seed,
        run.target.fixed,
        resizing=request.resizing,
    )

    def probe_of(inputs: Mapping[str, Any], factor: float) -> Probe:
        moved = {n: factor * x if n in names and isinstance(x, float) else x for n, x in inputs.items()}
        probe = request.answered(evaluate(request.loss, moved, dtype, request.reduction, request.algorithm))
        return replace(probe, bounds=probe.bounds and replace(probe.bounds, value=_ROOM * probe.bounds.value))

    first = next((probe for _, inputs in cases if not (probe := probe_of(inputs, 1.0)).skip), None)
    rest = [] if first is None else [probe_of(first.inputs, factor) for factor in _FACTORS]
    return [] if first is None else [first, *(probe for probe in rest if not probe.skip)]


def _refused(request: Request, run: Any, trouble: str) -> str:
    """The sentence for a target that takes its own parameters in no shape but one."""
    listed = ", ".join(f"{path} in the place of `{name}`" for name, path in run.target.parameters.items())
    return (
        f"{request.name} cannot be called with {listed}: it {trouble}; the cases have several sizes, so the module"
        f" must read them from its parameter, as in `weight.shape`; --shape N,D,C fixes rows, features and classes"
    )
