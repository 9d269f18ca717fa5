"""The reports of a manifest together: page, summary, HTML, plain data for JSON, and a badge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from nceref import __version__
from nceref.output.html_elements import element, escape
from nceref.output.pages import Entry, Page
from nceref.output.words import as_code, counted
from nceref.verification import report as codes
from nceref.verification.manifest.counts import in_words, total
from nceref.verification.manifest.read import Manifest, line_of
from nceref.verification.manifest.run import ManifestResult, tally
from nceref.verification.report import page_of as report_page
from nceref.verification.several_reports import OVERVIEW, overview, overview_line, worst

NONE: Mapping[str, str] = MappingProxyType({})
SCHEMA = 1
"""Of the JSON, which results.schema.json beside this file describes: another number stands for other keys."""


def exit_code(results: Sequence[ManifestResult]) -> int:
    """The worst of all targets."""
    return worst([result.report for result in results])


def page_of(results: Sequence[ManifestResult], apart: Mapping[str, str] = NONE, whole: bool = False) -> Page:
    """Reports of targets that do not pass, an overview, what fails as expected, and what is to be changed.

    `apart`: names of targets that are left out, each with the reason. `whole`: whether the reports of targets that pass
    are shown too.
    """
    page = Page()
    several = len(results) > 1
    passing = [each for each in results if several and not whole and each.report.ok]
    # What is to be changed is all that is known of a target that was not run: it is said once.
    unread = [each for each in results if each.problems and each.report.reason == "; ".join(each.problems)]
    for each in results:
        if each not in passing and not (several and each in unread):
            report_page(each.report, page)
            if several:
                page.print()
    if several:
        overview(page, [(result.entry.name, result.report) for result in results])
    expected = [words for result in results for words in _as_expected(result)]
    problems = [problem for each in results if several or each not in unread for problem in each.problems]
    for lines, style in ((expected, "dim"), (list(apart.values()), "dim"), (problems, "red")):
        if lines:
            page.print()
            page.stack([(line,) for line in lines], styles=(style,))
    if passing:
        page.print("\ntargets that pass are shown in one line; --only NAME shows the report of one", style="dim")
    if unjudged := sum(each.report.verdict == "value-only" for each in results):
        page.print(f"\n{counted(unjudged, 'target returns', 'targets return')} no gradients: values alone were judged")
    page.print()
    if made := _checks(results):
        page.print(made)
    page.print(tally(results), style="bold")
    return page


def _checks(results: Sequence[ManifestResult]) -> str:
    """The numbers of checks of all targets by kind, in words; empty where none was made."""
    made = total(result.checks for result in results)
    return f"checks: {in_words(made)}" if made else ""


def _as_expected(result: ManifestResult) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for id in result.as_expected:
        by_reason.setdefault(str(result.entry.expected[id]), []).append(id)
    for reason, ids in by_reason.items():
        fail = counted(sum(result.as_expected[id] for id in ids), "result fails", "results fail")
        yield f"{result.entry.place_of(ids[0])}: {fail} as expected, {', '.join(map(as_code, ids))}: {reason}"


def summary_of(results: Sequence[ManifestResult], apart: Mapping[str, str] = NONE) -> Page:
    """The overview as a page of its own, and below it the expected failures and what is to be changed.

    `apart`: names of targets that are left out, each with the reason.
    """
    page = Page()
    page.print(f"{tally(results)} (nceref {__version__})")
    if made := _checks(results):
        page.print(made)
    lines = []
    for result in results:
        name, loss, cases, verdict, explanation = overview_line(result.entry.name, result.report)
        formats = str(result.report.environment.get("dtype", ""))
        lines.append((Entry((name, "code")), Entry((loss, "code")), formats, cases, verdict, explanation))
    header = (*OVERVIEW[:2], "formats", *OVERVIEW[2:])
    page.table(lines, header=[header], right=[False, False, False, True, False, False])
    expected = [_expected(result, id) for result in results for id in result.as_expected]
    problems = [problem for result in results for problem in result.problems]
    sections = {"Expected failures": expected, "Not judged": apart.values(), "To fix": problems}
    for title, entries in sections.items():
        if entries:
            page.heading(title, 3)
            page.grid([("-", entry) for entry in entries], 1)
    return page


def _expected(result: ManifestResult, id: str) -> Entry:
    failure = result.entry.expected[id]
    diagnosis = [(failure.diagnosis, "code"), (", ", "")] if failure.diagnosis else []
    return Entry(
        (result.entry.name, "code"), (f", {counted(result.as_expected[id], 'result')} ", ""), (id, "code"), (": ", ""),
        *diagnosis, (f"{failure.reason} ", ""), (failure.link, "link"),
    )  # fmt: skip


def html(manifest: Manifest, results: Sequence[ManifestResult]) -> str:
    """All reports as one HTML document, as `verify` writes it of one."""
    from nceref.verification.document import html_of

    notes = ["; ".join([*_as_expected(result), *result.problems]) for result in results]
    return html_of([result.report for result in results], f"{manifest.path}: {tally(results)}", notes)


def record(manifest: Manifest, results: Sequence[ManifestResult], apart: Mapping[str, str] = NONE) -> dict[str, Any]:
    """The content of the JSON file, by `SCHEMA`.

    `apart`: names of targets that are left out, each with the reason.
    """
    return {
        "schema": SCHEMA,
        "nceref": __version__,
        "manifest": manifest.path,
        "exit_code": exit_code(results),
        "checks": total(result.checks for result in results),
        "targets": [_target_record(result) for result in results],
        "left_out": [{"name": name, "reason": why} for name, why in apart.items()],
    }


def _target_record(result: ManifestResult) -> dict[str, Any]:
    entry, counts = result.entry, result.as_expected
    return {
        "name": entry.name,
        "line": entry.line,
        "verdict": result.report.verdict,
        "exit_code": result.report.exit_code,
        "checks": result.checks,
        "least_checks": dict(entry.checks),
        "expected_failures": [
            {"id": id, "line": line_of(entry.place_of(id)), **asdict(failure), "failed": counts.get(id, 0)}
            for id, failure in entry.expected.items()
        ],
        "problems": list(result.problems),
        "report": result.report.record(),
    }


_COLORS = {codes.CONFORMS: "#2c7a3f", codes.INCONCLUSIVE: "#8a6100", codes.TOO_LITTLE: "#8a6100"}
_HEIGHT, _LETTER, _MARGIN = 20, 7, 6


def badge(results: Sequence[ManifestResult]) -> str:
    """The outcome as a small SVG that loads nothing: ``nceref | 11 of 12 targets pass``."""
    words = ("nceref", tally(results))
    colors = ("#444", _COLORS.get(exit_code(results), "#a8201a"))
    sizes = [_LETTER * len(text) + 2 * _MARGIN for text in words]
    parts, x = [element("title", f"{words[0]}: {words[1]}")], 0
    for text, color, size in zip(words, colors, sizes, strict=True):
        parts.append(element("rect", x=x, width=size, height=_HEIGHT, fill=color))
        at = {"x": x + _MARGIN, "y": 14, "textLength": size - 2 * _MARGIN}
        parts.append(element("text", text, **at, fill="#fff", font_family="Verdana, sans-serif", font_size=11))
        x += size
    label = escape(f"{words[0]}: {words[1]}")
    svg = element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", width=x, height=_HEIGHT, role="img", aria_label=label
    )
    return f"{svg}\n"
