"""Which loss a callable of a package is, and with which settings; what is stated of it was measured with just these."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import Any

import numpy as np

from nceref.cases.judge import judge
from nceref.cases.records import Diagnosis, Observation
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.errors import InputError, TargetError
from nceref.losses import all_losses
from nceref.output.text import printable
from nceref.output.words import out_of
from nceref.registry import must_be_there
from nceref.spec import Array, Choice, Labels, Loss
from nceref.targets.arguments import UNKNOWN_TO_REFERENCE, constructed_with
from nceref.targets.global_state import ORDINARY
from nceref.verification.identify import Candidate, is_named_after, named_like, process_of
from nceref.verification.manifest.package import PublicCallable
from nceref.verification.report import DIFFERS, Report
from nceref.verification.request import must_be_a_program, request_of, ways_of_calling
from nceref.verification.target_run import held_runner, probes_of, setups_of
from nceref.verification.verifier import verify_with

SUITE, DTYPES = "quick", ("float64", "float32")
"""Of the tables that are written."""
_BY_ROWS = "--set reduction=none"
"""In the reason of a target that returns rows."""
_ENDED = re.compile("does not return|ends the process")
"""In the reason of a target that cost its process."""
_CALLED = "it "
"""Before what it did when it was called."""
LONELY = "no_positive"
"""The setting that says what an anchor without a positive counts as."""
CASES = 4
"""That are tried before all are: a loss that is another one differs on the first that has several rows."""


@dataclass(frozen=True, eq=False)
class LossTrial:
    """A loss and settings that a callable was tried with on a few cases, up to the first that is wrong.

    `ran` is whether there was a number, `right` whether each of them was that of the reference, and `reason` why there
    was none.
    """

    loss: str
    settings: Mapping[str, Any]
    ran: bool = True
    right: bool = False
    reason: str = ""


@dataclass(frozen=True, eq=False)
class RecognizedTarget:
    """A callable of a package, and what is known of it.

    Attributes
    ----------
    callable : PublicCallable
    loss : str
        The loss that it is, or from which it differs in a way that is explained; empty for one that was not recognized.
    options : mapping
        Of `nceref.verify`: the settings of the loss that it keeps, ``init`` and ``shape``.
    report : Report or None
        With these options.
    also : tuple of str
        Other losses that it equals on all cases.
    second : str
        The next loss that explains it, in a sentence, where it is exactly none.
    intended : mapping
        Conventions with which it is right, measured, where it differs.
    reason : str
        Why it was not recognized.
    """

    callable: PublicCallable
    loss: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    report: Report | None = None
    also: tuple[str, ...] = ()
    second: str = ""
    intended: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def id(self) -> str:
        """For the bar of progress."""
        return self.callable.text

    @property
    def meant(self) -> str:
        """The loss that it is named after, where it is another one; or empty."""
        meant = named_like(self.callable.name, list(all_losses()))
        return meant if meant not in (self.loss, *self.also) else ""


def recognize(target: PublicCallable, child: Any, **options: Any) -> RecognizedTarget:
    """Find the loss that a callable is: as declared, then with a setting of the loss, then with a known difference.

    Parameters
    ----------
    target : PublicCallable
    child : ChildRunner
        The process that has its module.
    **options
        ``timeout`` and ``isolate`` of `nceref.verify`.

    Returns
    -------
    RecognizedTarget
    """
    made = constructed_with(target.needs)
    search = _Search(target, child, {**options, **made, "suite": SUITE})
    plain = list(search.as_declared())
    # With settings one is enough: each has several.
    exact = list(search.confirmed(plain)) or list(islice(search.confirmed(search.with_settings(plain)), 1))
    if exact:
        best, report = exact[0]
        also = tuple(dict.fromkeys(t.loss for t, _ in exact[1:] if t.loss != best.loss))
        settings, report = search.with_lonely_anchors(best, report)
        return RecognizedTarget(target, best.loss, {**made, **settings}, report, also)
    ran = [t for t in plain if t.ran]
    if ran and not _ENDED.search(plain[-1].reason):
        return search.explained(ran, made)
    return RecognizedTarget(target, reason=_why_not(plain))


def with_loss_of(old: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `verify` for a target against an older program, with the loss and settings that this has or is near.

    Raises `TargetError` where it fits the inputs of no loss.
    """
    must_be_a_program(old)
    must_be_there(old)
    like = {name: x for name, x in options.items() if name in _OF_CALLING and x is not None}
    with process_of(old, options.get("timeout"), bool(options.get("isolate"))) as child:
        for way in ways_of_calling(like):
            search = _Search(PublicCallable(old), child, {**way, "suite": SUITE})
            plain = list(search.as_declared())
            exact = search.confirmed(chain(plain, search.with_settings(plain)))
            best = next((trial for trial, _ in exact), None) or search.nearest(trial for trial in plain if trial.ran)
            if best is not None:
                return {**best.settings, **options, "loss": best.loss}
    reasons = {trial.reason for trial in plain}
    if len(reasons) == 1:
        # It is about the program, and not about a loss.
        raise TargetError(reasons.pop())
    msg = f"{old} fits the inputs of no loss: {_why_not(plain)}; name the loss whose inputs it takes, with --loss"
    raise TargetError(msg)


