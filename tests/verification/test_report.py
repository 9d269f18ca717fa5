"""A report as JSON, as JUnit XML and as text."""

import json
from xml.etree import ElementTree as ET

import numpy as np
from targets import plain

import nceref

QUICK = {"loss": "info_nce", "suite": "quick"}


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


def test_several_formats_stand_side_by_side():
    report = nceref.verify(plain.with_gradients, dtype=["float64", "float32"], **QUICK)
    assert report.ok
    assert {r.id.split("/")[0] for r in report.results} == {"float64", "float32"}
    header = next(line for line in str(report).splitlines() if line.startswith("quantity"))
    assert header.split() == ["quantity", "float64", "float32"]
