"""Width, colors and progress, with a terminal, without one, and without any output at all."""

import os
import subprocess
import sys

import pytest

from nceref.checks.run import CheckResult
from nceref.output import terminal


def test_progress_goes_to_a_terminal_on_standard_error_only(monkeypatch, capsys):
    results = [CheckResult("dcl", "nonnegative", "pass", "")] * 3
    with terminal.progress(3) as on_progress:
        assert [on_progress(result) for result in results] == results
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with terminal.progress(3) as on_progress:
        assert [on_progress(result) for result in results] == results
    out, err = capsys.readouterr()
    assert out == ""
    assert "dcl" in err


def test_pages_have_the_width_and_colors_of_a_terminal_unless_told_not_to(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal.screen() == {}
    for nonsense in ("0", "-5", "wide", ""):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert terminal.screen() == {}
    monkeypatch.setenv("COLUMNS", "100")
    assert terminal.screen() == {"width": 100}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "123")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.screen() == {"width": 123, "color": True}
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.screen() == {"width": 123, "color": False}


@pytest.mark.skipif(os.name != "posix", reason="redirections of a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_output_is_quiet(closed):
    """Pages, tables, JSON and progress where there is no standard output, no standard error, or neither."""
    commands = ["losses", "tables hardness", "tables --list --format json", "check alignment", "--help"]
    script = (
        "import sys; from nceref.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    try: main(words.split())\n"
        "    except SystemExit as end: assert not end.code, words\n"
    )
    words = " ".join(f'"{command}"' for command in commands)
    command = f'exec "{sys.executable}" -c "$SCRIPT" {words} {closed}'
    environment = os.environ | {"SCRIPT": script}
    finished = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (finished.returncode, finished.stderr) == (0, "")
