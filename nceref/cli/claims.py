"""`nceref claims`: every statement of the sources with its verdict, and all about one."""

import click

from nceref.cli.common import echo_json, show


@click.command(short_help="List the claims of the sources, or show all about one.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--verdict", help="Only claims with this verdict, as in --verdict wrong.")
@click.option("--source", help="Only claims whose source has this in its name, as in --source 004.")
@click.option("--latex", is_flag=True, help="With an ID: its formula in LaTeX, in one line, to be copied.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each claim.")
def claims(ids: tuple[str, ...], verdict: str | None, source: str | None, latex: bool, as_json: bool) -> None:
    """List the claims of the sources with their verdicts, or show all about each ID.

    The verdicts are those that `nceref prove` derives; numbers and counterexamples of an ID are computed now.
    """
    from nceref.cli import claims_page
    from nceref.output.pages import joined

    shown = claims_page.select(ids, verdict, source)
    if latex and (as_json or not ids):
        msg = f"--latex goes {'without --json, which has it' if as_json else 'with an ID, as in --latex WL-13'}"
        raise click.UsageError(msg)
    if as_json:
        echo_json([claims_page.record(claim) for claim in shown])
    elif ids:
        show(joined(claims_page.page_of(claim, latex) for claim in shown))
    else:
        show(claims_page.overview(shown))
