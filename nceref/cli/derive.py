"""`nceref derive`: derivations, step by step."""

import click

from nceref.cli.common import echo, output_file, show, wrote


@click.command(short_help="Print a derivation, every step of it checked.")
@click.argument("topic", required=False)
@click.option("--text", "form", flag_value="text", default="text", help="Formulas for reading; the default.")
@click.option("--latex", "form", flag_value="latex", help="A fragment for a LaTeX document with amsmath.")
@click.option("--out", metavar="FILE", type=output_file, help="Write to this file, as a whole or not at all.")
def derive(topic: str | None, form: str, out: str | None) -> None:
    """Print the derivation of a TOPIC, each step checked before it is printed; without a TOPIC, list the topics."""
    from nceref.output import files, streams
    from nceref.output.pages import WIDTH
    from nceref.output.terminal import screen
    from nceref.theory import derivation, table_formats

    if topic is None:
        if out is not None or form != "text":
            msg = "--latex and --out go with a TOPIC; see `nceref derive`"
            raise click.UsageError(msg)
        show(table_formats.names(derivation.topics().values()))
    elif out in (None, "-"):
        chosen, width = derivation.get(topic), screen().get("width", WIDTH)
        text = derivation.render(chosen, form, width)
        # In an encoding without the letters of mathematics, formulas are set in plain ones.
        echo(text if streams.encodes(text) else derivation.render(chosen, "ascii", width), nl=False)
    else:
        files.must_be_writable({}, {"--out": out})
        files.write_text(out, derivation.render(derivation.get(topic), form), "--out")
        wrote(out)
