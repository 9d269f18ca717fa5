"""The first screen of a report: the verdict, what is wrong, what to change, and how to repeat the run."""

import shlex
from collections.abc import Iterator

from nceref.cases.expected_failures import FAILING
from nceref.cases.records import Diagnosis
from nceref.losses import all_losses
from nceref.output.html_elements import Markup, element, join, link_of, unbroken
from nceref.output.mathml import formula
from nceref.output.strip_plot import power
from nceref.verification.html.view import ReportView, capital, largest
from nceref.verification.page import EFFECT, IF_MEANT
from nceref.verification.report_data import ReportData
from nceref.verification.several_runs import training_lines

VERDICTS = {
    "conforms": ("pass", "✓", "to"),
    "value-only": ("pass", "✓", "against"),
    "differs": ("fail", "✕", "from"),
    "inconclusive": ("held", "?", "against"),
    "error": ("fail", "!", "not judged against"),
}
"""The kind of color, a mark, and the word before the name of the loss, by verdict."""


def verdict_heading(view: ReportView, anchor: str) -> Markup:
    """The verdict, in a mark and in words."""
    report = view.report
    kind, mark, word = VERDICTS[report.verdict]
    badge = element("span", element("span", mark, aria_hidden="true"), f" {report.verdict}", class_=f"badge {kind}")
    named = (word, " ", element("code", report.loss)) if report.loss else report.target
    return view.heading(0, badge, " ", element("span", named), id=anchor, class_="verdict")


def first_screen(view: ReportView) -> Markup:
    """Verdict, first explanation, what to change, the command; beside it what was compared."""
    report, anchor = view.report, view.verdict
    subject = element("p", element("code", report.target), class_="subject")
    main = (subject, verdict_heading(view, anchor), element("p", capital(report.reason), class_="reason"))
    columns = element("div", element("div", *_finding(view), class_="finding"), _facts(view), class_="columns")
    return element("section", main, columns, aria_labelledby=anchor, class_="first")


def _finding(view: ReportView) -> Iterator[Markup]:
    report = view.report
    if report.diagnosis:
        first = [d for d in report.diagnosis if d.first]
        yield view.section("diagnosis", "What is wrong", *(element("div", *explanation(d)) for d in first))
        if fixes := dict.fromkeys(d.fix for d in first if d.fix):
            yield view.section("fix", "Fix", *(element("p", fix, class_="fix") for fix in fixes))
    elif report.verdict in ("conforms", "value-only"):
        yield view.section("looked-at", "Tested", *_looked_at(view))
    if report.limits:
        yield view.section("limits", "Limits", *(element("div", *explanation(d)) for d in report.limits))
    yield from search_ended(report)
    yield from _repeat(view)


def search_ended(report: ReportData) -> Iterator[Markup]:
    """The sentence about an early end of the search for an explanation, if it had one."""
    if words := report.search.get("sentence"):
        yield element("p", f"{capital(str(words))}.")


def _looked_at(view: ReportView) -> Iterator[Markup]:
    for line in view.report.scope.lines():
        yield element("p", f"{capital(line)}.")
    judged = [r for r in view.report.results if r.status == "pass" and not r.quantity.startswith("identity.")]
    if (ratio := largest(judged)) is not None:
        yield element(
            "p",
            "The largest error is ",
            element("strong", power(ratio)),
            " of its bound; up to 1 it is right.",
        )
    if view.report.verdict == "value-only":
        yield element("p", _GRADIENTS)


_GRADIENTS = (
    "To have gradients judged too: they come from PyTorch or JAX, or from a NumPy target that returns"
    " (value, {input: gradient})."
)


