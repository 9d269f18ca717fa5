"""From what was observed to at most three explanations: conventions, arithmetic beside them, where it departs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Outcome, Probe, Result
from nceref.diagnosis.advice import fix_of
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.departure import departure
from nceref.diagnosis.explanation import GRADIENT_AXES, Explanation, variant_value
from nceref.diagnosis.features import samples
from nceref.diagnosis.fresh import GENERAL, NO_CALLS, FreshCalls
from nceref.diagnosis.gaps import VALUE, diagnosis, gaps, is_constant, usable
from nceref.diagnosis.intended import options_of
from nceref.diagnosis.localize import Located, localized, with_other_setting
from nceref.diagnosis.options import is_listed
from nceref.diagnosis.refute import explained, explained_apart, holds
from nceref.diagnosis.rounding import Repeated, repeated
from nceref.diagnosis.search import is_comparable
from nceref.diagnosis.triage import triage
from nceref.output.limits import of_the_bound
from nceref.output.words import out_of
from nceref.tolerance.implementation import FORMATS

MOST = 3
EQUALS = "your loss equals the reference with "
"""What the explanation of a value begins with, where it is complete."""
_WITH_IDENTITY = (
    ("scale", "fail", "scaling the rows changes the value of {case}"),
    ("permutation", "fail", "reordering the samples changes the value of {case}"),
    ("closed-form", "pass", "the value of {case}, where all rows are equal, is right"),
    ("closed-form", "fail", "the value of {case}, where all rows are equal, is wrong"),
)
"""Identity, its status, and what was seen; the first that applies is added. What causes it does not follow from it."""
_SEEN = frozenset({"value-not-finite", "gradient-not-finite"})
"""What is seen of numbers, and is no cause."""
_MAKES_ANY = frozenset({"factor", "offset"})
"""Axes by which any function becomes a constant."""
_EXPONENTS = frozenset({"normalization", "temperature", "bias", "margin", "prior"})
"""Axes that change what is exponentiated: the exponents of the reference show nothing there."""


def diagnose(
    observations: Iterable[Observation], identities: Sequence[Result] = (), calls: FreshCalls = NO_CALLS
) -> tuple[Diagnosis, ...]:
    """Explain a difference, the simplest explanation that fits all cases and predicts fresh calls first.

    `observations`: all of a run. `identities`: what became of the identities: where nothing fits, they show which stage
    departs first. `calls`: the target, for calls beyond the corpus. Result: at most three; one with the id
    ``unexplained`` where nothing fits; none where the target is right.
    """
    answered = [o for o in observations if not o.probe.skip and not o.outcome.trouble]
    if (told := _told(answered)) is not None:
        return (told,)
    if (again := repeated(_failing(answered), calls)) is not None:
        return (_not_repeatable(again),)
    if (same := _same_everywhere(answered, calls)) is not None:
        # Some conventions leave no more than that; a factor or an offset would explain any such function.
        single = explained(answered, calls, singly=True).kept
        kept = [e for e in single if not _MAKES_ANY & {o.axis for o in e.options}]
        return tuple(in_words(e, answered, (), calls) for e in kept) or (same,)
    arithmetic = tuple(one for one in triage(answered, calls=calls) if is_listed(one.id.split("+")))
    # Another setting is soon tried, and says more than two conventions do.
    tried = explained(answered, calls, singly=True)
    local = Located() if tried.kept or arithmetic else with_other_setting(answered, calls)
    if not (tried.kept or local.found):
        tried = explained(answered, calls)
    candidates = tried.kept
    if not (candidates or arithmetic or local.found):
        local = localized(answered, calls)
        candidates = () if local.found or tried.refuted else explained_apart(answered, calls).kept
    complete = [e for e in candidates if e.gradient]
    # What explains values and gradients goes before arithmetic, which is added to its sentence.
    if complete:
        return tuple(in_words(e, answered, arithmetic, calls) for e in complete)
    if arithmetic:
        # Beside arithmetic, what else is wrong with gradients; values that it does not explain are explained above.
        rest = [e for e in candidates if not e.value_options and arithmetic[0].id != "gradient-loses-digits"]
        return tuple(_distinct([*arithmetic, *(in_words(e, answered, (), calls) for e in rest)]))[:MOST]
    part = tuple(in_words(e, answered, (), calls) for e in candidates) or local.found
    return part or tuple(
        _with_identities(one, identities).noting(*(f"also measured: {words}" for words in local.remarks))
        for one in departure(answered, calls)
    )


def _failing(answered: Sequence[Observation]) -> list[Observation]:
    """Cases on which any number is wrong, those with ordinary numbers first."""
    wrong = [o for o in usable(answered) if not all(gap.right for gap in gaps(o).values())]
    return sorted(wrong, key=lambda o: not all(gap.finite for gap in gaps(o).values()))


def _not_repeatable(again: Repeated) -> Diagnosis:
    """The diagnosis of two answers to the same inputs; nothing that is measured once says more then."""
    what = "the value" if again.quantity == VALUE else f"an entry of the gradient of {again.quantity}"
    numbers = ((f"{again.first:.{n}g}", f"{again.second:.{n}g}") for n in range(6, 18))
    first, second = next((x, y) for x, y in numbers if x != y)
    id, when = ("not-repeatable", "") if again.in_turn else ("earlier-calls-kept", ", after the other cases,")
    said = (
        f"called again{when} with the same inputs, your loss answers something else: {what} is {first}, then {second}"
    )
    return diagnosis(id, DiagnosisPart(said, f"on {again.case}"))


def _told(answered: Sequence[Observation]) -> Diagnosis | None:
    """The diagnosis of an object that answered two calls in a row otherwise; None where none was seen to."""
    seen = next((o for o in answered if "not-deterministic" in o.outcome.remarks), None)
    if seen is None:
        return None
    sentence = seen.outcome.remarks["not-deterministic"]
    id = "earlier-calls-kept" if "the first call has changed" in sentence else "not-repeatable"
    return diagnosis(id, DiagnosisPart(f"your loss {sentence}", f"on {seen.probe.id}"))


def _same_everywhere(answered: Sequence[Observation], calls: FreshCalls) -> Diagnosis | None:
    """The diagnosis of one finite number in place of all values; None where two differ, or the reference's do not."""
    cases = usable(answered)
    if not is_constant(cases):
        return None
    fresh = calls.at(GENERAL)
    if not is_constant([*cases, *fresh]):
        return None
    number = np.ravel(cases[0].outcome.value)[0]
    part = DiagnosisPart(f"whatever its inputs are, your loss is {number:.6g}", _count(len(cases), len(fresh)))
    return diagnosis("inputs-ignored", part, predicts=is_constant)


