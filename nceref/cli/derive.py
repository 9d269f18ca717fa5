"""`nceref derive`: derivations, step by step."""

import click

from nceref.cli.common import echo, show


@click.command(short_help="Print a derivation, every step of it checked.")
@click.argument("topic", required=False)
@click.option("--text", "form", flag_value="text", default="text", help="Formulas for reading; the default.")
@click.option("--latex", "form", flag_value="latex", help="A fragment for a LaTeX document with amsmath.")
@click.option("--out", type=click.Path(), help="Write to this file, as a whole or not at all.")
def derive(topic: str | None, form: str, out: str | None) -> None:
    """Print the derivation of a TOPIC, each step checked before it is printed; without a TOPIC, list the topics."""
    from nceref.output import streams
    from nceref.output.pages import WIDTH
    from nceref.output.terminal import screen
    from nceref.theory import derivation, table_formats

    out = None if out == "-" else out
    if topic is None:
        if out is not None or form != "text":
            msg = "--latex and --out go with a TOPIC; see `nceref derive`"
            raise click.UsageError(msg)
        show(table_formats.names(derivation.topics().values()))
    elif out is None:
        chosen, width = derivation.get(topic), screen().get("width", WIDTH)
        text = derivation.render(chosen, form, width)
        # In an encoding without the letters of mathematics, formulas are set in plain ones.
        echo(text if streams.encodes(text) else derivation.render(chosen, "ascii", width), nl=False)
    else:
        derivation.save(derivation.render(derivation.get(topic), form), out)
