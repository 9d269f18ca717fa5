"""`nceref equal`: whether two programs are one loss."""

from typing import Any

import click

from nceref.cli.common import page_format
from nceref.cli.options import options_of_verify, pairs, values
from nceref.cli.reports import show_report


@click.command(
    short_help="Say whether two programs are the same loss.",
    epilog="""\b
Exit status
  0  equal, also up to a factor, a reduction or a setting, which is printed
  1  different
  2  wrong usage
  4  not judged

\b
Examples
  nceref equal new_losses.py:nt_xent old_losses.py:nt_xent
  nceref equal my_losses.py:Margin info_nce
""",
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--loss", help="The loss whose inputs both take; default: what A is found to be.")
@click.option("--set", "settings", metavar="K=V", multiple=True, help="Setting or convention that both intend.")
@options_of_verify("call", "init", "framework", "suite", "dtype", "seed", "timeout", "isolate", "calls")
@page_format(file=True)
@click.pass_context
def equal(context: click.Context, /, first: str, second: str, form: str, **given: Any) -> None:
    """Say whether A and B are the same loss: `file.py:name`, `package.module:name`, or a name of `nceref losses`.

    Both are called on the designed cases, and values and gradients must agree within the bounds on rounding errors of
    the loss that A is, or by A's own errors. Equal are also programs that differ by a factor or a reduction, and by one
    argument of either, as in `B(margin=0)`: numbers are tried at 0 and 1.

    --call, --init and --framework are those of B. A is called in the same way where it can be.
    """
    from nceref.output.files import must_be_writable
    from nceref.output.json_text import json_text
    from nceref.output.terminal import progress
    from nceref.verification.equal import equality, page_of

    places = (text.rpartition(":")[0] for text in (first, second))
    must_be_writable({}, {"--json": given["json_file"]}, {place: place for place in places if place.endswith(".py")})
    options = {**pairs("--set", given["settings"]), **values(given)}
    with progress("judging cases") as on_progress:
        found = equality(first, second, given["loss"], on_progress, **options)
    show_report({"json": lambda: json_text(found.record())}, given, lambda: page_of(found), form)
    context.exit(found.exit_code)
