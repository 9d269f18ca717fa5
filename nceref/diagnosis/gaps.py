"""How far a target is from what was expected of it, quantity by quantity."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from nceref.cases.judge import in_bounds
from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Probe
from nceref.diagnosis.advice import fix_of
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.tolerance import Bounds

VALUE = "value"
_TELLING = 3
"""Values of the reference from which on one number in their place is no accident."""
Expected = Callable[[Probe], Any]
"""What a target may compute instead of the reference: a probe to ``(value, grads)``, None where it says nothing."""


@dataclass(frozen=True, eq=False)
class Gap:
    """One quantity of one case, ``value`` or the name of an input: what came, what should have come, what is allowed.

    All three are float64 arrays of one shape.
    """

    quantity: str
    got: Any
    want: Any
    bound: Any

    @property
    def finite(self) -> bool:
        """Whether every entry is a number."""
        return bool(np.all(np.isfinite(self.got)))

    @property
    def of_bound(self) -> float:
        """Largest error in units of its bound; infinite where an entry is not finite."""
        if not self.finite:
            return float("inf")
        error = np.abs(self.got - self.want)
        return float(np.max(in_bounds(error, self.bound), initial=0.0))

    @property
    def right(self) -> bool:
        """Whether every entry is within its bound."""
        return self.of_bound <= 1


def usable(observations: Iterable[Observation]) -> list[Observation]:
    """The observations with a reference and with an answer of its shape."""
    return [o for o in observations if _answered(o)]


def _answered(observation: Observation) -> bool:
    probe, outcome = observation.probe, observation.outcome
    if probe.skip or outcome.trouble or probe.value is None or outcome.value is None or probe.bounds is None:
        return False
    return bool(np.shape(probe.value) == np.shape(outcome.value))


def gaps(observation: Observation) -> dict[str, Gap]:
    """The value and every judged gradient of a usable observation, the value first.

    `observation`: see `usable`. Result: ``value`` or the name of an input to its `Gap`.
    """
    probe, outcome = observation.probe, observation.outcome
    assert probe.bounds is not None
    out = {VALUE: _gap(VALUE, outcome.value, probe.value, probe.bounds.value)}
    for name, want in probe.grads.items():
        got = outcome.grads.get(name)
        if name not in outcome.unjudged and got is not None and np.shape(got) == np.shape(want):
            out[name] = _gap(name, got, want, probe.bounds.grads[name])
    return out


def _gap(quantity: str, got: Any, want: Any, bound: Any) -> Gap:
    got, want = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    return Gap(quantity, got, want, np.broadcast_to(np.asarray(bound, dtype=np.float64), want.shape))


def is_constant(observations: Iterable[Observation]) -> bool:
    """Whether one finite number stands where the reference has several: a factor would explain any such function."""
    values = [gaps(o)[VALUE] for o in usable(observations)]
    given = {x for gap in values for x in gap.got.ravel().tolist()}
    wanted = {x for gap in values for x in gap.want.ravel().tolist()}
    return len(given) == 1 and len(wanted) >= _TELLING and isfinite(given.pop())


def not_finite(observation: Observation) -> tuple[str, ...]:
    """Inputs whose gradient is not finite, on kinks too, where there is nothing to compare it with."""
    wanted, grads = observation.probe.loss.differentiable, observation.outcome.grads
    return tuple(name for name in wanted if name in grads and not np.all(np.isfinite(grads[name])))


def shifted(observations: Iterable[Observation], expected: Expected | None) -> list[Observation] | None:
    """The observations with something else expected of the target; None if `expected` does not cover all of them.

    Bounds grow in proportion to what is expected; `expected` may return bounds of its own as a third entry.

    `expected`: see `Expected`; None for the reference.
    """
    if expected is None:
        return list(observations)
    out = []
    for observation in observations:
        answer = expected(observation.probe)
        if answer is None:
            return None
        out.append(Observation(_expecting(observation.probe, *answer), observation.outcome))
    return out


def _expecting(probe: Probe, value: Any, grads: Mapping[str, Any], own: Bounds | None = None) -> Probe:
    assert probe.bounds is not None
    # Without a bound, the reference's or its own, a gradient cannot be judged.
    known = {name: grad for name, grad in grads.items() if name in probe.bounds.grads or own}
    if own is None:
        by_input = {name: grown(probe.bounds.grads[name], known[name], probe.grads.get(name)) for name in known}
        own = Bounds(grown(probe.bounds.value, value, probe.value), by_input)
    return replace(probe, value=value, grads=known, bounds=own)


def grown(bound: Any, other: Any, reference: Any) -> Any:
    """The bound in proportion to the size of what is expected, never smaller."""
    size = 0.0 if reference is None else float(np.max(np.abs(reference), initial=0.0))
    return bound if size == 0 else bound * max(1.0, float(np.max(np.abs(other), initial=0.0)) / size)


def diagnosis(
    id: str, *parts: DiagnosisPart, predicts: Callable[[Sequence[Observation]], bool] | None = None
) -> Diagnosis:
    """A diagnosis with the threads and the fix of its conventions.

    `id`: a convention, or several joined by ``+``. `predicts`: see `Diagnosis`.
    """
    threads = dict.fromkeys(thread for one in id.split("+") for thread in CONVENTIONS[one].threads)
    return Diagnosis(id, parts, tuple(threads), fix_of(id), predicts=predicts)


def listed(names: Iterable[str]) -> str:
    """Names in a row: ``z1``, ``z1 and z2``, ``z1, z2 and temperature``."""
    *first, last = [str(name) for name in names]
    return f"{', '.join(first)} and {last}" if first else last
