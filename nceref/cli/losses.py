"""`nceref losses`: what losses there are, and all about one."""

import click

from nceref.cli.common import echo, echo_json, page_format, show


@click.command(short_help="List the losses, or show all about one.")
@click.argument("loss", required=False)
@page_format(", one object for each loss")
@click.option("--latex", is_flag=True, help="Print the formula in LaTeX; of all, each below its name.")
def losses(loss: str | None, form: str, latex: bool) -> None:
    """List the losses, or show all about one LOSS: formula, gradient, inputs, properties, sources.

    A LOSS of your own is FILE.py:NAME; the file is executed.
    """
    from nceref.cli import losses_page
    from nceref.losses import all_losses, get_loss

    if latex and form != "text":
        msg = f"--latex prints the formula alone; leave it out with --format {form}, which has the formula too"
        raise click.UsageError(msg)
    shown = list(all_losses().values()) if loss is None else [get_loss(loss)]
    if form == "json":
        echo_json([losses_page.record(one) for one in shown])
    elif latex:
        echo("\n".join(one.latex if loss else f"% {one.name}\n{one.latex}" for one in shown))
    else:
        show(losses_page.overview(shown) if loss is None else losses_page.page_of(shown[0]), form)
