"""The README and the pages of docs are run: Python as doctests, commands as they stand; links must lead somewhere."""

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner
from slow import partly_slow

from nceref import cli
from nceref.cases.corpus import corpus
from nceref.cli.losses_page import update_table
from nceref.family import info_nce
from nceref.losses import all_losses, get_loss
from nceref.targets.peers import peer
from nceref.theory import prove

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *(path for path in sorted(DOCS.rglob("*.md")) if "generated" not in path.parts)]
TEXT = {page.relative_to(ROOT).with_suffix("").as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
STATUS = {"DIFFERS: ": 1, "ERROR: ": 4}
"""Exit status of a command by what it prints."""
FILES = [
    file
    for text in TEXT.values()
    for file in re.findall(r"```(?:python|c|toml)\n(?:# |/\* )(\w+\.\w+)(?: \*/)?\n(.*?)```", text, re.DOTALL)
]
CONSOLE = [block for text in TEXT.values() for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)]
MEASURED = re.compile(r"\b\d(\.\d+)?e[+-]\d\d\b|\b0\.\d+\b|\b\d{1,2}$", re.MULTILINE)
"""Numbers that the last bit of a platform's exp may change: errors in units of a bound, and bits that are right."""


IDENTIFIERS = r"[Ss]ource 00\d|\(00\d\)|[A-Z]{2}-\d|b?float16|Wang & Liu 2021|BSD-3|exit code 1|: 0 fine, 1 a|, 2 w"
"""What has a digit and was not measured."""
COMPILE = shlex.split(re.search(r"\$ (cc .*-shared.*)", TEXT["docs/other-languages"])[1])
EXPECT = shlex.split(re.search(r"nceref (expect --loss .*)", TEXT["docs/tutorials/numpy"])[1])
EXAMPLE = ("verify", "my_losses.py:nt_xent", "--loss", "nt_xent")


def _printed(*arguments):
    return json.loads(CliRunner().invoke(cli.nceref, [*arguments, "--json"], catch_exceptions=False).output)


def _cases():
    return len(corpus.corpus(get_loss(EXAMPLE[-1]).declaration, {}))


def _score():
    """The numbers of the page, which `make score-independent` measures."""
    counts = re.search(r"bugs found \| (\d+) of (\d+)", TEXT["docs/score"])
    correct = re.search(r"called wrong \| 0 of (\d+)", TEXT["docs/score"])
    return counts[2], counts[1], correct[1]


def _largest():
    inputs = (x for probe in corpus.corpus(info_nce.LOSS, {}) for x in probe.inputs.values())
    return tuple(map(max, zip(*(x.shape for x in inputs if np.ndim(x) == 2), strict=True)))


def _explained():
    return re.search(r"first explanation is right \| (\d+) bugs", TEXT["docs/score"])


def _measured():
    bugs, caught, correct = _score()
    return bugs, caught, _explained()[1], correct


def _collapse():
    return next(each["formula"] for each in _printed(*EXPECT)["readings"] if each["situation"] == "collapse")


# Each number in the text of a page, and what prints it.
NUMBERS = {
    "README": {
        ": [{} losses": lambda: len(_printed("losses")),
        "On {} real bugs from public code, it finds {} and explains {}; all {} correct": _measured,
    },
    "docs/tutorials/numpy": {
        "Every quantity of {} designed cases": _cases,
        "stuck at {}?": lambda: EXPECT[-1],
        "That is {}, the loss when all embeddings are equal": _collapse,
    },
    "docs/losses": {},
    "docs/commands": {},
    "docs/report#What it cannot see": {"The largest case has {} rows, the widest {} features": _largest},
}


def _section(page):
    """The text of a page, or of one section of it."""
    name, _, title = page.partition("#")
    return TEXT[name].partition(f"## {title}\n")[2].partition("\n## ")[0] if title else TEXT[name]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("page", NUMBERS)
