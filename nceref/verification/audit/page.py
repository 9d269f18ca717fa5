"""The audit as a page for the terminal, and as the Markdown page `docs/audit.md`."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from nceref.output.markdown import markdown_table
from nceref.output.pages import GAP, Page
from nceref.output.words import counted
from nceref.targets.peers.peer import get
from nceref.verification.audit.audit import AGREES, KNOWN, MISSING, NEW, STALE, AuditRow
from nceref.verification.audit.known import known

_COLORS = {AGREES: "green", KNOWN: "yellow", NEW: "bold red", STALE: "bold red", MISSING: "dim"}


def page_of(rows: Iterable[AuditRow]) -> Page:
    """The audit as a page: a line for each target and dtype, below it what differs; then what is missing.

    Parameters
    ----------
    rows : iterable of AuditRow
        As `audit` returns them; those of one peer follow one another.

    Returns
    -------
    Page
    """
    rows = list(rows)
    page = Page()
    here = [row for row in rows if row.status != MISSING]
    lines = {row: (row.target, row.loss, row.dtype, _count(row), row.status) for row in here}
    widths = [max(len(line[i]) for line in lines.values()) for i in range(5)] if lines else []
    for (peer, version), group in groupby(here, key=lambda row: (row.peer, row.version)):
        page.print(f"{peer} {version}", style="bold")
        for row in group:
            page.table([lines[row]], widths=widths, styles=_COLORS, indent=GAP)
            named = [" or ".join(row.diagnosis)] if row.diagnosis else []
            page.stack([(line,) for line in (*named, *row.why)], indent=2 * GAP, styles=("dim",))
    for peer, command in dict.fromkeys((row.peer, row.why[0]) for row in rows if row.status == MISSING):
        page.grid([(peer, f"not installed: {command}")], len(peer), styles=("bold", "dim"))
    page.print(f"\n{tally(rows)}", style="bold")
    return page


def _count(row: AuditRow) -> str:
    return counted(row.cases, "case") if not row.failed else f"{row.failed} of {row.cases} differ"


def tally(rows: Iterable[AuditRow]) -> str:
    """How many targets and dtypes there are of each status: ``20 agree, 3 known, 2 missing``."""
    statuses = [row.status for row in rows]
    words = {AGREES: "agree", KNOWN: "differ as known", NEW: "new", STALE: "out of date", MISSING: "not installed"}
    return ", ".join(f"{statuses.count(status)} {word}" for status, word in words.items() if status in statuses)


def html(rows: Iterable[AuditRow]) -> str:
    """The audit as one HTML document: an overview, and below it the report of each target in each dtype.

    Parameters
    ----------
    rows : iterable of AuditRow
    """
    from nceref.verification.html.document import html_of

    rows = list(rows)
    judged = [row for row in rows if row.report is not None]
    notes = [f"{row.peer} {row.version}, {row.status}{': ' * bool(row.why)}{'; '.join(row.why)}" for row in judged]
    return html_of([row.report for row in judged], f"Released losses: {tally(rows)}", notes)


_ABOUT = """# Audit of released losses

Losses as they are released, against the reference: values and gradients on the {suite} suite, within bounds that are
computed for each case and dtype. Written by `make audit`; `nceref verify --all` judges what is installed where you are.

"agrees": every value and every gradient is within its bound. A difference need not be a bug: some are conventions.

"""


def markdown(rows: Iterable[AuditRow], suite: str = "standard") -> str:
    """The audit as a page in GitHub Markdown: a table, and below it the known differences with their links.

    Parameters
    ----------
    rows : iterable of AuditRow
        As `audit` returns them; those of one target follow one another.
    suite : str
        The suite that they were judged on.
    """
    rows = list(rows)
    dtypes = list(dict.fromkeys(row.dtype for row in rows if row.dtype))
    lines = []
    for _, group in groupby((row for row in rows if row.status != MISSING), key=lambda row: row.target):
        same = list(group)
        first, cells = same[0], {row.dtype: f"{row.status}, {_count(row)}" for row in same}
        release = f"{first.peer} {first.version}"
        lines.append([f"`{first.target}`", release, f"`{first.loss}`", *(cells.get(d, "") for d in dtypes)])
    table = markdown_table(("target", "release", "loss", *dtypes), lines)
    return _ABOUT.format(suite=suite) + "\n".join([table, "", tally(rows), "", *_differences(rows), *_absent(rows)])


def _differences(rows: Sequence[AuditRow]) -> Iterable[str]:
    """What is known of these releases, and of checkouts, which are not everywhere."""
    judged = {(row.target, row.version) for row in rows}
    here = [e for e in known() if e.ranks is None]
    entries = [e for e in here if judged & {(e.target, version) for version in ("", *e.versions)}]
    if entries:
        yield "## Known differences\n"
    for (target, reason, link), group in groupby(entries, key=lambda e: (e.target, e.reason, e.link)):
        same = list(group)
        named = "".join(dict.fromkeys(f" `{e.diagnosis}`." for e in same if e.diagnosis))
        yield f"- `{target}` ({', '.join(same[0].versions)}):{named} {reason} [Source]({link})"
        for e in same:
            yield f"  - {', '.join(e.dtypes)}: " + ", ".join(f"`{p}`" if p != "*" else "all" for p in e.results)


def _absent(rows: Sequence[AuditRow]) -> Iterable[str]:
    yield "\n## Not judged\n"
    missing = dict.fromkeys((row.peer, row.why[0]) for row in rows if row.status == MISSING)
    yield from (f"- {peer} is not installed: {command}" for peer, command in missing)
    omitted = {row.target: get(row.target)[1].omits for row in rows}
    yield from (f"- `{target}`: {what}" for target, what in omitted.items() if what)
    yield ""
