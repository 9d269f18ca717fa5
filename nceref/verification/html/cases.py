"""Results by clause: what each group of cases tests, its strip plots, and a table with a row for each case."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from nceref.cases.corpus.clauses import CLAUSES, Clause, clause_of
from nceref.cases.expected_failures import FAILING
from nceref.cases.judge import of_bound
from nceref.cases.records import Result
from nceref.output.html_elements import Markup, element, join, link, row, table
from nceref.output.strip_plot import Axes, Mark, axes_of, power, strip_plot
from nceref.output.words import counted, out_of
from nceref.verification.html.view import (
    STATUS,
    ReportView,
    capital,
    how_far,
    largest,
    status,
)

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

    def mark(self, quantity: str, view: ReportView, number: int) -> Mark | None:
        """The mark of a quantity in a strip plot; None where nothing was measured."""
        first = self.by_quantity.get(quantity, (None,))[0]
        if first is None or first.status in ("skip", "inconclusive"):
            return None
        ratio, passes = of_bound(first), first.status == "pass"
        if passes and ratio is None:
            return None
        x = float(number) if self.temperature is None else self.temperature
        words = "no finite number" if ratio is None else power(ratio)
        return Mark(x, ratio, passes, f"{self.case}: {words}", view.shown_anchor(first))


def _weight(r: Result) -> tuple[bool, bool, bool]:
    return r.status not in FAILING, r.status != "xfail", r.quantity.endswith(".finite")


def is_compared(r: Result) -> bool:
    """Whether a result is about a number that the reference has."""
    return bool(r.case) and r.quantity.startswith(("value", "grad."))


def cases_of(view: ReportView) -> list[CaseResults]:
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


def compared(view: ReportView) -> Iterator[Markup]:
    """A section for each clause; clauses and cases that fail come first."""
    cases = cases_of(view)
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
    for clause, group in sorted(clauses, key=lambda one: not (one[1][0].fails or stopped[one[0]])):
        yield _clause(view, clause, group, quantities, axes, numbers, stopped[clause])


def _without_answer(view: ReportView) -> Counter[Clause]:
    """Number of cases, by clause, that ended without an answer, as where the target raises."""
    ended = {
        r.case.removeprefix(f"{view.run_of(r)}/")
        for r in view.report.results
        if r.case and r.status == "error" and r.quantity.startswith("behavior.")
    }
    return Counter(clause_of(case)[0] or OTHER for case in ended)


def _clause(
    view: ReportView,
    clause: Clause,
    cases: Sequence[CaseResults],
    quantities: Sequence[str],
    axes: Axes,
    numbers: Mapping[str, int],
    stopped: int,
) -> Markup:
    # The table first: a mark links only to what has a row.
    results = _table(view, cases, quantities)
    plots = []
    for run in view.runs:
        own = [c for c in cases if c.run == run]
        figures = [f for q in quantities if (f := _figure(view, own, q, axes, numbers))]
        if figures:
            plots.append(element("div", element("p", run, class_="run") if run else None, figures, class_="plots"))
    anchor = view.anchor(f"cases-{clause.name}")
    unanswered = (
        element("span", f" ✕ {counted(stopped, 'case')} without an answer", class_="tag fail") if stopped else None
    )
    title = view.heading(2, clause.title, " ", _tally(cases), unanswered, id=anchor)
    about = element("p", clause.about, class_="dim")
    return element("section", title, about, plots, _example(view, cases), results, aria_labelledby=anchor)


def _tally(cases: Sequence[CaseResults]) -> Markup:
    failing = len(dict.fromkeys(c.case for c in cases if c.fails))
    judged = len(dict.fromkeys(c.case for c in cases if any(r.status != "skip" for r in c.results)))
    if failing:
        where = _in_what(cases)
        # Without a place where something is wrong, what was expected to fail passes.
        words = f" differ{'s' * (failing == 1)}{where}" if where else ": passes, expected to fail"
        return element("span", f"✕ {out_of(failing, judged, 'case')}{words}", class_="tag fail")
    if not judged:
        return element("span", "– not judged", class_="tag skip")
    most = at_most(largest([r for c in cases for r in c.results if r.status == "pass"]))
    if held := len({c.case for c in cases if any(r.status == "xfail" for r in c.results)}):
        others = f"; what else is judged agrees{most}" if most else ""
        words = f"○ {out_of(held, judged, 'case')} differ{'s' * (held == 1)} as expected{others}"
        return element("span", words, class_="tag held")
    return element("span", f"✓ {counted(judged, 'case')} agree{'s' * (judged == 1)}{most}", class_="tag pass")


def _in_what(cases: Sequence[CaseResults]) -> str:
    """The words for how many cases have a wrong value, and how many a wrong gradient: a case may count in both."""
    wrong: dict[str, set[str]] = {"the value": set(), "a gradient": set()}
    for c in cases:
        for name, results in c.by_quantity.items():
            if any(r.status in FAILING and r.status != "xpass" for r in results):
                wrong["the value" if name == "value" else "a gradient"].add(c.case)
    return "".join(f", {what} on {len(ids)}" for what, ids in wrong.items() if ids)


def counted_results(results: Sequence[Result]) -> tuple[str, str]:
    """The kind of the worst results; how many fail, or else pass, and how many do either against or as expected."""
    of = {name: [r for r in results if r.status == name] for name in ("xpass", "xfail", "pass")}
    wrong = [r for r in results if STATUS[r.status][0] == "fail" and r.status != "xpass"]
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
    kinds = {"fail": failed + surprising, "held": held, "pass": passed}
    return next((kind for kind, number in kinds.items() if number), "skip"), "; ".join(words)


def at_most(ratio: float | None) -> str:
    """The largest error of several results, for the end of a sentence; nothing where nothing was measured."""
    if not ratio:
        return "" if ratio is None else ", without an error"
    return f", at most {power(ratio)} of the bound" if ratio <= 1 else f", up to {power(ratio)} times the bound"


def _figure(
    view: ReportView, cases: Sequence[CaseResults], quantity: str, axes: Axes, numbers: Mapping[str, int]
) -> Markup | None:
    """The strip plot of one quantity in one run, with its numbers in words."""
    groups = [group for c in cases if (group := c.by_quantity.get(quantity))]
    marks = [m for c in cases if (m := c.mark(quantity, view, numbers[c.case]))]
    if not marks:
        return None
    kind, words = counted_results([group[0] for group in groups])
    shown = marks if view.detail.passes else _few(marks, axes)
    # Of many results, what passes is summed up in words.
    drawn = view.detail.pictures and (view.detail.passes or kind == "fail")
    picture = strip_plot(shown, axes) if drawn else None
    caption = (
        element("strong", quantity_name(quantity)),
        " ",
        element("span", words, class_=kind),
    )
    return element("figure", element("figcaption", caption), picture)


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


def _example(view: ReportView, cases: Sequence[CaseResults]) -> Markup | None:
    """The first failure of a clause, in numbers."""
    r = next((r for c in cases for group in c.by_quantity.values() for r in group if r.status in FAILING), None)
    if r is None:
        return None
    anchor = view.shown_anchor(r)
    named = link(anchor, r.id) if anchor else element("span", r.id)
    return element("p", "For instance ", named, ": ", view.cut(r.why), ".", class_="example")


def _table(view: ReportView, cases: Sequence[CaseResults], quantities: Sequence[str]) -> Markup:
    """A row for each case and run; where there are too many results, only for those in which something fails."""
    several = len(view.runs) > 1
    shown = [c for c in cases if view.detail.passes or c.fails]
    left_out = len(cases) - len(shown)
    rows, cut = shown[: view.detail.rows], len(shown[view.detail.rows :])
    bodies = []
    for _, group in groupby(rows, key=lambda c: c.case):
        members = list(group)
        bodies.append(
            element("tbody", [_row(view, c, quantities, n, len(members), several) for n, c in enumerate(members)])
        )
    header = ["case", *["run"] * several, *map(quantity_name, quantities)]
    words = [f"{left_out} more without a failure are summed up above" if left_out else "",
             f"{cut} more do not fit in; --json FILE has all" if cut else ""]  # fmt: skip
    note = "; ".join(filter(None, words))
    after = element("p", f"{capital(note)}.", class_="dim") if note else None
    if not rows:
        return join([after])
    caption = "Error in units of its bound: at most 1 is right."
    summary = element("summary", f"{counted(len(bodies), 'case')}, result by result")
    return element("details", summary, table(header, bodies, caption), after)


def _row(view: ReportView, c: CaseResults, quantities: Sequence[str], place: int, runs: int, several: bool) -> Markup:
    shown = {q: c.by_quantity[q] for q in quantities if q in c.by_quantity}
    hidden = [r for name, group in c.by_quantity.items() if name not in shown for r in group]
    spans = [element("span", id=view.result_anchor(r)) for r in hidden]
    what = c.clause.geometries.get(c.geometry, "")
    named = element("code", c.case), element("span", f" {what}", class_="dim") if what else None
    # The case stands once, beside all of its runs.
    span = {"scope": "rowgroup", "rowspan": runs} if runs > 1 else {"scope": "row"}
    head = element("th", None if several else spans, named, **span) if place == 0 else None
    return element(
        "tr",
        head,
        element("td", c.run, spans) if several else None,
        [_cell(view, shown.get(q, ())) for q in quantities],
    )


def _cell(view: ReportView, results: Sequence[Result]) -> Markup:
    if not results:
        return element("td")
    first, *others = results
    ratio = of_bound(first)
    number = "" if ratio is None else power(ratio)
    if first.quantity.endswith(".finite"):
        number = "finite" if first.status == "pass" else "not finite"
    ids = [element("span", id=view.result_anchor(r)) for r in others]
    if first.status not in FAILING:
        return element("td", ids, status(first, number), id=view.result_anchor(first))
    why = view.cut(first.why), f"; {counted(round(first.bits), 'bit')} right" if first.bits is not None else None
    named = [element("code", r.id, class_="id") for r in results if r.status in FAILING]
    shown = element("span", why, class_="why")
    return element("td", ids, status(first, number), shown, named, id=view.result_anchor(first))


ALONE = (
    ("behavior.", "behavior", "Behavior", "What the target did beside its answer, or in place of one."),
    ("mode.", "modes", "Ways of calling", "On a case that it gets right, the target is called in other ways."),
    ("identity.", "identities", "Identities", "What must hold between answers of the target itself."),
    ("mix.", "mix", "Two losses added up", "Whether one counts as much against the other on every number of ranks."),
    ("", "run", "The whole run", "What is of no case."),
)
"""Results without a comparison, by the beginning of their quantity: id, title and a sentence."""


def alone(view: ReportView) -> Iterator[Markup]:
    """A section for each kind of results that have a sentence in place of a number."""
    rest = [r for r in view.report.results if not is_compared(r)]
    for beginning, name, title, about in ALONE:
        own = [r for r in rest if r.quantity.startswith(beginning)]
        rest = [r for r in rest if not r.quantity.startswith(beginning)]
        if own:
            lines = list(_alike(view, own))
            rows = [_line(view, group) for group in lines[: view.detail.rows]]
            cut = len(lines) - len(rows)
            after = element("p", f"{cut} more do not fit in; --json FILE has all.", class_="dim") if cut else None
            shown = table(("name", "result", "on", "what it says"), rows, class_="words")
            yield view.section(f"cases-{name}", title, element("p", about, class_="dim"), shown, after, below=2)


def _alike(view: ReportView, results: Sequence[Result]) -> Iterator[list[Result]]:
    """Results in the same words are one finding; those that fail come first."""
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((view.run_of(r), r.quantity, r.status, r.why), []).append(r)
    yield from sorted(groups.values(), key=lambda group: group[0].status not in FAILING)


def _line(view: ReportView, group: Sequence[Result]) -> Markup:
    first, *others = group
    ids = [element("span", id=view.result_anchor(r)) for r in others[: view.detail.rows]]
    name = first.quantity.partition(".")[2] or first.id
    cases = first.case.rpartition("/")[2] + (f" and {len(others)} more" if others else "")
    run = view.run_of(first)
    place = f"{cases}, {run}" if run and run != cases else cases
    words = [view.cut(first.why)]
    if first.status in FAILING:
        # What is written into --expected-failures, character for character.
        listed = [element("code", r.id, class_="id") for r in group[: view.detail.rows]]
        words += [element("details", element("summary", counted(len(group), "id")), listed) if others else listed[0]]
    return row([ids, element("code", name)], status(first), place, words, id=view.result_anchor(first))
