"""Explanations are tried on fresh calls that were made to refute them; what does not predict them is dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Outcome, Probe
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.explanation import Explanation, variant_value
from nceref.diagnosis.features import samples, where
from nceref.diagnosis.fresh import GENERAL, MORE, TELLING, FreshCalls, InputSpec
from nceref.diagnosis.gaps import VALUE, gaps, usable
from nceref.diagnosis.gradients import gradients_hold
from nceref.diagnosis.localize import size_edge, sized, threshold
from nceref.diagnosis.search import explanations, is_comparable, values_hold

EACH = 2
"""Calls for each explanation on which it differs most from the reference."""


@dataclass(frozen=True, eq=False)
class Tried:
    """The explanations that are left, and the fresh calls that were made.

    Attributes
    ----------
    kept : tuple of Explanation
        Those that predict every fresh call.
    refuted : tuple of Explanation
        Those that fit the corpus only.
    calls : tuple of Observation
    """

    kept: tuple[Explanation, ...]
    refuted: tuple[Explanation, ...] = ()
    calls: tuple[Observation, ...] = ()


def explained(answered: Sequence[Observation], calls: FreshCalls, singly: bool = False) -> Tried:
    """Explanations of the corpus that predict fresh calls; where these refute all, what explains both.

    `answered`: of the corpus. `singly`: no two conventions at once.
    """
    candidates = explanations(answered, singly)
    if not candidates or not calls.possible:
        return Tried(candidates)
    first = tried(candidates, calls, GENERAL)
    if first.kept or singly:
        return first
    again = explanations([*answered, *first.calls])
    # The calls that it was made from are none that it predicts.
    known = sum(is_comparable(o) for o in first.calls)
    second = tried([replace(e, of=e.of - known) for e in again], calls, MORE)
    return Tried(second.kept, (*first.refuted, *second.refuted), (*first.calls, *second.calls))


def explained_apart(answered: Sequence[Observation], calls: FreshCalls) -> Tried:
    """Explanations of all cases but a batch of one, or of those that are wrong where others are right.

    `answered`: of the corpus, which nothing explains as a whole. Of a part of the cases only one convention is looked
    for: where a program does something else is a change by itself.
    """
    seen = [o for o in usable(answered) if is_comparable(o)]
    single = [o for o in seen if samples(o.probe) == 1]
    several = [o for o in seen if o not in single]
    if any(not gaps(o)[VALUE].right for o in single) and several and (candidates := explanations(several)):
        apart = f"every case but the batch of one ({_example(single[0])})"
        kept = [replace(e, apart=apart) for e in candidates]
        return tried(kept, calls, GENERAL) if calls.possible else Tried(tuple(kept))
    wrong = [o for o in several if not gaps(o)[VALUE].right]
    right = [o for o in several if o not in wrong]
    beyond = _beyond_a_size(right, wrong, calls)
    if beyond.kept:
        return beyond
    # A sentence about a part of the cases is worth nothing before fresh calls confirm it.
    if len(wrong) < _PART or len(right) < _PART or not calls.possible:
        return Tried(())
    made = [o for o in calls.at((*TELLING, *GENERAL)) if is_comparable(o)]
    departing = [o for o in made if not gaps(o)[VALUE].right]
    which = where(wrong, several, departing, [o for o in made if o not in departing]).removeprefix("on ")
    limits = "".join(f"; {words}" for _, words in threshold(several, calls))
    apart = f"the wrong cases ({which}{limits}; the others are right)"
    candidates = explanations(wrong, singly=True) if len(departing) >= _PART else ()
    kept = [e for e in candidates if e.value_options and holds(e, departing)]
    return Tried(tuple(replace(e, apart=apart, fresh=len(departing)) for e in kept), calls=tuple(made))


def _beyond_a_size(right: Sequence[Observation], wrong: Sequence[Observation], calls: FreshCalls) -> Tried:
    """Explanations of batches from some size on, found on fresh calls of such sizes, where smaller ones are right."""
    edge = size_edge(right, wrong, calls)
    if edge is None or edge[2] > _LARGEST:
        return Tried(())
    letter, low, high = edge
    specs = [sized(letter, high + more, t) for more, t in _BEYOND]
    made = [o for o in calls.at(specs) if is_comparable(o)]
    found = explanations(made[:-_PART], singly=True) if len(made) == len(specs) else ()
    words = f"batches of {high} {_UNITS[letter]} and more (right up to {low})"
    kept = [
        replace(e, apart=words, of=len(wrong), fresh=_PART)
        for e in found
        if e.value_options and holds(e, made[-_PART:]) and holds(e, wrong)
    ]
    return Tried(tuple(kept), calls=tuple(made))


_LARGEST = 200
"""Samples, or features, of the smallest wrong batch that a search is tried on."""
_BEYOND = ((0, 0.3), (1, 0.55), (5, 0.2), (9, 0.4), (14, 0.8), (21, 0.15))
"""How far beyond, and at which temperature; the last ones are kept to refute what is found on the others."""
_UNITS = {"N": "samples", "D": "features"}
_PART = 2
"""Cases, and fresh calls, that a part must have at least."""


def _example(observation: Observation) -> str:
    gap = gaps(observation)[VALUE]
    return f"there yours is {float(gap.got.flat[0]):.6g}, the reference {float(gap.want.flat[0]):.6g}"


def tried(candidates: Sequence[Explanation], calls: FreshCalls, specs: Sequence[InputSpec]) -> Tried:
    """The explanations that predict fresh calls: of some inputs, and of those that tell them apart."""
    made = calls.at(specs)
    kept = [e for e in candidates if holds(e, made)]
    for explanation in tuple(kept):
        others = [e for e in kept if e is not explanation]
        made += [o for o in calls.at(_telling(explanation, others, calls)) if o not in made]
    kept = [e for e in kept if holds(e, made)]
    count = sum(is_comparable(o) for o in made)
    refuted = tuple(e for e in candidates if e not in kept)
    # Two ways to say the same gradients of the same values are one explanation.
    kept = list({e.value_options: e for e in reversed(kept)}.values())[::-1]
    return Tried(tuple(replace(e, fresh=count) for e in kept), refuted, tuple(made))


def holds(explanation: Explanation, observations: Sequence[Observation]) -> bool:
    """Whether an explanation predicts observations that it was not made from, values and gradients.

    `observations`: those that are not finite are left out, as in the search.
    """
    analyses = [CaseAnalysis(o) for o in observations if is_comparable(o)]
    return values_hold(explanation, analyses) and gradients_hold(explanation, analyses)


def _telling(explanation: Explanation, others: Sequence[Explanation], calls: FreshCalls) -> list[InputSpec]:
    """Inputs on which the explanation differs most from the reference, and from each of the others."""
    if not explanation.value_options:
        return list(TELLING[:EACH])
    from_reference, from_others = [], []
    for spec, probe in calls.probes(TELLING):
        value, allowed = _predicted(explanation, probe)
        reference = np.atleast_1d(np.asarray(probe.value, dtype=np.float64)).ravel()
        from_reference.append((_apart(value, reference, allowed), spec))
        from_others += [(_apart(value, _predicted(other, probe)[0], allowed), spec) for other in others]
    by_distance = sorted(from_reference, key=lambda pair: -pair[0])[:EACH]
    by_distance += sorted(from_others, key=lambda pair: -pair[0])[: EACH - 1]
    return list(dict.fromkeys(spec for apart, spec in by_distance if apart > 2))


def _predicted(explanation: Explanation, probe: Probe) -> tuple[Any, Any]:
    return variant_value(CaseAnalysis(Observation(probe, Outcome(probe.value))), explanation.value_options)


def _apart(x: Any, y: Any, allowed: Any) -> float:
    """Distance of two predictions in units of what is allowed; 0 where one is no number."""
    if x.shape != y.shape or not np.all(np.isfinite(x)) or not np.all(np.isfinite(y)):
        return 0.0
    return float(np.max(np.abs(x - y) / (allowed + 1e-300), initial=0.0))
