"""The verifier: runs a target on the corpus, judges it, checks invariances and itself, and explains what differs."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from nceref.cases.expected_failures import changed_failures, in_use, mark_expected_failures
from nceref.cases.records import RANDOM_WALK, Observation, Probe, Result
from nceref.errors import InputError, LackingInputError, SignatureError, TargetError
from nceref.output.limits import at_most
from nceref.output.text import printable, shown
from nceref.spec import Loss
from nceref.targets.arguments import SUCH_AS, expected_names
from nceref.targets.command_line import is_command
from nceref.targets.frameworks import NAMES
from nceref.targets.frameworks.call import WHICH
from nceref.targets.global_state import ORDINARY, replaced_functions
from nceref.targets.recorded import RecordedTarget
from nceref.targets.search import NONE, NoCallsLeft, Search
from nceref.tolerance import Bounds
from nceref.verification import report as codes
from nceref.verification.adapters import adapted, called_wrongly, layers
from nceref.verification.against import apart_beyond, facts_of, no_reference, settings_of
from nceref.verification.cost import costs_of
from nceref.verification.explain import ExplainedDifference, explain, without_answer
from nceref.verification.limits import limited_cases, limits_of, mark_limits
from nceref.verification.modes import modes_of
from nceref.verification.report import Report
from nceref.verification.request import OldProgram, Request, environment, recorded_request, request_of
from nceref.verification.scope import Scope, scope_of
from nceref.verification.target_run import (
    TargetRun,
    held_runner,
    observed,
    probes_of,
    run_target,
    runner_of,
    setups_of,
)
from nceref.verification.verdict import decide_verdict, graded


def verify(target: Any, loss: str | Loss | None = None, **options: Any) -> Report:
    """Judge somebody else's loss against the reference, and name the convention or bug that explains a difference.

    Parameters
    ----------
    target : str or callable
        ``file.py:name``, ``package.module:name``, the name of a known target, or a function, class or module object.
        ``cmd:./impl --serve`` is an executable that answers one JSON object a line, see docs/other-languages.md.
        Text is run in a process of its own, which may hang or die, where the system starts any; it is no sandbox, see
        `isolate`. An object is run in this process: what it raises is reported, and what it changes (``np.seterr``,
        functions of NumPy, the working directory and the like) is put back after each call. One that hangs, crashes,
        ends the process or starts another cannot be stopped. docs/security.md has a table.
    loss : str or Loss, optional
        Name of the reference; known targets bring their own. ``file.py:NAME`` or a declaration is a loss of one's own,
        and its file is executed in this process.
    call : str, optional
        Expression that calls the target, such as ``"f(z1, z2, tau=temperature)"``.
    init : mapping, optional
        Arguments of a class's constructor, or of each call of a function.
    framework : {"numpy", "torch", "jax"}, optional
        Framework of the target; recognized by default.
    against : str or callable, optional
        An older program, as `target` is: what it computes is the reference, as the loss that it is found to be or by
        its own numbers. `loss` is then the loss whose inputs both take.
    suite : {"standard", "quick", "full"}
        Suite of cases: about 60, 30 or 200.
    dtype : str or sequence of str
        ``float64`` (default), ``float32``, ``bfloat16``, ``float16``; several are reported side by side.
    device : str
        Device, as the framework names it.
    seed : int
        Seed of the corpus.
    multiple_of : int, optional
        All sizes are rounded up to multiples of it, for targets that take no others.
    shape : (int, int), (int, int, int) or str, optional
        N and D of all cases, such as ``(64, 512)``, or N, D and C.
    inputs : str, optional
        A file ``.npz`` or ``.safetensors`` with a batch of one's own, judged beside the designed cases.
    algorithm : {"textbook", "log1p"}
        Whose rounding errors are admitted: any backward-stable evaluation, or the one without cancellation.
    temperatures : float, optional
        Lowest temperature that must work; default: 0.005, below those in use. A target that is right from there on, and
        not finite below, conforms, and `Report.limits` says where that begins and why.
    timeout : float, optional
        Seconds for one case, for a target given as text; default 30.
    isolate : bool
        Whether a target given as text runs without network, and without files and processes that it can change; on
        Linux, by bubblewrap or namespaces. It covers the target alone: a `loss` that is text for a file is refused.
    case : str or sequence of str, optional
        Ids of the only cases to judge.
    modes : str or sequence of str, optional
        Ways of calling that are judged beside those that apply by themselves: ``compile``, ``autocast``, ``tf32``.
    param : mapping, optional
        Inputs to parameters of a torch module, such as ``{"logit_scale": "exp(log_scale)"}``; others are found by name.
    ranks : int, str or sequence of int, optional
        Numbers of ranks that the target is run on, such as ``(2, 3)``: every rank is a process with its rows of each
        batch, and one rank alone is judged as well. For targets of PyTorch and JAX that other processes can import.
    accumulate : int, str or sequence of int, optional
        Numbers of steps, such as ``4``, that the target is called in as a loop with gradient accumulation does: each
        with its own rows of a batch, one after the other, on one instance of a class. One call for all rows is judged
        as well. A parameter such as ``accumulation_steps`` is handed the number of steps.
    sync : {"mean", "sum"}
        Whether training divides the sum of the gradients of ranks or steps by their number.
    value : {"mean", "sum", "rank0", "each"}
        Value of the joined batch: the mean or the sum of the values of ranks or steps, that of rank 0, that of each.
    shards : str or sequence of int, optional
        Shares of the rows, one a rank or step, such as ``(3, 1)``; default: equal ones.
    duplicate : bool
        Whether rows are repeated until all ranks have equally many, as samplers do.
    added : str or (target, float), optional
        A second target of the same inputs and its weight, ``file.py:name:0.5``, that is added to the first: whether
        their mix depends on the number of ranks.
    axis : str
        Name that a target of JAX has for the axis of its devices, which are its ranks; default ``batch``.
    require_grad : bool
        Whether a target without gradients fails.
    expected_failures : mapping, optional
        Reasons why results fail, by result id; strict: an unexpected pass fails.
    explain : bool
        Whether the report shows the parts of the bound of each case.
    repro : bool
        Whether to look for a small failing input and write a script of it; always done where nothing explains a
        difference.
    calls : int, optional
        Calls of the target that the search for an explanation may take, beside those that are judged; 0: no search is
        made. Default: 4000, of which one format seldom takes 800. The reason for its end, which never changes the
        verdict, is in `Report.search`.
    **options
        Conventions that the target intends: arguments of the loss (``normalize="none"``, ``queue=...`` for a generated
        one), ``reduction``, or an axis of the closed list of conventions (``factor="outer-factor-2"``).

    Returns
    -------
    Report
        A finding is never raised, see `Report.raise_for_status`.

    Raises
    ------
    InputError
        An option or a setting does not exist.
    UnavailableError
        The system has no means to isolate the target, and `isolate` is given.
    """
    report = verify_with(target, loss, **options)
    return replace(report, command=written_call(target, loss, options))


def written_call(target: Any, loss: str | Loss | None, options: Mapping[str, Any]) -> str:
    """The call of `verify`, as it may be repeated; an object is named as it calls itself."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    first = [shown(name) if isinstance(target, str) else printable(name)]
    given = {**({"loss": loss} if loss is not None else {}), **options}
    words = {key: x.name if isinstance(x, Loss) else x for key, x in given.items()}
    return f"nceref.verify({', '.join([*first, *(f'{key}={shown(x)}' for key, x in words.items())])})"


