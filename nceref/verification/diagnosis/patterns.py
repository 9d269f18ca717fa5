"""What can be said of a target beside the convention search: fits, rows, gradients, arithmetic, where it departs."""

from collections.abc import Iterable, Iterator, Sequence

from nceref.verification.diagnosis.backward import gradient_patterns
from nceref.verification.diagnosis.features import temperature_scalar, where
from nceref.verification.diagnosis.fits import fitted_multiples, known_multiples
from nceref.verification.diagnosis.gaps import (
    VALUE,
    Hypothesis,
    Test,
    diagnosis,
    equals,
    gaps,
    listed,
    not_finite,
    tested,
    usable,
)
from nceref.verification.diagnosis.rowwise import additions, departing_rows
from nceref.verification.diagnosis.scalars import fitted_temperatures, ignored_scalars, known_temperatures
from nceref.verification.diagnosis.triage import COARSER, triage
from nceref.verification.records import Diagnosis, Observation

__all__ = ["departure", "patterns", "triage"]


def patterns(observations: Iterable[Observation]) -> tuple[Diagnosis, ...]:
    """Everything that fits all cases, the simplest first; where nothing does, ``unexplained`` and where it departs.

    Parameters
    ----------
    observations : iterable of Observation
        All of a run, with the reference's answers.

    Returns
    -------
    tuple of Diagnosis
        Empty for a target that is right.
    """
    seen = usable(observations)
    if all(_right(o) for o in seen):
        return gradient_patterns(seen)
    found = [*triage(seen), *gradient_patterns([o for o in seen if gaps(o)[VALUE].finite])]
    # A cause that fits every case to the last digit is simpler than coarse roundings.
    if {one.id for one in found} <= {coarse.id for coarse in COARSER}:
        found = [*_fitting(seen, whole=bool(found))] or found
    return tuple(_distinct(found)) or departure(seen)


def _right(observation: Observation) -> bool:
    return all(gap.right for gap in gaps(observation).values()) and not not_finite(observation)


def _distinct(found: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    seen = set()
    for one in found:
        if one.id not in seen:
            seen.add(one.id)
            yield one


def _fitting(observations: Sequence[Observation], *, whole: bool) -> Iterator[Diagnosis]:
    """Hypotheses that fit every finite value, those whose gradients fit as well first, or only those if `whole`."""
    fits: list[tuple[Hypothesis, Test]] = []
    for family in (_known, _fitted):
        # A constant that is fitted adds nothing to one that has a name.
        if not any(not test.wrong for _, test in fits):
            fits += [(h, t) for h in family(observations) if (t := tested(h, observations)) is not None]
    for hypothesis, test in sorted(fits, key=lambda fit: len(fit[1].wrong)):
        if whole and test.wrong:
            break
        one = equals(hypothesis, test)
        rest = triage(observations, hypothesis.expected) if test.cases < test.judged else ()
        yield diagnosis(f"{one.id}+{rest[0].id}", f"{one.sentence}; {rest[0].sentence}") if rest else one


def _known(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    yield from additions(observations)
    yield from known_multiples()
    yield from known_temperatures(observations)


def _fitted(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    yield from fitted_multiples(observations)
    yield from fitted_temperatures(observations)
    yield from ignored_scalars(observations)


def departure(observations: Iterable[Observation]) -> tuple[Diagnosis, ...]:
    """Where a target that nothing explains departs: which quantities, on which cases, from which temperature.

    Returns
    -------
    tuple of Diagnosis
        One, with the id ``unexplained``; none where the target is right.
    """
    seen = usable(observations)
    failing: dict[str, list[Observation]] = {}
    for observation in seen:
        for name, gap in gaps(observation).items():
            if not gap.right:
                failing.setdefault(name, []).append(observation)
    if not failing:
        return ()
    told: dict[str, list[str]] = {}
    for name in [n for n in (VALUE, *failing) if n in failing]:
        place = _place(name, failing[name], seen)
        told.setdefault(place, [])
        told[place] += [name] if name not in told[place] else []
    parts = [f"{_quantities(names)} depart{'' if len(names) > 1 else 's'} {place}" for place, names in told.items()]
    fine = [name for name in gaps(seen[0]) if name not in failing]
    right = [f"{_quantities(fine)} {'is' if len(fine) == 1 else 'are'} right"] if fine else []
    extra = [text for text in (departing_rows(seen), _temperatures(failing, seen)) if text]
    return (diagnosis("unexplained", "; ".join([*parts, *right, *extra])),)


def _quantities(names: Sequence[str]) -> str:
    """The quantities in words: ``the value``, ``the gradient of z1``, ``the value and the gradients of z1 and z2``."""
    inputs = [name for name in names if name != VALUE]
    words = ["the value"] if VALUE in names else []
    words += [f"the gradient{'s' if len(inputs) > 1 else ''} of {listed(inputs)}"] if inputs else []
    return " and ".join(words)


def _place(name: str, failing: Sequence[Observation], judged: Sequence[Observation]) -> str:
    endless = sum(not gaps(o)[name].finite for o in failing)
    rest = f" ({endless} of them not finite)" if endless else ""
    return f"{where(failing, [o for o in judged if name in gaps(o)])}{rest}"


def _temperatures(failing: dict[str, list[Observation]], judged: Sequence[Observation]) -> str:
    """The temperatures (or scales) at which anything fails, where they are all or a range of those that were tried."""
    bad = {found for each in failing.values() for o in each if (found := temperature_scalar(o.probe))}
    every = sorted({found for o in judged if (found := temperature_scalar(o.probe))})
    if not bad or len(every) < 2:
        return ""
    name, tried = every[0][0].replace("_", " "), [value for _, value in every]
    hit = [value for _, value in sorted(bad)]
    low, high = tried.index(hit[0]), tried.index(hit[-1])
    if high - low + 1 != len(hit):
        return ""
    if len(hit) == len(tried):
        return f"it shows at every {name} that was tried"
    ends = f"{hit[0]:g}" if low == high else f"{hit[0]:g} to {hit[-1]:g}"
    return f"it shows at {name} {ends} ({tried[0]:g} to {tried[-1]:g} were tried)"
