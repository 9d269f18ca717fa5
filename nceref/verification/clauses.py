"""Results by clause: what each group of cases tests, its strip plots, and a table with a row for each case."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby

from nceref.cases.corpus.clauses import CLAUSES, Clause, clause_of
from nceref.cases.expected_failures import FAILING
from nceref.cases.judge import of_bound
from nceref.cases.records import Result
from nceref.output.layout import Span
from nceref.output.pages import Entry, Page
from nceref.output.strip_plot import Axes, Mark, axes_of, power, strip_plot
from nceref.output.words import counted, out_of
from nceref.verification.report_data import ReportData

MARKS = {
    "pass": ("green", "✓", "passes"),
    "fail": ("red", "✕", "fails"),
    "error": ("red", "!", "could not be run"),
    "xpass": ("red", "✕", "passes, though it was expected to fail"),
    "xfail": ("yellow", "○", "fails as expected"),
    "skip": ("dim", "–", "not judged"),
    "inconclusive": ("dim", "?", "says nothing"),
}
"""A color, a mark, and a word, by status; the color alone says nothing."""
OTHER = Clause("other", "Other cases", "Cases that are not of the corpus.")


@dataclass(frozen=True, eq=False)
class CaseResults:
    """The results of one case in one run that were compared with the reference."""

    case: str
    run: str
    clause: Clause
    geometry: str
    temperature: float | None
    results: tuple[Result, ...]

    @cached_property
    def by_quantity(self) -> Mapping[str, tuple[Result, ...]]:
        """Results by the number that they are about, ``.finite`` with it; the one that says most comes first."""
        groups: dict[str, list[Result]] = {}
        for r in self.results:
            groups.setdefault(r.quantity.removesuffix(".finite"), []).append(r)
        return {name: tuple(sorted(group, key=_weight)) for name, group in groups.items()}

    @property
    def fails(self) -> bool:
        """Whether anything fails."""
        return any(r.status in FAILING for r in self.results)

    def mark(self, quantity: str, view: "ReportPart", number: int) -> Mark | None:
        """The mark of a quantity in a strip plot; None where nothing was measured."""
        first = self.by_quantity.get(quantity, (None,))[0]
        if first is None or first.status in ("skip", "inconclusive"):
            return None
        ratio, passes = of_bound(first), first.status == "pass"
        if passes and ratio is None:
            return None
        x = float(number) if self.temperature is None else self.temperature
        words = "no finite number" if ratio is None else power(ratio)
        return Mark(x, ratio, passes, f"{self.case}: {words}", view.name(first))


@dataclass(frozen=True, eq=False)
class ReportPart:
    """A report as a part of a page.

    `prefix` begins its names, and `passes` says whether results that pass have rows.
    """

    report: ReportData
    prefix: str = ""
    passes: bool = True

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The prefixes of the ids of results, one for each run; one empty text where there is one run."""
        labels = dict.fromkeys(r.case.partition("/")[0] for r in self.report.results if "/" in r.case)
        return tuple(labels) or ("",)

    def run_of(self, result: Result) -> str:
        """The run that a result is of."""
        label = result.id.partition("/")[0]
        return label if label in self.runs else ""

    def name(self, result: Result) -> str:
        """The name that leads to a result: its id, so that a link can be written by hand."""
        return f"{self.prefix}{result.id if '/' in result.id else f'result/{result.id}'}"


def _weight(r: Result) -> tuple[bool, bool, bool]:
    return r.status not in FAILING, r.status != "xfail", r.quantity.endswith(".finite")


def is_compared(r: Result) -> bool:
    """Whether a result is about a number that the reference has."""
    return bool(r.case) and r.quantity.startswith(("value", "grad."))


