"""`nceref.verify`: verdicts, explanations, and what targets do wrong."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from programs import plain
from slow import partly_slow
from sweep import sweep

import nceref
from nceref.cases.corpus import corpus
from nceref.tolerance import Bounds
from nceref.verification import target_run
from nceref.verification.report import VerificationError
from nceref.verification.self_test import WRONG_ANSWERS, SelfTestTrial
from nceref.verification.verifier import corpus_of, verify_with

pytestmark = pytest.mark.machine

QUICK = {"loss": "info_nce", "suite": "quick"}


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
    assert re.search(r"value is right on (\d+) of \1 cases.* keys is 0 on \1 of \1", report.diagnosis[0].sentence)
    with pytest.raises(VerificationError, match="keys-detached"):
        report.raise_for_status()


def test_a_convention_is_named_with_how_to_mend_it():
    report = nceref.verify(plain.doubled, **QUICK)
    [diagnosis] = report.diagnosis
    assert diagnosis.id == "outer-factor-2"
    assert re.search(r"an outer factor 2, on (\d+) of \1 cases", diagnosis.sentence)
    assert diagnosis.fix


@pytest.mark.parametrize("measured", partly_slow([False, True], lambda measured: not measured, "a long search in vain"))
def test_nothing_that_fits_is_said_with_a_script_of_the_smallest_failure(monkeypatch, measured):
    if not measured:
        monkeypatch.setattr("nceref.diagnosis.probe.measured.measured", lambda *given: None)

    def strange(x, y, exponent):
        return nceref.losses.alignment(x, y, exponent=exponent) + np.sin(50 * np.sum(x))

    report = nceref.verify(strange, "alignment", suite="quick")
    assert [d.id for d in report.diagnosis] == ["unexplained"]
    assert "import nceref" not in report.repro
    compile(report.repro, "repro.py", "exec")


def test_the_intended_convention_is_the_reference():
    assert nceref.verify(plain.by_sum, reduction="sum", **QUICK).ok
    assert nceref.verify(plain.doubled, factor="outer-factor-2", **QUICK).ok
    assert not nceref.verify(plain.info_nce, factor="outer-factor-2", **QUICK).ok
    for target in (plain.info_nce, plain.with_a_floor):
        report = verify_with(target, normalize="none", training=False, **QUICK)
        assert report.diagnosis[0].id == "rows-normalized"


def test_of_chosen_cases_alone_the_reference_is_computed(monkeypatch):
    seen, evaluate = [], corpus.evaluate
    monkeypatch.setattr(corpus, "evaluate", lambda *given, **more: seen.append(given[5]) or evaluate(*given, **more))
    chosen = ("designed-0.07", "n17-0.04")
    report = nceref.verify(plain.info_nce, case=chosen, seed=77, **QUICK)
    assert {*seen} == {r.case for r in report.results} == {*chosen}
    with pytest.raises(nceref.InputError, match=r"no case named 'designed-0\.33'; did you mean 'designed-0\.3'"):
        nceref.verify(plain.info_nce, case=("designed-0.07", "designed-0.33"), **QUICK)


def test_a_class_gets_the_temperature_of_the_case_or_the_one_it_is_made_with():
    assert nceref.verify(plain.InfoNCE, **QUICK).ok
    fixed = nceref.verify(plain.InfoNCE, init={"temperature": 0.07}, **QUICK)
    assert fixed.ok
    assert {r.case.rsplit("-", 1)[1] for r in fixed.results} == {"0.07"}


def test_expected_failures_are_strict():
    failing = [r.id for r in nceref.verify(plain.keys_detached, **QUICK).results if r.status == "fail"]
    reasons = dict.fromkeys(failing, "keys are constants here")
    held = nceref.verify(plain.keys_detached, expected_failures=reasons, **QUICK)
    assert held.ok
    assert f"{len(failing)} failures expected" in held.reason
    report = nceref.verify(plain.with_gradients, expected_failures=reasons, **QUICK)
    assert report.exit_code == 1
    assert {r.status for r in report.results if r.id in failing} == {"xpass"}


@sweep(
    ("target", "code", "quantity", "why"),
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
def test_what_a_target_does_wrong_is_a_finding_and_the_rest_still_runs(target, code, quantity, why):
    report = nceref.verify(target, **QUICK)
    assert report.exit_code == code, report
    diagnosis = [r for r in report.results if r.quantity == quantity]
    assert diagnosis
    assert why in diagnosis[0].why
    if diagnosis[0].status == "fail" and quantity.startswith("behavior."):
        assert report.reason.startswith(f"the target {diagnosis[0].why}"), "behavior stands before numbers"
    assert {r.case for r in report.results} == {probe.id for probe in corpus_of(target, **QUICK)}


def test_what_a_target_prints_on_each_case_is_one_line_of_the_page():
    def prints_its_value(queries, keys, temperature):
        value = nceref.losses.info_nce(queries, keys, temperature=temperature)
        sys.stdout.write(f"{value}\n")
        return value

    page = " ".join(str(nceref.verify(prints_its_value, "info_nce", suite="quick")).split())
    assert page.count("skipped behavior.prints: ") == 1
    assert "', and other text on other cases" in page


def test_gradients_that_are_missing_are_told_and_can_be_required():
    report = nceref.verify(plain.half_graded, **QUICK)
    assert report.ok
    assert "not judged: the gradient of keys, temperature" in report.reason
    strict = nceref.verify(plain.half_graded, require_grad=True, **QUICK)
    assert (strict.verdict, strict.exit_code) == ("value-only", 1)
    assert "keys" in strict.reason


def test_a_target_that_is_the_reference_where_something_else_was_intended_is_told_so():
    report = nceref.verify(plain.info_nce, factor="outer-factor-2", **QUICK)
    assert [d.id for d in report.diagnosis] == ["as-the-reference"]


def test_an_argument_that_nobody_gives_is_named():
    report = nceref.verify(plain.needy, **QUICK)
    assert report.exit_code == 4
    assert "`mystery`" in report.reason
    assert "--call" in report.reason


def test_a_wrong_answer_that_passes_is_the_checkers_failure(monkeypatch):
    survived = SelfTestTrial(WRONG_ANSWERS[0], "survived", "designed-0.3")
    monkeypatch.setattr(target_run, "run_self_test", lambda observations, run: (survived,))
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert (report.verdict, report.exit_code) == ("error", 3)
    lost = SelfTestTrial(WRONG_ANSWERS[0], "lost", "designed-0.3", "ends the process")
    monkeypatch.setattr(target_run, "run_self_test", lambda observations, run: (lost,))
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert (report.verdict, report.exit_code) == ("error", 4), "nothing has passed, the target has ended"
    assert report.reason.endswith("does not hand its answers on, it ends the process")


def test_cases_that_can_see_nothing_are_inconclusive(monkeypatch):
    corpus = target_run.corpus

    def vague(*args, **kwargs):
        for probe in corpus(*args, **kwargs):
            grads = {name: 1e12 + 0 * np.asarray(g) for name, g in probe.grads.items()}
            yield probe if probe.skip else replace(probe, bounds=Bounds(1e12, grads))

    monkeypatch.setattr(target_run, "corpus", lambda *args, **kwargs: tuple(vague(*args, **kwargs)))
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert (report.verdict, report.exit_code) == ("inconclusive", 6)


def test_nothing_executed_is_exit_5():
    report = nceref.verify(plain.with_gradients, case="zero-0.3", **QUICK)
    assert (report.verdict, report.exit_code) == ("inconclusive", 5)


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


def test_an_optional_input_that_a_target_needs_is_given():
    def against_negatives(queries, documents, negatives, *, temperature):
        return nceref.losses.mnrl(queries, documents, negatives, temperature=temperature)

    report = nceref.verify(against_negatives, "mnrl", suite="quick")
    assert report.verdict == "value-only"
    assert "negatives" in report.environment["arguments"]


def test_optional_inputs_that_no_case_has_together_are_named():
    report = nceref.verify(lambda features, labels, mask, temperature: 0.0, "supcon_out", suite="quick")
    assert (report.verdict, report.exit_code) == ("error", 4)
    assert "which supcon_out may be given and this run does not give; run with --set labels=given" in report.reason
