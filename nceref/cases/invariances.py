"""Identities between answers of the target itself, whatever the reference is: a second way to see an error.

An invariance is checked on one case, the first where it means something. Those that move the input run the target once
more. A loss has those that it declares as properties, for the settings that it declares; the reference must keep them
on the case as well, to its own accuracy: what holds by accident within a wide bound is not demanded of a target.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.judge import UNSUPPORTED, correct_bits
from nceref.cases.records import Observation, Outcome, Probe, Result, Status
from nceref.checks.settings import holds_for
from nceref.checks.situations import Sizes
from nceref.output.limits import guaranteed, stable
from nceref.spec import Array, Choice, Labels, Scalar
from nceref.tolerance.implementation import FORMATS

Inputs = dict[str, Any]
_KEPT = 1e-6
"""Threshold relative to the size of its terms: a sum that the reference leaves below it is 0 but for its rounding."""


@dataclass(frozen=True)
class Invariance:
    """A statement about a target: `moved` makes the second input, None where the question does not arise.

    With ``moved=None`` the identity is about one answer: `gap` returns what must be 0, and its slack. With `claim`,
    only losses that declare this property have it.
    """

    name: str
    statement: str
    moved: Callable[[Probe, np.random.Generator], Inputs | None] | None = None
    gap: Callable[[Probe, Outcome], tuple[float, float] | None] | None = None
    claim: str = ""

    def concerns(self, probe: Probe) -> bool:
        """Whether the loss declares it for the arguments of the probe."""
        return not self.claim or holds_for(probe.loss, self.claim, probe.inputs)


def check_invariances(
    observations: Iterable[Observation],
    run: Callable[[Probe], Outcome] | None,
    altered: Callable[[Probe], Probe] | None = None,
) -> Iterator[Result]:
    """Judge every identity on the first case where the reference keeps it; no result where no case qualifies.

    `run` runs the target on another probe; without it, only identities of one answer are judged. `altered` turns a
    probe into that with the conventions that the target intends; default: it has none.
    """
    judged = [o for o in observations if not o.probe.skip and not o.outcome.trouble and _has_bounds(o.probe)]
    for invariance in INVARIANCES:
        answers = (
            _one_answer(invariance, o) if invariance.gap else _two_answers(invariance, o, run, altered)
            for o in judged
            if invariance.concerns(o.probe) and np.all(np.isfinite(o.outcome.value))
        )
        result = next(filter(None, answers), None)
        if result is not None:
            yield result


def _has_bounds(probe: Probe) -> bool:
    """Whether every entry of every gradient is judged."""
    return probe.bounds is not None and all(np.all(np.isfinite(probe.bounds.grads[name])) for name in probe.grads)


def _one_answer(invariance: Invariance, observation: Observation) -> Result | None:
    assert invariance.gap is not None
    gap_and_slack = invariance.gap(observation.probe, observation.outcome)
    return None if gap_and_slack is None else _result(invariance, observation.probe, *gap_and_slack, size=1.0)


def _two_answers(
    invariance: Invariance,
    observation: Observation,
    run: Callable[[Probe], Outcome] | None,
    altered: Callable[[Probe], Probe] | None,
) -> Result | None:
    probe = observation.probe
    there = _second(invariance, probe) if run is not None else None
    if there is not None and altered is not None:
        there = altered(there)
    if run is None or there is None or there.bounds is None or probe.bounds is None:
        return None
    # What is intended may break an identity of the loss.
    if altered is not None and abs(_total(there.value) - _total(probe.value)) > _room(probe) + _room(there):
        return None
    outcome = run(replace(there, id=f"{probe.id}-{invariance.name}"))
    if outcome.trouble:
        quantity, why = f"identity.{invariance.name}", f"{invariance.statement}: {outcome.sentence}"
        status: Status = "skip" if outcome.trouble == UNSUPPORTED else "error"
        return Result(f"{probe.id}/{quantity}", probe.id, quantity, status, None, None, None, why)
    slack = _room(probe) + _room(there) + _rounding(probe, observation.outcome)
    gap = abs(_total(outcome.value) - _total(observation.outcome.value))
    return _result(invariance, probe, gap, slack, size=abs(_total(probe.value)))


def _rounding(probe: Probe, outcome: Outcome) -> float:
    """Difference of two answers that rounding explains where they are larger than the reference of their bounds."""
    larger = max(0.0, abs(_total(outcome.value)) - abs(_total(probe.value)))
    rows = max((len(probe.inputs[p.name]) for p in _embeddings(probe)), default=1)
    return 4 * rows * FORMATS[probe.dtype].storage.u * larger


# The same for all targets of a loss.
@lru_cache(maxsize=256)
def _second(invariance: Invariance, probe: Probe) -> Probe | None:
    """The second input of an identity with its reference, None where the question does not arise."""
    assert invariance.moved is not None
    # A fixed seed, so that every run moves a probe in the same way.
    inputs = invariance.moved(probe, np.random.default_rng(len(probe.id)))
    if inputs is None or probe.bounds is None:
        return None
    there = evaluate(probe.loss, inputs, probe.dtype, probe.reduction, forms=probe.forms)
    # An input on which the reference itself breaks the identity is no evidence.
    if there.bounds is None or abs(_total(there.value) - _total(probe.value)) > _accuracy(probe) + _accuracy(there):
        return None
    return there


def _total(value: Any) -> float:
    return float(np.sum(np.asarray(value, dtype=np.float64)))


def _room(probe: Probe) -> float:
    assert probe.bounds is not None
    return _total(probe.bounds.value)


def _accuracy(probe: Probe) -> float:
    """Bound of the error of the reference itself, relative to the exact loss; 0 where it is not known."""
    return _total(probe.bounds.terms.get("reference", 0.0)) if probe.bounds else 0.0


def _result(invariance: Invariance, probe: Probe, gap: float, slack: float, size: float) -> Result:
    quantity = f"identity.{invariance.name}"
    holds = gap <= slack
    why = f"{invariance.statement}{'' if holds else f', but it is off by {gap:.3g}'}"
    error, bound = guaranteed(gap, slack)
    bits = correct_bits(error, stable(size), 53)
    return Result(f"{probe.id}/{quantity}", probe.id, quantity, "pass" if holds else "fail", error, bound, bits, why)


def _embeddings(probe: Probe) -> list[Array]:
    declared = [p for p in probe.loss.parameters if isinstance(p, Array) and p.embedding]
    return [p for p in declared if probe.inputs.get(p.name) is not None]


def _scaled(probe: Probe, rng: np.random.Generator) -> Inputs | None:
    """Rows times powers of 2, which change no digit of a normalized row."""
    moved = dict(probe.inputs)
    for p in _embeddings(probe):
        moved[p.name] = moved[p.name] * 2.0 ** rng.integers(-1, 3, (*moved[p.name].shape[:-1], 1))
    return moved if _embeddings(probe) else None


def reordered(probe: Probe, rng: np.random.Generator) -> Inputs | None:
    """The inputs with their samples in another order; None where no array has samples."""
    moved = dict(probe.inputs)
    arrays = [p for p in probe.loss.parameters if isinstance(p, Array | Labels) and moved.get(p.name) is not None]
    first = next((p for p in arrays if p.shape[0] == "N"), None)
    if first is None:
        return None
    order = rng.permutation(len(moved[first.name]))
    for p in arrays:
        if p.shape[0] == "N":
            moved[p.name] = moved[p.name][order]
        # A matrix of pairs, such as a mask, is reordered along both axes.
        if p.shape[1:] == ("N",):
            moved[p.name] = moved[p.name][:, order]
    return moved


def _swapped(probe: Probe, rng: np.random.Generator) -> Inputs | None:
    first, second = (*_embeddings(probe), None, None)[:2]
    # A constant input plays another part than the first one, so the two cannot change places.
    if first is None or second is None or first.shape != second.shape or second.constant:
        return None
    return {**probe.inputs, first.name: probe.inputs[second.name], second.name: probe.inputs[first.name]}


def _radial(probe: Probe, outcome: Outcome) -> tuple[float, float] | None:
    """The largest sum_k w_ik g_ik, in units of what its terms may be off."""
    worst = None
    for p in _embeddings(probe):
        if p.name not in outcome.grads or p.name not in probe.grads:
            continue
        assert probe.bounds is not None
        w, g = probe.inputs[p.name], np.asarray(outcome.grads[p.name])
        if not _orthogonal(w, probe.grads[p.name]):
            continue
        along = np.abs(np.sum(w * g, axis=-1)) / np.sum(np.abs(w) * probe.bounds.grads[p.name], axis=-1)
        worst = max(worst or 0.0, float(np.max(along)))
    return None if worst is None else (worst, 1.0)


def _orthogonal(w: Any, g: Any) -> bool:
    along, size = np.sum(w * g, axis=-1), np.sum(np.abs(w * g), axis=-1)
    return bool(np.all(np.abs(along) <= _KEPT * size + np.finfo(np.float64).tiny))


def _homogeneous(probe: Probe, outcome: Outcome) -> tuple[float, float] | None:
    """Sum <w, dL/dw> + 2 T dL/dT = 0: c times the embeddings and c^2 times the temperature change nothing."""
    names: Mapping[str, float] = {p.name: 1.0 for p in _embeddings(probe)}
    temperature = next(
        (p.name for p in probe.loss.parameters if isinstance(p, Scalar) and p.name == "temperature"), None
    )
    weights = {**names, **({temperature: 2.0} if temperature else {})}
    if not temperature or not set(weights) <= set(outcome.grads) & set(probe.grads):
        return None
    assert probe.bounds is not None
    total, room, exact = 0.0, 0.0, []
    for name, weight in weights.items():
        x = np.asarray(probe.inputs[name])
        total += weight * float(np.sum(x * outcome.grads[name]))
        exact.append(weight * float(np.sum(x * probe.grads[name])))
        room += weight * float(np.sum(np.abs(x) * probe.bounds.grads[name]))
    # Where every term is 0 by itself, as for normalized rows that are all equal, their sum means nothing.
    largest = max(map(abs, exact))
    return (abs(total), room) if abs(sum(exact)) <= _KEPT * largest and room < largest else None


def _closed_form(probe: Probe, outcome: Outcome) -> tuple[float, float] | None:
    """The gap to the value that the loss declares for all rows equal, such as log(2N - 1), and its bound."""
    form = next((e for e in probe.loss.expectations if e.situation == "collapse"), None)
    rows = [probe.inputs[p.name].reshape(-1, probe.inputs[p.name].shape[-1]) for p in _embeddings(probe)]
    equal = rows and all(np.array_equal(x, np.broadcast_to(rows[0][0], x.shape)) for x in rows)
    if form is None or not equal or probe.bounds is None or probe.reduction != "mean":
        return None
    sizes = Sizes(_sizes(probe), scaled=any(p.name == "logit_scale" for p in probe.loss.parameters))
    value = form.at(sizes)
    room = float(np.max(probe.bounds.value))
    # A declaration that the reference does not keep on this input is not demanded of the target.
    if value is None or sizes.missing or abs(float(probe.value) - value) > 2 * _accuracy(probe):
        return None
    return abs(float(outcome.value) - value), room


def _sizes(probe: Probe) -> dict[str, Any]:
    """The sizes and scalars of a probe, in the words of expectations."""
    settings = {
        p.name: probe.inputs.get(p.name, p.default) for p in probe.loss.parameters if isinstance(p, Scalar | Choice)
    }
    first = probe.inputs[_embeddings(probe)[0].name]
    queue, negatives = probe.inputs.get("queue"), probe.inputs.get("negatives")
    counts = {
        "n": len(first),
        "dim": first.shape[-1],
        "views": first.shape[1] if first.ndim == 3 else 1,
        "queue": 0 if queue is None else len(queue),
        "hard_negatives": 0 if negatives is None or negatives.ndim < 3 else negatives.shape[1],
    }
    return {**{name: x for name, x in settings.items() if x is not ...}, **counts}


INVARIANCES = (
    Invariance("closed-form", "identical rows give the value of a collapsed batch", gap=_closed_form),
    Invariance("scale", "multiplying rows by powers of 2 keeps the value", _scaled, claim="scale_invariant"),
    Invariance("permutation", "reordering the samples keeps the value", reordered, claim="permutation_equivariant"),
    Invariance("views", "exchanging the two views keeps the value", _swapped, claim="view_swap_invariant"),
    Invariance("radial", "no gradient along a normalized row", gap=_radial, claim="radial_slope_zero"),
    Invariance("temperature", "sum <w, dL/dw> = -2 T dL/dT", gap=_homogeneous),
)
