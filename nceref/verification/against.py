"""A target against an older program: what that is known to be, or else its own numbers, is the reference."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.cases.judge import constants
from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Outcome, Probe
from nceref.cases.rounding import rounded
from nceref.diagnosis.departure import departure
from nceref.diagnosis.features import samples
from nceref.diagnosis.gaps import VALUE, diagnosis, gaps, grown, shifted, usable
from nceref.diagnosis.simple_numbers import recognized
from nceref.output.words import counted, out_of
from nceref.tolerance import Bounds
from nceref.tolerance.implementation import FORMATS
from nceref.verification.report_data import ReportData, options_in

MARGIN = 8
"""How many times the rounding error of the old program the new one may be off: it may round in other places."""
_RANDOM = "behavior.not-deterministic"
Factor = tuple[str, Callable[[Probe], float]]
"""A factor in words, and its value for a case."""


@dataclass(frozen=True, eq=False)
class MeasuredReference:
    """An older program as the reference: its numbers in float64, and bounds from its own errors in a lower format.

    The bounds of the loss whose inputs it takes grow in proportion to its numbers, and are added.
    """

    name: str
    run: Any

    def __call__(self, probe: Probe) -> Probe:
        """The case with the numbers of the older program; skipped where it has none."""
        if probe.skip or probe.must_refuse or probe.bounds is None:
            return probe
        fine = replace(probe, dtype="float64")
        answer = self.run(fine)
        if trouble := _trouble(answer, probe):
            return replace(probe, value=None, grads={}, bounds=None, skip=f"{self.name}, the reference, {trouble}")
        errors = self._errors(fine, probe.dtype, answer)
        trained = {name for name in constants(probe) if np.any(answer.grads.get(name, 0.0))}
        names = [n for n in answer.grads if n not in answer.unjudged and (n in probe.grads or n in trained)]
        grads = {name: np.asarray(answer.grads[name], dtype=np.float64) for name in names}
        # Both programs may be off.
        of_loss, right = probe.bounds.grads, probe.grads
        room = 2 * grown(probe.bounds.value, answer.value, probe.value) + errors.get("", 0.0)
        rooms = {n: 2 * grown(of_loss.get(n, 0.0), g, right.get(n)) + errors.get(n, 0.0) for n, g in grads.items()}
        bounds = Bounds(room, rooms)
        return replace(probe, value=answer.value, grads=grads, bounds=bounds, trains_constants=bool(trained))

    def _errors(self, fine: Probe, dtype: str, answer: Outcome) -> dict[str, float]:
        """Allowed errors by input, and of the value by an empty name, from the program's own in a lower format."""
        lower = "float32" if dtype == "float64" else dtype
        near = replace(fine, inputs={name: rounded(x, lower) for name, x in fine.inputs.items()})
        exact = self.run(near) if dtype == "float64" else answer
        low = self.run(replace(near, dtype=lower))
        share = MARGIN * FORMATS[dtype].storage.u / FORMATS[lower].storage.u
        if low.trouble or exact.trouble:
            return dict.fromkeys(["", *answer.grads], 0.0)
        pairs = {"": (low.value, exact.value)} | {n: (low.grads.get(n), g) for n, g in exact.grads.items()}
        return {name: share * _distance(a, b) for name, (a, b) in pairs.items()}


def _distance(a: Any, b: Any) -> float:
    """The largest distance of entries; 0 where the lower format has no number to learn from."""
    if a is None or np.shape(a) != np.shape(b):
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        size = float(np.max(np.abs(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)), initial=0.0))
    return size if np.isfinite(size) else 0.0


def _trouble(answer: Outcome, probe: Probe) -> str:
    """The reason why an answer is no reference, or empty."""
    if answer.trouble:
        return answer.sentence
    if np.shape(answer.value) != np.shape(probe.value):
        return f"returns shape {np.shape(answer.value)}"
    if not np.all(np.isfinite(np.asarray(answer.value, dtype=np.float64))):
        return "is not finite"
    bad = [name for name, grad in answer.grads.items() if not np.all(np.isfinite(grad))]
    return f"has a gradient of {', '.join(bad)} that is not finite" if bad else ""


def settings_of(report: ReportData) -> dict[str, Any]:
    """The settings under which a program conforms, as its report names them; empty where it names none."""
    intend = report.diagnosis[0].intend if report.diagnosis else ""
    # These are no options of the loss, and their words are a sentence.
    given = [] if intend.startswith("--expected-failures FILE") else options_in(intend)
    if any(option != "--set" for option, _ in given):
        return {}
    return {name: _value(text) for name, _, text in (word.partition("=") for _, word in given)}


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def no_reference(report: ReportData) -> str:
    """The reason why an old program cannot be a reference; empty where it can."""
    if report.verdict == "error":
        return report.reason
    random = next((r.why for r in report.results if r.quantity == _RANDOM and r.status == "fail"), "")
    errors = {r.case: r.why for r in report.results if r.status == "error"}
    if not random and 2 * len(errors) > len({r.case for r in report.results}):
        return f"it {next(iter(errors.values()))} on {counted(len(errors), 'case')}"
    return f"it {random}" if random else ""


