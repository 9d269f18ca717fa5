"""`nceref experiment`: small analogues of published results, run now."""

import click


@click.command(short_help="Run a small analogue of a published result.")
@click.argument("name", required=False)
@click.option("--seeds", metavar="N", type=int, help="Run seeds 0 to N - 1; the experiment says how many by default.")
@click.option("--json", "json_file", metavar="FILE", type=click.Path(dir_okay=False), help="Write a record as well; -: "
              "print it instead.")  # fmt: skip
@click.option("--out", metavar="DIR", type=click.Path(file_okay=False),
              help="Write page, record and figure into this folder as well.")  # fmt: skip
def experiment(name: str | None, seeds: int | None, json_file: str | None, out: str | None) -> None:
    """Train small encoders with the losses of NAME, and say which published statements show up; no NAME: list them.

    The data are drawn, or the handwritten digits of scikit-learn: pip install 'nceref[experiments]'. A run takes less
    than a minute, and prints the same on the same platform.
    """
    from nceref import experiment_pages, files, report
    from nceref.experiment import run
    from nceref.terminal import progress, screen

    if name is None:
        if seeds is not None or json_file or out:
            msg = "--seeds, --json and --out need the NAME of an experiment; `nceref experiment` lists them"
            raise click.UsageError(msg)
        click.echo(report.names(experiment_pages.experiments().values(), **screen()), nl=False)
        return
    chosen = experiment_pages.chosen(name)
    files.must_be_writable({"--out": out}, {"--json": json_file})
    with progress(len(chosen.settings) * (chosen.seeds if seeds is None else max(seeds, 0))) as noted:
        results = run(chosen, seeds, noted)
    if json_file == "-":
        click.echo(experiment_pages.to_json(chosen, results), nl=False)
    else:
        click.echo(experiment_pages.text(chosen, results, **screen()), nl=False)
    if json_file and json_file != "-":
        files.replace(json_file, experiment_pages.to_json(chosen, results).encode())
    for path in experiment_pages.save(chosen, results, out) if out else ():
        click.echo(path, err=True)
