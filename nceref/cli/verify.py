"""`nceref verify`: whether an implementation is right, and if not, what it is."""

from typing import Any

import click

from nceref.cli.common import file_name, output_file, show
from nceref.cli.groups import GroupedOptions
from nceref.cli.options import options_of_verify, pairs, refuse_but, values
from nceref.cli.reports import command_of, is_page_printed, report_files, show_report
from nceref.cli.verify_manifest import refuse_with_target, verify_manifest
from nceref.verification.options import AUDIT, INPUTS, OPTIONS, RANKS, REPORT, RUN, SEARCH, TARGET, names_of

_EXITS = """\b
Exit status
  0  conforms (or value-only, without --require-grad)
  1  differs
  2  wrong usage, or a package that is needed is missing or too old
  3  the checker failed its own test: a wrong answer passed
  4  the target could not be loaded, or no case could be run; a program of
     another language gave no answer on some case
  5  nothing or too little was executed, or fewer checks than the manifest has
  6  inconclusive: nothing failed, but the bounds are too wide to catch bugs
  Several targets end with the worst status; from the worst: 3, 4, 1, 5, 6, 0.

\b
Examples
  nceref verify my_losses.py:nt_xent --loss nt_xent
  nceref verify my_losses.py:NTXent --loss nt_xent
  nceref verify my_losses.py:clip_loss --loss clip --ranks 2,3
  nceref verify my_losses.py:f --loss supcon_out --set labels=given \\
      --call "f(torch.cat([embeddings]), labels)"
  nceref verify cmd:"./impl --serve" --loss nt_xent
  nceref verify --markdown losses.md --badge losses.svg
"""
_OWN_GROUPS = {
    TARGET: ("--loss", "--set"),
    INPUTS: ("--list-cases",),
    REPORT: ("--json", "--html", "--markdown", "--junit", "--repro", "--conventions"),
    "Many targets": ("--manifest", "--only", "--badge", "--update-checks", "--all", "--checkout"),
}
"""Options of the command alone, by their heading in its help."""
_TITLES = (TARGET, INPUTS, REPORT, RUN, "Many targets", RANKS)
_GROUPS = {
    title: (*_OWN_GROUPS.get(title, ()), *(option.flag for option in OPTIONS if option.group == title))
    for title in _TITLES
}


