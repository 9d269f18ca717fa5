"""Answers that were recorded elsewhere: the judge and the explanations of `verify`, without a call."""

import re
from dataclasses import replace

import numpy as np
import pytest
from slow import partly_slow

from mutants.bug import bugs, target
from mutants.score import intended
from nceref.cases.judge import REFUSAL, UNSUPPORTED
from nceref.cases.records import Outcome
from nceref.losses import get_loss
from nceref.targets.recorded import RecordedTarget
from nceref.verification.verifier import observe, verify_recorded, verify_with

NAMED_AT_ONCE = {
    "clip-target-offset-by-rank",
    "debiased-bare-exponentials",
    "siglip-mean-without-bias",
}
"""Of labels, overflow and a bias; the denominator and the gradient have a test of their own."""


def recorded(program, **changes):
    """What a program of the catalogue answers on the cases of the quick suite."""
    options = {"framework": "numpy", "suite": "quick", **intended(program)}
    seen = observe(target(program), loss=program.loss, **options)
    answers = {o.probe.id: o.outcome for o in seen}
    return of(program.loss, tuple(o.probe for o in seen), answers, **changes)


def of(loss, probes, answers, **changes):
    made = RecordedTarget("mine", get_loss(loss).declaration, probes, answers, handed_over, "quick", RECORDED, 3)
    return replace(made, **changes)


RECORDED = {"recorded": "mine.jsonl"}
BY_CALLS = {"measured-formula", "other-setting", "input-replaced"}
"""What is said only after calls that confirm it."""


def handed_over(probe, answer):
    return Outcome(np.asarray(answer[0])[()], answer[1])


def right_answers(probes):
    return {p.id: Outcome(p.value, p.grads) for p in probes if not p.skip}


@pytest.fixture(scope="module")
def probes():
    seen = observe(lambda z1, z2, temperature: 0.0, loss="nt_xent", framework="numpy", suite="quick")
    return tuple(o.probe for o in seen if not o.probe.skip)[:6]


@pytest.mark.parametrize("name", partly_slow(sorted(bugs()), NAMED_AT_ONCE.__contains__, "the score has it"))
def test_a_known_bug_has_the_name_that_it_has_when_it_is_called(name):
    program = bugs()[name]
    report = verify_recorded(recorded(program), training=False)
    called = None if name in NAMED_AT_ONCE else live(program)
    named = "+".join(program.named) if called is None else (called.diagnosis or called.limits)[0].id
    named = "unexplained" if named in BY_CALLS else named
    # What is not finite below the temperatures in use alone is a limit.
    assert (report.exit_code, (report.diagnosis or report.limits)[0].id) == (int(not report.limits), named)
    assert called is None or bool(called.limits) == bool(report.limits)
    assert "--case" not in str(report) + report.to_html()


@pytest.mark.parametrize("name", ["nt-xent-own-logit-kept", "nt-xent-no-graph"])
def test_the_sentences_are_those_of_a_target_that_is_called_but_for_fresh_calls(name):
    program = bugs()[name]
    report, called = verify_recorded(recorded(program)), live(program)
    sentences = [re.sub(r" and (\d+) of \1 fresh calls", "", d.sentence) for d in called.diagnosis]
    assert [d.sentence for d in report.diagnosis] == sentences != [d.sentence for d in called.diagnosis]
    assert [replace(d, parts=()) for d in report.diagnosis] == [
        replace(d, parts=(), intend="") for d in called.diagnosis
    ]
    assert report.training["sentence"]


def live(program):
    options = {"framework": "numpy", "suite": "quick", "training": False}
    return verify_with(target(program), program.loss, **options, **intended(program))


def test_right_answers_conform_and_the_report_is_about_these_cases_alone(probes):
    report = verify_recorded(of("nt_xent", probes, right_answers(probes)))
    assert (report.verdict, report.exit_code) == ("conforms", 0)
    assert "recorded outputs, so nothing was called here; nothing else was tested" in str(report)
    assert "recorded in mine.jsonl, float64, suite quick" in str(report)
    assert report.record()["scope"]["recorded"] is True
    assert {trial["result"] for trial in report.self_test} == {"caught"}
    assert not any(r.quantity.startswith("mode.") for r in report.results)
    assert "<dt>recorded</dt>" in report.to_html()


def test_a_reader_that_loses_what_is_wrong_is_a_broken_checker(probes):
    made = of(
        "nt_xent", probes, right_answers(probes), handed_over=lambda probe, answer: Outcome(probe.value, probe.grads)
    )
    assert verify_recorded(made).exit_code == 3


UNABLE = Outcome(trouble=UNSUPPORTED, sentence="has no line")


@pytest.mark.parametrize(("answered", "code"), [(3, 0), (2, 5), (0, 5)])
def test_cases_without_an_answer_are_listed_and_too_few_are_exit_5(probes, answered, code):
    answers = right_answers(probes) | {p.id: UNABLE for p in probes[answered:]}
    report = verify_recorded(of("nt_xent", probes, answers))
    assert report.exit_code == code
    assert f"skipped {', '.join(p.id for p in probes[answered:])}: has no line" in str(report).replace("\n", " ")
    assert code == 0 or f"{answered} of 6 cases could be judged, and 3 must be" in report.reason


REFUSED = Outcome(trouble="raises", sentence="refuses")
REFUSALS = {
    "an error is right": (REFUSED, "pass", 0, "refuses the inputs"),
    "a number is wrong": (Outcome(0.25), "fail", 1, "returns 0.25, where it must refuse the inputs: a row is zero"),
    "an end is an error": (Outcome(trouble="dies", sentence="dies"), "error", 1, "dies, where it must"),
    "no answer": (UNABLE, "skip", 0, "has no line"),
}


@pytest.mark.parametrize(("outcome", "status", "code", "why"), REFUSALS.values(), ids=REFUSALS)
def test_inputs_that_must_be_refused(probes, outcome, status, code, why):
    wrong = replace(probes[0], id="wrong-inputs", skip="a row is zero", must_refuse=True)
    report = verify_recorded(of("nt_xent", (*probes, wrong), right_answers(probes) | {wrong.id: outcome}))
    [result] = [r for r in report.results if r.case == wrong.id]
    assert (result.status, report.exit_code) == (status, code)
    assert why in result.why
    assert result.quantity == (REFUSAL if outcome is not UNABLE else "value")
    judged = 6 + (status in ("pass", "fail"))
    assert report.scope.cases == judged
    assert f"of {judged} cases" in report.reason or code
