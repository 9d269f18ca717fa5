"""The manifest of released packages, judged: which agree, which differ as it is known, and what is new."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from nceref.cases.corpus.geometries import EVERY
from nceref.cases.expected_failures import FAILING, changed_failures, first_matching, mark_expected_failures
from nceref.engine.arguments import one_of
from nceref.targets.peers.peer import checkouts as checked_out
from nceref.targets.peers.peer import get
from nceref.verification.manifest.expected_failures import listed
from nceref.verification.manifest.read import Manifest, ManifestTarget, line_of, read_manifest
from nceref.verification.manifest.run import ManifestResult, left_out, outdated, verify_manifest
from nceref.verification.options import BY_NAME

PACKAGE, FILE = "nceref.verification.audit", "nceref.toml"
SUITE = BY_NAME["suite"].default
_LOWEST = min(EVERY)
"""The lowest temperature of a corpus: what is not finite there is a known difference, and no limit."""
AGREES, KNOWN, NEW, STALE, MISSING = "agrees", "known", "new", "stale", "missing"


@dataclass(frozen=True)
class AuditRow:
    """The result of the audit for one target in one dtype, as its JSON has it but for the last two.

    Its status is ``agrees``, ``known`` (all that fails is listed), ``new`` (something fails that is not), ``stale``
    (something listed does not fail any more) or ``missing``; `why` says what, or how to get what is missing. In
    `failed` of the `cases` that were judged something fails. The report, None for what is missing, marks no failure as
    expected: so each is explained.
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
    entry: Any = field(default=None, compare=False, repr=False)
    report: Any = field(default=None, compare=False, repr=False)

    @property
    def command(self) -> str:
        """The command that judges it."""
        return f"{command_of(self.entry)} --suite {self.entry.target.options['suite']} --temperatures {_LOWEST:g}"


def released() -> Manifest:
    """The manifest of released packages; its expected failures are those of the versions that are installed."""
    with as_file(files(PACKAGE) / FILE) as path:
        manifest = read_manifest(path)
    # Where the package is installed says nothing.
    return replace(manifest, path=FILE, targets=tuple(map(_named_shortly, manifest.targets)))


def _named_shortly(entry: ManifestTarget) -> ManifestTarget:
    return replace(entry, place=lambda *keys: f"{PACKAGE.replace('.', '/')}/{FILE}:{line_of(entry.place(*keys))}")


@cache
def known() -> Sequence[tuple[ManifestTarget, Sequence[Mapping[str, Any]]]]:
    """Each target with its known differences, for every release that they name, as they stand in the manifest.

    On several ranks, those that one process has as well are left out.
    """
    rows = [(entry, entry.table.get("expected_failures", [])) for entry in released().targets]
    alone = {(e.table["target"], row["reason"]) for e, own in rows if not is_on_ranks(e) for row in own}
    return [
        (e, [row for row in own if not is_on_ranks(e) or (e.table["target"], row["reason"]) not in alone])
        for e, own in rows
    ]


def is_on_ranks(entry: ManifestTarget) -> bool:
    """Whether a target of the manifest runs on several ranks."""
    return "ranks" in entry.table


def init_of(entry: ManifestTarget) -> Mapping[str, Any]:
    """The arguments that a target of the manifest is constructed with."""
    init: Mapping[str, Any] = entry.table.get("init", {})
    return init


def command_of(entry: ManifestTarget) -> str:
    """The command that judges a target of the manifest, on as many ranks."""
    init = "".join(f" --init {name}={value}" for name, value in init_of(entry).items())
    ranks = f" --ranks {entry.table['ranks']}" if is_on_ranks(entry) else ""
    return f"nceref verify {entry.table['target']}{init}{ranks}"


def audit(
    names: Iterable[str] | None = None,
    *,
    suite: str = SUITE,
    dtypes: Sequence[str] | None = None,
    checkouts: Mapping[str, Any] | None = None,
    on_progress: Callable[..., Any] | None = None,
) -> tuple[AuditRow, ...]:
    """Judge the targets of the manifest that run in one process; one that is not installed has one row.

    `names` are names or import paths, `checkouts` folders by peer, for those that cannot be installed; the dtypes are
    by default those of the manifest. `on_progress` is that of `verify_manifest`. Raises `InputError` for a name, a
    suite, a dtype or a checkout that does not exist.
    """
    chosen = None if names is None else [get(name)[1].name for name in names]
    for name, word in (("suite", suite), *(("dtype", dtype) for dtype in dtypes or ())):
        one_of(name, word, BY_NAME[name].choices)
    with checked_out(checkouts or {}):
        entries = {entry.table["target"]: entry for entry in released().targets if not is_on_ranks(entry)}
        return _judged(
            [
                in_format(entries[name], suite, dtype)
                for name in (entries if chosen is None else chosen)
                for dtype in dtypes or listed(entries[name].table["dtypes"])
            ],
            on_progress,
        )


