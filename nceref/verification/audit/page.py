"""The audit as a page for the terminal, and as the Markdown page `docs/audit.md`."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from nceref.output.files import replace
from nceref.output.markdown_parts import markdown_table
from nceref.output.pages import GAP, Page
from nceref.output.words import counted
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
    from nceref.verification.html.document import html_of

    rows = list(rows)
    judged = [row for row in rows if row.report is not None]
    notes = [f"{row.peer} {row.version}, {row.status}{': ' * bool(row.why)}{'; '.join(row.why)}" for row in judged]
    return html_of([row.report for row in judged], f"Released losses: {tally(rows)}", notes)


_ABOUT = """# Audit of released losses

What do released losses compute? Their values and gradients were compared with the reference on the {suite} suite,
within bounds that are computed for each case and dtype. `make audit` writes this page; `nceref verify --all` checks the
packages that you have installed.

"agrees" means that every value and every gradient is within its bound. A difference need not be a bug: some are
conventions.

"""


def markdown(rows: Iterable[AuditRow], suite: str = SUITE) -> str:
    """The audit as a page in GitHub Markdown: a table, and below it the known differences with their links.

    `rows`: as `audit` returns them; those of one target follow one another. `suite`: that they were judged on.
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


def _versions(row: Mapping[str, Any]) -> Sequence[str]:
    """The releases that a known difference is about."""
    ((_, versions),) = row["versions"].items()
    return listed(versions)


def _differences(rows: Sequence[AuditRow]) -> Iterator[str]:
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
        yield "## Known differences\n"
    for (target, reason, link), group in groupby(here, key=lambda x: (x[0], x[1]["reason"], x[1]["link"])):
        same = [row for _, row in group]
        named = "".join(dict.fromkeys(f" `{row['diagnosis']}`." for row in same if "diagnosis" in row))
        yield f"- `{target}` ({', '.join(_versions(same[0]))}):{named} {reason} [Source]({link})"
        for row in same:
            ids = ", ".join(f"`{id}`" if id != "*" else "all" for id in listed(row["id"]))
            yield f"  - {', '.join(listed(row['dtypes']))}: {ids}"


def _absent(rows: Sequence[AuditRow]) -> Iterator[str]:
    yield "\n## Not judged\n"
    missing = dict.fromkeys((row.peer, row.why[0]) for row in rows if row.status == MISSING)
    yield from (f"- {peer} is not installed: {command}" for peer, command in missing)
    omitted = {row.target: get(row.target)[1].omits for row in rows}
    yield from (f"- `{target}`: {what}" for target, what in omitted.items() if what)
    yield ""


_ON_RANKS = """## On several ranks

Which value and gradient does data-parallel training get from losses that are released for several processes? Each was
run on {ranks} processes, with gradients averaged over them, and compared with the loss of the joined batch and its
gradient: the {suite} suite in {dtypes}, and the gradient of the embeddings at temperatures around 0.15. With the
arguments of a line as `--init`, `nceref verify TARGET --init NAME=VALUE --ranks {ranks} --suite {suite}` prints the
whole report.

"""


def section_on_ranks(rows: Iterable[AuditRow]) -> str:
    """Rows of targets on several ranks as a section of the page, in GitHub Markdown: a table, and what is known."""
    rows = [row for row in rows if row.status != MISSING]
    head = ("target", "constructed with", "release", "value", "gradient", "differs by")
    lines = [
        (f"`{row.target}`", _init(row), f"{row.peer} {row.version}", *words_of_training(row), _named(row))
        for row in rows
    ]
    reasons = [
        f"- `{row.target}`, {_init(row)}: {each['reason']} [Source]({each['link']})"
        for row in rows
        for entry, differences in known()
        for each in differences
        if entry.name == row.entry.name and row.version in _versions(each)
    ]
    about = _ON_RANKS.format(**next(filter(is_on_ranks, released().targets)).table)
    return about + "\n".join([markdown_table(head, lines), "", *reasons, ""])


def _init(row: AuditRow) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in init_of(row.entry).items()) or "defaults"


def _named(row: AuditRow) -> str:
    words = " or ".join(f"`{id}`" for id in row.diagnosis)
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
    """The page of the audit: losses in one process, then on several ranks."""
    return markdown(rows) + "\n" + section_on_ranks(on_ranks)


def update(path: str) -> None:
    """Write the page of the audit anew, for what is installed."""
    replace(path, whole_page(audit(), audit_on_ranks()).encode())
