"""What happens in place of an answer: one explanation for each cause, and none of its own for what was not called."""

import pytest

import nceref
from nceref.verification.several_reports import overview_line

ENDS = """
import os


def always(x, y):
    os._exit(3)


def raises_in_two_ways(x, y):
    raise ValueError if len(x) == 8 else TypeError
"""


def verified(tmp_path, name):
    path = tmp_path / "ends.py"
    path.write_text(ENDS)
    return nceref.verify(f"{path}:{name}", "alignment", suite="quick")


def test_cases_that_were_not_tried_are_counted_beside_the_cause(tmp_path):
    report = verified(tmp_path, "always")
    (diagnosis,) = report.diagnosis
    assert diagnosis.id == "dies"
    assert diagnosis.sentence.startswith("your loss ends the process with exit code 3 on 3 of 14 cases (")
    assert diagnosis.sentence.endswith("); not tried after that: 11 of 14 cases")
    counts = {name: sum(r.quantity == name for r in report.results) for name in ("behavior.dies", "behavior.not-tried")}
    assert counts == {"behavior.dies": 3, "behavior.not-tried": 11}
    assert overview_line("always", report)[-1] == "dies"


@pytest.mark.usefixtures("in_this_process")
def test_an_id_is_named_once_in_the_overview(tmp_path):
    report = verified(tmp_path, "raises_in_two_ways")
    assert [d.id for d in report.diagnosis] == ["raises", "raises"]
    assert overview_line("raises_in_two_ways", report)[-1] == "raises"


def test_rows_in_the_place_of_their_mean_have_a_remedy_of_their_own():
    def rows(queries, documents, temperature):
        return nceref.losses.mnrl(queries, documents, temperature=temperature, reduction="none")

    # Of a single sample the only row is the mean.
    report = nceref.verify(rows, "mnrl", suite="quick")
    (diagnosis,) = report.diagnosis
    assert (diagnosis.id, report.exit_code) == ("wrong-shape", 1)
    assert diagnosis.fix == "Return the mean of the rows; to have the rows judged: --set reduction=none."
    assert nceref.verify(rows, "mnrl", suite="quick", reduction="none").ok


def test_what_has_another_form_on_one_case_has_that_of_the_others_as_its_remedy():
    def pair_of_one(queries, documents, temperature):
        value = nceref.losses.mnrl(queries, documents, temperature=temperature)
        return (value, queries @ documents.T) if len(queries) == 1 else value

    report = nceref.verify(pair_of_one, "mnrl", suite="quick")
    (diagnosis,) = report.diagnosis
    assert diagnosis.fix == "Return the loss on single-0.3 in the form that it has on the other cases."
    assert "--call" not in diagnosis.sentence