def _one_target(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str | None:
    if len(words) > 1:
        meant = f"; an object in a file is {words[0]}:{words[1]}" if words[0].endswith(".py") else ""
        msg = f"give one TARGET, got {len(words)}: {' '.join(words)}{meant}; several targets are listed in a manifest"
        raise click.UsageError(msg)
    if words and not words[0].strip():
        msg = "TARGET is empty; it is FILE.py:NAME, PACKAGE.MODULE:NAME or cmd:PROGRAM"
        raise click.UsageError(msg)
    return words[0] if words else None


@click.command(
    cls=GroupedOptions,
    groups=_GROUPS,
    short_help="Check an implementation, and name its bug.",
    epilog=_EXITS,
)
@click.argument("target", metavar="[TARGET]", nargs=-1, callback=_one_target)
@click.option("--loss", help="The reference: a name of `nceref losses`, or FILE.py:NAME.")
@click.option(
    "--set",
    "settings",
    metavar="K=V",
    multiple=True,
    help="Setting or convention that TARGET intends, as in normalize=none.",
)
@click.option("--list-cases", is_flag=True, help="List the cases of --loss or TARGET, and exit.")
@options_of_verify()
@report_files
@click.option(
    "--repro",
    "repro_file",
    metavar="FILE",
    type=file_name,
    help="Write a stand-alone script of the smallest failure.",
)
@click.option(
    "--manifest", "manifest_file", metavar="FILE", type=file_name, help="TOML with targets; default: nceref.toml."
)
@click.option("--only", metavar="NAME", multiple=True, help="Only this target of the manifest; may be repeated.")
@click.option(
    "--badge", "badge_file", metavar="FILE", type=output_file, help="Write how many of them pass, as a small SVG."
)
@click.option(
    "--update-checks",
    is_flag=True,
    default=None,
    help="Write into the manifest how many checks each target has; later runs must not have fewer.",
)
@click.option("--conventions", is_flag=True, help="List the known bugs and conventions, and exit.")
@click.option("--all", "everything", is_flag=True, help="Audit the known targets that are installed.")
@click.option("--checkout", metavar="NAME=PATH", multiple=True, help="A repository that --all audits as well.")
@click.pass_context
def verify(context: click.Context, /, target: str | None, everything: bool, **given: Any) -> None:  # fmt: skip
    """Check TARGET, `file.py:name` or `package.module:name`: a function, a class or a module object.

    Its value and gradients are compared with those of the reference, --loss, within bounds on rounding errors that are
    computed for each case. If they differ, the report names the convention or bug that explains the difference.

    Without --loss, TARGET is compared with every loss whose inputs fit, and the report names the nearest one. The exit
    status is 0 if TARGET is exactly that loss, 1 if it is not, and 4 if it could not be run as any.

    Without TARGET, all targets of a manifest are checked: nceref.toml in the working folder, or [tool.nceref] in its
    pyproject.toml.

    A class is constructed with the arguments of --init. Known targets, such as lightly.loss:NTXentLoss, need no
    options. A program of another language is cmd:"./impl --serve"; it answers one JSON object a line.

    TARGET is executed with your rights, and so is a file that --loss names: check no program that you do not trust, or
    use --isolate. It isolates only TARGET, and refuses a file that --loss names.
    """
    if given["conventions"]:
        from nceref.verification.page import conventions

        show(conventions())
        return
    if everything and target:
        msg = "give one TARGET, or --all"
        raise click.UsageError(msg)
    if not (everything or target):
        context.exit(_list(None, given) if given["list_cases"] else verify_manifest(context, given))
    refuse_with_target(given)
    _check_files(target, given)
    if everything:
        context.exit(_audit(context, given))
    if given["list_cases"]:
        context.exit(_list(target, given))
    one_loss = given["against"] or _loss_is_known(target, given)
    context.exit((_verify if one_loss else _identify)(context, target or "", given))


def _check_files(target: str | None, given: dict[str, Any]) -> None:
    """Refuse a file that cannot be written, or that is read, before anything runs."""
    from nceref.output.files import must_be_writable

    outputs = {f"--{option}": given[f"{option}_file"] for option in ("json", "html", "markdown", "junit", "repro")}
    file = (target or "").rpartition(":")[0]
    inputs = {"TARGET": file if file.endswith(".py") else None, "--expected-failures": given["expected_failures"]}
    must_be_writable({}, outputs, inputs)


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `nceref.verify` for the words of a command line."""
    conventions = pairs("--set", given["settings"])
    return {**conventions, "loss": given["loss"], "repro": bool(given["repro_file"]), **values(given)}


def _loss_is_known(target: str | None, given: dict[str, Any]) -> bool:
    """Whether --loss names one, or a target of a released package brings its own."""
    from nceref.targets.peers.peer import find

    return bool(given["loss"]) or any(find(text) is not None for text in (target, given["against"]) if text)


_FILES = {"json_file", "html_file", "markdown_file"}


def _identify(context: click.Context, target: str, given: dict[str, Any]) -> int:
    """Print which loss a target is."""
    refuse_but(context, {"target", "settings", *names_of(SEARCH), *_FILES}, "is about one loss: add --loss LOSS")
    from nceref.cli.common import echo
    from nceref.errors import TargetError
    from nceref.output.json_text import json_text
    from nceref.output.terminal import progress
    from nceref.verification.identify import candidates, page_of, record
    from nceref.verification.report import CONFORMS, DIFFERS, TARGET_FAILED

    options = {name: x for name, x in values(given).items() if name in names_of(SEARCH)}
    try:
        with progress("trying losses") as on_progress:
            tried = candidates(target, on_progress=on_progress, **options, **pairs("--set", given["settings"]))
    except TargetError as error:
        echo(f"Error: {error}", err=True)
        return TARGET_FAILED
    page = page_of(target, tried, command_of(context))
    makers = {
        "json": lambda: json_text([record(one) for one in tried]),
        "html": lambda: page.written("html"),
        "markdown": lambda: page.written("markdown"),
    }
    show_report(makers, given, lambda: page)
    return CONFORMS if tried[0].report.ok else DIFFERS


def _verify(context: click.Context, target: str | None, given: dict[str, Any]) -> int:
    from contextlib import ExitStack
    from dataclasses import replace

    from nceref.output.terminal import note, progress
    from nceref.verification.page import verdict_of
    from nceref.verification.report import page_of, rest_of
    from nceref.verification.verifier import verify_with

    printed = ""
    with ExitStack() as stack:
        on_progress = stack.enter_context(progress("judging cases"))

        def on_verdict(report: Any) -> None:
            # The line of progress would stand below what is printed.
            nonlocal printed
            stack.close()
            if is_page_printed(given):
                show(verdict_of(report))
                printed = report.reason
            note("looking for an explanation; Ctrl-C ends that, and keeps the verdict")

        options = _options(given)
        if given["against"] and not _loss_is_known(target, given):
            from nceref.registry import must_be_there
            from nceref.verification.identify import with_loss_of

            must_be_there(target or "")
            options = with_loss_of(given["against"], options)
        report = verify_with(target or "", on_progress=on_progress, on_verdict=on_verdict, **options)
    report = replace(report, command=command_of(context))
    makers = {"json": report.to_json, "html": report.to_html, "markdown": report.to_markdown,
              "junit": report.to_junit, "repro": lambda: report.repro}  # fmt: skip
    show_report(makers, given, lambda: rest_of(report, printed=printed) if printed else page_of(report))
    return report.exit_code


def _list(target: str | None, given: dict[str, Any]) -> int:
    if not (target or given["loss"]):
        msg = "--list-cases needs --loss LOSS, whose cases are listed, or TARGET"
        raise click.UsageError(msg)
    from nceref.verification.page import cases
    from nceref.verification.verifier import corpus_of

    show(cases(corpus_of(target, **_options(given))))
    return 0


def _audit(context: click.Context, given: dict[str, Any]) -> int:
    taken = "--suite, --dtype, --checkout, --json, --html and --markdown"
    refuse_but(
        context, {"everything", "checkout", *names_of(AUDIT), *_FILES}, f"does not go with --all, which takes {taken}"
    )
    from nceref.output.json_text import json_text
    from nceref.output.terminal import progress
    from nceref.verification.audit import audit
    from nceref.verification.audit import page as audit_page

    with progress("judging released packages") as on_progress:
        rows = audit.audit(
            suite=given["suite"],
            dtypes=given["dtype"],
            checkouts=pairs("--checkout", given["checkout"]),
            on_progress=on_progress,
        )
    makers = {"json": lambda: json_text(audit.record(rows)), "html": lambda: audit_page.html(rows),
              "markdown": lambda: audit_page.published(rows, given["suite"]).written("markdown")}  # fmt: skip
    show_report(makers, given, lambda: audit_page.page_of(rows))
    return audit.exit_code(rows)