def audit_on_ranks(names: Sequence[str] = ()) -> tuple[AuditRow, ...]:
    """Judge the targets of the manifest that run on several ranks; default: all."""
    entries = filter(is_on_ranks, released().chosen(names))
    return _judged([in_format(entry, entry.table["suite"], entry.table["dtypes"]) for entry in entries])


def in_format(entry: ManifestTarget, suite: str, dtype: str) -> ManifestTarget:
    """A target in one of its formats, with the expected failures of that; its report will mark none of them."""
    assert entry.target is not None
    prefix = f"{dtype}/" if len(listed(entry.table["dtypes"])) > 1 else ""
    own = {id.removeprefix(prefix): id for id in entry.ids if id.startswith(prefix)}
    options = {name: x for name, x in entry.target.options.items() if name != "expected_failures"}
    return replace(
        entry,
        target=replace(entry.target, options={**options, "suite": suite, "dtype": dtype, "temperatures": _LOWEST}),
        expected={id: entry.expected[full] for id, full in own.items()},
        keys={id: entry.keys[full] for id, full in own.items()},
    )


def _judged(entries: Sequence[ManifestTarget], on_progress: Callable[..., Any] | None = None) -> tuple[AuditRow, ...]:
    """A row for each target that is here, and one for all formats of a target that is missing."""
    manifest = Manifest(FILE, tuple(entries))
    missing = left_out(manifest)
    results = iter(verify_manifest(manifest, on_progress=on_progress))
    rows = [
        _row(entry, "", MISSING, why=(get(entry.table["target"])[0].command,))
        if entry.name in missing
        else row_of(next(results))
        for entry in entries
    ]
    # A target that is missing has no format, and so one row.
    return tuple({(row.entry.name, row.dtype): row for row in rows}.values())


def _row(entry: ManifestTarget, dtype: str, status: str, **rest: Any) -> AuditRow:
    peer, target = get(entry.table["target"])
    return AuditRow(target.name, peer.name, peer.version or "", target.loss, dtype, status, entry=entry, **rest)


def row_of(result: ManifestResult) -> AuditRow:
    """The row of a target in one format: what fails, beside what the manifest expects to."""
    entry, report = result.entry, result.report
    assert entry.target is not None
    options = entry.target.options
    failing = [r for r in report.results if r.status in FAILING]
    new = [r for r in failing if first_matching(r.id, entry.ids) is None]
    diagnoses = tuple(d.id for d in report.diagnosis)
    marked = mark_expected_failures(report.results, entry.expected)
    marked += changed_failures(marked, entry.expected, diagnoses)
    # Other suites need not have the cases of an expected failure.
    is_own_suite = options["suite"] == entry.table.get("suite", SUITE)
    stale = outdated(entry, replace(report, results=tuple(marked))).values() if is_own_suite else ()
    # A run that ends without a failure and without a verdict proves nothing.
    unjudged = not failing and report.exit_code != 0
    applies = {NEW: new or unjudged, STALE: stale, KNOWN: failing, AGREES: True}
    reasons = [report.reason] if applies[NEW] else []
    why = (*reasons, *(f"{r.id}: {r.why}" for r in new[:3]), *stale)
    row = _row(
        entry,
        options["dtype"],
        next(status for status, holds in applies.items() if holds),
        verdict=report.verdict,
        diagnosis=diagnoses,
        cases=len({r.case for r in report.results if r.case and r.status != "skip"}),
        failed=len({r.case for r in failing}),
        why=why or tuple(dict.fromkeys(each.reason for each in entry.expected.values() if failing)),
    )
    return replace(row, report=replace(report, command=f"{row.command} --dtype {row.dtype}"))


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
    plain = [{name: x for name, x in vars(row).items() if name not in ("entry", "report")} for row in rows]
    return {"exit_code": exit_code(rows), "rows": plain}
