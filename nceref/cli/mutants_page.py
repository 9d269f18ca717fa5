"""The pages and records of `nceref mutants`: the catalogue of known bugs, and the score of the checker on it."""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nceref.output.pages import GAP, Page
from nceref.verification.bugs.bug import Mutant
from nceref.verification.bugs.score import CORRECT, GROUPS, NAMED, Score, Tally, Trial, group


def overview(shown: Iterable[Mutant]) -> Page:
    """List mutants by group: id, losses, and a sentence."""
    page = Page()
    listed = list(shown)
    label = max(len(mutant.id) for mutant in listed)
    for name in (*GROUPS, CORRECT):
        own = [mutant for mutant in listed if group(mutant) == name]
        if own:
            page.print(f"{name} ({len(own)})", style="bold")
        for mutant in own:
            page.grid([(mutant.id, ", ".join(mutant.losses))], label, styles=("", "dim"), indent=GAP)
            page.grid([(mutant.sentence,)], indent=2 * GAP)
    page.print("\nAll about one, with its code: nceref mutants nt-xent-own-logit-kept", style="dim")
    return page


def page_of(mutant: Mutant) -> Page:
    """All about one mutant, its code included."""
    page = Page()
    page.print(mutant.id, style="bold")
    page.print(mutant.sentence)
    lines = [(name, str(value)) for name, value in _facts(mutant).items() if value]
    page.print()
    page.grid(lines, max(len(name) for name, _ in lines), styles=("bold", ""))
    page.print()
    page.verbatim(source(mutant))
    return page


def _facts(mutant: Mutant) -> Mapping[str, str]:
    settings = ", ".join(f"{name}={value!r}" for name, value in mutant.settings.items())
    return {
        "losses": ", ".join(mutant.losses),
        "seen in": mutant.thread or mutant.seen,
        "right": " or ".join(["+".join(mutant.named), *mutant.also]),
        "intended": settings,
        "group": group(mutant),
        "wrong in": ", ".join(mutant.dtypes) if mutant.named else "",
    }


def record(mutant: Mutant) -> dict[str, Any]:
    """A mutant for programs."""
    return {
        "id": mutant.id,
        "sentence": mutant.sentence,
        "losses": list(mutant.losses),
        "thread": mutant.thread,
        "seen": mutant.seen,
        "named": list(mutant.named),
        "also": list(mutant.also),
        "group": group(mutant),
        "settings": {name: repr(value) for name, value in mutant.settings.items()},
        "dtypes": list(mutant.dtypes),
        "source": source(mutant),
    }


def source(mutant: Mutant) -> str:
    """The code of the program and of what it calls in its own file, in the order of the file."""
    found: dict[int, str] = {}
    for function in (mutant.program, mutant.gradients):
        if function is not None:
            _collect(function, found)
    return "\n\n".join(found[line] for line in sorted(found))


def _collect(function: Callable[..., Any], found: dict[int, str]) -> None:
    lines, first = inspect.getsourcelines(function)
    if first in found:
        return
    found[first] = "".join(lines)
    code: Any = function.__code__
    for name in _names(code):
        called = function.__globals__.get(name)
        if isinstance(called, types.FunctionType) and called.__module__ == function.__module__:
            _collect(called, found)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Names that the code reads, those of functions inside it included."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return (*code.co_names, *inner)


def score_page(score: Score) -> Page:
    """The score by format and group, then what was missed, misnamed or wrongly blamed."""
    page = Page()
    for dtype in score.dtypes:
        _table(page, score, dtype)
    misnamed = [t for t in score.trials if t.group != CORRECT and t.killed and not t.right]
    _listed(page, "Not killed", score.missed)
    _listed(page, "Not named", misnamed)
    _listed(page, "False alarms", score.false_alarms)
    met = "met" if score.met else "missed"
    page.print(
        f"\nTarget {met}: all killed, at least {NAMED:.0%} named right, no false alarm.",
        style="green" if score.met else "red",
    )
    page.print(f"{len(score.trials)} trials, {sum(t.seconds for t in score.trials):.1f} s of work", style="dim")
    return page


def _table(page: Page, score: Score, dtype: str) -> None:
    rows = {name: score.tally(dtype, name) for name in GROUPS}
    rows["all"] = score.tally(dtype, *GROUPS)
    lines: list[tuple[str, ...]] = [(dtype, "mutants", "killed", "named first", "among three")]
    lines += [(name, *_counts(tally)) for name, tally in rows.items() if tally.total]
    correct = score.of(dtype, CORRECT)
    if len(lines) > 2:
        page.table(lines, right=(False, True, True, True, True), styles=("bold", "", "", "", ""))
    if correct:
        page.print(f"false alarms on correct variants: {sum(not t.passes for t in correct)} of {len(correct)}")
    page.print()


def _counts(tally: Tally) -> tuple[str, ...]:
    return (str(tally.total), *(f"{n} ({n / tally.total:.1%})" for n in (tally.killed, tally.named, tally.among)))


def _listed(page: Page, title: str, trials: Sequence[Trial]) -> None:
    """Each trial with what was said and what should have been."""
    if not trials:
        return
    page.print(f"{title} ({len(trials)})", style="bold")
    for trial in trials:
        page.grid([(f"{trial.id}, {trial.loss}, {trial.dtype}",)], indent=GAP)
        said = ", ".join(trial.said) or f"{trial.verdict}: {trial.reason}"
        lines = [("should be", trial.expected or "conforms"), ("was", said)]
        page.grid(lines, 9, styles=("dim", ""), indent=2 * GAP)


def score_record(score: Score) -> dict[str, Any]:
    """The score for programs."""
    tallies = {
        dtype: {name: asdict(score.tally(dtype, *groups)) for name, groups in _groups().items()}
        for dtype in score.dtypes
    }
    return {
        "met": score.met,
        "by_dtype": tallies,
        "false_alarms": len(score.false_alarms),
        "correct_variants": sum(trial.group == CORRECT for trial in score.trials),
        "trials": [asdict(trial) | {"killed": trial.killed, "named": trial.named} for trial in score.trials],
    }


def _groups() -> Mapping[str, tuple[str, ...]]:
    return {**{name: (name,) for name in GROUPS}, "all": GROUPS}
