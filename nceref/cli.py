"""The command line. A command parses, calls and prints; what it needs is imported when it runs.

Exit status: 0, all is well; 1, a finding; 2, wrong usage or input; 130, interrupted.
"""

import sys
from collections.abc import Sequence
from typing import Any

import click

from nceref import __version__
from nceref.errors import NcerefError

FINDING, WRONG_INPUT, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.
    """
    _die_quietly_of_a_closed_pipe()
    try:
        status = nceref.main(arguments, prog_name="nceref", standalone_mode=False)
    except click.Abort:
        status = INTERRUPTED
    except click.ClickException as error:
        error.show()
        status = WRONG_INPUT
    except (NcerefError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        status = WRONG_INPUT
    sys.exit(status)


def _die_quietly_of_a_closed_pipe() -> None:
    import signal

    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, message="%(prog)s %(version)s")
def nceref() -> None:
    """Check contrastive losses against exact values, hand-derived gradients and theorems."""


@nceref.command(short_help="List the losses, or show all about one.")
@click.argument("loss", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each loss.")
@click.option("--latex", is_flag=True, help="Print the formula in LaTeX; of all, each below its name.")
def losses(loss: str | None, as_json: bool, latex: bool) -> None:
    """List the losses, or show all about one LOSS: formula, gradient, inputs, properties, sources."""
    from nceref import listing
    from nceref.losses import all_losses, get_loss
    from nceref.terminal import screen

    if as_json and latex:
        msg = '--latex and --json exclude each other; the JSON holds the formula in LaTeX, as "latex"'
        raise click.UsageError(msg)
    shown = [get_loss(loss)] if loss else list(all_losses().values())
    if as_json:
        _echo_json([listing.record(one) for one in shown])
    elif latex:
        click.echo("\n".join(one.latex if loss else f"% {one.name}\n{one.latex}" for one in shown))
    else:
        click.echo(listing.single(shown[0], **screen()) if loss else listing.text(shown, **screen()), nl=False)


@nceref.command(short_help="Recompute the published tables and compare.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "csv", "json"]), default="text", show_default=True
)
@click.option("--out", type=click.Path(file_okay=False), help="Write one file for each table into this folder.")
@click.option("--list", "only_names", is_flag=True, help="Print the names and titles of the tables.")
def tables(names: tuple[str, ...], form: str, out: str | None, only_names: bool) -> None:
    """Recompute the published tables, all or those with a NAME, and compare them entry by entry."""
    from nceref import report
    from nceref.registry import discover, unknown
    from nceref.spec import Table

    known = discover("nceref.tables", "TABLE", Table)
    for name in names:
        if name not in known:
            error = unknown("table", name, tuple(known), "nceref tables --list")
            raise error
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if only_names:
        _echo_names(chosen, form, out)
    elif out is not None:
        report.save(chosen, form, out, noted=lambda done, path: click.echo(f"{done} {path}"))
    else:
        opening, between, closing = ("[\n", ",\n", "]\n") if form == "json" else ("", "\n\n", "")
        click.echo(opening + between.join(report.render(table, form) for table in chosen) + closing, nl=False)


def _echo_names(tables: Sequence[Any], form: str, out: str | None) -> None:
    from nceref import report
    from nceref.terminal import screen

    if out is not None or form not in ("text", "json"):
        msg = (
            f"--list prints text or, with --format json, JSON; it goes without {'--out' if out else f'--format {form}'}"
        )
        raise click.UsageError(msg)
    if form == "json":
        _echo_json([{"name": table.name, "title": table.title} for table in tables])
    else:
        click.echo(report.names(tables, **screen()), nl=False)


@nceref.command(short_help="Check the losses against formulas and theorems.")
@click.argument("names", metavar="[LOSS]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each result.")
@click.pass_context
def check(context: click.Context, /, names: tuple[str, ...], as_json: bool) -> None:
    """Check all losses, or each LOSS, against their exact formulas, declared properties and relations.

    The exit status is 1 if a check fails.
    """
    from dataclasses import asdict
    from itertools import groupby

    from nceref import listing
    from nceref.check import count, run
    from nceref.losses import all_losses
    from nceref.terminal import progress, screen

    chosen, results = tuple(dict.fromkeys(names)) or tuple(all_losses()), []
    with progress(count(chosen)) as noted:
        for _, group in groupby(map(noted, run(chosen)), key=lambda result: result.loss):
            results += (found := list(group))
            if not as_json:
                click.echo(listing.results(found, **screen()))
    if as_json:
        _echo_json([asdict(result) for result in results])
    else:
        click.echo(listing.tally(results))
    if any(result.status == "fail" for result in results):
        context.exit(FINDING)


@nceref.command(
    short_help="Say what a loss should read, and what a reading means.",
    epilog="\b\nWhy am I stuck at 6.236?\n  nceref expect --loss nt_xent --n 256 --temperature 0.07 --value 6.236",
)
@click.option("--loss", "name", required=True, help="Name of a loss, see `nceref losses`.")
@click.option("--n", metavar="N", help="Samples in the batch: pairs of views, for two views.")
@click.option("--temperature", metavar="T", help="Divides the similarities; 1/T for a loss with a logit scale.")
@click.option("--dim", metavar="D", help="Features of an embedding.")
@click.option("--set", "more", metavar="NAME=VALUE", multiple=True, help="Another size or scalar, as in classes=100.")
@click.option("--value", metavar="X", help="What yours reads: tell which situation that is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object.")
@click.pass_context
def expect(
    context: click.Context, /, name: str, more: tuple[str, ...], value: str | None, as_json: bool, **given: str | None
) -> None:
    """Say what a loss should read at chance, at collapse and at the optimum, and between which bounds.

    The exit status is 1 if no batch can read the value.
    """
    from nceref import listing
    from nceref.expect import outlook
    from nceref.place import locate
    from nceref.terminal import screen

    found = outlook(name, _once([*given.items(), *map(_name_and_value, more)]))
    place = None if value is None else locate(found, value)
    if as_json:
        _echo_json(listing.outlook_record(found, place))
    else:
        click.echo(listing.outlook(found, place, **screen()), nl=False)
    if place and not place.possible:
        context.exit(FINDING)


def _once(given: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    out: dict[str, str] = {}
    for name, value in given:
        if value is not None and name in out:
            msg = f"`{name}` is given twice, as {out[name]} and as {value}; give it once"
            raise click.UsageError(msg)
        if value is not None:
            out[name] = value
    return out


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        msg = f"--set takes NAME=VALUE, such as classes=100, got {text!r}"
        raise click.UsageError(msg)
    return name.strip().replace("-", "_"), value.strip()


def _echo_json(content: Any) -> None:
    import json

    click.echo(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False))


if __name__ == "__main__":
    main()
