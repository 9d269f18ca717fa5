"""What can be said of a target beside the convention search: fits, rows, gradients, arithmetic, where it departs."""

from collections.abc import Iterable, Iterator, Sequence

from nceref.verification.backward import gradient_patterns
from nceref.verification.features import heat, where
from nceref.verification.fits import multiples, temperatures
from nceref.verification.gaps import VALUE, Hypothesis, diagnosis, equals, gaps, listed, not_finite, tested, usable
from nceref.verification.records import Diagnosis, Observation
from nceref.verification.rowwise import additions, departing_rows
from nceref.verification.triage import triage

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
    found = [*triage(seen), *gradient_patterns([o for o in seen if not not_finite(o)])]
    if not found:
        found = list(_fitting(seen))
    return tuple(_distinct(found)) or departure(seen)


def _right(observation: Observation) -> bool:
    return all(gap.right for gap in gaps(observation).values()) and not not_finite(observation)


def _distinct(found: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    seen = set()
    for one in found:
        if one.id not in seen:
            seen.add(one.id)
            yield one


def _fitting(observations: Sequence[Observation]) -> Iterator[Diagnosis]:
    """Hypotheses that fit every finite value, those whose gradients fit as well first."""
    fits = [(h, t) for h in _hypotheses(observations) if (t := tested(h, observations)) is not None]
    for hypothesis, test in sorted(fits, key=lambda fit: len(fit[1].wrong)):
        one = equals(hypothesis, test)
        rest = triage(observations, hypothesis.expected) if test.cases < test.judged else ()
        if rest:
            id, sentence = f"{one.id}+{rest[0].id}", f"{one.sentence}; {rest[0].sentence}"
            yield diagnosis(id, sentence)
        else:
            yield one


def _hypotheses(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    yield from additions(observations)
    yield from multiples(observations)
    yield from temperatures(observations)


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
    parts = [_told(name, failing[name], seen) for name in (VALUE, *failing) if name in failing][: len(failing)]
    fine = [name for name in gaps(seen[0]) if name not in failing]
    right = [f"the {'value' if name == VALUE else f'gradient of {name}'} is right" for name in fine]
    extra = [text for text in (departing_rows(seen), _hottest(failing)) if text]
    return (diagnosis("unexplained", "; ".join([*dict.fromkeys(parts), *right, *extra])),)


def _told(name: str, failing: Sequence[Observation], judged: Sequence[Observation]) -> str:
    what = "the value" if name == VALUE else f"the gradient of {name}"
    endless = sum(not gaps(o)[name].finite for o in failing)
    rest = f" ({endless} of them not finite)" if endless else ""
    return f"{what} departs {where(failing, [o for o in judged if name in gaps(o)])}{rest}"


def _hottest(failing: dict[str, list[Observation]]) -> str:
    """The largest temperature (the smallest scale) at which anything fails."""
    found = [heat(o.probe) for each in failing.values() for o in each]
    values = [value for each in found if each is not None for value in each[1:]]
    names = [each[0] for each in found if each is not None]
    if not values:
        return ""
    name = names[0].replace("_", " ")
    edge = f"at {name} {max(values):g} and below" if names[0] == "temperature" else f"from {name} {min(values):g} on"
    return f"it shows {edge} ({listed(dict.fromkeys(failing))})"
