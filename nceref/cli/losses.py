"""`nceref losses`: what losses there are, and all about one."""

import click

from nceref.cli.common import echo, echo_json, show


@click.command(short_help="List the losses, or show all about one.")
@click.argument("loss", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each loss.")
@click.option("--latex", is_flag=True, help="Print the formula in LaTeX; of all, each below its name.")
def losses(loss: str | None, as_json: bool, latex: bool) -> None:
    """List the losses, or show all about one LOSS: formula, gradient, inputs, properties, sources.

    A LOSS of your own is FILE.py:NAME; the file is executed.
    """
    from nceref.cli import losses_page
    from nceref.losses import all_losses, get_loss

    if as_json and latex:
        msg = '--latex and --json exclude each other; the JSON holds the formula in LaTeX, as "latex"'
        raise click.UsageError(msg)
    shown = list(all_losses().values()) if loss is None else [get_loss(loss)]
    if as_json:
        echo_json([losses_page.record(one) for one in shown])
    elif latex:
        echo("\n".join(one.latex if loss else f"% {one.name}\n{one.latex}" for one in shown))
    else:
        show(losses_page.overview(shown) if loss is None else losses_page.page_of(shown[0]))
