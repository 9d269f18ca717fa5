"""The pages and records of `nceref mutants`: the catalogue of known bugs, and the score of the verifier on it."""

import inspect
import itertools
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nceref.output.pages import GAP, Page
from nceref.output.words import counted
from nceref.verification.bugs.bug import Program
from nceref.verification.bugs.score import (
    CORRECT,
    GROUPS,
    INDEPENDENT,
    KILLED,
    NAMED,
    UNCONFIRMED,
    USEFUL,
    Score,
    ScoredProgram,
    Tally,
    group,
)


def overview(shown: Iterable[Program]) -> Page:
    """List programs by group: id, loss, and a sentence."""
    page = Page()
    listed = list(shown)
    label = max(len(program.id) for program in listed)
    for name in (*GROUPS, INDEPENDENT, CORRECT):
        own = [program for program in listed if group(program) == name]
        if own:
            page.print(f"{name} ({len(own)})", style="bold")
        for program in own:
            page.grid([(program.id, program.loss)], label, styles=("", "dim"), indent=GAP)
            page.grid([(program.sentence,)], indent=2 * GAP)
    example = f"--ranks 2 {listed[0].id}" if listed[0].distributed else "nt-xent-own-logit-kept"
    page.print(f"\nAll about one, with its code: nceref mutants {example}", style="dim")
    return page


def page_of(program: Program) -> Page:
    """All about one program, its code included."""
    page = Page()
    page.print(program.id, style="bold")
    page.print(program.sentence)
    lines = [(name, str(value)) for name, value in _facts(program).items() if value]
    page.print()
    page.grid(lines, max(len(name) for name, _ in lines), styles=("bold", ""))
    page.print()
    page.verbatim(source(program))
    return page


def _facts(program: Program) -> Mapping[str, str]:
    settings = ", ".join(f"{name}={value!r}" for name, value in program.settings.items())
    options = " ".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in program.options.items())
    return {
        "losses": program.loss,
        "seen in": program.thread or program.seen,
        "right": " or ".join(["+".join(program.named), *program.also]),
        "intended": settings,
        "options": options,
        "group": group(program),
        "wrong in": ", ".join(program.dtypes) if program.named else "",
    }


def record(program: Program) -> dict[str, Any]:
    """A program as data, for JSON."""
    return {
        "id": program.id,
        "sentence": program.sentence,
        "losses": [program.loss],
        "thread": program.thread,
        "seen": program.seen,
        "named": list(program.named),
        "also": list(program.also),
        "group": group(program),
        "settings": {name: repr(value) for name, value in program.settings.items()},
        "options": dict(program.options),
        "dtypes": list(program.dtypes),
        "source": source(program),
    }


def source(program: Program) -> str:
    """The code of a program and of what it calls in its own file, in the order of the file."""
    parts: dict[int, str] = {}
    for function in (program.function, program.gradients):
        if function is not None:
            _collect(function, parts)
    return "\n\n".join(parts[line] for line in sorted(parts))


def _collect(thing: Any, parts: dict[int, str]) -> None:
    # By its first line: each function and class once, although several may call it, and in the order of the file.
    lines, first = inspect.getsourcelines(thing)
    if first in parts:
        return
    # Without the decorator, whose facts stand above the code.
    parts[first] = "".join(itertools.dropwhile(lambda line: not line.startswith(("def ", "class ")), lines))
    # A static method of a class is unwrapped to its function.
    methods = map(inspect.unwrap, vars(thing).values()) if isinstance(thing, type) else (thing,)
    for function in (x for x in methods if isinstance(x, types.FunctionType)):
        for name in _names(function.__code__):
            called = function.__globals__.get(name)
            if isinstance(called, types.FunctionType | type) and called.__module__ == thing.__module__:
                _collect(called, parts)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Names that the code reads, those of functions inside it included."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return (*code.co_names, *inner)


def score_page(score: Score) -> Page:
    """The score by format and group, then what was missed, misnamed or wrongly blamed."""
    page = Page()
    for dtype in score.dtypes:
        _table(page, score, dtype)
    misnamed = [t for t in score.results if t.group in GROUPS and t.killed and not t.right]
    unconfirmed = [t for t in score.results if t.group == INDEPENDENT and t.killed and t.explanation == "unconfirmed"]
    _listed(page, "Not killed", score.missed)
    _listed(page, "Not named", misnamed)
    _listed(page, "Not confirmed", unconfirmed)
    _listed(page, "False alarms", score.false_alarms)
    met = "met" if score.met else "missed"
    page.print(
        f"\nTarget {met}: {_target(score)}, no false alarm.",
        style="green" if score.met else "red",
    )
    programs = counted(len(score.results), "program")
    page.print(f"{programs}, {sum(t.seconds for t in score.results):.1f} s of work", style="dim")
    return page


def _target(score: Score) -> str:
    if any(result.group == INDEPENDENT for result in score.results):
        return f"{KILLED:.0%} killed, {USEFUL:.0%} explained, at most {UNCONFIRMED:.0%} by what is not confirmed"
    return f"all killed, at least {NAMED:.0%} named right"


def _table(page: Page, score: Score, dtype: str) -> None:
    independent = score.tally(dtype, INDEPENDENT)
    if independent.total:
        counts = {"killed": independent.killed, **score.explained(dtype)}
        shares = [(kind, str(n), f"{n / independent.total:.1%}") for kind, n in counts.items()]
        page.table([(dtype, str(independent.total), ""), *shares], right=(False, True, True), styles=("bold", "", ""))
    rows = {name: score.tally(dtype, name) for name in GROUPS}
    rows["all"] = score.tally(dtype, *GROUPS)
    lines: list[tuple[str, ...]] = [(dtype, "mutants", "killed", "named first", "among three")]
    lines += [(name, *_counts(tally)) for name, tally in rows.items() if tally.total]
    correct = score.of(dtype, CORRECT)
    # Where correct programs alone were scored, only the header is left.
    if len(lines) > 2:
        page.table(lines, right=(False, True, True, True, True), styles=("bold", "", "", "", ""))
    if correct:
        page.print(f"false alarms on correct programs: {sum(not t.passes for t in correct)} of {len(correct)}")
    page.print()


def _counts(tally: Tally) -> tuple[str, ...]:
    return (str(tally.total), *(f"{n} ({n / tally.total:.1%})" for n in (tally.killed, tally.named, tally.among)))


def _listed(page: Page, title: str, results: Sequence[ScoredProgram]) -> None:
    """Each result with the diagnosis that was given and the one that is right."""
    if not results:
        return
    page.print(f"{title} ({len(results)})", style="bold")
    for result in results:
        page.grid([(f"{result.id}, {result.loss}, {result.dtype}",)], indent=GAP)
        given = ", ".join(result.diagnoses) or f"{result.verdict}: {result.reason}"
        lines = [("should be", result.expected or "conforms"), ("was", given)]
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
        "correct_variants": sum(result.group == CORRECT for result in score.results),
        "explained": {dtype: dict(score.explained(dtype)) for dtype in score.dtypes},
        "trials": [_result_record(result) for result in score.results],
    }


def _result_record(result: ScoredProgram) -> dict[str, Any]:
    facts = asdict(result)
    facts |= {"killed": result.killed, "named": result.named, "explanation": result.explanation}
    return {"said": facts.pop("diagnoses"), **facts}


def _groups() -> Mapping[str, tuple[str, ...]]:
    return {**{name: (name,) for name in (*GROUPS, INDEPENDENT)}, "all": GROUPS}
