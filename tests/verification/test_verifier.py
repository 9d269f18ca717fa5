"""`nceref.verify` and its command: verdicts, exit codes, reports, and what targets do wrong."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner
from targets import plain

import nceref
from nceref.cli import nceref as cli
from nceref.errors import InputError
from nceref.tolerance import Bounds
from nceref.verification import identify, verifier
from nceref.verification.report import Report, VerificationError
from nceref.verification.self_test import WRONG_ANSWERS, SelfTestTrial
from nceref.verification.targets import runner
from nceref.verification.verifier import corpus_of

PLAIN = str(Path(__file__).parents[1] / "targets" / "plain.py")
QUICK = {"loss": "info_nce", "suite": "quick"}


def run(*words):
    return CliRunner().invoke(cli, ["verify", *words])


def unwrapped(found):
    """The output on one line: where its lines break depends on how long the path of the target is."""
    return " ".join(found.output.split())


def statuses(report, quantity):
    return {r.status for r in report.results if r.quantity == quantity}


def test_a_right_loss_conforms_in_value_and_every_gradient():
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert (report.verdict, report.exit_code, report.ok, report.diagnosis) == ("conforms", 0, True, ())
    for name in ("queries", "keys", "temperature"):
        assert statuses(report, f"grad.{name}") == {"pass"}
    report.raise_for_status()


def test_without_gradients_only_the_value_is_judged_and_the_report_says_so():
    report = nceref.verify(plain.info_nce, **QUICK)
    assert (report.verdict, report.exit_code) == ("value-only", 0)
    assert "no gradients" in report.reason
    assert nceref.verify(plain.info_nce, require_grad=True, **QUICK).exit_code == 1


def test_a_right_value_with_a_wrong_gradient_is_called_exactly_that():
    report = nceref.verify(plain.keys_detached, **QUICK)
    assert (report.verdict, report.exit_code) == ("differs", 1)
    assert "the value is right, the gradient is wrong" in report.reason
    assert report.diagnosis[0].id == "keys-detached"
    assert "the value is right and the gradient is wrong" in report.diagnosis[0].sentence
    with pytest.raises(VerificationError, match="keys-detached"):
        report.raise_for_status()


def test_a_convention_is_named_with_how_to_mend_it():
    report = nceref.verify(plain.doubled, **QUICK)
    [found] = report.diagnosis
    assert found.id == "outer-factor-2"
    assert re.search(r"an outer factor 2, on (\d+) of \1 cases", found.sentence)
    assert found.fix


def test_nothing_that_fits_is_said_with_a_script_of_the_smallest_failure():
    report = nceref.verify(plain.strange, **QUICK)
    assert [d.id for d in report.diagnosis] == ["unexplained"]
    assert "import nceref" not in report.repro
    compile(report.repro, "repro.py", "exec")


def test_the_intended_convention_is_the_reference():
    assert nceref.verify(plain.by_sum, reduction="sum", **QUICK).ok
    assert nceref.verify(plain.doubled, factor="outer-factor-2", **QUICK).ok
    assert not nceref.verify(plain.info_nce, factor="outer-factor-2", **QUICK).ok
    for target in (plain.info_nce, plain.with_a_floor):
        report = nceref.verify(target, normalize="none", **QUICK)
        assert report.diagnosis[0].id == "rows-normalized"


def test_several_formats_stand_side_by_side():
    report = nceref.verify(plain.with_gradients, dtype=["float64", "float32"], **QUICK)
    assert report.ok
    assert {r.id.split("/")[0] for r in report.results} == {"float64", "float32"}
    header = next(line for line in str(report).splitlines() if line.startswith("quantity"))
    assert header.split() == ["quantity", "float64", "float32"]


def test_a_class_gets_the_temperature_of_the_case_or_the_one_it_is_made_with():
    assert nceref.verify(plain.InfoNCE, **QUICK).ok
    fixed = nceref.verify(plain.InfoNCE, init={"temperature": 0.07}, **QUICK)
    assert fixed.ok
    assert {r.case.rsplit("-", 1)[1] for r in fixed.results} == {"0.07"}


def test_the_report_holds_what_the_schema_promises():
    record = json.loads(nceref.verify(plain.doubled, **QUICK).to_json())
    assert {"target", "loss", "verdict", "exit_code", "diagnosis", "results", "environment"} <= set(record)
    assert set(record["diagnosis"][0]) == {"id", "sentence", "threads", "fix"}
    for result in record["results"]:
        assert set(result) == {"id", "case", "quantity", "status", "error", "bound", "bits", "why"}
        assert result["why"]
    assert record["environment"]["numpy"] == np.__version__


def test_junit_counts_what_failed():
    report = nceref.verify(plain.doubled, **QUICK)
    suite = ET.fromstring(report.to_junit())
    assert int(suite.get("failures")) == sum(r.status == "fail" for r in report.results) > 0
    assert int(suite.get("tests")) == len(suite.findall("testcase")) == len(report.results)


def test_expected_failures_are_strict():
    failing = [r.id for r in nceref.verify(plain.keys_detached, **QUICK).results if r.status == "fail"]
    reasons = dict.fromkeys(failing, "keys are constants here")
    held = nceref.verify(plain.keys_detached, expected_failures=reasons, **QUICK)
    assert held.ok
    assert f"{len(failing)} failures were expected" in held.reason
    report = nceref.verify(plain.with_gradients, expected_failures=reasons, **QUICK)
    assert report.exit_code == 1
    assert {r.status for r in report.results if r.id in failing} == {"xpass"}


@pytest.mark.parametrize(
    ("target", "code", "quantity", "said"),
    [
        (plain.not_a_number, 1, "value.finite", "NaN"),
        (plain.raises, 4, "behavior.raises", "no such luck"),
        (plain.raises_for_one, 1, "behavior.raises", "a batch of one"),
        (plain.exits, 4, "behavior.exits", "SystemExit"),
        (plain.prints, 0, "behavior.prints", "hello"),
        (plain.writes, 1, "behavior.modifies-inputs", "queries"),
        (plain.dice, 1, "behavior.not-deterministic", "again"),
        (plain.Counting, 1, "behavior.not-deterministic", "again"),
        (plain.rows, 4, "behavior.wrong-shape", "(3,)"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_a_target_does_wrong_is_a_finding_and_the_rest_still_runs(target, code, quantity, said):
    report = nceref.verify(target, **QUICK)
    assert report.exit_code == code, report
    found = [r for r in report.results if r.quantity == quantity]
    assert found
    assert said in found[0].why
    if found[0].status == "fail" and quantity.startswith("behavior."):
        assert report.reason.startswith(f"the target {found[0].why}"), "behavior stands before numbers"
    assert {r.case for r in report.results} == {probe.id for probe in corpus_of(target, **QUICK)}


def test_gradients_that_are_missing_are_told_and_can_be_required():
    report = nceref.verify(plain.half_graded, **QUICK)
    assert report.ok
    assert "not judged: the gradient of keys, temperature" in report.reason
    strict = nceref.verify(plain.half_graded, require_grad=True, **QUICK)
    assert (strict.verdict, strict.exit_code) == ("value-only", 1)
    assert "keys" in strict.reason


def test_dtypes_of_numpy_are_known():
    assert nceref.verify(plain.with_gradients, dtype=np.float32, **QUICK).environment["dtype"] == "float32"


def test_a_target_that_is_the_reference_where_something_else_was_intended_is_told_so():
    report = nceref.verify(plain.info_nce, factor="outer-factor-2", **QUICK)
    assert [d.id for d in report.diagnosis] == ["as-the-reference"]


def test_an_argument_that_nobody_gives_is_named():
    report = nceref.verify(plain.needy, **QUICK)
    assert report.exit_code == 4
    assert "`mystery`" in report.reason
    assert "--call" in report.reason


def test_a_survivor_among_the_canaries_is_the_checkers_failure(monkeypatch):
    survived = SelfTestTrial(WRONG_ANSWERS[0], "survived", "designed-0.3")
    monkeypatch.setattr(verifier, "run_self_test", lambda observations, run: (survived,))
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert (report.verdict, report.exit_code) == ("error", 3)


def test_cases_that_can_see_nothing_are_inconclusive(monkeypatch):
    corpus = verifier.corpus

    def vague(*args, **kwargs):
        for probe in corpus(*args, **kwargs):
            grads = {name: 1e6 + 0 * np.asarray(g) for name, g in probe.grads.items()}
            yield probe if probe.skip else replace(probe, bounds=Bounds(1e6, grads))

    monkeypatch.setattr(verifier, "corpus", lambda *args, **kwargs: tuple(vague(*args, **kwargs)))
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert (report.verdict, report.exit_code) == ("inconclusive", 6)


def test_nothing_executed_is_exit_5():
    report = nceref.verify(plain.with_gradients, case="zero-0.3", **QUICK)
    assert (report.verdict, report.exit_code) == ("inconclusive", 5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "info_nec"}, "did you mean 'info_nce'"),
        ({"loss": None}, "`loss` must name the reference"),
        ({"suite": "fast"}, "`suite` must be one of"),
        ({"dtype": "float8"}, "`dtype` must be one of"),
        ({"case": "designed-0.4"}, "no case named"),
        ({"normalize": "l1"}, "`normalize` must be one of"),
        ({"margin": 0.2}, "`margin` is no convention of info_nce"),
        ({"factor": "outer-factor-3"}, "no convention of the axis factor"),
        ({"reduction": "median"}, "`reduction`"),
        ({"temperature": "cold"}, "`temperature` must be a number"),
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"framework": "keras"}, "`framework` must be one of"),
        ({"seed": -1}, "`seed` must be"),
        ({"timeout": "x"}, "`timeout` must be"),
        ({"expected_failures": ["a"]}, "`expected_failures` must map"),
    ],
)
def test_wrong_usage_is_an_error_that_says_what_to_do(options, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        nceref.verify(plain.with_gradients, **{**QUICK, **options})


def test_the_command_prints_writes_and_exits(tmp_path):
    files = {name: tmp_path / name for name in ("r.json", "r.xml", "r.py")}
    found = run(f"{PLAIN}:doubled", "--loss", "info_nce", "--suite", "quick", "--json", str(files["r.json"]),
                "--junit", str(files["r.xml"]), "--repro", str(files["r.py"]))  # fmt: skip
    assert found.exit_code == 1, found.output
    assert "outer-factor-2" in found.output
    assert max(map(len, found.output.splitlines())) <= 80
    assert json.loads(files["r.json"].read_text())["exit_code"] == 1
    ET.parse(files["r.xml"])
    again = subprocess.run([sys.executable, files["r.py"]], capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "reference" in again.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
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
def test_the_command_runs_targets_in_a_child(words, code, said):
    name, *options = words
    found = run(f"{PLAIN}:{name}", "--loss", "info_nce", "--suite", "quick", *options)
    assert found.exit_code == code, found.output
    assert said in unwrapped(found)


@pytest.mark.parametrize(
    ("words", "verdict", "cases"),
    [
        ("info_nce --require-grad", "value-only", 15),
        ("info_nce --case designed-0.3", "value-only", 1),
        ("doubled --set factor=outer-factor-2", "value-only", 15),
        ("InfoNCE --init temperature=0.2", "value-only", 10),
        ("info_nce --call f(queries,keys,temperature)", "value-only", 15),
        ("no_temperature --set temperature=0.5", "value-only", 10),
        # Its rounding errors are those of a textbook program.
        ("with_gradients --dtype float32 --algorithm log1p --seed 1", "differs", 15),
    ],
)
def test_options_of_the_command_reach_the_run(monkeypatch, words, verdict, cases):
    """In this process: which targets need one of their own is another test's concern."""
    name, *options = words.split()
    monkeypatch.setattr(runner, "in_child", lambda text, loss, timeout, **more: in_process(text, loss, **more))
    in_process = runner.in_process
    found = run(f"{PLAIN}:{name}", "--loss", "info_nce", "--suite", "quick", "--json", "-", *options)
    record = json.loads(found.output)
    assert record["verdict"] == verdict
    wrong = verdict == "differs" or "--require-grad" in options
    assert found.exit_code == record["exit_code"] == wrong
    assert len({r["case"] for r in record["results"] if r["quantity"] == "value.finite"}) == cases
    given = dict(zip(options[::2], options[1::2], strict=False))
    shown = {f"--{key}": record["environment"][key] for key in ("dtype", "algorithm", "seed")}
    assert {key: str(x) for key, x in shown.items()}.items() >= {k: v for k, v in given.items() if k in shown}.items()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all", "--case", "x"], "leave out --case"),
        ([f"{PLAIN}:info_nce", "--loss", "info_nce", "--json", "/"], "--json must name a file"),
        ([], "give one TARGET, or --all"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, said):
    found = run(*words)
    assert found.exit_code == 2
    assert said in unwrapped(found)


