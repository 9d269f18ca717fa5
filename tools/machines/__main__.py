"""The commands of the matrix: see `tools.machines`."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nceref.output.limits import at_most
from nceref.output.markdown_parts import markdown_table, update_part
from tools.machines import functions
from tools.machines.errors import FORMATS
from tools.machines.lines import ROOT, Line, State, level_lines, lines, need_two_levels, state

PAGE = ROOT / "docs/reliability.md"
TESTS = ("-m", "machine", "-n", "2", "--dist", "loadfile", "--no-header", "-q")
OLDEST = ("-W", "ignore::DeprecationWarning")
"""Old releases warn of what newer packages around them deprecate."""
QUICK_LIMIT = 30
"""CPU seconds of the quick form."""


def say(text: str) -> None:
    """Print a line now, before what a child process prints."""
    print(text, flush=True)  # noqa: T201


def tried(candidates: Iterator[Line]) -> Iterator[tuple[Line, State]]:
    """The lines that can be run, with what takes effect; of the others the reason is printed."""
    for line in candidates:
        here = state(line)
        say(f"==> {line.name}: {here}")
        if not here.reason:
            yield line, here


def cpu_seconds() -> float:
    """User and system time of all children that have ended; 0 on Windows, which does not say."""
    spent = os.times()
    return spent.children_user + spent.children_system


def list_(_: Sequence[str]) -> None:
    """Name the lines, and what takes effect under each."""
    need_two_levels({line.name: here for line, here in tried(lines())})


def test(words: Sequence[str]) -> None:
    """Run the marked tests under each line; further words go to pytest."""
    ran, failed = dict[str, State](), []
    for line, here in tried(lines()):
        ran[line.name] = here
        # With the pytest of the line's own environment.
        more = OLDEST if line.name.startswith("oldest") else ()
        # 5: nothing was collected, which is no pass.
        failed += [line.name] * bool(line.started(["-m", "pytest", *TESTS, *more, *words]).returncode)
    need_two_levels(ran)
    if failed:
        sys.exit(f"failed under: {', '.join(failed)}")
    say(f"==> passed under {len(ran)} lines, {cpu_seconds():.0f} CPU seconds")


def quick(_: Sequence[str]) -> None:
    """Judge the reference vectors under the highest and the lowest dispatch level."""
    levels = list(level_lines())
    ran, wrong = dict[str, State](), []
    for line, here in tried(iter([levels[0], *levels[1:][-1:]])):
        ran[line.name] = here
        wrong += [f"{line.name}: {sentence}" for sentence in [_not_conforming(line)] if sentence]
    need_two_levels(ran)
    for sentence in wrong:
        say(sentence)
    spent = cpu_seconds()
    say(f"==> the vectors of all losses under {len(ran)} levels: {spent:.0f} CPU seconds")
    if wrong or spent > QUICK_LIMIT:
        sys.exit("right programs differ" if wrong else f"it must take at most {QUICK_LIMIT} CPU seconds")


def _not_conforming(line: Line) -> str:
    """The verdicts that are wrong, in a sentence, on the programs of all losses; empty for none."""
    with tempfile.TemporaryDirectory() as folder:
        done = line.started(["-m", "tools.machines.vectors", str(Path(folder, "outputs.jsonl"))], capture_output=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["without a message"])[-1]
    reports = [json.loads(text) for text in done.stdout.splitlines()]
    bad = [f"{one['loss']} {one['verdict']} ({', '.join(one['failed'][:3])})" for one in reports if one["exit"]]
    return "; ".join(bad) if reports else "no loss was judged"


def errors(words: Sequence[str]) -> None:
    """Measure the largest error over bound, by loss and line, and write the table; with --print, print it alone."""
    columns: dict[str, Mapping[str, Mapping[str, float]]] = {}
    for line, _ in _apart():
        done = line.started(["-m", "tools.machines.errors"], capture_output=True)
        if done.returncode:
            sys.exit(done.stderr)
        columns[line.name] = json.loads(done.stdout)
    tables = [_table(dtype, {name: each[dtype] for name, each in columns.items()}, "loss") for dtype in FORMATS]
    _write("errors", "\n\n".join(tables), words)


def functions_(words: Sequence[str]) -> None:
    """Measure the largest error of elementary functions, by line, and write the table; with --print, print it alone."""
    truths = functions.truths()
    columns: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for line, _ in tried(level_lines()):
            file = str(Path(folder, "results.npz"))
            done = line.started(["-m", "tools.machines.functions", file], capture_output=True)
            if done.returncode:
                sys.exit(done.stderr)
            with np.load(file) as results:
                columns[line.name] = functions.largest(results, truths)
    _write("functions", _table("function", columns, "function"), words)


def _apart() -> Iterator[tuple[Line, State]]:
    """Lines with this environment's NumPy."""
    return tried(line for line in lines() if line.python == sys.executable)


def _table(title: str, columns: Mapping[str, Mapping[str, float]], first: str) -> str:
    rows = [
        [row, *(f"{at_most(columns[name][row], 2):.2g}" for name in columns)] for row in next(iter(columns.values()))
    ]
    header = [first if title == first else f"{first}, {title}", *columns]
    return markdown_table(header, rows, [False, *[True] * len(columns)])


def _write(name: str, table: str, words: Sequence[str]) -> None:
    if "--print" in words:
        say(table)
    else:
        say(f"{'rewrote' if update_part(PAGE, name, table) else 'unchanged:'} {name} in {PAGE.relative_to(ROOT)}")


COMMANDS: dict[str, Callable[[Sequence[str]], Any]] = {
    "list": list_, "test": test, "quick": quick, "errors": errors, "functions": functions_,
}  # fmt: skip


def main(words: Sequence[str]) -> None:
    """Run one command."""
    if not words or words[0] not in COMMANDS:
        sys.exit(
            f"python -m tools.machines must be followed by {', '.join(COMMANDS)}, got {' '.join(words) or 'nothing'}"
        )
    COMMANDS[words[0]](words[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
