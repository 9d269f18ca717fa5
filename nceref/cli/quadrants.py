"""`nceref quadrants`: the toy run of source 003, replayed without a framework."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from nceref.cli.common import FINDING, echo, echo_json, file_name, page_format, show, wrote

_EPILOG = """\b
Examples
  nceref quadrants --out pictures --animate 0.01
  nceref quadrants --confounder
  nceref quadrants --temperature 0.1 --temperature 0.01 --seed 3
  nceref quadrants --steps 1000000 --save long.npz
  nceref quadrants --resume long.npz
"""
_IN_FILE = ("seed", "temperature", "steps", "dtype", "confounder", "save")


@click.command(short_help="Replay the toy run on four quadrants.", epilog=_EPILOG)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the published script.")
@click.option(
    "--temperature",
    metavar="T",
    type=float,
    multiple=True,
    help="Temperature of a run; may be repeated.  [default: published]",
)
@click.option("--steps", type=int, default=10_000, show_default=True, help="Steps of each run.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True)
@click.option("--confounder", is_flag=True, help="Hold rate / temperature at 0.006, not the rate.")
@click.option("--out", type=click.Path(), help="Folder for the pictures: SVG, PNG and an animation.")
@click.option("--animate", metavar="T", type=float, help="The run that the animation shows.  [default: the first]")
@page_format(file=True)
@click.option("--save", metavar="FILE", type=file_name, help="Save the state, also on Ctrl-C or SIGTERM (.npz).")
@click.option("--resume", metavar="FILE", type=file_name, help="Go on from a saved state, and save there again.")
@click.pass_context
def quadrants(
    context: click.Context,
    /,
    out: str | None,
    animate: float | None,
    json_file: str | None,
    form: str,
    **given: Any,
) -> None:
    """Train the encoder of source 003 on its 100 points, and check the statements of that source.

    The default is the six published runs. For any seed, samples, weights and indices are those of the original
    program. The indices of a run depend on the runs before it: with --temperature, a run differs from the published one
    of that temperature. The exit status is 1 if a run diverges.
    """
    from nceref.cli.quadrants_page import page_of
    from nceref.output import files
    from nceref.output.json_text import json_text
    from nceref.training.quadrants.record import record

    wanted = {"--json": json_file, "--save": given["save"], "--resume": given["resume"]}
    files.must_be_writable({"--out": out}, wanted)
    setup = _setup(context, given)
    animated = _number(setup, animate, out)
    runs, beside = _trained(setup, given)
    if saved := given["save"] or given["resume"]:
        wrote(saved)
    if json_file not in (None, "-"):
        files.write_text(json_file, json_text(record(runs), indent=None), "--json")
        wrote(json_file)
    if json_file == "-" or form == "json":
        echo_json(record(runs))
    else:
        show(page_of(runs, beside), form)
    if out is not None:
        _draw(runs, out, animated)
    if any(run.stopped for each in (runs, beside) if each is not None for run in each.runs):
        context.exit(FINDING)


def _setup(context: click.Context, given: Mapping[str, Any]) -> Any:
    """The setup of the options, or that in the file to resume."""
    from nceref.training.quadrants import batch, storage

    if given["resume"] is None:
        temperatures = given["temperature"] or batch.PUBLISHED
        return batch.Setup((given["seed"],), temperatures, given["steps"], given["dtype"], given["confounder"])
    # Only what was typed is refused: the defaults of options stand in `given` as well.
    for name in _IN_FILE:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            msg = f"--resume goes on as the file says and saves there again; leave --{name} out"
            raise click.UsageError(msg)
    setup, _ = storage.load(given["resume"])
    if len(setup.seeds) > 1:
        msg = f"--resume shows one seed, and {given['resume']} holds {len(setup.seeds)}; resume it from Python"
        raise click.UsageError(msg)
    return setup


def _number(setup: Any, temperature: float | None, out: str | None) -> int:
    """The number of the run that is animated."""
    if temperature is None:
        return 0
    if out is None:
        msg = "--animate draws into the folder of --out; name one"
        raise click.UsageError(msg)
    if temperature not in setup.temperatures:
        known = ", ".join(f"{t:g}" for t in setup.temperatures)
        msg = f"--animate must be the temperature of a run, {known}, got {temperature:g}"
        raise click.UsageError(msg)
    return int(setup.temperatures.index(temperature))


def _trained(setup: Any, given: Mapping[str, Any]) -> Any:
    """The runs, and those with the published rate where the other is held fixed."""
    from dataclasses import asdict
    from types import SimpleNamespace

    from nceref.output.terminal import progress
    from nceref.training.quadrants import batch, replay

    blocks = -(-setup.steps // batch.BLOCK)
    with progress("training", blocks * (1 + setup.confounder)) as bar:

        def on_progress(done: int) -> None:
            bar(SimpleNamespace(id=f"step {done:,}"))

        try:
            if given["resume"] is None:
                runs = replay.run(**asdict(setup), on_progress=on_progress, save=given["save"])
            else:
                runs = replay.resume(given["resume"], on_progress=on_progress)
        except KeyboardInterrupt:
            if file := given["resume"] or given["save"]:
                echo(f"The state is saved; go on with: nceref quadrants --resume {file}", err=True)
            raise
        # Beside runs of a fixed ratio, those of the published rate show what the ratio does.
        beside = (
            replay.run(**asdict(setup) | {"confounder": False}, on_progress=on_progress) if setup.confounder else None
        )
    return runs, beside


def _draw(runs: Any, out: str, animated: int) -> None:
    from types import SimpleNamespace

    from nceref.cli import quadrants_pictures
    from nceref.output.terminal import progress

    with progress("drawing", quadrants_pictures.frames(runs.setup)) as bar:
        paths = quadrants_pictures.write(runs, out, animated, lambda step: bar(SimpleNamespace(id=f"frame {step:,}")))
    for path in paths:
        wrote(path)