def test_the_conventions_are_listed():
    found = run("--conventions")
    assert found.exit_code == 0
    assert all(id in found.output for id in ("self-contrast-kept", "outer-factor-2", "keys-detached"))


def test_cases_are_listed_with_what_is_in_them():
    found = run(f"{PLAIN}:info_nce", "--loss", "info_nce", "--suite", "quick", "--list-cases")
    assert found.exit_code == 0
    assert "designed-0.3" in found.output
    assert "skipped:" in found.output


def test_explain_shows_what_the_bounds_are_made_of():
    found = run(f"{PLAIN}:info_nce", "--loss", "info_nce", "--suite", "quick", "--case", "designed-0.3", "--explain")
    assert "reduction" in found.output
    assert "shift" in found.output


def test_a_file_of_expected_failures_needs_reasons(tmp_path):
    path = tmp_path / "known.txt"
    path.write_text("*/value  it is twice the loss\nno-reason\n")
    found = run(f"{PLAIN}:doubled", "--loss", "info_nce", "--expected-failures", str(path))
    assert found.exit_code == 2
    assert "'no-reason' has no reason" in unwrapped(found)


@pytest.fixture
def few_losses(monkeypatch):
    """Identify tries three losses, one of which has other inputs, instead of all."""
    some = {name: nceref.get_loss(name) for name in ("alignment", "uniformity", "info_nce")}
    monkeypatch.setattr(identify, "all_losses", lambda: some)


