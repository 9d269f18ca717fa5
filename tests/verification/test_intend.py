"""Every named difference says how to intend it, and what it says makes the target conform."""

import shlex
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mutants.bug import bugs, target
from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.advice import intendable
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import diagnosis
from nceref.verification.report import page_of
from nceref.verification.verifier import verify_with

EXPECTED = "--expected-failures FILE, with the ids of the results that fail; --json FILE lists them"


@cache
def report_of(name, **options):
    program = bugs()[name]
    how = {"suite": "quick", "measure": False, "training": False}
    return verify_with(target(program), program.loss, **{**how, **program.settings, **options})


def settings_in(intend):
    words = shlex.split(intend)
    assert words[::2] == ["--set"] * (len(words) // 2)
    return dict(text.split("=", 1) for text in words[1::2])


def _slow(*given):
    return pytest.param(*given, marks=pytest.mark.slow(reason="another convention, intended in the same way"))


@pytest.mark.parametrize(
    ("name", "intend"),
    [
        ("moco-raw-queue", "--set normalization=queue-not-normalized"),
        _slow("moco-not-normalized", "--set normalization=rows-not-normalized"),
        _slow("moco-memory-in-the-graph", "--set gradient=constants-get-gradient"),
        _slow("clip-scale-as-a-number", "--set gradient=temperature-detached"),
        _slow("clip-scale-taken-for-a-temperature", "--set temperature=scale-divides"),
        ("info-nce-ten-times-too-warm", "--set temperature=temperature-off-by-a-factor=10"),
        ("info-nce-small-constant-in-the-log", "--set 'row=epsilon-in-log=eps = 1e-08 in the ratio'"),
        _slow("nt-xent-divided-by-replicas", "--set factor=outer-factor-constant=0.125"),
        ("siglip-mean-without-bias", "--set bias=bias-missing --set reduction=divided-by-n-twice=N"),
    ],
)
def test_a_target_conforms_under_what_its_report_says(name, intend):
    report = report_of(name)
    assert report.diagnosis[0].intend == intend
    assert report_of(name, **settings_in(intend)).verdict == "conforms"


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("info-nce-averaged-over-ranks", "float64"), ("nt-xent-bare-exponentials", "float32")],
)
def test_what_no_loss_is_computed_with_is_an_expected_failure(name, dtype):
    assert report_of(name, dtype=dtype).diagnosis[0].intend == EXPECTED


def cast_to_single(x, y, exponent):
    x, y = (rows(z.astype(np.float32)) for z in (x, y))
    return np.mean(np.sum((x - y) ** 2, axis=1) ** (exponent / 2))


def test_arithmetic_in_float32_is_right_in_float32():
    report = verify_with(cast_to_single, "alignment", suite="quick", measure=False, training=False)
    assert report.diagnosis[0].intend == "--dtype float32"
    assert verify_with(cast_to_single, "alignment", suite="quick", dtype="float32").ok


def test_every_format_of_a_report_has_it():
    report = replace(report_of("moco-raw-queue"), command="nceref verify")
    line = "if you mean it: --set normalization=queue-not-normalized"
    assert f"\n  {line}\n" in page_of(report).text()
    assert f"\n{line}\n" in report.to_junit()
    assert report.record()["diagnosis"][0]["intend"] == line.removeprefix("if you mean it: ")
    for html in (report.to_html(), report._repr_html_()):
        assert "<dt>if you mean it</dt><dd><code>--set normalization=queue-not-normalized</code>" in html


def test_every_convention_has_a_way_but_those_that_name_no_difference():
    without = {
        id for id in CONVENTIONS if not intendable(diagnosis(id, DiagnosisPart("something is different"))).intend
    }
    assert without == {"wrong-loss", "as-the-reference", "unexplained"}


def test_recorded_answers_take_no_options():
    one = diagnosis("outer-factor-2", DiagnosisPart("your loss is twice the reference"))
    assert intendable(one, "recorded").intend == ""


def rows(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def wrong_beside_the_temperature(queries, keys, temperature):
    """Twice the loss, and infinite at low temperatures: the factor alone is not all that is different."""
    exponentials = np.exp(rows(queries) @ rows(keys).T / temperature)
    return -2 * np.mean(np.log(np.diagonal(exponentials) / np.sum(exponentials, axis=1)))


def test_what_is_more_than_the_difference_is_not_called_intended():
    with np.errstate(all="ignore"):
        report = verify_with(wrong_beside_the_temperature, "info_nce", suite="quick", training=False)
    assert report.diagnosis[0].id == "outer-factor-2+exp-overflows"
    assert report.diagnosis[0].intend == EXPECTED
