"""Other ways of calling a target: on one case that it gets right, each must give what the plain call gives.

Most apply by themselves. Those that change the arithmetic, or take long, are asked for by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.invariances import reordered
from nceref.cases.judge import UNSUPPORTED, judge
from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Outcome, Probe, Result, Status
from nceref.diagnosis.gaps import diagnosis
from nceref.errors import InputError
from nceref.spec import Array, Labels
from nceref.targets.command_line import FRAMEWORK
from nceref.targets.frameworks.framework import Mode
from nceref.targets.frameworks.frameworks import FRAMEWORKS
from nceref.targets.target import ResolvedTarget

Made = Probe | None


def refuse_other_frameworks(optional: Iterable[str], framework: str) -> None:
    """Raise an `InputError` for a mode that targets of this framework do not have."""
    for name in optional:
        if name not in _WAYS.get(framework, ()):
            other = next(each for each, ways in _WAYS.items() if name in ways)
            msg = f"`modes` names {name!r}, which targets of {other} have; this one is of {framework}"
            raise InputError(msg)


def check_modes(
    observations: Iterable[Observation],
    run: Callable[[Probe], Outcome],
    target: ResolvedTarget,
    optional: Sequence[str] = (),
    *,
    plain: bool = True,
    without: Sequence[str] = (),
) -> Iterator[Result]:
    """Judge every mode on the first case where the plain call is right; no result where no case is right.

    Where a gradient is wrong, the value and the other gradients are judged.

    `run` runs the target on another probe. `optional` has the modes that were asked for, and `without` those that say
    no more than the plain call. `plain` says whether the reference is the loss itself, with no convention beside it.
    """
    parts = (_right_part(o) for o in observations if o.probe.bounds and not o.outcome.trouble)
    right = [part for part in parts if part is not None]
    if not right:
        return
    # One with gradients says most, and the first one differs from the others in every respect.
    first = max(right, key=lambda o: (_shows(o), bool(o.outcome.grads)))
    others = [like for o in right if (like := _of_one_object(o.probe, first.probe, target.constructed)) is not None]
    for name in modes_of(target, optional, plain):
        if name in without:
            continue
        if (probe := MODES[name].made(first.probe, others)) is not None and (plain or probe.reduction != "none"):
            yield (result := _judged(name, first, replace(probe, mode=name), run))
            # Where the call itself is not what it was, no other way of calling is to blame.
            if name == "again" and result.status != "pass":
                return


def modes_of(target: ResolvedTarget, optional: Sequence[str] = (), plain: bool = True) -> Iterator[str]:
    """The names of the ways in which a target may be called; parameters as for `check_modes`."""
    for name, mode in MODES.items():
        named = name in optional if mode.optional else name in _WAYS.get(target.framework, ())
        if named and not (mode.needs_reduction and not (target.has_reduction and plain)):
            yield name


def only_modes_fail(results: Iterable[Result]) -> bool:
    """Whether the plain call is right on all cases, and another way of calling is not; `results` are all of a run."""
    failed = [r for r in results if r.status in ("fail", "error")]
    return bool(failed) and all(r.quantity.startswith("mode.") and r.status == "fail" for r in failed)


def mode_diagnoses(results: Sequence[Result]) -> tuple[Diagnosis, ...]:
    """Explanations, one for each convention, of the other ways of calling that fail; `results` are all of a run."""
    by_id: dict[str, list[str]] = {}
    for r in results:
        if r.quantity.startswith("mode.") and r.status == "fail":
            by_id.setdefault(MODES[r.quantity.removeprefix("mode.")].id, []).append(r.why)
    plainly = (DiagnosisPart("right when it is called plainly", "", "right"),) if only_modes_fail(results) else ()
    return tuple(diagnosis(id, *plainly, *map(DiagnosisPart, whys)) for id, whys in by_id.items())


def _of_one_object(probe: Probe, case: Probe, constructed: Iterable[str]) -> Probe | None:
    """The probe as an object can be called with it that was constructed for a case; None for one of other sizes."""
    inputs = {**probe.inputs, **{name: case.inputs.get(name) for name in constructed}}
    sizes: dict[str, int] = {}
    for p in probe.loss.parameters:
        if isinstance(p, Array | Labels) and inputs.get(p.name) is not None:
            shape = np.shape(inputs[p.name])
            letters = p.shape if len(p.shape) == len(shape) else getattr(p, "alternative", None) or ()
            if any(sizes.setdefault(letter, n) != n for letter, n in zip(letters, shape, strict=True)):
                return None
    return replace(probe, inputs=inputs)


def _right_part(observation: Observation) -> Observation | None:
    """The value and the gradients that are right; None where the value is wrong, or every gradient."""
    failed = {r.quantity for r in judge(observation) if r.status not in ("pass", "skip")}
    if not all(quantity.startswith("grad.") for quantity in failed):
        return None
    wrong = {quantity.split(".")[1] for quantity in failed}
    grads = {name: g for name, g in observation.outcome.grads.items() if name not in wrong}
    if wrong and not grads:
        return None
    return replace(observation, outcome=replace(observation.outcome, grads=grads))


def _shows(observation: Observation) -> bool:
    """Whether a gradient is so large that one which ignores the upstream gradient, or its sign, would be wrong."""
    bounds = observation.probe.bounds
    reference = observation.probe.grads
    return bounds is not None and any(
        np.max(np.abs(reference[name]), initial=0.0) > np.max(bounds.grads[name], initial=0.0)
        for name in observation.outcome.grads
        if name in reference
    )


def _size(probe: Probe) -> int:
    return sum(np.size(x) for x in probe.inputs.values())


def _judged(name: str, plain: Observation, probe: Probe, run: Callable[[Probe], Outcome]) -> Result:
    mode, outcome = MODES[name], run(probe)
    if outcome.trouble:
        # An unusual layout may be refused; what was asked for must run, and nothing may end the process.
        refused = outcome.trouble in ("raises", UNSUPPORTED) and not mode.optional
        return _result(name, probe, "skip" if refused else "error", f"{mode.words} it {outcome.sentence}")
    # What the plain call could not judge says nothing here either.
    grads = {} if mode.value_only else {n: g for n, g in outcome.grads.items() if n in plain.outcome.grads}
    results = judge(Observation(probe, Outcome(outcome.value, grads)))
    wrong = next((r for r in results if r.status == "fail"), None)
    if wrong is None:
        return _result(name, probe, "pass", f"right {mode.words}")
    kept = probe.cotangent is not None and all(np.array_equal(g, plain.outcome.grads[n]) for n, g in grads.items())
    how = "the gradient stays that for 1" if kept else f"{wrong.quantity}: {wrong.why}"
    seen = f"; {state}" if (state := outcome.remarks.get("keeps-state")) else ""
    return _result(name, probe, "fail", f"wrong {mode.words}: {how}{seen}")


def _result(name: str, probe: Probe, status: Status, why: str) -> Result:
    return Result(f"{probe.id}/mode.{name}", probe.id, f"mode.{name}", status, None, None, None, why)


def _upstream(probe: Probe, others: Sequence[Probe]) -> Made:
    """The case with upstream gradients that are powers of two, so that the plain bound holds.

    None where no gradient is large enough to show them, as on a kink.
    """
    if probe.bounds is None or not _shows(Observation(probe, Outcome(probe.value, probe.grads))):
        return None
    if probe.reduction == "none":
        # None is larger than 1 in size: errors of the rows add up to no more than with ones.
        cotangent = np.resize([1.0, -0.5, 0.25, -1.0, 0.5], np.shape(probe.value))
        return evaluate(
            probe.loss, probe.inputs, probe.dtype, "none", id=probe.id, cotangent=cotangent, forms=probe.forms
        )
    upstream = _IN_16_BITS if probe.dtype == "float16" else _UPSTREAM
    grads = {name: upstream * np.asarray(g) for name, g in probe.grads.items()}
    rooms = {name: abs(upstream) * np.asarray(b) for name, b in probe.bounds.grads.items()}
    return replace(probe, grads=grads, bounds=replace(probe.bounds, grads=rooms), cotangent=upstream)


_UPSTREAM, _IN_16_BITS = -65536.0, -0.5
"""The upstream gradient, of another sign than 1, and the size that loss scaling begins with; in float16 a gradient of
that size would leave the range."""


def _after_another(probe: Probe, others: Sequence[Probe]) -> Made:
    """The case after another batch of its size: its own samples in another order."""
    moved = reordered(probe, np.random.default_rng(0))
    return probe if moved is None else replace(probe, before=replace(probe, inputs=moved))


def _after_larger(probe: Probe, others: Sequence[Probe]) -> Made:
    """The case after a larger batch, which keeps a constructor's possible arguments: scalars, words, constants."""
    moved = {p.name for p in probe.loss.parameters if isinstance(p, Labels) or (isinstance(p, Array) and p.embedding)}
    moved |= {p.name for p in probe.loss.parameters if isinstance(p, Array) and not p.constant}
    kept = {name: x for name, x in probe.inputs.items() if name not in moved}
    fits = (o for o in others if all(np.shape(o.inputs.get(n, 0)) == np.shape(x) for n, x in kept.items()))
    largest = max(fits, key=_size, default=probe)
    if _size(largest) <= _size(probe):
        return None
    return replace(probe, before=replace(largest, inputs={**largest.inputs, **kept}))