def cases_of(view: ReportPart) -> list[CaseResults]:
    """The compared results by case and run, in the order of the clauses; the runs of a case follow one another."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in filter(is_compared, view.report.results):
        run = view.run_of(r)
        groups.setdefault((r.case.removeprefix(f"{run}/"), run), []).append(r)
    place = {case: number for number, case in enumerate(dict.fromkeys(case for case, _ in groups))}
    order = {geometry: number for number, geometry in enumerate(g for c in CLAUSES for g in c.geometries)}
    out = []
    for (case, run), results in groups.items():
        clause, geometry, temperature = clause_of(case)
        out.append(CaseResults(case, run, clause or OTHER, geometry, temperature, tuple(results)))
    return sorted(out, key=lambda c: (order.get(c.geometry, len(order)), place[c.case]))


def print_clauses(page: Page, view: ReportPart) -> None:
    """Print a part for each clause; clauses and cases that fail come first."""
    cases = cases_of(view)
    if not view.report.results:
        return
    page.heading("\nCases", anchor=f"{view.prefix}cases")
    if ids := [r.id for r in view.report.results if r.status in FAILING]:
        listed = Page()
        listed.grid([(id,) for id in ids], styles=("code",))
        page.folded(f"{counted(len(ids), 'id')}, as --expected-failures takes them", listed)
    # What was judged on no case has no column; it is listed with its reason.
    quantities = tuple(dict.fromkeys(
        name for c in cases for name, group in c.by_quantity.items() if group[0].status != "skip"
    ))  # fmt: skip
    numbers = {case: number for number, case in enumerate(dict.fromkeys(c.case for c in cases))}
    marks = [m for c in cases for q in quantities if (m := c.mark(q, view, numbers[c.case]))]
    axes = axes_of(marks, any(c.temperature for c in cases), len(quantities))
    stopped = _without_answer(view)
    clauses = [
        (clause, sorted(group, key=lambda c: not c.fails)) for clause, group in groupby(cases, lambda c: c.clause)
    ]
    if marks:
        page.print(*_LEGEND)
    for clause, group in sorted(clauses, key=lambda one: not (one[1][0].fails or stopped[one[0]])):
        page.heading(f"\n{clause.title}", 3, anchor=f"{view.prefix}cases-{clause.name}")
        count = stopped[clause]
        unanswered = [(f"; ✕ {counted(count, 'case')} without an answer", "red")] if count else []
        page.print(_tally(group), *unanswered)
        page.print(clause.about, style="dim")
        for run in view.runs:
            own = [c for c in group if c.run == run]
            if run and own:
                page.print(run, style="bold")
            for quantity in quantities:
                _print_figure(page, view, own, quantity, axes, numbers)
        _print_table(page, view, group, quantities)


_LEGEND = (
    "Each mark is a case: ", ("● within its bound", "green"), ", ", ("✕ beyond it", "red"), ", ",
    ("▲ not a finite number", "red"), ". The horizontal axis is the temperature, the vertical axis error / bound, and"
    " the line is the bound. Each mark links to its row.",
)  # fmt: skip


def _without_answer(view: ReportPart) -> Counter[Clause]:
    """Number of cases, by clause, that ended without an answer, as where the target raises."""
    ended = {
        r.case.removeprefix(f"{view.run_of(r)}/")
        for r in view.report.results
        if r.case and r.status == "error" and r.quantity.startswith("behavior.")
    }
    return Counter(clause_of(case)[0] or OTHER for case in ended)


def _tally(cases: Sequence[CaseResults]) -> Span:
    failing = len(dict.fromkeys(c.case for c in cases if c.fails))
    judged = len(dict.fromkeys(c.case for c in cases if any(r.status != "skip" for r in c.results)))
    if failing:
        where = _in_what(cases)
        # Without a place where something is wrong, what was expected to fail passes.
        words = f" differ{'s' * (failing == 1)}{where}" if where else ": passes, expected to fail"
        return f"✕ {out_of(failing, judged, 'case')}{words}", "red"
    if not judged:
        return "– not judged", "dim"
    most = at_most(largest([r for c in cases for r in c.results if r.status == "pass"]))
    if held := len({c.case for c in cases if any(r.status == "xfail" for r in c.results)}):
        others = f"; what else is judged agrees{most}" if most else ""
        words = f"○ {out_of(held, judged, 'case')} differ{'s' * (held == 1)} as expected{others}"
        return words, "yellow"
    return f"✓ {counted(judged, 'case')} agree{'s' * (judged == 1)}{most}", "green"


def _in_what(cases: Sequence[CaseResults]) -> str:
    """The words for how many cases have a wrong value, and how many a wrong gradient: a case may count in both."""
    wrong: dict[str, set[str]] = {"the value": set(), "a gradient": set()}
    for c in cases:
        for name, results in c.by_quantity.items():
            if any(r.status in FAILING and r.status != "xpass" for r in results):
                wrong["the value" if name == "value" else "a gradient"].add(c.case)
    return "".join(f", {what} on {len(ids)}" for what, ids in wrong.items() if ids)


def counted_results(results: Sequence[Result]) -> tuple[str, str]:
    """The color of the worst results; how many fail, or else pass, and how many do either against or as expected."""
    of = {name: [r for r in results if r.status == name] for name in ("xpass", "xfail", "pass")}
    wrong = [r for r in results if MARKS[r.status][0] == "red" and r.status != "xpass"]
    failed, surprising, held, passed = len(wrong), *map(len, of.values())
    words = []
    if failed:
        judged = failed + surprising + held + passed
        words.append(f"✕ {failed} of {judged} fail{'s' * (failed == 1)}{how_far(wrong)}")
    elif passed:
        words.append(f"✓ {passed} pass{'es' * (passed == 1)}{at_most(largest(of['pass']))}")
    if surprising:
        words.append(f"✕ {surprising} pass{'es' * (surprising == 1)}, expected to fail")
    if held:
        words.append(f"○ {held} fail{'s' * (held == 1)} as expected{how_far(of['xfail'])}")
    colors = {"red": failed + surprising, "yellow": held, "green": passed}
    return next((color for color, number in colors.items() if number), "dim"), "; ".join(words)


def at_most(ratio: float | None) -> str:
    """The largest error of several results, for the end of a sentence; nothing where nothing was measured."""
    if not ratio:
        return "" if ratio is None else ", without an error"
    return f", at most {power(ratio)} of the bound" if ratio <= 1 else f", up to {power(ratio)} times the bound"


def _print_figure(
    page: Page, view: ReportPart, cases: Sequence[CaseResults], quantity: str, axes: Axes, numbers: Mapping[str, int]
) -> None:
    """The strip plot of one quantity in one run, with its numbers in words."""
    groups = [group for c in cases if (group := c.by_quantity.get(quantity))]
    marks = [m for c in cases if (m := c.mark(quantity, view, numbers[c.case]))]
    if not marks:
        return
    color, words = counted_results([group[0] for group in groups])
    caption = (quantity_name(quantity), "bold"), (f" {words}", color)
    # Of many results, what passes is summed up in words.
    if view.passes or color == "red":
        page.figure(*caption, draw=partial(strip_plot, marks if view.passes else _few(marks, axes), axes))
    else:
        page.print(*caption)


def _few(marks: Sequence[Mark], axes: Axes) -> list[Mark]:
    """The largest error at each place, of what fails and of what passes."""
    worst: dict[tuple[int, bool], Mark] = {}
    for mark in marks:
        place = round(axes.x(mark.x) / 4), mark.passes
        if place not in worst or axes.y(mark.y) < axes.y(worst[place].y):
            worst[place] = mark
    return list(worst.values())


def quantity_name(quantity: str) -> str:
    """A quantity in words: ``gradient of z1``."""
    return quantity if not quantity.startswith("grad.") else f"gradient of {quantity.removeprefix('grad.')}"


def _print_table(page: Page, view: ReportPart, cases: Sequence[CaseResults], quantities: Sequence[str]) -> None:
    """A row for each case and run; where there are too many results, only for those in which something fails."""
    several = len(view.runs) > 1
    shown = [c for c in cases if view.passes or c.fails]
    if shown:
        inside = Page()
        inside.print("Error in units of its bound: at most 1 is right.", style="dim")
        header = ("case", *["run"] * several, *map(quantity_name, quantities))
        numbers = [n > several for n in range(len(header))]
        inside.table([_row(view, c, quantities, several) for c in shown], header=[header], right=numbers)
        page.folded(f"{counted(len({c.case for c in shown}), 'case')}, result by result", inside)
    if left_out := len(cases) - len(shown):
        page.print(f"{left_out} more without a failure are summed up above.", style="dim")


def _row(view: ReportPart, c: CaseResults, quantities: Sequence[str], several: bool) -> tuple[str, ...]:
    hidden = [r for name, group in c.by_quantity.items() if name not in quantities for r in group]
    what = c.clause.geometries.get(c.geometry, "")
    named = Entry((c.case, "code"), (f" {what}" if what else "", "dim"), anchors=map(view.name, hidden))
    return named, *[c.run] * several, *(_cell(view, c.by_quantity.get(q, ())) for q in quantities)


def _cell(view: ReportPart, results: Sequence[Result]) -> str:
    if not results:
        return ""
    first = results[0]
    color, mark, usual = MARKS[first.status]
    ratio = of_bound(first)
    number = "" if ratio is None else power(ratio)
    if first.quantity.endswith(".finite"):
        number = "finite" if first.status == "pass" else "not finite"
    bits = f"; {counted(round(first.bits), 'bit')} right" if first.bits is not None else ""
    why = [(f"\n{first.why}{bits}", "dim")] if first.status in FAILING else []
    return Entry((f"{mark} {number or usual}", color), *why, anchors=map(view.name, results))


ALONE = (
    ("behavior.", "behavior", "Behavior", "What the target did beside its answer, or in place of one."),
    ("mode.", "modes", "Ways of calling", "On a case that it gets right, the target is called in other ways."),
    ("identity.", "identities", "Identities", "What must hold between answers of the target itself."),
    ("mix.", "mix", "Two losses added up", "Whether one counts as much against the other on every number of ranks."),
    ("", "run", "The whole run", "What is of no case."),
)
"""Results without a comparison, by the beginning of their quantity: id, title and a sentence."""


def print_alone(page: Page, view: ReportPart) -> None:
    """Print a part for each kind of results that have a sentence in place of a number."""
    rest = [r for r in view.report.results if not is_compared(r)]
    for beginning, name, title, about in ALONE:
        own = [r for r in rest if r.quantity.startswith(beginning)]
        rest = [r for r in rest if not r.quantity.startswith(beginning)]
        if own:
            page.heading(f"\n{title}", 3, anchor=f"{view.prefix}cases-{name}")
            page.print(about, style="dim")
            lines = Page()
            lines.table([_line(view, group) for group in _alike(view, own)], header=[_SENTENCES])
            page.folded(counted(len(own), "result"), lines, is_open=True)


_SENTENCES = ("name", "result", "on", "what it says")


def _alike(view: ReportPart, results: Sequence[Result]) -> Iterator[list[Result]]:
    """Results in the same words are one finding; those that fail come first."""
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((view.run_of(r), r.quantity, r.status, r.why), []).append(r)
    yield from sorted(groups.values(), key=lambda group: group[0].status not in FAILING)


def _line(view: ReportPart, group: Sequence[Result]) -> tuple[str, ...]:
    first, *others = group
    color, mark, usual = MARKS[first.status]
    name = first.quantity.partition(".")[2] or first.id
    cases = first.case.rpartition("/")[2] + (f" and {len(others)} more" if others else "")
    run = view.run_of(first)
    place = f"{cases}, {run}" if run and run != cases else cases
    return Entry((name, "code"), anchors=map(view.name, group)), Entry((f"{mark} {usual}", color)), place, first.why


def largest(results: Sequence[Result]) -> float | None:
    """The largest error in units of its bound; None where nothing was measured."""
    return max((ratio for r in results if (ratio := of_bound(r)) is not None), default=None)


def how_far(results: Sequence[Result]) -> str:
    """The largest error of results that fail, for the end of a sentence; empty where nothing was measured."""
    lost, ratio = sum(r.quantity.endswith(".finite") for r in results), largest(results)
    words = [f", by up to {power(ratio)} times the bound"] if ratio is not None else []
    words += [f", {f'{lost} of them ' * (lost < len(results))}not finite"] if lost else []
    return "".join(words)


def capital(sentence: str) -> str:
    """A sentence that begins with a capital letter, unless it begins with a name, as of a file."""
    return sentence[:1].upper() + sentence[1:] if sentence.partition(" ")[0].rstrip(",:").isalpha() else sentence
