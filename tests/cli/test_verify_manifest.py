"""`nceref verify` without TARGET: every target of a manifest, what is wrong in it, and the files."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from programs.project import LOSSES, MANIFEST, write_project

from nceref.targets.process.child import ChildRunner
from nceref.verification.conformance import verification
from nceref.verification.manifest import page

SCHEMA = json.loads((Path(page.__file__).parent / "results.schema.json").read_text(encoding="utf-8"))
FORMATS = ("json", "html", "junit", "markdown", "badge")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    write_project(folder)
    return folder


def test_all_targets_run_and_each_problem_has_a_sentence_with_its_line(folder, run, monkeypatch, tmp_path):
    started = []
    kind = lambda *given: started.append(given) or ChildRunner(*given)  # noqa: E731
    monkeypatch.setattr(verification, "child_runner", kind)
    monkeypatch.chdir(folder)
    files = {name: tmp_path / f"made.{name}" for name in FORMATS}
    status, out, err = run("verify", *(word for name, path in files.items() for word in (f"--{name}", str(path))))
    assert (status, err.splitlines()) == (4, [f"wrote {path}" for path in files.values()])
    assert len(started) == 1
    content = json.loads(files["json"].read_text())
    check_schema(content)
    assert (content["schema"], content["exit_code"], content["manifest"]) == (1, 4, "nceref.toml")
    targets = {each["name"]: each for each in content["targets"]}
    verdicts = {"info_nce": "differs", "known": "value-only", **dict.fromkeys(("vanished", "setting", "key"), "error")}
    assert {name: each["verdict"] for name, each in targets.items()} == verdicts | {"nceref.toml": "error"}
    assert targets["known"]["report"]["command"] == "nceref verify --only known"
    assert targets["known"]["line"] == 16
    (expected,) = targets["known"]["expected_failures"]
    assert expected["failed"] == sum(r["status"] == "xfail" for r in targets["known"]["report"]["results"]) > 5
    problems = [problem for each in targets.values() for problem in each["problems"]]
    places, sentences = zip(*(problem.split(": ", 1) for problem in problems), strict=True)
    assert places == tuple(f"nceref.toml:{line}" for line in (12, 5, 26, 33, 38, 40))
    nowhere, passes, vanished, setting, key, targets_key = sentences
    assert nowhere.startswith(
        "`desinged-0.3/value` is expected to fail, but no result has this id; did you mean `designed-0.3/"
    )
    assert passes.startswith("`designed-*/value` is expected to fail ('it was wrong'), but ")
    assert passes.endswith("results pass; remove it")
    assert "vanished" in vanished
    assert "did you mean `temperature`?" in setting
    assert key == "`los` is no key of a target; did you mean `loss`?"
    assert targets_key == "`targets` is no key of a manifest; did you mean `target`?"
    text = " ".join(out.split())
    # One line for what passes, and the whole report of what does not.
    assert text.count("suite quick") == 1
    assert "known info_nce 28 value-only" in text
    assert "--only NAME shows the report of one" in text
    assert all(text.count(" ".join(problem.split())) == 1 for problem in problems if "/" not in problem)
    assert "fail as expected, `*`: twice | the <mean>, https://example.org/1" in text
    assert out.endswith("\n1 of 6 targets passes\n")
    check_files(files, problems)


def check_schema(content):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(content)] == []
    # A key that is new, missing or of another kind is another schema.
    for change in ({"more": 1}, {"schema": 2}, {"targets": {}}):
        assert not validator.is_valid({**content, **change})
    assert not validator.is_valid({key: x for key, x in content.items() if key != "left_out"})


def check_files(files, problems):
    suites = {suite.get("name"): suite for suite in ET.parse(files["junit"]).getroot()}
    assert len(suites) == 6
    assert [name for name, suite in suites.items() if suite.get("failures") == suite.get("errors") == "0"] == [
        "known: losses.py:doubled info_nce"
    ]
    assert "1 of 6 targets passes" in "".join(ET.parse(files["badge"]).getroot().itertext())
    table = files["markdown"].read_text()
    assert table.startswith("1 of 6 targets passes (nceref ")
    assert "| `vanished` | `info_nce` |" in table
    assert "twice | the \\<mean> [Source](https://example.org/1)" in table
    assert table.count("- nceref.toml:") == len(problems)
    places = {
        (suite.get("name"), c.get("name")): (c.get("file"), c.get("line"))
        for suite in suites.values()
        for c in suite.iter("testcase")
    }
    assert {file for file, _ in places.values()} == {"nceref.toml"}
    assert places["losses.py:info_nce info_nce", "seven-0.5/value"][1] == "1"
    assert places["losses.py:info_nce info_nce", "desinged-0.3/value"][1] == "12"
    assert places["known: losses.py:doubled info_nce", "seven-0.5/value"][1] == "22"
    document = files["html"].read_text()
    assert "known: losses.py:doubled" in document
    assert "<mean>" not in document


@pytest.mark.usefixtures("in_this_process")
def test_some_targets_by_name_and_from_another_folder(folder, run, monkeypatch, tmp_path):
    """Exit code 0 where all that fails is expected to; a manifest elsewhere names files beside itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    status, _, err = run("verify")
    assert status == 2
    assert "neither nceref.toml nor" in err
    assert run("verify", "--manifest", "")[0] == 2
    path = tmp_path / "sub" / "pyproject.toml"
    path.parent.mkdir()
    start = MANIFEST.index('[[target]]\nname = "known"')
    path.write_text(MANIFEST[start : MANIFEST.index("[[target]]", start + 1)].replace("[[t", "[[tool.nceref.t"))
    (path.parent / "losses.py").write_text(LOSSES)
    status, out, err = run("verify", "--manifest", "sub/pyproject.toml", "--only", "known", "--markdown", "-")
    assert (status, err) == (0, "")
    assert out.startswith("1 target passes (nceref ")
    status, out, _ = run("verify", "--manifest", "sub/pyproject.toml", "--only", "known")
    assert (status, "\n\n\n" in out) == (0, False)
    status, out, err = run("verify", "--manifest", "sub/pyproject.toml", "--only", "knwon")
    assert (status, out) == (2, "")
    assert "--only knwon: sub/pyproject.toml has no target of that name; did you mean 'known'?" in err