@dataclass(frozen=True)
class _Wished:
    """Options of `verify_with` beside those of the verdict, under the names that its arguments have."""

    measure: bool = True
    training: bool = True
    diagnose: bool = True
    on_verdict: Callable[[Report], Any] | None = None
    search: Search | None = None
    costs: bool = False


def verify_with(
    target: Any,
    loss: str | Loss | None = None,
    on_progress: Callable[..., Any] | None = None,
    child: Any = None,
    measure: bool = True,
    training: bool = True,
    diagnose: bool = True,
    on_verdict: Callable[[Report], Any] | None = None,
    search: Search | None = None,
    **options: Any,
) -> Report:
    """The report of `verify`, for the command line and for `identify`, with more control over the search.

    `target`, `loss` and `options` are those of `verify`. `on_progress` is called with each case, and with their number
    as ``total=``. `child` is a process that has run such a target before, so that what the target imports is imported
    once. `diagnose` says whether a difference is explained, and `training` whether its effect on training is measured.
    With `measure` the target's formula is measured where nothing explains a difference, and another call is looked for
    where it cannot be called. `on_verdict` is called with the report as it is before the search for an explanation, if
    there is one; with it, Ctrl-C ends that search alone. `search` counts the calls that measure parameters, where the
    verdict is part of one.
    """
    wished = _Wished(measure, training and measure, diagnose, on_verdict, search)
    return _verified(request_of(target, loss, options), on_progress, child, wished)


