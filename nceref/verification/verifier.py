"""The verifier: runs a target on the corpus, judges it, checks invariances and itself, and explains what differs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.errors import TargetError
from nceref.spec import Scalar
from nceref.tolerance import Bounds
from nceref.verification import report as codes
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.corpus.corpus import corpus
from nceref.verification.diagnosis.intended import intended
from nceref.verification.invariances import check_invariances
from nceref.verification.judge import expected, judge
from nceref.verification.records import Diagnosis, Observation, Outcome, Probe, Result
from nceref.verification.report import Report
from nceref.verification.request import Request, environment, request, selected
from nceref.verification.self_test import SelfTestTrial, run_self_test
from nceref.verification.verdict import conclusion

_OPTIONS = frozenset({
    "algorithm", "call", "case", "device", "dtype", "expected_failures", "explain", "framework", "init", "repro",
    "require_grad", "seed", "suite", "timeout",
})  # fmt: skip
"""Of `verify`; every other keyword is a convention."""


def verify(target: Any, loss: str | None = None, **options: Any) -> Report:
    """Judge somebody else's loss against the reference, and name the convention or bug that explains a difference.

    Parameters
    ----------
    target : str or callable
        ``file.py:name``, ``package.module:name``, the name of a known target, or a function, class or module object.
        Text is run in a child process, so that nothing that it does can harm the caller. An object is run in this
        process: SystemExit is caught, but a call that hangs cannot be stopped.
    loss : str, optional
        Name of the reference; known targets bring their own.
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
    algorithm : {"textbook", "log1p"}
        Whose rounding errors are admitted: any backward-stable evaluation, or the one without cancellation.
    timeout : float, optional
        Seconds for one case, for a target given as text; default 30.
    case : str or sequence of str, optional
        Ids of the only cases to judge.
    require_grad : bool
        Whether a target without gradients fails.
    expected_failures : mapping, optional
        Result id to the reason why it fails; strict: an unexpected pass fails.
    explain : bool
        Whether the report tells what the bound of each case is made of.
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
    """
    return verify_with(target, loss, **options)


def verify_with(
    target: Any,
    loss: str | None = None,
    on_progress: Callable[..., Any] | None = None,
    child: Any = None,
    **options: Any,
) -> Report:
    """Like `verify`, for the command line and for `identify`.

    `on_progress` is called with each case, and with their number as ``total=``; `child` is a
    process that has run such a target before.
    """
    asked = _request(target, loss, options)
    try:
        with _runner(asked, child) as run:
            runs = [_run(asked, dtype, run, on_progress) for dtype in asked.dtypes]
            return _report(asked, run, runs)
    except TargetError as error:
        return Report(asked.name, asked.loss.name, "error", codes.TARGET_FAILED, str(error),
                      environment=environment(asked, None), settings=asked.stated)  # fmt: skip


def _request(target: Any, loss: str | None, options: Mapping[str, Any]) -> Request:
    given = {name: value for name, value in options.items() if name in _OPTIONS and value is not None}
    return request(target, loss, {k: v for k, v in options.items() if k not in _OPTIONS}, given)


def _runner(asked: Request, child: Any = None) -> Any:
    """The target, ready to run; in a child that is there already, it takes the place of the one before."""
    from nceref.verification.targets import runner

    options: dict[str, Any] = {
        "call": asked.call, "init": asked.init, "framework": asked.framework, "settings": asked.settings,
        "floats": asked.floats, "device": asked.device,
    }  # fmt: skip
    if child is not None:
        return runner.in_same_child(child, asked.thing, asked.loss, **options)
    if isinstance(asked.thing, str):
        return runner.in_child(asked.thing, asked.loss, timeout=asked.timeout or 30.0, **options)
    return runner.in_process(asked.thing, asked.loss, **options)


@dataclass(frozen=True, eq=False)
class TargetRun:
    """All of one dtype: what was observed, what was judged, and what became of the wrong answers of the self-test."""

    dtype: str
    observations: tuple[Observation, ...]
    results: tuple[Result, ...]
    trials: tuple[SelfTestTrial, ...]
    fixed: Mapping[str, float]
    takes: frozenset[str]

    @property
    def judged(self) -> int:
        """Cases with a comparison."""
        return len({r.case for r in self.results if r.quantity == "value.finite"})

    @property
    def never_given(self) -> tuple[str, ...]:
        """Optional scalars that the target takes, and that no case has."""
        known = {p.name for o in self.observations for p in o.probe.loss.parameters if isinstance(p, Scalar)}
        given = {name for o in self.observations for name, x in o.probe.inputs.items() if x is not None}
        return tuple(sorted((known & self.takes) - given))


def probes_of(asked: Request, dtype: str, fixed: Mapping[str, float]) -> tuple[Probe, ...]:
    """The probes of a run: of the suite, those that were chosen."""
    probes = corpus(
        asked.loss, asked.settings, suite=asked.suite, dtype=dtype, seed=asked.seed, reduction=asked.reduction,
        algorithm=asked.algorithm, fixed=fixed,
    )  # fmt: skip
    chosen = selected((p.id for p in probes), asked.cases)
    return tuple(intended(p, asked.intended) for p in probes if p.id in chosen)


def _run(asked: Request, dtype: str, run: Any, on_progress: Callable[..., Any] | None) -> TargetRun:
    probes = probes_of(asked, dtype, run.target.fixed)
    observations = tuple(_observed(probes, run, on_progress, len(asked.dtypes) * len(probes)))
    results = [result for o in observations for result in judge(o)]
    results += check_invariances(observations, run)
    trials = run_self_test(observations, run.reply)
    takes = frozenset(run.target.names.values())
    return TargetRun(dtype, observations, tuple(_named(asked, dtype, results)), trials, run.target.fixed, takes)


def _observed(
    probes: Sequence[Probe], run: Any, on_progress: Callable[..., Any] | None, total: int
) -> Iterator[Observation]:
    twice = next((p.id for p in probes if not p.skip), "")
    for probe in probes:
        outcome = Outcome() if probe.skip else run(probe, twice=probe.id == twice)
        if on_progress is not None:
            on_progress(probe, total=total)
        yield Observation(probe, outcome)


def _named(asked: Request, dtype: str, results: list[Result]) -> list[Result]:
    """The results, with the dtype before their ids where there are several."""
    if len(asked.dtypes) == 1:
        return results
    return [replace(r, id=f"{dtype}/{r.id}", case=f"{dtype}/{r.case}") for r in results]


def _report(asked: Request, run: Any, runs: Sequence[TargetRun]) -> Report:
    results = expected([r for each in runs for r in each.results], asked.expected_failures)
    verdict, code, reason = conclusion(asked, results, runs)
    found: tuple[Diagnosis, ...] = ()
    script = ""
    if code == codes.DIFFERS:
        failing = next((each for each in runs if any(r.status == "fail" for r in each.results)), runs[0])
        found = _explained(asked, failing)
        script = _script(asked, run, failing) if asked.repro or any(d.id == "unexplained" for d in found) else ""
    return Report(
        asked.name, asked.loss.name, verdict, code, reason, found, tuple(results), environment(asked, run.target),
        script, asked.stated, _terms(runs) if asked.explain else {},
    )  # fmt: skip


def _explained(asked: Request, failing: TargetRun) -> tuple[Diagnosis, ...]:
    """What the difference is; beside intended conventions, from the reference without them."""
    from nceref.verification.diagnosis.diagnose import diagnose

    identities = [r for r in failing.results if r.quantity.startswith("identity.")]
    if not asked.intended:
        return diagnose(failing.observations, identities)
    plain = {p.id: p for p in probes_of(replace(asked, intended={}), failing.dtype, failing.fixed)}
    seen = [Observation(plain[o.probe.id], o.outcome) for o in failing.observations if not o.probe.skip]
    if all(r.status != "fail" for o in seen for r in judge(o)):
        told = " and ".join(CONVENTIONS[id].phrase for id in asked.intended.values())
        sentence = f"your loss equals the reference as it is, on {len(seen)} of {len(seen)} cases, without {told}"
        return (Diagnosis("as-the-reference", sentence, (), CONVENTIONS["as-the-reference"].fix),)
    return diagnose(seen, identities)


def _terms(runs: Sequence[TargetRun]) -> dict[str, Mapping[str, float]]:
    """What the bound of each value is made of; of several rows, those of the widest."""
    bounds = {o.probe.id: o.probe.bounds for each in runs[:1] for o in each.observations}
    return {case: _widest(bound) for case, bound in bounds.items() if bound is not None}


def _widest(bound: Bounds) -> dict[str, float]:
    place = int(np.argmax(bound.value))
    return {stage: float(np.ravel(size)[place]) for stage, size in bound.terms.items()}


def _script(asked: Request, run: Any, failing: TargetRun) -> str:
    """A stand-alone script of the smallest failing input; empty where no number is wrong."""
    from nceref.verification.repro.minimize import smallest
    from nceref.verification.repro.script import script

    wrong = {r.case.removeprefix(f"{failing.dtype}/") for r in failing.results if r.status == "fail"}
    found = smallest(
        asked.loss, {**asked.settings, **run.target.fixed}, run, dtype=failing.dtype, reduction=asked.reduction,
        algorithm=asked.algorithm,
        first=[o for o in failing.observations if o.probe.id in wrong],
    )  # fmt: skip
    return script(run.target, *found) if found else ""


def corpus_of(target: Any, loss: str | None = None, **options: Any) -> tuple[Probe, ...]:
    """The probes that `verify` would run, of the first dtype; the target is loaded, but not called."""
    asked = _request(target, loss, options)
    with _runner(asked) as run:
        return probes_of(asked, asked.dtypes[0], run.target.fixed)
