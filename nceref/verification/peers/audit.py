"""Every built-in target that is installed, judged: which agree, which differ as it is known, and what is new."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nceref.errors import DeclarationError, InputError
from nceref.output.files import replace
from nceref.output.pages import GAP, Page
from nceref.verification.peers.peer import Peer, PeerTarget, checkouts, get, peers

if TYPE_CHECKING:
    from nceref.verification.report import Report

DTYPES = ("float64", "float32")
AGREES, KNOWN, NEW, STALE, MISSING = "agrees", "known", "new", "stale", "missing"
_COLORS = {AGREES: "green", KNOWN: "yellow", NEW: "bold red", STALE: "bold red", MISSING: "dim"}


@dataclass(frozen=True)
class Difference:
    """A difference of a released peer that was looked at: an entry of the data file.

    Attributes
    ----------
    target : str
        Name of the target.
    versions : tuple of str
        The releases that it was measured on; for any other it says nothing.
    dtypes : tuple of str
    results : tuple of str
        Ids of the results that fail; ``*`` stands for any letters. Each must match one.
    diagnosis : str
        Id that the report must give, alone or beside others; empty where nothing on the list fits.
    reason : str
        What the peer does, in a sentence.
    link : str
        Where that can be read.
    """

    target: str
    versions: tuple[str, ...]
    dtypes: tuple[str, ...]
    results: tuple[str, ...]
    diagnosis: str
    reason: str
    link: str


@dataclass(frozen=True)
class Row:
    """What the audit says about one target in one dtype.

    Attributes
    ----------
    status : str
        ``agrees``, ``known`` (all that fails is listed), ``new`` (something fails that is not), ``stale`` (something
        listed does not fail any more) or ``missing``.
    cases, failed : int
        Cases that were judged, and those among them in which something fails.
    why : tuple of str
        What is known, new or stale, or how to get what is missing.
    """

    target: str
    peer: str
    version: str
    loss: str
    dtype: str
    status: str
    verdict: str = ""
    diagnosis: tuple[str, ...] = ()
    cases: int = 0
    failed: int = 0
    why: tuple[str, ...] = ()


def audit(
    names: Iterable[str] | None = None,
    *,
    suite: str = "standard",
    dtypes: Sequence[str] = DTYPES,
    checkouts: Mapping[str, Any] | None = None,
    on_progress: Callable[[Any], Any] = lambda row: row,
) -> tuple[Row, ...]:
    """Judge the built-in targets.

    Parameters
    ----------
    names : iterable of str, optional
        Names or import paths of targets; default: all.
    suite : {"quick", "standard", "full"}
    dtypes : sequence of str
    checkouts : mapping, optional
        Folders by peer, for those that cannot be installed.
    on_progress : callable
        Is handed each row as soon as it is there, and hands it on.

    Returns
    -------
    tuple of Row
        A target that is not installed has one row, which says how to get it.

    Raises
    ------
    InputError
        For a name, a suite, a dtype or a checkout that does not exist.
    """
    every = [target.name for peer in peers().values() for target in peer.targets]
    chosen = [get(name) for name in (every if names is None else names)]
    with _checkouts(checkouts or {}):
        return tuple(on_progress(row) for peer, target in chosen for row in _rows(peer, target, suite, dtypes))


_checkouts = checkouts  # the argument above is named like the option of the command


def _rows(peer: Peer, target: PeerTarget, suite: str, dtypes: Sequence[str]) -> Iterable[Row]:
    version = peer.version
    if version is None:
        yield Row(target.name, peer.name, "", target.loss, "", MISSING, why=(peer.command,))
        return
    for dtype in dtypes:
        report = _judged(target, suite, dtype)
        entries = [e for e in known() if e.target == target.name and version in e.versions and dtype in e.dtypes]
        yield row(peer, target, version, dtype, report, entries, strict=suite == "standard")


def _judged(target: PeerTarget, suite: str, dtype: str) -> "Report":
    from nceref.verification.verifier import verify

    return verify(target.name, suite=suite, dtype=dtype)


def row(
    peer: Peer, target: PeerTarget, version: str, dtype: str, report: "Report", entries: Sequence[Difference],
    *, strict: bool = True,
) -> Row:  # fmt: skip
    """Compare what a report found with what is known about the target in this version and dtype.

    With `strict`, what is known must be found; other suites than the standard one need not have its cases.
    """
    failing = [r for r in report.results if r.status in ("fail", "error")]
    new = [r for r in failing if not any(_covers(e, r.id) for e in entries)]
    given = {one for d in report.diagnosis for one in (d.id, *d.id.split("+"))}
    stale = [why for e in entries if strict for why in _outdated(e, [r.id for r in failing], given)]
    unjudged = not failing and report.exit_code != 0
    status = NEW if new or unjudged else STALE if stale else KNOWN if entries and failing else AGREES
    return Row(
        target.name, peer.name, version, target.loss, dtype, status, report.verdict,
        tuple(d.id for d in report.diagnosis),
        cases=len({r.case for r in report.results if r.case and r.status != "skip"}),
        failed=len({r.case for r in failing}),
        why=tuple([report.reason] * (bool(new) or unjudged) + [f"{r.id}: {r.why}" for r in new[:3]] + stale)
        or tuple(e.reason for e in entries if failing),
    )  # fmt: skip


def _covers(entry: Difference, result: str) -> bool:
    return any(fnmatchcase(result, pattern) for pattern in entry.results)


def _outdated(entry: Difference, failing: Sequence[str], given: set[str]) -> Iterable[str]:
    for pattern in entry.results:
        if not any(fnmatchcase(result, pattern) for result in failing):
            yield f"known difference {pattern} does not fail any more; remove it from nceref/peers/known.json"
    if entry.diagnosis and entry.diagnosis not in given:
        found = ", ".join(sorted(given)) or "no diagnosis"
        yield f"known as {entry.diagnosis}, but the report says {found}; correct nceref/peers/known.json"


@cache
def known() -> tuple[Difference, ...]:
    """The data file of known differences."""
    entries = json.loads(files("nceref.verification.peers.packages").joinpath("known.json").read_text(encoding="utf-8"))
    return tuple(difference(entry) for entry in entries)


def difference(entry: Mapping[str, Any]) -> Difference:
    """One entry of the data file, checked.

    Raises
    ------
    DeclarationError
        If a field is missing or unknown, empty where it must not be, or its target does not exist.
    """
    try:
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        read = Difference(**fields)
        get(read.target)
    except (TypeError, InputError) as error:
        msg = f"known difference {entry}: {error}"
        raise DeclarationError(msg) from error
    empty = [name for name, value in asdict(read).items() if not value and name != "diagnosis"]
    if empty or not read.link.startswith("https://"):
        msg = f"known difference of {read.target}: {', '.join(empty) or 'link'} must say something, got {entry}"
        raise DeclarationError(msg)
    return read


def exit_code(rows: Iterable[Row]) -> int:
    """0 if every difference is known; 1 if one is new or out of date; 5 if nothing was installed."""
    found = {row.status for row in rows}
    if found & {NEW, STALE}:
        return 1
    return 0 if found - {MISSING} else 5


def record(rows: Iterable[Row]) -> dict[str, Any]:
    """The audit as plain data, for JSON."""
    rows = list(rows)
    return {"exit_code": exit_code(rows), "rows": [asdict(row) for row in rows]}


def page_of(rows: Iterable[Row]) -> Page:
    """The audit as a page: a line for each target and dtype, below it what differs; then what is missing."""
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


def _count(row: Row) -> str:
    return f"{row.cases} cases" if not row.failed else f"{row.failed} of {row.cases} differ"


def tally(rows: Iterable[Row]) -> str:
    """How many targets and dtypes there are of each status: ``20 agree, 3 known, 2 missing``."""
    found = [row.status for row in rows]
    words = {AGREES: "agree", KNOWN: "differ as known", NEW: "new", STALE: "out of date", MISSING: "not installed"}
    return ", ".join(f"{found.count(status)} {word}" for status, word in words.items() if status in found)


_ABOUT = """# Audit of released losses