def _verified(request: Request, on_progress: Callable[..., Any] | None, child: Any, wished: _Wished) -> Report:
    if request.against is not None:
        return _against(request, request.against, on_progress, child, wished)
    begin, is_called_wrongly = perf_counter(), False
    if replaced := replaced_functions():
        return _error(request, codes.BROKEN_CHECKER, _distrust(request, replaced))
    try:
        # Whatever the caller or the target has set: underflow in a case of the corpus is ordinary.
        with np.errstate(**ORDINARY), held_runner(request, child, wished.search) as (held, run):
            runs = [run_target(held, setup, run, on_progress) for setup in setups_of(held)]
            runs = _mixed(held, run, runs) if held.added else runs
            report = _report(held, run, runs, wished)
            if wished.costs and report.results:
                report = replace(report, costs=((request.name, costs_of(held, run)),))
        is_called_wrongly = report.exit_code == codes.TARGET_FAILED and called_wrongly(report.results)
    except LackingInputError as error:
        # What the target takes is handed over, and the report says that it was; unless no case has it all.
        report = _verified(_with_inputs(request, error.names), on_progress, child, wished)
        if report.exit_code == codes.TOO_LITTLE:
            report = _error(request, codes.TARGET_FAILED, str(error))
    except SignatureError as error:
        report, is_called_wrongly = _error(request, codes.TARGET_FAILED, str(error)), True
    except TargetError as error:
        report = _error(request, codes.TARGET_FAILED, str(error))
    except NoCallsLeft:
        assert wished.search is not None
        report = _error(request, codes.TARGET_FAILED, wished.search.sentence)
    too_little = is_called_wrongly or report.exit_code == codes.TOO_LITTLE
    if too_little and (unset := _named_and_not_given(request)):
        return _verified(_with_inputs(request, unset), on_progress, child, wished)
    if is_called_wrongly and wished.measure and not is_command(request.thing):
        report = _with_call(request, report, child, wished)
    return replace(report, seconds=perf_counter() - begin)


