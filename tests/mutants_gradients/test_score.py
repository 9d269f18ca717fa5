"""The score of programs with gradients of their own, and of known bugs without their right diagnosis."""

from collections import Counter

import pytest
from click.testing import CliRunner

from mutants.bug import gradient_programs
from mutants.score import CORRECT, GRADIENTS, LEFT_OUT, TRIPLES, Score, ScoredProgram, group, jobs, score_program
from mutants.score_command import score as command
from mutants.score_page import score_page, score_record
from nceref.cli.mutants_page import records
from nceref.diagnosis.options import is_listed

BUG = "simple-only-the-pull"


def scored(name, part, verdict="differs", diagnoses=("unexplained",), seconds=1.0, **facts):
    return ScoredProgram(
        name, "nt_xent", "float64", part, "", verdict, diagnoses, "", False, False, 0, seconds, seconds / 2, **facts
    )


def test_the_catalogue_has_thirty_gradients_twenty_triples_and_twenty_correct_programs():
    listed = records("gradients").values()
    assert Counter(one["group"] for one in listed) == {GRADIENTS: 30, TRIPLES: 20, CORRECT: 20}
    assert all(one["wrong"] for one in listed if one["group"] == GRADIENTS)
    for program in gradient_programs().values():
        assert records("gradients")[program.id]["group"] == group(program)


def test_without_its_right_diagnosis_a_bug_is_found_and_not_named():
    result = score_program((BUG, "float64"), "quick", leave_out=True)
    assert (result.group, result.killed) == (LEFT_OUT, True)
    assert "negatives-ignored" not in "+".join(result.diagnoses)
    assert is_listed(("negatives-ignored",))
    assert score_program((BUG, "float64"), "quick").named


def test_correct_programs_have_nothing_to_leave_out():
    every, wrong = (jobs(dtypes=("float64",), wrong_alone=alone) for alone in (False, True))
    assert BUG in dict(wrong)
    assert 0 < len(wrong) < len(every)


def test_each_kind_is_counted_apart_with_its_own_limit():
    explained = [scored(str(i), GRADIENTS, diagnoses=("a",), confirmed=True) for i in range(9)]
    triples = [scored("triple", TRIPLES, diagnoses=("a",), confirmed=True, seconds=7.25, calls=31)]
    located = scored("b", GRADIENTS, diagnoses=("value-right-gradient-wrong",), confirmed=True)
    score = Score((*explained, located, *triples, scored("right", CORRECT, "conforms", ())))
    assert score.explained("float64", GRADIENTS) == Counter(confirmed=9, located=1, named=0, none=0, unconfirmed=0)
    assert score.met
    assert not Score((*explained[1:], located, *triples)).met
    assert not Score((*explained, located, scored("c", TRIPLES))).met
    page = score_page(score).text()
    assert "90% and 80% explained" in page
    assert page.split("CPU seconds")[1].split()[:3] == ["1.00", "7.25", "triple"]
    assert page.split("of these to explain")[1].split() == ["0.50", "3.62", "triple"]
    assert page.split("\ncalls")[1].split()[:3] == ["0", "31", "triple"]
    assert score_record(score)["explained"]["float64"][TRIPLES]["confirmed"] == 1


def test_only_a_score_of_known_bugs_leaves_one_out():
    with pytest.raises(Exception, match="leave-one-out is for"):
        CliRunner().invoke(command, ["--leave-one-out", "--catalogue", "gradients"], catch_exceptions=False)
