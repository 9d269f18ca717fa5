"""Several reports as one: the exit code of all, their record, and a page that ends with an overview."""

from collections.abc import Sequence
from typing import Any

from nceref.output.pages import Page
from nceref.verification import report as codes
from nceref.verification.report import Report
from nceref.verification.report import page_of as one_page

WORST_FIRST = (
    codes.BROKEN_CHECKER,
    codes.TARGET_FAILED,
    codes.DIFFERS,
    codes.TOO_LITTLE,
    codes.INCONCLUSIVE,
    codes.CONFORMS,
)
"""Exit codes: that of several reports is the first that one of them has."""


def is_worse(code: int, other: int) -> bool:
    """Whether an exit code comes before another one where there are several."""
    return WORST_FIRST.index(code) < WORST_FIRST.index(other)


def worst(reports: Sequence[Report]) -> int:
    """The exit code of several reports; of none, that of too little."""
    return min((report.exit_code for report in reports), key=WORST_FIRST.index, default=codes.TOO_LITTLE)


def record(reports: Sequence[Report]) -> dict[str, Any]:
    """The content of the JSON file: of one report its record, of several the exit code and all records."""
    if len(reports) == 1:
        return reports[0].record()
    return {"exit_code": worst(reports), "reports": [report.record() for report in reports]}


def page_of(reports: Sequence[Report]) -> Page:
    """The page of one or several reports; with several, an overview stands at the end."""
    page = Page()
    for report in reports:
        one_page(report, page)
        if len(reports) > 1:
            page.print()
    if len(reports) > 1:
        overview(page, [(report.target, report) for report in reports])
    return page


def overview(page: Page, named: Sequence[tuple[str, Report]]) -> None:
    """Print a line for each report, with what its target is called."""
    lines = [overview_line(*each) for each in named]
    page.table(lines, header=[OVERVIEW], right=[False, False, True, False, False])


OVERVIEW = ("target", "loss", "cases", "verdict", "explanation")


def overview_line(name: str, report: Report) -> tuple[str, str, str, str, str]:
    """A report in the columns of `OVERVIEW`; `name` is that of the target."""
    held = sum(r.status == "xfail" for r in report.results)
    known = [f"{held:,} expected"] if held and report.ok else []
    ids = dict.fromkeys(each.id for each in report.diagnosis)
    return name, report.loss, str(report.scope.cases), report.verdict, " or ".join(ids or known)
