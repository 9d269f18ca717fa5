"""`nceref plot-limits`: the two limits of the temperature."""

import click

from nceref.cli.common import echo


@click.command("plot-limits", short_help="Draw the limits of low and high temperature.")
@click.option("--out", type=click.Path(file_okay=False), default="figures", show_default=True, help="Folder.")
def plot_limits(out: str) -> None:
    """Draw tau L against tau, L against 1 / tau, each in its proven band, and an L(tau) that has a minimum."""
    from nceref.output import files
    from nceref.theory import figure_files

    files.must_be_writable({"--out": out}, {})
    for path in figure_files.draw(figure_files.drawn_by("nceref plot-limits"), out):
        echo(path)
