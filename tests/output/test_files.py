"""Files are whole or not there, JSON holds no NaN, and what cannot be written is refused before the work."""

import json
from pathlib import Path

import pytest

from nceref.errors import InputError
from nceref.output import files


def test_the_old_file_and_nothing_else_is_left_if_writing_fails(monkeypatch, tmp_path):
    def fail(self, target):
        raise PermissionError

    path = tmp_path / "file.txt"
    files.write_text(path, "old\n")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(PermissionError):
        files.write_text(path, "new\n")
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "there").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    files.write_text(tmp_path / "link", "π\n")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == "π\n".encode()
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o640
    files.write_text(tmp_path / "new" / "folder" / "file", "")
    with pytest.raises(IsADirectoryError):
        files.write_text(tmp_path, "")


def test_json_has_no_nan():
    assert files.json_text({"τ": 1.0}, indent=None) == '{"τ": 1.0}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.json_text([float("nan")])


def test_json_keeps_text_of_others_and_is_printable():
    text = "é τ 猫\x1b\x7f\x9b\u202e\u2028\ufeff\udcff\U000e0001"
    written = files.json_text({text: [text]})
    assert json.loads(written.encode()) == {text: [text]}
    assert written.replace("\n", "").isprintable()
    assert "é τ 猫" in written
    assert files.json_text("\x7f") == '"\\u007f"\n'


def test_what_cannot_be_written_is_named_by_its_option(tmp_path):
    (tmp_path / "file").write_text("")
    files.must_be_writable({"--out": str(tmp_path / "made")}, {"--json": str(tmp_path / "file"), "--save": None})
    assert (tmp_path / "made").is_dir()
    same = {"--json": str(tmp_path / "a"), "--save": str(tmp_path / "made" / ".." / "a")}
    for folders, named, message in (
        ({}, same, "--json and --save are the same file"),
        ({"--out": str(tmp_path / "file")}, {}, "cannot write --out .*it is a file"),
        ({}, {"--json": str(tmp_path / "made")}, "cannot write --json .*it is a folder"),
        ({}, {"--json": str(tmp_path / "file" / "below")}, "cannot write --json .*not a directory"),
    ):
        with pytest.raises(InputError, match=message):
            files.must_be_writable(folders, named)
