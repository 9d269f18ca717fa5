"""Every command in odd environments: the quick examples in this process, some in processes of their own.

`make environments` runs all examples in all environments.
"""

import io
import os
import signal
import sys

import pytest
from commands.environments import ENVIRONMENTS, LATE, Environment, problems, results_in, words_in
from commands.examples import EXAMPLES, Example, fill, make_small
from slow import partly_slow

from nceref import cli

QUICK = [example for example in EXAMPLES if example.quick]
FIRST = list({e.words.split()[0]: e for e in reversed(QUICK)}.values())
"""One of each command."""
BY_NAME = {environment.name: environment for environment in ENVIRONMENTS}
ENCODED = [e for e in ENVIRONMENTS if e.variables.keys() == {"PYTHONIOENCODING"}]
WIDTHS = [e.name for e in ENVIRONMENTS if e.variables.keys() == {"COLUMNS"}]
HERE = [e for e in ENVIRONMENTS if e.variables and e.variables.keys() <= LATE and e.output == "pipe"]
# What else a width may be is a question to one function (`test_terminal`).
HERE = [e for e in HERE if e.name not in WIDTHS or e.variables["COLUMNS"] in ("1", "²")]
HERE += [*ENCODED, *(BY_NAME[name] for name in ("closed standard output", "full disk", "nobody reads"))]


class FailingStream(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


def standard_output(environment):
    """A stream in this process that stands for the one of the environment."""
    if environment.output == "closed":
        return None
    if environment.output == "full":
        return FailingStream(OSError(28, "No space left on device"))
    if environment.output == "ended":
        return FailingStream(BrokenPipeError(32, "Broken pipe"))
    encoding = environment.variables.get("PYTHONIOENCODING", "utf-8")
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict", write_through=True)


def run_here(environment, example, patch):
    """Status, standard output and standard error of one example in this process."""
    for name, value in environment.variables.items():
        if value is None:
            patch.delenv(name, raising=False)
        else:
            patch.setenv(name, value)
    # A closed pipe would end the tests, at once or at the next one that is closed.
    patch.setattr(os, "kill", lambda process, number: None)
    patch.setattr(signal, "signal", lambda number, handler: None)
    out, err = standard_output(environment), io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    patch.setattr(sys, "stdout", out)
    patch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as end:
        cli.main(words_in(environment, example))
    written = out.buffer.getvalue() if isinstance(out, io.TextIOWrapper) else b""
    return end.value.code or 0, written, err.buffer.getvalue()


OFTEN = {"COLUMNS=²", "NCEREF_THREADS=x", "PYTHONIOENCODING=ascii", "full disk", "nobody reads"}
"""One environment of a kind: a width, a setting, an encoding, a stream that fails."""


@pytest.mark.parametrize(
    ("environment", "examples"),
    partly_slow(
        [*((e, FIRST) for e in HERE if e.name in OFTEN), *((e, QUICK) for e in HERE)],
        lambda case: case[1] is FIRST,
        "pages and streams are tested by themselves in tests/output, and one example of each command runs",
    ),
    ids=lambda x: x.name if isinstance(x, Environment) else str(len(x)),
)
def test_quick_examples_in_this_process(environment, examples, tmp_path, monkeypatch):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    make_small(monkeypatch.setattr)
    results = []
    for example in examples:
        with pytest.MonkeyPatch.context() as patch:
            results.append(run_here(environment, example, patch))
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    assert wrong(environment, examples, results) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pseudo-terminals, /proc and /dev/full of Linux")
@pytest.mark.parametrize(
    ("name", "words"),
    partly_slow(
        [
            ("all at once", ("check alignment", "verify targets.py:loss --loss cross_entropy --suite quick")),
            ("terminal of odd words", ("check alignment", "tables paco-optimum --format text")),
            ("all streams closed", ("losses", "tables --list")),
            ("full disk", ("losses", "tables --list")),
        ],
        lambda case: case[0] == "all streams closed",
        "each starts processes, and the examples above run in this one",
    ),
)
def test_some_examples_in_processes_of_their_own(name, words, tmp_path):
    chosen = [e for e in EXAMPLES if e.words.startswith(words)]
    assert wrong(BY_NAME[name], chosen, results_in(BY_NAME[name], chosen, tmp_path)) == []


def wrong(environment, examples, results):
    listed = zip(examples, results, strict=True)
    return [(e.words, p, r[2][-300:]) for e, r in listed for p in problems(environment, e, *r)]


def test_what_must_not_be_is_seen():
    """Each way in which a run can be wrong is a problem, and a run that is right is none."""
    plain, example = Environment("plain"), Example("losses --json")
    assert not list(problems(plain, example, 0, b"[]", b""))
    assert not list(problems(BY_NAME["full disk"], example, 2, b"", b"Error: no space"))
    terminal, dumb = Environment("", {"TERM": "xterm"}, "80"), Environment("", {"TERM": "dumb"}, "80")
    assert not list(problems(terminal, example, 0, b"\x1b[1mbold", b""))
    for environment, run in (
        (plain, (1, b"[]", b"")),
        (plain, (0, b"[]", b"Traceback (most recent call last):")),
        (plain, (0, b"[]", b"x.py:1: DeprecationWarning: old")),
        (plain, (0, b"[NaN]", b"")),
        (plain, (0, b"[1", b"")),
        (plain, (0, b"[]", b"\x1b[31m")),
        (dumb, (0, b"\x1b[1m[]", b"")),
        (terminal, (0, b"[] Traceback", b"")),
        (BY_NAME["terminal without colors"], (0, b"\x1b[31m[]", b"")),
        (BY_NAME["full disk"], (0, b"", b"")),
        (BY_NAME["closed standard output"], (2, b"", b"")),
        (BY_NAME["nobody reads"], (1, b"", b"")),
        (BY_NAME["NCEREF_THREADS=0"], (2, b"[", b"Error: x")),
    ):
        assert list(problems(environment, example, *run)), run