def facts_of(report: ReportData, name: str, exact: bool) -> dict[str, Any]:
    """Facts from the report of the old program: its name, the loss that it is, and where the bounds come from."""
    if exact:
        settings = ", ".join(f"{key}={'given' if x is ... else x}" for key, x in report.settings.items())
        what = f"{name} is {report.loss}{f' with {settings}' * bool(settings)}, whose numbers and bounds hold"
    else:
        what = (
            f"the reference is what {name} computes in float64, as it is not {report.loss}; allowed are twice the"
            f" bounds of {report.loss}, whose inputs it takes, in the size of these numbers, and {MARGIN} times its own"
            " rounding errors"
        )
    return {"against": name, "reference": what}


def apart_beyond(old: ReportData, new: ReportData, loss: str) -> tuple[str, bool]:
    """The sentence about cases without a reference that two programs answer differently, empty where there are none.

    Second, whether the old one answers with a finite number there.
    """
    answers = [_beyond(report) for report in (old, new)]
    apart = [case for case in answers[0] if case in answers[1] and not _same(*(each[case] for each in answers))]
    if not apart:
        return "", False
    case = next((case for case in apart if _number(answers[0][case]) is not None), apart[0])
    more = f" and {len(apart) - 1} more" * (len(apart) > 1)
    words = f"where {loss} is undefined, {old.target} {answers[0][case]}, and {new.target} {answers[1][case]}"
    return f"{words} ({case}{more})", _number(answers[0][case]) is not None


def _beyond(report: ReportData) -> dict[str, str]:
    """The answers of a program to cases without a reference."""
    return {r.case: r.why.partition(_YOURS)[2] for r in report.results if r.status == "skip" and _YOURS in r.why}


_YOURS = "; yours "


def _number(answer: str) -> float | None:
    """The finite number of an answer; None for any other."""
    try:
        number = float(answer.removeprefix("returns "))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _same(first: str, second: str) -> bool:
    """Whether two answers are alike, to the digits that are shown."""
    a, b = _number(first), _number(second)
    return first == second or (a is not None and b is not None and abs(a - b) <= 1e-4 * abs(a))


def explained_by_old(observations: Iterable[Observation], name: str) -> tuple[Diagnosis, ...]:
    """The explanation of a difference from an older program by its numbers: a factor of them, or where it departs."""
    found, answered = departure(observations), usable(observations)
    words = next(filter(None, (_times(answered, factor, name) for factor in _factors(answered))), None)
    if not (found and words):
        return found
    id, part = words
    return (replace(diagnosis(id, part), fix="", threads=()),)


def _factors(answered: Sequence[Observation]) -> Iterator[Factor]:
    """Factors that one value may be of another: a simple number, and such a number times N, or by it."""
    told = [
        (gap, n) for o in answered if (gap := gaps(o)[VALUE]).finite and np.all(gap.want) and (n := samples(o.probe))
    ]
    if not told:
        return
    widest, n = max(told, key=lambda each: float(np.max(np.abs(each[0].want) / each[0].bound)))
    ratio = float(np.ravel(widest.got / widest.want)[0])
    number, words = recognized(ratio)
    if number != 1:
        yield words, lambda probe: number
    rows, per = recognized(ratio / n), recognized(1 / (ratio * n)) if ratio else (0.0, "")
    yield "N" if rows[0] == 1 else f"{rows[1]} N", lambda probe: rows[0] * samples(probe)
    if per[0]:
        yield "1/N" if per[0] == 1 else f"1/({per[1]} N)", lambda probe: 1 / (per[0] * samples(probe))


def _times(answered: Sequence[Observation], factor: Factor, name: str) -> tuple[str, DiagnosisPart] | None:
    """The id and sentence of a new program that is a factor of the old one, gradients or not; None where it is none."""
    words, of = factor
    scaled = lambda p: (of(p) * np.asarray(p.value), {n: of(p) * np.asarray(g) for n, g in p.grads.items()})  # noqa: E731
    moved = [gaps(o) for o in shifted(answered, scaled) or ()]
    if not moved or not all(each[VALUE].right for each in moved):
        return None
    whole = all(gap.right for each in moved for gap in each.values())
    what = "your loss equals" if whole else "the value, and not every gradient, equals"
    id = "unexplained" if not whole else "outer-factor-n" if "N" in words else "outer-factor-constant"
    return id, DiagnosisPart(f"{what} {words} times {name}", f"on {out_of(len(moved), len(moved), 'case')}", "computes")
