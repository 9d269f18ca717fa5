"""`nceref plot-limits`: the two limits of the temperature."""

import click

from nceref.cli.common import figure_folder, figure_formats, wrote


def _numbers(_: click.Context, option: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    """Numbers with commas between them; of no number the option is named."""
    if text is None:
        return None
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        msg = f"{option.opts[0]} takes numbers with commas between them, such as 0.5,0.1, got {text!r}"
        raise click.UsageError(msg) from None


@click.command("plot-limits", short_help="Draw the limits of low and high temperature.")
@figure_folder
@click.option(
    "--similarities",
    metavar="S,S[,S]",
    callback=_numbers,
    help="Draw your own case instead, as limits.svg and .png: the cosine of the positive, then those of negatives.",
)
@click.option(
    "--temperatures",
    metavar="LOW,HIGH",
    callback=_numbers,
    help="Temperatures of your own case; the second panel goes from HIGH / 3 up to infinity. [default: 0.01,1]",
)
@figure_formats
def plot_limits(
    out: str, similarities: tuple[float, ...] | None, temperatures: tuple[float, ...] | None, formats: tuple[str, ...]
) -> None:
    """Draw tau L against tau, L against 1 / tau, each in its proven band, and an L(tau) that has a minimum.

    Writes limit-zero, limit-infinity and limit-minimum as .svg and .png, manifest.json and an index, README.md, into
    ./figures or the folder of --out, and prints each file that it wrote.
    """
    from nceref.output import files
    from nceref.theory import figure_files, limits

    if temperatures and not similarities:
        msg = "--temperatures goes with --similarities: the published cases have temperatures of their own"
        raise click.UsageError(msg)
    published = figure_files.drawn_by("nceref plot-limits")
    own = [limits.own_case(similarities, temperatures or limits.TEMPERATURES)] if similarities else []
    files.must_be_writable({"--out": out}, {})
    if own or formats:
        wanted = own or figure_files.chosen(published)
        paths = figure_files.draw_alone(wanted, out, formats or figure_files.FORMATS)
    else:
        paths = figure_files.draw(published, out)
    for path in paths:
        wrote(path)