@pytest.mark.usefixtures("few_losses")
def test_identify_says_why_nothing_could_be_run():
    found = CliRunner().invoke(cli, ["identify", f"{PLAIN}:raises"])
    assert found.exit_code == 4
    assert "no such luck" in unwrapped(found)


@pytest.mark.usefixtures("few_losses")
def test_identify_names_the_loss_and_the_difference():
    found = CliRunner().invoke(cli, ["identify", f"{PLAIN}:doubled"])
    assert found.exit_code == 1, found.output
    assert "it is info_nce with outer-factor-2" in unwrapped(found)
    assert CliRunner().invoke(cli, ["identify", f"{PLAIN}:info_nce"]).exit_code == 0


def test_identify_tries_every_loss_whose_inputs_fit(monkeypatch):
    tried = []

    def verify_with(target, loss, **options):
        tried.append(loss)
        return Report(target, loss, "conforms" if loss == "clip" else "differs", loss != "clip", "")

    monkeypatch.setattr(identify, "verify_with", verify_with)
    found = identify.candidates("anything.py:f")
    assert tried == list(nceref.all_losses())
    assert len(found) == len(tried)
    assert (found[0].loss, found[0].report.ok) == ("clip", True)


def test_a_scalar_that_no_case_has_is_told_and_judged_when_it_is_set():
    """Its default is None: a target that squares it conforms where it is never given, and the report says so."""

    def squared(queries, keys, negative_weight=None):
        weight = None if negative_weight is None else negative_weight**2
        return nceref.get_loss("simple").value_and_grad(queries, keys, negative_weight=weight)

    report = nceref.verify(squared, loss="simple", suite="quick")
    assert report.verdict == "conforms"
    assert "never given: negative_weight (--set judges a value)" in report.reason
    assert nceref.verify(squared, loss="simple", suite="quick", negative_weight=0.5).verdict == "differs"
    whole = nceref.verify(plain.with_gradients, **QUICK)
    assert "never given" not in whole.reason
