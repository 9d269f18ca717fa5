"""`nceref compare`: judge what an implementation in any language answered on reference vectors."""

from typing import Any

import click

from nceref.cli.common import changed_files
from nceref.cli.reports import command_of, report_files, show_report

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
  6  inconclusive: nothing failed, but the cases could not have seen it
  7  other vectors than those of OUTPUTS, or a broken checksum

\b
Example
  nceref vectors export --loss nt_xent --out vectors
  ./impl vectors > outputs.jsonl
  nceref compare vectors outputs.jsonl
"""


@click.command(short_help="Judge recorded outputs on reference vectors.", epilog=_EPILOG)
@click.argument("vectors", type=click.Path())
@click.argument("outputs", type=click.Path())
@report_files
@click.pass_context
def compare(context: click.Context, /, vectors: str, outputs: str, **given: Any) -> None:
    """Judge OUTPUTS, what an implementation answered on VECTORS, the folder that `nceref vectors export` wrote.

    OUTPUTS are lines of JSON: first the manifest that was read, then, in any order, a line for each case. Without
    "grad" the value alone is judged. The report is that of `nceref verify`.

    Numbers are those of JSON, the 16 hexadecimal digits of a float64, "NaN", "Infinity" or "-Infinity"; arrays are flat
    lists, row by row.
    """
    from dataclasses import replace

    from nceref.output.files import must_be_writable
    from nceref.output.json_text import json_text
    from nceref.output.terminal import progress
    from nceref.verification.html.document import html_of
    from nceref.verification.report import junit_of
    from nceref.verification.several_reports import page_of, record, worst
    from nceref.verification.vectors import compare as recorded

    formats = {f"--{option}": given[f"{option}_file"] for option in ("json", "html", "junit")}
    must_be_writable({}, formats, {"OUTPUTS": outputs})
    with changed_files(), progress("judging outputs") as on_progress:
        reports = recorded.compare(vectors, outputs, on_progress)
    reports = tuple(replace(report, command=command_of(context)) for report in reports)
    makers = {
        "json": lambda: json_text(record(reports)),
        "html": lambda: html_of(reports),
        "junit": lambda: junit_of(reports),
    }
    show_report(makers, given, lambda: page_of(reports))
    context.exit(worst(reports))
