"""`nceref scale`: what a loss of a batch beyond one memory takes."""

from typing import Any

import click

from nceref.cli.common import echo_json, file_name, show


@click.command(
    short_help="Say what a loss takes beyond one machine.",
    epilog="\b\nA million pairs on 64 workers:\n  nceref scale --loss nt_xent --rows 1e6 --dim 512 --workers 64",
)
@click.option("--loss", "name", required=True, help="A name of `nceref losses`, or FILE.py:NAME, which is executed.")
@click.option("--rows", required=True, metavar="N", help="Samples in the batch, such as 1e6.")
@click.option("--dim", required=True, metavar="D", help="Features of an embedding.")
@click.option("--workers", default="1", metavar="W", show_default=True, help="Processes of one thread each.")
@click.option("--chunk", metavar="N", help="Rows of a chunk; default: 8192, or a 64th of the rows.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option(
    "--rates", metavar="FILE", type=file_name, help="Rates of another machine: JSON that this command printed there."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object.")
def scale(name: str, dtype: str, rates: str | None, as_json: bool, **sizes: str | None) -> None:
    """Say what the value and the gradient of a loss of Dask arrays take: tasks, bytes, memory and time.

    Rates are measured on this machine, and predictions stand beside measurements for the sizes that it can run in a few
    seconds.
    """
    from nceref.cli import scale_page
    from nceref.engine.chunked.prediction import outlook
    from nceref.losses import get_loss

    loss = get_loss(name).declaration
    counts: dict[str, Any] = {key: _count(key, text) for key, text in sizes.items()}
    outcome = outlook(loss, dtype=dtype, rates=rates, **counts)
    if as_json:
        echo_json(scale_page.record(outcome))
    else:
        show(scale_page.page_of(outcome))


def _count(name: str, text: str | None) -> int | None:
    """A whole number, also as 1e6."""
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (1 <= number <= 2**40 and number == int(number)):
        msg = f"--{name} must be a whole number from 1 to 2^40, such as 65536 or 1e6, got {text!r}"
        raise click.UsageError(msg)
    return int(number)
