"""A report as JSON, as JUnit XML and as text."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from programs import plain

import nceref
from nceref.cases.expected_failures import ExpectedFailure
from nceref.verification.report import Report, junit_of

QUICK = {"loss": "info_nce", "suite": "quick"}


@pytest.fixture(scope="module")
def doubled():
    return nceref.verify(plain.doubled, **QUICK)


def test_a_record_has_the_parts_of_each_sentence_and_a_reason_for_each_result(doubled):
    record = json.loads(doubled.to_json())
    for part in record["diagnosis"][0]["parts"]:
        assert part["text"] in record["diagnosis"][0]["sentence"]
    for result in record["results"]:
        assert result["why"]
    assert record["environment"]["numpy"] == np.__version__


def test_junit_counts_what_failed(doubled):
    suite = ET.fromstring(doubled.to_junit())
    assert int(suite.get("failures")) == sum(r.status == "fail" for r in doubled.results) > 0
    assert int(suite.get("tests")) == len(suite.findall("testcase")) == len(doubled.results)
    assert float(suite.get("time")) == pytest.approx(doubled.seconds, abs=1e-3)
    assert suite.find("properties/property[@name='command']").get("value") == doubled.command
    (diagnosis,) = doubled.diagnosis
    meant = "if you mean it: --set factor=outer-factor-2"
    for text in (failure.text for failure in suite.iter("failure")):
        assert (
            text == f"{diagnosis.id}: {diagnosis.sentence}\nfix: {diagnosis.fix}\n{meant}\nto repeat: {doubled.command}"
        )


def test_junit_is_red_where_no_result_fails():
    reports = [
        nceref.verify(plain.info_nce, require_grad=True, **QUICK),
        nceref.verify("nowhere.py:f", "info_nce"),
        nceref.verify(plain.info_nce, **QUICK),
    ]
    for suite, report in zip(ET.fromstring(junit_of(reports)), reports, strict=True):
        assert int(suite.get("errors")) == len(suite.findall("testcase/error")) == (not report.ok)
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert [e.get("message") for e in suite.iter("error")] == [report.reason] * (not report.ok)


def test_text_of_others_harms_no_format(doubled):
    evil = "a|b <&\x1b[31m\x00\x9b\u202e\udcff\ufffe\nc"
    environment = {"arguments": evil, "framework": evil}
    result = replace(doubled.results[0], id=evil, case=evil, status="fail", why=evil)
    report = Report(evil, "info_nce", "differs", 1, evil, results=(result,), environment=environment)
    written = report.to_junit()
    suite = ET.fromstring(written.encode())
    assert r"<&\x1b[31m\x00\x9b\u202e\udcff\ufffe" in suite.find("testcase/failure").get("message")
    assert json.loads(report.to_json().encode())["reason"] == evil
    for text in (written, report.to_json(), str(report)):
        assert text.replace("\n", "").isprintable()


def test_several_formats_stand_side_by_side():
    report = nceref.verify(plain.with_gradients, dtype=["float64", "float32"], **QUICK)
    assert report.ok
    assert {r.id.split("/")[0] for r in report.results} == {"float64", "float32"}
    whole = r"value and gradients agree on (\d+) of \1 cases in float64 and \1 of \1 cases in float32"
    assert re.fullmatch(whole, report.reason)


def test_of_several_formats_the_verdict_and_the_diagnosis_say_of_which_they_are():
    def in_float32(x, y, exponent):
        x, y = (z.astype(np.float32) / np.linalg.norm(z.astype(np.float32), axis=1)[:, None] for z in (x, y))
        return float(np.mean(np.sum((x - y) ** 2, axis=1) ** (exponent / 2)))

    report = nceref.verify(in_float32, "alignment", dtype=["float32", "float64"], suite="quick")
    assert report.verdict == "differs"
    assert report.reason.startswith("in float32 nothing fails; in float64 the value fails on ")
    assert [d.sentence.startswith("in float64 ") for d in report.diagnosis] == [True] * len(report.diagnosis) != []


def test_what_is_said_of_expected_failures_is_what_was_measured():
    formats = {"suite": "quick", "dtype": ("float64", "float32")}
    known = nceref.verify(
        plain.doubled, "info_nce", expected_failures={"*": ExpectedFailure("2", strict=False)}, **formats
    )
    passing = sum(r.status == "pass" and r.quantity == "value" for r in known.results)
    assert (known.exit_code, passing > 0) == (0, True)
    assert known.reason.startswith(f"the value is right on {passing} of 56 cases; ")
    stale = nceref.verify(plain.with_gradients, "info_nce", expected_failures={"float32/*/value": "2"}, **formats)
    assert stale.reason == "in float64 nothing fails; in float32 28 results pass, expected to fail"
    assert "28 failed" not in str(stale)
    gone = nceref.verify(plain.with_gradients, "info_nce", expected_failures={"gone": "2"}, **formats)
    assert gone.reason.startswith("`gone` is expected to fail, but no result has this id; remove it from the expected ")
    bare = nceref.verify(plain.with_gradients, "info_nce", expected_failures={"designed-0.3/value": "2"}, **formats)
    assert "; ids begin with the format here" in bare.reason
    one = nceref.verify(plain.with_gradients, "info_nce", suite="quick", expected_failures={"value": "2"})
    assert one.reason.endswith("no result has this id; did you mean `n17-0.3/value` or `d65-0.5/value`?")