Losses as they are released, against the reference: values and gradients on the {suite} suite, within bounds that are
derived for each case and dtype. Written by `make audit`; `nceref verify --all` judges what is installed where you are.

"agrees": every value and every gradient is within its bound. A difference need not be a bug: some are conventions.

"""


def markdown(rows: Iterable[Row], suite: str = "standard") -> str:
    """The audit as a page in GitHub Markdown: a table, and below it the known differences with their links."""
    rows = list(rows)
    dtypes = list(dict.fromkeys(row.dtype for row in rows if row.dtype))
    table = [["target", "release", "loss", *dtypes], ["---"] * (3 + len(dtypes))]
    for _, group in groupby((row for row in rows if row.status != MISSING), key=lambda row: row.target):
        same = list(group)
        first, cells = same[0], {row.dtype: f"{row.status}, {_count(row)}" for row in same}
        release = f"{first.peer} {first.version}"
        table.append([f"`{first.target}`", release, f"`{first.loss}`", *(cells.get(d, "") for d in dtypes)])
    lines = [f"| {' | '.join(line)} |" for line in table]
    return _ABOUT.format(suite=suite) + "\n".join([*lines, "", tally(rows), "", *_differences(rows), *_absent(rows)])


def _differences(rows: Sequence[Row]) -> Iterable[str]:
    """What is known of these releases, and of checkouts, which are not everywhere."""
    seen = {(row.target, row.version) for row in rows}
    entries = [e for e in known() if seen & {(e.target, version) for version in ("", *e.versions)}]
    if entries:
        yield "## Known differences\n"
    for (target, reason, link), group in groupby(entries, key=lambda e: (e.target, e.reason, e.link)):
        same = list(group)
        named = "".join(dict.fromkeys(f" `{e.diagnosis}`." for e in same if e.diagnosis))
        yield f"- `{target}` ({', '.join(same[0].versions)}):{named} {reason} [Source]({link})"
        for e in same:
            yield f"  - {', '.join(e.dtypes)}: " + ", ".join(f"`{p}`" if p != "*" else "all" for p in e.results)


def _absent(rows: Sequence[Row]) -> Iterable[str]:
    yield "\n## Not judged\n"
    missing = dict.fromkeys((row.peer, row.why[0]) for row in rows if row.status == MISSING)
    yield from (f"- {peer} is not installed: {command}" for peer, command in missing)
    omitted = {row.target: get(row.target)[1].omits for row in rows}
    yield from (f"- `{target}`: {what}" for target, what in omitted.items() if what)
    yield ""


def update(path: str) -> None:
    """Write the page anew, for what is installed."""
    replace(path, markdown(audit()).encode())
