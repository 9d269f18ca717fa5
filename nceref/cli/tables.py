"""`nceref tables`: the published tables, computed again."""

from collections.abc import Sequence
from typing import Any

import click

from nceref.cli.common import echo, echo_json, echo_json_text, show
from nceref.output.pages import FORMS


@click.command(short_help="Recompute the published tables and compare.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *FORMS, "csv", "json"]),
    default="text",
    show_default=True,
)
@click.option(
    "--digits",
    type=click.IntRange(1, 17),
    help="Significant digits of computed numbers; default in LaTeX: as many as the published number, or six. Published "
    "numbers stay as printed, and verdicts compare all digits.",
)
@click.option("--out", type=click.Path(file_okay=False), help="Write one file for each table into this folder.")
@click.option("--list", "only_names", is_flag=True, help="Print the names and titles of the tables.")
def tables(names: tuple[str, ...], form: str, digits: int | None, out: str | None, only_names: bool) -> None:
    """Recompute the published tables, all or those with a NAME, and compare them entry by entry.

    The text of several tables begins with how many of their published numbers agree, and which do not.
    """
    from nceref.output import files
    from nceref.output.pages import joined
    from nceref.registry import choose, discover
    from nceref.theory import table_formats
    from nceref.theory.table import Table

    chosen = choose("table", names, discover("nceref.theory.tables", "TABLE", Table), "nceref tables --list")
    if not names and form == "text" and not only_names:
        chosen = table_formats.published_first(chosen)
    if digits is not None and (only_names or form == "json"):
        msg = f"--digits goes without {'--list' if only_names else '--format json, which has 12'}"
        raise click.UsageError(msg)
    if only_names:
        _echo_names(chosen, form, out)
    elif out is not None:
        files.must_be_writable({"--out": out}, {})
        table_formats.save(chosen, form, out, lambda done, path: echo(f"{done} {path}", err=True), digits)
    elif form == "html":
        show(joined(table_formats.page_of(table, show=table_formats.shown(digits)) for table in chosen), form)
    else:
        # Several JSON tables are one array, also if there is one, so that programs read all alike.
        opening, between, closing = ("[\n", ",\n", "]\n") if form == "json" else ("", "\n\n", "")
        if form == "text" and len(chosen) > 1:
            show(table_formats.summary(chosen, digits))
            echo("\n")
        text = opening + between.join(table_formats.render(table, form, digits) for table in chosen) + closing
        # Text is printable already, and has the colors of a terminal.
        echo_json_text(text) if form == "json" else click.echo(text, nl=False)


def _echo_names(tables: Sequence[Any], form: str, out: str | None) -> None:
    from nceref.theory import table_formats

    if out is not None or form not in ("text", "json"):
        msg = (
            f"--list prints text or, with --format json, JSON; it goes without {'--out' if out else f'--format {form}'}"
        )
        raise click.UsageError(msg)
    if form == "json":
        echo_json([{"name": table.name, "title": table.title} for table in tables])
    else:
        show(table_formats.names(tables))
