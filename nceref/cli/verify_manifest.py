"""`nceref verify` without TARGET: the targets of a manifest."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nceref.cli.common import echo, wrote
from nceref.cli.options import refuse_but
from nceref.cli.reports import show_report
from nceref.output.text import printable

if TYPE_CHECKING:
    from nceref.verification.manifest.read import Manifest
    from nceref.verification.manifest.run import ManifestResult

UPDATE = "--update-checks"
OF_MANIFEST = {
    "manifest_file": "--manifest",
    "only": "--only",
    "badge_file": "--badge",
    "update_checks": UPDATE,
}
"""Options that need a manifest."""
_TAKEN = {*OF_MANIFEST, "json_file", "html_file", "markdown_file", "junit_file"}


def refuse_with_target(given: dict[str, Any]) -> None:
    """Raise `click.UsageError` for an option of manifests beside TARGET or --all."""
    for name, option in OF_MANIFEST.items():
        if given[name] not in (None, ()):
            words = given[name] if isinstance(given[name], tuple) else (given[name],)
            value = "" if words[0] is True else f" {printable(words[0])}"
            msg = f"{option}{value} is for the targets of a manifest; leave out {option}, or TARGET and --all"
            raise click.UsageError(msg)


def verify_manifest(context: click.Context, given: dict[str, Any]) -> int:
    """Verify the targets of a manifest, write and print their verdicts, and return the exit status."""
    refuse_but(
        context,
        _TAKEN,
        "needs a TARGET. To judge the manifest, write it into the table of a target",
    )
    from nceref.output.files import must_be_writable
    from nceref.output.json_text import json_text
    from nceref.output.terminal import progress
    from nceref.verification.manifest import page, run
    from nceref.verification.manifest.read import read_manifest
    from nceref.verification.manifest.rewrite import with_checks, without_checks
    from nceref.verification.report import junit_of

    path = _in_working_folder() if given["manifest_file"] is None else given["manifest_file"]
    formats = ("json", "html", "junit", "markdown", "badge")
    outputs = {f"--{option}": given[f"{option}_file"] for option in formats}
    updates = bool(given["update_checks"])
    must_be_writable({}, outputs | ({UPDATE: path} if updates else {}), {} if updates else {"--manifest": path})
    manifest = read_manifest(path)
    if updates:
        chosen = {entry.name for entry in manifest.chosen(given["only"]) if entry.target}
        # Before minutes of work: whether there is a place for them.
        with_checks(manifest, {name: {} for name in chosen}, UPDATE)
        # What is written anew holds no target back.
        manifest = without_checks(manifest, chosen)
    apart = run.left_out(manifest, given["only"])
    with progress("judging targets") as on_progress:
        results = run.verify_manifest(manifest, given["only"], on_progress)
    makers = {
        "json": lambda: json_text(page.record(manifest, results, apart)),
        "html": lambda: page.html(manifest, results),
        "junit": lambda: junit_of([each.report for each in results], [each.entry.place_of_result for each in results]),
        "markdown": lambda: page.summary_of(results, apart).written("markdown"),
        "badge": lambda: page.badge(results),
    }
    show_report(makers, given, lambda: page.page_of(results, apart, bool(given["only"])))
    if updates:
        _update(manifest, results)
    return page.exit_code(results)


def _update(manifest: "Manifest", results: "Sequence[ManifestResult]") -> None:
    """Write the numbers of checks of targets that pass into their manifest, and name those that do not."""
    from nceref.output.files import read, replace
    from nceref.verification.manifest.rewrite import with_checks

    for result in results:
        if not result.report.ok:
            echo(f"{result.entry.place()}: {result.entry.name} does not pass: its `checks` are not written", err=True)
    content = with_checks(manifest, {each.entry.name: each.checks for each in results if each.report.ok}, UPDATE)
    if content == read(manifest.path, UPDATE):
        echo(f"{manifest.path} has these numbers of checks already", err=True)
    else:
        replace(manifest.path, content, UPDATE)
        wrote(manifest.path)


def _in_working_folder() -> str:
    from nceref.verification.manifest.read import find_manifest

    path = find_manifest()
    if not path:
        msg = (
            "TARGET is missing, such as file.py:name. To check many losses, write a manifest: nceref init PACKAGE."
            " There is none here: neither nceref.toml nor [tool.nceref] in a pyproject.toml"
        )
        raise click.UsageError(msg)
    return path
