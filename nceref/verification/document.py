"""Reports as one page with every result, which is an HTML file: of one report, or of several with an overview."""

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote

from nceref.cases.expected_failures import FAILING
from nceref.cases.records import Diagnosis
from nceref.losses import all_losses
from nceref.output.formats.html import fragment, html
from nceref.output.pages import GAP, Entry, Page
from nceref.verification import page as layout
from nceref.verification.clauses import ReportPart, capital, print_alone, print_clauses
from nceref.verification.page import EFFECT, IF_MEANT
from nceref.verification.report_data import ReportData
from nceref.verification.several_runs import training_lines

MANY = 2000
"""Number of results above which those that pass are summed by clause."""
LARGEST = 1_000_000
"""Bytes that a document stays below."""
_MARKS = {"conforms": "✓", "value-only": "✓", "differs": "✕", "inconclusive": "?", "error": "!"}
"""Marks of verdicts, beside the color."""


def html_of(reports: Sequence[ReportData], title: str = "", notes: Iterable[str] = ()) -> str:
    """One self-contained document of less than `LARGEST` bytes, readable without JavaScript.

    Several reports get an overview, with a sentence of `notes` for each. The title is by default the verdict and the
    target of the first report. All text of targets is escaped.
    """
    if len(reports) == 1:
        report = reports[0]
        named = title or f"{report.verdict.upper()}: {report.target} against {report.loss}"
        return html(whole_page(report).blocks, LARGEST, named)
    return html(several(reports, title or "Reports", list(notes)).blocks, LARGEST)


def several(reports: Sequence[ReportData], title: str, notes: Sequence[str] = ()) -> Page:
    """An overview, and below it each report; those that fail come first."""
    passes = sum(len(report.results) for report in reports) <= MANY
    order = {"bold red": 0, "bold yellow": 1}
    pairs = sorted(
        zip(reports, notes or [""] * len(reports), strict=True),
        key=lambda pair: order.get(layout.COLORS[pair[0].verdict], 2),
    )
    rows, page, below = [], Page(), Page()
    for number, (report, note) in enumerate(pairs, 1):
        verdict = f"{_MARKS[report.verdict]} {report.verdict}", layout.COLORS[report.verdict]
        rows.append((
            Entry((report.target, ""), to=f"{number}/verdict"), Entry((report.loss, "code")),
            str(report.environment.get("dtype", "")), Entry(verdict), " or ".join(d.id for d in report.diagnosis), note,
        ))  # fmt: skip
        below.add(whole_page(report, f"{number}/", passes=passes), levels=1)
    page.heading(title, 1)
    page.table(rows, header=[("target", "reference", "format", "verdict", "first explanation", "note")])
    page.add(below)
    return page


def whole_page(report: ReportData, prefix: str = "", passes: bool | None = None) -> Page:
    """One report with every result; `prefix` begins its names, and `passes` is that of `ReportPart`."""
    view = ReportPart(report, prefix, len(report.results) <= MANY if passes is None else passes)
    page = layout.verdict_of(report, anchor=f"{prefix}verdict")
    _print_reference(page, report)
    _print_findings(page, report)
    if lines := list(training_lines(report.training)):
        page.heading(f"\n{capital(EFFECT)}")
        page.grid([(f"{capital(line)}.",) for line in lines])
    if others := [d for d in report.diagnosis if not d.first]:
        page.heading("\nAlso measured, or another explanation")
        for diagnosis in others:
            print_explanation(page, diagnosis)
    _print_results(page, view)
    print_clauses(page, view)
    print_alone(page, view)
    _print_self_test(page, view)
    _print_environment(page, view)
    layout.print_terms(page, report.terms)
    if report.repro:
        script = Page()
        script.verbatim(report.repro)
        page.heading("\nScript", anchor=f"{prefix}script")
        page.folded("A small failing input, as a stand-alone script", script)
    return page


def _print_findings(page: Page, report: ReportData) -> None:
    """The first explanations with their remedies, the limits, and the command that repeats the run."""
    first = [d for d in report.diagnosis if d.first]
    for title, explanations in (("What is wrong", first), ("Limits", report.limits)):
        if explanations:
            page.heading(f"\n{title}")
        for diagnosis in explanations:
            print_explanation(page, diagnosis)
    if words := report.search.get("sentence"):
        page.print(f"\n{capital(str(words))}.")
    if report.verdict == "value-only":
        page.print(_GRADIENTS)
    if not report.command:
        return
    page.heading("\nRun it again")
    page.print(report.command, wrap=False)
    command = report.command
    is_whole = not (report.scope.recorded or " --case " in command or command.endswith(")"))
    for words, statuses in (("One failing case alone:", FAILING - {"error"}), ("One without an answer:", {"error"})):
        failing = (r.case.rpartition("/")[2] for r in report.results if r.status in statuses and "-" in r.case)
        case = next(failing, "")
        if case and is_whole:
            page.print(words, style="dim")
            page.print(f"{command} --case {quote(case)}", wrap=False)


