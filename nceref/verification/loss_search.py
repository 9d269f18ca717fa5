"""The search for the loss that a target is: every loss is tried, then settings of it, then other ways of calling."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from nceref.cases.records import Diagnosis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.search import is_one_convention
from nceref.losses import all_losses
from nceref.output.text import printable
from nceref.output.words import letters
from nceref.spec import Array, Choice, Labels, Loss
from nceref.targets.arguments import UNKNOWN_TO_REFERENCE, expected_names
from nceref.targets.process.child import ChildRunner
from nceref.targets.runner import child_runner
from nceref.targets.search import Search
from nceref.verification.adapters import Known, calls
from nceref.verification.options import BY_NAME
from nceref.verification.report import Report
from nceref.verification.request import request_of
from nceref.verification.target_run import begun
from nceref.verification.trials import CALLED, Trial, Trials, until_ended, until_right
from nceref.verification.verifier import verify_with

SUITE = "quick"
"""Of all trials and reports of a search."""
_BY_ROWS = "--set reduction=none"
"""In the reason of a target that returns rows."""
_ENDED = re.compile("does not return|ends the process")
"""In the reason of a target that cost its process."""
UNEXPLAINED = "unexplained"
"""The id of a difference that nothing explains."""
_NEAREST = 3
"""Losses of which the difference is explained: an explanation takes a hundred times as long as a trial."""
_CALLS = 5000
"""Calls of one target, of which trials of all losses in all ways take about 1,000."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A loss that the target was held to, the options with which it was, and what came of it."""

    loss: str
    report: Report
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether one known difference says what the target computes."""
        first = next((d for d in self.report.diagnosis if is_named(d)), None)
        return first is not None and first.id != UNEXPLAINED and "+" not in first.id and first.lead.role == "computes"

    @property
    def is_right_in_part(self) -> bool:
        """Whether it is right wherever it answers, but does not answer everywhere: no other loss explains that."""
        return {result.status for result in self.report.results} & {"fail", "error"} == {"error"}

    @property
    def is_right_in_value(self) -> bool:
        """Whether each value is right, and what differs is beside it."""
        of_values = {result.status for result in self.report.results if result.quantity.startswith("value")}
        return of_values - {"skip"} == {"pass"}

    @property
    def distance(self) -> tuple[int, int, int, int]:
        """The order of trials: right values first, then the fewest differences, then the fewest failures."""
        ids = [d.id for d in self.report.diagnosis if is_named(d)]
        # An unexplained difference ranks behind every explained one, and one without a diagnosis behind both.
        unnamed = 0 if self.report.ok else 20
        differences = min((id.count("+") + 1 + 9 * (id == UNEXPLAINED) for id in ids), default=unnamed)
        differences = 0 if self.is_right_in_part else differences
        count = Counter(result.status for result in self.report.results)
        # What explains the few cases that could be run explains little.
        crashed = count["error"] > 0
        differences = 0 if self.report.ok else differences + 5 * crashed
        return (not self.is_right_in_value, differences, count["fail"] + count["error"], count["skip"])


def search_of(most: int) -> Search:
    """The count of the calls by which a loss is looked for, those that measure and that confirm it included."""
    return Search(most, goal="the loss", option="")


@dataclass(frozen=True, eq=False)
class LossSearch:
    """A target that is tried as every loss; `options` are those of `verify` for all trials."""

    target: Any
    child: ChildRunner | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    search: Search = field(default_factory=lambda: search_of(_CALLS))

    @property
    def name(self) -> str:
        """The target's own name."""
        if isinstance(self.target, str):
            return self.target.rpartition(":")[2]
        return getattr(self.target, "__name__", type(self.target).__name__)

    @property
    def trials(self) -> Trials:
        """The loop that all trials go through."""

        def begin(loss: str, **options: Any) -> Any:
            request = request_of(self.target, loss, {**self.options, "suite": SUITE, **options})
            return begun(request, self.child, self.search)

        return Trials(begin, self.search)

    def as_declared(self) -> Iterator[Trial]:
        """Every loss without settings; with the inputs of another variant where the target does not take those."""
        trials, known = self.trials, all_losses()
        # Those first that the target is named after.
        for name in sorted(known, key=lambda loss: not is_named_after(self.name, loss)):
            for settings in _variants(known[name].declaration):
                yield (trial := trials.of(name, whole=True, **settings))
                # What hangs as one loss most likely hangs as the others, and each costs a timeout.
                if has_ended([trial]):
                    return
                if trial.ran:
                    break

    def with_settings(self, plain: Sequence[Trial]) -> Iterator[Trial]:
        """Trials of the same losses with settings of theirs."""
        for trial in plain:
            by_rows = _BY_ROWS in trial.reason
            if trial.ran or by_rows:
                for changed in _changes(all_losses()[trial.loss].declaration, by_rows):
                    yield self.trials.of(trial.loss, **{**trial.options, **changed})

    def with_calls(self, plain: Sequence[Trial]) -> Iterator[Trial]:
        """The losses as which the target gave no number, in the usual other ways of calling it."""
        # No call mends a constructor that cannot be given what it needs.
        unmade = all(UNKNOWN_TO_REFERENCE in trial.reason for trial in plain)
        if self.options.get("call") or unmade or has_ended(plain):
            return
        framework, known = self.options.get("framework") or "", Known()
        for first in plain:
            if not first.ran:
                given, loss = first.options, all_losses()[first.loss].declaration
                yield from until_right(calls(self.trials, loss, given, framework, known, **given))

    @property
    def signature(self) -> Mapping[str, bool]:
        """The target's parameters, as `ResolvedTarget` has them; empty where it cannot be loaded."""
        # It does not depend on the loss.
        name, loss = next(iter(all_losses().items()))
        return self.trials.signature(name, expected_names(loss.declaration, {})) or {}

    def called_otherwise(self, plain: Sequence[Trial]) -> list[Trial]:
        """The first other call of each loss that is right, or where none is, that gives a number."""
        tried = list(until_ended(self.with_calls(plain)))
        if right := _first_of_each(t for t in tried if t.right):
            return right
        # These ended at the first wrong case, which does not tell how near they are.
        ran = _first_of_each(t for t in tried if t.ran)
        return list(until_ended(self.trials.of(t.loss, whole=True, **t.options) for t in ran))

    def confirmed(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Report]]:
        """The trials that are right on all cases, each with its report; of one loss the first."""
        seen = set()
        for trial in until_ended(trials):
            if trial.right and trial.loss not in seen:
                report = self.verified(trial, diagnose=False)
                if report.ok:
                    seen.add(trial.loss)
                    yield trial, report

    def explained(self, trials: Sequence[Trial], formats: Sequence[str] = ()) -> list[Candidate]:
        """The nearest losses with what explains the difference from each, best first, until one says it all.

        The loss that the target is named after goes first, then those from which it differs by one convention. With
        `formats` all of them are judged where the numbers of a trial are right, and else the first.
        """
        made: list[Candidate] = []
        for trial in islice(self._nearest(trials), _NEAREST):
            # What is right in this format may be wrong in the others.
            how = {"dtype": formats if trial.agrees else formats[:1]} if formats else {}
            made.append(Candidate(trial.loss, self.verified(trial, **how), trial.options))
            if made[-1].is_known or made[-1].is_right_in_value:
                break
        return sorted(made, key=lambda candidate: candidate.distance)

    def _nearest(self, trials: Sequence[Trial]) -> Iterator[Trial]:
        """The trials in the order of `explained`; those behind the target's own loss are compared only if asked for."""
        named = [trial for trial in trials if is_named_after(self.name, trial.loss)]
        for group in (named, [trial for trial in trials if trial not in named]):
            if len(group) < 2:
                yield from group
            else:
                yield from sorted(group, key=lambda t: (not (t.agrees or is_one_convention(t.observations)), t.spread))

    def verified(self, trial: Any, **how: Any) -> Report:
        """The report of the target with the loss and options of a trial, and others of `verify_with`."""
        own = {"child": self.child, "measure": False, "search": self.search}
        given = {**self.options, "suite": SUITE, **trial.options, **own, **how}
        return verify_with(self.target, trial.loss, **given)


