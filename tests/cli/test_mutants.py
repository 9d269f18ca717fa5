"""`nceref mutants`: the list, one program in full, the score, and their JSON."""

import json
from dataclasses import replace

from click.testing import CliRunner
from sweep import sweep

from nceref.cli import mutants_page
from nceref.cli.mutants import mutants as command
from nceref.verification.bugs.bug import bugs
from nceref.verification.bugs.score import CORRECT, INDEPENDENT, Score, ScoredProgram, programs


def scored(name="m", group="tuning", verdict="differs", right=True, diagnoses=("x",)):
    return ScoredProgram(name, "nt_xent", "float64", group, "x", verdict, diagnoses, "", right, right, 0, 0.0)


def test_the_code_holds_what_the_program_calls_and_begins_with_a_function():
    source = mutants_page.source(bugs()["nt-xent-both-halves-added"])
    assert "def nt_xent_both_halves_added(" in source
    assert "def _other_views(" in source
    assert source.count("def nt_xent") == 1
    assert source.startswith("def ")
    assert "@bug" not in source


def test_pages_are_80_columns_wide_and_list_every_program():
    listed = mutants_page.overview(programs().values()).text()
    assert max(map(len, listed.splitlines())) <= 80
    assert all(name in listed for name in programs())
    misnamed = scored("nt-xent-own-logit-kept", right=False, diagnoses=("outer-factor-2",) * 3)
    page = mutants_page.score_page(Score((scored(), misnamed, scored(group=CORRECT)))).text()
    assert max(map(len, page.splitlines())) <= 80
    assert "Not named (1)" in page
    assert "False alarms (1)" in page


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
    useful = [independent(right=True), independent(confirmed=True), independent(diagnoses=("measured-formula",))]
    score = Score((*wrong, *(useful * 34)[: 100 - len(wrong)]))
    assert score.met is met
    page = mutants_page.score_page(score).text()
    assert "75% explained" in page
    assert ("Not confirmed" in page) == (independent() in wrong)


def test_the_command_lists_shows_and_prints_json():
    run = CliRunner().invoke
    assert "nt-xent-own-logit-kept" in run(command, []).output
    one = run(command, ["nt-xent-own-logit-kept"]).output
    assert "vturrisi/solo-learn#206" in one
    assert "def nt_xent_own_logit_kept(" in one
    (record,) = json.loads(run(command, ["nt-xent-own-logit-kept", "--json"]).output)
    assert (record["named"], record["losses"]) == (["self-contrast-kept"], ["nt_xent"])
    assert set(record) == {
        "id", "sentence", "losses", "thread", "seen", "named", "also", "group", "settings", "options", "dtypes",
        "source",
    }  # fmt: skip


def test_the_command_scores_and_fails_on_a_missed_target(monkeypatch):
    run = CliRunner().invoke
    good = run(command, ["score", "nt-xent-own-logit-kept", "--dtype", "float64", "--json"])
    assert good.exit_code == 0, good.output
    score = json.loads(good.output)
    assert score["met"]
    assert score["by_dtype"]["float64"]["all"]["named"] == 1
    assert set(score["trials"][0]) == {
        "id", "loss", "dtype", "group", "expected", "verdict", "said", "reason", "right", "among", "errors", "seconds",
        "killed", "named", "confirmed", "explanation",
    }  # fmt: skip
    monkeypatch.setattr(
        "nceref.verification.bugs.score.measure", lambda todo, suite, ranks: [scored(verdict="conforms", diagnoses=())]
    )
    assert run(command, ["score", "nt-xent-own-logit-kept"]).exit_code == 1