_GRADIENTS = (
    "To have gradients judged too: they come from PyTorch or JAX, or from a NumPy target that returns"
    " (value, {input: gradient})."
)


def print_explanation(page: Page, diagnosis: Diagnosis) -> None:
    """An explanation: what is wrong first; its formula beside that of the reference; what to change."""
    lead, where = diagnosis.lead, f"{diagnosis.where} " * bool(diagnosis.where)
    beside = [(f", {lead.cases}", "dim")] if lead.cases else []
    page.print((capital(f"{where}{lead.text}"), "bold"), *beside, ".")
    page.grid([("-", f"{capital(str(each))}.") for each in diagnosis.parts if each is not lead], 1, indent=GAP)
    named = {IF_MEANT: (diagnosis.intend, "code"), "name": (diagnosis.id, "code")}
    layout.print_facts(page, layout.facts_of(diagnosis) | named)


def _print_results(page: Page, view: ReportPart) -> None:
    """A line for each quantity, those that fail first; what was not judged, and why; the scope of the verdict."""
    report = view.report
    if report.results:
        page.heading("\nResults", anchor=f"{view.prefix}summary")
        page.print(_HOW_TO_READ, style="dim")
        results = sorted(report.results, key=lambda r: r.status not in FAILING)
        layout.print_results(page, results, layout.runs_of(report))
    if report.scope.cases:
        page.grid([(f"{capital(line)}.",) for line in report.scope.lines()])


_HOW_TO_READ = (
    "Each number is compared with the reference. Errors are in units of the bound, which is the largest error that"
    " rounding can cause in a correct program on that case. Above 1 the number is wrong."
)
_CAUGHT = {
    "caught": ("✓ caught", "green"),
    "survived": ("✕ passed: the verifier is broken", "red"),
    "unseen": ("? no case would catch it", "yellow"),
    "lost": ("? lost", "yellow"),
}


def _print_self_test(page: Page, view: ReportPart) -> None:
    """The wrong answers that the verifier gave to itself, and whether it noticed."""
    trials = view.report.self_test
    # Where no case was judged, none could have shown anything.
    if not any(trial["result"] != "unseen" or view.report.verdict != "error" for trial in trials):
        return
    page.heading("\nSelf-test", anchor=f"{view.prefix}self-test")
    page.print(
        "Would a wrong answer have been noticed? The verifier tests itself in every run: wrong answers, made from the"
        " right ones, take the path of the target's answers. Each must be rejected, or the verdict would mean nothing."
    )
    with_why = any(trial["why"] for trial in trials)
    rows = [
        (trial["sentence"], Entry(_CAUGHT.get(trial["result"], (trial["result"], "yellow"))),
         ", ".join(filter(None, (trial["case"], trial["run"]))), *[trial["why"]] * with_why)
        for trial in trials
    ]  # fmt: skip
    page.table(rows, header=[("wrong answer", "result", "on", *["why"] * with_why)])


def _print_reference(page: Page, report: ReportData) -> None:
    """The loss that the target was compared with, and its formula."""
    if declared := all_losses().get(report.loss):
        loss = Entry((report.loss, "code"), (f": {declared.declaration.summary}", ""))
        page.print()
        layout.print_facts(page, {"reference": (loss, ""), "formula": (declared.declaration.text, "formula")})


def _print_environment(page: Page, view: ReportPart) -> None:
    """How the target was called, and versions."""
    page.heading("\nEnvironment", anchor=f"{view.prefix}environment")
    layout.print_facts(page, {name: (_value(x), "") for name, x in view.report.environment.items()})


def _value(thing: object) -> str:
    if isinstance(thing, Mapping):
        return ", ".join(f"{name}: {x}" for name, x in thing.items())
    return ", ".join(map(str, thing)) if isinstance(thing, list | tuple) else "" if thing is None else str(thing)


def short_html(report: ReportData) -> str:
    """The outcome in a few lines, for a notebook."""
    page = Page()
    page.print((f"{_MARKS[report.verdict]} {report.verdict.upper()}", "bold"), f": {report.reason}")
    for diagnosis in report.diagnosis:
        if diagnosis.first:
            print_explanation(page, diagnosis)
    if words := report.search.get("sentence"):
        page.print(f"{capital(str(words))}.")
    for line in training_lines(report.training):
        page.print((f"{capital(EFFECT)}: ", "bold"), f"{line}.")
    if report.results:
        results = Page()
        layout.print_results(results, report.results, layout.runs_of(report))
        page.folded(f"{len(report.results)} results", results)
    return fragment(page.blocks)
