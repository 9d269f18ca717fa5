"""`pytest --nceref`: a manifest is a test suite, under pytest-xdist too; without the option nothing is imported."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from programs.project import write_project

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
PLUGIN = "nceref.verification.manifest.pytest_plugin"
STRICT = """
[pytest]
testpaths = tests
addopts = -p no:cacheprovider -p no:hypothesispytest --strict-config --strict-markers
filterwarnings = error
xfail_strict = true
"""
DOUBLED = """
[[target]]
target = "losses.py:doubled"
loss = "info_nce"
suite = "quick"
dtypes = ["float64", "float32"]

[[target]]
target = "losses.py:info_nce"
loss = "info_nce"
suite = "quick"
"""
UNNAMED = """
[[target]]
targt = "losses.py:info_nce"
"""
STRANGE = r"""
[[target]]
name = "a\u001b[31mb\u202ec\u001b]0;d\u0007\n::error::e"
target = "losses.py:doubled"
loss = "info_nce"
suite = "quick"
calls = 0
[[target.expected_failures]]
id = "designed-*"
reason = "f\u001b[32mg"

[[target]]
name = "h\u001b[33mi"
target = "losses.py:info_nce"
loss = "info_nce"
suite = "quick"
needs = ["j\u001b[34mk"]

[[target]]
name = "l\u001b[35mm"
target = "gone\u001b[36m.py:n"
loss = "info_nce"
"o\u001b[37mp" = 1

[defaults]
calls = 0
"""
CALLS = """
import contextlib, io, os, sys
import pytest

def call(*arguments, folder="."):
    with (contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out), contextlib.chdir(folder)):
        status = pytest.main([*arguments, *LOAD])
    return int(status), out.getvalue()

LOAD = sys.argv[1:]
status, text = call("-q")
assert (status, "1 passed" in text) == (0, True), text
assert not {"numpy", "click", "nceref.errors", "nceref.verification.verifier"} & sys.modules.keys()
status, text = call("--nceref", "-c", "pytest.ini", folder="empty")
assert (status, "--nceref needs a manifest, and in " in text) == (4, True), text
for arguments, sentence in [
    (["gone.toml"], "cannot read --nceref gone.toml: no such file"),
    (["broken.toml"], "ERROR: broken.toml:1 is not TOML: Invalid value"),
    (["doubled.toml", "empty/broken.toml"], "ERROR: empty/broken.toml has no target; write [[target]] with "),
]:
    status, text = call("--nceref", *arguments)
    assert (status, sentence in text) == (4, True), text
status, text = call("--nceref", "--collect-only", "-q", "doubled.toml", "-k", "value")
assert status == 0, text
assert text.split("\\n\\n")[0].split() == [f"doubled.toml::{name}-value" for name in NAMES], text
status, text = call("--nceref", "-q", "doubled.toml::info_nce-value")
assert (status, "1 passed" in text) == (0, True), text
for path in ["../nceref.toml", os.path.join(os.getcwd(), "empty", "..", "nceref.toml")]:
    status, text = call("--nceref", "--collect-only", "-q", path, folder="empty")
    assert (status, "nceref.toml::info_nce-value" in text) == (0, True), text
