"""`nceref mutants`: the catalogue of known bugs; its score is a command beside the programs, in a clone."""

from typing import Any

import click

from nceref.cli.common import C, echo_json, page_format, show
from nceref.errors import InputError

SCORE = "score"


def catalogues(command: C) -> C:
    """The options that choose a catalogue, see `chosen_catalogue`."""
    for option in (
        click.option(
            "--ranks",
            type=click.IntRange(2, 64),
            help="Programs of several ranks, in PyTorch; score them on this many.",
        ),
        click.option(
            "--catalogue",
            type=click.Choice(["known", "independent", "gradients"]),
            default="known",
            show_default=True,
            help="Known bugs, the second catalogue, or programs with their own gradients; no author of these read the"
            " search.",
        ),
    ):
        command = option(command)
    return command


def chosen_catalogue(context: click.Context) -> str:
    """The catalogue that the options of a call name: programs of several ranks are one of their own."""
    if not context.params["ranks"]:
        return str(context.params["catalogue"])
    if context.get_parameter_source("catalogue") is not click.core.ParameterSource.DEFAULT:
        msg = "give --ranks or --catalogue: the programs of several ranks are a catalogue of their own"
        raise InputError(msg)
    return "distributed"


class _WithScore(click.Command):
    """A command of which `score` is another one, that reads the other words."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if SCORE not in args:
            return super().make_context(info_name, args, parent, **extra)
        _require_programs()
        from mutants.score_command import score

        words = [word for word in args if word != SCORE]
        return score.make_context(f"{info_name} {SCORE}", words, parent, **extra)


@click.command(cls=_WithScore, short_help="List known bugs, show one, or measure how many are found.")
@click.argument("ids", metavar="[score] [ID]...", nargs=-1)
@catalogues
@page_format(", one object for each")
@click.pass_context
def mutants(context: click.Context, /, ids: tuple[str, ...], form: str, **_: Any) -> None:
    """List the catalogue of known bugs and correct programs, or show each ID in full.

    `nceref mutants score` runs all of them, or each ID, through `nceref verify` and counts how many are found and how
    many are named right; for that it needs a clone of the repository, where the programs are, and where
    `nceref mutants score --help` has its options.
    """
    from nceref.cli import mutants_page
    from nceref.output.pages import joined

    shown = mutants_page.chosen(ids, mutants_page.records(chosen_catalogue(context)))
    if form == "json":
        echo_json(shown)
    elif ids:
        show(joined(map(mutants_page.page_of, shown)), form)
    else:
        show(mutants_page.overview(shown), form)


def _require_programs() -> None:
    """Refuse a score where the programs are not: they lie beside the package in a clone, and not in the wheel."""
    from pathlib import Path

    import nceref

    if not (Path(nceref.__file__).parents[1] / "mutants" / "score.py").is_file():
        msg = "`score` runs the programs of the catalogue, which only a clone of the repository has: `make score` there"
        raise InputError(msg)
