"""`nceref experiment`: small analogues of published results, run now."""

import click

from nceref.cli.common import page_format, show, wrote
from nceref.cli.reports import show_report


@click.command(short_help="Run a small analogue of a published result.")
@click.argument("name", required=False)
@click.option("--seeds", metavar="N", type=int, help="Number of seeds; each experiment has its own default.")
@click.option("--first-seed", metavar="SEED", type=int, help="First seed.  [default: 1000]")
@page_format(file=True)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write page, record and figure into this folder as well.",
)
def experiment(
    name: str | None, seeds: int | None, first_seed: int | None, json_file: str | None, form: str, out: str | None
) -> None:
    """Train small encoders with the losses of NAME, and say which published statements show up.

    Without NAME, list the experiments. The data are drawn, or the handwritten digits of scikit-learn: pip install
    'nceref[experiments]'. A run takes at most one or two minutes, and the same platform prints the same numbers.
    """
    from nceref.cli import experiment_page
    from nceref.engine.settings import process_count
    from nceref.experiments.experiment import FIRST_SEED, run
    from nceref.output import files
    from nceref.output.terminal import progress
    from nceref.theory import table_formats

    if name is None:
        if seeds is not None or first_seed is not None or json_file or out or form == "json":
            msg = "--seeds, --first-seed, --json and --out need the NAME of an experiment; leave out all to list them"
            raise click.UsageError(msg)
        show(table_formats.names(experiment_page.experiments().values()), form)
        return
    chosen = experiment_page.chosen(name)
    files.must_be_writable({"--out": out}, {"--json": json_file})
    # `run` refuses a number of seeds below 1, but the bar is there before it.
    with progress("training", len(chosen.settings) * (chosen.seeds if seeds is None else max(seeds, 0))) as on_progress:
        first = FIRST_SEED if first_seed is None else first_seed
        results = run(chosen, seeds, on_progress, first=first, processes=process_count())
    makers = {"json": lambda: experiment_page.to_json(chosen, results)}
    show_report(makers, {"json_file": json_file}, lambda: experiment_page.page_of(chosen, results), form)
    for path in experiment_page.save(chosen, results, out) if out else ():
        wrote(path)
