"""Time and memory of a training step through nceref.torch, beside the same loss in PyTorch's own operations.

Each line is measured in fresh processes: forward and backward pass of NT-Xent in float32, in a table of Markdown.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from benchmarks.cases import Case
from benchmarks.clock import fresh
from benchmarks.programs import check_agreement, measure
from nceref.engine.settings import thread_count

SIZES = (2048, 4096, 8192, 16_384)
DIM = 512
BESIDE = 8192
"""Most rows of a view at which PyTorch is measured as well: four times the memory for twice the rows."""
MIB = 1 << 20


def line(rows: int, dim: int, threads: int, beside: int = BESIDE) -> str:
    """A row of the table: seconds and MiB beyond inputs and gradients, of both programs, and their ratios.

    A view has the shape (`rows`, `dim`). Either program may use `threads` threads. PyTorch is measured as well for at
    most `beside` rows.
    """
    case = Case("nt_xent", {"N": rows, "D": dim})
    mine = _measured(case, "nceref.torch", threads)
    if rows > beside:
        return f"| {rows} | {_shown(mine)} | - | - |"
    other = _measured(case, "baseline", threads)
    check_agreement(case, mine["answers"], other["answers"], ("nceref.torch", "PyTorch"))
    ratio = min(other["seconds"]) / min(mine["seconds"])
    return f"| {rows} | {_shown(mine)} | {_shown(other)} | {ratio:.2f} |"


def _measured(case: Case, program: str, threads: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "answers.npz"))
        answer = fresh(
            measure, case=case.plain(), program=program, threads=threads, device="cpu", least=1, seconds=0.0,
            answers=path,
        )  # fmt: skip
        return answer | {"answers": dict(np.load(path))}


def _shown(measured: dict[str, Any]) -> str:
    extra = measured["extra"]
    return f"{min(measured['seconds']):.2f} s, {'unknown' if extra is None else f'{extra / MIB:.0f} MiB'}"


@click.command()
@click.argument("sizes", nargs=-1, type=click.IntRange(min=2))
@click.option("--threads", type=click.IntRange(min=1), help="Of either program; default: those of nceref.")
def main(sizes: tuple[int, ...], threads: int | None) -> None:
    """Print a line for each number of rows of a view."""
    click.echo("| rows of a view | nceref.torch | PyTorch | times as fast |")
    click.echo("| --- | --- | --- | --- |")
    for rows in sizes or SIZES:
        click.echo(line(rows, DIM, threads or thread_count()))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.training")
