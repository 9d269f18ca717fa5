"""Where nothing on the list explains a target: what is measured of it, with the part that is right apart."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Probe
from nceref.diagnosis.dependence import (
    Ignored,
    bisected,
    ignored_inputs,
    ignored_tail,
    is_wrong,
    shortened,
    size_of,
)
from nceref.diagnosis.features import temperature_scalar
from nceref.diagnosis.fresh import FreshCalls, InputSpec, judged
from nceref.diagnosis.gaps import diagnosis, listed, usable
from nceref.diagnosis.readings import others, reading_of, settings
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature
from nceref.output.words import out_of

_UNITS = {"N": "row", "D": "feature"}
_IDS = {"N": "rows-ignored", "D": "features-ignored"}
_CHUNKS = (2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 512)
"""Blocks of which the rest may be lost."""
_ROWS = 40
"""Samples of a call at which a part of the rows may show that is ignored."""
_LARGE = InputSpec("designed", 0.25, (_ROWS, 12, 6, 9, 7, 2))
_ODD = InputSpec("designed", 0.25, (23, 11, 6, 9, 7, 2))
_WIDE = InputSpec("designed", 0.25, (5, 130, 4, 5, 6, 2))


@dataclass(frozen=True)
class Located:
    """Findings of calls on a target that nothing explains.

    Attributes
    ----------
    found : tuple of Diagnosis
        At most one, which predicts every case and fresh calls.
    remarks : tuple of str
        What was measured and explains nothing by itself.
    """

    found: tuple[Diagnosis, ...] = ()
    remarks: tuple[str, ...] = ()


def with_other_setting(answered: Sequence[Observation], calls: FreshCalls) -> Located:
    """Whether a target is the reference with another choice of one of its settings; `answered`: of the corpus."""
    seen = [o for o in usable(answered) if np.all(np.isfinite(o.outcome.value))]
    reading = reading_of(seen, calls, settings) if calls.possible else None
    return Located() if reading is None else Located((reading,))


def localized(answered: Sequence[Observation], calls: FreshCalls) -> Located:
    """Findings of calls on a target that nothing explains: on which part of the inputs it is the reference.

    `answered`: of the corpus.
    """
    seen = [o for o in usable(answered) if np.all(np.isfinite(o.outcome.value))]
    wrong = [o for o in seen if is_wrong(o)]
    if not wrong or not calls.possible:
        return Located()
    reading = reading_of(seen, calls, others)
    if reading is not None:
        return Located((reading,))
    tail, remark = _without_tail(seen, wrong, calls)
    if tail is not None:
        return Located((tail,))
    return Located((), tuple(words for words in (_without_inputs(wrong, calls), remark) if words))


def _central(wrong: Sequence[Observation], most: int = 64) -> Observation:
    """A wrong case at an ordinary temperature, small enough to be called often, several samples large."""

    def rank(observation: Observation) -> tuple[bool, float]:
        scalar = temperature_scalar(observation.probe)
        t = 0.3 if scalar is None else at_temperature(*scalar)
        return not 3 <= size_of(observation.probe, "N") <= most, abs(math.log(float(t) / 0.3))

    return min(wrong, key=rank)


def _without_inputs(wrong: Sequence[Observation], calls: FreshCalls) -> str:
    """Inputs without an effect on two cases, in words."""
    one = _central(wrong)
    others = [o for o in wrong if o is not one and size_of(o.probe, "N") != size_of(one.probe, "N")]
    tried = [one, *([_central(others)] if others else [])]
    names = ignored_inputs(one, calls)
    names = [name for name in names if all(name in ignored_inputs(o, calls) for o in tried[1:])]
    cases = " and ".join(o.probe.id for o in tried)
    return f"on {cases} the value stays the same when {_either(names)} is replaced by others" if names else ""


def _either(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _without_tail(
    seen: Sequence[Observation], wrong: Sequence[Observation], calls: FreshCalls
) -> tuple[Diagnosis | None, str]:
    """The reference on the first rows or features, as a rule that all calls follow; else what was seen, in words."""
    remark = ""
    for letter, specs in (("N", (_LARGE, _ODD)), ("D", (_WIDE, _LARGE))):
        largest = sorted((o for o in wrong if size_of(o.probe, letter) <= 200), key=lambda o: -size_of(o.probe, letter))
        fresh = [o for o in calls.at(specs) if is_wrong(o)]
        tails = [t for o in (*largest[:1], *fresh) if (t := ignored_tail(o, letter, calls)) is not None]
        if not tails:
            continue
        rule = _rule(tails)
        if not _is_reference_of([*seen, *fresh], letter, rule, calls):
            remark = remark or _tail_in_words(letter, rule, tails)
            continue
        limit = [DiagnosisPart(f"right for {letter} <= {rule.most}", "", "right")] if rule.most else []
        cases = out_of(sum(map(is_wrong, seen)), len(seen), "case")
        parts = (
            *limit,
            DiagnosisPart(f"the value does not depend on {_in_words(rule)}"),
            DiagnosisPart("of the others it is the reference", "", "right"),
            DiagnosisPart("the value departs", f"on {cases}"),
        )
        return diagnosis(_IDS[letter], *parts, predicts=partial(_follows, letter, rule, calls)), ""
    return None, remark


def _tail_in_words(letter: str, rule: "TailRule", tails: Sequence[Ignored]) -> str:
    """A sentence on several batches; of one, what saturates looks the same."""
    last = all(t.kept == t.size - 1 for t in tails)
    if len(tails) < _BATCHES or not (rule.most or rule.block or last):
        return ""
    sizes = listed(dict.fromkeys(str(t.size) for t in tails))
    unit = _UNITS[letter]
    which = f"{_in_words(rule)} are" if rule.most or rule.block else f"the last {unit} is"
    return f"with {sizes} {unit}s the value stays the same when {which} replaced by others"


_BATCHES = 2
"""In which a part must be without an effect."""


def _follows(letter: str, rule: "TailRule", calls: FreshCalls, observations: Sequence[Observation]) -> bool:
    """Whether other cases are the reference on the part that the rule keeps."""
    answered = [o for o in usable(observations) if np.all(np.isfinite(o.outcome.value))]
    return any(map(is_wrong, answered)) and _is_reference_of(answered, letter, rule, calls)


@dataclass(frozen=True)
class TailRule:
    """The part at the end that is ignored, as a rule that all measurements follow.

    Attributes
    ----------
    letter : str
    most : int
        As many at most are used; 0 where that is not the rule.
    block : int
        Those beyond the last multiple of it are ignored; 0 where that is not the rule.
    seen : Ignored
        One that was measured.
    """

    letter: str
    most: int
    block: int
    seen: Ignored

    def kept(self, size: int) -> int:
        """The number that is used of so many."""
        if self.most:
            return min(size, self.most)
        return max(size - size % self.block, min(size, self.block)) if self.block else size - 1


def _rule(tails: Sequence[Ignored]) -> TailRule:
    first = tails[0]
    if len({t.kept for t in tails}) == 1 and (len(tails) > 1 or first.size - first.kept > first.kept // 2):
        return TailRule(first.letter, first.kept, 0, first)
    blocks = [b for b in _CHUNKS if all(t.kept == t.size - t.size % b for t in tails)]
    return TailRule(first.letter, 0, max(blocks, default=0), first)


def _in_words(rule: TailRule) -> str:
    unit = _UNITS[rule.letter]
    if rule.most:
        return f"{unit}s {rule.most + 1} and later"
    return f"the last {unit}s beyond a multiple of {rule.block}"


def _is_reference_of(observations: Sequence[Observation], letter: str, rule: TailRule, calls: FreshCalls) -> bool:
    """Whether all values are those of the reference on the part that is used."""
    if not rule.most and not rule.block:
        return False
    return all(_has_value(o, _part(o.probe, letter, rule, calls)) for o in observations)


def _part(probe: Probe, letter: str, rule: TailRule, calls: FreshCalls) -> Probe | None:
    size = size_of(probe, letter)
    kept = rule.kept(size)
    return probe if kept == size else _reference(shortened(probe, letter, slice(0, kept)), calls)


def _reference(inputs: Any, calls: FreshCalls) -> Probe | None:
    return judged(calls.like, inputs, "part") if calls.like is not None else None


def _has_value(observation: Observation, probe: Probe | None) -> bool:
    """Whether the target has the value of another probe, within both bounds."""
    if probe is None or probe.bounds is None or observation.probe.bounds is None:
        return False
    there = replace(observation.probe, value=probe.value, bounds=probe.bounds, grads={})
    return not is_wrong(Observation(there, observation.outcome))


def threshold(seen: Sequence[Observation], calls: FreshCalls) -> Iterator[tuple[str, str]]:
    """Sizes and temperatures between which the target begins to fail, by bisection.

    `seen`: of the corpus, with answers. Each: what it is of, and a part of a sentence.
    """
    wrong = [o for o in seen if is_wrong(o)]
    right = [o for o in seen if not is_wrong(o)]
    if not wrong or not right or not calls.possible:
        return
    yield from _size_threshold(right, wrong, calls)
    yield from _temperature_threshold(right, wrong, calls)


def _size_threshold(
    right: Sequence[Observation], wrong: Sequence[Observation], calls: FreshCalls
) -> Iterator[tuple[str, str]]:
    found = size_edge(right, wrong, calls)
    if found is not None:
        letter, low, high = found
        unit = {"N": "samples", "D": "features"}[letter]
        yield letter, f"with other rows it is right at {low} {unit} and wrong at {high}"


def size_edge(
    right: Sequence[Observation], wrong: Sequence[Observation], calls: FreshCalls
) -> tuple[str, int, int] | None:
    """The number of samples, or features, from which on a target fails, by bisection.

    `right` and `wrong`: of the corpus. Result: ``N`` or ``D``, the last size that is right and the next, which is
    wrong; None where sizes do not tell them apart.
    """
    for letter in ("N", "D"):
        good, bad = [size_of(o.probe, letter) for o in right], [size_of(o.probe, letter) for o in wrong]
        if not good or not bad or not max(good) < min(bad) or not calls.possible:
            continue
        ends = bisected(max(good), min(bad), _halfway, partial(_fails_of, letter, calls))
        if ends is not None and _fails_of(letter, calls, ends[0]) is False:
            return (letter, *ends)
    return None


def _halfway(low: int, high: int) -> int | None:
    return None if high - low <= 1 else (low + high) // 2


def _fails_of(letter: str, calls: FreshCalls, size: int) -> bool | None:
    return _fails_at(sized(letter, size), calls)


def sized(letter: str, size: int, temperature: float = 0.3) -> InputSpec:
    """Inputs of so many samples, or features."""
    return InputSpec("designed", temperature, (size, 8, 4, 6, 7, 2) if letter == "N" else (6, size, 4, 6, 7, 2))


def _fails_at(spec: InputSpec, calls: FreshCalls) -> bool | None:
    seen = calls.at([spec])
    return is_wrong(seen[0]) if seen else None


def _temperature_threshold(
    right: Sequence[Observation], wrong: Sequence[Observation], calls: FreshCalls
) -> Iterator[tuple[str, str]]:
    """The threshold on the rows of a wrong case, with a temperature at which others are right."""
    name = next((n for n, *_ in calls.like.ranges if n in INVERSE_TEMPERATURES), None) if calls.like else None
    if name is None:
        return
    good, bad = ([float(o.probe.inputs[name]) for o in part] for part in (right, wrong))
    if max(bad) < min(good):
        start, goal = max(bad), min(good)
    elif min(bad) > max(good):
        start, goal = min(bad), max(good)
    else:
        return
    rows = next(o for o in wrong if float(o.probe.inputs[name]) == start).probe.inputs

    def fails(t: float) -> bool | None:
        probe = judged(calls.like, {**rows, name: t}, "between") if calls.like else None
        seen = calls.on(probe) if probe is not None else None
        return is_wrong(seen) if seen is not None else None

    # The same rows must be right at the other temperature: otherwise it is they that matter.
    if fails(goal) is not False:
        return
    between = bisected(goal, start, lambda a, b: None if abs(a / b - 1) < 0.005 else math.sqrt(a * b), fails)
    if between is not None:
        what, side = name.replace("_", " "), "below" if between[1] < between[0] else "above"
        yield name, f"right at {what} {between[0]:.4g}, wrong from {between[1]:.4g} on {side} it, with the same rows"