def is_named(diagnosis: Diagnosis) -> bool:
    """Whether it says what a target computes, and not why it computes nothing."""
    return set(diagnosis.id.split("+")) <= CONVENTIONS.keys()


def has_ended(plain: Iterable[Trial]) -> bool:
    """Whether a call did not return, or cost the target's process."""
    return any(_ENDED.search(trial.reason) for trial in plain)


def _first_of_each(trials: Iterable[Trial]) -> list[Trial]:
    """The first trial of each loss."""
    first: dict[str, Trial] = {}
    for trial in trials:
        first.setdefault(trial.loss, trial)
    return [*first.values()]


@contextmanager
def process_of(target: Any, options: Mapping[str, Any]) -> Iterator[ChildRunner | None]:
    """One process for all losses, so that what the target imports is imported once; None for an object."""
    if not isinstance(target, str):
        yield None
        return
    timeout = options.get("timeout") or BY_NAME["timeout"].default
    child = child_runner(None, "cpu", timeout, 120.0, bool(options.get("isolate")))
    try:
        yield child
    finally:
        child.stop()


def why_not(plain: Sequence[Trial]) -> str:
    """The most telling reason, in a line, of a target that is no loss: that of a call that was made goes first."""
    called = [trial.reason for trial in plain if trial.reached == CALLED]
    if plain and all(UNKNOWN_TO_REFERENCE in trial.reason for trial in plain):
        # That of a loss that leaves least open.
        return line(min((trial.reason for trial in plain), key=len))
    fits = re.compile("`.*no input of|none of these is|takes `.*` nowhere|^`loss` must be")
    other = [trial.reason for trial in plain if trial.reason and not fits.search(trial.reason)]
    return line([*called, *other, "it fits the inputs of no loss"][0].partition("; choose rows")[0])


def line(text: str) -> str:
    """A reason in a line of at most 200 letters."""
    return printable(" ".join(text.split()), 200)


def _variants(loss: Loss) -> Iterator[dict[str, Any]]:
    """Settings: none, and then each set of arrays that a variant of the loss is given beside the required ones."""
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


def is_named_after(name: str, loss: str) -> bool:
    """Whether words of a name are that of a loss, or one that packages give it.

    >>> is_named_after("InfoNCELoss", "info_nce"), is_named_after("mean_distance", "nce")
    (True, False)
    >>> is_named_after("my_gist_embed_loss", "guided_info_nce")
    True
    """
    known = all_losses().get(loss)
    released = () if known is None else known.declaration.known_as
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]
    places = range(len(words) + 1)
    return not {*map(letters, (loss, *released))}.isdisjoint("".join(words[i:j]) for i in places for j in places)


def misnamed(name: str, losses: Sequence[str], own: Sequence[str]) -> str:
    """The one of some losses that a target is named after, where it is none of its own; or empty."""
    named = named_like(name, losses)
    return "" if named in own else named


def named_like(name: str, losses: Sequence[str]) -> str:
    """The loss with the longest name that is part of another name, or empty.

    >>> named_like("NTXentLoss", ["info_nce", "nt_xent"])
    'nt_xent'
    """
    named = [loss for loss in losses if is_named_after(name, loss)]
    return max(named, key=lambda loss: len(letters(loss)), default="")