def _reduced(reduction: str) -> Callable[[Probe, Sequence[Probe]], Made]:
    def made(probe: Probe, others: Sequence[Probe]) -> Made:
        if not probe.loss.has_rows or probe.reduction == reduction:
            return None
        return evaluate(probe.loss, probe.inputs, probe.dtype, reduction, id=probe.id, forms=probe.forms)

    return made


_SHARED: Mapping[str, Mode] = {
    "again": Mode(
        "when it is called after another batch of the same size", "earlier-calls-kept", _after_another,
        family="repeated-calls",
    ),
    "upstream": Mode(
        "with another upstream gradient than 1", "upstream-gradient-ignored", _upstream, family="upstream-gradient"
    ),
    "strided": Mode("for arrays with gaps between their entries", "memory-layout-ignored", family="memory-layouts"),
    "offset": Mode("for a part of a larger array", "memory-layout-ignored", family="memory-layouts"),
    "transposed": Mode("for arrays whose columns lie together", "memory-layout-ignored", family="memory-layouts"),
    "after-larger": Mode(
        "after a call with a larger batch", "earlier-calls-kept", _after_larger, family="repeated-calls"
    ),
    "sum": Mode(
        "with the reduction sum", "another-reduction-wrong", _reduced("sum"), needs_reduction=True, family="reductions"
    ),
    "mean": Mode(
        "with the reduction mean", "another-reduction-wrong", _reduced("mean"), needs_reduction=True,
        family="reductions",
    ),
}  # fmt: skip
_OF_A_COMMAND = ("again", "after-larger", "sum", "mean")
_WAYS = {FRAMEWORK: _OF_A_COMMAND, **{name: (*each.ways, *each.modes) for name, each in FRAMEWORKS.items()}}
"""Ways in which targets of a framework can be called, and an executable."""
MODES: Mapping[str, Mode] = MappingProxyType(
    {**_SHARED, **{name: mode for each in FRAMEWORKS.values() for name, mode in each.modes.items()}}
)
"""All modes, by name, as in ``--modes compile,autocast``."""
