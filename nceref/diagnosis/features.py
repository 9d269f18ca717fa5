"""What cases have in common: the words in which a diagnosis says where a target fails."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Probe
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.output.words import out_of
from nceref.spec import Array, Labels, Loss, Scalar

_PARALLEL = 1e-7


def temperature_scalar(probe: Probe) -> tuple[str, float] | None:
    """Name and value of the temperature or scale of a case, None for a loss without one."""
    for p in probe.loss.parameters:
        if isinstance(p, Scalar) and p.name in INVERSE_TEMPERATURES:
            value = probe.inputs.get(p.name, p.default)
            return (p.name, float(value)) if isinstance(value, int | float | np.floating) else None
    return None


def samples(probe: Probe) -> int:
    """The number of samples N: rows of the first array."""
    first = next(p.name for p in probe.loss.parameters if isinstance(p, Array))
    return int(np.shape(probe.inputs[first])[0])


def embeddings(loss: Loss, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The given embedding inputs as (rows, D), by name.

    `inputs`: arguments by name; views are flattened into rows.
    """
    wanted = [p.name for p in loss.parameters if isinstance(p, Array) and p.embedding]
    given = {name: np.asarray(inputs[name], dtype=np.float64) for name in wanted if inputs.get(name) is not None}
    return {name: x.reshape(-1, x.shape[-1]) for name, x in given.items()}


def _cosines(probe: Probe) -> Any:
    """Cosines between different embedding rows, flat; rows of length 0 have none."""
    given = list(embeddings(probe.loss, probe.inputs).values())
    if not given:
        return np.zeros(0)
    z = np.concatenate([x for x in given if x.shape[-1] == given[0].shape[-1]])
    length = np.linalg.norm(z, axis=1, keepdims=True)
    unit = (z / np.where(length > 0, length, 1.0))[length[:, 0] > 0]
    return (unit @ unit.T)[np.triu_indices(len(unit), 1)]


def _labels(probe: Probe) -> list[Any]:
    """The labels that are given and are no classes with weights of their own, those of the samples first."""
    names = [p.name for p in probe.loss.parameters if isinstance(p, Labels) and p.classes is None]
    return [np.asarray(probe.inputs[name]) for name in names if probe.inputs.get(name) is not None]


def without_positive(probe: Probe) -> bool:
    """Whether an anchor has no positive: a label is alone among samples and queue, or a row of the mask is empty."""
    x = embeddings(probe.loss, probe.inputs)
    mask = probe.inputs.get("mask")
    if mask is not None:
        # An anchor is no positive of itself.
        off = np.asarray(mask) * (1 - np.eye(len(mask)))
        return bool(np.any(off.sum(axis=1) == 0))
    given = _labels(probe)
    # With more rows than labels every sample has another view, which is a positive.
    if not given or not x or len(next(iter(x.values()))) > len(given[0]):
        return False
    everyone = np.concatenate(given)
    return any(np.sum(everyone == label) == 1 for label in given[0])


def _class_sizes(probe: Probe) -> Any:
    """The numbers of samples of the classes; none without labels."""
    given = _labels(probe)
    return np.unique(given[0], return_counts=True)[1] if given else np.zeros(0, dtype=int)


def zero_row(probe: Probe) -> bool:
    """Whether an embedding row has no direction."""
    return any(np.any(np.all(x == 0, axis=1)) for x in embeddings(probe.loss, probe.inputs).values())


FEATURES: Mapping[str, Callable[[Probe], bool]] = {
    "anchors without a positive": without_positive,
    "a single sample": lambda p: samples(p) == 1,
    "a row of zeros": zero_row,
    "rows that are all alike": lambda p: bool(_cosines(p).size) and bool(np.all(_cosines(p) > 1 - _PARALLEL)),
    "parallel rows (cosine 1)": lambda p: bool(np.any(_cosines(p) > 1 - _PARALLEL)),
    "antipodal rows (cosine -1)": lambda p: bool(np.any(_cosines(p) < _PARALLEL - 1)),
    "rows on one line (cosine 1 or -1)": lambda p: bool(np.any(np.abs(_cosines(p)) > 1 - _PARALLEL)),
    "classes of unequal sizes": lambda p: len(set(_class_sizes(p).tolist())) > 1,
    "several positives an anchor": lambda p: bool(np.any(_class_sizes(p) >= 3)),
    "a loss of exactly 0": lambda p: bool(np.all(np.asarray(p.value) == 0)),
    "a loss below 1e-6": lambda p: bool(np.all(np.abs(np.asarray(p.value)) < 1e-6)),
}


