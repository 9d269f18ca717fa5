"""`nceref expect`: the value that a loss should have, and what a value means."""

from collections.abc import Sequence

import click

from nceref.cli.common import FINDING, echo_json, page_format, show


@click.command(
    short_help="Print the value that a loss should have, and what yours means.",
    epilog="\b\nWhy am I stuck at 6.236?\n  nceref expect --loss nt_xent --n 256 --temperature 0.07 --value 6.236",
)
@click.option("--loss", "name", required=True, help="A name of `nceref losses`, or FILE.py:NAME, which is executed.")
@click.option("--n", metavar="N", help="Samples in the batch: pairs of views, for two views.")
@click.option("--temperature", metavar="T", help="Divides the similarities; 1/T for a loss with a logit scale.")
@click.option("--logit-scale", metavar="S", help="1/T, for a loss with a logit scale or a temperature.")
@click.option("--dim", metavar="D", help="Features of an embedding.")
@click.option("--set", "more", metavar="NAME=VALUE", multiple=True, help="Another size or scalar, as in classes=100.")
@click.option("--value", metavar="X", help="The value of your loss: say which of these it is.")
@page_format(", one object")
@click.pass_context
def expect(
    context: click.Context, /, name: str, more: tuple[str, ...], value: str | None, form: str, **given: str | None
) -> None:
    """Print the value that a loss should have at chance, at collapse and at the optimum, and its bounds.

    The exit status is 1 if no batch can have the value of --value.
    """
    from nceref.checks.expect import expected_readings
    from nceref.checks.locate import locate
    from nceref.checks.one_batch import with_spread
    from nceref.cli import expect_page

    readings = with_spread(expected_readings(name, _once([*given.items(), *map(_name_and_value, more)])))
    location = None if value is None else locate(readings, value)
    if form == "json":
        echo_json(expect_page.record(readings, location))
    else:
        show(expect_page.page_of(readings, location), form)
    if location and not location.possible:
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
