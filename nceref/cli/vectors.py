"""`nceref vectors`: reference vectors for implementations in any language, and the judgment of outputs on them."""

from typing import Any

import click

from nceref.cli.common import FINDING, changed_files, echo, echo_json, page_format, show, wrote
from nceref.cli.reports import command_of, report_files, show_report

_FORMATS = click.Choice(["float64", "float32", "bfloat16", "float16"])


@click.group(short_help="Reference vectors for implementations in any language.")
def vectors() -> None:
    """Inputs with proven outputs and allowed errors, for implementations that Python cannot call.

    `nceref vectors compare` checks the answers of an implementation.
    """


@vectors.command("list", short_help="List the losses with vectors, or the cases of some.")
@click.argument("losses", metavar="[LOSS]...", nargs=-1)
@page_format(": the manifest, or one object for each case")
def list_(losses: tuple[str, ...], form: str) -> None:
    """List how many cases each loss has, or the cases of each LOSS with the number of known bugs that they find."""
    from nceref.cli import vectors_page
    from nceref.verification.vectors.ranks_file import read_ranks
    from nceref.verification.vectors.store import read_vectors

    read = read_vectors(losses=losses)
    ranks = read_ranks(read.manifest, losses=losses)
    if form == "json":
        cases = [*(case for each in read.cases.values() for case in each), *(case.joined for case in ranks)]
        echo_json(
            [vectors_page.line_of(case) for case in cases] if losses else {**read.manifest, "sha256": read.sha256}
        )
    else:
        show(vectors_page.cases(read, ranks) if losses else vectors_page.overview(read, ranks), form)


@vectors.command(short_help="Show all about one case.")
@click.argument("id_", metavar="ID")
@page_format(": the record as it is exported")
def info(id_: str, form: str) -> None:
    """Show the inputs of one case, its proven outputs, the allowed errors, and the known bugs that it finds."""
    from nceref.cli import vectors_page
    from nceref.registry import choose
    from nceref.verification.vectors.ranks_file import ranks_record, read_ranks
    from nceref.verification.vectors.records import record_of
    from nceref.verification.vectors.store import losses_of, read_vectors

    # All files only for a case on several ranks, and to suggest an id.
    read = read_vectors(losses=tuple(losses_of({id_}).values()))
    ranks = {case.id: case for case in ([] if len(read.cases) == 1 else read_ranks(read.manifest))}
    cases = {case.id: case for each in read.cases.values() for case in each} | {id: x.joined for id, x in ranks.items()}
    if id_ in read.cases:
        msg = f"{id_} is a loss, and ID that of a case; its cases are listed by `nceref vectors list {id_}`"
        raise click.UsageError(msg)
    (case,) = choose("case", [id_], cases, "nceref vectors list LOSS")
    if form == "json":
        echo_json(ranks_record(ranks[case.id]) if case.id in ranks else {"loss": case.loss, **record_of(case)})
    else:
        show(vectors_page.page_of(case, ranks.get(case.id)), form)


@vectors.command(short_help="Write vectors for another program to read.")
@click.option("--loss", "losses", metavar="LOSS", multiple=True, help="May be repeated.  [default: all]")
@click.option("--dtype", type=_FORMATS, help="Only the cases of this format, with its allowed errors.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "npz", "safetensors", "c-header"]),
    default="json",
    show_default=True,
    help="Write this format as well; JSON is always written.",
)
@click.option("--full", is_flag=True, help="Include all rows of the gradients of large cases; takes minutes.")
@click.option("--as", "as_", type=click.Choice(["test"]), help="Write tests that need no nceref, with their vectors.")
@click.option("--for", "library", type=click.Choice(["torch", "numpy", "jax"]), help="Of --as test: what losses use.")
@click.option("--runner", type=click.Choice(["pytest", "unittest"]), help="Of --as test.  [default: pytest]")
@click.option("--force", is_flag=True, help="Of --as test: replace files that have other contents.")
@click.option("--out", type=click.Path(file_okay=False), required=True, help="Write into this folder.")
def export(
    losses: tuple[str, ...],
    dtype: str | None,
    format_: str,
    full: bool,
    as_: str | None,
    library: str | None,
    runner: str | None,
    force: bool,
    out: str,
) -> None:
    """Write MANIFEST.json and a file for each loss; docs/vectors.md has the format.

    With --as test, write test_LOSS.py and LOSS_vectors.json instead, to be copied into another repository.
    """
    from nceref.verification.vectors.export import export

    of_tests = {"--for": library, "--runner": runner, "--force": force}
    if as_:
        _export_tests(out, losses, of_tests, {"--dtype": dtype, "--format": format_ != "json", "--full": full})
        return
    if wrong := [option for option, given in of_tests.items() if given]:
        msg = f"{wrong[0]} is an option of --as test: add --as test, or leave {wrong[0]} out"
        raise click.UsageError(msg)
    with changed_files():
        for path in export(out, losses, dtype or "", format_, full):
            wrote(path)