def _against(
    request: Request, program: OldProgram, on_progress: Callable[..., Any] | None, child: Any, wished: _Wished
) -> Report:
    """The report of a target against an older program: as what this is found to be, or beside its own numbers."""
    begin = perf_counter()
    try:
        old, report = _judged_old(program, _Wished(measure=False, training=False, costs=wished.diagnose))
    except TargetError as error:
        return _error(request, codes.TARGET_FAILED, str(error))
    exact, constants = report.exit_code != codes.DIFFERS, report.environment.get("fixed", {})
    new = replace(
        request,
        settings={**old.settings, **constants},
        intended=old.intended,
        reduction=old.reduction,
        against=None,
        old=None if exact else old,
        about=facts_of(report, old.name, exact),
    )
    wished = replace(wished, costs=wished.diagnose)
    found = _verified(new, on_progress, child, wished)
    framework = report.environment.get("framework", "")
    if found.exit_code == codes.TARGET_FAILED and not new.framework and framework in NAMES[1:]:
        # A file that leaves the framework to what it calls.
        again = _verified(replace(new, framework=framework), on_progress, child, wished)
        found = again if again.exit_code != codes.TARGET_FAILED else found
    words, is_finite = apart_beyond(report, found, new.loss.name) if exact else ("", False)
    if words:
        found = replace(found, environment={**found.environment, "undefined": words})
    if words and is_finite and found.ok:
        reason = f"both agree on all judged cases; {words}"
        found = replace(found, verdict="differs", exit_code=codes.DIFFERS, reason=reason)
    shared = {d.id for d in report.limits}
    limits = tuple(d.noting(f"{old.name} has {'it too' if d.id in shared else 'no such limit'}") for d in found.limits)
    return replace(found, limits=limits, costs=(*found.costs, *report.costs), seconds=perf_counter() - begin)


def _judged_old(program: OldProgram, wished: _Wished) -> tuple[Request, Report]:
    """An older program as it can be called, and its report, under settings that make it conform if there are any.

    Raises `TargetError` where it is no reference.
    """
    *_, last = ways = program.ways
    for way in ways:
        try:
            old = program.request(way)
            report = _verified(old, None, None, wished)
        except InputError as error:
            # An argument of the new program's call.
            if way is last:
                raise
            trouble = str(error)
            continue
        if not (trouble := no_reference(report)):
            break
    else:
        msg = f"{old.name} is no reference: {trouble}"
        raise TargetError(msg)
    if report.exit_code == codes.DIFFERS and (named := settings_of(report)):
        under = program.request(way, **named)
        again = _verified(under, None, None, wished)
        if again.exit_code != codes.DIFFERS:
            return under, again
    return old, report


def _with_inputs(request: Request, names: Iterable[str]) -> Request:
    """The request with optional inputs that are generated for each case."""
    return replace(request, settings={**request.settings, **dict.fromkeys(names, ...)})


def _named_and_not_given(request: Request) -> list[str]:
    """Optional inputs that the call expression names, and no case has."""
    names, given = re.findall(r"\w+", request.call or ""), expected_names(request.loss, request.settings)
    return [p.name for p in request.loss.parameters if p.name in names and p.name not in given]


def _with_call(request: Request, report: Report, child: Any, wished: _Wished) -> Report:
    """The report of a target that cannot be called as it is, with how it can be, where that is found."""
    search, words = Search(request.calls), ""
    if request.calls and not request.call:
        _announce(report, wished)
        tried = lambda: iter([adapted(request, search, child)])  # noqa: E731
        words = search.last_of(tried, "", wished.on_verdict is not None)
    # What to begin from is shown where nothing better is known.
    reason = report.reason.partition(SUCH_AS)[0].partition(WHICH)[0] if words else report.reason
    words = words or layers(request.loss, report.environment)
    return replace(report, reason=f"{reason}{words}", search=search.record(bool(words)) or report.search)


def _announce(report: Report, wished: _Wished) -> None:
    """Hand out what is known before a search begins."""
    if wished.on_verdict is not None:
        wished.on_verdict(report)


def verify_recorded(
    recorded: RecordedTarget, on_progress: Callable[..., Any] | None = None, training: bool = True
) -> Report:
    """The report of `verify` for answers that were recorded elsewhere: the same judge and the same explanations.

    Whatever takes calls beyond the recorded cases is left out: moved inputs, other ways of calling, calls that would
    refute an explanation, a formula that is measured, and a script of the smallest failure. `on_progress` and
    `training` are those of `verify_with`.
    """
    wished = _Wished(measure=False, training=training)
    return _verified(recorded_request(recorded), on_progress, None, wished)


