"""From what was observed to at most three explanations: arithmetic, conventions, patterns, in that order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.allowance import FORMATS
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.diagnosis.bench import Bench
from nceref.verification.diagnosis.patterns import patterns, triage
from nceref.verification.diagnosis.search import Reading, answer, readings
from nceref.verification.records import Diagnosis, Observation, Outcome, Probe, Result

MOST = 3
_NOTHING = ("unexplained", "value-right-gradient-wrong")
_STAGES = (
    ("scale", "fail", "the normalized rows depart first: scaling a row changes the value"),
    ("permutation", "fail", "the samples are not treated alike: reordering them changes the value"),
    ("closed-form", "pass", "the logits depart first: the value is right where all similarities are equal"),
    (
        "closed-form",
        "fail",
        "denominator or row losses depart first: the value is wrong where all similarities are equal",
    ),
)
"""Identity, its status, and what follows; the first that applies is told."""
_BACKWARD = ("gradient", "gradient-factor")


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
    if complete or arithmetic:
        return (complete or arithmetic)[:MOST]
    other = patterns(seen)
    partial = tuple(one for one, _ in found)
    # A reading that explains the values alone stands before a pattern that explains nothing, and after one that does.
    known = [one for one in other if one.id not in _NOTHING]
    named = [one for one in partial if one.id not in _NOTHING]
    return ((*named, *known) or partial or tuple(_staged(one, asked) for one in other))[:MOST]


def _staged(unexplained: Diagnosis, asked: Sequence[Result]) -> Diagnosis:
    """With the stage that departs first: rows, logits, or denominator and row losses."""
    found = {result.quantity.removeprefix("identity."): result.status for result in asked}
    stage = next((told for name, status, told in _STAGES if found.get(name) == status), "")
    return replace(unexplained, sentence=f"{unexplained.sentence}{stage and f'; {stage}'}")


def _explained(
    reading: Reading, seen: Sequence[Observation], arithmetic: Sequence[Diagnosis]
) -> tuple[Diagnosis, bool]:
    """A reading in words, with what arithmetic does beside it; and whether value and gradients are explained."""
    values = [o for o in reading.options if o.axis not in _BACKWARD]
    rest = arithmetic if not values else _beside(reading, seen)
    ids = [*reading.ids, *(one.id for one in rest[:1])]
    sentence = "; ".join([_sentence(reading), *(one.sentence for one in rest[:1])])
    threads = [thread for id in ids for thread in CONVENTIONS[id].threads]
    fixes = [CONVENTIONS[id].fix for id in ids]
    return Diagnosis("+".join(ids), sentence, tuple(dict.fromkeys(threads)), " ".join(fixes)), reading.gradient


def _beside(reading: Reading, seen: Sequence[Observation]) -> Sequence[Diagnosis]:
    """What arithmetic does to the cases that are not finite, given that the others are the reading's."""
    expected = _expecting(reading)
    if all(np.all(np.isfinite(o.outcome.value)) for o in seen):
        return ()
    # Where the reading itself has no number in this format, that the target has none says nothing more.
    largest = FORMATS[seen[0].probe.dtype].storage.largest
    return triage([o for o in seen if np.all(np.abs(expected(o.probe)[0]) <= largest)], expected)


def _expecting(reading: Reading) -> Callable[[Probe], Any]:
    chosen = tuple(o for o in reading.options if o.axis not in _BACKWARD)

    def expected(probe: Probe) -> Any:
        found, _ = answer(Bench(Observation(probe, Outcome(probe.value))), chosen)
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