MORE = """\
[defaults]
loss = "info_nce"
suite = "quick"
dtypes = ["float64", "float32"]

[[target]]
target = "losses.py:single_doubled"
[[target.expected_failures]]
id = ["*/value", "*/identity.closed-form"]
dtypes = "float32"
diagnosis = "outer-factor-2"
reason = "twice"
strict = "some"

[[target]]
name = "mended"
target = "losses.py:info_nce"
dtypes = "float64"
inputs = "batch.npz"
[[target.expected_failures]]
id = "*"
reason = "it was wrong"
strict = "some"
[[target.expected_failures]]
id = "designed-*/value"
reason = "on some machines"
strict = false

[[target]]
name = "without-format"
target = "losses.py:single_doubled"
set = {factor = "outer-factor-2"}
[[target.expected_failures]]
id = "designed-*/value"
reason = "once"
strict = "some"
[[target.expected_failures]]
id = "float64/*"
reason = "once"
strict = "some"

[[target]]
target = "losses.py:elsewhere"
needs = "no-such-package"
"""


@pytest.mark.usefixtures("in_this_process")
def test_formats_defaults_inputs_and_what_is_not_installed(folder, run, monkeypatch, tmp_path):
    (folder / "more.toml").write_text(MORE)
    rows = np.random.default_rng(0).standard_normal((2, 6, 5))
    np.savez(folder / "batch.npz", queries=rows[0], keys=rows[1])
    monkeypatch.chdir(tmp_path)
    path = folder / "more.toml"
    status, out, err = run("verify", "--manifest", str(path), "--json", "-")
    assert (status, err) == (1, "")
    content = json.loads(out)
    check_schema(content)
    first, mended, without = content["targets"]
    codes = [(each["name"], each["exit_code"]) for each in content["targets"]]
    assert codes == [("single_doubled", 0), ("mended", 1), ("without-format", 1)]
    why = "`designed-*/value` is expected to fail, but no result has this id; ids begin with the format here"
    assert without["problems"] == [f"{path}:33: {why}; write `*/designed-*/value`"]
    failed = {each["id"]: (each["line"], each["failed"] > 0) for each in first["expected_failures"]}
    assert failed == {"float32/*/value": (9, True), "float32/*/identity.closed-form": (9, True)}
    why = "`*` is expected to fail, but none of its results does; remove it from the expected failures"
    assert mended["problems"] == [f"{path}:20: {why}"]
    assert {"given-0.07/value"} <= {r["id"] for r in mended["report"]["results"] if r["status"] == "pass"}
    sentence = "elsewhere is not judged: no-such-package is not installed: pip install no-such-package"
    assert content["left_out"] == [{"name": "elsewhere", "reason": f"{path}:44: {sentence}"}]
    for option, words in (
        ("", "no target is judged"),
        ("--markdown=-", "### Not judged"),
        ("--junit=-", "<testsuites"),
    ):
        given = ["verify", "--manifest", str(path), "--only", "elsewhere", *filter(None, [option])]
        status, out, _ = run(*given)
        assert (status, words in out) == (5, True)


