"""Whether two programs are one loss: as they are, up to a factor or a reduction, or with a setting of one of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.checks.run import check_relation
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.errors import TargetError
from nceref.losses import all_losses
from nceref.output.pages import Page
from nceref.registry import must_be_there, unknown
from nceref.targets.peers.peer import find
from nceref.verification import report as codes
from nceref.verification.against import settings_of
from nceref.verification.manifest.recognize import with_loss_of
from nceref.verification.report import Report
from nceref.verification.verifier import verify_with

EQUAL, DIFFERENT, NOT_JUDGED = codes.CONFORMS, codes.DIFFERS, codes.TARGET_FAILED
_UP_TO = {c.id for c in CONVENTIONS.values() if c.axis == "factor"} | {"sum-instead-of-mean", "mean-instead-of-sum"}
"""Differences that leave a loss the same but for its size."""
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
        Targets as for `verify`, or names of losses.
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
    how: Mapping[str, Any] = field(default_factory=lambda: {"training": False})

    def answer(self) -> Equality:
        options = self._options()
        if self.second not in all_losses():
            must_be_there(self.second)
        report = verify_with(_target(self.second), on_progress=self.on_progress, **self.how, **options)
        identity = self._identity()
        if report.ok:
            rest = "; no gradients were compared" * (report.verdict == "value-only")
            sentence = f"{self.second} equals {self.first}{rest}"
            return Equality(self.first, self.second, EQUAL, sentence, report, identity)
        if report.exit_code != codes.DIFFERS:
            return Equality(self.first, self.second, NOT_JUDGED, report.reason, report)
        lead = next((d for d in report.diagnosis if d.first), None)
        beside = {id for d in report.diagnosis for id in d.id.split("+")} - {"as-the-reference"}
        if lead is not None and beside and beside <= _UP_TO:
            return Equality(self.first, self.second, EQUAL, self._named(str(lead.lead)), report, identity)
        if setting := self._setting_of_loss(report, options):
            sentence = f"{self.second} equals {self.first}({setting})"
            return Equality(self.first, self.second, EQUAL, sentence, report, identity)
        for other, new, held in self._held(options):
            if setting := _setting(new, held, self.how):
                sentence = f"{new}({setting}) equals {other}"
                return Equality(self.first, self.second, EQUAL, sentence, report, identity)
        sentence = self._named(lead.sentence) if lead is not None and not lead.formula else report.reason
        return Equality(self.first, self.second, DIFFERENT, sentence, report, identity)

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
        again = verify_with(_target(self.second), **{**self.how, "diagnose": False, **options, **named})
        return ", ".join(f"{name}={value}" for name, value in named.items()) if again.ok else ""

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
            if self._is_the_loss(other, own):
                yield other, new, own

    def _is_the_loss(self, name: str, options: Mapping[str, Any]) -> bool:
        return verify_with(name, **{**self.how, "diagnose": False, **options}).ok

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


def _setting(target: str, options: Mapping[str, Any], how: Mapping[str, Any]) -> str:
    """The one argument of a target with another value than its default under which it conforms; empty for none."""
    like = {**how, "diagnose": False, **options}
    plain = verify_with(target, **like)
    for name, default in plain.environment.get("defaults", {}).items():
        for value in [not default] if isinstance(default, bool) else [x for x in (0.0, 1.0) if x != default]:
            init = {**(options.get("init") or {}), name: value}
            suites = ("quick", options.get("suite", "standard"))
            if all(verify_with(target, **{**like, "init": init, "suite": suite}).ok for suite in dict.fromkeys(suites)):
                return f"{name}={value}" if isinstance(value, bool) else f"{name}={value:g}"
    return ""


def page_of(equality: Equality) -> Page:
    """The answer as a page: the sentence, the evidence, and what the difference is."""
    page = Page()
    page.print(f"{_WORDS[equality.exit_code]}: {equality.sentence}", style="bold")
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