def _mixed(request: Request, run: Any, runs: Sequence[TargetRun]) -> list[TargetRun]:
    """The runs with the results of a second target that is added to the first."""
    from nceref.diagnosis.ranks.mix import check_mix

    assert request.added is not None
    text, weight = request.added
    out = list(runs)
    with runner_of(replace(request, thing=text, name=text, call="", init={}, framework="", param={})) as second:
        for place, each in enumerate(runs):
            if each.setup.several and each.setup.contract is not None:
                probes = [o.probe for o in each.observations]
                both = (request.name, run), (text, second)
                mix = check_mix(each.label, each.setup.contract, probes, both, weight)
                out[place] = replace(each, results=(*each.results, *mix))
    return out


def _error(request: Request, code: int, reason: str) -> Report:
    about = environment(request, None)
    return Report(request.name, request.loss.name, "error", code, reason, environment=about, settings=request.stated)


def _distrust(request: Request, replaced: Sequence[str]) -> str:
    """The reason why nothing is judged in this process."""
    names, are = ", ".join(replaced[:3]) + ", ..." * (len(replaced) > 3), "is" if len(replaced) == 1 else "are"
    where = "where NumPy is as it was" if issubclass(type(request.thing), str) else "of its own, by its text FILE:NAME"
    return (
        f"the checker computes with NumPy, and {names} {are} not NumPy's own any more: the target, or something else"
        f" that was imported, has replaced it; verify in a process {where}"
    )


def _report(request: Request, run: Any, runs: Sequence[TargetRun], wished: _Wished) -> Report:
    results = mark_expected_failures([r for each in runs for r in each.results], request.expected_failures)
    results = mark_limits(request, results, runs)
    verdict, code, reason = decide_verdict(request, results, runs)
    report = Report(
        request.name,
        request.loss.name,
        verdict,
        code,
        reason,
        results=tuple(results),
        environment=environment(request, run.target, run.forms),
        settings=request.stated,
        terms=_terms(request, runs) if request.explain else {},
        scope=_scope(request, run.target, results, runs),
        self_test=tuple(trial.record(each.label) for each in runs for trial in each.trials),
        ranks=tuple(rank for each in runs for rank in _ranks(each)),
    )
    search = Search(request.calls)
    if code == codes.TARGET_FAILED:
        return _explained(report, search, lambda: iter([without_answer(runs)]), keep=False)
    differs = code == codes.DIFFERS
    # What fails as expected is explained too, where the explanation is a part of what is expected.
    expected = request.expected_failures
    compared = code == codes.CONFORMS and any(expected[name].diagnosis for name in in_use(results, expected))
    limited = bool(limited_cases(results))
    if not (differs or compared or limited) or not wished.diagnose:
        return report
    if not request.calls:
        return replace(report, search=NONE)
    _announce(report, wished)
    measure, training = (wish and differs and request.old is None for wish in (wished.measure, wished.training))
    steps = partial(explain, request, run, runs, search, measure, training)
    explained = _explained(report, search, steps, keep=wished.on_verdict is not None)
    if limited and not compared:
        return replace(explained, diagnosis=(), limits=limits_of(request, explained.diagnosis, runs))
    changed = changed_failures(results, expected, [d.id for d in explained.diagnosis])
    if not changed:
        return explained if differs else report
    results = [*results, *changed]
    verdict, code, reason = decide_verdict(request, results, runs)
    return replace(explained, verdict=verdict, exit_code=code, reason=reason, results=tuple(results))


def _explained(
    report: Report, search: Search, steps: Callable[[], Iterator[ExplainedDifference]], keep: bool
) -> Report:
    """The report with what explains it, as far as that is found."""
    explained = search.last_of(steps, ExplainedDifference(), keep)
    return replace(
        report,
        diagnosis=explained.diagnoses,
        training=explained.training,
        repro=explained.script,
        search=search.record(explained=bool(explained.diagnoses)),
    )