_OF_CALLING = ("call", "init", "framework", "timeout", "isolate", "shape")


@dataclass(frozen=True, eq=False)
class _Search:
    target: PublicCallable
    child: Any
    options: Mapping[str, Any]

    def as_declared(self) -> Iterator[LossTrial]:
        """Every loss without settings; with the inputs of another variant where the callable does not take those."""
        # Those first that the target is named after.
        for name in sorted(all_losses(), key=lambda loss: not is_named_after(self.target.name, loss)):
            for settings in _variants(all_losses()[name].declaration):
                trial = self.trial(name, settings)
                yield trial
                # What hangs as one loss most likely hangs as the others, and each costs a timeout.
                if _ENDED.search(trial.reason):
                    return
                if trial.ran:
                    break

    def with_settings(self, plain: Sequence[LossTrial]) -> Iterator[LossTrial]:
        """The same losses with settings of theirs."""
        for trial in plain:
            by_rows = _BY_ROWS in trial.reason
            if trial.ran or by_rows:
                for changed in _changes(all_losses()[trial.loss].declaration, by_rows):
                    yield self.trial(trial.loss, {**trial.settings, **changed})

    def trial(self, loss: str, settings: Mapping[str, Any]) -> LossTrial:
        """Call it on a few cases as a loss with these settings, up to the first that is wrong."""
        ran = False
        try:
            for observation in self.observed(loss, settings):
                if trouble := observation.outcome.sentence:
                    return LossTrial(loss, settings, ran, reason=f"{_CALLED}{trouble}")
                ran = True
                if any(r.quantity.startswith("value") and r.status == "fail" for r in judge(observation)):
                    return LossTrial(loss, settings)
        # Also for a setting that the loss does not have, and a known target of another loss.
        except (TargetError, InputError) as error:
            return LossTrial(loss, settings, ran=False, reason=str(error))
        return LossTrial(loss, settings, ran, right=ran)

    def observed(self, loss: str, settings: Mapping[str, Any]) -> Iterator[Observation]:
        """What it answers on the first cases; raises as `verify` does where it cannot be called so."""
        request = request_of(self.target.text, loss, {**self.options, **settings})
        with np.errstate(**ORDINARY), held_runner(request, self.child) as (request, run):
            for probe in probes_of(request, setups_of(request)[0], run.target.fixed, run.forms, CASES):
                if not probe.skip:
                    yield Observation(probe, run(probe))

    def nearest(self, trials: Iterable[LossTrial]) -> LossTrial | None:
        """The loss that the values are nearest to but for a factor; None for no loss."""
        return min(trials, key=lambda trial: _spread(self.observed(trial.loss, trial.settings)), default=None)

    def is_constant(self, trial: LossTrial) -> bool:
        """Whether it gives one number where the loss has several: a factor would explain any such function."""
        observations = list(self.observed(trial.loss, trial.settings))
        answers = {float(np.sum(o.outcome.value)) for o in observations if o.outcome.value is not None}
        return len(answers) == 1 < len({float(np.sum(o.probe.value)) for o in observations})

    def confirmed(self, trials: Iterable[LossTrial]) -> Iterator[tuple[LossTrial, Report]]:
        """Those that are right on all cases in all formats, each with its report; of one loss the first."""
        seen = set()
        for trial in trials:
            if trial.right and trial.loss not in seen:
                report = self.verified(trial.loss, trial.settings, diagnose=False)
                if report.ok:
                    seen.add(trial.loss)
                    yield trial, report

    def with_lonely_anchors(self, best: LossTrial, report: Report) -> tuple[Mapping[str, Any], Report]:
        """The settings, and the policy for anchors without a positive by which the target is right on these too."""
        for policy in policies(best.loss) if LONELY not in best.settings else ():
            settings = {**best.settings, LONELY: policy}
            if (judged := self.verified(best.loss, settings, diagnose=False)).ok:
                return settings, judged
        return best.settings, report

    def verified(self, loss: str, settings: Mapping[str, Any], diagnose: bool = True, dtype: Any = DTYPES) -> Report:
        how = {"child": self.child, "measure": False, "training": False, "diagnose": diagnose}
        return verify_with(self.target.text, loss, **how, **self.options, **settings, dtype=dtype)

    def explained(self, trials: Sequence[LossTrial], made: Mapping[str, Any]) -> RecognizedTarget:
        """The loss that it is but for a known difference: the one that it is named after, or any."""
        if not (trials := [t for t in trials if not self.is_constant(t)]):
            return RecognizedTarget(self.target, reason=f"it gives the same number on {out_of(CASES, CASES, 'case')}")
        own = named_like(self.target.name, [t.loss for t in trials])
        nearest: list[ExplainedCandidate] = []
        for group in ([t for t in trials if t.loss == own], [t for t in trials if t.loss != own]):
            tried = sorted(map(self._explanation, group), key=lambda each: each.distance)
            if explained := [each for each in tried if _is_taken_for(each.report, each.loss == own)]:
                best, *others = explained
                second = f"{others[0].loss}, {others[0].explained}" if others else ""
                intended, options = self.intended(best), {**made, **best.settings}
                return RecognizedTarget(self.target, best.loss, options, best.report, (), second, intended)
            nearest += tried
        reason = f"as {nearest[0].loss}, {nearest[0].report.reason}; {nearest[0].explained}"
        return RecognizedTarget(self.target, reason=_line(reason))

    def _explanation(self, trial: LossTrial) -> "ExplainedCandidate":
        # What is right in this format may be wrong in the others.
        formats = DTYPES if trial.right else DTYPES[:1]
        return ExplainedCandidate(trial.loss, self.verified(trial.loss, trial.settings, dtype=formats), trial.settings)

    def intended(self, best: "ExplainedCandidate") -> dict[str, str]:
        """What makes the difference a convention that is held to; empty where that was not seen to be right."""
        if (explanation := explanation_of(best.report)) is None:
            return {}
        conventions = {CONVENTIONS[id].axis: id for id in explanation.id.split("+")}
        try:
            report = self.verified(best.loss, {**best.settings, **conventions}, diagnose=False)
        # It needs a number, or cannot be intended.
        except InputError:
            return {}
        return conventions if report.ok else {}


