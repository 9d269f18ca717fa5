"""The page for other languages is followed, and its two examples are what it says they are."""

import doctest
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nceref import verify
from nceref.targets import protocol
from nceref.verification.vectors.formats import c_header
from nceref.verification.vectors.store import read_vectors

pytestmark = pytest.mark.machine

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "other-languages.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs" / "examples"
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = {
    title: re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", text, re.MULTILINE) for title, text in SECTIONS.items()
}
FILES = re.findall(r"```(?:c|python)\n(?:# |/\* )(\w+\.\w+)[^\n]*\n(.*?)```", PAGE, re.DOTALL)
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def require(*programs):
    if missing := [name for name in programs if not shutil.which(name)]:
        pytest.skip(f"{missing[0]} is not on PATH")


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory):
    """Run a command, once, in the folder of somebody who follows the page: with the examples, and `nceref` on PATH."""
    folder = tmp_path_factory.mktemp("reader")
    for example in EXAMPLES.glob("vectors_*/*"):
        shutil.copy(example, folder)
    for name, text in FILES:
        (folder / name).write_text(text, encoding="utf-8")
    command = folder / "bin" / "nceref"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nceref "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    paths = {"PATH": command.parent, "PYTHONPATH": ROOT}
    around = os.environ | {name: f"{path}{os.pathsep}{os.environ.get(name, '')}" for name, path in paths.items()}

    @functools.cache
    def outcome(command):
        return subprocess.run(
            ["sh", "-c", command], cwd=folder, env=around, capture_output=True, text=True, check=False
        )

    return outcome


@pytest.mark.slow(reason="thirty commands; the page and its two programs change seldom")
@pytest.mark.parametrize("title", [title for title, commands in COMMANDS.items() if commands])
def test_commands_of_the_page_print_what_it_shows(outcome_of, title):
    names = {"cc", "node"} & {word for command, _ in COMMANDS[title] for word in re.findall(r"\w+", command)}
    require("sh", *names)
    for command, shown in COMMANDS[title]:
        done = outcome_of(command)
        assert done.returncode == ("DIFFERS" in shown), f"{command}\n{done.stdout}{done.stderr}"
        if shown:
            wanted = f"{shown.rstrip()}\n...\n".replace("...\n...\n", "...\n")
            assert doctest.OutputChecker().check_output(wanted, done.stdout, ALIKE), f"{command}\n{done.stdout}"


def test_the_page_has_commands_and_the_lines_that_are_sent():
    assert [len(commands) for commands in COMMANDS.values()] == [5, 4, 1, 2, 0]
    assert protocol.hello("info_nce", ["float64"]) in PAGE
    assert protocol.line("bye", {}) in PAGE
    for line in re.findall(r'^\{"(?:hello|result|error|unsupported|bye)".*\}$', PAGE, re.MULTILINE):
        (kind,) = json.loads(line.replace("[...]", "[]"))
        assert kind in ("hello", "result", "error", "unsupported", "bye")
    known = {case.id for case in read_vectors(losses=("info_nce",)).cases["info_nce"]}
    assert {*re.findall(r'"(designed-[\d.]+-\w{8})"', PAGE)} <= known


@pytest.mark.slow(reason="`compare` and `verify cmd:` are tested by themselves")
def test_a_bug_has_one_name_in_a_file_and_in_a_call(outcome_of):
    require("sh", "node")
    steps = [command for command, _ in COMMANDS["Answers in a file"] if "export" in command or "--wrong" in command]
    assert [outcome_of(command).returncode for command in steps] == [0, 0]
    recorded = json.loads(outcome_of("nceref vectors compare vectors wrong.jsonl --json").stdout)
    program = shlex.quote(str(EXAMPLES / "vectors_js" / "info_nce.mjs"))
    called = verify(f"cmd:node {program} --serve --wrong", "info_nce", suite="quick")
    assert (recorded["exit_code"], called.exit_code) == (1, 1)
    first = recorded["diagnosis"][0]
    assert first["id"] == called.diagnosis[0].id == "gradient-constant-factor"
    assert "gradient of queries and keys is T times what it should be" in first["sentence"]
    assert (first["fix"], first["threads"]) == (called.diagnosis[0].fix, list(called.diagnosis[0].threads))


def test_the_example_in_c_has_no_warnings(tmp_path):
    require("cc")
    read = read_vectors(losses=("nt_xent",))
    (tmp_path / "nt_xent.h").write_bytes(c_header("nt_xent", read.cases["nt_xent"], read.sha256))
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", tmp_path, "-fsyntax-only"]
    subprocess.run(["cc", *flags, EXAMPLES / "vectors_c" / "nt_xent.c"], check=True)
