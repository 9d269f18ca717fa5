"""`nceref check`: the losses against their formulas, properties and relations."""

import click

from nceref.cli.common import FINDING, echo, echo_json, show


@click.command(short_help="Check the losses against formulas and theorems.")
@click.argument("names", metavar="[LOSS]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each result.")
@click.pass_context
def check(context: click.Context, /, names: tuple[str, ...], as_json: bool) -> None:
    """Check all losses, or each LOSS, against their exact formulas, declared properties and relations.

    A LOSS of your own is FILE.py:NAME, a file that states it as those of the package do. The file is executed.

    The exit status is 1 if a check fails.
    """
    from dataclasses import asdict
    from itertools import groupby

    from nceref.checks.run import count, run
    from nceref.cli import check_page
    from nceref.losses import all_losses
    from nceref.output.terminal import progress

    chosen, results = tuple(dict.fromkeys(names)) or tuple(all_losses()), []
    with progress("checking", count(chosen)) as on_progress:
        # Results come loss by loss, and each page is printed as soon as its loss is done.
        for _, group in groupby(map(on_progress, run(chosen)), key=lambda result: result.loss):
            results += (of_loss := list(group))
            if not as_json:
                show(check_page.page_of(of_loss))
                echo()
    if as_json:
        echo_json([asdict(result) for result in results])
    else:
        echo(check_page.tally(results))
    if any(result.status == "fail" for result in results):
        context.exit(FINDING)
