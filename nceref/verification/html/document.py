"""Reports as one HTML file: the whole of one report, or an overview and below it each of several; and a short form."""

from collections.abc import Iterable, Iterator, Sequence

from nceref.output.html_elements import Anchors, Markup, document, element, join, link, row, table
from nceref.verification.html import cases, circumstances
from nceref.verification.html.findings import VERDICTS, explanation, first_screen, further_findings, search_ended
from nceref.verification.html.view import Detail, ReportView, capital
from nceref.verification.page import EFFECT
from nceref.verification.report_data import ReportData
from nceref.verification.several_runs import training_lines

MANY = 2000
"""Number of results above which those that pass are summed by clause."""
LARGEST = 1_000_000
"""Bytes that a document stays below."""
DETAILS = ((2000, 600), (150, 300), (40, 200), (8, 100), (2, 100), (0, 60))
"""Rows of each table, and characters of each sentence: the first that fits; of many results, from the second on.

Without rows there are the first screens alone.
"""


def html_of(reports: Sequence[ReportData], title: str = "", notes: Iterable[str] = ()) -> str:
    """One self-contained document of less than `LARGEST` bytes, readable without JavaScript.

    Several reports get an overview, with a sentence of `notes` for each. The title is by default the verdict and the
    target of the first report. All text of targets is escaped.
    """
    notes = list(notes) or [""] * len(reports)
    passes = sum(len(report.results) for report in reports) <= MANY
    text = ""
    for rows, letters in DETAILS[not passes :]:
        text = _document(reports, title, notes, Detail(rows, letters, passes))
        if len(text.encode()) < LARGEST:
            break
    return text


def _document(reports: Sequence[ReportData], title: str, notes: Sequence[str], detail: Detail) -> str:
    anchors = Anchors()
    anchors.new("main")
    if len(reports) == 1:
        report = reports[0]
        named = title or f"{report.verdict.upper()}: {report.target} against {report.loss}"
        body = list(_parts(ReportView(report, anchors, detail)))
        links = [link(anchor, words) for anchor, words in SECTIONS if any(f'id="{anchor}"' in part for part in body)]
        return document(named, join(body), links)
    return document(title or "Reports", join(_several(reports, title, notes, anchors, detail)))


SECTIONS = (
    ("summary", "Results"),
    ("cases", "Cases"),
    ("not-judged", "Not judged"),
    ("self-test", "Self-test"),
    ("environment", "Environment"),
    ("script", "Script"),
)
"""Ids of the sections that the navigation links to, where they are there, and what it calls them."""


def _parts(view: ReportView) -> Iterator[Markup]:
    yield first_screen(view)
    if not view.detail.rows:
        return
    yield from further_findings(view)
    yield from circumstances.summary(view)
    clauses = [*cases.compared(view), *cases.alone(view)]
    if clauses:
        legend = element("p", _LEGEND) if any("<svg" in clause for clause in clauses) else None
        yield view.section("cases", "Cases, by what they test", legend, *clauses)
    yield from circumstances.not_judged(view)
    yield from circumstances.self_test(view)
    yield from circumstances.environment(view)
    yield from circumstances.script(view)


_LEGEND = Markup(
    'Each mark is a case: <span class="pass">● within its bound</span>, <span class="fail">✕ beyond it</span>,'
    ' <span class="fail">▲ not a finite number</span>. The horizontal axis is the temperature, the vertical axis'
    " error / bound, and the line is the bound. Each mark links to its row."
)


def _several(
    reports: Sequence[ReportData], title: str, notes: Sequence[str], anchors: Anchors, detail: Detail
) -> Iterator[Markup]:
    """An overview, and below it each report; those that fail come first."""
    rows: list[Markup] = []
    articles: list[Markup] = []
    order = {"fail": 0, "held": 1}
    pairs = sorted(zip(reports, notes, strict=True), key=lambda pair: order.get(VERDICTS[pair[0].verdict][0], 2))
    for report, note in pairs:
        view = ReportView(report, anchors, detail, f"{len(articles) + 1}/", level=2)
        articles.append(element("article", *_parts(view)))
        kind, mark, _ = VERDICTS[report.verdict]
        named = link(view.verdict, report.target)
        verdict = element("span", f"{mark} {report.verdict}", class_=kind)
        first = " or ".join(d.id for d in report.diagnosis)
        rows.append(row(named, element("code", report.loss), report.environment.get("dtype", ""), verdict, first, note))
    yield element("h1", title or "Reports", id=anchors.new("overview"))
    yield table(("target", "reference", "format", "verdict", "first explanation", "note"), rows)
    yield from articles


def short_html(report: ReportData) -> str:
    """The outcome in a few lines, for a notebook."""
    view = ReportView(report, Anchors(), Detail(40, 300))
    _, mark, _ = VERDICTS[report.verdict]
    first = element("p", element("strong", f"{mark} {report.verdict.upper()}"), f": {report.reason}")
    explained = [(*explanation(d), element("p", element("strong", "Fix: "), d.fix) if d.fix else None)
             for d in report.diagnosis if d.first]  # fmt: skip
    effect = [
        element("p", element("strong", f"{capital(EFFECT)}: "), line, ".") for line in training_lines(report.training)
    ]
    many = element("summary", f"{len(report.results)} results")
    more = element("details", many, circumstances.quantities(view)) if report.results else None
    return element("div", first, *explained, *search_ended(report), effect, more, class_="nceref")