def common(failing: Sequence[Observation], others: Sequence[Observation]) -> str:
    """A feature that the failing cases alone have in common: ``, exactly those with ...``; empty if there is none."""
    if not others or not failing:
        return ""
    # Special cases stand in `FEATURES` before what includes them: the first that separates says most.
    for words, has in FEATURES.items():
        if all(has(o.probe) for o in failing) and not any(has(o.probe) for o in others):
            return f", exactly those with {words}"
    side = _one_side(failing, others) or _by_size(failing, others) or _by_zero(failing, others)
    if side:
        return f", {side}"
    # What others may have as well says least.
    for words, has in FEATURES.items():
        if all(has(o.probe) for o in failing):
            return f", all of which have {words}"
    most = max(samples(o.probe) for o in failing)
    larger = sum(samples(o.probe) > most for o in others)
    return f", all of which have {most} samples or fewer" if larger >= _LARGER and len(failing) >= _LARGER else ""


_LARGER = 3
"""Cases that are right, and larger than all that are not, from which on that is no accident."""


def _one_side(failing: Sequence[Observation], others: Sequence[Observation]) -> str:
    """Whether a threshold on temperature or scale separates the two: ``those at temperature 0.07 and below``."""
    bad, good = [temperature_scalar(o.probe) for o in failing], [temperature_scalar(o.probe) for o in others]
    if None in bad or None in good:
        return ""
    name = str(bad[0][0]).replace("_", " ") if bad[0] else ""
    low, high = [h[1] for h in bad if h], [h[1] for h in good if h]
    if max(low) < min(high):
        return f"exactly those at {name} {max(low):g} and below"
    return f"exactly those at {name} {min(low):g} and above" if min(low) > max(high) else ""


_SIZES: Mapping[str, Callable[[Probe], int]] = {
    "samples": samples,
    "features": lambda p: max((x.shape[-1] for x in embeddings(p.loss, p.inputs).values()), default=0),
}


def _by_size(failing: Sequence[Observation], others: Sequence[Observation]) -> str:
    """Whether a threshold on a size separates the two: ``those of 17 samples and more``."""
    for unit, size in _SIZES.items():
        bad, good = [size(o.probe) for o in failing], [size(o.probe) for o in others]
        if min(bad) > max(good):
            between = "" if min(bad) == max(good) + 1 else f" (the others have {max(good)} and fewer)"
            return f"exactly those of {min(bad)} {unit} and more{between}"
        if max(bad) < min(good):
            return f"exactly those of {max(bad)} {unit} and fewer"
    return ""


def _by_zero(failing: Sequence[Observation], others: Sequence[Observation]) -> str:
    """Whether another scalar is 0 on the ones and not on the others: ``those where margin is not 0``."""
    for p in failing[0].probe.loss.parameters:
        if isinstance(p, Scalar) and p.name not in INVERSE_TEMPERATURES:
            bad, good = ({o.probe.inputs.get(p.name) == 0 for o in group} for group in (failing, others))
            if bad != good and len(bad) == len(good) == 1:
                return f"exactly those where {p.name} is {'' if True in bad else 'not '}0"
    return ""


def where(
    failing: Sequence[Observation],
    judged: Sequence[Observation],
    also_failing: Sequence[Observation] = (),
    also_right: Sequence[Observation] = (),
) -> str:
    """The number of cases, and which: ``on 3 of 14 cases, exactly those at temperature 0.001 and below``.

    `failing`: among `judged`. `also_failing` and `also_right`: fresh calls, which are not counted: what the failing
    cases have in common must hold for these too.
    """
    others = [o for o in judged if o not in failing]
    if not others:
        return "on the only case" if len(judged) == 1 else f"on all {len(judged)} cases"
    names = ", ".join(o.probe.id for o in failing[:3]) + (", ..." if len(failing) > 3 else "")
    shared = common([*failing, *also_failing], [*others, *also_right])
    return f"on {out_of(len(failing), len(judged), 'case')}{shared or f' ({names})'}"


def parts_of_rows(n: int, halves: str = "") -> dict[str, Any]:
    """Parts of so many rows that have a name.

    `halves`: what a half of them is, or empty.
    """
    row = np.arange(n)
    parts = {"the last row": row == n - 1, "the first row": row == 0}
    parts |= {f"the first {halves}": row < n // 2, f"the second {halves}": row >= n // 2} if halves else {}
    parts |= {"all rows but the first": row > 0, "all rows but the last": row < n - 1}
    # Of an odd number the row in the middle belongs to either half.
    for more, middle in (("", n // 2), (", the larger one", n - n // 2)):
        parts |= {f"the first half of the rows{more}": row < middle}
    for more, middle in (("", n // 2), (", the smaller one", n - n // 2)):
        parts |= {f"the second half of the rows{more}": row >= middle}
    parts |= {"every second row": row % 2 == 1, "every second row from the first on": row % 2 == 0}
    return parts | {f"the rows after the last whole block of {k}": row >= n - n % k for k in (4, 8, 16, 32, 64)}
