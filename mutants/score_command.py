"""`nceref mutants score`: its options, and the limits that decide its exit status."""

import click

from mutants.bug import DTYPES
from mutants.score import (
    GRADIENTS,
    INDEPENDENT,
    KILLED,
    NAMED,
    TRIPLES,
    UNCONFIRMED,
    USEFUL,
    Score,
    in_order,
    jobs,
    measure,
)
from mutants.score_page import score_page, score_record
from nceref.cli.common import FINDING, echo_json, page_format, show, suites
from nceref.cli.mutants import catalogues, chosen_catalogue
from nceref.errors import InputError
from nceref.output.terminal import progress

_HELP = f"""Run all known bugs and correct programs, or each ID, through `nceref verify`.

It counts how many are found and how many are named right. The exit status is 1 if a bug is not found, if fewer than
{NAMED:.0%} are named right, or if a correct program is called wrong. Of the independent catalogue, {KILLED:.0%} must be
found, {USEFUL[INDEPENDENT]:.0%} explained, and at most {UNCONFIRMED:.0%} explained by what another seed does not
confirm; of the catalogue `gradients`, {USEFUL[GRADIENTS]:.0%} of the wrong gradients and {USEFUL[TRIPLES]:.0%} of the
programs with three changes must be explained. With `--leave-one-out` nothing need be. With `--ranks`, each program is
what one rank runs on its rows.
"""


@click.command(help=_HELP)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(DTYPES),
    help="Score in this format only; may be given twice.  [default: both]",
)
@click.option("--suite", type=suites, default="quick", show_default=True, help="Score on these cases.")
@catalogues
@click.option(
    "--leave-one-out", is_flag=True, help="Score known bugs, each without its right diagnosis among the conventions."
)
@page_format(", the score")
@click.pass_context
def score(
    context: click.Context,
    /,
    ids: tuple[str, ...],
    dtypes: tuple[str, ...],
    suite: str,
    catalogue: str,
    ranks: int | None,
    leave_one_out: bool,
    form: str,
) -> None:
    """Score the verifier."""
    catalogue = chosen_catalogue(context)
    if leave_one_out and catalogue != "known":
        msg = "--leave-one-out is for `nceref mutants score` on the known bugs: leave out --catalogue and --ranks"
        raise InputError(msg)
    todo = jobs(ids, tuple(dict.fromkeys(dtypes)) or DTYPES, catalogue, ranks or 1, wrong_alone=leave_one_out)
    with progress("judging programs", len(todo)) as on_progress:
        judged = map(on_progress, measure(todo, suite, ranks=ranks or 1, leave_out=leave_one_out))
        made = Score(in_order(judged, todo))
    if form == "json":
        echo_json(score_record(made))
    else:
        show(score_page(made), form)
    if not made.met:
        context.exit(FINDING)
