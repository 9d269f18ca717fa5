"""What commands print depends on their inputs and on versions, not on the kernels of NumPy and its BLAS."""

import difflib
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from commands.machines import TIMES, commands

from tools.machines.lines import KERNEL, KERNELS, LEVELS, THREADS, Line, level_lines, state

pytestmark = pytest.mark.machine
TESTS = Path(__file__).parents[1]
QUICK = (
    "tables --format json",
    "check --certify simple",
    "verify programs.py:doubled --loss info_nce --suite quick --case designed-0.3 --case seven-0.5 --json -",
    "verify programs.py:right --loss info_nce --suite quick --dtype float32 --json -",
)
REPLAYED = "quadrants --steps 3 --temperature 0.2"


def outputs(folder, line, chosen=None):
    """What commands print in a process of a line."""
    folder.mkdir()
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    variables = {**os.environ, **line.variables, "PYTHONPATH": path}
    variables.pop("COLUMNS", None)
    command = [sys.executable, "-m", "commands.machines", str(folder)]
    given = json.dumps(chosen)
    done = subprocess.run(command, env=variables, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace(str(folder), "FOLDER"))


def differences(one, other):
    """The lines that two outputs of the same commands do not have in common, by command and file."""
    assert one.keys() == other.keys()
    for words in one:
        for name in one[words] | other[words]:
            sides = [str(each[words].get(name, "not written")) for each in (one, other)]
            if sides[0] != sides[1]:
                lines = difflib.unified_diff(*(re.split(r"\n|(?<=>)", side) for side in sides), n=0, lineterm="")
                shown = [line[:200] for line in lines if not line.startswith(("---", "+++", "@@"))]
                yield f"nceref {words}, {name}:\n" + "\n".join(shown[:8])


@cache
def baseline():
    """The lowest level of NumPy with the smallest kernel of the BLAS, and what takes effect there."""
    *_, lowest = level_lines()
    line = Line("baseline", {**lowest.variables, KERNEL: KERNELS[-1], THREADS: "1"})
    return line, state(line)


def on_both(folder, chosen=None):
    """What commands print as the machine is, and under the baseline."""
    line, effects = baseline()
    if effects.reason:
        pytest.skip(effects.reason)
    return [outputs(folder / each.name, each, chosen) for each in (Line("here"), line)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return on_both(tmp_path_factory.mktemp("printed"), [*QUICK, REPLAYED])


def test_a_few_commands_print_the_same_under_the_lowest_level_and_another_kernel(printed):
    same = [{words: each[words] for words in QUICK} for each in printed]
    assert list(differences(*same)) == []


@pytest.mark.slow(reason="each example and whole tables, twice; the commands above have numbers of every kind")
def test_all_commands_print_the_same_under_the_lowest_level_and_another_kernel(tmp_path):
    here, there = on_both(tmp_path)
    assert list(differences(here, there)) == []
    assert here.keys() == set(commands())


def test_a_replay_names_its_kernel(printed):
    for line, each in zip((state(Line("here")), baseline()[1]), printed, strict=True):
        levels = " ".join([*line.effects["baseline"], *line.levels])
        text = each[REPLAYED]["output"]
        assert f"NumPy {line.effects['numpy']} ({levels})" in " ".join(text.split())
        assert line.effects["blas"][0]["kernel"] in text


def test_a_difference_is_seen_and_a_time_is_none():
    one = {"x": {"status": 0, "output": '{"seconds": 0.25, "error": 1e-3}'}}
    other = {"x": {"status": 0, "output": '{"seconds": 0.75, "error": 1.1e-3}'}}
    assert len(list(differences(one, other))) == 1
    same = [TIMES.sub(r"\1", text) for text in ('"seconds": 0.25, 3 cases', '"seconds": 0.5, 3 cases')]
    assert same[0] == same[1]
    assert LEVELS in baseline()[0].variables or not state(Line("")).levels
