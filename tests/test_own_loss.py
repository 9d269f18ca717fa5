"""A loss of one's own is one file: outside of the package by its path, inside of it by what CONTRIBUTING says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sweep import sweep

import nceref
from nceref import cli, exact, get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.checks.cases import cases
from nceref.checks.run import check_loss
from nceref.errors import InputError
from nceref.verification.verifier import verify, verify_with

ROOT = Path(__file__).parents[1]
(SOURCE,) = re.findall(r"```python\n# my_rince.py\n(.*?)```", (ROOT / "docs/own-loss.md").read_text(), re.DOTALL)
TARGET = """
import numpy as np

def rows(queries, keys, temperature, exponent, density):
    q, k = (x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)) for x in (queries, keys))
    p = np.exp(q @ k.T / temperature)
    return ((density * p.sum(axis=1)) ** exponent - np.diag(p) ** exponent) / exponent

def rince(queries, keys, temperature, exponent, density):
    inputs = {"queries": queries, "keys": keys, "temperature": np.array(temperature)}
    rest = {"exponent": exponent, "density": density}
    grads = {}
    for name, x in inputs.items():
        steps = [1e-30j * unit.reshape(x.shape) for unit in np.eye(x.size)]
        slopes = [np.mean(rows(**{**inputs, **rest, name: x + step})).imag / 1e-30 for step in steps]
        grads[name] = np.reshape(slopes, x.shape)[()]
    return float(np.mean(rows(**inputs, **rest))), grads

def summed(queries, keys, temperature, exponent, density):
    value, grads = rince(queries, keys, temperature, exponent, density)
    return len(keys) * value, {name: len(keys) * grad for name, grad in grads.items()}

def detached(queries, keys, temperature, exponent, density):
    value, grads = rince(queries, keys, temperature, exponent, density)
    return value, {**grads, "keys": 0 * grads["keys"]}

def curved(queries, keys, temperature, exponent, density):
    value = np.mean(rows(queries, keys, temperature, exponent, density))
    return value + 0.1 * np.sin(value)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_rince.py").write_text(SOURCE)
    (tmp_path / "my_target.py").write_text(TARGET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edited(folder, old, new):
    assert SOURCE.count(old) == 1
    (folder / "edited.py").write_text(SOURCE.replace(old, new))
    return "edited.py:LOSS"


@pytest.mark.usefixtures("folder", "in_this_process")
def test_a_file_is_a_loss_for_every_command_that_takes_one(run):
    status, out, _ = run("check", "my_rince.py:LOSS")
    assert status == 0, out
    assert "14 passed" in out
    assert "my_rince.py:LOSS" in run("losses", "my_rince.py:LOSS")[1]
    status, out, _ = run("expect", "--loss", "my_rince.py:LOSS", "--n", "8", "--temperature", "0.5")
    assert (status, "5.436564" in out) == (0, True)
    arguments = ("verify", "my_target.py:detached", "--loss", "my_rince.py:LOSS", "--suite", "quick")
    assert "\nkeys-detached\n" in run(*arguments, "--case", "designed-0.3", "--calls", "1")[1]


CASES = ("designed-0.3", "seven-0.5", "aligned-0.07")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("target", "verdict", "diagnosis"),
    [
        ("rince", "conforms", ""),
        ("summed", "differs", "sum-instead-of-mean"),
        ("curved", "differs", "unexplained"),
    ],
)
def test_verify_judges_and_explains_without_a_dense_form(target, verdict, diagnosis):
    report = verify_with(program(target), "my_rince.py:LOSS", suite="quick", case=CASES, measure=False)
    assert (report.loss, report.verdict) == ("rince", verdict)
    assert [d.id for d in report.diagnosis][:1] == [diagnosis] * bool(diagnosis)
    # What was not tried is said where nothing explains the difference.
    assert any("no dense form" in d.sentence for d in report.diagnosis) == (diagnosis == "unexplained")


def program(name):
    namespace: dict = {}
    exec(TARGET, namespace)
    return namespace[name]


@pytest.mark.usefixtures("folder")
def test_python_takes_the_path_or_the_declaration():
    loss = get_loss("my_rince.py:LOSS")
    x = np.eye(3)
    value = float(exact.reference("my_rince.py:LOSS", x, x, temperature=0.5)["value"])
    assert loss(x, x, temperature=0.5) == pytest.approx(value, rel=1e-14)
    assert verify(program("rince"), loss.declaration, case=CASES, suite="quick").ok
    # Below the lowest temperature nothing is judged, and at it something is.
    assert min(probe.inputs["temperature"] for probe in corpus(loss.declaration, {}, suite="quick")) == 0.05
    with pytest.raises(InputError, match=r"did you mean 'my_rince\.py'"):
        get_loss("my_rinc.py:LOSS")


