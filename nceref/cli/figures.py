"""`nceref figures`: all figures, drawn again or checked."""

import click

from nceref.cli.common import FINDING, echo, figure_folder, figure_formats, show, wrote


@click.command(short_help="Draw the figures, or check those in a folder.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@figure_folder
@figure_formats
@click.option("--check", "only_check", is_flag=True, help="Compare with the files in the folder; write nothing.")
@click.option("--list", "only_names", is_flag=True, help="Print the names and titles of the figures; write nothing.")
@click.pass_context
def figures(
    context: click.Context,
    /,
    names: tuple[str, ...],
    out: str,
    formats: tuple[str, ...],
    only_check: bool,
    only_names: bool,
) -> None:
    """Draw all figures, or those with a NAME.

    Writes NAME.svg, NAME.png, manifest.json and an index, README.md, into ./figures or the folder of --out, and prints
    each file that it wrote. A table's NAME stands for the figure that draws it.

    With --check the exit status is 1 if a figure is not what would be drawn now, 2 if there is no manifest.
    """
    from nceref.output import files
    from nceref.theory import figure_files, table_formats

    if only_names and only_check:
        msg = "--list prints names and --check compares files: give one of them"
        raise click.UsageError(msg)
    if formats and (only_names or only_check):
        msg = f"--format says what is drawn; it goes without {'--list' if only_names else '--check'}"
        raise click.UsageError(msg)
    if only_names:
        show(table_formats.names(figure_files.chosen(names)))
    elif not only_check:
        files.must_be_writable({"--out": out}, {})
        alone = figure_files.draw_alone(figure_files.chosen(names), out, formats) if formats else None
        for path in alone or figure_files.draw(names, out):
            wrote(path)
    else:
        checked = figure_files.check(names, out)
        for one in checked:
            echo("\n".join(f"{one.figure}: {finding}" for finding in one.findings) or f"{one.figure}: ok")
        for note in dict.fromkeys(one.note for one in checked if one.note):
            echo(note, err=True)
        if any(one.findings for one in checked):
            context.exit(FINDING)
