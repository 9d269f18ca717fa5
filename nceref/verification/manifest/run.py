"""The targets of a manifest, verified: a report each, and what in the manifest is out of date."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nceref.cases.expected_failures import OUT_OF_DATE, first_matching, in_use
from nceref.errors import NcerefError
from nceref.output.text import printable, shown
from nceref.output.words import as_code, counted, out_of
from nceref.targets.peers.peer import installed_version, peers
from nceref.verification.conformance.verification import TargetVerification
from nceref.verification.manifest.counts import KINDS, count_checks, lost_checks, why_lost
from nceref.verification.manifest.expected_failures import listed
from nceref.verification.manifest.read import FILE, Manifest, ManifestTarget
from nceref.verification.options import BY_NAME
from nceref.verification.report import CONFORMS, TARGET_FAILED, TOO_LITTLE, Report, as_of_manifest
from nceref.verification.several_reports import is_worse


@dataclass(frozen=True)
class ManifestResult:
    """A target of a manifest with its report, and what in the manifest is to be changed, a sentence with its line each.

    Of a target whose table is wrong, or that cannot be loaded, the report says so.
    """

    entry: ManifestTarget
    report: Report
    problems: tuple[str, ...] = ()

    @property
    def checks(self) -> dict[str, int]:
        """The number of checks by kind."""
        return count_checks(self.report.results)

    @property
    def as_expected(self) -> dict[str, int]:
        """The number of results that fail as each pattern of the expected failures has it, where any does."""
        outdated = {r.id for r in self.report.results if r.quantity == OUT_OF_DATE}
        failing = in_use(self.report.results, self.entry.ids)
        return {id: count for id, count in failing.items() if id not in outdated}


def left_out(manifest: Manifest, only: Sequence[str] = ()) -> dict[str, str]:
    """The targets that are not judged, as a package that they need is not installed; with ``checks`` they must be.

    The result has a sentence with file and line by name. Raises `InputError` for a name in `only` that no target has;
    none is all.
    """
    return {e.name: why for e in manifest.chosen(only) if e.target and not e.checks and (why := missing_package(e))}


def missing_package(entry: ManifestTarget) -> str:
    """The package that a target needs and that is not installed, with file and line; empty where all are."""
    for name in listed(entry.table.get("needs", ())):
        if installed_version(name) is None:
            command = peers()[name].command if name in peers() else f"pip install {printable(name)}"
            return f"{entry.place('needs')}: {entry.name} is not judged: {printable(name)} is not installed: {command}"
    return ""


def verify_manifest(
    manifest: Manifest, only: Sequence[str] = (), on_progress: Callable[..., Any] | None = None
) -> tuple[ManifestResult, ...]:
    """Verify the targets of a manifest, one after the other; those of one file share a process.

    `only` has names of targets, none for all; raises `InputError` for one that no target has. `on_progress` is called
    with each report, and with their number as ``total=``. Results are in the order of the manifest, without targets
    that are left out; what is wrong beside the targets comes last.
    """
    apart = left_out(manifest, only)
    entries = tuple(entry for entry in manifest.chosen(only) if entry.name not in apart)
    if manifest.problems:
        first = manifest.problems[0].partition(": ")[0]
        entries = (*entries, ManifestTarget(manifest.path, None, {}, manifest.problems, lambda *keys: first))
    verifications = [
        TargetVerification(e.target, e.target.options) if e.target and not missing_package(e) else None for e in entries
    ]
    # All of them before the first one ends its process.
    refused = [_refusal(entry, each) for entry, each in zip(entries, verifications, strict=True)]
    results = []
    for entry, each, sentence in zip(entries, verifications, refused, strict=True):
        report = report_of(entry, each, sentence)
        command = command_of(manifest, entry.name if entry in manifest.targets else "")
        if report.exit_code == TARGET_FAILED:
            problems = entry.problems or (report.reason,)
        else:
            problems = (*outdated(entry, report).values(), *too_few_checks(entry, report))
        report = replace(report, target=_called(entry, report), command=command)
        results.append(ManifestResult(entry, report, problems))
        if on_progress is not None:
            on_progress(report, total=len(entries))
    return tuple(results)


def command_of(manifest: Manifest, only: str = "") -> str:
    """The command that judges a manifest, or the one target of it that is named."""
    of = [] if manifest.path == FILE else ["--manifest", manifest.path]
    return shlex.join(["nceref", "verify", *of, *(["--only", only] if only else [])])


def _refusal(entry: ManifestTarget, verification: TargetVerification | None) -> str:
    """Why a target is not run at all, or empty."""
    if verification is None:
        return "; ".join(entry.problems)
    try:
        verification.join()
    except NcerefError as error:
        return f"{_place_of(entry, str(error))}: {error}"
    return ""


def report_of(entry: ManifestTarget, verification: TargetVerification | None, refused: str = "") -> Report:
    """The report of a target; of one that cannot be run, one that says why, with file and line.

    A good verdict from fewer checks than the table has is one that too little was executed. There is no verification of
    a table that is wrong; `refused` is why a target is not run at all, empty where it is.
    """
    target = entry.target
    name, loss = (str(target.function), target.loss) if target else (entry.name, "")
    if target and not refused and (why := missing_package(entry)):
        return _counted(entry, Report(printable(name), loss, "inconclusive", TOO_LITTLE, why))
    if verification is not None and not refused:
        try:
            report = as_of_manifest(verification.report)
            if report.exit_code == TARGET_FAILED:
                return replace(report, reason=f"{entry.place('target')}: {report.reason}")
            return _counted(entry, report)
        except NcerefError as error:
            refused = f"{_place_of(entry, str(error))}: {error}"
    return Report(printable(name), loss, "error", TARGET_FAILED, refused)


def _counted(entry: ManifestTarget, report: Report) -> Report:
    """The report, or where it is no worse that too little was executed, as the table has more checks."""
    lost = lost_checks(entry.checks, count_checks(report.results))
    if not lost or is_worse(report.exit_code, TOO_LITTLE):
        return report
    judged = f"{' and '.join(lost.values())} of the manifest were judged"
    # Of two reasons, its own comes first.
    own = f"{report.reason}; " if report.exit_code == TOO_LITTLE else "too little was executed: "
    return replace(report, verdict="inconclusive", exit_code=TOO_LITTLE, reason=f"{own}{judged}")


def too_few_checks(entry: ManifestTarget, report: Report) -> list[str]:
    """The sentence, with file and line, that fewer checks were made of a target than its table has.

    `report` is of `report_of`. There is none where enough were made, or the target fails, which may be why.
    """
    made = count_checks(report.results)
    lost = lost_checks(entry.checks, made) if report.exit_code == TOO_LITTLE else {}
    if not lost:
        return []
    parts: list[str] = []
    for kind in lost:
        written, now = entry.checks[kind], made.get(kind, 0)
        why = why_lost(kind, report.results, written - now)
        when = "" if parts else " were judged when the manifest was written"
        parts.append(f"{counted(written, KINDS[kind].noun, kind)}{when}, now {now}{why and f' (skipped: {why})'}")
    remedy = "restore them, or if that is meant, nceref verify --update-checks writes the numbers anew"
    return [f"{entry.place('checks')}: {'; '.join(parts)}; {remedy}"]


def _called(entry: ManifestTarget, report: Report) -> str:
    """The target in its report: with its name, where that says more."""
    named = printable(entry.name)
    return report.target if report.target.endswith(named) else f"{named}: {report.target}"


def _place_of(entry: ManifestTarget, message: str) -> str:
    """File and line of the key that a message names first, or else of the target."""
    assert entry.target is not None
    name = next((first or second for first, second in re.findall(r"`(\w+)`|no (\w+) named", message)), "")
    name = (BY_NAME[name].key if name in BY_NAME else "") or name
    outer = next((key for key in ("set", "init") if name in entry.table.get(key, {})), "")
    if outer:
        return entry.place(outer, name)
    return entry.place(name if name in entry.table else "target")


def outdated(entry: ManifestTarget, report: Report) -> dict[str, str]:
    """The expected failures that are to be changed: those that no result has, that pass, or with another explanation.

    The result has a sentence with file and line by id.
    """
    stale = [r for r in report.results if r.quantity == OUT_OF_DATE and r.id in entry.expected]
    out = {r.id: f"{entry.place_of(r.id)}: {as_code(r.id)} is {r.why}" for r in stale}
    # An expected failure whose results pass, all or some of them.
    passed = Counter(first_matching(r.id, entry.ids) for r in report.results if r.status == "xpass")
    every = Counter(first_matching(r.id, entry.ids) for r in report.results if r.status in ("xpass", "xfail"))
    for name, count in passed.items():
        assert name is not None
        out[name] = f"{entry.place_of(name)}: {_passes(entry, name, count, every[name])}"
    return out


def _passes(entry: ManifestTarget, id: str, count: int, every: int) -> str:
    remedy = "remove it" if count == every else 'narrow its id, or write strict = "some"'
    which = "its only result passes" if every == 1 else f"{out_of(count, every, 'result')} pass{'es' * (count == 1)}"
    return f"{as_code(id)} is expected to fail ({shown(entry.expected[id].reason)}), but {which}; {remedy}"


def tally(results: Sequence[ManifestResult]) -> str:
    """The number of targets that pass: ``11 of 12 targets pass``."""
    if not results:
        return "no target is judged"
    passing = sum(result.report.exit_code == CONFORMS for result in results)
    if passing == len(results):
        return f"{counted(passing, 'target passes', 'targets pass')}"
    if len(results) == 1:
        return "the only target does not pass"
    return f"{out_of(passing, len(results), 'target')} pass{'es' * (passing == 1)}"
