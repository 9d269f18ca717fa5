"""Files of the commands: replaced as a whole, links followed, and nobody else's lost."""

import os
from pathlib import Path

import pytest

from nceref.cases.expected_failures import ExpectedFailure, expected_failures_in
from nceref.errors import FileError, InputError
from nceref.verification import verifier
from nceref.verification.report import Report


def test_files_are_replaced_and_links_stay_links(run, tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert run("derive", "nce-optimum", "--latex", "--out", str(tmp_path / "link"))[0] == 0
    assert (tmp_path / "link").is_symlink()
    printed = run("derive", "nce-optimum", "--latex", "--out", "-")[1]
    assert (tmp_path / "there").read_text(encoding="utf-8") == printed
    assert run("derive", "nce-optimum", "--out", os.devnull)[0] == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(("name", "content"), [("README.md", "# Mine"), ("manifest.json", '{"name": "mine"}')])
def test_figures_refuse_to_overwrite_what_is_not_theirs(run, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    status, _, err = run("figures", "sphere-force", "--out", str(tmp_path))
    assert status == 2
    assert "would be lost" in err
    assert (tmp_path / name).read_text() == content


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("verify a.py:f --loss dcl --json ./a.py", "TARGET and --json are the same file, ./a.py; name two"),
        ("verify a.py:f --loss dcl --expected-failures a.py --repro b", "TARGET and --expected-failures are the same"),
        ("verify a.py:f --loss dcl --expected-failures b --junit b", "--expected-failures and --junit are the same"),
        ("verify a.py:f --loss dcl --json --junit -", "--json and --junit are the same file, -; name two"),
        ("vectors compare a.py b --junit b", "OUTPUTS and --junit are the same file, b; name two"),
        ("verify --all --json /", "cannot write --json /: it is a folder; name a file"),
        (
            "verify a.py:f --loss dcl --expected-failures c",
            "cannot read --expected-failures c: no such file",
        ),
        ("derive nce-optimum --out a.py/b", "cannot write --out a.py/b: not a directory; choose another place"),
        ("tables hardness --out a.py/b", "cannot write --out a.py/b: not a directory; choose another place"),
        ("figures sphere-force --out a.py/b", "cannot write --out a.py/b: not a directory; choose another place"),
        ("plot-limits --out a.py/b", "cannot write --out a.py/b: not a directory; choose another place"),
        ("experiment long-tail --json a.py/b", "cannot write --json a.py/b: not a directory; choose another place"),
        ("quadrants --save a.py/b", "cannot write --save a.py/b: not a directory; choose another place"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("raise SystemExit('it runs')")
    status, out, err = run(*words.split())
    assert (status, out) == (2, "")
    assert message in err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.py", "raise SystemExit('it runs')")]


READ = [
    "verify a.py:f --loss dcl --inputs dev.npz",
    "verify a.py:f --loss dcl --inputs dev.safetensors",
    "verify a.py:f --loss dcl --expected-failures dev.txt",
    "verify --manifest dev.toml",
    "compare folder dev.jsonl",
    "vectors check folder",
    "vectors export --loss nce --out folder",
    "quadrants --resume dev.npz",
]
EXECUTED = ["verify a.py:f --loss dev.py:LOSS", "expect --loss dev.py:LOSS --n 8", "losses dev.py:LOSS", "init dev.py"]


@pytest.mark.skipif(os.name != "posix", reason="devices as POSIX has them")
@pytest.mark.parametrize("words", [*READ, *EXECUTED])
def test_only_regular_files_are_read(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("raise SystemExit('it runs')")
    (tmp_path / "folder").mkdir()
    # It ends at once, unlike a pipe or /dev/zero: a command that reads it does not hang, but says something else.
    for name in ("dev.npz", "dev.safetensors", "dev.txt", "dev.toml", "dev.jsonl", "dev.json", "dev.py"):
        (tmp_path / name).symlink_to(os.devnull)
    (tmp_path / "folder" / "MANIFEST.json").symlink_to(os.devnull)
    status, out, err = run(*words.split())
    assert (status, out) == (2, "")
    assert ("it is not a regular file; name another file" in err) == (words in READ)
    assert ("no file 'dev.py'" in err or "'dev.py' is not there" in err) == (words in EXECUTED)


@pytest.mark.parametrize(
    "text", ["nt/*/value: twice the mean\n# more\nx/y/grad  off by π\n", '{"nt/*/value": "π", "x": "y"}']
)
def test_damaged_expected_failures_are_refused_by_name_or_reasons_by_id(tmp_path, text):
    path, content = tmp_path / "known.txt", text.encode()
    masks = [(i, mask) for i in range(len(content)) for mask in (1, 32, 128, 255)]
    flipped = (content[:i] + bytes([content[i] ^ mask]) + content[i + 1 :] for i, mask in masks)
    refused = 0
    for damaged in (*flipped, *(content[:i] for i in range(len(content)))):
        path.write_bytes(damaged)
        try:
            reasons = expected_failures_in(str(path), "--expected-failures")
        except (InputError, FileError) as error:
            refused += 1
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert all(isinstance(failure, ExpectedFailure) and failure.reason for failure in reasons.values())
    assert refused > len(content) / 2


def test_a_report_is_shown_also_if_its_file_cannot_be_written(run, tmp_path, monkeypatch):
    report = Report("a.py:f", "dcl", "differs", 1, "twice the mean", repro="print()")
    monkeypatch.setattr(verifier, "verify_with", lambda *target, **options: report)
    path = tmp_path / "made.json"
    status, out, err = run(
        "verify", "a.py:f", "--loss", "dcl", "--json", str(path), "--junit", "/dev/full", "--repro", str(path) + ".py"
    )
    assert status == 2
    assert "twice the mean" in out
    assert err.splitlines() == [
        f"wrote {path}",
        "Error: cannot write --junit /dev/full: no space left on device; free some space, or choose another place",
    ]
