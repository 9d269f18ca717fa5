"""Patterns of a gradient that is wrong where the value is right: a multiple, zeros, some rows, along the rows only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.errors import InputError
from nceref.losses import LossFunction, differentiable
from nceref.spec import Array, Scalar
from nceref.verification.diagnosis.features import where
from nceref.verification.diagnosis.fits import FACTORS, Number, recognized
from nceref.verification.diagnosis.gaps import VALUE, Gap, diagnosis, gaps, listed, not_finite
from nceref.verification.diagnosis.rowwise import named_part, rows_of
from nceref.verification.records import Diagnosis, Observation

FAR = 64.0
"""How many bounds a gradient must be off before what is left is called radial."""
Gaps = Sequence[tuple[Observation, Gap]]
"""One input's gradient, case by case."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with the gradient of one input: the id of the pattern, the rest of a sentence, and the residual."""

    id: str
    words: str
    residual: float | None = None


def gradient_patterns(observations: Sequence[Observation]) -> tuple[Diagnosis, ...]:
    """What is wrong with the gradients of a target whose values are right.

    Parameters
    ----------
    observations : sequence of Observation
        Usable ones; those whose value is wrong are not looked at.

    Returns
    -------
    tuple of Diagnosis
        Inputs with the same pattern share one.
    """
    right = [o for o in observations if gaps(o)[VALUE].right]
    declared = _constants(right)
    if len(right) < len(observations) or not right:
        return declared
    found = {name: _finding(name, pairs) for name, pairs in _by_input(right).items()}
    wrong = {name: finding for name, finding in found.items() if finding is not None}
    if not wrong:
        return declared
    merged = _merged(wrong, found, right)
    endless = {name for o in right for name in not_finite(o)}
    fine = [name for name, finding in found.items() if finding is None and name not in endless]
    rest = f"; the gradient of {listed(fine)} is right" if fine else ""
    start = f"the value is right on {len(right)} of {len(observations)} cases; "
    return (*declared, *(diagnosis(id, start + words + _others(names, wrong) + rest) for id, words, names in merged))


def _others(names: Sequence[str], wrong: Mapping[str, Finding]) -> str:
    """What else is wrong, in another way."""
    others = [name for name in wrong if name not in names]
    return f"; the gradient of {listed(others)} is wrong in another way" if others else ""


def _by_input(observations: Sequence[Observation]) -> dict[str, Gaps]:
    """Finite gradients by input: those that are not finite are told by the triage."""
    out: dict[str, list[tuple[Observation, Gap]]] = {}
    for observation in observations:
        for name, gap in gaps(observation).items():
            if name != VALUE and gap.finite:
                out.setdefault(name, []).append((observation, gap))
    return dict(out)


def _finding(name: str, pairs: Gaps) -> Finding | None:
    """The first pattern that fits all cases; None where the gradient is right on all of them."""
    failing = [(o, gap) for o, gap in pairs if not gap.right]
    if not failing:
        return None
    for pattern in (_zero, _factor, _missing_rows, _radial):
        finding = pattern(name, pairs)
        if finding is not None:
            return finding
    place = where([o for o, _ in failing], [o for o, _ in pairs])
    return Finding("value-right-gradient-wrong", f"is wrong {place}{_example(failing)}")


def _example(failing: Gaps) -> str:
    """By how much the first case is off whose right gradient is not 0."""
    for observation, gap in failing:
        size = float(np.max(np.abs(gap.want)))
        if size > float(np.max(gap.bound)):
            share = float(np.max(np.abs(gap.got - gap.want))) / size
            return f", and off by {share:.2g} of its largest entry on {observation.probe.id}"
    return ""


def _zero(name: str, pairs: Gaps) -> Finding | None:
    if any(np.any(gap.got != 0) for _, gap in pairs):
        return None
    return Finding("gradient-zero", f"is 0 on {len(pairs)} of {len(pairs)} cases")


