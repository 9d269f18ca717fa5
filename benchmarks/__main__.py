"""The command: measures, prints the tables, writes JSON and the document.

Exit status: 0, measured, whatever the verdicts; 2, wrong usage, or a benchmark that cannot be run.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from benchmarks import RefusedError, machine
from benchmarks.clock import OnProgress
from benchmarks.place import cuda
from benchmarks.report import write
from benchmarks.tables import tables
from nceref.output import files
from nceref.output.json_text import json_text
from nceref.output.terminal import overwrite
from nceref.theory.table_formats import render

QUESTIONS = ("speed", "stages", "memory", "scaling", "threads", "startup", "quadrants", "chunked", "device")
ON_THE_CPU = QUESTIONS[:-2]
"""Questions that are answered by default; `chunked` needs Dask, and half an hour."""
FORMAT = 1
"""Version of the JSON format; raised when a reader of the old one would misread it."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("questions", nargs=-1, type=click.Choice(QUESTIONS), metavar="[QUESTION]...")
@click.option("--quick", is_flag=True, help="Small sizes, which judge nothing.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of every program; default: those of nceref.")
@click.option("--json", "data", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option("--update", is_flag=True, help="Keep what the file of --json has of other questions.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write the document and plots there.")
def main(
    questions: tuple[str, ...], quick: bool, threads: int | None, data: Path | None, update: bool, report: Path | None
) -> None:
    """Measure nceref: speed, memory, scaling, threads, startup, quadrants (the default), chunked, or device, a GPU."""
    try:
        results = measure(questions or ON_THE_CPU, quick, threads)
        if update:
            results = joined(data, results)
    except RefusedError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    if data is not None:
        files.write_text(data, json_text(results, indent=1))
    if report is not None:
        write(results, report)


def joined(data: Path | None, results: dict[str, Any]) -> dict[str, Any]:
    """Results, and what a file has of other questions and their machine."""
    if data is None or not data.exists():
        msg = "--update: pass --json FILE with the results of an earlier run"
        raise RefusedError(msg)
    earlier = json.loads(data.read_text(encoding="utf-8"))
    if (earlier["format"], earlier["quick"]) != (results["format"], results["quick"]):
        msg = f"--update: {data} is of another kind of run; measure all questions"
        raise RefusedError(msg)
    return earlier | {name: x for name, x in results.items() if name in QUESTIONS}


def measure(questions: tuple[str, ...], quick: bool, threads: int | None) -> dict[str, Any]:
    """The results of some questions; each table is printed as soon as it is known."""
    from nceref.engine.settings import thread_count

    if "device" in questions:
        cuda()  # refused at once where there is none
    count = threads or thread_count()
    about = {"format": FORMAT, "quick": quick, "machine": machine.describe(count)}
    results: dict[str, Any] = about
    _print(about)
    with progress() as on_progress:
        for question in dict.fromkeys(questions):
            answer = {question: watched(import_module(f"benchmarks.{question}").run, count, quick, on_progress)}
            _print(about | {"quick": True} | answer, skip=1)
            results = results | answer
    _print(results, skip=len(tables(results | {"quick": True})))
    return results


def watched(run: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The answer of a question, with the share of the processors that other processes took meanwhile."""
    before = machine.busy()
    answer = run(*arguments)
    after = machine.busy()
    return answer | {"others": None if before is None or after is None else after.others(before)}


def _print(results: dict[str, Any], skip: int = 0) -> None:
    """The tables of some results but the first ones."""
    for table in tables(results)[skip:]:
        click.echo(render(table))


@contextmanager
def progress() -> Iterator[OnProgress]:
    """Print progress on standard error, if that is a terminal."""
    yield overwrite
    overwrite("")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