@pytest.mark.usefixtures("in_this_process")
def test_ids_of_one_expected_failure_stand_together(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    Path("known.toml").write_text(
        """
[[target]]
target = "losses.py:doubled"
loss = "info_nce"
suite = "quick"
expected_failures = [{id = ["*/value", "*/identity*"], reason = "Twice.", link = "https://e.org", strict = "some"}]
"""
    )
    status, out, _ = run("verify", "--manifest", "known.toml")
    assert status == 0
    text = " ".join(out.split())
    assert text.count("results fail as expected, `*/value`, `*/identity*`: Twice, https://e.org") == 1
    assert text.count("Twice") == 1


COUNTED = """\
# Ours.
[[target]]
target = "losses.py:info_nce"
loss = "info_nce"  # of CPC
suite = "quick"

[[target]]
target = "losses.py:doubled" # wrong
loss = "info_nce"
suite = "quick"
calls = 0
checks = {gradients = 3}
"""
MADE = "checks = {values = 28, identities = 3, modes = 5}"


@pytest.mark.machine
@pytest.mark.usefixtures("in_this_process")
def test_the_numbers_of_checks_are_written_for_what_passes_and_hold_later_runs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("losses.py").write_text(LOSSES)
    Path("nceref.toml").write_text(COUNTED)
    # What differs goes on differing, and its numbers stay.
    status, out, err = run("verify", "--update-checks")
    assert status == 1
    assert err.splitlines() == [
        "nceref.toml:7: doubled does not pass: its `checks` are not written",
        "wrote nceref.toml",
    ]
    assert out.endswith("\nchecks: 56 values, 6 identities, 9 modes\n1 of 2 targets passes\n")
    text = Path("nceref.toml").read_text()
    assert text == COUNTED.replace('suite = "quick"\n', f'suite = "quick"\n{MADE}\n', 1)
    # Others are neither run nor written.
    status, out, err = run("verify", "--update-checks", "--only", "info_nce", "--markdown", "-")
    assert (status, err) == (0, "nceref.toml has these numbers of checks already\n")
    assert out.splitlines()[2] == "checks: 28 values, 3 identities, 5 modes"
    assert Path("nceref.toml").read_text() == text
    Path("nceref.toml").write_text(text.replace("identities = 3", "gradients = 84, identities = 4"))
    status, out, err = run("verify", "--only", "info_nce", "--json", "made.json", "--html", "made.html")
    assert status == 5
    sentence = (
        "nceref.toml:6: 84 gradients were judged when the manifest was written, now 0 (skipped: the target returns no"
    )
    assert sentence in " ".join(out.split())
    content = json.loads(Path("made.json").read_text())
    check_schema(content)
    (target,) = content["targets"]
    assert content["checks"] == target["checks"] == {"values": 28, "identities": 3, "modes": 5}
    assert target["least_checks"] == {"values": 28, "gradients": 84, "identities": 4, "modes": 5}
    assert target["problems"][0].startswith(sentence)
    assert "0 of 84 gradients and 3 of 4 identities of the manifest were judged" in Path("made.html").read_text()
    # If it is meant, the numbers are those of today again.
    assert run("verify", "--only", "info_nce", "--update-checks")[0] == 0
    assert Path("nceref.toml").read_text() == text
    assert run("verify", "--only", "info_nce")[0] == 0


def test_numbers_of_checks_that_cannot_be_written_are_refused_before_anything_runs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("losses.py").write_text("raise RuntimeError\n")
    text = COUNTED + "[target.set]\n"
    Path("nceref.toml").write_text(text.replace("checks = {gradients = 3}", "checks.gradients = 3"))
    status, out, err = run("verify", "--update-checks")
    assert (status, out) == (2, "")
    assert (
        "nceref.toml:12: --update-checks writes `checks` as a line below [[target]]; write checks = {} yourself" in err
    )
    status, out, err = run("verify", "--update-checks", "losses.py:info_nce", "--loss", "info_nce")
    assert (status, out) == (2, "")
    assert "--update-checks is for the targets of a manifest; leave out --update-checks, or TARGET and --all" in err
    status, out, err = run("verify", "--update-checks", "--markdown", "nceref.toml")
    assert (status, "--markdown and --update-checks are the same file, nceref.toml; name two" in err) == (2, True)
