"""`nceref derive`: derivations, step by step."""

import click

from nceref.cli.common import output_file, page_format, show, wrote


@click.command(short_help="Print a derivation, every step of it checked.")
@click.argument("topic", required=False)
@page_format()
@click.option("--text", "form", flag_value="text", default="text", help="The same as --format text.")
@click.option("--latex", "form", flag_value="latex", default="text", help="The same as --format latex.")
@click.option("--out", metavar="FILE", type=output_file, help="Write to this file, as a whole or not at all.")
def derive(topic: str | None, form: str, out: str | None) -> None:
    """Print the derivation of a TOPIC, each step checked before it is printed; without a TOPIC, list the topics."""
    from nceref.output import files, streams
    from nceref.theory import derivation, table_formats

    if topic is None:
        if out is not None:
            msg = "--out goes with a TOPIC; see `nceref derive`"
            raise click.UsageError(msg)
        show(table_formats.names(derivation.topics().values()), form)
    elif out in (None, "-"):
        chosen = derivation.get(topic)
        page = derivation.page_of(chosen)
        # In an encoding without the letters of mathematics, formulas are set in plain ones.
        is_plain = form == "text" and not streams.encodes(str(page))
        show(derivation.page_of(chosen, unicode=False) if is_plain else page, form)
    else:
        files.must_be_writable({}, {"--out": out})
        files.write_text(out, derivation.render(derivation.get(topic), form), "--out")
        wrote(out)
