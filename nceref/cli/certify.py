"""`nceref certify`: the losses against proven enclosures of their formulas."""

import click

from nceref.cli.common import FINDING, echo_json, show


@click.command(short_help="Measure the losses against proven enclosures.")
@click.argument("names", metavar="[LOSS]...", nargs=-1)
@click.option("--second-engine", is_flag=True, help="Enclose with decimals as well; both must overlap. Takes minutes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each loss and format.")
@click.pass_context
def certify(context: click.Context, /, names: tuple[str, ...], second_engine: bool, as_json: bool) -> None:
    """Print what part of the derived bound errors are below, of all losses or each LOSS, in float64 and float32.

    The formula of a loss runs in ball arithmetic, and its derivatives in the same balls, until every value and every
    entry of a gradient is known to round to one float64. It needs python-flint: pip install 'nceref[certify]'.

    A LOSS of your own is FILE.py:NAME. The file is executed. The exit status is 1 if a bound does not hold.
    """
    from dataclasses import asdict

    from nceref.checks.certify import certify
    from nceref.cli.certify_page import page_of
    from nceref.losses import all_losses
    from nceref.output.terminal import progress

    chosen = tuple(dict.fromkeys(names)) or tuple(all_losses())
    with progress("certifying", len(chosen)) as on_progress:
        by_loss = (list(certify(name, ("float64", "float32"), second_engine)) for name in chosen)
        results = [one for group in map(on_progress, by_loss) for one in group]
    if as_json:
        echo_json([asdict(one) for one in results])
    else:
        show(page_of(results))
    if not all(one.holds for one in results):
        context.exit(FINDING)