def _spread(observations: Iterable[Observation]) -> float:
    """The spread of the ratio of a value to the reference over cases, in units of it; infinite where it has none."""
    pairs = [(o.outcome.value, o.probe.value) for o in observations]
    with np.errstate(all="ignore"):
        ratios = np.array([np.sum(a) / np.sum(b) for a, b in pairs if a is not None])
        spread = float(np.std(ratios) / abs(np.mean(ratios))) if len(ratios) > 1 else np.inf
    return spread if np.isfinite(spread) else np.inf


@dataclass(frozen=True, eq=False)
class ExplainedCandidate(Candidate):
    """A loss that a callable was held to with settings, and how that is explained."""

    settings: Mapping[str, Any]

    @property
    def explained(self) -> str:
        """Which convention explains the difference, if one does."""
        explanation = explanation_of(self.report)
        return f"{explanation.id if explanation else 'nothing'} explains that"


def policies(loss: str) -> list[str]:
    """The choices of a loss by which an anchor without a positive has a value; empty where it has no such choice."""
    by_name = {p.name: p for p in all_losses()[loss].declaration.parameters}
    choice = by_name.get(LONELY)
    return [policy for policy in choice.options if policy != choice.default] if isinstance(choice, Choice) else []


def _variants(loss: Loss) -> Iterator[dict[str, Any]]:
    """Nothing, and then each set of arrays that a variant of the loss is given beside the required ones."""
    optional = [p.name for p in loss.parameters if isinstance(p, Array | Labels) and not p.required]
    sets = [{name: ... for name in optional if variant.get(name) is ...} for variant in loss.variants]
    seen: list[dict[str, Any]] = [{}]
    yield {}
    for each in sets[1:]:
        if each not in seen and each != sets[0]:
            seen.append(each)
            yield each