def _export_tests(out: str, losses: tuple[str, ...], given: dict[str, Any], others: dict[str, Any]) -> None:
    """Write tests, and say how many cases they have."""
    from nceref.output.words import out_of
    from nceref.verification.vectors.vendored import export_tests

    if wrong := [option for option, x in others.items() if x]:
        msg = f"--as test writes small cases in float64 and float32; leave {wrong[0]} out"
        raise click.UsageError(msg)
    if not given["--for"]:
        msg = "--as test needs the library that the loss uses: --for torch, --for numpy or --for jax"
        raise click.UsageError(msg)
    runner = given["--runner"] or "pytest"
    for one in export_tests(out, losses, library=given["--for"], runner=runner, force=given["--force"]):
        wrote(one.data)
        wrote(one.test)
        rest = f"; left out: {one.left_out}" if one.left_out else ""
        echo(f"{one.loss}: {out_of(one.kept, one.count, 'case')}{rest}")


@vectors.command(short_help="Compare vectors with the formulas.")
@click.argument("folder", required=False)
@click.option("--loss", "losses", metavar="LOSS", multiple=True, help="May be repeated.  [default: all]")
@page_format(", one object for each loss")
@click.pass_context
def check(context: click.Context, folder: str | None, losses: tuple[str, ...], form: str) -> None:
    """Check the vectors of this package, or those in FOLDER: checksums, contents and numbers.

    Numbers of small cases are enclosed again, by python-flint (pip install 'nceref[certify]') or, without it, by
    decimals; large cases are compared with the program. The exit status is 1 if a number is contradicted, 7 if a file
    was changed.
    """
    from nceref.cli import vectors_page
    from nceref.output.terminal import progress
    from nceref.verification.vectors.check import check_all, summary
    from nceref.verification.vectors.ranks_check import check_cases
    from nceref.verification.vectors.ranks_file import read_ranks
    from nceref.verification.vectors.store import check_files, read_vectors

    with changed_files():
        files = check_files(folder)
        read = read_vectors(folder, losses)
        ranks = read_ranks(read.manifest, folder, losses)
    cases = {loss: [*each, *(r for r in ranks if r.joined.loss == loss)] for loss, each in read.cases.items()}
    with progress("computing outputs", len(cases)) as on_progress:
        results = [on_progress(result) for result in check_all(cases, check_cases)]
    if form == "json":
        echo_json(summary(results))
    else:
        show(vectors_page.checked(results, files), form)
    if any(result.wrong for result in results):
        context.exit(FINDING)


_EPILOG = """\b
Lines of OUTPUTS
  {"manifest": SHA256 of MANIFEST.json}
      and, if you like, "implementation": TEXT, "dtype": "float64" or another
  {"id": ID, "value": x, "grad": {NAME: [...]}}
  {"id": ID, "error": TEXT}            where it refuses the inputs
  {"id": ID, "unsupported": REASON}
  {"id": ID, "ranks": [{"value": x, "grad": {NAME: [...]}}, ...]}

\b
Exit status, of several losses the first of 3, 4, 1, 5, 6, 0
  0  conforms (or value-only)
  1  differs
  2  wrong usage, or a line that is no answer
  3  the checker failed its own test: a wrong answer passed
  4  no case could be judged: each has an error
  5  too few cases have an answer
  6  inconclusive: nothing failed, but the bounds are too wide to catch bugs
  7  other vectors than those of OUTPUTS, or a broken checksum

\b
Example
  nceref vectors export --loss nt_xent --out vectors
  ./impl vectors > outputs.jsonl
  nceref vectors compare vectors outputs.jsonl
"""


@vectors.command(short_help="Check the answers of a program to reference vectors.", epilog=_EPILOG)
@click.argument("vectors", type=click.Path())
@click.argument("outputs", type=click.Path())
@report_files
@click.pass_context
def compare(context: click.Context, /, vectors: str, outputs: str, **given: Any) -> None:
    """Check OUTPUTS, the answers of a program to VECTORS, the folder that `nceref vectors export` wrote.

    OUTPUTS are lines of JSON: first the manifest that was read, then, in any order, a line for each case. Without
    "grad" the value alone is judged. The report is that of `nceref verify`.

    Numbers are those of JSON, the 16 hexadecimal digits of a float64, "NaN", "Infinity" or "-Infinity"; arrays are flat
    lists, row by row.
    """
    from dataclasses import replace

    from nceref.output.files import must_be_writable
    from nceref.output.json_text import json_text
    from nceref.output.terminal import progress
    from nceref.verification.document import html_of
    from nceref.verification.report import junit_of
    from nceref.verification.several_reports import page_of, record, worst
    from nceref.verification.vectors import compare as recorded

    formats = {f"--{option}": given[f"{option}_file"] for option in ("json", "html", "markdown", "junit")}
    must_be_writable({}, formats, {"OUTPUTS": outputs})
    with changed_files(), progress("judging outputs") as on_progress:
        reports = recorded.compare(vectors, outputs, on_progress)
    reports = tuple(replace(report, command=command_of(context)) for report in reports)
    page = page_of(reports)
    makers = {
        "json": lambda: json_text(record(reports)),
        "html": lambda: html_of(reports),
        "markdown": lambda: page.written("markdown"),
        "junit": lambda: junit_of(reports),
    }
    show_report(makers, given, lambda: page)
    context.exit(worst(reports))
