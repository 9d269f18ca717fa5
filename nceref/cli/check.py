"""`nceref check`: the losses against their formulas, properties and relations, and against proven enclosures."""

import click

from nceref.cli.common import FINDING, echo, echo_json, page_format, show


@click.command(short_help="Check the losses against formulas and theorems.")
@click.argument("names", metavar="[LOSS]...", nargs=-1)
@click.option("--certify", is_flag=True, help="Measure errors against proven enclosures instead.")
@click.option("--second-engine", is_flag=True, help="With --certify: enclose with decimals as well. Takes minutes.")
@page_format(", one object for each result")
@click.pass_context
def check(context: click.Context, /, names: tuple[str, ...], certify: bool, second_engine: bool, form: str) -> None:
    """Check all losses, or each LOSS, against their exact formulas, declared properties and relations.

    With `--certify`, print errors as parts of the derived bounds, in float64 and float32. The formula of a
    loss runs in ball arithmetic, and its derivatives in the same balls, until every value and every entry of a gradient
    is known to round to one float64. That needs python-flint: pip install 'nceref[certify]'.

    A LOSS of your own is FILE.py:NAME, a file that states it as those of the package do. The file is executed.

    The exit status is 1 if a check fails, or if a bound does not hold.
    """
    from nceref.losses import all_losses

    chosen = tuple(dict.fromkeys(names)) or tuple(all_losses())
    if second_engine and not certify:
        msg = "--second-engine goes with --certify"
        raise click.UsageError(msg)
    holds = _certify(chosen, second_engine, form) if certify else _check(chosen, form)
    if not holds:
        context.exit(FINDING)


def _check(chosen: tuple[str, ...], form: str) -> bool:
    from dataclasses import asdict
    from itertools import groupby

    from nceref.checks.run import CheckResult, count, run
    from nceref.cli import check_page
    from nceref.output.terminal import progress

    results: list[CheckResult] = []
    with progress("checking", count(chosen)) as on_progress:
        # Results come loss by loss, and each page is printed as soon as its loss is done.
        for _, group in groupby(map(on_progress, run(chosen)), key=lambda result: result.loss):
            results += (of_loss := list(group))
            if form == "text":
                show(check_page.page_of(of_loss))
                echo()
    if form == "json":
        echo_json([asdict(result) for result in results])
    elif form == "text":
        echo(check_page.tally(results))
    else:
        show(check_page.page_of_all(results), form)
    return all(result.status != "fail" for result in results)


def _certify(chosen: tuple[str, ...], second_engine: bool, form: str) -> bool:
    from dataclasses import asdict

    from nceref.checks.certify import certify
    from nceref.cli.certify_page import page_of
    from nceref.output.terminal import progress

    with progress("certifying", len(chosen)) as on_progress:
        by_loss = (list(certify(name, ("float64", "float32"), second_engine)) for name in chosen)
        results = [one for group in map(on_progress, by_loss) for one in group]
    if form == "json":
        echo_json([asdict(one) for one in results])
    else:
        show(page_of(results), form)
    return all(one.holds for one in results)
