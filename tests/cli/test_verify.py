"""`nceref verify`: options, files, exit statuses."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from nceref.cli import main
from nceref.cli import nceref as cli
from nceref.cli.options import pairs
from nceref.targets import runner
from nceref.verification.explain import ExplainedDifference

PLAIN = str(Path(__file__).parents[1] / "programs" / "plain.py")


def run(*words):
    return CliRunner().invoke(cli, ["verify", *words])


def unwrapped(outcome):
    """The output on one line: where its lines break depends on how long the path of the target is."""
    return " ".join(outcome.output.split())


@pytest.mark.usefixtures("in_this_process")
def test_the_command_prints_writes_and_exits(tmp_path):
    files = {name: tmp_path / name for name in ("r.json", "r.xml", "r.py")}
    outcome = run(f"{PLAIN}:doubled", "--loss", "info_nce", "--suite", "quick", "--json", str(files["r.json"]),
                "--junit", str(files["r.xml"]), "--repro", str(files["r.py"]))  # fmt: skip
    assert outcome.exit_code == 1, outcome.output
    assert "outer-factor-2" in outcome.output
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    assert outcome.stderr.splitlines() == [f"wrote {path}" for path in files.values()]
    assert json.loads(files["r.json"].read_text())["exit_code"] == 1
    ET.parse(files["r.xml"])
    again = subprocess.run([sys.executable, files["r.py"]], capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "reference" in again.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["with_gradients"], 0, "CONFORMS"),
        (["exits"], 4, "bye"),
        (["dies"], 1, "7"),
        (["hangs", "--timeout", "3"], 1, "3 s (--timeout)"),
        (["missing"], 4, "missing"),
        (["no_temperature"], 4, "--set temperature"),
        (["info_nce", "--set", "nonsense"], 2, "NAME=VALUE"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else None,
)
def test_the_command_runs_targets_in_a_child(words, code, message):
    name, *options = words
    outcome = run(f"{PLAIN}:{name}", "--loss", "info_nce", "--suite", "quick", *options)
    assert outcome.exit_code == code, outcome.output
    assert message in unwrapped(outcome)


@pytest.mark.parametrize(
    ("words", "verdict", "cases"),
    [
        ("info_nce --require-grad", "value-only", 28),
        ("info_nce --case designed-0.3", "value-only", 1),
        ("doubled --set factor=outer-factor-2", "value-only", 28),
        ("InfoNCE --init temperature=0.2", "value-only", 14),
        ("info_nce --call f(queries,keys,temperature)", "value-only", 28),
        ("no_temperature --set temperature=0.5", "value-only", 14),
        # Its rounding errors are those of a textbook program.
        ("with_gradients --dtype float32 --algorithm log1p --seed 1", "differs", 28),
    ],
)
def test_options_of_the_command_reach_the_run(monkeypatch, words, verdict, cases):
    """In this process: which targets need one of their own is another test's concern."""
    name, *options = words.split()
    monkeypatch.setattr(runner, "in_child", lambda text, loss, timeout, isolate, **more: in_process(text, loss, **more))
    # Why it differs is not asked here.
    monkeypatch.setattr("nceref.verification.verifier.explain", lambda *given: iter([ExplainedDifference()]))
    in_process = runner.in_process
    outcome = run(f"{PLAIN}:{name}", "--loss", "info_nce", "--suite", "quick", "--json", "-", *options)
    record = json.loads(outcome.output)
    assert record["verdict"] == verdict
    wrong = verdict == "differs" or "--require-grad" in options
    assert outcome.exit_code == record["exit_code"] == wrong
    assert len({r["case"] for r in record["results"] if r["quantity"] == "value.finite"}) == cases
    given = dict(zip(options[::2], options[1::2], strict=False))
    shown = {f"--{key}": record["environment"][key] for key in ("dtype", "algorithm", "seed")}
    assert {key: str(x) for key, x in shown.items()}.items() >= {k: v for k, v in given.items() if k in shown}.items()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--all", "--case", "x"], "leave out --case"),
        ([], "TARGET is missing, such as file.py:name"),
        (["x.py", "f"], "give one TARGET, got 2: x.py f; an object in a file is x.py:f;"),
        (["x.py:f", "--all"], "give one TARGET, or --all"),
        (["--loss", "simple"], "--loss needs a TARGET"),
        (["--all", "--only", "x"], "--only x is for the targets of a manifest"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, message):
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert message in unwrapped(outcome)


@pytest.mark.usefixtures("in_this_process")
def test_explain_says_where_a_bound_takes_roundings_for_random():
    half = run(f"{PLAIN}:info_nce", "--loss", "info_nce", "--suite", "quick", "--case", "designed-0.3", "--explain",
               "--dtype", "float16")  # fmt: skip
    assert "with probability 0.9999 if roundings are random" in unwrapped(half)


@pytest.mark.usefixtures("in_this_process")
def test_a_file_of_expected_failures_needs_reasons(tmp_path, capsys):
    path = tmp_path / "known.txt"
    path.write_text("*/value  it is twice the loss\nno-reason\n")
    with pytest.raises(SystemExit) as ended:
        main(["verify", f"{PLAIN}:doubled", "--loss", "info_nce", "--expected-failures", str(path)])
    assert ended.value.code == 2
    assert "'no-reason' has no reason" in " ".join(capsys.readouterr().err.split())


def test_what_is_no_literal_is_a_word():
    assert pairs("--set", ["a={[]: 1}", "b=(", "c=given"]) == {"a": "{[]: 1}", "b": "(", "c": ...}


@pytest.mark.usefixtures("in_this_process")
def test_the_verdict_is_printed_before_an_explanation_is_looked_for(capsys, monkeypatch):
    """Once, and Ctrl-C during the search leaves the exit status of the verdict."""
    printed = []

    def stopped(*given):
        printed.append(capsys.readouterr().out)
        yield ExplainedDifference()
        raise KeyboardInterrupt

    monkeypatch.setattr("nceref.verification.verifier.explain", stopped)
    words = ["verify", f"{PLAIN}:doubled", "--loss", "info_nce", "--suite", "quick"]
    assert cli.main(words, standalone_mode=False) == 1
    rest = " ".join(capsys.readouterr().out.split())
    assert "DIFFERS: the value fails on" in " ".join(printed[0].split())
    assert rest.startswith("no explanation: the search for an explanation was stopped by the user after 0 calls")
    assert "first failures" in rest
    assert "DIFFERS" not in rest


@pytest.mark.usefixtures("in_this_process")
def test_another_call_is_printed_below_the_verdict(capsys, monkeypatch):
    """It is looked for after the verdict is printed; without calls nothing is."""
    monkeypatch.setattr("nceref.verification.verifier.adapted", lambda *given: '; this runs: --call "f(x)"')
    words = ["verify", f"{PLAIN}:raises", "--loss", "info_nce", "--suite", "quick"]
    pages = []
    for more in ([], ["--calls", "0"]):
        assert cli.main([*words, *more], standalone_mode=False) == 4
        pages.append(" ".join(capsys.readouterr().out.split()))
    with_call, without = pages
    reason = without.partition("ERROR: ")[2].partition(" raises")[0]
    assert with_call.count(f"ERROR: {reason}") == with_call.count(reason) == 1
    assert with_call.count('This runs: --call "f(x)"') == 1
    assert "--call" not in without
