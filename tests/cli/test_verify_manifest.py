"""`nceref verify` without TARGET: every target of a manifest, what is wrong in it, and the files."""

import json
from xml.etree import ElementTree as ET

import pytest
from targets.project import LOSSES, MANIFEST, write_project

from nceref.verification.conformance import verification
from nceref.verification.targets.child import ChildRunner

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
    assert nowhere.startswith("no result that is judged has the id `desinged-0.3/value`; did you mean `designed-0.3/")
    assert passes.startswith("`designed-*/value` is expected to fail ('it was wrong'), but ")
    assert passes.endswith("results pass; remove it")
    assert "vanished" in vanished
    assert "did you mean `temperature`?" in setting
    assert key == "`los` is no key of a target; did you mean `loss`?"
    assert targets_key == "`targets` is no key of a manifest; did you mean `target`?"
    page = " ".join(out.split())
    assert all(" ".join(problem.split()) in page for problem in problems if "/" not in problem)
    assert "fail as expected, `*`: twice | the <mean>, https://example.org/1" in page
    assert out.endswith("\n1 of 6 targets passes\n")
    check_files(files, problems)


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
    assert "twice | the \\<mean\\> [Source](https://example.org/1)" in table
    assert table.count("- nceref.toml:") == len(problems)
    document = files["html"].read_text()
    assert "known: losses.py:doubled" in document
    assert "<mean>" not in document


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
    status, out, err = run("verify", "--manifest", "sub/pyproject.toml", "--only", "knwon")
    assert (status, out) == (2, "")
    assert "--only knwon: sub/pyproject.toml has no target of that name; did you mean 'known'?" in err
