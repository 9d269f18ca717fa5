"""The reports of a manifest together: page, Markdown, HTML, plain data for JSON, and a badge."""

from collections.abc import Iterator, Sequence
from typing import Any

from nceref import __version__
from nceref.output.html import element, escape
from nceref.output.markdown import escaped, markdown_table
from nceref.output.pages import Page
from nceref.output.text import harmless
from nceref.output.words import as_code, counted
from nceref.verification import report as codes
from nceref.verification.manifest.read import Manifest
from nceref.verification.manifest.run import ManifestResult, tally
from nceref.verification.several_reports import OVERVIEW, overview_line, worst
from nceref.verification.several_reports import page_of as reports_page

SCHEMA = 1
"""Of the JSON: another number stands for other keys, or another meaning of one."""


def exit_code(results: Sequence[ManifestResult]) -> int:
    """The worst of all targets."""
    return worst([result.report for result in results])


def page_of(results: Sequence[ManifestResult]) -> Page:
    """All reports, below them an overview, what fails as expected, and what in the manifest is to be changed.

    Parameters
    ----------
    results : sequence of ManifestResult

    Returns
    -------
    Page
    """
    page = reports_page([result.report for result in results], [result.entry.name for result in results])
    expected = [words for result in results for words in _as_expected(result)]
    problems = [problem for result in results for problem in result.problems]
    for lines, style in ((expected, "dim"), (problems, "red")):
        if lines:
            page.print()
            page.stack([(line,) for line in lines], styles=(style,))
    page.print(f"\n{tally(results)}", style="bold")
    return page


def _as_expected(result: ManifestResult) -> Iterator[str]:
    for id, count in result.as_expected.items():
        place = result.entry.place("expected_failures", result.entry.ids.index(id))
        fail = counted(count, "result fails", "results fail")
        yield f"{place}: {fail} as expected, {as_code(id)}: {result.entry.expected[id]}"


def markdown(results: Sequence[ManifestResult]) -> str:
    """The overview as GitHub Markdown, and below it the expected failures and what is to be changed.

    Parameters
    ----------
    results : sequence of ManifestResult

    Returns
    -------
    str
    """
    lines = []
    for result in results:
        name, loss, cases, verdict, explanation = overview_line(result.entry.name, result.report)
        formats = str(result.report.environment.get("dtype", ""))
        lines.append((_code(name), _code(loss), formats, cases, verdict, explanation))
    header = (*OVERVIEW[:2], "formats", *OVERVIEW[2:])
    table = markdown_table(header, lines, right=[False, False, False, True, False, False])
    expected = [
        f"- {_code(result.entry.name)}, {counted(count, 'result')} {_code(id)}: {_reason(result, id)}"
        for result in results
        for id, count in result.as_expected.items()
    ]
    problems = [f"- {_line(problem)}" for result in results for problem in result.problems]
    parts = [f"{tally(results)} (nceref {__version__})", "", table]
    for title, section in (("Expected failures", expected), ("To be mended", problems)):
        parts += ["", f"### {title}", "", *section] if section else []
    return "\n".join(parts) + "\n"


def _code(text: str) -> str:
    plain = harmless(" ".join(text.split())).replace("`", "'")
    return f"`{plain}`" if plain else ""


def _line(text: str) -> str:
    return escaped(harmless(" ".join(text.split())))


def _reason(result: ManifestResult, id: str) -> str:
    failure = result.entry.expected[id]
    # No other link may hide behind the word.
    plain = failure.link.startswith(("https://", "http://")) and not set(failure.link) & set(" ()<>\"'`\\\n")
    link = f" [Source]({failure.link})" if plain else f" {_line(failure.link)}" * bool(failure.link)
    return _line(failure.reason) + link


def html(manifest: Manifest, results: Sequence[ManifestResult]) -> str:
    """All reports as one HTML document, as `verify` writes it of one.

    Parameters
    ----------
    manifest : Manifest
    results : sequence of ManifestResult

    Returns
    -------
    str
    """
    from nceref.verification.html.document import html_of

    notes = ["; ".join([*_as_expected(result), *result.problems]) for result in results]
    return html_of([result.report for result in results], f"{manifest.path}: {tally(results)}", notes)


def record(manifest: Manifest, results: Sequence[ManifestResult]) -> dict[str, Any]:
    """What the JSON file holds, by `SCHEMA`.

    Parameters
    ----------
    manifest : Manifest
    results : sequence of ManifestResult

    Returns
    -------
    dict
    """
    return {
        "schema": SCHEMA,
        "nceref": __version__,
        "manifest": manifest.path,
        "exit_code": exit_code(results),
        "targets": [_target_record(result) for result in results],
    }


def _target_record(result: ManifestResult) -> dict[str, Any]:
    entry, counts = result.entry, result.as_expected
    return {
        "name": entry.name,
        "line": entry.line,
        "verdict": result.report.verdict,
        "exit_code": result.report.exit_code,
        "expected_failures": [
            {"id": id, "reason": e.reason, "link": e.link, "strict": e.strict, "failed": counts.get(id, 0)}
            for id, e in entry.expected.items()
        ],
        "problems": list(result.problems),
        "report": result.report.record(),
    }


_COLORS = {codes.CONFORMS: "#2c7a3f", codes.INCONCLUSIVE: "#8a6100", codes.TOO_LITTLE: "#8a6100"}
_HEIGHT, _LETTER, _MARGIN = 20, 7, 6


def badge(results: Sequence[ManifestResult]) -> str:
    """The outcome as a small SVG that loads nothing: ``nceref | 11 of 12 targets pass``.

    Parameters
    ----------
    results : sequence of ManifestResult

    Returns
    -------
    str
    """
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
