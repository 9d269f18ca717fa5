"""Measurement of parameters that a module holds in place of inputs: by which function its value is the reference's."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.corpus.resizing import MOST_FEATURES, MOST_ROWS, Resizing
from nceref.cases.parametrization import PARAMETRIZATIONS, candidates
from nceref.cases.records import Probe
from nceref.errors import TargetError
from nceref.spec import Array, Parameter, Scalar
from nceref.tolerance.implementation import FORMATS
from nceref.verification.request import Request

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
    runs: list[dict[str, str]] = []
    trouble = ""
    # Bounds of 16 bits tell too little apart, and a module may have numbers of its own in float32.
    for dtype in dict.fromkeys((finest, "float64", "float32")):
        fitting, others, sentence = _sorted_out(request, run, choices, dtype)
        if len(fitting) == 1:
            return fitting[0], {}
        runs, trouble = runs or [*fitting, *others], trouble or sentence
    if not runs and arrays:
        raise TargetError(_refused(request, run, trouble))
    # Without trouble at least: an array in one of its two orders. Where all is trouble, the run itself says so.
    forms = runs[0] if runs else {name: names[0] for name, names in choices.items()}
    scalars = [p.name for p in held if isinstance(p, Scalar) and len(choices[p.name]) > 1] if runs else []
    unknown = {name: run.target.parameters[name] for name in scalars}
    if request.param.keys() & unknown.keys():
        raise TargetError(unmeasured(request, unknown))
    return {n: form for n, form in forms.items() if n not in unknown}, unknown


Forms = dict[str, str]


def _sorted_out(
    request: Request, run: Any, choices: Mapping[str, Sequence[str]], dtype: str
) -> tuple[list[Forms], list[Forms], str]:
    """The parametrizations that fit, others that can be called at least, and the first trouble."""
    probes = _probes(request, run, choices, dtype)
    verdicts: dict[str, list[Forms]] = {}
    trouble = ""
    for combination in product(*choices.values()):
        forms = dict(zip(choices, combination, strict=True))
        verdict, sentence = _verdict(run, forms, probes)
        verdicts.setdefault(verdict, []).append(forms)
        trouble = trouble or sentence
    # A loss with another factor, or a constant beside it, is told apart from one with another temperature.
    return verdicts.get("right") or verdicts.get("parallel") or [], verdicts.get("wrong", []), trouble


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


def _verdict(run: Any, forms: Forms, probes: Iterable[Probe]) -> tuple[str, str]:
    """The relation of the target's values to the reference's under some parametrizations; for ``trouble``, the reason.

    It is ``right``, ``parallel`` (the reference times a factor, or with a constant beside it, the same for all), or
    ``wrong``.
    """
    run.forms.clear()
    run.forms.update(forms)
    pairs: list[Pair] = []
    for probe in probes:
        if (outcome := run(probe)).trouble:
            return "trouble", outcome.sentence
        assert probe.bounds is not None
        pairs.append(Pair(*(float(np.sum(x)) for x in (outcome.value, probe.value, _ROOM * probe.bounds.value))))
        # Most functions are told apart by two cases.
        if not _parallel(pairs):
            return "wrong", ""
    right = all(abs(pair.theirs - pair.reference) <= pair.bound for pair in pairs)
    return "right" if pairs and right else "parallel" if len(pairs) > 2 else "wrong", ""


class Pair(NamedTuple):
    """The value of the target and of the reference, and how far they may be apart."""

    theirs: float
    reference: float
    bound: float


def _parallel(pairs: Sequence[Pair]) -> bool:
    """Whether one factor, or one constant, leads from the reference to the target in all pairs."""
    first = pairs[0]
    ratio = first.theirs / first.reference if first.reference else np.nan
    shift = first.theirs - first.reference
    return all(np.isfinite(pair.theirs) for pair in pairs) and (
        all(abs(p.theirs - ratio * p.reference) <= 2 * abs(ratio) * (p.bound + _scaled(first, p)) for p in pairs)
        or all(abs(p.theirs - p.reference - shift) <= 2 * (p.bound + first.bound) for p in pairs)
    )


def _scaled(first: Pair, other: Pair) -> float:
    """Change of another value by the rounding of the ratio."""
    return first.bound * abs(other.reference / first.reference) if first.reference else np.nan


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
        answered = evaluate(request.loss, moved, dtype, request.reduction, request.algorithm)
        return request.answered(answered)

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
