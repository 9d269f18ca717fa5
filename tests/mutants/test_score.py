"""The score: what counts as killed, named and met; the whole catalogue is scored by `make score`."""

from types import SimpleNamespace

import pytest

from mutants.bug import DTYPES, bug, bugs
from mutants.score import (
    CORRECT,
    Score,
    ScoredProgram,
    alike,
    in_order,
    intended,
    jobs,
    measure,
    programs,
    score_program,
)
from nceref.cases.records import Diagnosis
from nceref.errors import InputError
from nceref.verification.report import Report

pytestmark = pytest.mark.machine


def scored(group="tuning", verdict="differs", right=True, errors=0):
    return ScoredProgram("m", "nt_xent", "float64", group, "x", verdict, ("x",), "", right, right, errors, 0.0, 0.0)


def test_the_target_needs_every_bug_killed_and_95_percent_named():
    good = [scored() for _ in range(19)]
    assert Score((*good, scored(right=False))).met
    assert not Score((*good, scored(right=False), scored(right=False))).met
    assert not Score((*good, scored(verdict="conforms"))).met
    assert not Score((*good, scored(errors=1))).met
    assert not Score((*good, scored(verdict="error"))).met


@pytest.mark.parametrize("verdict", ["differs", "inconclusive", "error"])
def test_a_blamed_correct_program_is_a_false_alarm(verdict):
    assert Score((scored(), scored(group=CORRECT, verdict="conforms"))).met
    blamed = Score((scored(), scored(group=CORRECT, verdict=verdict)))
    assert not blamed.met
    assert len(blamed.false_alarms) == 1


def test_groups_are_counted_apart():
    score = Score((scored(), scored(group="held-out", right=False), scored(group="pairs", verdict="conforms")))
    assert score.tally("float64", "tuning").named == 1
    assert score.tally("float64", "held-out").killed == 1
    assert score.tally("float64", "held-out").named == 0
    assert score.tally("float64", "pairs").killed == 0


def test_a_bug_that_raises_is_missed(monkeypatch):
    @bug("nt_xent", named="outer-factor-2")
    def broken(z1, z2, *, temperature):
        raise RuntimeError

    monkeypatch.setattr("mutants.score.programs", lambda: {"broken": broken.entry})
    result = score_program(("broken", "float64"), "quick")
    assert not result.killed
    assert result.errors


@pytest.mark.parametrize(
    ("diagnoses", "right", "among"),
    [
        (("log-base-2+views-interleaved",), True, True),
        (("views-interleaved+log-base-2",), True, True),
        (("outer-factor-constant+views-interleaved", "log-base-2"), True, True),
        (("log-base-2", "views-interleaved+log-base-2"), False, True),
        (("log-base-2",), False, False),
        ((), False, False),
    ],
)
def test_a_diagnosis_is_right_if_it_names_all_that_is_wrong_or_says_the_same(monkeypatch, diagnoses, right, among):
    @bug("nt_xent", named="views-interleaved+log-base-2", also=("views-interleaved+outer-factor-constant",))
    def both(z1, z2, *, temperature):
        """Two bugs."""

    monkeypatch.setattr("mutants.score.programs", lambda: {"both": both.entry})
    verified = Report("both", "nt_xent", "differs", 1, "", tuple(Diagnosis(one) for one in diagnoses))
    monkeypatch.setattr("mutants.score._verified", lambda *args: verified)
    result = score_program(("both", "float64"), "quick")
    assert (result.right, result.among, result.named) == (right, among, right)
    tally = Score((result,)).tally("float64", "pairs")
    assert (tally.total, tally.killed, tally.named, tally.among) == (1, 1, right, among)


@pytest.mark.parametrize(
    ("id", "predicts", "explanation"),
    [
        ("rows-ignored", lambda seen: all(o.probe.reduction == "mean" for o in seen), "confirmed"),
        ("rows-ignored", lambda seen: False, "unconfirmed"),
        ("rows-ignored", None, "unconfirmed"),
        ("value-not-finite", lambda seen: True, "located"),
        ("value-not-finite", lambda seen: False, "unconfirmed"),
        ("unexplained", None, "none"),
    ],
)
def test_a_diagnosis_without_a_name_in_the_catalogue_is_asked_what_it_predicts(monkeypatch, id, predicts, explanation):
    @bug("info_nce", named="log-base-2")
    def zero(queries, keys, *, temperature):
        """Nothing."""
        return 0.0

    monkeypatch.setattr("mutants.score.independent_programs", lambda: {"zero": zero.entry})
    report = Report("zero", "info_nce", "differs", 1, "", (Diagnosis(id, predicts=predicts),))
    monkeypatch.setattr("mutants.score._verified", lambda *args: report)
    assert score_program(("zero", "float64"), "quick").explanation == explanation


@pytest.mark.slow(reason="`make score` judges the whole catalogue")
def test_a_sample_of_the_catalogue_is_judged_right(monkeypatch):
    # What a bug does to training takes long to measure, and no number of the score is about it.
    monkeypatch.setattr("nceref.diagnosis.severity.severity", None)
    sample = jobs(["clip-one-way-log", "supcon-zero-over-zero", "siglip-signs"], ["float64"])
    results = in_order(measure(sample, processes=1), sample)
    assert [result.group for result in results] == ["pairs", "tuning", CORRECT]
    assert Score(results).met
    assert not any(result.errors for result in results)


@pytest.mark.parametrize("most", [500, 7])
def test_programs_of_one_loss_and_format_are_scored_one_after_the_other(most):
    todo, known = jobs(), programs()
    groups = alike(todo, most)
    assert sorted(job for group in groups for job in group) == sorted(todo)
    kinds = [{(known[name].loss, dtype) for name, dtype in group} for group in groups]
    assert all(len(kind) == 1 for kind in kinds)
    sizes = [len(group) for group in groups]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= most
    assert (len(set.union(*kinds)) == len(groups)) == (most == 500)
    results = [SimpleNamespace(id=name, dtype=dtype) for group in groups for name, dtype in group]
    assert [(result.id, result.dtype) for result in in_order(results, todo)] == list(todo)


def test_every_program_is_scored_in_each_format_in_which_it_is_wrong():
    todo = jobs()
    assert len(set(todo)) == len(todo)
    assert [dtype for name, dtype in todo if name == "clip-cast-to-single"] == ["float64"]
    assert [dtype for name, dtype in todo if name == "nt-xent-own-logit-kept"] == list(DTYPES)


def test_an_optional_array_that_a_program_takes_is_passed_on_as_a_setting():
    assert intended(bugs()["info-nce-batch-keys-beside-the-negatives"]) == {"negatives": ...}


def test_an_unknown_id_is_refused_with_one_like_it():
    with pytest.raises(InputError, match="nt-xent-own-logit-kept"):
        jobs(["nt-xent-own-logit-kep"])


def test_a_format_in_which_nothing_is_wrong_is_refused():
    with pytest.raises(InputError, match="clip-cast-to-single"):
        jobs(["clip-cast-to-single"], ["float32"])