def _distinct(diagnoses: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    """The first of each id."""
    known: set[str] = set()
    for one in diagnoses:
        if one.id not in known:
            known.add(one.id)
            yield one


def _with_identities(unexplained: Diagnosis, identities: Sequence[Result]) -> Diagnosis:
    """The diagnosis with what an identity shows of the value; as it is where the value is right."""
    if unexplained.id != "unexplained":
        return unexplained
    cases: dict[tuple[str, str], str] = {(r.quantity.removeprefix("identity."), r.status): r.case for r in identities}
    return unexplained.noting(
        next((w.format(case=cases[name, s]) for name, s, w in _WITH_IDENTITY if (name, s) in cases), "")
    )


def in_words(
    explanation: Explanation, answered: Sequence[Observation], arithmetic: Sequence[Diagnosis], calls: FreshCalls
) -> Diagnosis:
    """An explanation with what arithmetic does beside it."""
    rest, nonfinite = (arithmetic, ()) if not explanation.value_options else _beside(explanation, answered, calls)
    # That a number is not finite somewhere is no second convention; why it is may be one.
    named = [one for one in rest[:1] if one.id not in _SEEN]
    ids = [*explanation.ids, *(one.id for one in named)]
    parts = (*_parts(explanation), *nonfinite, *(s for one in rest[:1] for s in one.parts))
    predicts = partial(_predicted, explanation, tuple(one.predicts for one in named if one.predicts))
    # What holds on a part of the cases, or beside arithmetic, cannot be stated.
    intend = "" if explanation.apart or named else options_of(explanation.options, answered)
    found = replace(diagnosis("+".join(ids), *parts, predicts=predicts), intend=intend)
    others = [o.remedy or fix_of(o.id) for o in explanation.value_options] + [fix_of(one.id) for one in named]
    backward = [fix_of(o.id) for o in explanation.options if o.axis in GRADIENT_AXES]
    own = " ".join([*others, *([explanation.remedy] if explanation.remedy else backward)])
    return replace(found, fix=own) if explanation.remedy or any(o.remedy for o in explanation.options) else found


def _predicted(explanation: Explanation, beside: Sequence[Callable[..., bool]], seen: Sequence[Observation]) -> bool:
    """Whether other cases are as an explanation says, and what is said beside it."""
    answered = usable(seen)
    part = [o for o in answered if _says(explanation, o)]
    if explanation.apart:
        part = [o for o in part if samples(o.probe) > 1 and not gaps(o)[VALUE].right]
    return bool(part) and holds(explanation, part) and all(predicts(answered) for predicts in beside)


def _says(explanation: Explanation, observation: Observation) -> bool:
    """Whether an explanation has a number for a case: a formula may have none where its stages leave the range."""
    if not explanation.is_formula or not is_comparable(observation):
        return True
    value, _ = variant_value(CaseAnalysis(observation), explanation.value_options)
    return bool(np.all(np.isfinite(value)))


def _beside(
    explanation: Explanation, answered: Sequence[Observation], calls: FreshCalls
) -> tuple[Sequence[Diagnosis], tuple[DiagnosisPart, ...]]:
    """Diagnoses of arithmetic on the cases that are not finite, given that the others are explained.

    Second, how many have no number because the explanation has none.
    """
    expected = _expecting(explanation)
    nonfinite = [o for o in usable(answered) if not np.all(np.isfinite(o.outcome.value))]
    if not nonfinite:
        return (), ()
    # Where the explanation itself has no number in this format, that the target has none says nothing more.
    largest = FORMATS[answered[0].probe.dtype].storage.largest
    beyond = [o for o in nonfinite if not np.all(np.abs(expected(o.probe)[0]) <= largest)]
    cases = f"on {out_of(len(nonfinite), len(answered), 'case')}"
    # Of a formula the way may leave the range, and not the loss.
    if beyond and not explanation.is_formula:
        which = "where" if beyond == nonfinite else f"on {len(beyond)} of them because"
        cases += f", {which} the loss with that has no finite value in {answered[0].probe.dtype}"
    rest = [o for o in answered if o not in beyond]
    moved = explanation.is_formula or any(o.axis in _EXPONENTS for o in explanation.options)
    causes = triage(rest, expected, causes=not moved, calls=calls)
    # A cause that covers all of them counts them as well.
    return causes, () if causes and not beyond else (DiagnosisPart("your value is NaN or infinite", cases),)


def _expecting(explanation: Explanation) -> Callable[[Probe], Any]:
    def expected(probe: Probe) -> Any:
        analysis = CaseAnalysis(Observation(probe, Outcome(probe.value)))
        value, _ = variant_value(analysis, explanation.value_options)
        return np.reshape(value, np.shape(probe.value)), {}

    return expected


def _parts(explanation: Explanation) -> tuple[DiagnosisPart, ...]:
    value: list[str] = []
    backward: list[str] = []
    for option in explanation.options:
        phrases = backward if option.axis in GRADIENT_AXES else value
        shown = phrases is value or not explanation.gradient_words
        setting = f" ({option.setting})" if shown and option.setting else ""
        phrases.append(f"{CONVENTIONS[option.id].phrase}{setting}")
    count = _count(explanation.of, explanation.fresh)
    count = f"on {explanation.apart}: {count}" if explanation.apart else count
    fits = f"{count} (errors {of_the_bound(explanation.residual)})"
    if not value:
        gradient = DiagnosisPart(f"the gradient is that with {_joined(backward)}", fits, "computes")
        return DiagnosisPart("the value is right", count, "right"), *(explanation.gradient_words or (gradient,))
    equals = DiagnosisPart(f"{EQUALS}{_joined(value)}", fits, "computes")
    like = (DiagnosisPart(f"it is computed with {_joined(backward)}"),) if backward else ()
    return equals, *(explanation.gradient_words or like)


def _count(cases: int, fresh: int) -> str:
    """The number of cases and of fresh calls, all of which are as is said."""
    return f"on {out_of(cases, cases, 'case')}" + (f" and {out_of(fresh, fresh, 'fresh call')}" if fresh else "")


def _joined(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