status, text = call("--nceref", "--collect-only", "-q", "unnamed.toml")
assert (status, text.split()[:2]) == (0, ["unnamed.toml::line-3", "unnamed.toml::line-2"]), text
status, text = call("--nceref", "-x", "-q", "doubled.toml")
assert (status, "\\n1 failed in " in text) == (1, True), text
lines = text[text.index("_ doubled-value _") :].splitlines()
assert lines[1] == "outer-factor-2: value off by 100 % at T = 0.3 in float64", text
assert "  fix " in text
assert "Traceback" not in text
assert ".py:" not in text.replace("losses.py:doubled", "")
"""


def load():
    """Arguments that load the plugin where the installation is older than it."""
    installed = {entry.name for entry in entry_points(group="pytest11")}
    return [] if "nceref" in installed else ["-p", PLUGIN]


def test_it_is_declared():
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    assert declared == {"pytest11": {"nceref": PLUGIN}}


def project(tmp_path):
    write_project(tmp_path)
    for folder in ("tests", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pytest.ini").write_text(STRICT)
    (tmp_path / "tests" / "test_one.py").write_text("def test_one(): pass")
    (tmp_path / "doubled.toml").write_text(DOUBLED)
    for name, text in {
        "broken.toml": "a = ",
        "empty/broken.toml": "",
        "empty/pytest.ini": "[pytest]",
        "unnamed.toml": UNNAMED,
    }.items():
        (tmp_path / name).write_text(text)


def child(tmp_path, *arguments):
    # As where nobody has set a plugin or an option.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, *arguments, *load()]
    return subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)


def test_options_and_what_cannot_be_read(tmp_path):
    """One process for all of these calls: each of them would take a second to begin."""
    project(tmp_path)
    calls = CALLS.replace("NAMES", repr(["doubled", "info_nce"]))
    done = child(tmp_path, "-c", calls)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def in_two_workers(tmp_path_factory):
    """What is printed of a manifest and of the usual tests beside it, and the file of JUnit."""
    folder = tmp_path_factory.mktemp("project")
    project(folder)
    (folder / "nceref.toml").write_text((folder / "nceref.toml").read_text() + STRANGE)
    junit = ["--junit-xml", "made.xml", "-o", "junit_family=xunit1"]
    done = child(folder, "-m", "pytest", "--nceref", "-n", "2", "--dist", "loadgroup", "-vrA", *junit)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr, folder / "made.xml"


def test_a_manifest_is_a_suite_in_two_workers(in_two_workers):
    """Each problem is one failing test with file and line, and the others run."""
    printed, made = in_two_workers
    cases = {case.get("name"): case for case in ET.parse(made).getroot().iter("testcase")}
    assert "test_one" in cases
    # pytest counts lines from 0.
    places = {name: (case.get("file"), int(case.get("line")) + 1) for name, case in cases.items()}
    assert places["info_nce-value"] == ("nceref.toml", 1)
    assert places["known-gradient-keys"] == ("nceref.toml", 16)
    assert places["known-expected-failure-*"] == ("nceref.toml", 22)
    failed = {
        name: case.find("failure").text
        for name, case in cases.items()
        if case.find("failure") is not None and places[name][1] <= 40
    }
    assert {name: places[name][1] for name in failed} == {
        "info_nce-expected-failure-designed-*/value": 5,
        "info_nce-expected-failure-desinged-0.3/value": 12,
        "vanished-whole-run": 25,
        "setting-whole-run": 29,
        "key-line-38": 38,
        "line-40": 40,
    }
    assert sorted(int(text.split(":")[1]) for text in failed.values()) == [5, 12, 26, 33, 38, 40]
    assert all(text.startswith("nceref.toml:") and "\n" not in text for text in failed.values())
    expected = [name for name, case in cases.items() if "twice | the" in ET.tostring(case, encoding="unicode")]
    assert {"known-value", "known-expected-failure-*"} < set(expected)
    assert {name.split("-")[0] for name in expected} == {"known"}
    # pytest 8 writes "reason: " before it.
    printed = printed.replace(" - reason: ", " - ")
    assert "XFAIL nceref.toml::known-value - twice | the <mean>, https://example.org/1" in printed


def test_names_of_a_manifest_are_printed_without_control_characters(in_two_workers):
    printed, _ = in_two_workers
    assert r"a\x1b[31mb\u202ec\x1b]0;d\x07 ::error::e-value" in printed
    # Of each target a test has run: a reason, a package that is missing, and a key that there is not.
    for word in (r"f\x1b[32mg", r"h\x1b[33mi", r"j\x1b[34mk", r"l\x1b[35mm"):
        assert word in printed, word
    assert [c for c in printed if not c.isprintable() and c != "\n"] == []
    assert [line for line in printed.splitlines() if line.startswith("::")] == []
