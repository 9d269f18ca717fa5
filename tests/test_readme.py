"""The README is run: its Python is a doctest, its commands are executed and must print what it shows."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from nceref import cli
from nceref.cli.losses_page import update_readme
from nceref.verification.peers import peer

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
FILES = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.DOTALL)
CONSOLE = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)


def test_python_examples_run():
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(code, {}, "README", str(README), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    found: list[str] = []
    runner.run(test, out=found.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(found)
    assert len(test.examples) > 15


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.split("\n")[0])
def test_commands_print_what_is_shown(block, tmp_path, monkeypatch):
    command, shown = block.split("\n", 1)
    arguments = shlex.split(command.removeprefix("$ nceref "))
    known = peer.find(arguments[1]) if arguments[0] == "verify" else None
    if known and known[0].version is None:
        pytest.skip(f"{known[0].name} is not installed; `make test-peers` runs this")
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.nceref, arguments, catch_exceptions=False)
    assert result.exit_code == (1 if "DIFFERS" in shown else 0), result.output
    assert doctest.OutputChecker().check_output(shown, result.output, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def test_table_of_losses_is_up_to_date(tmp_path):
    copy = tmp_path / "README.md"
    copy.write_text(TEXT, encoding="utf-8")
    update_readme(copy)
    assert copy.read_text(encoding="utf-8") == TEXT, "run `make generate`"


def test_every_command_is_described():

    names = set(cli.COMMANDS)
    assert all(f"`nceref {name} " in TEXT for name in names), names