def explanation(diagnosis: Diagnosis) -> Iterator[Markup]:
    """An explanation: what is wrong first; its formula beside that of the reference; where it was seen."""
    lead, where = diagnosis.lead, f"{diagnosis.where} " * bool(diagnosis.where)
    beside = element("span", ", ", unbroken(lead.cases), class_="dim") if lead.cases else None
    yield element("p", element("strong", unbroken(capital(f"{where}{lead.text}"))), beside, ".", class_="lead")
    if others := [s for s in diagnosis.parts if s is not lead]:
        yield element("ul", [element("li", unbroken(f"{capital(str(each))}.")) for each in others])
    if diagnosis.formula:
        pairs = (("yours", diagnosis.formula), ("reference", diagnosis.reference))
        terms = [(element("dt", name), element("dd", formula(text))) for name, text in pairs if text]
        yield element("dl", terms, class_="formulas")
    named = [element("code", diagnosis.id)]
    if diagnosis.threads:
        named += [Markup(" reported in "), join(map(link_of, diagnosis.threads), ", ")]
    yield element("p", *named, class_="dim small")
    if diagnosis.intend:
        yield element("p", f"{capital(IF_MEANT)}: ", element("code", diagnosis.intend), class_="small")


def _repeat(view: ReportView) -> Iterator[Markup]:
    command = view.report.command
    if not command:
        return
    lines = [_shown_command(command)]
    is_whole = not (view.report.scope.recorded or " --case " in command or command.endswith(")"))
    for words, statuses in (("One failing case alone:", FAILING - {"error"}), ("One without an answer:", {"error"})):
        failing = (r.case.rpartition("/")[2] for r in view.report.results if r.status in statuses and "-" in r.case)
        case = next(failing, "")
        if case and is_whole:
            alone = f"{command} --case {shlex.quote(case)}"
            lines += [element("p", words, class_="dim"), _shown_command(alone)]
    yield view.section("repeat", "Run it again", *lines)


def _shown_command(command: str) -> Markup:
    """A command whose lines break between words alone."""
    words = join([element("span", word) for word in command.split(" ")], " ")
    return element("pre", element("code", words), class_="command")


def _facts(view: ReportView) -> Markup:
    """The table of facts about the comparison: target, reference, formula, settings, cases."""
    report, about = view.report, view.report.environment
    declared = all_losses().get(report.loss)
    settings = ", ".join(f"{name}={'given' if x is ... else x}" for name, x in report.settings.items())
    over = view.report.shared_by
    ranks = f", value={about['value']}, sync={about['sync']} over {over}" if over else ""
    how = ", ".join(str(about[key]) for key in ("framework", "dtype", "device") if about.get(key))
    runs = f" in {len(view.runs)} runs" * (len(view.runs) > 1)
    facts = {
        "Target": element("code", report.target),
        "Reference": join([element("code", report.loss), f": {declared.declaration.summary}" if declared else ""]),
        "Formula": formula(declared.declaration.text) if declared else None,
        "Held to": settings,
        "Arguments": about.get("arguments"),
        "Run": f"{how}{ranks}",
        "Ranks": about.get("ranks"),
        "Steps": about.get("steps"),
        "Cases": f"{report.scope.cases} judged{runs}, suite {about.get('suite', '')}" if report.scope.cases else None,
        "Recorded in": about.get("recorded"),
        "Isolated by": about.get("isolation"),
        "Contained": about.get("containment"),
    }
    terms = [(element("dt", name), element("dd", value)) for name, value in facts.items() if value]
    anchor = view.anchor("compared")
    return element(
        "aside", view.heading(1, "What was compared", id=anchor), element("dl", terms), aria_labelledby=anchor
    )


def further_findings(view: ReportView) -> Iterator[Markup]:
    """The sections about the effect on training and the other explanations."""
    if lines := list(training_lines(view.report.training)):
        effects = (element("p", unbroken(f"{capital(line)}.")) for line in lines)
        yield view.section("training", capital(EFFECT), *effects)
    if others := [d for d in view.report.diagnosis if not d.first]:
        parts = [(*explanation(d), element("p", element("strong", "Fix: "), d.fix) if d.fix else None)
                 for d in others]  # fmt: skip
        articles = [element("div", *part, class_="card") for part in parts]
        yield view.section("also", "Also measured, or another explanation", *articles)
