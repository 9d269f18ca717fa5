"""Whether two programs are one loss: as they are, up to a factor or a reduction, or with a setting of one of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nceref.cases.records import Diagnosis
from nceref.checks.run import check_relation
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.errors import TargetError
from nceref.losses import all_losses
from nceref.output.pages import Page
from nceref.output.words import counted
from nceref.registry import must_be_there, unknown
from nceref.targets.peers.peer import find
from nceref.verification import report as codes
from nceref.verification.against import settings_of
from nceref.verification.identify import with_loss_of
from nceref.verification.limits import limited_cases
from nceref.verification.loss_search import process_of
from nceref.verification.options import BY_NAME
from nceref.verification.report import Report
from nceref.verification.request import request_of
from nceref.verification.target_run import runner_of
from nceref.verification.verifier import verify_with

EQUAL, DIFFERENT, NOT_JUDGED = codes.CONFORMS, codes.DIFFERS, codes.TARGET_FAILED
_UP_TO = {c.id for c in CONVENTIONS.values() if c.axis == "factor"}
_UP_TO |= {"sum-instead-of-mean", "mean-instead-of-sum", "directions-summed"}
"""Differences that leave a loss the same but for its size."""
_HOW: Mapping[str, Any] = {"training": False}
_WORDS = {EQUAL: "EQUAL", DIFFERENT: "DIFFERENT", NOT_JUDGED: "NOT JUDGED"}


@dataclass(frozen=True)
class Equality:
    """The answer whether two programs are one loss.

    Attributes
    ----------
    first, second : str
        The programs, as they were named.
    exit_code : int
        0 equal, 1 different, 4 not judged.
    sentence : str
        What the second one is in terms of the first, or why that was not judged.
    identity : str
        A declared relation between two losses, checked on all its cases; empty where there is none.
    report : Report
        The second program against the first.
    """

    first: str
    second: str
    exit_code: int
    sentence: str
    report: Report
    identity: str = ""

    def record(self) -> dict[str, Any]:
        """The answer as plain data."""
        own = ("first", "second", "exit_code", "sentence", "identity")
        return {**{name: getattr(self, name) for name in own}, "report": self.report.record()}


def equality(
    first: str, second: str, loss: str | None = None, on_progress: Callable[..., Any] | None = None, **options: Any
) -> Equality:
    """Compare two programs on the designed cases.

    Parameters
    ----------
    first, second : str
        Targets as for `verify`, or names of losses. A loss beside a target is the first in what is returned.
    loss : str, optional
        The loss whose inputs they take; by default the first program is identified.
    on_progress : callable, optional
        Called with each case, and with their number as ``total=``.
    **options
        Of `verify`. How the second program is called holds for the first where that can be called so.

    Returns
    -------
    Equality

    Raises
    ------
    InputError
        An option or a setting does not exist.
    """
    for name in (first, second):
        if name not in all_losses() and ":" not in name:
            error = unknown("loss", name, tuple(all_losses()), "nceref losses")
            raise error
    # What is known most of is what the other one is held to, gradients included.
    if second in all_losses() and first not in all_losses():
        first, second = second, first
    try:
        return _Comparison(first, second, loss, options, on_progress).answer()
    except TargetError as error:
        report = Report(second, loss or "", "error", NOT_JUDGED, str(error))
        return Equality(first, second, NOT_JUDGED, str(error), report)


@dataclass(frozen=True)
class _Comparison:
    first: str
    second: str
    loss: str | None
    options: Mapping[str, Any]
    on_progress: Callable[..., Any] | None = None

    def answer(self) -> Equality:
        """The answer, with the report that it rests on."""
        options = self._options()
        if self.second not in all_losses():
            must_be_there(self.second)
        report = verify_with(_target(self.second), on_progress=self.on_progress, **_HOW, **options)
        if report.exit_code not in (codes.CONFORMS, codes.DIFFERS):
            return Equality(self.first, self.second, NOT_JUDGED, report.reason, report)
        equal = self._equal(report, options)
        code = EQUAL if equal else DIFFERENT
        return Equality(self.first, self.second, code, equal or self._different(report), report, self._identity())

    def _equal(self, report: Report, options: Mapping[str, Any]) -> str:
        """The sentence that both are one loss, and up to what; empty where they are not."""
        if report.ok:
            limited = limited_cases(report.results)
            rest = "; no gradients were compared" * (report.verdict == "value-only")
            rest += f"; it is not finite on {counted(len(limited), 'case')} at low temperatures" if limited else ""
            return f"{self.second} equals {self.first}{rest}"
        beside = {id for d in report.diagnosis for id in d.id.split("+")} - {"as-the-reference"}
        if beside and beside <= _UP_TO and (lead := _lead(report)) is not None:
            return self._named(str(lead.lead))
        if setting := self._setting_of_loss(report, options):
            return f"{self.second} equals {self.first}({setting})"
        size = {CONVENTIONS[id].axis: id for id in beside & _UP_TO}
        for other, new, own in self._held(options):
            # What is not finite beside it may be a limit.
            if new == self.second and size and _conforms(new, {**own, **size}):
                return f"{new} equals {other} with {' and '.join(CONVENTIONS[id].phrase for id in size.values())}"
            if setting := _setting(new, own):
                return f"{new}({setting}) equals {other}"
        return ""

    def _different(self, report: Report) -> str:
        """The sentence that says what the second program is."""
        lead = _lead(report)
        return self._named(lead.sentence) if lead is not None and not lead.formula else report.reason

    def _named(self, text: str) -> str:
        """A sentence about what a loss is called, with the names of both programs."""
        return text.replace("your loss", self.second).replace("the reference", self.first)

    def _options(self) -> dict[str, Any]:
        """Options of the second program against the first, which a loss is by its name."""
        if self.first in all_losses():
            return {**self.options, "loss": self.first}
        options = {**self.options, "loss": self.loss, "against": self.first}
        known = self.loss or find(self.first) or find(self.second)
        return options if known else with_loss_of(self.first, options)

    def _setting_of_loss(self, report: Report, options: Mapping[str, Any]) -> str:
        """Settings of the first program, a loss of the package, under which the second one conforms; empty for none."""
        named = settings_of(report) if self.first in all_losses() else {}
        known = {p.name for p in all_losses()[self.first].declaration.parameters} if named else set()
        if not named or not named.keys() <= known:
            return ""
        conforms = _conforms(_target(self.second), {**options, **named})
        return ", ".join(f"{name}={value}" for name, value in named.items()) if conforms else ""

    def _held(self, options: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Each program with what the other one is known to be, as the loss and settings that it is held to."""
        free = {name: x for name, x in options.items() if name not in ("against", "loss")}
        for other, new in ((self.first, self.second), (self.second, self.first)):
            if new in all_losses():
                continue
            if other in all_losses():
                yield other, new, {**free, "loss": other}
                continue
            own = {**free, "loss": self.loss} if self.loss else with_loss_of(other, free)
            if _conforms(other, own):
                yield other, new, own

    def _identity(self) -> str:
        """A relation between two losses of the package that is declared, and that holds on all its cases."""
        for one, other in ((self.first, self.second), (self.second, self.first)):
            if one not in all_losses():
                continue
            declared = all_losses()[one].declaration
            for relation in declared.relations:
                if relation.other == other and relation.kind == "==":
                    result = check_relation(declared, relation)
                    return result.detail.partition("; not beyond")[0] if result.status == "pass" else ""
        return ""


