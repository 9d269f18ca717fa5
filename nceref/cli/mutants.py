"""`nceref mutants`: the catalogue of known bugs, and the score of the verifier on it."""

import click

from nceref.cli.common import FINDING, echo_json, page_format, show, suites

SCORE = "score"


@click.command(short_help="List known bugs, show one, or measure how many are found.")
@click.argument("words", metavar="[score] [ID]...", nargs=-1)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(["float64", "float32"]),
    help="Score in this format only; may be given twice.  [default: both]",
)
@click.option(
    "--suite",
    type=suites,
    default="quick",
    show_default=True,
    help="Score on these cases.",
)
@click.option(
    "--catalogue",
    type=click.Choice(["known", "independent", "gradients"]),
    default="known",
    show_default=True,
    help="Known bugs, the second catalogue, or programs with their own gradients; no author of these read the search.",
)
@click.option(
    "--ranks",
    type=click.IntRange(2, 64),
    help="Programs of several ranks, in PyTorch; score them on this many.",
)
@click.option(
    "--leave-one-out",
    is_flag=True,
    help="Score known bugs, each without its right diagnosis among the conventions.",
)
@page_format(", one object for each, or the score")
@click.pass_context
def mutants(
    context: click.Context,
    /,
    words: tuple[str, ...],
    dtypes: tuple[str, ...],
    suite: str,
    catalogue: str,
    ranks: int | None,
    leave_one_out: bool,
    form: str,
) -> None:
    """List the catalogue of known bugs and correct programs, or show each ID in full.

    `nceref mutants score` runs all of them, or each ID, through `nceref verify` and counts how many are found and how
    many are named right; for that it needs a clone of the repository, where the programs are. The exit status is 1 if a
    bug is not found, if fewer than 95 % are named right, or if a correct program is called wrong. Of the independent
    catalogue, 99 % must be found, 75 % explained, and at most 1 % explained by what another seed does not confirm;
    of the catalogue `gradients`, 90 % of the wrong gradients and 80 % of the programs with three changes must be
    explained. With `--leave-one-out` nothing need be. With `--ranks`, each program is what one rank runs on its rows.
    """
    from nceref.cli import mutants_page
    from nceref.errors import InputError
    from nceref.output.pages import joined

    if ranks:
        catalogue = _of_several_ranks(context)
    if leave_one_out and (catalogue != "known" or words[:1] != (SCORE,)):
        msg = "--leave-one-out is for `nceref mutants score` on the known bugs: leave out --catalogue and --ranks"
        raise InputError(msg)
    if words[:1] == (SCORE,):
        _score(context, words[1:], dtypes, suite, catalogue, ranks or 1, leave_one_out, form)
        return
    shown = mutants_page.chosen(words, mutants_page.records(catalogue))
    if form == "json":
        echo_json(shown)
    elif words:
        show(joined(map(mutants_page.page_of, shown)), form)
    else:
        show(mutants_page.overview(shown), form)


def _of_several_ranks(context: click.Context) -> str:
    from nceref.errors import InputError

    if context.get_parameter_source("catalogue") is not click.core.ParameterSource.DEFAULT:
        msg = "give --ranks or --catalogue: the programs of several ranks are a catalogue of their own"
        raise InputError(msg)
    return "distributed"


def _score(
    context: click.Context,
    ids: tuple[str, ...],
    dtypes: tuple[str, ...],
    suite: str,
    catalogue: str,
    ranks: int,
    leave_out: bool,
    form: str,
) -> None:
    _require_programs()
    from mutants.bug import DTYPES
    from mutants.score import Score, in_order, jobs, measure
    from mutants.score_page import score_page, score_record
    from nceref.output.terminal import progress

    todo = jobs(ids, tuple(dict.fromkeys(dtypes)) or DTYPES, catalogue, ranks, wrong_alone=leave_out)
    with progress("judging programs", len(todo)) as on_progress:
        score = Score(in_order(map(on_progress, measure(todo, suite, ranks=ranks, leave_out=leave_out)), todo))
    if form == "json":
        echo_json(score_record(score))
    else:
        show(score_page(score), form)
    if not score.met:
        context.exit(FINDING)


def _require_programs() -> None:
    """Refuse a score where the programs are not: they lie beside the package in a clone, and not in the wheel."""
    from pathlib import Path

    import nceref
    from nceref.errors import InputError

    if not (Path(nceref.__file__).parents[1] / "mutants" / "score.py").is_file():
        msg = "`score` runs the programs of the catalogue, which only a clone of the repository has: `make score` there"
        raise InputError(msg)