def test_every_number_of_a_page_is_printed_by_a_command(page):
    left_out = r"```.*?```|<!-- losses:begin.*losses:end -->|`[^`]*`|\]\([^)]*\)"
    text = " ".join(re.sub(left_out, "", _section(page), flags=re.DOTALL).split())
    assert len(text) > 200
    for sentence, numbers in NUMBERS[page].items():
        values = numbers()
        measured = sentence.format(*(values if isinstance(values, tuple) else (values,)))
        assert measured in text, sentence
        text = text.replace(measured, "")
    assert re.findall(r".{30}\d.{10}", re.sub(IDENTIFIERS, "", text)) == []


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the pages show, in the current folder; those in C also compiled, where there is a compiler."""
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "page",
    partly_slow(
        [name for name, text in TEXT.items() if ">>> " in text],
        lambda name: name != "docs/report",
        "a search for a formula, of which tests/diagnosis/probe has quick ones",
    ),
)
def test_python_examples_run(page):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT[page], re.DOTALL))
    for package, extra in {"dask.array": "dask", "torch": "torch", "jax": "jax"}.items():
        if f"import {package.partition('.')[0]}" in code:
            pytest.importorskip(package, reason=f"{package} is not installed: pip install 'nceref[{extra}]'")
    test = doctest.DocTestParser().get_doctest(code, {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    output: list[str] = []
    runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)
    assert len(test.examples) >= 5


def _require(target):
    """Skip where a target cannot run: its package, PyTorch or a compiler is not installed."""
    known, code = peer.find(target), dict(FILES).get(target.partition(":")[0], "")
    if known and known[0].version is None:
        pytest.skip(f"{known[0].name} is not installed; `make test-peers` runs this")
    if "import torch" in code or target.startswith("nceref.torch:"):
        pytest.importorskip("torch", reason="PyTorch is not installed; `make test-peers` runs this")
    if "ctypes" in code:
        if shutil.which("cc") is None:
            pytest.skip("no C compiler on PATH")
        subprocess.run(COMPILE, check=True)


@pytest.mark.usefixtures("files", "in_this_process")
@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.split("\n")[0])
def test_commands_print_what_is_shown(block):
    command, shown = block.split("\n", 1)
    arguments = shlex.split(command.removeprefix("$ nceref "))
    if arguments[0] == "verify":
        _require(arguments[1])
    result = CliRunner().invoke(cli.nceref, arguments, catch_exceptions=False)
    assert result.exit_code == next((status for word, status in STATUS.items() if word in shown), 0), result.output
    left, right = (MEASURED.sub("#", text) for text in (shown, result.output))
    assert doctest.OutputChecker().check_output(left, right, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), right


@pytest.mark.usefixtures("files", "in_this_process")
def test_the_workflow_for_pull_requests_judges_the_example(tmp_path):
    (workflow,) = re.findall(r"```yaml\n(.*?)```", TEXT["docs/security"], re.DOTALL)
    assert "\non: pull_request\npermissions: {}\n" in workflow
    command = re.search(r"ulimit .*\n +nceref (.*)", workflow)[1].replace("$RUNNER_TEMP", str(tmp_path))
    # Not every system can isolate; that it is a limit to what runs is tested with the targets.
    arguments = [word for word in shlex.split(command) if word != "--isolate"]
    assert len(arguments) == len(shlex.split(command)) - 1
    quick = [*arguments, "--suite", "quick"]
    assert CliRunner().invoke(cli.nceref, quick, catch_exceptions=False).exit_code == 1
    assert json.loads((tmp_path / "verify.json").read_text())["verdict"] == "differs"
    assert ET.parse(tmp_path / "verify.xml").getroot().tag.startswith("testsuite")


@pytest.mark.usefixtures("files")
def test_the_workflow_for_own_branches_judges_what_is_checked_out(tmp_path, monkeypatch):
    (workflow,) = re.findall(r"```yaml\n(.*?)```", TEXT["docs/tutorials/ci"], re.DOTALL)
    assert "\non:\n  push:\n    branches: [main]\n  pull_request:\npermissions:\n  contents: read\n" in workflow
    steps = [shlex.split(line) for line in re.findall(r"^ +(?:- )?run: (.*)$", workflow, re.MULTILINE)]
    installed = [step[-1] for step in steps if step[2:4] == ["pip", "install"]]
    assert installed[-1] == "."
    tests, verify = steps[-2:]
    _require(verify[2])
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path))
    tests, verify = ([os.path.expandvars(word) for word in step] for step in (tests, verify))
    # One test of each target, and the smaller suite.
    done = subprocess.run([sys.executable, *tests[1:], "-p", "no:cacheprovider", "-k", "value"], check=False)
    assert done.returncode == 0
    result = CliRunner().invoke(cli.nceref, [*verify[1:], "--suite", "quick"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} >= {"tests.xml", "clip.json", "clip.xml", "clip.html"}
    assert json.loads((tmp_path / "clip.json").read_text())["verdict"] == "conforms"


@pytest.mark.usefixtures("files")
def test_examples_of_test_suites_pass_for_right_losses_alone():
    files = ["test_my_losses.py", "test_my_library.py"]
    quick = dict(FILES)[files[0]].replace('"nt_xent")])', '"nt_xent")], suite="quick")')
    assert 'suite="quick"' in quick
    Path(files[0]).write_text(quick)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", "value", "-rA"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    ended = {
        (file, word) for word, file in re.findall(r"^(PASSED|FAILED|ERROR) (\w+\.py)::", result.stdout, re.MULTILINE)
    }
    assert ended - {(files[0], "PASSED")} == {(files[0], "FAILED"), (files[1], "PASSED")}
    assert "self-contrast-kept" in result.stdout


def test_the_first_page_is_short_and_begins_with_pytorch():
    """One screenful or two: what it does, one bug with its report, and where everything else is."""
    lines = TEXT["README"].split("\n")
    assert len(TEXT["README"].split()) <= 450
    assert "import torch" in lines[:30]
    assert set(re.findall(r"\w+", TEXT["README"].partition("## What it knows")[2])) >= set(all_losses())


def test_table_of_losses_is_up_to_date(tmp_path):
    copy = tmp_path / "losses.md"
    copy.write_text(TEXT["docs/losses"], encoding="utf-8")
    update_table(copy)
    assert copy.read_text(encoding="utf-8") == TEXT["docs/losses"], "run `make generate`"


def test_table_of_conventions_is_up_to_date():
    printed = CliRunner().invoke(cli.nceref, ["tables", "conventions", "--format", "markdown"]).output
    assert (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8") == printed, "run `make generate`"


def test_verdicts_of_the_toy_are_those_of_the_ledger():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", TEXT["docs/training"], re.MULTILINE)[2:]
    claims = {claim.title: claim.expected for claim in prove.chosen(())}
    assert len(rows) >= 3
    assert [row for row in rows if claims[row[0]] != row[1]] == []


def test_every_command_is_described():
    assert [name for name in cli.COMMANDS if f"`nceref {name} " not in TEXT["docs/commands"]] == []


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "figures" / "README.md"], ids=str
)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)[)#]", text) + re.findall(r'src="([^"?]+)', text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