def _factor(name: str, pairs: Gaps) -> Finding | None:
    """A factor that is declared in `FACTORS`, or a constant that the best-conditioned case has."""
    sharp = [gap for _, gap in pairs if np.any(gap.want != 0)]
    if not sharp:
        return None
    best = min(sharp, key=lambda gap: float(np.max(gap.bound) / np.max(np.abs(gap.want))))
    measured = float(np.sum(best.got * best.want) / np.sum(best.want * best.want))
    constant, words = recognized(measured)
    options = [(words, _constant(constant))] if constant else []
    for label, factor in [*options, *((WORDS[f.id], f.number) for f in FACTORS if f.id in WORDS)]:
        residual = max(_off_by(factor(o.probe), gap) for o, gap in pairs)
        if residual <= 1:
            flipped = constant == -1 and label == words
            id = "gradient-sign-flipped" if flipped else "gradient-constant-factor"
            told = "has the other sign" if flipped else f"is {label} times the right one"
            return Finding(id, f"{told} on {len(pairs)} of {len(pairs)} cases", residual)
    return None


WORDS: Mapping[str, str] = {
    "outer-factor-temperature": "T",
    "outer-factor-2-temperature": "2T",
    "outer-factor-inverse-temperature": "1/T",
    "outer-factor-temperature-over-base": "T / 0.07",
    "outer-factor-n": "N",
    "divided-by-n-twice": "1/N",
}
"""How the factors of a gradient are written."""


def _constant(x: float) -> Number:
    return lambda probe: x


def _off_by(factor: float | None, gap: Gap) -> float:
    return math.inf if factor is None else gap.scaled(factor).of_bound


def _missing_rows(name: str, pairs: Gaps) -> Finding | None:
    """Rows whose gradient is exactly 0 where the reference's is not, on every failing case, the rest being right."""
    found = set()
    for _, gap in pairs:
        if gap.right:
            continue
        if gap.got.ndim < 1:
            return None
        axes = tuple(range(1, gap.got.ndim))
        missing = np.all(gap.got == 0, axis=axes) & np.any(np.abs(gap.want) > gap.bound, axis=axes)
        fits = np.all(np.abs(gap.got - gap.want) <= gap.bound, axis=axes)
        if not np.all(missing | fits) or np.all(missing):
            return None
        found.add(named_part(missing, len(missing)) or "some rows")
    which = found.pop() if len(found) == 1 else "some rows"
    failing = [o for o, gap in pairs if not gap.right]
    return Finding("gradient-missing-rows", f"is 0 in {which} {where(failing, [o for o, _ in pairs])}")


def _radial(name: str, pairs: Gaps) -> Finding | None:
    """A difference that is parallel to each row of the input."""
    for observation, gap in pairs:
        x = rows_of(observation.probe, name)
        if x is None:
            return None
        off, room = ((a.reshape(x.shape)) for a in (gap.got - gap.want, gap.bound))
        square = np.sum(x * x, axis=1, keepdims=True)
        along = np.sum(off * x, axis=1, keepdims=True) * x / np.where(square > 0, square, 1.0)
        slack = room + 8 * np.finfo(np.float64).eps * np.max(np.abs(off), axis=1, keepdims=True)
        if x.shape[1] < 2 or np.any(np.abs(off - along) > 2 * slack + np.abs(x) * _length(room) / _length(x)):
            return None
    failing = [o for o, gap in pairs if not gap.right]
    if max(gap.of_bound for _, gap in pairs) < FAR:
        return None
    place = where(failing, [o for o, _ in pairs])
    if all(_detached_lengths(name, o, gap) for o, gap in pairs):
        words = f"is what comes out where the lengths of the rows are constants, {place}"
        return Finding("normalization-detached", words)
    return Finding("gradient-radial-only", f"is off along the rows only {place}; normalizing the rows before hides it")