@pytest.mark.usefixtures("folder")
def test_a_file_that_has_changed_is_loaded_again():
    before = get_loss("my_rince.py:LOSS")
    assert get_loss("my_rince.py:LOSS") is before
    file = Path("my_rince.py")
    file.write_text(SOURCE.replace("Robust InfoNCE:", "Another text:"))
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 10**9))
    assert get_loss("my_rince.py:LOSS").declaration.summary.startswith("Another text:")


# What is wrong with the file, and what the message names.
WRONG = {
    'rows="(N,)",\n': ("", "must declare `rows`: what reduction='none' returns"),
    'sign="either sign",\n': ("", "must declare `sign`: which values occur"),
    'unit="",\n': ("", "must declare `unit`: of the values"),
    'name="rince"': ('name="nt_xent"', "has the name of a loss of the package, 'nt_xent'; give it another"),
    'name="rince",\n    s': ('name="my-rince",\n    s', "must be a Python name, got 'my-rince'"),
    "def formula(m, queries, keys, *, temperature, exponent,": (
        "def formula(m, queries, keys, *, temperature,",
        "the `formula` of edited.py:LOSS must take m, queries, keys, temperature, exponent, density, normalize",
    ),
    "LOSS = Loss(": ("RINCE = Loss(", "edited.py has no 'LOSS'; there are RINCE"),
    "import math": ("import no_such_package", "imports no_such_package, and there is no module of that name"),
}


@sweep("old", WRONG)
def test_an_error_names_file_attribute_and_what_was_expected(folder, old):
    new, message = WRONG[old]
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        get_loss(edited(folder, old, new))
    assert "edited.py" in str(caught.value)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my_rince.py", "must say which object of my_rince.py is meant: my_rince.py:LOSS"),
        ("my_rince.py:plan", "to check an implementation: nceref verify my_rince.py:plan"),
        ("nowhere:LOSS", "no module 'nowhere', neither in "),
    ],
)
def test_a_path_that_names_no_declaration_is_refused(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        get_loss(text)
    assert get_loss("nceref.family.nt_xent:LOSS") is get_loss("nt_xent")


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        ("    lowest_temperature=0.05,\n", "", "on random-0-0.001; `lowest_temperature`"),
        (
            "own = xp.exp(exp",
            "own = undefined(exp",
            "raises NameError: name 'undefined' is not defined (edited.py, line",
        ),
        ("total * (1 - missed) - own)", "total * (1 - missed) + own)", "times the bound at worst ["),
        ("        TEMPERATURE,\n", '        Scalar("temperature", "T", "", low=0.2),\n', ""),
    ],
)
def test_a_formula_that_fails_names_its_case_or_its_line(folder, old, new, detail):
    loss = get_loss(edited(folder, old, new)).declaration
    # The first two results are those of the formula, in two formats.
    failed = [result.detail for result, _ in zip(check_loss(loss), range(2), strict=False) if result.status == "fail"]
    assert bool(failed) == bool(detail), failed
    assert all(detail in one for one in failed)


def test_a_property_or_a_size_that_does_not_exist_is_named(folder):
    loss = get_loss(edited(folder, '"attracts_positives"', '"attractive"')).declaration
    with pytest.raises(InputError, match="rince declares the property 'attractive'; it must be one of"):
        next(check_loss(loss))
    size = edited(folder, "        KEYS,\n", '        type(KEYS)("keys", ("N", "Q"), ""),\n')
    loss = get_loss(size)
    with pytest.raises(InputError, match="`keys` of rince has the size 'Q', but inputs have N, D"):
        next(cases(loss.declaration))


def test_a_file_in_the_package_is_enough(tmp_path):
    """By CONTRIBUTING: one file in nceref/family; nothing is registered, and a dense form may be left out."""
    left_out = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(ROOT / "nceref", tmp_path / "nceref", ignore=left_out)
    (tmp_path / "nceref/family/rince.py").write_text(SOURCE)
    (tmp_path / "my_target.py").write_text(TARGET)
    one = ["--suite", "quick", "--case", "designed-0.3", "--case", "seven-0.5", "--calls", "1"]
    commands = [["losses"], ["verify", "my_target.py:summed", "--loss", "rince", *one]]
    script = f"""
import contextlib, nceref
from nceref import cli
assert nceref.__file__.startswith({str(tmp_path)!r}), nceref.__file__
for arguments in {commands!r}:
    with contextlib.suppress(SystemExit):
        cli.main(arguments)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "\nrince " in done.stdout
    assert "\nsum-instead-of-mean\n" in done.stdout


def test_help_says_that_a_file_is_executed(run):
    for command in ("verify", "check", "expect", "losses", "identify"):
        assert "executed" in run(command, "--help")[1], command
    assert set(cli.COMMANDS) >= {"verify", "check"}
    assert nceref.get_loss.__doc__.count("executed") == 1
