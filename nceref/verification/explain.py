"""The explanation of a difference: what it is, what it does to training, and a script of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nceref.cases.judge import judge
from nceref.cases.records import Diagnosis, DiagnosisPart, Observation
from nceref.diagnosis.advice import advised, intendable
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import diagnosis, gaps, usable
from nceref.diagnosis.ranks.mix import mix_diagnoses
from nceref.diagnosis.troubles import troubles
from nceref.output.words import counted, out_of
from nceref.targets.search import EXPLANATION, NoCallsLeft, Search
from nceref.verification.against import explained_by_old
from nceref.verification.between_ranks import between_ranks, comparing_ranks, on_ranks, other_ranks
from nceref.verification.modes import mode_diagnoses, only_modes_fail
from nceref.verification.request import Request
from nceref.verification.several_runs import ExplainedRun, joined_diagnoses, joined_training
from nceref.verification.target_run import TargetRun, probes_of, run_target, sizes_of

_Diagnose = Callable[[], tuple[Diagnosis, ...]]
"""A search that has its observations and has not begun."""


@dataclass(frozen=True)
class ExplainedDifference:
    """The part of a report that explains a difference.

    Attributes
    ----------
    diagnoses : tuple of Diagnosis
        The first is the explanation.
    training : mapping
        Effect of the difference on training, as plain data; empty where nothing was measured.
    script : str
        A stand-alone script of a small failing input, or empty.
    """

    diagnoses: tuple[Diagnosis, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    script: str = ""


def explain(
    request: Request,
    run: Any,
    runs: Sequence[TargetRun],
    search: Search,
    measure: bool = True,
    training: bool = True,
) -> Iterator[ExplainedDifference]:
    """Explain the difference of each format by itself: bounds of different formats do not mix.

    `run` is the target, ready to run; `runs` has one run for each format; `search` counts the calls. `measure` says
    whether a formula is measured where nothing explains the values, and `training` whether the effect on training is
    measured. Each item has all that the one before it has, and what was found since.
    """
    failed = [each for each in runs if any(r.status == "fail" for r in each.results)] or runs[:1]
    explainer = _Explainer(request, search.target(run), runs, search, measure, training)
    explained: list[ExplainedRun] = []
    latest = ExplainedDifference()
    for dtype in dict.fromkeys(each.dtype for each in failed):
        # A formula that was looked for in vain in one format is in no other.
        in_vain = any(d.id == "unexplained" for one in explained for d in one.diagnoses)
        of_format = replace(explainer, measure=measure and not in_vain).of_format
        known = explained
        for so_far in of_format([each for each in failed if each.dtype == dtype]):
            explained = [*known, *so_far]
            diagnoses = joined_diagnoses([*explained, *_troubled(runs)])
            diagnoses = tuple(intendable(advised(d, run.target.framework), run.target.framework) for d in diagnoses)
            latest = ExplainedDifference(diagnoses, joined_training(explained))
            yield latest
    is_one_program = not (failed[0].setup.several or request.recorded or request.old)
    if is_one_program and (request.repro or (measure and any(d.id == "unexplained" for d in latest.diagnoses))):
        yield replace(latest, script=_script(request, explainer.run, failed[0], search))


def without_answer(runs: Sequence[TargetRun]) -> ExplainedDifference:
    """The explanation of troubles that came in place of answers, where no case has one."""
    return ExplainedDifference(joined_diagnoses(_troubled(runs)))


def _troubled(runs: Sequence[TargetRun]) -> list[ExplainedRun]:
    words = {id(each): each.words if len(runs) > 1 else "" for each in runs}
    # What ends one case in one way and another in another are two findings, and neither is beside the other.
    return [ExplainedRun(words[id(each)], (one,)) for each in runs for one in troubles(each.observations)]


@dataclass(frozen=True)
class _Explainer:
    """The data that the explanations of all formats share: the request, the target, and all runs."""

    request: Request
    run: Any
    runs: Sequence[TargetRun]
    search: Search
    measure: bool
    training: bool

    def of_format(self, failed: Sequence[TargetRun]) -> Iterator[tuple[ExplainedRun, ...]]:
        """Explain a fault between ranks; else the fault on one rank, and on several where that is another."""
        self.search.goal = EXPLANATION
        failing = next((each for each in failed if each.setup.several), failed[0])
        other = other_ranks(self.request, self.run, self.runs, failing.setup)
        if diagnoses := between_ranks(self.request, self.runs, failing, other):
            # They say themselves which numbers of ranks they were seen with.
            formats = {each.dtype for each in self.runs}
            one = ExplainedRun(f"in {failing.dtype}" if len(formats) > 1 else "", diagnoses)
            yield (one,)
            yield one, ExplainedRun(failing.words, (), self._effect(failing, diagnoses))
            return
        one = ExplainedRun("")
        for one in self._of_run(failed[0]):
            if failing is failed[0]:
                one = replace(one, diagnoses=on_ranks(failing, one.diagnoses, other))
            yield (one,)
        if failing is failed[0]:
            return
        first, *rest = one.diagnoses or (None,)
        if first and first.predicts and first.predicts(failing.observations):
            yield (replace(one, diagnoses=(first.noting(f"{failing.words} too"), *rest)),)
        else:
            from nceref.diagnosis.fresh import NO_CALLS

            # What is wrong between ranks alone was looked for with calls already.
            for second in self._of_run(failing, NO_CALLS):
                contract = failing.setup.contract
                assert contract is not None
                yield one, replace(second, diagnoses=tuple(comparing_ranks(d, contract) for d in second.diagnoses))

    def _of_run(self, failing: TargetRun, calls: Any = None) -> Iterator[ExplainedRun]:
        """The explanation of a run; then with a measured formula; then with the effect on training."""
        from nceref.diagnosis.departure import departure

        self.search.goal = EXPLANATION
        if (recorded := self.request.recorded) is not None:
            looked_at = _of_one_kind(failing)
        else:
            looked_at = _finer(self.request, self.runs, self.run, failing)
        calls = calls or _calls(self.request, self.run, looked_at)
        # Of a part of the rows no pattern is looked for.
        alone = recorded.explained(failing.observations) if recorded is not None else ()
        diagnoses = alone or _explained(self.request, calls, looked_at)
        if recorded is not None and not diagnoses:
            diagnoses = departure(failing.observations)
        if calls.used_up and any(d.id == "unexplained" for d in diagnoses):
            self.search.end("limit", f"was cut after {counted(calls.made, 'fresh call')}, its limit")
        several = len(self.runs) > 1
        words = failing.words if several else ""
        if looked_at.dtype != failing.dtype:
            words = f"{words} (measured in {FINER})" if several else f"in {FINER}, where it fails too,"
        yield (one := ExplainedRun(words, _limited(self.request, diagnoses)))
        if self.measure and (formula := self._measured(looked_at, diagnoses, calls)):
            yield (one := replace(one, diagnoses=formula))
        if effect := self._effect(looked_at, one.diagnoses, calls):
            yield replace(one, training=effect)

    def _measured(self, failing: TargetRun, diagnoses: Sequence[Diagnosis], calls: Any) -> tuple[Diagnosis, ...]:
        """The measured formula of the target where nothing explains its values; empty where none was found."""
        unexplained = [d for d in diagnoses if d.id == "unexplained"]
        if not unexplained or not self.request.is_the_loss or failing.setup.several:
            return ()
        from nceref.diagnosis.probe.measured import measured

        self.search.goal = "a formula"
        formula = measured(calls, failing.observations, self.search)
        return () if formula is None else (formula, *(d for d in diagnoses if d not in unexplained))

    def _effect(self, failing: TargetRun, diagnoses: Sequence[Diagnosis], calls: Any = None) -> Mapping[str, Any]:
        if not self.training or not diagnoses:
            return {}
        self.search.goal = "the effect on training"
        return _training(self.request, calls or _calls(self.request, self.run, failing), failing, diagnoses)


FINER = "float32"
"""The format in which a target that fails in 16 bits is called again: 16-bit bounds fit too many explanations."""


def _finer(request: Request, runs: Sequence[TargetRun], run: Any, failing: TargetRun) -> TargetRun:
    """The run that is looked at: that in a finer format, where the target fails in that too."""
    if failing.dtype not in ("bfloat16", "float16") or only_modes_fail(failing.results):
        return failing
    made = (each for each in runs if each.dtype == FINER and each.setup.contract == failing.setup.contract)
    try:
        finer = next(made, None) or run_target(
            replace(request, dtypes=(FINER,), modes=()), replace(failing.setup, dtype=FINER), run, None
        )
    except NoCallsLeft:
        return failing
    return finer if any(r.status == "fail" for r in finer.results) else failing


def _of_one_kind(failing: TargetRun) -> TargetRun:
    """The cases of the first settings with which recorded answers fail: with others, something else may be wrong.

    Corpora of vectors have cases of several settings.
    """
    wrong = {r.case for r in failing.results if r.status == "fail"}
    kinds: dict[Any, list[Observation]] = {}
    for observation in failing.observations:
        kinds.setdefault(_kind(observation), []).append(observation)
    first = next((each for each in kinds.values() if any(o.probe.id in wrong for o in each)), failing.observations)
    ids = {o.probe.id for o in first}
    results = tuple(r for r in failing.results if r.case in ids)
    return replace(failing, observations=tuple(map(_without_part, first)), results=results)


def _without_part(observation: Observation) -> Observation:
    """The observation without gradients of which some rows are not judged: patterns need all rows."""
    probe, outcome = observation.probe, observation.outcome
    rooms = probe.bounds.grads if probe.bounds is not None else {}
    kept = {name: g for name, g in outcome.grads.items() if np.all(np.isfinite(rooms.get(name, 0.0)))}
    return (
        observation if len(kept) == len(outcome.grads) else replace(observation, outcome=replace(outcome, grads=kept))
    )


def _kind(observation: Observation) -> Any:
    """The settings of a case, and which arrays it has: the key that cases of one kind share."""
    given = ((name, x) for name, x in observation.probe.inputs.items() if x is not None)
    return frozenset((name, x if isinstance(x, str) else np.ndim(x)) for name, x in given)


def _explained(request: Request, calls: Any, failing: TargetRun) -> tuple[Diagnosis, ...]:
    """The explanations of a difference; where the reference is not the loss as it is, relative to that first."""
    from nceref.diagnosis.diagnose import diagnose
    from nceref.diagnosis.fresh import FreshCalls

    modes = mode_diagnoses(failing.results)
    if only_modes_fail(failing.results):
        return modes
    if alone := mix_diagnoses(failing.results):
        return alone
    identities = [r for r in failing.results if r.quantity.startswith("identity.")]
    if request.is_the_loss:
        found = _with_changed_inputs(diagnose(failing.observations, identities, calls), failing)
        # Of a target that answers otherwise each time, a way of calling shows nothing.
        return found if any(d.id == "not-repeatable" for d in found) else (*found, *modes)
    unaltered = _held_to_the_loss(request, failing)
    of_the_loss = partial(diagnose, unaltered, identities, calls)
    # The target may lack the intended convention, and be the plain reference.
    if all(r.status != "fail" for o in unaltered for r in judge(o)):
        return (*_as_it_is(request, failing, len(unaltered)), *modes)
    if request.old is not None:
        return (*_beside_an_old_program(request, failing, of_the_loss), *modes)
    held_to_it = FreshCalls(calls.call, calls.like, answered=request.answered)
    of_what_is_meant = partial(diagnose, failing.observations, identities, held_to_it)
    return (*_beside_what_is_meant(request, failing, of_the_loss, of_what_is_meant), *modes)


def _held_to_the_loss(request: Request, failing: TargetRun) -> list[Observation]:
    """The answers of a run beside the loss as it is, without what is intended and without an older program."""
    as_it_is = replace(request, intended={}, reference=None)
    plain = {p.id: p for p in probes_of(as_it_is, failing.setup, failing.fixed, failing.forms)}
    return [Observation(plain[o.probe.id], o.outcome) for o in failing.observations if not o.probe.skip]


def _as_it_is(request: Request, failing: TargetRun, count: int) -> tuple[Diagnosis, ...]:
    """The diagnosis of a target that is the loss as it is on a number of cases, and not what it is compared with."""
    phrases = " and ".join(CONVENTIONS[text.partition("=")[0]].phrase for text in request.intended.values())
    other = request.about.get("against", "")
    cases = f"on {out_of(count, count, 'case')}, {f'which {other} is not' if other else f'without {phrases}'}"
    same = f"your loss equals {request.loss.name if other else 'the reference'} as it is"
    one = diagnosis("as-the-reference", DiagnosisPart(same, cases, "computes"))
    if not other:
        return (one,)
    by_old = explained_by_old(failing.observations, other)
    return (*(d for d in by_old if d.lead.role == "computes"), replace(one, fix=""))


def _beside_an_old_program(request: Request, failing: TargetRun, of_the_loss: _Diagnose) -> tuple[Diagnosis, ...]:
    """The explanations of a target beside an older program, or where nothing says that, beside the loss."""
    assert request.old is not None
    by_old = explained_by_old(failing.observations, request.old.name)
    if by_old and by_old[0].lead.role == "computes":
        return by_old
    found = of_the_loss()
    if not found or found[0].id == "unexplained":
        return by_old
    return tuple(_against_loss(replace(d, fix="", intend=""), request.loss.name) for d in found)


def _beside_what_is_meant(
    request: Request, failing: TargetRun, of_the_loss: _Diagnose, of_what_is_meant: _Diagnose
) -> tuple[Diagnosis, ...]:
    """The explanations of what a target has that is not meant, or lacks of what is."""
    meant = {text.partition("=")[0] for text in request.intended.values()}
    # Numbers that are not finite are all that is left beside what is meant.
    if all(gap.right for o in usable(failing.observations) for gap in gaps(o).values() if gap.finite):
        return of_what_is_meant()
    found = of_the_loss()
    if found and (found[0].id == "unexplained" or all(meant.issuperset(d.id.split("+")) for d in found)):
        return of_what_is_meant()
    unmeant = tuple(_without(each, meant) for each in found)
    # There, the reference is the older program.
    return tuple(_against_loss(d, request.loss.name) for d in unmeant) if request.about.get("against") else unmeant


def _with_changed_inputs(found: tuple[Diagnosis, ...], failing: TargetRun) -> tuple[Diagnosis, ...]:
    """The explanations; of wrong gradients of inputs that a call changes, the remedy is to leave these as they are."""
    why = next((r.why for r in failing.results if r.quantity == "behavior.modifies-inputs" and r.status == "fail"), "")
    if not why or any(r.quantity.startswith("value") and r.status == "fail" for r in failing.results):
        return found
    fix = f"Write into new arrays: your loss {why}. Then look at the gradient again."
    return tuple(replace(each, fix=fix, threads=()) if each.first else each for each in found)


def _against_loss(each: Diagnosis, name: str) -> Diagnosis:
    """An explanation that names the loss that it is relative to."""
    return replace(each, parts=tuple(replace(p, text=p.text.replace("the reference", name)) for p in each.parts))


def _without(each: Diagnosis, meant: set[str]) -> Diagnosis:
    """An explanation whose id, fix and threads are those of what is not meant, and what is meant and lacks."""
    ids = each.id.split("+")
    rest = [id for id in ids if id not in meant]
    if len(rest) == len(ids):
        return each
    lacking = [CONVENTIONS[id].phrase for id in sorted(meant.difference(ids))]
    alone = diagnosis("+".join(rest) or "as-the-reference")
    own = replace(each, id=alone.id, fix=alone.fix, threads=alone.threads, intend=each.intend if rest else "")
    return own.noting(f"it lacks {' and '.join(lacking)}") if lacking else own


def _limited(request: Request, diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """The explanations, with a note on how little was tried if the loss has no dense form and nothing explains it."""
    from nceref.diagnosis.dense.forms import is_dense

    if is_dense(request.loss):
        return tuple(diagnoses)
    words = f"{request.loss.name} has no dense form, so conventions about pairs and denominators were not tried"
    return tuple(d.noting(words) if d.id == "unexplained" else d for d in diagnoses)


def _calls(request: Request, run: Any, failing: TargetRun) -> Any:
    """The target, for calls beyond the corpus, of which the reference is that without intended conventions."""
    from nceref.diagnosis.fresh import NO_CALLS, fresh_calls

    if request.recorded:
        return NO_CALLS
    if failing.setup.contract is not None:
        run.use(failing.setup.contract)
    sizes = sizes_of(request, failing.setup) if request.in_steps else request.resizing
    return fresh_calls(run, failing.observations, request.algorithm, sizes)


def _training(request: Request, calls: Any, failing: TargetRun, diagnoses: Sequence[Diagnosis]) -> Mapping[str, Any]:
    """The effect of the difference on training, as plain data; beside intended conventions, on the cases alone."""
    # What is random has no number that a second measurement would confirm.
    if any(d.id == "not-repeatable" for d in diagnoses):
        return {}
    from nceref.diagnosis.fresh import NO_CALLS
    from nceref.diagnosis.severity import severity

    measured = severity(failing.observations, NO_CALLS if request.intended else calls)
    return measured.record() if measured is not None else {}


def _script(request: Request, run: Any, failing: TargetRun, search: Search) -> str:
    """A stand-alone script of a small failing input; empty where no number is wrong."""
    from nceref.targets.command_line import FRAMEWORK
    from nceref.verification.repro.command_script import command_script
    from nceref.verification.repro.minimize import smallest
    from nceref.verification.repro.script import script

    if failing.setup.contract is not None:
        run.use(failing.setup.contract)
    search.goal = "a small failing input"
    # With several dtypes the ids of results begin with the dtype, those of probes do not.
    wrong = {r.case.removeprefix(f"{failing.label}/") for r in failing.results if r.status == "fail"}
    failure = smallest(
        request.loss,
        {**request.settings, **run.target.fixed},
        run,
        dtype=failing.dtype,
        reduction=request.reduction,
        algorithm=request.algorithm,
        first=[o for o in failing.observations if o.probe.id in wrong],
        search=search,
    )
    made = command_script if run.target.framework == FRAMEWORK else script
    return made(run.target, *failure) if failure else ""
