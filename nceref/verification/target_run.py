"""One run of a target: made ready, called on the cases of one format, judged, and the verifier tested beside it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any

from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.corpus.files import given_inputs
from nceref.cases.corpus.resizing import Resizing
from nceref.cases.former_ids import current
from nceref.cases.invariances import check_invariances
from nceref.cases.judge import REFUSAL, judge
from nceref.cases.records import Observation, Probe, Result
from nceref.diagnosis.ranks.intended import GATHER, intended_gather
from nceref.errors import TargetError
from nceref.spec import Scalar
from nceref.targets.command_line import is_command
from nceref.targets.ranks.contract import Contract
from nceref.targets.search import Search
from nceref.verification.against import MeasuredReference
from nceref.verification.measured_parameters import measure_parameters, unmeasured
from nceref.verification.modes import check_modes, refuse_other_frameworks
from nceref.verification.request import Request, selected
from nceref.verification.self_test import SelfTestTrial, run_self_test
from nceref.verification.trials import CASES


@dataclass(frozen=True)
class RunSetup:
    """The setup of one run: its format, its ranks if there are any, and its name in ids of results.

    That of one rank beside those of several is `brief`: only small cases are looked at.
    """

    dtype: str
    label: str
    contract: Contract | None = None
    brief: bool = False

    @property
    def words(self) -> str:
        """The run in words for a sentence: ``in float32``, ``with 2 ranks``, ``in 2 steps``."""
        return f"in {self.dtype}" if self.contract is None else self._ranks

    @property
    def _ranks(self) -> str:
        assert self.contract is not None
        dtype = f" in {self.dtype}" if self.label.startswith(self.dtype) else ""
        return f"{self.contract.words}{dtype}"

    @property
    def several(self) -> bool:
        """Whether there are several ranks, or steps."""
        return self.contract is not None and self.contract.world_size > 1


def setups_of(request: Request) -> tuple[RunSetup, ...]:
    """The runs of a request, in order."""
    if not request.contracts:
        return tuple(RunSetup(dtype, dtype) for dtype in request.dtypes)
    several, most = len(request.dtypes) > 1, max(contract.world_size for contract in request.contracts)
    return tuple(
        RunSetup(
            dtype,
            f"{dtype}-{contract.label}" if several else contract.label,
            contract,
            brief=contract.world_size == 1 < most,
        )
        for dtype in request.dtypes
        for contract in request.contracts
    )


def runner_of(request: Request, child: Any = None) -> Any:
    """The target, ready to run; in a child that is there already, it takes the place of the one before."""
    if request.recorded is not None:
        return nullcontext(request.recorded)
    options: dict[str, Any] = {
        "call": request.call,
        "init": request.init,
        "framework": request.framework,
        "settings": request.settings,
        "floats": request.floats,
        "param": {name: path for name, (path, _) in request.param.items()},
        "unsought": request.unsought,
        "device": request.device,
    }
    if request.in_steps:
        from nceref.targets.ranks.steps import StepsRunner, in_turn

        # A runner that is there already may be one of these.
        child = child.run if isinstance(child, StepsRunner) else child
        inner = _runner(request, child, {**options, "in_steps": True})
        return in_turn(inner, request.device)
    return _runner(request, child, options)


def _runner(request: Request, child: Any, options: dict[str, Any]) -> Any:
    """The target as `options` of its loading say, in one process or on ranks."""
    from nceref.targets import runner
    from nceref.targets.command import in_command

    if request.contracts and not request.in_steps:
        from nceref.targets.ranks.runner import on_ranks, on_same_ranks

        if child is not None:
            return on_same_ranks(child, request.thing, request.loss, **options)
        most = max(contract.world_size for contract in request.contracts)
        return on_ranks(request.thing, request.loss, most, timeout=request.timeout, **options)
    if is_command(request.thing):
        limit, settings = request.timeout, request.settings
        return in_command(request.thing, request.loss, settings=settings, dtypes=request.dtypes, timeout=limit)
    if child is not None:
        return runner.in_same_child(child, request.thing, request.loss, **options)
    if issubclass(type(request.thing), str):
        limits: dict[str, Any] = {"timeout": request.timeout, "isolate": request.isolate}
        return runner.in_child(request.thing, request.loss, **limits, **options)
    return runner.in_process(request.thing, request.loss, **options)


@contextmanager
def held_runner(request: Request, child: Any = None, search: Search | None = None) -> Iterator[tuple[Request, Any]]:
    """The target, ready to run, with the functions of the parameters that it holds; the request says which are left.

    `search` counts the calls by which these are measured; where there is none, they are no part of one.
    """

    def measured(run: Any) -> tuple[Request, dict[str, str], dict[str, str]]:
        return measure_parameters(request, run if search is None else search.target(run))

    with ExitStack() as stack:
        run = stack.enter_context(runner_of(request, child))
        if request.old is not None:
            old, old_run = stack.enter_context(held_runner(request.old))
            request = replace(request, reference=MeasuredReference(old.name, old_run))
        # What cannot be is refused before anything is run; the first run comes first.
        for contract in reversed(request.contracts):
            run.use(contract)
        request, forms, unknown = measured(run)
        if unknown:
            request = replace(request, unsought=unknown)
            try:
                # It may still take the scalar elsewhere, or have it fixed.
                same = run if issubclass(type(request.thing), str) else None
                run = stack.enter_context(runner_of(request, same))
            except TargetError as error:
                raise TargetError(unmeasured(request, unknown)) from error
            request, forms, _ = measured(run)
        run.forms.clear()
        run.forms.update(forms)
        yield request, run


@contextmanager
def begun(request: Request, child: Any, search: Search) -> Iterator[tuple[Any, Sequence[Probe]]]:
    """The target, ready to run, and the first cases of its suite, on which it is tried; as `Trials.begin`."""
    with held_runner(request, child, search) as (request, run):
        yield run, probes_of(request, setups_of(request)[0], run.target.fixed, run.forms, CASES)


@dataclass(frozen=True, eq=False)
class TargetRun:
    """The data of one run: observations, results, and the trials of the self-test."""

    setup: RunSetup
    observations: tuple[Observation, ...]
    results: tuple[Result, ...]
    trials: tuple[SelfTestTrial, ...]
    fixed: Mapping[str, float]
    takes: frozenset[str]
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        """The format."""
        return self.setup.dtype

    @property
    def label(self) -> str:
        """The prefix of the ids of its results, where there are several runs."""
        return self.setup.label

    @property
    def words(self) -> str:
        """The run in words for a sentence: ``in float32``, ``with 2 ranks``."""
        return self.setup.words

    @property
    def judged(self) -> int:
        """Cases with a comparison."""
        # Every compared case has this result, also where its value is not finite and nothing else is measured.
        return len({r.case for r in self.results if r.quantity in ("value.finite", REFUSAL) and r.status != "error"})

    @property
    def never_given(self) -> tuple[str, ...]:
        """Optional scalars that the target takes, and that no case has."""
        known = {p.name for o in self.observations for p in o.probe.loss.parameters if isinstance(p, Scalar)}
        given = {name for o in self.observations for name, x in o.probe.inputs.items() if x is not None}
        return tuple(sorted((known & self.takes) - given))


def probes_of(
    request: Request,
    setup: RunSetup,
    fixed: Mapping[str, float],
    forms: Mapping[str, str] | None = None,
    most: int = 0,
) -> tuple[Probe, ...]:
    """The probes of a run: those of the suite that were chosen, of which only the first `most` are evaluated; 0: all.

    `setup` is one of the request's runs. `fixed` has scalars that the target has fixed, and `forms` the
    parametrizations of inputs that it holds itself. Raises `InputError` for a case that does not exist.
    """
    if request.recorded is not None:
        return request.recorded.probes
    dtype, contract, resizing = setup.dtype, setup.contract, sizes_of(request, setup)

    def evaluated(only: frozenset[str]) -> tuple[Probe, ...]:
        probes = corpus(
            request.loss,
            request.settings,
            suite="quick" if setup.brief else request.suite,
            dtype=dtype,
            seed=request.seed,
            reduction=request.reduction,
            algorithm=request.algorithm,
            fixed=fixed,
            forms=forms,
            resizing=resizing,
            most=most,
            only=only,
        )
        own = given_inputs(request.loss, request.inputs, request.settings, dtype, fixed) if request.inputs else ()
        how = (dtype, request.reduction, request.algorithm)
        return (*probes, *(evaluate(request.loss, inputs, *how, id, forms=forms) for id, inputs in own))

    few = frozenset(map(current, request.cases))
    probes = evaluated(few)
    if few - {p.id for p in probes}:
        # One that there is not: which there are is said, or one of them takes its place.
        probes = evaluated(frozenset())
    ids = [p.id for p in probes]
    wanted_ids = request.cases
    if setup.brief and wanted_ids:
        # Beside several ranks, one rank may not have the case.
        wanted_ids = tuple(id for id in wanted_ids if id in ids) or tuple(ids[:1])
    chosen = selected(ids, wanted_ids)
    wanted = (p for p in probes if p.id in chosen and (contract is None or _shared(p, setup)))
    gather = request.intended.get(GATHER)
    between = (p if contract is None or gather is None else intended_gather(p, contract, gather) for p in wanted)
    if request.reference is not None and contract is not None:
        request.reference.run.use(contract)
    return tuple(map(request.answered, between))


def sizes_of(request: Request, setup: RunSetup) -> Resizing:
    """The sizes of the cases of a run, which its ranks or steps can share."""
    if setup.contract is None:
        return request.resizing
    return replace(request.resizing, multiple_of=lcm(request.resizing.multiple_of, setup.contract.multiple))


def _shared(probe: Probe, setup: RunSetup) -> bool:
    """Whether a case is one of a run on ranks."""
    assert setup.contract is not None
    return setup.contract.fits(probe) and not (setup.brief and probe.is_large)


def run_target(request: Request, setup: RunSetup, run: Any, on_progress: Callable[..., Any] | None) -> TargetRun:
    """Call the target on all cases of a run, and judge its answers.

    `setup` is one of the request's runs, and `run` the target, ready to run. `on_progress` is called with each case,
    and with the number of all as ``total=``.
    """
    refuse_other_frameworks(request.modes, run.target.framework)
    observations = observed(request, setup, run, on_progress)
    results = [result for o in observations for result in judge(o)]
    altered = None if request.is_the_loss else request.answered
    results += check_invariances(observations, run if request.recorded is None else None, altered)
    # The sum of a batch is no sum of its shards' sums under every contract.
    plain = request.is_the_loss and setup.contract is None
    # On ranks every program of JAX is compiled.
    without = () if setup.contract is None or request.in_steps else ("jit",)
    if request.recorded is None:
        results += check_modes(observations, run, run.target, request.modes, plain=plain, without=without)
    # Wrong answers pass through the target's own framework: a fault in the reading of its arrays shows too.
    trials = run_self_test(observations, run.reply)
    takes = frozenset(run.target.names.values())
    named = tuple(_named(request, setup, results))
    return TargetRun(setup, observations, named, trials, run.target.fixed, takes, dict(run.forms))


def observed(
    request: Request, setup: RunSetup, run: Any, on_progress: Callable[..., Any] | None = None
) -> tuple[Observation, ...]:
    """The outcomes of the target on the cases of a run, with the cases; the parameters are those of `run_target`."""
    if setup.contract is not None:
        run.use(setup.contract)
    probes = probes_of(request, setup, run.target.fixed, run.forms)
    # Determinism is judged on one case only, since a second call doubles the time.
    twice, made = next((p.id for p in probes if not p.skip), ""), []
    for probe in probes:
        # What the reference refuses is run too, and said.
        made.append(Observation(probe, run(probe, twice=probe.id == twice)))
        if on_progress is not None:
            on_progress(probe, total=len(setups_of(request)) * len(probes))
    return tuple(made)


def _named(request: Request, setup: RunSetup, results: list[Result]) -> list[Result]:
    """The results, with the name of the run before their ids where there are several."""
    if len(setups_of(request)) == 1:
        return results
    return [replace(r, id=f"{setup.label}/{r.id}", case=f"{setup.label}/{r.case}") for r in results]
