"""`nceref mutants`: the list, one program in full, the score, and their JSON."""

import json
from dataclasses import replace
from functools import partial
from importlib.resources import files

from click.testing import CliRunner
from sweep import sweep

from mutants.__main__ import content
from mutants.score import CORRECT, INDEPENDENT, NAMED, Score, ScoredProgram
from mutants.score_page import score_page
from nceref.cli import mutants_page, nceref
from nceref.cli.mutants import mutants as command


def scored(name="m", group="tuning", verdict="differs", right=True, diagnoses=("x",)):
    return ScoredProgram(name, "nt_xent", "float64", group, "x", verdict, diagnoses, "", right, right, 0, 0.0, 0.0)


def test_what_is_not_named_and_what_is_a_false_alarm_are_listed():
    misnamed = scored("nt-xent-own-logit-kept", right=False, diagnoses=("outer-factor-2",) * 3)
    page = score_page(Score((scored(), misnamed, scored(group=CORRECT)))).text()
    assert "Not named (1)" in page
    assert "False alarms (1)" in page


def test_the_list_is_that_of_the_programs():
    assert files("nceref.cli").joinpath(mutants_page.NAME).read_bytes() == content()


def test_without_the_programs_a_score_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("nceref.__file__", str(tmp_path / "nceref" / "__init__.py"))
    for words in (["score"], ["score", "--help"]):
        result = CliRunner().invoke(command, words)
        assert "which only a clone of the repository has" in str(result.exception)


def independent(verdict="differs", right=False, diagnoses=("x",), confirmed=False):
    return replace(scored(group=INDEPENDENT, verdict=verdict, right=right, diagnoses=diagnoses), confirmed=confirmed)


@sweep(
    ("wrong", "met"),
    [
        ([independent(diagnoses=("unexplained",))] * 25, True),
        ([independent(diagnoses=("unexplained",))] * 26, False),
        ([independent()], True),
        ([independent()] * 2, False),
        ([independent(verdict="conforms", diagnoses=())] * 2, False),
        ([scored(group=CORRECT)], False),
    ],
)
def test_the_second_catalogue_is_met_by_what_is_explained_and_confirmed(wrong, met):
    useful = [independent(right=True), independent(confirmed=True)]
    score = Score((*wrong, *(useful * 50)[: 100 - len(wrong)]))
    assert score.met is met
    page = score_page(score).text()
    assert "75% explained" in page
    assert ("Not confirmed" in page) == (independent() in wrong)


def test_the_command_fails_on_a_missed_target(monkeypatch):
    run = partial(CliRunner().invoke, nceref)
    monkeypatch.setattr(
        "mutants.score_command.measure",
        lambda todo, suite, ranks, leave_out: [scored(verdict="conforms", diagnoses=())],
    )
    assert run(["mutants", "score", "nt-xent-own-logit-kept"]).exit_code == 1
    # With another command's words before it, and with its own help.
    assert run(["mutants", "--catalogue", "known", "score", "nt-xent-own-logit-kept"]).exit_code == 1
    assert "--leave-one-out" in run(["mutants", "score", "--help"]).output
    assert f"fewer than {NAMED:.0%}" in " ".join(run(["mutants", "score", "--help"]).output.split())


def test_no_two_programs_of_any_catalogue_have_one_id():
    lines = (files("nceref.cli") / "mutants.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(ids) == len(set(ids)) > 500
