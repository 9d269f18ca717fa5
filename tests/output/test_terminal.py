"""Width, colors and progress, with a terminal and without one."""

import sys

from nceref.checks.run import CheckResult
from nceref.output import terminal


def test_progress_goes_to_a_terminal_on_standard_error_only(monkeypatch, capsys):
    results = [CheckResult("dcl", "nonnegative", "pass", "")] * 3
    with terminal.progress("checking", 3) as on_progress:
        assert [on_progress(result) for result in results] == results
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress("checking", 3) as on_progress:
        assert [on_progress(result) for result in results] == results
    out, err = capsys.readouterr()
    assert out == ""
    assert "checking: 2 of 3, dcl" in err
    # Nothing stands at 100 %: the line is gone as the last result comes.
    assert "3 of 3" not in err
    assert err.endswith("\r\x1b[K")


def test_pages_have_the_width_and_colors_of_a_terminal_unless_told_not_to(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert terminal.screen() == {}
    for nonsense in ("0", "-5", "wide", "", "²", "١٢", "1_0", " 90 ", "9" * 5000):
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
    monkeypatch.setenv("NO_COLOR", "")
    assert terminal.screen() == {"width": 123, "color": True}
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.screen() == {"width": 123, "color": False}


def test_the_bar_survives_odd_words_and_shows_no_markup(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    for columns in ("²", "99999999999", "1"):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("LINES", columns)
        with terminal.progress("checking", 2) as on_progress:
            on_progress(CheckResult("[bold]\x1b]0;title", "nonnegative", "pass", ""))
    assert r"[bold]\x1b]0;title" in capsys.readouterr().err
    monkeypatch.setenv("TERM", "dumb")
    with terminal.progress("checking", 2) as on_progress:
        on_progress(CheckResult("dcl", "nonnegative", "pass", ""))
    assert capsys.readouterr() == ("", "")