def _target(name: str) -> str:
    """A target; a loss of the package is one too."""
    return f"nceref.losses:{name}" if name in all_losses() else name


def _lead(report: Report) -> Diagnosis | None:
    """The part that explains the difference, and not what was measured beside that."""
    return next((d for d in report.diagnosis if d.first), None)


def _conforms(target: str, options: Mapping[str, Any]) -> bool:
    """Whether a target conforms, of which no explanation is needed."""
    return verify_with(target, **{**_HOW, "diagnose": False, **options}).ok


def _defaults(target: str, options: Mapping[str, Any]) -> Mapping[str, float | bool]:
    """The arguments of a target that no input reaches, with their defaults; none of one that cannot be loaded."""
    try:
        with runner_of(request_of(target, options["loss"], {n: x for n, x in options.items() if n != "loss"})) as run:
            defaults: Mapping[str, float | bool] = run.target.defaults
            return defaults
    except TargetError:
        return {}


def _setting(target: str, options: Mapping[str, Any]) -> str:
    """The one argument of a target with another value than its default under which it conforms; empty for none."""
    suites = dict.fromkeys(("quick", options.get("suite", BY_NAME["suite"].default)))
    with process_of(target, options) as child:
        for name, default in _defaults(target, options).items():
            for value in [not default] if isinstance(default, bool) else [x for x in (0.0, 1.0) if x != default]:
                given = {**options, "init": {**(options.get("init") or {}), name: value}, "child": child}
                if all(_conforms(target, {**given, "suite": suite}) for suite in suites):
                    return f"{name}={value}" if isinstance(value, bool) else f"{name}={value:g}"
    return ""


def page_of(equality: Equality) -> Page:
    """The answer as a page: the sentence, the evidence, and what the difference is."""
    page = Page()
    page.heading(f"{_WORDS[equality.exit_code]}: {equality.sentence}", 1)
    report = equality.report
    if equality.exit_code == DIFFERENT and report.reason != equality.sentence:
        page.print(report.reason)
    for key in ("reference", "undefined"):
        if words := report.environment.get(key):
            page.print(words)
    if equality.identity:
        page.print(f"identity: {equality.identity}")
    for diagnosis in report.diagnosis if equality.exit_code == DIFFERENT else ():
        for label, text in (("second", diagnosis.formula), ("first", diagnosis.reference)):
            if text:
                page.grid([(label, text)], len("second"))
    for line in report.scope.lines() if report.results else ():
        page.print(line, style="dim")
    return page
