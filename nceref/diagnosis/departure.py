"""Where a target that nothing explains departs: which quantities, which cases and rows, from which temperature."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation
from nceref.diagnosis.features import parts_of_rows, samples, temperature_scalar, where
from nceref.diagnosis.fresh import NO_CALLS, FreshCalls
from nceref.diagnosis.gaps import VALUE, diagnosis, gaps, listed, usable
from nceref.diagnosis.localize import threshold
from nceref.diagnosis.rounding import errors_look_rounded
from nceref.tolerance.implementation import FORMATS


def departure(observations: Iterable[Observation], calls: FreshCalls = NO_CALLS) -> tuple[Diagnosis, ...]:
    """The place where a target departs, in words.

    `observations`: all of a run, with the reference's answers. `calls`: the target, for what only more calls can tell.
    Result: one, with the id ``unexplained``, or ``value-right-gradient-wrong`` where no value departs; none where the
    target is right.
    """
    answered = usable(observations)
    failing: dict[str, list[Observation]] = {}
    for observation in answered:
        for name, gap in gaps(observation).items():
            if not gap.right:
                failing.setdefault(name, []).append(observation)
    if not failing:
        return ()
    # Quantities that depart on the same cases share a part of the sentence, the value first.
    by_cases: dict[str, list[str]] = {}
    for name in [n for n in (VALUE, *failing) if n in failing]:
        names = by_cases.setdefault(_cases(name, failing[name], answered), [])
        names += [name] if name not in names else []
    parts = [
        DiagnosisPart(f"{_quantities(names)} depart{'' if len(names) > 1 else 's'}", cases)
        for cases, names in by_cases.items()
    ]
    fine = [name for name in gaps(answered[0]) if name not in failing]
    right = f"{_quantities(fine)} {'is' if len(fine) == 1 else 'are'} right" if fine else ""
    extra = [departing_rows(answered), _sizes(failing, answered), _temperatures(failing, answered)]
    extra += [_smoothness(answered, calls)]
    extra += [text for _, text in threshold([o for o in answered if gaps(o)[VALUE].finite], calls)]
    id = "unexplained" if VALUE in failing else "value-right-gradient-wrong"
    return (diagnosis(id, *parts).noting(right, role="right").noting(*extra),)


_SMALL = 1e-2
"""Of the value: errors of up to this size may be taken for roundings."""


def _smoothness(answered: Sequence[Observation], calls: FreshCalls) -> str:
    """A sentence on small errors of the value, which may be roundings; empty for large ones."""
    values = [gap for o in answered if not (gap := gaps(o)[VALUE]).right and gap.finite]
    coarse = next((name for name in ("float16", "float32") if _are_numbers_of(name, answered)), "")
    if values and coarse:
        return f"every value is a number of {coarse}, to which it was rounded at last"
    # Of numbers near the end of the range the share is infinite.
    with np.errstate(over="ignore"):
        shares = [float(np.max(np.abs(gap.got - gap.want)) / max(np.max(np.abs(gap.want)), 1e-300)) for gap in values]
    if not shares or max(shares) > _SMALL or (rough := errors_look_rounded(answered, calls, _NEAR)) is None:
        return ""
    how = "change from one input to the next nearby as roundings do" if rough else "are alike for inputs nearby"
    return f"the errors, up to {max(shares):.2g} of the value, {how}"


def _are_numbers_of(name: str, answered: Sequence[Observation]) -> bool:
    """Whether all values of a finer format are numbers of a format."""
    values = np.concatenate([np.ravel(o.outcome.value) for o in answered])
    finer = FORMATS[answered[0].probe.dtype].storage.u < FORMATS[name].storage.u
    with np.errstate(over="ignore"):
        return finer and bool(np.all(values.astype(name).astype(np.float64) == values))


_NEAR = 2.0**-24
"""Relative size of the step between inputs, in its units: a smooth error does not change over it."""


def _quantities(names: Sequence[str]) -> str:
    """The quantities in words: ``the value``, ``the gradient of z1``, ``the value and the gradients of z1 and z2``."""
    inputs = [name for name in names if name != VALUE]
    words = ["the value"] if VALUE in names else []
    words += [f"the gradient{'s' if len(inputs) > 1 else ''} of {listed(inputs)}"] if inputs else []
    return " and ".join(words)


def _cases(name: str, failing: Sequence[Observation], judged: Sequence[Observation]) -> str:
    nonfinite = sum(not gaps(o)[name].finite for o in failing)
    rest = f" ({nonfinite} of them not finite)" if nonfinite else ""
    return f"{where(failing, [o for o in judged if name in gaps(o)])}{rest}"


def _sizes(failing: dict[str, list[Observation]], judged: Sequence[Observation]) -> str:
    """The one number of rows at which anything fails, and all of it, if there are smaller and larger ones."""
    wrong = {id(o) for each in failing.values() for o in each}
    hit = {samples(o.probe) for o in judged if id(o) in wrong}
    tried = sorted({samples(o.probe) for o in judged})
    there = [o for o in judged if samples(o.probe) in hit]
    # One case alone may be wrong for another reason than its number of rows.
    if len(hit) != 1 or len(there) < 2 or any(id(o) not in wrong for o in there):
        return ""
    (n,) = hit
    return f"it shows where N = {n}, and at no other N" if tried[0] < n < tried[-1] else ""


def _temperatures(failing: dict[str, list[Observation]], judged: Sequence[Observation]) -> str:
    """The temperatures (or scales) at which anything fails, where they are all or a range of those that were tried."""
    bad = {scalar for each in failing.values() for o in each if (scalar := temperature_scalar(o.probe))}
    every = sorted({scalar for o in judged if (scalar := temperature_scalar(o.probe))})
    if not bad or len(every) < 2:
        return ""
    name, tried = every[0][0].replace("_", " "), [value for _, value in every]
    hit = [value for _, value in sorted(bad)]
    low, high = tried.index(hit[0]), tried.index(hit[-1])
    # With a temperature between them at which all is right, they are no range.
    if high - low + 1 != len(hit):
        return ""
    if len(hit) == len(tried):
        return f"it shows at every {name} that was tried"
    ends = f"{hit[0]:g}" if low == high else f"{hit[0]:g} to {hit[-1]:g}"
    return f"it shows at {name} {ends} ({tried[0]:g} to {tried[-1]:g} were tried)"


def departing_rows(observations: Sequence[Observation]) -> str:
    """A sentence on the rows that depart under ``reduction="none"``, empty unless it is the same part on all cases."""
    parts = set()
    for observation in usable(observations):
        gap = gaps(observation)[VALUE]
        if gap.got.ndim == 0 or gap.right:
            continue
        parts.add(named_part(~(np.abs(gap.got - gap.want) <= gap.bound), samples(observation.probe)))
    return f"only {parts.pop()} departs" if len(parts) == 1 and "" not in parts else ""


def named_part(departs: Any, n: int) -> str:
    """The name of a part of the rows: ``the last row``, ``the second view``; empty for anything else.

    `departs`: which rows it is; of shape (2, N) for two directions. `n`: the number of samples.
    """
    departs = np.asarray(departs)
    flat, size = departs.ravel(), departs.size
    if flat.all() or not flat.any():
        return ""
    halves = "direction" if departs.ndim == 2 and departs.shape[0] == 2 else "view" if size == 2 * n else ""
    for words, part in parts_of_rows(size, halves).items():
        if np.array_equal(flat, part):
            return words
    first, last = int(np.flatnonzero(flat)[0]), int(np.flatnonzero(flat)[-1])
    return f"the block of rows {first} to {last}" if flat[first : last + 1].all() and last > first else ""
