"""The audit as a page for the terminal, and as it is published in `docs/audit.md`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from nceref.output.files import replace
from nceref.output.pages import GAP, Entry, Page
from nceref.output.words import as_code, counted
from nceref.targets.peers.peer import get
from nceref.verification.audit.audit import (
    AGREES,
    KNOWN,
    MISSING,
    NEW,
    STALE,
    SUITE,
    AuditRow,
    audit,
    audit_on_ranks,
    init_of,
    is_on_ranks,
    known,
    released,
)  # fmt: skip
from nceref.verification.manifest.expected_failures import listed

_COLORS = {AGREES: "green", KNOWN: "yellow", NEW: "bold red", STALE: "bold red", MISSING: "dim"}


def page_of(rows: Iterable[AuditRow]) -> Page:
    """The audit as a page: a line for each target and dtype, below it what differs; then what is missing.

    Rows of one peer must follow one another, as `audit` has them.
    """
    rows = list(rows)
    page = Page()
    here = [row for row in rows if row.status != MISSING]
    lines = {row: (row.target, row.loss, row.dtype, _count(row), row.status) for row in here}
    widths = [max(len(line[i]) for line in lines.values()) for i in range(5)] if lines else []
    for (peer, version), group in groupby(here, key=lambda row: (row.peer, row.version)):
        page.heading(f"{peer} {version}")
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
    """The count of targets and dtypes of each status: ``20 agree, 3 known, 2 missing``."""
    statuses = [row.status for row in rows]
    words = {AGREES: "agree", KNOWN: "differ as known", NEW: "new", STALE: "out of date", MISSING: "not installed"}
    return ", ".join(f"{statuses.count(status)} {word}" for status, word in words.items() if status in statuses)


def html(rows: Iterable[AuditRow]) -> str:
    """The audit as one HTML document: an overview, and below it the report of each target in each dtype."""
    from nceref.verification.document import html_of

    rows = list(rows)
    judged = [row for row in rows if row.report is not None]
    notes = [f"{row.peer} {row.version}, {row.status}{': ' * bool(row.why)}{'; '.join(row.why)}" for row in judged]
    return html_of([row.report for row in judged], f"Released losses: {tally(rows)}", notes)


_ABOUT = """\
What do released losses compute? Their values and gradients were compared with the reference on the {suite} suite,
within bounds that are computed for each case and dtype. `make audit` writes this page; `nceref verify --all` checks the
packages that you have installed.