def _changes(loss: Loss, by_rows: bool) -> Iterator[dict[str, Any]]:
    """Settings of a loss: one choice at a time, and each with another reduction."""
    choices = [{p.name: x} for p in loss.parameters if isinstance(p, Choice) for x in p.options if x != p.default]
    reductions = ["none"] if by_rows else ["mean", "sum"]
    for reduction, choice in product(reductions, [{}, *choices]):
        changed = {**choice, **({"reduction": reduction} if reduction != "mean" else {})}
        if changed:
            yield changed


def explanation_of(report: Report) -> Diagnosis | None:
    """What explains a difference, of the closed list of conventions; None where nothing does."""
    first = next(iter(report.diagnosis), None)
    known = CONVENTIONS.keys() - {"unexplained"}
    return first if first is not None and set(first.id.split("+")) <= known else None


def _is_taken_for(report: Report, is_named: bool) -> bool:
    """Whether a callable is taken for a loss that it differs from.

    So it is if it is right on most cases, or if one known difference says what it computes. What is named after the
    loss may have any known difference, and several.
    """
    right = [r.status == "pass" for r in report.results if r.quantity == "value"]
    if report.exit_code != DIFFERS or 2 * sum(right) > len(right):
        return report.exit_code == DIFFERS
    explanation = explanation_of(report)
    return explanation is not None and (is_named or (explanation.lead.role == "computes" and "+" not in explanation.id))


def _why_not(plain: Sequence[LossTrial]) -> str:
    """The most telling reason: of a call that was made before one whose inputs do not fit."""
    called = [trial.reason.removeprefix(_CALLED) for trial in plain if trial.reason.startswith(_CALLED)]
    if plain and all(UNKNOWN_TO_REFERENCE in trial.reason for trial in plain):
        # That of a loss that leaves least open.
        return _line(min((trial.reason for trial in plain), key=len))
    fits = re.compile("`.*no input of|none of these is|takes `.*` nowhere|^`loss` must be")
    other = [trial.reason for trial in plain if trial.reason and not fits.search(trial.reason)]
    return _line([*called, *other, "it fits the inputs of no loss"][0].partition("; choose rows")[0])


def _line(text: str) -> str:
    return printable(" ".join(text.split()), 200)
