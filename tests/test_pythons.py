"""`make test-pythons`: which interpreters there are, and what becomes of those that are not, or fail."""

import os
import sys
import tomllib

import pytest

from tools import pythons

CURRENT = "{}.{}".format(*sys.version_info)
PROJECT = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="interpreters are scripts of a shell here")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders on PATH, and a function that puts a program into one of them."""
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in "ab"))

    def put(folder, version, script):
        path = tmp_path / folder / f"python{version}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return put


def test_every_version_from_the_oldest_that_is_declared_is_tried():
    assert PROJECT["requires-python"] == f">={pythons.VERSIONS[0]}"
    declared = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one}
    assert declared <= {*pythons.VERSIONS}
    assert all((pythons.ROOT / path).exists() for path in pythons.TESTS)


def test_a_program_that_does_not_run_is_passed_over(folders):
    folders("a", "3.12", "echo 'command not found' >&2; exit 127")
    folders("a", "3.13", "echo 3.12")
    right = folders("b", "3.12", "echo 3.12")
    folders("b", "3.14", "echo nonsense 3.14")
    assert pythons.interpreters() == {"3.12": right}
    assert pythons.version_of("/nowhere/python3.12") == ""
    assert pythons.version_of(sys.executable) == CURRENT


def test_an_interpreter_that_is_given_comes_first(folders, tmp_path):
    folders("a", "3.12", "echo 3.12")
    own = folders("c", "of-mine", "echo 3.12")
    assert pythons.interpreters([own]) == {"3.12": own}
    old = folders("c", "3.8", "echo 3.8")
    with pytest.raises(ValueError, match=r"python3\.8 must be a Python of 3\.11, .*, got 3\.8"):
        pythons.interpreters([old])
    with pytest.raises(ValueError, match="got nothing that runs"):
        pythons.interpreters([str(tmp_path / "nothing")])


def test_what_is_missing_is_told_and_a_failure_is_the_exit_status(folders, monkeypatch, capsys):
    path = folders("a", "3.12", "echo 3.12")
    folders("a", "3.13", "echo 3.13")
    monkeypatch.setattr(pythons, "_test", lambda version, python: 0)
    pythons.main(())
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["==> python3.11 is not on PATH: left out", f"==> Python 3.12: {path}"]
    assert lines[-1] == "==> passed: Python 3.12, 3.13"
    monkeypatch.setattr(pythons, "_test", lambda version, python: int(version == "3.13"))
    with pytest.raises(SystemExit, match=r"failed: Python 3\.13"):
        pythons.main(())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"no Python of 3\.11, 3\.12, 3\.13, 3\.14 is there"):
        pythons.main(())
    with pytest.raises(SystemExit, match="must be a Python of"):
        pythons.main(["/nowhere/python"])
