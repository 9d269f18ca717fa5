"""The verifier: runs a target on the corpus, judges it, checks invariances and itself, and explains what differs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nceref.errors import SignatureError, TargetError
from nceref.output.words import out_of
from nceref.spec import Loss, Scalar
from nceref.tolerance import Bounds
from nceref.verification import report as codes
from nceref.verification.adapters import adapted, called_wrongly
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.corpus.corpus import corpus, evaluate
from nceref.verification.corpus.files import given_inputs
from nceref.verification.diagnosis.intended import intended
from nceref.verification.invariances import check_invariances
from nceref.verification.judge import judge, mark_expected_failures
from nceref.verification.measured_parameters import measure_forms, unmeasured
from nceref.verification.modes import check_modes, mode_diagnoses, refuse_other_frameworks
from nceref.verification.records import RANDOM_WALK, Diagnosis, Observation, Probe, Result
from nceref.verification.report import Report
from nceref.verification.request import Request, environment, parse_request, selected
from nceref.verification.scope import Scope, scope_of
from nceref.verification.self_test import SelfTestTrial, run_self_test
from nceref.verification.targets.arguments import SUCH_AS
from nceref.verification.targets.global_state import ORDINARY, replaced_functions
from nceref.verification.verdict import decide_verdict, graded

_OPTIONS = frozenset({
    "algorithm", "call", "case", "device", "dtype", "expected_failures", "explain", "framework", "init", "repro",
    "inputs", "isolate", "modes", "multiple_of", "param", "require_grad", "seed", "shape", "suite", "timeout",
})  # fmt: skip
"""Of `verify`; every other keyword is a convention."""


def verify(target: Any, loss: str | Loss | None = None, **options: Any) -> Report:
    """Judge somebody else's loss against the reference, and name the convention or bug that explains a difference.

    Parameters
    ----------
    target : str or callable
        ``file.py:name``, ``package.module:name``, the name of a known target, or a function, class or module object.
        Text is run in a process of its own, which may hang or die; it is no sandbox, see `isolate`. An object is run
        in this process: what it raises is reported, and what it changes (``np.seterr``, functions of NumPy, the
        working directory and the like) is put back after each call. One that hangs, crashes, ends the process or
        starts another cannot be stopped. docs/verify.md has a table.
    loss : str or Loss, optional
        Name of the reference; known targets bring their own. ``file.py:NAME`` or a declaration is a loss of one's own,
        and its file is executed in this process.
    call : str, optional
        How the target is called, as in ``"f(z1, z2, tau=temperature)"``.
    init : mapping, optional
        Arguments of a class's constructor.
    framework : {"numpy", "torch", "jax"}, optional
        Default: recognized.
    suite : {"standard", "quick", "full"}
        How many cases.
    dtype : str or sequence of str
        ``float64`` (default), ``float32``, ``bfloat16``, ``float16``; several are reported side by side.
    device : str
        As the framework names it.
    seed : int
        Of the corpus.
    multiple_of : int, optional
        All sizes are rounded up to multiples of it, for targets that take no others.
    shape : (int, int) or str, optional
        N and D of all cases, such as ``(64, 512)``.
    inputs : str, optional
        A file ``.npz`` or ``.safetensors`` with a batch of one's own, judged beside the designed cases.
    algorithm : {"textbook", "log1p"}
        Whose rounding errors are admitted: any backward-stable evaluation, or the one without cancellation.
    timeout : float, optional
        Seconds for one case, for a target given as text; default 30.
    isolate : bool
        Whether a target given as text runs without network, and without files and processes that it can change; on
        Linux, by bubblewrap or namespaces.
    case : str or sequence of str, optional
        Ids of the only cases to judge.
    modes : str or sequence of str, optional
        Ways of calling that are judged beside those that apply by themselves: ``compile``, ``autocast``, ``tf32``.
    param : mapping, optional
        Inputs to parameters of a torch module, such as ``{"logit_scale": "exp(log_scale)"}``; others are found by name.
    require_grad : bool
        Whether a target without gradients fails.
    expected_failures : mapping, optional
        Result id to the reason why it fails; strict: an unexpected pass fails.
    explain : bool
        Whether the report shows what the bound of each case is made of.
    repro : bool
        Whether to look for the smallest failing input and write a script of it; always done where nothing explains a
        difference.
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
        For an option or a setting that does not exist.
    UnavailableError
        With `isolate`, where the system has no means for it.
    """
    return verify_with(target, loss, **options)


def verify_with(
    target: Any,
    loss: str | Loss | None = None,
    on_progress: Callable[..., Any] | None = None,
    child: Any = None,
    measure: bool = True,
    **options: Any,
) -> Report:
    """Like `verify`, for the command line and for `identify`.

    Parameters
    ----------
    target, loss, **options
        As for `verify`.
    on_progress : callable, optional
        Called with each case, and with their number as ``total=``.
    child : ChildRunner, optional
        A process that has run such a target before: what the target imports is imported once.
    measure : bool
        Whether the target's formula is measured where nothing explains a difference, and another call is looked for
        where it cannot be called.

    Returns
    -------
    Report
    """
    request = _request(target, loss, options)
    if replaced := replaced_functions():
        return _error(request, codes.BROKEN_CHECKER, _distrust(request, replaced))
    try:
        # Whatever the caller or the target has set: underflow in a case of the corpus is ordinary.
        with np.errstate(**ORDINARY), _held_runner(request, child) as (request, run):
            runs = [_run(request, dtype, run, on_progress) for dtype in request.dtypes]
            report = _report(request, run, runs, measure)
    except SignatureError as error:
        words = adapted(request, _runner, probes_of) if measure else ""
        reason = f"{str(error).partition(SUCH_AS)[0]}{words}" if words else str(error)
        return _error(request, codes.TARGET_FAILED, reason)
    except TargetError as error:
        return _error(request, codes.TARGET_FAILED, str(error))
    if measure and report.exit_code == codes.TARGET_FAILED and called_wrongly(report.results):
        return replace(report, reason=f"{report.reason}{adapted(request, _runner, probes_of)}")
    return report


def _error(request: Request, code: int, reason: str) -> Report:
    about = environment(request, None)
    return Report(request.name, request.loss.name, "error", code, reason, environment=about, settings=request.stated)


def _distrust(request: Request, replaced: Sequence[str]) -> str:
    """Why nothing is judged in this process."""
    names, are = ", ".join(replaced[:3]) + ", ..." * (len(replaced) > 3), "is" if len(replaced) == 1 else "are"
    where = "where NumPy is as it was" if issubclass(type(request.thing), str) else "of its own, by its text FILE:NAME"
    return (
        f"the checker computes with NumPy, and {names} {are} not NumPy's own any more: the target, or something else"
        f" that was imported, has replaced it; verify in a process {where}"
    )


def _request(target: Any, loss: str | Loss | None, options: Mapping[str, Any]) -> Request:
    given = {name: value for name, value in options.items() if name in _OPTIONS and value is not None}
    return parse_request(target, loss, {k: v for k, v in options.items() if k not in _OPTIONS}, given)


def _runner(request: Request, child: Any = None) -> Any:
    """The target, ready to run; in a child that is there already, it takes the place of the one before."""
    from nceref.verification.targets import runner

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
    if child is not None:
        return runner.in_same_child(child, request.thing, request.loss, **options)
    if issubclass(type(request.thing), str):
        limits: dict[str, Any] = {"timeout": request.timeout or 30.0, "isolate": request.isolate}
        return runner.in_child(request.thing, request.loss, **limits, **options)
    return runner.in_process(request.thing, request.loss, **options)


@contextmanager
def _held_runner(request: Request, child: Any = None) -> Iterator[tuple[Request, Any]]:
    """The target, ready to run, with the functions of the parameters that it holds; the request says which are left."""
    with ExitStack() as stack:
        run = stack.enter_context(_runner(request, child))
        forms, unknown = measure_forms(request, run)
        if unknown:
            request = replace(request, unsought=unknown)
            try:
                # It may still take the scalar elsewhere, or have it fixed.
                run = stack.enter_context(_runner(request, run if issubclass(type(request.thing), str) else None))
            except TargetError as error:
                raise TargetError(unmeasured(request, unknown)) from error
            forms, _ = measure_forms(request, run)
        run.forms.clear()
        run.forms.update(forms)
        yield request, run


@dataclass(frozen=True, eq=False)
class TargetRun:
    """All of one dtype: what was observed, what was judged, and what became of the wrong answers of the self-test."""

    dtype: str
    observations: tuple[Observation, ...]
    results: tuple[Result, ...]
    trials: tuple[SelfTestTrial, ...]
    fixed: Mapping[str, float]
    takes: frozenset[str]
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """Cases with a comparison."""
        # Every compared case has this result, also where its value is not finite and nothing else is measured.
        return len({r.case for r in self.results if r.quantity == "value.finite"})

    @property
    def never_given(self) -> tuple[str, ...]:
        """Optional scalars that the target takes, and that no case has."""
        known = {p.name for o in self.observations for p in o.probe.loss.parameters if isinstance(p, Scalar)}
        given = {name for o in self.observations for name, x in o.probe.inputs.items() if x is not None}
        return tuple(sorted((known & self.takes) - given))


def probes_of(
    request: Request, dtype: str, fixed: Mapping[str, float], forms: Mapping[str, str] | None = None
) -> tuple[Probe, ...]:
    """The probes of a run: of the suite, those that were chosen.

    Parameters
    ----------
    request : Request
    dtype : str
        One of the request's formats.
    fixed : mapping
        Scalars that the target has fixed.
    forms : mapping, optional
        Parametrizations of what the target holds itself.

    Returns
    -------
    tuple of Probe

    Raises
    ------
    InputError
        For a case that does not exist.
    """
    probes = corpus(
        request.loss,
        request.settings,
        suite=request.suite,
        dtype=dtype,
        seed=request.seed,
        reduction=request.reduction,
        algorithm=request.algorithm,
        fixed=fixed,
        forms=forms,
        resizing=request.resizing,
    )
    if request.inputs:
        own = given_inputs(request.loss, request.inputs, request.settings, dtype, fixed)
        how = (dtype, request.reduction, request.algorithm)
        probes += tuple(evaluate(request.loss, inputs, *how, id, forms=forms) for id, inputs in own)
    chosen = selected((p.id for p in probes), request.cases)
    return tuple(intended(p, request.intended) for p in probes if p.id in chosen)


def _run(request: Request, dtype: str, run: Any, on_progress: Callable[..., Any] | None) -> TargetRun:
    refuse_other_frameworks(request.modes, run.target.framework)
    probes = probes_of(request, dtype, run.target.fixed, run.forms)
    observations = tuple(_observed(probes, run, on_progress, len(request.dtypes) * len(probes)))
    results = [result for o in observations for result in judge(o)]
    results += check_invariances(observations, run)
    results += check_modes(observations, run, run.target, request.modes, plain=not request.intended)
    # Wrong answers pass through the target's own framework: a fault in the reading of its arrays shows too.
    trials = run_self_test(observations, run.reply)
    takes = frozenset(run.target.names.values())
    named = tuple(_named(request, dtype, results))
    return TargetRun(dtype, observations, named, trials, run.target.fixed, takes, dict(run.forms))


def _observed(
    probes: Sequence[Probe], run: Any, on_progress: Callable[..., Any] | None, total: int
) -> Iterator[Observation]:
    # Determinism is judged on one case only, since a second call doubles the time.
    twice = next((p.id for p in probes if not p.skip), "")
    for probe in probes:
        # What the reference refuses is run too, and said.
        outcome = run(probe, twice=probe.id == twice)
        if on_progress is not None:
            on_progress(probe, total=total)
        yield Observation(probe, outcome)


def _named(request: Request, dtype: str, results: list[Result]) -> list[Result]:
    """The results, with the dtype before their ids where there are several."""
    if len(request.dtypes) == 1:
        return results
    return [replace(r, id=f"{dtype}/{r.id}", case=f"{dtype}/{r.case}") for r in results]


def _report(request: Request, run: Any, runs: Sequence[TargetRun], measure: bool) -> Report:
    results = mark_expected_failures([r for each in runs for r in each.results], request.expected_failures)
    verdict, code, reason = decide_verdict(request, results, runs)
    diagnoses: tuple[Diagnosis, ...] = ()
    training: Mapping[str, Any] = {}
    script = ""
    if code == codes.DIFFERS:
        # One dtype is explained, the first that fails: bounds of different formats do not mix.
        failing = next((each for each in runs if any(r.status == "fail" for r in each.results)), runs[0])
        calls = _calls(request, run, failing)
        diagnoses = _explained(request, calls, failing)
        diagnoses = _limited(request, _measured(request, run, failing, diagnoses) if measure else diagnoses)
        training = _training(request, calls, failing, diagnoses) if measure else {}
        if len(runs) > 1:
            diagnoses = tuple(replace(d, sentence=f"in {failing.dtype} {d.sentence}") for d in diagnoses)
        script = (
            _script(request, run, failing) if request.repro or any(d.id == "unexplained" for d in diagnoses) else ""
        )
    return Report(
        request.name,
        request.loss.name,
        verdict,
        code,
        reason,
        diagnoses,
        tuple(results),
        environment(request, run.target, run.forms),
        script,
        request.stated,
        _terms(request, runs) if request.explain else {},
        _scope(request, results, runs),
        training=training,
    )


def _scope(request: Request, results: Sequence[Result], runs: Sequence[TargetRun]) -> Scope:
    observations = [o for each in runs for o in each.observations]
    return scope_of(observations, results, request.dtypes, graded(results)[1])


def _limited(request: Request, diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """With how little was tried for a loss without a dense form, where nothing explains the difference."""
    from nceref.verification.dense.forms import is_dense

    if is_dense(request.loss):
        return tuple(diagnoses)
    words = f"; {request.loss.name} has no dense form, so conventions about pairs and denominators were not tried"
    return tuple(replace(d, sentence=d.sentence + words) if d.id == "unexplained" else d for d in diagnoses)


def _calls(request: Request, run: Any, failing: TargetRun) -> Any:
    """The target, for calls beyond the corpus, of which the reference is that without intended conventions."""
    from nceref.verification.diagnosis.fresh import fresh_calls

    return fresh_calls(run, failing.observations, request.algorithm)


def _training(request: Request, calls: Any, failing: TargetRun, diagnoses: Sequence[Diagnosis]) -> Mapping[str, Any]:
    """What the difference does to training, as plain data; beside intended conventions, on the cases alone."""
    # What is random has no number that a second measurement would confirm.
    if any(d.id == "not-repeatable" for d in diagnoses):
        return {}
    from nceref.verification.diagnosis.fresh import NO_CALLS
    from nceref.verification.diagnosis.severity import severity

    measured = severity(failing.observations, NO_CALLS if request.intended else calls)
    return measured.record() if measured is not None else {}


def _explained(request: Request, calls: Any, failing: TargetRun) -> tuple[Diagnosis, ...]:
    """What the difference is; beside intended conventions, from the reference without them."""
    from nceref.verification.diagnosis.diagnose import diagnose

    if modes := mode_diagnoses(failing.results):
        return modes
    identities = [r for r in failing.results if r.quantity.startswith("identity.")]
    if not request.intended:
        return diagnose(failing.observations, identities, calls)
    plain = {p.id: p for p in probes_of(replace(request, intended={}), failing.dtype, failing.fixed, failing.forms)}
    unaltered = [Observation(plain[o.probe.id], o.outcome) for o in failing.observations if not o.probe.skip]
    # The target may lack the intended convention, and be the plain reference.
    if all(r.status != "fail" for o in unaltered for r in judge(o)):
        phrases = " and ".join(CONVENTIONS[text.partition("=")[0]].phrase for text in request.intended.values())
        count = len(unaltered)
        sentence = f"your loss equals the reference as it is, on {out_of(count, count, 'case')}, without {phrases}"
        return (Diagnosis("as-the-reference", sentence, (), CONVENTIONS["as-the-reference"].fix),)
    return diagnose(unaltered, identities, calls)


def _measured(
    request: Request, run: Any, failing: TargetRun, diagnoses: tuple[Diagnosis, ...]
) -> tuple[Diagnosis, ...]:
    """What the target computes, measured, where nothing explains its values; else the diagnoses as they are."""
    unexplained = [d for d in diagnoses if d.id == "unexplained"]
    if not unexplained or request.intended:
        return diagnoses
    from nceref.verification.probe.measured import measured

    settings = {**request.settings, **failing.fixed}
    formula = measured(request.loss, run, settings, failing.dtype, request.reduction)
    return diagnoses if formula is None else (formula, *(d for d in diagnoses if d not in unexplained))


def _terms(request: Request, runs: Sequence[TargetRun]) -> dict[str, Mapping[str, float]]:
    """What the bound of each value is made of; of several rows, those of the widest."""
    # Ids of probes are the same in every dtype, so a second run would overwrite the first.
    probes = [o.probe for each in runs[:1] for o in each.observations]
    return {p.id: {**_widest(p.bounds), **_random_walk(request, p)} for p in probes if p.bounds is not None}


def _random_walk(request: Request, probe: Probe) -> dict[str, float]:
    """The probabilistic bound of a value, of several rows of the widest in the worst case; 16-bit formats have one."""
    if probe.bounds is None or probe.dtype not in ("bfloat16", "float16"):
        return {}
    from nceref.tolerance.random_walk import likely_bounds

    likely = likely_bounds(probe.bound, probe.dtype, request.reduction, request.algorithm)
    return {RANDOM_WALK: float(np.ravel(likely.value)[int(np.argmax(probe.bounds.value))])}


def _widest(bound: Bounds) -> dict[str, float]:
    place = int(np.argmax(bound.value))
    return {stage: float(np.ravel(size)[place]) for stage, size in bound.terms.items()}


def _script(request: Request, run: Any, failing: TargetRun) -> str:
    """A stand-alone script of the smallest failing input; empty where no number is wrong."""
    from nceref.verification.repro.minimize import smallest
    from nceref.verification.repro.script import script

    # With several dtypes the ids of results begin with the dtype, those of probes do not.
    wrong = {r.case.removeprefix(f"{failing.dtype}/") for r in failing.results if r.status == "fail"}
    failure = smallest(
        request.loss,
        {**request.settings, **run.target.fixed},
        run,
        dtype=failing.dtype,
        reduction=request.reduction,
        algorithm=request.algorithm,
        first=[o for o in failing.observations if o.probe.id in wrong],
    )
    return script(run.target, *failure) if failure else ""


def corpus_of(target: Any, loss: str | Loss | None = None, **options: Any) -> tuple[Probe, ...]:
    """The probes that `verify` would run, of the first dtype; the target is loaded, but not called.

    Parameters
    ----------
    target, loss, **options
        As for `verify`.

    Returns
    -------
    tuple of Probe
    """
    request = _request(target, loss, options)
    with np.errstate(**ORDINARY), _runner(request) as run:
        return probes_of(request, request.dtypes[0], run.target.fixed)
