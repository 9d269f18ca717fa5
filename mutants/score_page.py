"""The score of the verifier: its page, and its record for programs."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mutants.score import (
    CORRECT,
    GROUPS,
    KILLED,
    NAMED,
    UNCONFIRMED,
    USEFUL,
    Score,
    ScoredProgram,
    Tally,
)
from nceref.output.pages import GAP, Page
from nceref.output.words import counted


def score_page(score: Score) -> Page:
    """The score by format and group, then what was missed, misnamed or wrongly blamed."""
    page = Page()
    for dtype in score.dtypes:
        _table(page, score, dtype)
    misnamed = [t for t in score.results if t.group in GROUPS and t.killed and not t.right]
    unconfirmed = [t for t in score.results if t.group in USEFUL and t.killed and t.explanation == "unconfirmed"]
    _listed(page, "Not killed", score.missed)
    _listed(page, "Not named", misnamed)
    _listed(page, "Not confirmed", unconfirmed)
    _listed(page, "False alarms", score.false_alarms)
    met = "met" if score.met else "missed"
    page.print(
        f"\nTarget {met}: {_target(score)}, no false alarm.",
        style="green" if score.met else "red",
    )
    page.print()
    page.table(_costs(score.results), right=(False, True, True, False), styles=("bold", "", "", "dim"))
    return page


def _costs(results: Sequence[ScoredProgram]) -> list[tuple[str, str, str, str]]:
    """Calls and CPU seconds of a program: the median, and the most with the program that needs them."""
    lines = [(counted(len(results), "program"), "median", "longest", "")]
    rows = (("calls", "calls", ".0f"), ("seconds", "CPU seconds", ".2f"), ("explaining", "of these to explain", ".2f"))
    for name, words, pattern in rows:
        each = {result: cost for result in results if (cost := getattr(result, name)) or name != "explaining"}
        if not each:
            continue
        worst = max(each, key=lambda result: each[result])
        middle, most = (format(x, pattern) for x in (statistics.median(each.values()), each[worst]))
        lines.append((words, middle, most, worst.id))
    return lines


def _target(score: Score) -> str:
    if score.useful:
        share = " and ".join(f"{USEFUL[group]:.0%}" for group in score.useful)
        return f"{KILLED:.0%} killed, {share} explained, at most {UNCONFIRMED:.0%} by what is not confirmed"
    return f"all killed, at least {NAMED:.0%} named right"


def _table(page: Page, score: Score, dtype: str) -> None:
    for group in score.useful:
        if total := score.tally(dtype, group).total:
            counts = {"killed": score.tally(dtype, group).killed, **score.explained(dtype, group)}
            shares = [(kind, str(n), f"{n / total:.1%}") for kind, n in counts.items()]
            head = (f"{group}, {dtype}", str(total), "")
            page.table([head, *shares], right=(False, True, True), styles=("bold", "", ""))
    rows = {name: score.tally(dtype, name) for name in GROUPS}
    rows["all"] = score.tally(dtype, *GROUPS)
    lines: list[tuple[str, ...]] = [(dtype, "mutants", "killed", "named first", "among three")]
    lines += [(name, *_counts(tally)) for name, tally in rows.items() if tally.total]
    if limited := sum(t.killed and t.limited for t in score.of(dtype, *score.useful, *GROUPS)):
        page.print(f"killed by a limit alone: {limited}")
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
        "explained": {
            dtype: {group: dict(score.explained(dtype, group)) for group in USEFUL} for dtype in score.dtypes
        },
        "trials": [_result_record(result) for result in score.results],
    }


def _result_record(result: ScoredProgram) -> dict[str, Any]:
    facts = asdict(result)
    facts |= {"killed": result.killed, "named": result.named, "explanation": result.explanation}
    return {"said": facts.pop("diagnoses"), **facts}


def _groups() -> Mapping[str, tuple[str, ...]]:
    return {**{name: (name,) for name in (*GROUPS, *USEFUL)}, "all": GROUPS}