"agrees" means that every value and every gradient is within its bound. A difference need not be a bug: some are
conventions."""


def published(rows: Iterable[AuditRow], suite: str = SUITE) -> Page:
    """The audit as it is published: a table, and below it the known differences with their links.

    `rows`: as `audit` returns them; those of one target follow one another. `suite`: that they were judged on.
    """
    rows = list(rows)
    page = Page()
    page.heading("Audit of released losses", 1)
    page.print(_ABOUT.format(suite=suite))
    dtypes = list(dict.fromkeys(row.dtype for row in rows if row.dtype))
    lines = []
    for _, group in groupby((row for row in rows if row.status != MISSING), key=lambda row: row.target):
        same = list(group)
        first, cells = same[0], {row.dtype: f"{row.status}, {_count(row)}" for row in same}
        release = f"{first.peer} {first.version}"
        lines.append((as_code(first.target), release, as_code(first.loss), *(cells.get(d, "") for d in dtypes)))
    page.table(lines, header=[("target", "release", "loss", *dtypes)])
    page.print(tally(rows))
    _print_differences(page, rows)
    page.heading("Not judged")
    missing = dict.fromkeys((row.peer, row.why[0]) for row in rows if row.status == MISSING)
    omitted = {row.target: get(row.target)[1].omits for row in rows}
    absent = [f"{peer} is not installed: {command}" for peer, command in missing]
    absent += [f"{as_code(target)}: {what}" for target, what in omitted.items() if what]
    page.grid([("-", line) for line in absent], 1)
    return page


def _versions(row: Mapping[str, Any]) -> Sequence[str]:
    """The releases that a known difference is about."""
    ((_, versions),) = row["versions"].items()
    return listed(versions)


def _print_differences(page: Page, rows: Sequence[AuditRow]) -> None:
    """The known differences of these releases, and of checkouts, which are not everywhere."""
    judged = {(row.target, row.version) for row in rows}
    here = [
        (entry.table["target"], row)
        for entry, differences in known()
        for row in differences
        if not is_on_ranks(entry)
        if judged & {(entry.table["target"], version) for version in ("", *_versions(row))}
    ]
    if here:
        page.heading("Known differences")
    for (target, reason, link), group in groupby(here, key=lambda x: (x[0], x[1]["reason"], x[1]["link"])):
        same = [row for _, row in group]
        named = "".join(dict.fromkeys(f" {as_code(row['diagnosis'])}." for row in same if "diagnosis" in row))
        lines: list[str] = [_with_link(f"{as_code(target)} ({', '.join(_versions(same[0]))}):{named} {reason}", link)]
        for row in same:
            ids = ", ".join(as_code(id) if id != "*" else "all" for id in listed(row["id"]))
            lines.append(f"In {', '.join(listed(row['dtypes']))}: {ids}.")
        page.grid([("-" * (line is lines[0]), line) for line in lines], 1)


def _with_link(text: str, url: str) -> Entry:
    return Entry((f"{text} ", ""), (url, "link"))


_ON_RANKS = """\
Which value and gradient does data-parallel training get from losses that are released for several processes? Each was
run on {ranks} processes, with gradients averaged over them, and compared with the loss of the joined batch and its
gradient: the {suite} suite in {dtypes}, and the gradient of the embeddings at temperatures around 0.15. With the
arguments of a line as `--init`, `nceref verify TARGET --init NAME=VALUE --ranks {ranks} --suite {suite}` prints the
whole report."""


def published_on_ranks(rows: Iterable[AuditRow]) -> Page:
    """Rows of targets on several ranks as a section of the page: a table, and what is known."""
    rows = [row for row in rows if row.status != MISSING]
    page = Page()
    page.heading("On several ranks")
    page.print(_ON_RANKS.format(**next(filter(is_on_ranks, released().targets)).table))
    head = ("target", "constructed with", "release", "value", "gradient", "differs by")
    lines = [
        (as_code(row.target), _init(row), f"{row.peer} {row.version}", *words_of_training(row), _named(row))
        for row in rows
    ]
    page.table(lines, header=[head])
    reasons = [
        _with_link(f"{as_code(row.target)}, {_init(row)}: {each['reason']}", each["link"])
        for row in rows
        for entry, differences in known()
        for each in differences
        if entry.name == row.entry.name and row.version in _versions(each)
    ]
    page.grid([("-", reason) for reason in reasons], 1)
    return page


def _init(row: AuditRow) -> str:
    return ", ".join(as_code(f"{name}={value}") for name, value in init_of(row.entry).items()) or "defaults"


def _named(row: AuditRow) -> str:
    words = " or ".join(map(as_code, row.diagnosis))
    return words if row.status != AGREES or words else "nothing"


_PARALLEL = 1 - 1e-6
"""Cosine from which on two gradients have one direction."""


def words_of_training(row: AuditRow) -> tuple[str, str]:
    """The value and the gradient of the embeddings that training gets, where the temperature is an ordinary one."""
    training = row.report.training
    if row.verdict == "error":
        return "", ""
    named = {id for joint in row.diagnosis for id in joint.split("+")}
    right = training.get("right", ("value", "gradient"))
    value = "right" if "value" in right else "W times the right one" if "value-times-ranks" in named else "another"
    if "gradient" in right:
        return value, "right"
    if training.get("angle") is None or training.get("length") is None:
        return value, "none"
    times = f"{_range(*training['length'])} times"
    low, high = (math.cos(math.radians(angle)) for angle in reversed(training["angle"]))
    if high > _PARALLEL and low > _PARALLEL:
        return value, f"{times} the right one"
    return value, f"cosine {_range(low, high)} with the right one, {times} its length"


def _range(low: float, high: float) -> str:
    ends = f"{low:.2g}", f"{high:.2g}"
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def whole_page(rows: Iterable[AuditRow], on_ranks: Iterable[AuditRow]) -> str:
    """The page of the audit in Markdown: losses in one process, then on several ranks."""
    page = published(rows)
    page.add(published_on_ranks(on_ranks))
    return page.written("markdown")


def update(path: str) -> None:
    """Write the page of the audit anew, for what is installed."""
    replace(path, whole_page(audit(), audit_on_ranks()).encode())
