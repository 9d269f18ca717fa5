"""Why numbers are not finite, given that all others are right."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation
from nceref.diagnosis.edges import edges, tested_range
from nceref.diagnosis.features import where, without_positive
from nceref.diagnosis.fresh import GENERAL, FreshCalls
from nceref.diagnosis.gaps import VALUE, Expected, diagnosis, gaps, listed, not_finite, shifted, usable
from nceref.diagnosis.ranges import out_of_range, range_specs
from nceref.engine.parameters import INVERSE_TEMPERATURES

Cause = tuple[str, str, Callable[[Sequence[Observation]], bool] | None]
"""An id or nothing, what was measured of it in words, and what it predicts."""


def nonfinite(
    moved: Sequence[Observation], expected: Expected | None, causes: bool, calls: FreshCalls
) -> Iterator[Diagnosis]:
    """Why values or gradients are not finite, all else being right.

    `moved`: all of a run, of which `expected` is expected already. `expected`: as for `triage`, for fresh calls.
    `causes`: whether the exponents are those of the reference. Each: of the value, and of gradients that are not finite
    where the value is.
    """
    values = [o for o in moved if not gaps(o)[VALUE].finite]
    finite = [o for o in moved if gaps(o)[VALUE].finite]
    steep = [o for o in finite if not_finite(o)]
    if not values and not steep:
        return
    fine = [o for o in finite if o not in steep]
    cause, fresh = _cause(values or steep, fine, expected, calls) if causes and fine else (_UNKNOWN, ())
    also_failing = [o for o in fresh if not gaps(o)[VALUE].finite or not_finite(o)]
    also_right = [o for o in fresh if o not in also_failing]
    id, words, predicts = cause
    because = f": {words}" if words else ""
    if values:
        alone = all(without_positive(o.probe) for o in values) and not any(without_positive(o.probe) for o in finite)
        as_said = "right" if expected is None else "as said"
        rest = DiagnosisPart(f"it is finite and {as_said}", f"on the other {len(finite)}", "right")
        cases = where(values, moved, also_failing, also_right) + ("" if alone else because)
        named = "lonely-anchors-nan" if alone else id or "value-not-finite"
        seen = partial(_as_seen, bool(finite), expected)
        again = None if alone else predicts or (None if id else seen)
        yield diagnosis(
            named, DiagnosisPart(f"the value is {_kind(values)}", cases), *[rest] * bool(finite), predicts=again
        )
    if steep:
        names = listed(dict.fromkeys(name for o in steep for name in not_finite(o)))
        cases = f"{where(steep, finite, also_failing, also_right)}, where the value is right{because}"
        found = diagnosis("gradient-not-finite", DiagnosisPart(f"the gradient of {names} is not finite", cases))
        scale_alone = INVERSE_TEMPERATURES.keys() >= {name for o in steep for name in not_finite(o)}
        yield replace(found, fix=_SCALED_AFTER_MASK, threads=()) if scale_alone else found


_SCALED_AFTER_MASK = (
    "Look for a -inf that meets the temperature, whose gradient is then 0 times infinity: divide first and mask after."
)
"""Remedy where the rows have right gradients, and the temperature has none."""


def _as_seen(partly: bool, expected: Expected | None, observations: Sequence[Observation]) -> bool:
    """Whether other cases have values that are not finite, others too if there were any, and these are right."""
    moved = shifted(usable(observations), expected) or []
    finite = [gap for o in moved if (gap := gaps(o)[VALUE]).finite]
    return len(finite) < len(moved) and bool(finite) == partly and all(gap.right for gap in finite)


_UNKNOWN: Cause = ("", "", None)


def _cause(
    failing: Sequence[Observation], fine: Sequence[Observation], expected: Expected | None, calls: FreshCalls
) -> tuple[Cause, Sequence[Observation]]:
    """The range that exponentials leave, tested where numbers stop being finite; else what separates the cases."""
    found = edges(failing, fine, calls) if calls.possible else None
    if found is not None:
        tested = tested_range(found, failing[0])
        if tested is not None:
            return (tested.id, tested.words, tested.holds), ()
        return ("", found[0].words if found else "", None), ()
    fresh = _range_calls(failing, expected, calls)
    also_failing = [o for o in fresh if not gaps(o)[VALUE].finite or not_finite(o)]
    also_right = [o for o in fresh if o not in also_failing]
    separated = out_of_range([*failing, *also_failing], [*fine, *also_right])
    return ((*separated, None) if separated else _UNKNOWN), fresh


def _range_calls(failing: Sequence[Observation], expected: Expected | None, calls: FreshCalls) -> Sequence[Observation]:
    """Calls at the ends of the range of the format, where numbers leave it somewhere."""
    if not calls.possible:
        return ()
    made = usable(calls.at([*range_specs(failing[0].probe), *GENERAL[:1]]))
    return shifted(made, expected) or ()


def _kind(observations: Sequence[Observation]) -> str:
    x = np.concatenate([np.ravel(np.asarray(o.outcome.value, dtype=np.float64)) for o in observations])
    kinds = {"NaN": np.any(np.isnan(x)), "infinite": np.any(np.isinf(x))}
    return " or ".join(name for name, there in kinds.items() if there)
