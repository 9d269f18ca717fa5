"""The search for an explanation: it counts calls, reads no clock, and nothing that ends it changes the verdict."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nceref
from nceref.errors import TargetError
from nceref.targets.search import RAISES, NoCallsLeft, Search
from nceref.verification.verifier import verify_with

GIVEN = {"loss": "alignment", "suite": "quick"}


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def every_pair(x, y, exponent):
    """Of all pairs, not of the positive ones: a measured formula alone explains that."""
    return np.mean(np.linalg.norm(unit(x)[:, None] - unit(y), axis=2) ** exponent)


def doubled(queries, keys, temperature):
    s = unit(queries) @ unit(keys).T / temperature
    return 2 * np.mean(np.logaddexp.reduce(s, axis=1) - np.diag(s))


def other_name(q, k, tau, *, unused):
    """Called with other names than the loss has, in a way that is looked for."""
    return doubled(q, k, tau) / 2


@pytest.fixture(scope="module")
def explained():
    return nceref.verify(every_pair, **GIVEN)


@functools.cache
def cut_after(calls):
    return nceref.verify(every_pair, calls=calls, **GIVEN)


def test_a_report_has_the_calls_of_the_search_and_no_more_than_that(explained):
    calls = []

    def counted(x, y, exponent):
        calls.append(len(x))
        return every_pair(x, y, exponent)

    judged = nceref.verify(counted, calls=0, **GIVEN)
    alone = len(calls)
    assert judged.search["sentence"] == "no explanation was looked for (--calls 0)"
    assert not judged.diagnosis
    assert nceref.verify(counted, calls=20, **GIVEN).search["calls"] == 20
    assert len(calls) == 2 * alone + 20
    assert explained.diagnosis[0].id == "measured-formula"
    assert explained.search == {"calls": explained.search["calls"], "limit": 4000, "ended": "", "sentence": ""}
    assert 40 < explained.search["calls"] < 80


@pytest.mark.parametrize(("calls", "goal"), [(1, "an explanation"), (40, "a formula")])
def test_a_limit_is_shown_in_every_format(explained, calls, goal):
    report = cut_after(calls)
    of_calls = "1 call" if calls == 1 else f"{calls} calls"
    sentence = f"the search for {goal} was cut after {of_calls} of the target (--calls {calls})"
    assert report.search == {"calls": calls, "limit": calls, "ended": "calls", "sentence": sentence}
    assert json.loads(report.to_json())["search"] == dict(report.search)
    assert f"\n{sentence}\n" in " ".join(str(report).split(" ")).replace(f"\n(--calls {calls})", f" (--calls {calls})")
    assert report.to_html().count(sentence[1:]) == 1
    assert f'<property name="search" value="{sentence}" />' in report.to_junit()
    assert (report.verdict, report.exit_code, report.reason) == (
        explained.verdict, explained.exit_code, explained.reason,
    )  # fmt: skip


def test_calls_and_a_script_exclude_each_other_where_none_may_be_made():
    with pytest.raises(nceref.InputError, match="`repro` needs calls to find a small failing input, and `calls` is 0"):
        nceref.verify(doubled, "info_nce", calls=0, repro=True)
    with pytest.raises(nceref.InputError, match="`calls` must be"):
        nceref.verify(doubled, "info_nce", calls=-1)


ENDS = [("an explanation", "diagnosis.diagnose.triage"), ("a formula", "diagnosis.probe.measured.FormulaSearch"),
        ("the effect on training", "diagnosis.severity.severity"),
        ("a small failing input", "verification.repro.minimize.smallest")]  # fmt: skip


def ending(error):
    def end(*args, **options):
        raise error

    return end


def strange(x, y, exponent):
    """Nothing explains it."""
    return every_pair(x, y, exponent) + np.sin(50 * np.sum(x))


@pytest.mark.parametrize(("goal", "place"), ENDS)
def test_an_error_of_the_search_leaves_the_verdict_and_is_shown(monkeypatch, goal, place):
    if goal != "a formula":
        # A long search in vain.
        monkeypatch.setattr("nceref.diagnosis.probe.measured.measured", lambda *given: None)
    monkeypatch.setattr(f"nceref.{place}", ending(StopIteration("no such key")))
    monkeypatch.delenv(RAISES)
    report = nceref.verify(strange, **GIVEN)
    assert (report.verdict, report.exit_code) == ("differs", 1)
    assert report.search["ended"] == "error"
    assert report.search["error"]["type"] in ("StopIteration", "RuntimeError")
    assert report.search["error"]["places"][0].startswith("nceref/")
    none = "" if report.diagnosis else "no explanation: "
    assert report.search["sentence"].startswith(f"{none}internal error, please report: ")
    assert report.search["sentence"].endswith(f", in the search for {goal}")
    # What was known before the error is kept.
    assert bool(report.diagnosis) == (goal != "an explanation")


def test_an_error_of_the_search_is_raised_in_tests(monkeypatch):
    monkeypatch.setattr("nceref.diagnosis.diagnose.triage", ending(StopIteration("no such key")))
    with pytest.raises((StopIteration, RuntimeError)):
        nceref.verify(strange, **GIVEN)


def test_an_error_of_the_search_counts_as_one_in_the_score(monkeypatch):
    from mutants import score

    monkeypatch.setattr("nceref.diagnosis.diagnose.triage", ending(ZeroDivisionError()))
    monkeypatch.delenv(RAISES)
    job = score.jobs(["supcon-out-pair-by-pair"], ("float64",))[0]
    result = score.score_program(job, "quick")
    assert (result.verdict, result.killed, result.errors) == ("error", False, 1)
    assert result.reason.startswith("no explanation: internal error, please report: ZeroDivisionError")


def test_a_target_that_cannot_be_called_any_more_keeps_its_verdict(monkeypatch):
    gone = TargetError("it cannot be loaded again")
    monkeypatch.setattr("nceref.diagnosis.diagnose.triage", ending(gone))
    report = nceref.verify(doubled, "info_nce", suite="quick")
    assert (report.exit_code, report.search["ended"]) == (1, "target")
    assert report.search["sentence"].endswith("the target could not be called any more: it cannot be loaded again")


def test_ctrl_c_ends_the_search_alone_where_the_verdict_is_shown_before(monkeypatch):
    monkeypatch.setattr("nceref.diagnosis.probe.measured.FormulaSearch", ending(KeyboardInterrupt()))
    shown = []
    report = verify_with(strange, **GIVEN, on_verdict=shown.append)
    assert (report.verdict, report.exit_code, report.search["ended"]) == ("differs", 1, "user")
    calls = report.search["calls"]
    words = f"the search for a formula was stopped by the user after {calls} calls of the target"
    assert report.search["sentence"] == words
    assert [d.id for d in report.diagnosis] == ["unexplained"]
    assert [(r.verdict, r.reason, r.diagnosis) for r in shown] == [(report.verdict, report.reason, ())]
    with pytest.raises(KeyboardInterrupt):
        nceref.verify(strange, **GIVEN)


def test_a_search_counts_every_call_and_refuses_the_next_one():
    search = Search(most=2)
    run = search.target(lambda probe, twice: probe)
    assert [run(1), run(2)] == [1, 2]
    for _ in range(2):
        with pytest.raises(NoCallsLeft):
            run(3)
    search.end("limit", "is not the first end")
    assert (search.made, search.ended) == (2, "calls")
    assert search.sentence == "the search for an explanation was cut after 2 calls of the target (--calls 2)"
    search = Search(most=0, goal="the loss", option="")
    with pytest.raises(NoCallsLeft):
        search.spend()
    assert search.sentence == "the search for the loss was cut after 0 calls of the target"


def test_a_search_for_another_call_is_limited_and_leaves_the_verdict(monkeypatch):
    monkeypatch.setattr("nceref.verification.adapters._calls", ending(ZeroDivisionError()))
    monkeypatch.delenv(RAISES)
    report = nceref.verify(other_name, "info_nce", suite="quick")
    assert (report.exit_code, report.search["ended"]) == (4, "error")
    assert report.search["sentence"].endswith("in the search for another call")


PROGRAM = """
import itertools, sys, time
import nceref
from targets.test_search import GIVEN, every_pair

# Each look at a clock shows a day more than the one before.
days = itertools.count(step=86_400.0)
for clock in ("monotonic", "perf_counter", "time", "process_time"):
    setattr(time, clock, lambda: next(days))
# pytest gives this module another name.
every_pair.__module__ = sys.argv[1]
print(nceref.verify(every_pair, calls=30, **GIVEN).to_json())
"""


def test_a_report_does_not_depend_on_hashes_language_working_directory_or_time(tmp_path):
    """Sets of words have another order in each process, unless a seed fixes it."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    other = {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, __name__], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, **other, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.stdout == f"{cut_after(30).to_json()}\n"
