"""From what was observed to at most three explanations: arithmetic, conventions, patterns, in that order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.tolerance.implementation import FORMATS
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.diagnosis.case import CaseAnalysis
from nceref.verification.diagnosis.patterns import patterns, triage
from nceref.verification.diagnosis.search import Reading, answer, readings
from nceref.verification.records import Diagnosis, Observation, Outcome, Probe, Result

MOST = 3
_NOTHING = ("unexplained", "value-right-gradient-wrong")
_ASKED = (
    ("scale", "fail", "scaling the rows changes the value of {case}"),
    ("permutation", "fail", "reordering the samples changes the value of {case}"),
    ("closed-form", "pass", "the value of {case}, where all rows are equal, is right"),
    ("closed-form", "fail", "the value of {case}, where all rows are equal, is wrong"),
)
"""Identity, its status, and what was seen; the first that applies is told. What causes it is not known from it."""
_BACKWARD = ("gradient", "gradient-factor")
_EXPONENTS = frozenset({"normalization", "temperature", "bias", "margin", "prior"})
"""Axes that change what is exponentiated: the exponents of the reference tell nothing there."""


def diagnose(observations: Iterable[Observation], asked: Sequence[Result] = ()) -> tuple[Diagnosis, ...]:
    """Explain a difference, the simplest explanation that fits all cases first.

    Parameters
    ----------
    observations : iterable of Observation
        All of a run.
    asked : sequence of Result
        What became of the identities: where nothing fits, they tell which stage departs first.

    Returns
    -------
    tuple of Diagnosis
        At most three; one with the id ``unexplained`` where nothing fits.
    """
    seen = [o for o in observations if not o.probe.skip and not o.outcome.trouble]
    arithmetic = triage(seen)
    found = tuple(_explained(reading, seen, arithmetic) for reading in readings(seen) if reading.ids)
    complete = tuple(one for one, whole in found if whole)
    if complete:
        return complete[:MOST]
    # Beside arithmetic `patterns` tells what else is wrong with gradients.
    other = patterns(seen)
    if arithmetic:
        return other[:MOST]
    partial = tuple(one for one, _ in found if one.id not in _NOTHING)
    # A reading that explains the values alone stands before a pattern that explains nothing, and after one that does.
    known = [one for one in other if one.id not in _NOTHING]
    return ((*partial, *known) or tuple(_with_identities(one, asked) for one in other))[:MOST]


def _with_identities(unexplained: Diagnosis, asked: Sequence[Result]) -> Diagnosis:
    """With what an identity says of the value; nothing where the value is right."""
    if unexplained.id == "value-right-gradient-wrong":
        return unexplained
    found: dict[tuple[str, str], str] = {
        (result.quantity.removeprefix("identity."), result.status): result.case for result in asked
    }
    told = next((told.format(case=found[name, s]) for name, s, told in _ASKED if (name, s) in found), "")
    return replace(unexplained, sentence=f"{unexplained.sentence}{told and f'; {told}'}")


def _explained(
    reading: Reading, seen: Sequence[Observation], arithmetic: Sequence[Diagnosis]
) -> tuple[Diagnosis, bool]:
    """A reading in words, with what arithmetic does beside it; and whether value and gradients are explained."""
    values = [o for o in reading.options if o.axis not in _BACKWARD]
    rest, endless = (arithmetic, "") if not values else _beside(reading, seen)
    ids = [*reading.ids, *(one.id for one in rest[:1])]
    sentence = "; ".join([_sentence(reading), *([endless] if endless else []), *(one.sentence for one in rest[:1])])
    threads = [thread for id in ids for thread in CONVENTIONS[id].threads]
    fixes = [CONVENTIONS[id].fix for id in ids]
    return Diagnosis("+".join(ids), sentence, tuple(dict.fromkeys(threads)), " ".join(fixes)), reading.gradient


def _beside(reading: Reading, seen: Sequence[Observation]) -> tuple[Sequence[Diagnosis], str]:
    """What arithmetic does to the cases that are not finite, given that the others are the reading's.

    Second, how many have no number because the reading has none.
    """
    expected = _expecting(reading)
    endless = [o for o in seen if not np.all(np.isfinite(o.outcome.value))]
    if not endless:
        return (), ""
    # Where the reading itself has no number in this format, that the target has none says nothing more.
    largest = FORMATS[seen[0].probe.dtype].storage.largest
    beyond = [o for o in endless if not np.all(np.abs(expected(o.probe)[0]) <= largest)]
    told = f"your value is not finite on {len(endless)} of {len(seen)} cases"
    if beyond:
        told += f", {len(beyond)} of which are out of the range of {seen[0].probe.dtype} with that"
    rest = [o for o in seen if o not in beyond]
    moved = any(o.axis in _EXPONENTS for o in reading.options)
    found = triage(rest, expected, causes=not moved)
    # A cause that covers all of them counts them as well.
    return found, "" if found and not beyond else told


def _expecting(reading: Reading) -> Callable[[Probe], Any]:
    chosen = tuple(o for o in reading.options if o.axis not in _BACKWARD)

    def expected(probe: Probe) -> Any:
        found, _ = answer(CaseAnalysis(Observation(probe, Outcome(probe.value))), chosen)
        return np.reshape(found, np.shape(probe.value)), {}

    return expected


def _sentence(reading: Reading) -> str:
    value = [CONVENTIONS[o.id].phrase for o in reading.options if o.axis not in _BACKWARD]
    backward = [CONVENTIONS[o.id].phrase for o in reading.options if o.axis in _BACKWARD]
    detail = f" ({reading.detail})" if reading.detail else ""
    fits = f"on {reading.of} of {reading.of} cases (largest residual {reading.residual:.2g} of the bound)"
    if not value:
        told = f"it equals the reference's with {_joined(backward)}{detail}"
        return f"the value is right and the gradient is wrong: {told}, {fits}"
    told = f"your loss equals the reference with {_joined(value)}{detail}, {fits}"
    if backward:
        return f"{told}; and its gradient is that with {_joined(backward)}"
    return told if reading.gradient else f"{told}; its gradient is not the gradient of that"


def _joined(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
