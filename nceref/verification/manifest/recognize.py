"""Which loss a callable of a package is, and with which settings; what is stated of it was measured with just these."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nceref.cases.aliases import match_input
from nceref.cases.records import Diagnosis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import is_constant
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.errors import InputError
from nceref.losses import all_losses
from nceref.output.words import out_of
from nceref.spec import Choice
from nceref.targets.arguments import constructed_with
from nceref.verification.loss_search import (
    UNEXPLAINED,
    Candidate,
    LossSearch,
    has_ended,
    is_named_after,
    line,
    misnamed,
    named_like,
    search_of,
    why_not,
)
from nceref.verification.manifest.package import PublicCallable
from nceref.verification.report import DIFFERS, Report
from nceref.verification.trials import RUNS, WORDS, Trial, how_called, until_ended

DTYPES = ("float64", "float32")
"""Of the tables that are written."""
KEYS = ("call", "framework", "init", "shape")
"""Options that are keys of a table, and no settings."""
_NEAR = 0.1
"""Spread of the ratio to a loss below which a call comes near it: unlike functions are apart by more."""
_CALLS = 1000
"""Calls of one callable, of which trials of all losses in all ways take about 250."""
_WORDS = ("contrast", "clr", "nce", "xent")
"""Parts of names of contrastive losses, beside those of the losses themselves."""
LONELY = "no_positive"
"""The setting that says what an anchor without a positive counts as."""


@dataclass(frozen=True, eq=False)
class RecognizedTarget:
    """A callable of a package, and the loss that it is, or from which it differs in a way that is explained.

    `loss` is empty for one that was not recognized, and `reason` says why. `options` are those of `nceref.verify`: the
    settings of the loss that it keeps, ``init`` and ``shape``, and how it is called; the report is with these. `also`
    has other losses that it equals on all cases; where it is exactly none, `second` is the next one that explains it,
    in a sentence. `intended` are the conventions with which it is right, measured, where it differs. `nearest`, of one
    that was not recognized, is the command that judges it as the nearest loss; empty where it is near none.
    """

    callable: PublicCallable
    loss: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    report: Report | None = None
    also: tuple[str, ...] = ()
    second: str = ""
    intended: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    nearest: str = ""

    @property
    def id(self) -> str:
        """The name for the bar of progress."""
        return self.callable.text

    @property
    def meant(self) -> str:
        """The loss that it is named after, where it is another one; or empty."""
        return misnamed(self.callable.name, list(all_losses()), (self.loss, *self.also))


def recognize(target: PublicCallable, child: Any, **options: Any) -> RecognizedTarget:
    """Find the loss that a callable is: as declared, then with a setting of the loss, then called in another way.

    What is none exactly is taken for the loss from which it differs in a known way. `child` is the process that has its
    module; `options` are ``timeout`` and ``isolate`` of `nceref.verify`.
    """
    made = constructed_with(target.needs)
    search = LossSearch(target.text, child, {**options, **made, "dtype": DTYPES}, search_of(_CALLS))
    plain = list(until_ended(search.as_declared()))
    # With settings one is enough: each has several.
    exact = list(search.confirmed(plain)) or list(islice(search.confirmed(search.with_settings(plain)), 1))
    ran, otherwise = [t for t in plain if t.ran], []
    # Most functions of a package are no loss: with some hundred calls each, a large one would take minutes.
    if not exact and (_is_named_like_one(target.name) or _has_temperature(search.signature)):
        otherwise = search.called_otherwise(plain)
        exact = list(search.confirmed(otherwise))
    if exact:
        best, report = exact[0]
        also = tuple(dict.fromkeys(t.loss for t, _ in exact[1:] if t.loss != best.loss))
        settings, report = _with_lonely_anchors(search, best, report)
        return RecognizedTarget(target, best.loss, {**made, **settings}, report, also)
    # Most functions of a package are no loss, and an explanation takes a hundred times as long as a trial.
    told = [*ran, *(t for t in otherwise if is_named_after(target.name, t.loss))]
    if told and not has_ended(plain):
        return _explained(target, search, told, made)
    near = min(otherwise, key=lambda t: t.spread, default=None)
    if near is not None and near.spread < _NEAR:
        reason, command = f"as {near.loss}, {WORDS[RUNS]}", _command(target, near.loss, {**made, **near.options})
        return RecognizedTarget(target, reason=reason, nearest=command)
    return RecognizedTarget(target, reason=search.search.sentence or why_not(plain))


def _is_named_like_one(name: str) -> bool:
    """Whether a callable has the name of a contrastive loss, or a word of such names in its own."""
    return any(word in name.lower() for word in _WORDS) or any(is_named_after(name, loss) for loss in all_losses())


def _has_temperature(signature: Mapping[str, bool]) -> bool:
    """Whether a callable takes a temperature or a scale by one of its names; one letter means anything."""
    return any(len(name) > 1 and match_input(name, [scalar]) for scalar in INVERSE_TEMPERATURES for name in signature)


def _with_lonely_anchors(search: LossSearch, best: Trial, report: Report) -> tuple[Mapping[str, Any], Report]:
    """The options, and the policy for anchors without a positive by which the target is right on these too."""
    for policy in policies(best.loss) if LONELY not in best.options else ():
        options = {**best.options, LONELY: policy}
        if (judged := search.verified(Trial(best.loss, options), diagnose=False)).ok:
            return options, judged
    return best.options, report


def _explained(
    target: PublicCallable, search: LossSearch, trials: Sequence[Trial], made: Mapping[str, Any]
) -> RecognizedTarget:
    """The loss that it is but for a known difference: the one that it is named after, or any."""
    if not (telling := [t for t in trials if not is_constant(t.observations)]):
        count = len(trials[0].observations)
        return RecognizedTarget(target, reason=f"it gives the same number on {out_of(count, count, 'case')}")
    own = named_like(target.name, [t.loss for t in telling])
    tried = search.explained(telling, DTYPES)
    taken = [each for each in tried if _is_taken_for(each.report, each.loss == own)]
    # The loss that it is named after goes before any other.
    if taken:
        best, *others = sorted(taken, key=lambda each: each.loss != own)
        second = f"{others[0].loss}, {_what_explains(others[0].report)}" if others else ""
        intended, options = _intended(search, best), {**made, **best.options}
        return RecognizedTarget(target, best.loss, options, best.report, (), second, intended)
    reason = f"as {tried[0].loss}, {tried[0].report.reason}; {_what_explains(tried[0].report)}"
    nearest = tried[0].options and _command(target, tried[0].loss, {**made, **tried[0].options})
    return RecognizedTarget(target, reason=line(reason), nearest=nearest or "")


def _command(target: PublicCallable, loss: str, options: Mapping[str, Any]) -> str:
    """The command that judges a callable as a loss with these options."""
    init = "".join(f" --init {name}={x}" for name, x in options.get("init", {}).items())
    shape = f" --shape {','.join(map(str, options['shape']))}" if "shape" in options else ""
    settings = {name: "given" if x is ... else x for name, x in options.items() if name not in KEYS}
    set_ = "".join(f" --set {name}={x}" for name, x in settings.items())
    return f"nceref verify {shlex.quote(target.text)} --loss {loss}{init}{shape}{set_} {how_called(options)}".rstrip()


def _intended(search: LossSearch, best: Candidate) -> dict[str, str]:
    """The settings that make the difference a convention that is held to; empty where that was not seen to be right."""
    if (explanation := explanation_of(best.report)) is None:
        return {}
    conventions = {CONVENTIONS[id].axis: id for id in explanation.id.split("+")}
    try:
        report = search.verified(Trial(best.loss, {**best.options, **conventions}), diagnose=False)
    # It needs a number, or cannot be intended.
    except InputError:
        return {}
    return conventions if report.ok else {}


def _what_explains(report: Report) -> str:
    return f"{found if (found := what_differs(report)) != UNEXPLAINED else 'nothing'} explains that"


def what_differs(report: Report) -> str:
    """The id of what explains a difference: a convention, or what the target does beside right numbers."""
    if explanation := explanation_of(report):
        return explanation.id
    kinds = {r.quantity.partition(".")[::2] for r in report.results if r.status in ("fail", "error")}
    beside = {kind for kind, _ in kinds} == {"behavior"}
    return " and ".join(sorted(name for _, name in kinds)) if beside else UNEXPLAINED


def policies(loss: str) -> list[str]:
    """The choices of a loss by which an anchor without a positive has a value; empty where it has no such choice."""
    by_name = {p.name: p for p in all_losses()[loss].declaration.parameters}
    choice = by_name.get(LONELY)
    return [policy for policy in choice.options if policy != choice.default] if isinstance(choice, Choice) else []


def explanation_of(report: Report) -> Diagnosis | None:
    """The explanation of a difference, of the closed list of conventions; None where nothing explains it."""
    first = next(iter(report.diagnosis), None)
    known = CONVENTIONS.keys() - {UNEXPLAINED}
    return first if first is not None and set(first.id.split("+")) <= known else None


def _is_taken_for(report: Report, is_named: bool) -> bool:
    """Whether a callable is taken for a loss that it differs from.

    So it is if it is right on most cases, or if one known difference says what it computes. What is named after the
    loss may have any known difference, and several.
    """
    right = [r.status == "pass" for r in report.results if r.quantity == "value"]
    if report.ok or report.exit_code != DIFFERS:
        return report.ok
    if 2 * sum(right) > len(right):
        return True
    if (explanation := explanation_of(report)) is None:
        return False
    # Where numbers are not finite says nothing of the others.
    ids = [id for id in explanation.id.split("+") if CONVENTIONS[id].axis != "arithmetic"]
    return is_named or (explanation.lead.role == "computes" and len(ids) == 1)
