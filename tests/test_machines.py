"""The matrix of machines: its lines are read from NumPy, and what cannot be run is skipped with its reason."""

import json
import os
import subprocess

import numpy as np
import pytest

from tools.machines import __main__ as commands
from tools.machines import functions, lines, vectors
from tools.machines.lines import LEVELS, Line, State, level_lines, need_two_levels, state


@pytest.fixture(scope="module")
def here():
    """What takes effect on this machine as it is."""
    return state(Line("as it is"))


@pytest.fixture(scope="module")
def levels():
    return list(level_lines())


def test_each_level_is_switched_off_with_all_above_it(here, levels):
    names = here.levels
    switched = [set(line.variables[LEVELS].split()) - set(os.environ.get(LEVELS, "").split()) for line in levels[1:]]
    assert switched == [set(names[i:]) for i in reversed(range(len(names)))]
    assert state(levels[-1]).levels == () or not names
    # No level is written down.
    text = "".join(path.read_text(encoding="utf-8") for path in (lines.ROOT / "tools/machines").glob("*.py"))
    assert not [name for name in names if name in text]


def test_a_line_that_does_not_take_effect_is_skipped_with_its_reason(here, monkeypatch):
    baseline = (here.effects["baseline"] or ["X"])[0]
    assert state(Line("x", {LEVELS: baseline}, effect={"levels": ["X"]})).reason
    done = subprocess.CompletedProcess((), 0, json.dumps(here.effects))
    monkeypatch.setattr(Line, "started", lambda *_, **more: done)
    for line, reason in (
        (Line("x", effect={"kernel": "Pentium"}), "kernel should be Pentium, and "),
        (Line("x", effect={"levels": ["VAX"]}), "levels should be VAX, and "),
        (Line("x", python="/nowhere/python"), "there is no /nowhere/python; make test-machines makes it"),
    ):
        assert reason in state(line).reason
        assert str(state(line)).startswith("skipped: ")


@pytest.mark.skipif(os.name == "nt", reason="processes end by signals")
def test_a_kernel_that_the_processor_cannot_run_is_skipped(monkeypatch):
    monkeypatch.setattr(lines, "STATE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert state(Line("x")).reason == "the process ended by SIGILL: no such instructions here"


def test_fewer_than_two_levels_are_a_failure_in_one_sentence():
    of = [State({"levels": ["A", "B"]}), State({"levels": ["A"]})]
    need_two_levels(dict(zip("ab", of, strict=True)))
    with pytest.raises(SystemExit, match=r"at least two dispatch levels of NumPy must run, and 1 did \(A\)"):
        need_two_levels({"a": of[1], "b": of[1]})
    with pytest.raises(SystemExit, match=r"and 0 did"):
        need_two_levels({})


def test_a_line_that_fails_is_the_exit_status(monkeypatch, capsys):
    own = Line("as it is"), Line("lower"), Line("missing", python="/nowhere")
    states = {
        "as it is": State({"levels": ["A"], "numpy": "2", "baseline": [], "blas": []}),
        "missing": State(reason="no"),
    }
    monkeypatch.setattr(commands, "lines", lambda: iter(own))
    monkeypatch.setattr(
        commands, "state", lambda line: states.get(line.name, State({**states["as it is"].effects, "levels": []}))
    )
    statuses = {"as it is": 0, "lower": 0}
    monkeypatch.setattr(
        Line, "started", lambda line, words, **_: subprocess.CompletedProcess(words, statuses[line.name])
    )
    commands.test([])
    assert "==> passed under 2 lines" in capsys.readouterr().out
    # Nothing was collected.
    statuses["lower"] = 5
    with pytest.raises(SystemExit, match="failed under: lower"):
        commands.test([])


def test_a_right_program_that_differs_is_a_failure(monkeypatch):
    about = {"loss": "nt_xent", "verdict": "differs", "exit": 1, "failed": ["designed-1/value"]}
    answers = {"rc": 0, "out": json.dumps(about), "err": ""}
    done = lambda line, words, **_: subprocess.CompletedProcess(words, answers["rc"], answers["out"], answers["err"])  # noqa: E731
    monkeypatch.setattr(Line, "started", done)
    assert commands._not_conforming(Line("x")) == "nt_xent differs (designed-1/value)"
    answers |= {"out": ""}
    assert commands._not_conforming(Line("x")) == "no loss was judged"
    answers |= {"rc": 1, "err": "Traceback\nInputError: case x"}
    assert commands._not_conforming(Line("x")) == "InputError: case x"


def test_a_wrong_command_names_the_right_ones():
    with pytest.raises(SystemExit, match="must be followed by list, test, quick, errors, functions, got many"):
        commands.main(["many"])


def test_an_error_of_a_function_is_seen_in_units_of_the_last_place():
    x = np.array([0.5, 1.0, 2.0])
    true = functions.truth("exp", x)
    assert functions.ulps(np.exp(x), true) < 4
    assert 9 < functions.ulps(np.exp(x) + 10 * np.spacing(np.exp(x)), true) < 11


HASHES = """
import hashlib
from tools.machines.functions import FUNCTIONS
points = (each.points(name, dtype) for name, each in FUNCTIONS.items() for dtype in each.ends)
print(hashlib.sha256(b"".join(x.tobytes() for x in points)).hexdigest())
"""


def test_the_points_of_a_function_are_the_same_under_every_line(levels):
    first, last = (levels[i].started(["-c", HASHES], capture_output=True).stdout for i in (0, -1))
    assert first == last
    assert len(first.strip()) == 64


@pytest.mark.machine
@pytest.mark.slow(reason="the quick form judges the same in float64")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_programs_of_all_losses_conform_to_the_vectors(dtype, tmp_path, capsys):
    vectors.main(str(tmp_path / "outputs.jsonl"), dtype)
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["loss"] for one in reports} == set(vectors.read_vectors().cases)
    assert [one for one in reports if one["exit"]] == []


def test_what_can_depend_on_the_machine_is_marked():
    marked = [path for path in (lines.ROOT / "tests").rglob("test_*.py") if "mark.machine" in path.read_text("utf-8")]
    rooms = {path.relative_to(lines.ROOT / "tests").parts[0] for path in marked}
    assert {"checks", "cli", "engine", "exact", "fuzz", "theory", "tolerance", "verification"} <= rooms
