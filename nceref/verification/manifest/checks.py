"""The checks of a manifest: those of its targets, of its expected failures, and one for whatever is wrong in it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from nceref.cases.expected_failures import first_matching
from nceref.errors import NcerefError
from nceref.verification.conformance.check import Check, ExpectedOutcome, checks
from nceref.verification.conformance.group import CheckGroup, grouped
from nceref.verification.conformance.verification import verification_of
from nceref.verification.manifest.read import Manifest, ManifestTarget, line_of
from nceref.verification.manifest.run import command_of, missing_package, outdated, report_of, too_few_checks
from nceref.verification.report import BROKEN_CHECKER, TARGET_FAILED, TOO_LITTLE, Report
from nceref.verification.several_reports import is_worse

_LISTED = ExpectedOutcome(listed=True)


@dataclass(frozen=True)
class ManifestCheck:
    """A check of a manifest, such as ``info_nce-value``, ``info_nce-expected-failure-*/value`` or ``info_nce-line-12``.

    The line is that of the table, of the expected failure, or of what is wrong; the target is its name, empty for what
    stands beside them. `run` raises AssertionError where it fails, and what pytest has for what is skipped or fails as
    expected.
    """

    name: str
    line: int
    target: str
    run: Callable[[], None]


def checks_of(manifest: Manifest) -> Iterator[ManifestCheck]:
    """Every check of a manifest, in the order of the file; targets are loaded, but not called.

    What is wrong beside the targets comes last.
    """
    for entry in manifest.targets:
        yield from _of_problems(entry.name, entry.problems) if entry.target is None else _of_target(manifest, entry)
    yield from _of_problems("", manifest.problems)


def _of_problems(name: str, problems: tuple[str, ...]) -> Iterator[ManifestCheck]:
    for problem in problems:
        line = line_of(problem.partition(": ")[0])
        # A target that nothing names is called after its line.
        of = "" if not name or re.fullmatch(r"line-\d+", name) else f"{name}-"
        yield ManifestCheck(f"{of}line-{line}", line, name, partial(_fail, problem))


def _of_target(manifest: Manifest, entry: ManifestTarget) -> Iterator[ManifestCheck]:
    assert entry.target is not None
    if why := missing_package(entry):
        left_out = partial(_check_numbers, entry) if entry.checks else partial(_skip, why)
        yield ManifestCheck(f"{entry.name}-{Check('')}", entry.line, entry.name, left_out)
        return
    try:
        *own, whole = [replace(check, expectation=_LISTED) for check in checks(entry.target)]
    except NcerefError:
        yield ManifestCheck(f"{entry.name}-{Check('')}", entry.line, entry.name, partial(_fail_unloaded, entry))
        return
    tests: list[CheckGroup | Check] = [*grouped(own, command=command_of(manifest, entry.name)), whole]
    for check in tests:
        yield ManifestCheck(f"{entry.name}-{check}", entry.line, entry.name, partial(check, entry.target))
    if entry.checks:
        numbers = partial(_check_numbers, entry)
        yield ManifestCheck(f"{entry.name}-checks", line_of(entry.place("checks")), entry.name, numbers)
    for id in entry.ids:
        line = line_of(entry.place_of(id))
        run = partial(_check_expected_failure, entry, id)
        yield ManifestCheck(f"{entry.name}-expected-failure-{id}", line, entry.name, run)


def _skip(sentence: str) -> None:
    import pytest

    pytest.skip(sentence)


def _fail(sentence: str) -> None:
    raise AssertionError(sentence)


def _report(entry: ManifestTarget) -> Report:
    assert entry.target is not None
    return report_of(entry, verification_of(entry.target, "standard"))


def _fail_unloaded(entry: ManifestTarget) -> None:
    raise AssertionError(_report(entry).reason)


def _check_numbers(entry: ManifestTarget) -> None:
    import pytest

    report = _report(entry)
    if sentences := too_few_checks(entry, report):
        raise AssertionError("\n".join([report.reason, *sentences]))
    if is_worse(report.exit_code, TOO_LITTLE):
        # The other checks fail with that.
        pytest.skip(report.reason)


def _check_expected_failure(entry: ManifestTarget, id: str) -> None:
    import pytest

    report = _report(entry)
    if report.exit_code in (BROKEN_CHECKER, TARGET_FAILED):
        # The other checks fail with that.
        pytest.skip(report.reason)
    if id in (sentences := outdated(entry, report)):
        raise AssertionError(sentences[id])
    if any(r.status == "xfail" and first_matching(r.id, entry.ids) == id for r in report.results):
        pytest.xfail(str(entry.expected[id]))
