"""The page for maintainers: its commands, one after the other, in a copy of the project that it is about."""

import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from slow import partly_slow

from nceref import get_loss

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "docs/examples/twelve_losses"
PAGE = (ROOT / "docs/tutorials/maintainers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```text\n(\$ cd [^\n]*\n)?\$ ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)
OUTPUTS = {command: shown for _, command, shown in BLOCKS}
NAMED, REWRITTEN, UNMASKED = re.findall(r"```diff\n--- (\S+)\n(.*?)```", PAGE, re.DOTALL)
PAIRS, *TABLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
EXPORT, COPIED, REWRITE, SUMMARY, EQUAL, INIT, VERIFY, TESTS, BROKEN, BROKEN_TEST, LOST = OUTPUTS
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PLUGIN = "nceref.verification.manifest.pytest_plugin"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project, as the working folder; the old state is beside it."""
    for name in ("new", "old"):
        shutil.copytree(PROJECT, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path / "new")
    return tmp_path / "new"


@pytest.fixture
def no_costs(monkeypatch):
    """A large batch takes the old program some time."""
    monkeypatch.setattr("nceref.verification.verifier.costs_of", lambda request, run: {})


def change(folder, diff):
    """Make a change that the page shows."""
    name, lines = diff
    old, new = ("".join(f"{line[1:]}\n" for line in lines.splitlines() if line[0] == sign) for sign in "-+")
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def assert_prints(command, printed):
    shown = OUTPUTS[command]
    assert doctest.OutputChecker().check_output(shown, printed, FLAGS), printed


def outcome_of(command):
    """Exit status and output of pytest, in a process of its own."""
    installed = any(entry.name == "nceref" for entry in entry_points(group="pytest11"))
    words = [*shlex.split(command)[1:], "-p", "no:cacheprovider", *([] if installed else ["-p", PLUGIN])]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def tables(text):
    """The targets of a manifest by name."""
    return {each["name"]: each for each in tomllib.loads(text)["target"]}


def test_the_exported_test_passes_for_the_right_loss_and_fails_for_the_wrong_one(run, project):
    status, out, _ = run(*shlex.split(EXPORT)[1:])
    assert status == 0
    assert_prints(EXPORT, out)
    size = sum(path.stat().st_size for path in (project / "tests").iterdir())
    assert f"{size / 1000:.0f} kB" in PAGE
    change(project, NAMED)
    words = [sys.executable, *shlex.split(COPIED)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_prints(COPIED, done.stderr)
    change(project, UNMASKED)
    assert subprocess.run(words, capture_output=True, check=False).returncode == 1


@pytest.mark.usefixtures("in_this_process")
def test_a_right_rewrite_is_the_old_loss(run, project, monkeypatch):
    # How costs are measured is tested in verification/test_against.py.
    costs = {"CPU time": 1.0, "peak memory": 1.0}
    monkeypatch.setattr("nceref.verification.verifier.costs_of", lambda request, run: costs)
    # Among two losses the right one is found sooner than among all.
    few = {name: get_loss(name) for name in ("alignment", "uniformity")}
    monkeypatch.setattr("nceref.verification.loss_search.all_losses", lambda: few)
    change(project, REWRITTEN)
    status, out, _ = run(*shlex.split(REWRITE)[1:])
    assert status == 0
    assert_prints(REWRITE, out)


@pytest.mark.usefixtures("in_this_process")
def test_a_program_equals_its_rewrite(run, project, no_costs):
    change(project, REWRITTEN)
    status, out, _ = run(*shlex.split(EQUAL)[1:], "--loss", "uniformity")
    assert status == 0
    assert_prints(EQUAL, out)


@pytest.mark.usefixtures("in_this_process")
def test_a_wrong_rewrite_is_in_the_table_of_the_pull_request(run, project, no_costs):
    (project / "pr.toml").write_text(PAIRS)
    change(project, REWRITTEN)
    path = project / "twelve_losses/spread.py"
    lines = path.read_text().replace("[first, second]", "").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "triu_indices" not in line))
    status, out, _ = run(*shlex.split(SUMMARY)[1:])
    assert status == 1
    assert_prints(SUMMARY, out)


def test_what_the_old_state_imports_is_old(run, project, no_costs):
    path = project / "twelve_losses/_parts.py"
    path.write_text(
        path.read_text().replace("np.linalg.norm(x, axis=1, keepdims=True)", "np.abs(x).max(1, keepdims=True)")
    )
    status, _, _ = run(*shlex.split(REWRITE)[1:], "--loss", "uniformity", "--suite", "quick", "--calls", "0")
    assert status == 1


FINISHED = (PROJECT / "nceref.toml").read_text(encoding="utf-8")
SOME = ("alignment_loss", "balanced_softmax_loss", "clip_loss", "uniformity_loss")


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("names", partly_slow([[*tables(FINISHED)], [*SOME]], [*SOME].__eq__, "all twelve losses"))
def test_losses_pass_with_the_finished_manifest_and_every_file_is_written(run, project, names):
    parts = re.split(r"^(?=\[\[target\]\])", FINISHED, flags=re.MULTILINE)
    # Each line keeps its number.
    kept = [part if not i or part.split('"')[1] in names else "\n" * part.count("\n") for i, part in enumerate(parts)]
    (project / "nceref.toml").write_text("".join(kept))
    status, out, err = run(*shlex.split(VERIFY)[1:])
    assert (status, len(err.splitlines())) == (0, 5)
    left_out = tuple(tables(FINISHED).keys() - names)
    lines, shown = ([" ".join(line.split()) for line in text.splitlines() if line] for text in (out, OUTPUTS[VERIFY]))
    assert list(map(uncounted, lines)) == [uncounted(line) for line in shown if not line.startswith(left_out)]
    assert lines == shown or left_out
    assert len(json.loads((project / "losses.json").read_text())["targets"]) == len(names)
    roots = [ET.parse(project / f"losses.{kind}").getroot() for kind in ("svg", "xml")]
    assert [root.tag.rpartition("}")[2] for root in roots] == ["svg", "testsuites"]
    assert f"{len(names)} targets pass" in (project / "losses.md").read_text()
    assert "<!doctype html>" in (project / "losses.html").read_text()


def uncounted(line):
    """A line without the numbers that add up all targets."""
    return re.sub(r"\d+", "#", line) if line.startswith("checks") or line[0].isdigit() else line


@pytest.mark.usefixtures("in_this_process")
def test_a_loss_that_breaks_is_named_with_what_explains_it(run, project):
    change(project, UNMASKED)
    status, out, _ = run(*shlex.split(BROKEN)[1:])
    assert status == 1
    assert_prints(BROKEN, out)


@pytest.mark.usefixtures("in_this_process")
def test_a_loss_that_no_longer_returns_its_gradients_does_not_pass(run, project):
    path = project / "twelve_losses" / "towers.py"
    text = path.read_text()
    alone = re.sub(r"    return value, \{.*?\n    \}", "    return value", text, count=1, flags=re.DOTALL)
    assert alone != text
    path.write_text(alone)
    status, out, _ = run(*shlex.split(LOST)[1:])
    assert status == 5
    assert_prints(LOST, out)


def test_excerpts_of_the_finished_manifest_stand_in_it():
    assert [block in FINISHED for block in TABLES] == [False, True, True]


@pytest.mark.slow(reason="half a minute: every loss of the package is tried as every loss of the family")
def test_the_package_is_recognized_and_two_decisions_make_the_finished_manifest(run, project):
    status, out, err = run(*shlex.split(INIT)[1:])
    assert (status, err) == (0, "wrote fresh.toml\n")
    assert_prints(INIT, out)
    text = (project / "fresh.toml").read_text()
    assert TABLES[0] in text
    fresh, finished = tables(text), tables((project / "nceref.toml").read_text())
    decided = {name for name, table in finished.items() if table != fresh[name]}
    assert decided == {"clip_loss", "momentum_loss"}
    del finished["clip_loss"]["expected_failures"], finished["momentum_loss"]["set"]
    # Of what passes only by the decision, init wrote none.
    del finished["clip_loss"]["checks"], finished["momentum_loss"]["checks"]
    assert finished == fresh


@pytest.mark.slow(reason="a second way to the same verdicts; test_pytest_plugin.py has a quick one")
def test_the_manifest_is_a_test_suite(project):
    status, out = outcome_of(TESTS)
    assert status == 0, out
    assert_prints(TESTS, out)
    change(project, UNMASKED)
    status, out = outcome_of(BROKEN_TEST)
    assert status == 1, out
    assert_prints(BROKEN_TEST, out)
