"""The wheel is small, and `make dist` sees one that is not, or that lacks a file."""

import re
import zipfile
from pathlib import Path

import pytest

import nceref
from tools import package

PACKAGE = Path(nceref.__file__).parent


def pack(wheel, files):
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.relative_to(PACKAGE.parent).as_posix())
        archive.writestr("nceref-0.dist-info/METADATA", "Name: nceref\n")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The files of the package as a wheel has them."""
    wheel = tmp_path_factory.mktemp("wheel") / "nceref-0-py3-none-any.whl"
    pack(wheel, [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts])
    return wheel


def test_without_reference_vectors_the_wheel_is_below_2_mb(wheel):
    whole, vectors = package.weight(wheel)
    assert whole - vectors < package.MOST == 2_000_000
    assert vectors > 0.1 * whole
    assert package.differing(wheel) == []


def test_a_heavy_wheel_and_one_that_lacks_a_file_are_refused(wheel, tmp_path, monkeypatch, capsys):
    package.weigh(wheel)
    assert re.fullmatch(r"\S+\.whl: \d\.\d\d MB, 1\.\d\d MB without reference vectors\n", capsys.readouterr().out)
    other = tmp_path / "other.whl"
    pack(other, [PACKAGE / "__init__.py", Path(__file__).parents[1] / "nceref" / "py.typed"])
    with pytest.raises(SystemExit, match=r"the wheel and the folder of the package differ in nceref/__main__\.py, "):
        package.weigh(other)
    monkeypatch.setattr(package, "MOST", 1_000_000)
    with pytest.raises(SystemExit, match="without reference vectors the wheel must be below 1 MB"):
        package.weigh(wheel)


def test_a_command_that_fails_is_named(tmp_path, monkeypatch):
    """Without an installation: the environment is an empty folder, and its programs those of the system."""
    monkeypatch.setattr(package, "LIGHT_COMMANDS", (("losses", 0, "no such loss"),))
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
