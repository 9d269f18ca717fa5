"""The command line: what it prints, its exit status, and what it does not import."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import click
import pytest

import nceref
from nceref import cli, registry
from nceref.checks import run as check
from nceref.checks.run import CheckResult
from nceref.losses import all_losses, get_loss
from nceref.theory import prove
from nceref.theory.table import Table
from nceref.theory.verdicts import Verdict

TABLES = registry.discover("nceref.theory.tables", "TABLE", Table)
HEAVY = ("numpy", "scipy", "sympy", "matplotlib", "rich", "mpmath", "array_api_compat", "torch", "flint")
START = "from nceref.cli import main; main()"


def start(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_version_is_that_of_the_package_in_any_folder(tmp_path):
    assert start("--version", cwd=tmp_path).stdout == f"nceref {nceref.__version__}\n"


@pytest.mark.parametrize("command", [(), *((name,) for name in cli.COMMANDS)])
def test_help_fits_80_columns_and_cuts_nothing_off(run, command):
    status, out, err = run(*command, "--help")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "..." not in out.replace("]...", "")


def test_help_imports_nothing_heavy():
    script = f"import sys\ntry:\n    {START}\nfinally:\n    print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    modules = found.stdout.splitlines()[-1].split()
    assert "nceref.cli" in modules
    assert [name for name in modules if name.split(".")[0] in HEAVY] == []
    own = [name for name in modules if name.startswith("nceref.") and not name.startswith("nceref.cli")]
    assert own == ["nceref.errors", "nceref.cli"]


def test_help_takes_less_than_one_and_a_half_times_the_import_of_click():
    def seconds(*arguments):
        begin = perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        return perf_counter() - begin

    # Alternating, so that a slow moment of the machine hits both; the minimum is the time without such moments.
    times = [(seconds("-c", START, "--help"), seconds("-c", "import click")) for _ in range(12)]
    ours, theirs = map(min, zip(*times, strict=True))
    assert ours < 1.5 * theirs


def test_every_command_is_listed_with_its_own_short_help():
    context = click.Context(cli.nceref)
    for name, short in cli.COMMANDS.items():
        command = cli.nceref.get_command(context, name)
        assert (command.name, command.get_short_help_str(200)) == (name, short)
    folder = Path(cli.__file__).parent
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--", "words"}
    assert files == set(cli.COMMANDS)


def test_losses_lists_every_loss(run):
    status, out, err = run("losses")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(all_losses())


def test_losses_as_json_is_a_list_of_objects(run):
    status, out, _ = run("losses", "--json")
    assert status == 0
    assert [one["name"] for one in json.loads(out)] == list(all_losses())
    assert [one["name"] for one in json.loads(run("losses", "dcl", "--json")[1])] == ["dcl"]


def test_latex_prints_the_formula_alone(run):
    assert run("losses", "nt_xent", "--latex") == (0, get_loss("nt_xent").latex + "\n", "")


def test_latex_of_all_losses_is_headed_by_their_names(run):
    lines = run("losses", "--latex")[1].splitlines()
    assert lines[0::2] == [f"% {name}" for name in all_losses()]
    assert lines[1::2] == [loss.latex for loss in all_losses().values()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("losses", "supcon"), "did you mean 'supcon_in' or 'supcon_out'"),
        (("check", "supcon"), "did you mean 'supcon_in' or 'supcon_out'"),
        (("expect", "--loss", "supcon"), "did you mean 'supcon_in' or 'supcon_out'"),
        (("tables", "hard"), "no table named 'hard'"),
        (("tables", "--format", "xml"), "'xml' is not one of"),
        (("tables", "--list", "--out", "folder"), "goes without --out"),
        (("tables", "--list", "--format", "csv"), "goes without --format csv"),
        (("losses", "--latex", "--json"), "--latex and --json exclude each other"),
        (("expect",), "Missing option '--loss'"),
        (("claims", "WL-99"), "no claim named 'WL-99'"),
        (("claims", "--verdict", "right"), "no verdict is called 'right'; there are 'agrees'"),
        (("claims", "WL-6", "--source", "004"), "no claim has all that was asked for"),
        (("claims", "--source", "007"), "no source has '007' in its name; there are"),
        (("prove", "QT"), "no claim named 'QT'"),
        (("derive", "tau"), "no derivation named 'tau'"),
        (("derive", "--latex"), "--latex and --out go with a TOPIC"),
        (("figures", "limits"), "no figure named 'limits'"),
        (("figures", "--check", "--out", "nowhere"), "nowhere"),
        (("expect", "--loss", "nt_xent", "--n", "256", "--set", "n=3"), "`n` is given twice, as 256 and as 3"),
        (("expect", "--loss", "nt_xent", "--set", "n"), "NAME=VALUE, such as classes=100, got 'n'"),
        (("expect", "--loss", "nt_xent", "--n", "0", "--temperature", "1"), "integer >= 1, got 0"),
        (("nothing",), "No such command 'nothing'"),
        (("--nothing",), "No such option '--nothing'"),
    ],
)
def test_wrong_input_is_one_message_and_status_2(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_file_in_the_way_of_a_folder_is_status_2(run, tmp_path):
    (tmp_path / "file").write_text("")
    for out in ("file", "file/below"):
        status, _, err = run("tables", "losses", "--out", str(tmp_path / out))
        assert status == 2
        assert str(tmp_path / out) in err
    assert err == f"Error: cannot write to {tmp_path / 'file/below'}: not a folder\n"


def test_tables_prints_the_chosen_ones_in_order(run):
    chosen = list(TABLES)[:2][::-1]
    status, out, _ = run("tables", *chosen)
    assert status == 0
    first, second = (out.index(TABLES[name].title) for name in chosen)
    assert first < second
    assert max(map(len, out.splitlines())) <= 80


def test_tables_as_json_is_one_list_and_nothing_else(run):
    status, out, _ = run("tables", "--format", "json")
    assert status == 0
    assert [table["name"] for table in json.loads(out)] == list(TABLES)


def test_tables_as_csv_and_markdown_carry_the_columns(run):
    name = next(iter(TABLES))
    header = next(csv.reader(run("tables", name, "--format", "csv")[1].splitlines()))
    assert all(any(entry.startswith(column) for entry in header) for column in TABLES[name].columns)
    assert run("tables", name, "--format", "markdown")[1].startswith(f"## {TABLES[name].title}\n")


def test_tables_are_written_one_a_file_and_named(run, tmp_path):
    chosen = list(TABLES)[:2]
    status, out, _ = run("tables", *chosen, "--format", "csv", "--out", str(tmp_path / "new"))
    paths = [tmp_path / "new" / f"{name}.csv" for name in chosen]
    assert (status, out) == (0, "".join(f"wrote {path}\n" for path in paths))
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    paths[0].write_text("other")
    out = run("tables", *chosen, "--format", "csv", "--out", str(tmp_path / "new"))[1]
    assert out == f"replaced {paths[0]}\nwrote {paths[1]}\n"


def test_tables_can_be_listed_by_name(run):
    lines = run("tables", "--list")[1].splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(TABLES)
    assert max(map(len, lines)) <= 80
    words = " ".join(" ".join(lines).split())
    assert all(f"{name} {table.title}" in words for name, table in TABLES.items())


def test_list_of_tables_as_json_has_names_and_titles(run):
    listed = json.loads(run("tables", "--list", "--format", "json")[1])
    assert listed == [{"name": name, "title": table.title} for name, table in TABLES.items()]


def test_check_prints_each_loss_and_the_count(run):
    status, out, err = run("check", "nt_xent", "uniformity")
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if line and not line.startswith(" ")][:2] == ["nt_xent", "uniformity"]
    assert "worst relative error" in out
    assert " passed" in out.splitlines()[-1]


@pytest.fixture
def failing(monkeypatch):
    results = [
        CheckResult("dcl", "formula float64", "pass", "fine"),
        CheckResult("dcl", "nonnegative", "fail", "it is -3"),
    ]
    monkeypatch.setattr(check, "count", lambda names: len(results) * len(names))
    monkeypatch.setattr(check, "run", lambda names: iter(results * len(names)))


def test_failing_check_is_a_finding(run, failing):
    status, out, _ = run("check", "dcl")
    assert status == 1
    assert "it is -3" in out
    assert out.endswith("1 passed, 1 failed\n")


def test_check_as_json_is_one_list_and_a_finding_too(run, failing):
    status, out, _ = run("check", "dcl", "--json")
    assert status == 1
    assert json.loads(out)[1] == {"loss": "dcl", "check": "nonnegative", "status": "fail", "detail": "it is -3"}


def test_check_without_names_is_all_losses_and_with_names_each_once(run, failing, monkeypatch):
    asked = []
    monkeypatch.setattr(check, "count", lambda names: asked.append(names) or 1)
    run("check")
    run("check", "nt_xent", "dcl", "nt_xent")
    assert asked == [tuple(all_losses()), ("nt_xent", "dcl")]


STUCK = ("expect", "--loss", "nt_xent", "--n", "256", "--temperature", "0.07")


def test_expect_names_the_situation_of_a_value(run):
    status, out, err = run(*STUCK, "--value", "6.2364")
    assert (status, err) == (0, "")
    assert "6.2364 is collapse and chance (6.23637), to 5 digits.\n" in out


@pytest.mark.parametrize("value", ["-1", "1e-4", "0"])
def test_expect_with_an_impossible_value_is_a_finding(run, value):
    status, out, _ = run(*STUCK, f"--value={value}")
    assert status == 1
    assert "is below the lower bound" in out or "no batch reads that" in " ".join(out.split())


def test_help_of_expect_shows_its_example_on_one_line(run):
    out = run("expect", "--help")[1]
    assert "\n    nceref expect --loss nt_xent --n 256 --temperature 0.07 --value 6.236\n" in out


def test_expect_as_json_carries_every_digit_and_the_place(run):
    status, out, _ = run(*STUCK, "--value", "6.2364", "--json")
    found = json.loads(out)
    assert status == 0
    assert [r["value"] for r in found["readings"]] == sorted(r["value"] for r in found["readings"])
    assert found["settings"] == {"n": 256, "dim": None, "temperature": 0.07}
    assert found["value"]["possible"]


def test_expect_takes_any_size_or_scalar_by_name(run):
    status, out, _ = run(
        "expect", "--loss", "siglip", "--n", "8", "--set", "logit-scale=10", "--set", "logit_bias = -10"
    )
    assert status == 0
    assert "n = 8, logit_bias = -10, logit_scale = 10" in out


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


def test_launcher_runs_from_a_clone(tmp_path):
    launcher = Path(__file__).parents[2] / "cli.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        [sys.executable, launcher, "--version"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == f"nceref {nceref.__version__}\n"


def test_package_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "nceref", "--version"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout == f"nceref {nceref.__version__}\n"


def test_every_command_has_a_short_help():
    found = [cli.nceref.get_command(click.Context(cli.nceref), name) for name in cli.COMMANDS]
    assert all(isinstance(command, click.Command) and command.short_help for command in found)


def test_claims_are_listed_with_evidence_and_verdict(run):
    status, out, err = run("claims")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    shown = [line.split()[0] for line in out.splitlines() if re.match(r"  [A-Z]+-\d", line)]
    assert shown == list(prove.claims())
    assert f"{len(shown)} claims: " in out


def test_claims_of_a_verdict_and_of_a_source(run):
    ids = [one["id"] for one in json.loads(run("claims", "--verdict", "wrong", "--source", "003", "--json")[1])]
    assert ids == [c.id for c in prove.claims().values() if c.expected.value == "wrong" and "003" in c.source]
    assert "QT-5" in ids


def test_claims_as_json_have_the_keys_that_were_promised(run):
    found = json.loads(run("claims", "--json")[1])
    promised = {"id", "source", "statement", "verdict", "evidence", "published", "computed"}
    assert all(set(one) >= promised for one in found)
    assert all(len(one["published"]) == len(one["computed"]) for one in found)


def test_files_are_replaced_and_links_stay_links(run, tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert run("derive", "nce-optimum", "--out", str(tmp_path / "link"))[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text(encoding="utf-8").startswith("Noise-contrastive")
    assert run("derive", "nce-optimum", "--out", "-")[1].startswith("Noise-contrastive")
    assert run("derive", "nce-optimum", "--out", os.devnull)[0] == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(("name", "content"), [("README.md", "# Mine"), ("manifest.json", '{"name": "mine"}')])
def test_figures_refuse_to_overwrite_what_is_not_theirs(run, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    status, _, err = run("figures", "sphere-force", "--out", str(tmp_path))
    assert status == 2
    assert "would be lost" in err
    assert (tmp_path / name).read_text() == content


def test_one_claim_shows_its_repair_and_its_counterexample(run):
    status, out, _ = run("claims", "is-5")
    assert status == 0
    assert "It rises at every temperature only if" in out
    assert "against it" in out


def test_prove_reports_what_held_and_what_it_took(run):
    # The counterexample of PC-3 compares arrays: it ends in a NumPy bool.
    status, out, _ = run("prove", "IS-1", "IS-8", "PC-3", "--json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert status == 0
    assert [one["id"] for one in found["claims"]] == ["IS-1", "IS-8", "PC-3"]
    assert found["claims"][2]["evidence"]["counterexample"]["held"] is True
    assert found["claims"][0]["evidence"]["symbolic"]["held"]
    assert found["totals"]["symbolic"] | {"seconds": 0} == {"held": 2, "run": 2, "seconds": 0}


def test_prove_exits_with_1_where_a_claim_expects_another_verdict(run, monkeypatch):
    changed = {**prove.claims(), "IS-1": replace(prove.claims()["IS-1"], expected=Verdict.WRONG)}
    monkeypatch.setattr(prove, "claims", lambda: changed)
    status, out, _ = run("prove", "IS-1")
    assert status == 1
    assert "expected wrong: all evidence holds" in out
    assert "0 of 1 verdicts are as expected" in out


def test_derive_lists_topics_and_writes_a_file(run, tmp_path):
    assert "tau-zero" in run("derive")[1]
    status, out, _ = run("derive", "nce-optimum", "--latex", "--out", str(tmp_path / "nce.tex"))
    assert (status, out) == (0, "")
    assert "\\begin{align*}" in (tmp_path / "nce.tex").read_text(encoding="utf-8")


def test_plot_limits_writes_its_figures_and_a_manifest(run, tmp_path):
    status, out, _ = run("plot-limits", "--out", str(tmp_path))
    assert status == 0
    assert {"limit-zero.svg", "limit-infinity.png", "limit-minimum.svg", "manifest.json"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert str(tmp_path / "limit-zero.svg") in out
    assert run("figures", "--check", "--out", str(tmp_path), "limit-zero")[0] == 0
