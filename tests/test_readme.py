"""The README and the pages of docs are run: Python as doctests, commands as they stand; links must lead somewhere."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nceref import cli
from nceref.cli.losses_page import update_readme
from nceref.verification.peers import peer

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *(ROOT / "docs" / f"{name}.md" for name in ("verify", "library", "claims", "training"))]
TEXT = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
FILES = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT["README"], re.DOTALL)
CONSOLE = [block for text in TEXT.values() for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)]
MEASURED = re.compile(r"\b\d(\.\d+)?e[+-]\d\d\b|\b0\.\d+\b|\b\d{1,2}$", re.MULTILINE)
"""Numbers that the last bit of a platform's exp may change: errors in units of a bound, and bits that are right."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the README shows, in the current folder."""
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", [name for name, text in TEXT.items() if ">>> " in text])
def test_python_examples_run(page):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT[page], re.DOTALL))
    test = doctest.DocTestParser().get_doctest(code, {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    output: list[str] = []
    runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)
    assert len(test.examples) >= 5


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.split("\n")[0])
def test_commands_print_what_is_shown(block):
    command, shown = block.split("\n", 1)
    arguments = shlex.split(command.removeprefix("$ nceref "))
    known = peer.find(arguments[1]) if arguments[0] == "verify" else None
    if known and known[0].version is None:
        pytest.skip(f"{known[0].name} is not installed; `make test-peers` runs this")
    result = CliRunner().invoke(cli.nceref, arguments, catch_exceptions=False)
    assert result.exit_code == (1 if "DIFFERS" in shown else 0), result.output
    left, right = (MEASURED.sub("#", text) for text in (shown, result.output))
    assert doctest.OutputChecker().check_output(left, right, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), right


@pytest.mark.usefixtures("files")
def test_the_example_of_a_test_suite_fails_for_the_example_of_a_loss():
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_my_losses.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "self-contrast-kept" in result.stdout


def test_table_of_losses_is_up_to_date(tmp_path):
    copy = tmp_path / "README.md"
    copy.write_text(TEXT["README"], encoding="utf-8")
    update_readme(copy)
    assert copy.read_text(encoding="utf-8") == TEXT["README"], "run `make generate`"


def test_table_of_conventions_is_up_to_date():
    printed = CliRunner().invoke(cli.nceref, ["tables", "conventions", "--format", "markdown"]).output
    assert (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8") == printed, "run `make generate`"


def test_every_command_is_described():
    assert [name for name in cli.COMMANDS if f"`nceref {name} " not in TEXT["README"]] == []


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "docs" / "experiments" / "README.md"], ids=str
)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)[)#]", text) + re.findall(r'src="([^"]+)"', text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
