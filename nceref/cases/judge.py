"""Compares what a target answered with the reference, quantity by quantity, each with its own bound."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from nceref.cases.records import Observation, Outcome, Probe, Result, Status
from nceref.output.limits import DIGITS, digits_of, guaranteed, stable
from nceref.spec import Array
from nceref.tolerance.implementation import FORMATS

NO_LOSS = frozenset({"wrong-shape", "not-a-number-type"})
"""Troubles of a target that answers, but with no loss."""
HARMLESS = frozenset({"prints", "replaces-numpy", "keeps-state"})
"""Behavior that is reported, but is no failure."""
ALIKE = 1e-6
"""Errors in units of their bounds that differ by less, relatively, are as large as one another."""
UNSUPPORTED = "unsupported"
"""Trouble of a target that declares that it cannot answer: nothing is judged, and nothing is wrong."""
REFUSAL = "behavior.refusal"
"""Whether inputs that the loss refuses are refused."""


def judge(observation: Observation) -> list[Result]:
    """Judge every quantity of one case.

    Value and gradients are judged apart, and so is whether each of them is finite.
    """
    probe, outcome = observation.probe, observation.outcome
    if outcome.trouble == UNSUPPORTED:
        return [_result(probe, "value", "skip", outcome.sentence)]
    if probe.must_refuse:
        return [_refusal(probe, outcome)]
    if probe.skip:
        there = f"; yours {_without_reference(outcome)}" if outcome.trouble or outcome.value is not None else ""
        return [_result(probe, "value", "skip", f"the loss is undefined here ({_cause(probe)}){there}")]
    if outcome.trouble:
        # The others have answered: what one rank answers in their place is wrong.
        one_of_several = outcome.ranks and outcome.trouble in NO_LOSS
        status: Status = "fail" if one_of_several else "error"
        return [_result(probe, f"behavior.{outcome.trouble}", status, outcome.sentence)]
    remarks = [
        _result(probe, f"behavior.{name}", "skip" if name in HARMLESS else "fail", why)
        for name, why in outcome.remarks.items()
    ]
    bound = probe.bounds.value if probe.bounds else 0.0
    return [*_compared(probe, "value", outcome.value, probe.value, bound), *_grads(probe, outcome), *remarks]


def _cause(probe: Probe) -> str:
    """The reason why there is no number; the remedy is an advice to callers of the loss, or a setting of the run."""
    cause, _, advice = probe.skip.partition("; drop it, or pass ")
    setting = advice.replace("'", "")
    return f"{cause}; set {setting} to judge it" if setting.startswith("no_positive=") else cause


def _refusal(probe: Probe, outcome: Outcome) -> Result:
    if outcome.trouble == "raises":
        return _result(probe, REFUSAL, "pass", "refuses the inputs, as it must")
    status: Status = "error" if outcome.trouble else "fail"
    why = f"{_without_reference(outcome)}, where it must refuse the inputs"
    return _result(probe, REFUSAL, status, f"{why}: {probe.skip}" if probe.skip else why)


def _without_reference(outcome: Outcome) -> str:
    """The sentence about the answer of a target to a case that has no reference."""
    if outcome.trouble:
        return outcome.sentence
    value = np.asarray(outcome.value, dtype=np.float64)
    bad = [name for name, grad in outcome.grads.items() if not np.all(np.isfinite(grad))]
    finite = bool(np.all(np.isfinite(value)))
    # Beside a value that is no number, a gradient that is none says nothing more.
    steep = f", with a gradient of {', '.join(bad)} that is not finite" if bad and finite else ""
    if value.ndim == 0:
        return f"returns {f'{float(value):.6g}'.replace('nan', 'NaN')}{steep}"
    return f"returns rows{steep if finite else f', some of them {_kind(value)}'}"


def _grads(probe: Probe, outcome: Outcome) -> Iterator[Result]:
    for name, reason in outcome.unjudged.items():
        yield _result(probe, f"grad.{name}", "skip", reason)
    for name, actual in outcome.grads.items():
        if name in outcome.unjudged:
            continue
        # The reference has no gradient of a constant; only exactly 0 is right.
        if name in constants(probe):
            yield from _compared(probe, f"grad.{name}", actual, np.zeros_like(np.asarray(actual)), 0.0)
        elif name in probe.grads and probe.bounds:
            yield from _compared(probe, f"grad.{name}", actual, probe.grads[name], probe.bounds.grads[name])
        # On a kink there is no gradient to compare with, but NaN is wrong there too.
        elif not probe.grads:
            yield _finite(probe, f"grad.{name}", np.asarray(actual, dtype=np.float64))


def constants(probe: Probe) -> frozenset[str]:
    """Names of the given arrays that the loss declares constant: their gradient must be 0, unless one is intended."""
    if probe.trains_constants:
        return frozenset()
    declared = [p.name for p in probe.loss.parameters if isinstance(p, Array) and p.constant]
    return frozenset(name for name in declared if probe.inputs.get(name) is not None)


def _compared(probe: Probe, quantity: str, actual: Any, expected: Any, bound: Any) -> Iterator[Result]:
    actual, expected = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if actual.shape != expected.shape:
        yield _result(probe, quantity, "fail", f"shape {actual.shape}, but the reference has {expected.shape}")
        return
    finite = _finite(probe, quantity, actual)
    yield finite
    if finite.status == "fail":
        yield _result(probe, quantity, "skip", f"not finite, see {quantity}.finite")
        return
    yield _measured(
        probe, quantity, actual, expected, np.broadcast_to(np.asarray(bound, dtype=np.float64), actual.shape)
    )


def _finite(probe: Probe, quantity: str, actual: Any) -> Result:
    bad = int(np.sum(~np.isfinite(actual)))
    why = f"{_entries(bad, actual.size)} {_kind(actual)}, where the reference is finite" if bad else "all finite"
    return _result(probe, f"{quantity}.finite", "fail" if bad else "pass", why)


def _entries(bad: int, size: int) -> str:
    return "it is" if size == 1 else f"{bad} of {size} entries are"


def _kind(x: Any) -> str:
    kinds = {"NaN": np.any(np.isnan(x)), "infinite": np.any(np.isinf(x))}
    return " or ".join(name for name, there in kinds.items() if there)


def _measured(probe: Probe, quantity: str, actual: Any, expected: Any, bound: Any) -> Result:
    error = np.abs(actual - expected)
    # Worst in units of its bound: the largest error may also have the widest bound.
    ratios = in_bounds(error, bound)
    # Relative to the largest entry: an entry near 0 may have no right bit in a correct program.
    size = float(np.max(np.abs(expected)))
    # With the digits that the bound leaves; what is below it may be 0.
    size = stable(size, max(1, digits_of(float(np.max(bound)) / size))) if size > np.max(bound) else 0.0
    if np.all(error <= bound):
        room = float(np.max(bound))
        off, room = guaranteed(float(np.max(ratios)) * room, room)
        bits = correct_bits(off, size, _precision(probe.dtype))
        return _result(probe, quantity, "pass", "within the bound", off, room, bits, size)
    # The first of those that are off alike, but for rounding.
    worst = np.unravel_index(int(np.argmax(ratios >= (1 - ALIKE) * np.max(ratios))), actual.shape)
    bits = correct_bits(stable(float(np.max(error)), 3), size, _precision(probe.dtype))
    where = "" if actual.ndim == 0 else f" at [{', '.join(map(str, worst))}]"
    known = _known(float(expected[worst]), size, float(bound[worst]))
    why = f"yours {actual[worst]:.10g}, reference {known:.10g}{where}"
    off, room = guaranteed(float(error[worst]), float(bound[worst]))
    return _result(probe, quantity, "fail", why, off, room, bits, size)


def _known(number: float, size: float, bound: float) -> float:
    """An entry of the reference, without digits that are rounding of the largest one; of a tiny one what is sure."""
    known = round(number, DIGITS - math.ceil(math.log10(size))) + 0.0 if size > 0 else 0.0
    return known if known or abs(number) <= 1000 * bound else stable(number, 3)


def in_bounds(error: Any, bound: Any) -> Any:
    """Errors in units of their bounds; an entry whose bound is 0 must be right."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(error == 0, 0.0, error / bound)


def _precision(dtype: str) -> int:
    """Bits of the significand, the leading one included."""
    return -round(math.log2(FORMATS[dtype].storage.u))


def correct_bits(error: float, size: float, most: int) -> float:
    """Number of leading bits that are right: between 0 and all of the format.

    `error` and `size` are the largest error and the largest entry, both >= 0. `most` is the number of bits of the
    significand, the result where the error is 0.
    """
    if error == 0:
        return float(most)
    share = size / error if math.isfinite(error) else 0.0
    return float(min(max(math.log2(share), 0.0), most)) if share > 0 else 0.0


def _result(
    probe: Probe,
    quantity: str,
    status: Any,
    why: str,
    error: float | None = None,
    bound: float | None = None,
    bits: float | None = None,
    size: float | None = None,
) -> Result:
    return Result(f"{probe.id}/{quantity}", probe.id, quantity, status, error, bound, bits, why, size)


def of_bound(result: Result) -> float | None:
    """Error in units of the bound; None where nothing was measured.

    It is at most 1 where the result passes, and infinite where the bound is 0 and the error is not.
    """
    if result.error is None or result.bound is None:
        return None
    return 0.0 if result.error == 0 else (result.error / result.bound if result.bound > 0 else math.inf)
