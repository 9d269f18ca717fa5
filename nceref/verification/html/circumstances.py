"""The rest of a report: results summed by quantity, what was not judged, the verifier's test of itself, versions."""

from collections.abc import Iterator, Mapping, Sequence

from nceref.cases.expected_failures import FAILING
from nceref.cases.records import Result
from nceref.output.html_elements import Markup, element, escape, row, table
from nceref.output.strip_plot import power
from nceref.output.words import counted
from nceref.verification.html.cases import cases_of, counted_results, is_compared, quantity_name
from nceref.verification.html.view import STATUS, ReportView, capital
from nceref.verification.page import skips

LONGEST_SCRIPT = 100_000
"""Characters of a script that are shown."""


def summary(view: ReportView) -> Iterator[Markup]:
    """The section of all results in short."""
    if view.report.results:
        yield view.section("summary", "Summary of results", quantities(view))


def quantities(view: ReportView) -> Markup:
    """A row for each quantity, a column for each run; what fails comes first."""
    groups = sorted(_groups(view).items(), key=lambda one: not any(r.status in FAILING for r in one[1]))
    rows = [row(name, *[_sum([r for r in group if view.run_of(r) == run]) for run in view.runs])
            for name, group in groups[: view.detail.rows]]  # fmt: skip
    return table(("quantity", *[run or "result" for run in view.runs]), rows, _HOW_TO_READ)


_HOW_TO_READ = (
    "Each number is compared with the reference. Errors are in units of the bound, which is the largest error that"
    " rounding can cause in a correct program on that case. Above 1 the number is wrong."
)
_KINDS = {"mode": "ways of calling", "identity": "identities", "behavior": "behavior", "mix": "two losses added up"}


def _groups(view: ReportView) -> dict[str, list[Result]]:
    """One result of each case for each quantity that is compared; the others by what they are about."""
    groups: dict[str, list[Result]] = {}
    for case in cases_of(view):
        for name, results in case.by_quantity.items():
            groups.setdefault(quantity_name(name), []).append(results[0])
    for r in view.report.results:
        if not is_compared(r):
            groups.setdefault(_KINDS.get(r.quantity.partition(".")[0], r.quantity), []).append(r)
    return groups


def _sum(results: Sequence[Result]) -> Markup:
    kind, words = counted_results(results)
    unjudged = sum(STATUS[r.status][0] == "skip" for r in results)
    parts = [
        element("span", words, class_=kind) if words else None,
        element("span", f"– {unjudged} not judged", class_="skip") if unjudged else None,
    ]
    return element("span", parts, class_="sum")


def not_judged(view: ReportView) -> Iterator[Markup]:
    """The section about results that were skipped, with reasons, and about the scope of the verdict."""
    report = view.report
    reasons = list(skips(report.results))
    items = [element("li", element("strong", _names(names)), ": ", view.cut(why)) for why, names in reasons]
    items = items[: view.detail.rows]
    if cut := len(reasons) - len(items):
        items.append(element("li", f"{cut} more do not fit in; --json FILE has all"))
    scope = [f"{capital(line)}." for line in report.scope.lines()] if report.scope.cases else []
    if items or scope:
        lines = [element("p", line) for line in scope]
        yield view.section("not-judged", "What was not judged", element("ul", items) if items else None, *lines)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(map(quantity_name, names[:6])) + more


RESULTS = {
    "caught": ("pass", "✓ caught"),
    "survived": ("fail", "✕ passed: the verifier is broken"),
    "unseen": ("held", "? no case would catch it"),
    "lost": ("held", "? lost"),
}


def self_test(view: ReportView) -> Iterator[Markup]:
    """The wrong answers that the verifier gave to itself, and whether it noticed."""
    trials = view.report.self_test
    # Where no case was judged, none could have shown anything.
    if not any(trial["result"] != "unseen" or view.report.verdict != "error" for trial in trials):
        return
    with_why = any(trial["why"] for trial in trials)
    rows = []
    for trial in trials:
        kind, words = RESULTS.get(trial["result"], ("held", trial["result"]))
        where = ", ".join(filter(None, (trial["case"], trial["run"])))
        cells = [element("span", words, class_=kind), where, *[trial["why"]] * with_why]
        rows.append(row(trial["sentence"], *cells))
    about = (
        "The verifier tests itself in every run: wrong answers, made from the right ones, take the path of the target's"
        " answers. Each must be rejected, or the verdict would mean nothing."
    )
    header = ("wrong answer", "result", "on", *["why"] * with_why)
    yield view.section("self-test", "Would a wrong answer have been noticed?", element("p", about), table(header, rows))


def environment(view: ReportView) -> Iterator[Markup]:
    """Versions, and how the target was called."""
    about: Mapping[str, object] = view.report.environment
    if about:
        terms = [(element("dt", name), element("dd", _value(x))) for name, x in about.items() if x not in ("", None)]
        yield view.section("environment", "Environment", element("dl", terms, class_="wide"))
    if view.report.terms:
        lines = [row(element("code", case), ", ".join(f"{name} {power(size)}" for name, size in terms.items()))
                 for case, terms in list(view.report.terms.items())[: view.detail.rows]]  # fmt: skip
        shown = element("details", element("summary", counted(len(lines), "case")), table(("case", "terms"), lines))
        yield view.section("bounds", "What the bound of the value is made of", shown)


def _value(thing: object) -> str:
    if isinstance(thing, Mapping):
        return ", ".join(f"{name}: {x}" for name, x in thing.items())
    return ", ".join(map(str, thing)) if isinstance(thing, list | tuple) else str(thing)


def script(view: ReportView) -> Iterator[Markup]:
    """The script that shows the smallest failure by itself."""
    if view.report.repro:
        code = element("pre", element("code", escape(view.report.repro, LONGEST_SCRIPT)), tabindex="0")
        shown = element("details", element("summary", "The smallest failing input, as a stand-alone script"), code)
        yield view.section("script", "A script of it", shown)
