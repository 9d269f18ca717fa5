"""Tools that are run from a clone: oldest versions, interpreters, the wheel, the picture of a report."""

import os
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import nceref
from tools import package, pythons
from tools.oldest import declared, oldest
from tools.report_picture import PICTURE, example

PACKAGE = Path(nceref.__file__).parent
ROOT = PACKAGE.parent
TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(TEXT)["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_oldest_versions_are_the_floors_that_are_declared():
    constraints = oldest(declared(TEXT))
    assert {"numpy==2.1", "hypothesis==6.140"} <= set(constraints)
    assert [one.replace("==", ">=") for one in constraints] == declared(TEXT)
    for requirement in ("numpy", "numpy<3", "numpy>=2.0,<3"):
        with pytest.raises(ValueError, match="must be a name and the oldest version"):
            oldest([requirement])


def test_the_picture_is_of_the_example_of_the_readme():
    file, content, command = example(README)
    target, _, name = command[1].partition(":")
    assert (command[0], target) == ("verify", file)
    assert f"def {name}(" in content
    assert f"]({PICTURE.relative_to(ROOT).as_posix()})" in README
    for part in ("```python\n", "$ nceref verify"):
        with pytest.raises(SystemExit, match="must have a block of Python that begins"):
            example(README.replace(part, "", 1))


@pytest.fixture
def put(tmp_path, monkeypatch):
    """A function that puts an interpreter into a folder; the folders a and b are on PATH."""
    if os.name == "nt":
        pytest.skip("interpreters are scripts of a shell here")
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
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one}
    assert named <= {*pythons.VERSIONS}
    assert all((pythons.ROOT / path).exists() for path in pythons.TESTS)
    assert pythons.version_of(sys.executable) == "{}.{}".format(*sys.version_info)


def test_an_interpreter_is_one_that_runs_and_a_given_one_comes_first(put):
    put("a", "3.12", "echo 'command not found' >&2; exit 127")
    put("a", "3.13", "echo 3.12")
    right = put("b", "3.12", "echo 3.12")
    put("b", "3.14", "echo nonsense 3.14")
    assert pythons.interpreters() == {"3.12": right}
    own, old = put("c", "of-mine", "echo 3.12"), put("c", "3.8", "echo 3.8")
    assert pythons.interpreters([own]) == {"3.12": own}
    for given, message in ((old, r"python3\.8 must be a Python of 3\.11, .*, got 3\.8"), ("/no", "nothing that runs")):
        with pytest.raises(ValueError, match=message):
            pythons.interpreters([given])


def test_what_is_missing_is_told_and_a_failure_is_the_exit_status(put, monkeypatch, capsys):
    path = put("a", "3.12", "echo 3.12")
    put("a", "3.13", "echo 3.13")
    monkeypatch.setattr(pythons, "_test", lambda version, python: 0)
    pythons.main(())
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["==> python3.11 is not on PATH: left out", f"==> Python 3.12: {path}"]
    assert lines[-1] == "==> passed: Python 3.12, 3.13"
    monkeypatch.setattr(pythons, "_test", lambda version, python: int(version == "3.13"))
    with pytest.raises(SystemExit, match=r"failed: Python 3\.13"):
        pythons.main(())
    monkeypatch.setenv("PATH", "")
    for words, message in (((), r"no Python of 3\.11, 3\.12, 3\.13, 3\.14 is there"), (["/no"], "must be a Python of")):
        with pytest.raises(SystemExit, match=message):
            pythons.main(words)


def pack(wheel, files):
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.relative_to(ROOT).as_posix())
        archive.writestr("nceref-0.dist-info/METADATA", "Name: nceref\n")


def test_the_wheel_is_small_and_one_that_is_heavy_or_lacks_a_file_is_refused(tmp_path, monkeypatch, capsys):
    wheel, other = tmp_path / "nceref-0-py3-none-any.whl", tmp_path / "other.whl"
    pack(wheel, [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts])
    whole, vectors = package.weight(wheel)
    assert whole - vectors < package.MOST == 2_000_000
    assert vectors > 0.1 * whole
    package.weigh(wheel)
    assert re.fullmatch(r"\S+\.whl: \d\.\d\d MB, 1\.\d\d MB without reference vectors\n", capsys.readouterr().out)
    pack(other, [PACKAGE / "__init__.py", PACKAGE / "py.typed"])
    with pytest.raises(SystemExit, match=r"the wheel and the folder of the package differ in nceref/__main__\.py, "):
        package.weigh(other)
    monkeypatch.setattr(package, "MOST", 1_000_000)
    with pytest.raises(SystemExit, match="without reference vectors the wheel must be below 1 MB"):
        package.weigh(wheel)


def test_a_command_of_the_wheel_that_fails_is_named(tmp_path, monkeypatch):
    """Without an installation: the environment is an empty folder, and its programs those of the system."""
    monkeypatch.setattr(package, "LIGHT_COMMANDS", (("nceref losses", 0, "no such loss"),))
    programs = tmp_path / "environment" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "nceref"):
        (programs / name).write_text("#!/bin/sh\necho printed; echo complaint >&2\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    run = package.subprocess.run
    monkeypatch.setattr(
        package.subprocess, "run", lambda words, **options: None if "venv" in words else run(words, **options)
    )
    with pytest.raises(SystemExit, match=r"(?s)nceref losses: exit status 0\nprinted\n.*complaint"):
        package._try(Path("nceref.whl"), tmp_path)
