"""The command line: help, exit statuses, wrong input, and what it does not import."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from commands.examples import read_once
from sweep import sweep

import nceref
from nceref import cli
from nceref.checks import run as check
from nceref.training.quadrants import storage
from nceref.verification.vectors import store

HEAVY = ("numpy", "scipy", "sympy", "matplotlib", "mpmath", "array_api_compat", "torch", "flint")
DECORATOR = re.compile(r"^@click\.(command|group)\(", re.MULTILINE)
START = "from nceref.cli import main; main()"


def start(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_version_is_that_of_the_package_in_any_folder(tmp_path):
    assert start("--version", cwd=tmp_path).stdout == f"nceref {nceref.__version__}\n"


@sweep("command", [(), *((name,) for name in cli.COMMANDS)])
def test_help_fits_80_columns_and_cuts_nothing_off(run, command):
    status, out, err = run(*command, "--help")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    # What may be repeated ends so, and an array of JSON has it inside.
    assert "..." not in out.replace("]...", "").replace("...]", "")


def test_help_imports_nothing_heavy():
    script = f"import sys\ntry:\n    {START}\nfinally:\n    print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    modules = process.stdout.splitlines()[-1].split()
    assert "nceref.cli" in modules
    assert [name for name in modules if name.split(".")[0] in HEAVY] == []
    own = {name for name in modules if name.startswith("nceref")}
    light = {"nceref.output", "nceref.output.streams", "nceref.output.system", "nceref.output.text"}
    assert own == {"nceref", "nceref.cli", "nceref.cli.common", "nceref.errors"} | light
    # `nceref --help` must stay fast: beside click and what click imports, a handful of modules.
    script = "import sys, click; print(*sys.modules)"
    click_alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert len(set(modules) - set(click_alone.stdout.split())) < 25


def test_every_command_is_listed_with_its_own_short_help():
    context = click.Context(cli.nceref)
    for name, short in cli.COMMANDS.items():
        command = cli.nceref.get_command(context, name)
        assert (command.name, command.short_help, command.get_short_help_str(200)) == (name, short, short)
    decorated = {path for path in Path(cli.__file__).parent.glob("[a-z]*.py") if DECORATOR.search(path.read_text())}
    assert {path.stem.replace("_", "-") for path in decorated} == set(cli.COMMANDS)


@sweep("alias", cli.ALIASES)
def test_former_commands_are_options_of_others(run, alias):
    assert alias not in cli.COMMANDS
    assert run(alias, "--help")[1] == run(*cli.ALIASES[alias], "--help")[1]


@sweep(
    ("arguments", "message"),
    [
        (("losses", "supcon"), "did you mean 'supcon_in' or 'supcon_out'"),
        (("tables", "softmx"), "did you mean 'temperature-easy' or 'temperature-hard'"),
        (("vectors", "info", "nt_xent"), "its cases are listed by `nceref vectors list nt_xent`"),
        (("vectors", "info", "designed-0.3"), " more? See `nceref vectors list LOSS`"),
        (("check", "supcon"), "did you mean 'supcon_in' or 'supcon_out'"),
        (("expect", "--loss", "supcon"), "did you mean 'supcon_in' or 'supcon_out'"),
        (("tables", "hard"), "no table named 'hard'"),
        (("tables", "--format", "xml"), "'xml' is not one of"),
        (("tables", "--list", "--out", "folder"), "goes without --out"),
        (("tables", "--list", "--format", "csv"), "goes without --format csv"),
        (("losses", "--latex", "--json"), "--latex prints the formula alone"),
        (("expect",), "Missing option '--loss'"),
        (("claims", "WL-99"), "no claim named 'WL-99'"),
        (("claims", "--verdict", "right"), "no verdict is called 'right'; there are 'agrees'"),
        (("claims", "WL-6", "--source", "004"), "no claim has all that was asked for"),
        (("claims", "--source", "007"), "no source has '007' in its name; there are"),
        (("prove", "QT"), "no claim has 'QT' in its words or its source"),
        (("derive", "tau"), "no derivation named 'tau'"),
        (("derive", "--out", "made.tex"), "--out goes with a TOPIC"),
        (("figures", "limits"), "no figure named 'limits'"),
        (("figures", "--check", "--out", "nowhere"), "nowhere"),
        (("expect", "--loss", "nt_xent", "--n", "256", "--set", "n=3"), "`n` is given twice, as 256 and as 3"),
        (("expect", "--loss", "nt_xent", "--set", "n"), "NAME=VALUE, such as classes=100, got 'n'"),
        (("expect", "--loss", "nt_xent", "--n", "0", "--temperature", "1"), "got 0"),
        (("expect", "--loss", "nt_xent", "--tau", "1"), "No such option '--tau'. Did you mean '--temperature'?"),
        (("expect", "--loss", "nt_xent", "--margin", "1"), "Did you mean '--set margin=VALUE'?"),
        (("verify", "a.py:f", "--tau", "1"), "No such option '--tau'. Did you mean '--set temperature=VALUE'?"),
        (("verify", "a.py:f", "--format", "latex"), "No such option '--format'. Did you mean '--markdown FILE'?"),
        (("verify", " "), "TARGET is empty; it is FILE.py:NAME, PACKAGE.MODULE:NAME or cmd:PROGRAM"),
        (("verify", "a.ipynb:f", "--loss", "dcl"), "a.ipynb:f is in a notebook; export it, and name a.py:NAME"),
        (("expect", "--loss", "nt_xent", "--vlaue", "1"), "Did you mean '--value'?"),
        (("nothing",), "no command named 'nothing'. See `nceref --help`"),
        (("verfy",), "no command named 'verfy'; did you mean 'verify'? See `nceref --help`"),
        (("simclr.py:nt_xent",), "to check it: nceref verify simclr.py:nt_xent"),
        (("check", "nt_xnet"), "did you mean 'nt_xent'"),
        (("mutants", "outer-factor-2"), "that is a convention. See `nceref verify --conventions`"),
        (("losses", "x\x1b[31m\udcff"), r"no loss named 'x\x1b[31m\udcff'"),
        (("losses", "a" * 5000), "aaa...aaa"),
        (("--set\x9b",), r"--set\x9b"),
        (("--nothing",), "--nothing"),
    ],
)
def test_wrong_input_is_one_message_and_status_2(run, monkeypatch, arguments, message):
    monkeypatch.setattr(store, "read_vectors", read_once)
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no pipes of this kind on Windows")
def test_closed_pipe_is_quiet():
    process = subprocess.Popen(
        [sys.executable, "-c", START, "losses", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait() == -signal.SIGPIPE


def test_interrupt_is_status_130(run, monkeypatch):
    def interrupted(names):
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "count", interrupted)
    status, _, err = run("check")
    assert status == 130
    assert "Traceback" not in err


TERMINATED = """
import os, signal, sys
from nceref.training.quadrants import batch
signal.signal(signal.SIGTERM, getattr(signal, sys.argv.pop(1)))
batch.advance = lambda setup, state, note: os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no handlers there")
@pytest.mark.parametrize(
    ("handler", "status", "message"),
    [
        ("SIG_DFL", 143, "The state is saved; go on with: nceref quadrants --resume made.npz"),
        ("SIG_IGN", 0, "wrote made.npz"),
    ],
)
def test_a_terminated_run_is_saved_like_an_interrupted_one(tmp_path, handler, status, message):
    command = [sys.executable, "-c", TERMINATED + START, handler, "quadrants", "--steps", "3", "--save", "made.npz"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr.strip()) == (status, message)
    assert storage.load(tmp_path / "made.npz")[1].done == 0


def test_launcher_runs_from_a_clone(tmp_path):
    launcher = Path(__file__).parents[2] / "cli.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(
        [sys.executable, launcher, "--version"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == f"nceref {nceref.__version__}\n"


def test_package_runs_as_a_module_and_takes_nothing_but_the_target_from_the_working_folder(tmp_path):
    (tmp_path / "mine.py").write_text("def loss(x, y):\n    return 0.0\n")
    for name in ("click", "json", "numpy", "scipy", "subprocess"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the working folder')")
    words = "mine:loss --loss alignment --set normalize=none --suite quick --list-cases"
    command = [sys.executable, "-m", "nceref", "verify", *words.split()]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    assert "designed" in process.stdout
