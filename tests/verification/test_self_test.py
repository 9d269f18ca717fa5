"""Wrong answers that every run must reject, and cases that could not see them."""

from dataclasses import replace

from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.cases.records import Observation, Outcome
from nceref.verification.self_test import WRONG_ANSWERS, run_self_test

LOSS = get_loss("nt_xent").declaration
PROBE = corpus(LOSS, {}, suite="quick")[0]


def right(probe=PROBE):
    return Outcome(probe.value, dict(probe.grads))


def as_outcome(probe, answer):
    return Outcome(*answer)


def test_every_wrong_answer_is_caught_on_the_path_that_judges_and_survives_on_one_that_does_not():
    observations = [Observation(p, right(p)) for p in corpus(LOSS, {}, suite="quick")]
    assert {t.result for t in run_self_test(observations, as_outcome)} == {"caught"}
    assert len(run_self_test(observations, as_outcome)) == len(WRONG_ANSWERS)
    assert {t.result for t in run_self_test(observations, lambda probe, answer: right(probe))} == {"survived"}


def test_a_wrong_answer_that_no_case_could_see_is_unseen():
    bounds = replace(PROBE.bounds, value=1e3, grads={n: 1e3 + 0 * g for n, g in PROBE.grads.items()})
    vague = replace(PROBE, bounds=bounds)
    results = {t.wrong_answer.name: t.result for t in run_self_test([Observation(vague, right(vague))], as_outcome)}
    assert results.pop("a NaN") == "caught"
    assert set(results.values()) == {"unseen"}


def test_a_wrong_answer_that_the_process_of_the_target_loses_has_not_passed():
    trials = run_self_test(
        [Observation(PROBE, right())], lambda probe, answer: Outcome(trouble="dies", sentence="gone")
    )
    assert {(t.result, t.why) for t in trials} == {("lost", "gone")}
