"""`nceref check`: its page, its count, and a failing check as a finding."""

import json

import pytest
from output.page_text import plain_lines, words

from nceref.checks import run as check
from nceref.checks.run import CheckResult
from nceref.cli import check_page
from nceref.losses import all_losses

pytestmark = pytest.mark.machine


@pytest.fixture
def failing(monkeypatch):
    results = [
        CheckResult("dcl", "formula float64", "pass", "fine"),
        CheckResult("clip", "nonnegative", "fail", "it is -3"),
    ]
    monkeypatch.setattr(check, "count", lambda names: len(results) * len(names))
    monkeypatch.setattr(check, "run", lambda names: iter(results * len(names)))


def test_failing_check_is_a_finding(run, failing):
    status, out, _ = run("check", "dcl")
    assert status == 1
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == [
        "dcl",
        "clip",
        "1 passed, 1 failed",
    ]
    assert "it is -3" in out
    headings = [line for line in run("check", "dcl", "--format", "markdown")[1].splitlines() if line.startswith("#")]
    assert headings == ["# dcl", "# clip"]


def test_check_as_json_is_one_list_and_a_finding_too(run, failing):
    status, out, _ = run("check", "dcl", "--json")
    assert status == 1
    assert json.loads(out)[1] == {"loss": "clip", "check": "nonnegative", "status": "fail", "detail": "it is -3"}


def test_check_without_names_is_all_losses_and_with_names_each_once(run, failing, monkeypatch):
    requested = []
    monkeypatch.setattr(check, "count", lambda names: requested.append(names) or 1)
    run("check")
    run("check", "nt_xent", "dcl", "nt_xent")
    assert requested == [tuple(all_losses()), ("nt_xent", "dcl")]


def test_results_show_the_worst_error_and_every_failure():
    results = [
        CheckResult("dcl", "formula float64", "pass", "worst relative error 3e-16"),
        CheckResult("dcl", "nonnegative", "fail", "declared, but the value is -3"),
        CheckResult("dcl", "scale_invariant", "skip", "the question does not arise"),
        CheckResult("dcl", "relation to nt_xent", "pass", "never above"),
    ]
    page = check_page.page_of(results).text()
    assert [words(line) for line in plain_lines(page)[1:]] == [
        "formula float64 pass worst relative error 3e-16",
        "properties fail 1 failed, 1 skipped",
        "nonnegative fail declared, but the value is -3",
        "skip scale invariant: the question does not arise",
        "relations pass 1 passed",
    ]
    assert check_page.tally(results) == "2 passed, 1 failed, 1 skipped"