def _ranks(run: TargetRun) -> Iterator[Mapping[str, Any]]:
    """Records of the ranks of a run, as plain data; none of one rank alone, and none of steps."""
    contract = run.setup.contract
    if contract is not None and run.setup.several and not contract.in_turn:
        from nceref.diagnosis.ranks.by_rank import rank_records

        yield from (each.record() for each in rank_records(run.label, run.observations, contract))


def _scope(request: Request, target: Any, results: Sequence[Result], runs: Sequence[TargetRun]) -> Scope:
    beyond = {case.rpartition("/")[2] for case in limited_cases(results)}
    observations = [o for each in runs for o in each.observations if o.probe.id not in beyond]
    scope = scope_of(observations, results, request.dtypes, graded(results)[1])
    counts = tuple(contract.world_size for contract in request.contracts)
    one_value = {name: target.fixed[name] for name in target.one_value}
    scope = replace(scope, steps=counts) if request.in_steps else replace(scope, ranks=counts)
    return replace(scope, recorded=request.recorded is not None, one_value=one_value)


def _terms(request: Request, runs: Sequence[TargetRun]) -> dict[str, Mapping[str, float]]:
    """Stages of the bound of each value; of several rows, those of the row with the widest bound."""
    # Ids of probes are the same in every dtype, so a second run would overwrite the first.
    probes = [o.probe for each in runs[:1] for o in each.observations]
    terms = {p.id: _widest(request, p, p.bounds) for p in probes if p.bounds is not None}
    return {id: {stage: at_most(size, 2) for stage, size in each.items()} for id, each in terms.items()}


def _widest(request: Request, probe: Probe, bounds: Bounds) -> dict[str, float]:
    """Stages of the bound of a value, of several rows at the widest; 16-bit formats have a probabilistic bound."""
    place = int(np.argmax(bounds.value))
    likely = {}
    if probe.dtype in ("bfloat16", "float16"):
        from nceref.tolerance.random_walk import likely_bounds

        likely[RANDOM_WALK] = likely_bounds(probe.bound, probe.dtype, request.reduction, request.algorithm).value
    return {stage: float(np.ravel(size)[place]) for stage, size in {**bounds.terms, **likely}.items()}


def observe(target: Any, loss: str | Loss | None = None, **options: Any) -> tuple[Observation, ...]:
    """The outcomes of a target on the cases of `verify` in the first dtype, beside the plain reference, not judged."""
    request = replace(request_of(target, loss, options), intended={})
    with np.errstate(**ORDINARY), held_runner(request) as (request, run):
        return observed(request, setups_of(request)[0], run)


@dataclass(frozen=True)
class PlannedRun:
    """The cases and the ways of calling that `verify` would judge.

    Attributes
    ----------
    probes : tuple of Probe
        The cases of the first dtype.
    modes : tuple of str
        Ways of calling.
    """

    probes: tuple[Probe, ...]
    modes: tuple[str, ...] = ()


def planned(target: Any, loss: str | Loss | None = None, child: Any = None, **options: Any) -> PlannedRun:
    """The cases and the ways of calling that `verify` would judge; the target is loaded, but not called.

    The parameters are those of `verify_with`; without a target (None) the cases are all those of the loss.
    """
    request = request_of(target, loss, options)
    if target is None:
        return PlannedRun(probes_of(request, setups_of(request)[-1], {}))
    with np.errstate(**ORDINARY), runner_of(request, child) as run:
        probes = probes_of(request, setups_of(request)[-1], run.target.fixed)
        return PlannedRun(probes, tuple(modes_of(run.target, request.modes)))


def corpus_of(target: Any, loss: str | Loss | None = None, child: Any = None, **options: Any) -> tuple[Probe, ...]:
    """The cases of `planned`, which has the same parameters."""
    return planned(target, loss, child, **options).probes