def _length(x: Any) -> Any:
    """Lengths of the rows, 1 for rows of zeros."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(length > 0, length, 1.0)


def _detached_lengths(name: str, observation: Observation, gap: Gap) -> bool:
    """Whether the gradient is that by the unit rows, divided by the lengths."""
    inputs = dict(observation.probe.inputs)
    if inputs.get("normalize", "l2") != "l2":
        return False
    for p in observation.probe.loss.parameters:
        if isinstance(p, Array) and p.embedding and inputs.get(p.name) is not None:
            x = np.asarray(inputs[p.name])
            inputs[p.name] = (x.reshape(-1, x.shape[-1]) / _length(x.reshape(-1, x.shape[-1]))).reshape(x.shape)
    x = np.asarray(observation.probe.inputs[name])
    try:
        reduction = "mean" if observation.probe.reduction == "mean" else "sum"
        function = LossFunction(observation.probe.loss)
        _, grads = function.value_and_grad(**{**inputs, "normalize": "none"}, reduction=reduction)
    except InputError:
        return False
    want = grads[name] / _length(x.reshape(-1, x.shape[-1])).reshape((*x.shape[:-1], 1))
    share = max(1.0, float(np.max(np.abs(want)) / max(np.max(np.abs(gap.want)), 1e-300)))
    return bool(np.all(np.abs(gap.got - want) <= 2 * share * np.max(gap.bound)))


def _merged(
    wrong: Mapping[str, Finding], found: Mapping[str, Finding | None], observations: Sequence[Observation]
) -> list[tuple[str, str, list[str]]]:
    """One id and one sentence a pattern; zeros are named by the inputs that get them; then the inputs."""
    groups: dict[str, dict[str, list[str]]] = {}
    for name, finding in wrong.items():
        groups.setdefault(finding.id, {}).setdefault(finding.words, []).append(name)
    out = []
    for id, told in groups.items():
        names = [name for each in told.values() for name in each]
        off = [r for name in names if (r := wrong[name].residual) is not None]
        fit = f" (largest residual {max(off):.2g} of the bound)" if off else ""
        parts = [f"the gradient of {listed(each)} {words}" for words, each in told.items()]
        named = _detached(names, found, observations) if id == "gradient-zero" else id
        out.append((named, "; ".join(parts) + fit, names))
    return out


def _detached(names: Sequence[str], found: Mapping[str, Finding | None], observations: Sequence[Observation]) -> str:
    """The id of what has no gradient: everything, the scale, the bias, the centers, the first or the second input."""
    if len(names) == len(found):
        return "gradient-zero"
    loss = observations[0].probe.loss
    kinds: dict[str, str] = {}
    arrays = [p for p in loss.parameters if isinstance(p, Array) and p.name in differentiable(loss)]
    for number, p in enumerate(arrays):
        kinds[p.name] = "centers-detached" if p.like == "center" else ARRAYS[min(number, 1)]
    for q in loss.parameters:
        if isinstance(q, Scalar):
            kinds[q.name] = "temperature-detached" if q.name in INVERSE_TEMPERATURES else "bias-detached"
    return "+".join(dict.fromkeys(kinds.get(name, "gradient-zero") for name in names))


ARRAYS = ("first-input-detached", "keys-detached")
"""What it is called where the first array, or a later one, has no gradient."""


def _constants(observations: Sequence[Observation]) -> tuple[Diagnosis, ...]:
    """Gradients that arrive at declared constants."""
    if not observations:
        return ()
    constants = [p.name for p in observations[0].probe.loss.parameters if isinstance(p, Array) and p.constant]
    touched: dict[str, int] = {}
    for observation in observations:
        for name in constants:
            if np.any(np.asarray(observation.outcome.grads.get(name, 0.0)) != 0):
                touched[name] = touched.get(name, 0) + 1
    if not touched:
        return ()
    count = max(touched.values())
    words = f"the value is right, but {listed(touched)} gets a gradient on {count} of {len(observations)} cases"
    return (diagnosis("constants-get-gradient", f"{words}, and is declared constant"),)
