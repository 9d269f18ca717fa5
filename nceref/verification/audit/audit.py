"""Every built-in target that is installed, judged: which agree, which differ as it is known, and what is new."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nceref.targets.peers.peer import Peer, PeerTarget, checkouts, get, peers
from nceref.verification.audit.known import Difference, known

if TYPE_CHECKING:
    from nceref.verification.report import Report

DTYPES = ("float64", "float32")
AGREES, KNOWN, NEW, STALE, MISSING = "agrees", "known", "new", "stale", "missing"


@dataclass(frozen=True)
class AuditRow:
    """The result of the audit for one target in one dtype.

    Attributes
    ----------
    status : str
        ``agrees``, ``known`` (all that fails is listed), ``new`` (something fails that is not), ``stale`` (something
        listed does not fail any more) or ``missing``.
    cases, failed : int
        Cases that were judged, and those among them in which something fails.
    why : tuple of str
        What is known, new or stale, or how to get what is missing.
    report : Report or None
        All that was judged; None for what is missing.
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
    report: Any = field(default=None, compare=False, repr=False)


def audit(
    names: Iterable[str] | None = None,
    *,
    suite: str = "standard",
    dtypes: Sequence[str] = DTYPES,
    checkouts: Mapping[str, Any] | None = None,
    on_progress: Callable[[Any], Any] = lambda row: row,
) -> tuple[AuditRow, ...]:
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
    tuple of AuditRow
        A target that is not installed has one row, with the command that installs it.

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


def _rows(peer: Peer, target: PeerTarget, suite: str, dtypes: Sequence[str]) -> Iterable[AuditRow]:
    version = peer.version
    if version is None:
        yield AuditRow(target.name, peer.name, "", target.loss, "", MISSING, why=(peer.command,))
        return
    for dtype in dtypes:
        report = _report(target, suite, dtype)
        about = [e for e in known() if e.target == target.name and e.ranks is None]
        entries = [e for e in about if version in e.versions and dtype in e.dtypes]
        yield row(peer, target, version, dtype, report, entries, strict=suite == "standard")


def _report(target: PeerTarget, suite: str, dtype: str) -> "Report":
    from nceref.verification.verifier import verify

    return verify(target.name, suite=suite, dtype=dtype)


def row(
    peer: Peer,
    target: PeerTarget,
    version: str,
    dtype: str,
    report: "Report",
    entries: Sequence[Difference],
    *,
    strict: bool = True,
) -> AuditRow:
    """Compare a report with what is known about the target in this version and dtype.

    Parameters
    ----------
    peer, target : Peer, PeerTarget
    version, dtype : str
        What was judged.
    report : Report
    entries : sequence of Difference
        What is known.
    strict : bool
        Whether what is known must show; suites other than the standard one need not have its cases.

    Returns
    -------
    AuditRow
    """
    failing = [r for r in report.results if r.status in ("fail", "error")]
    new = [r for r in failing if not any(entry.covers(r.id) for entry in entries)]
    ids, diagnoses = [r.id for r in failing], tuple(d.id for d in report.diagnosis)
    stale = [why for entry in entries if strict for why in entry.outdated(ids, diagnoses)]
    # A run that ends without a failure and without a verdict proves nothing.
    unjudged = not failing and report.exit_code != 0
    reasons = [report.reason] if new or unjudged else []
    why = (*reasons, *(f"{r.id}: {r.why}" for r in new[:3]), *stale)
    return AuditRow(
        target=target.name,
        peer=peer.name,
        version=version,
        loss=target.loss,
        dtype=dtype,
        status=NEW if new or unjudged else STALE if stale else KNOWN if entries and failing else AGREES,
        verdict=report.verdict,
        diagnosis=diagnoses,
        cases=len({r.case for r in report.results if r.case and r.status != "skip"}),
        failed=len({r.case for r in failing}),
        why=why or tuple(entry.reason for entry in entries if failing),
        report=report,
    )


def exit_code(rows: Iterable[AuditRow]) -> int:
    """0 if every difference is known; 1 if one is new or out of date; 5 if nothing was installed."""
    statuses = {row.status for row in rows}
    if statuses & {NEW, STALE}:
        return 1
    # 5 as in `nceref verify`: too little was executed.
    return 0 if statuses - {MISSING} else 5


def record(rows: Iterable[AuditRow]) -> dict[str, Any]:
    """The audit as plain data, for JSON."""
    rows = list(rows)
    plain = [{name: x for name, x in vars(row).items() if name != "report"} for row in rows]
    return {"exit_code": exit_code(rows), "rows": plain}
