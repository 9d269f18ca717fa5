"""`nceref expect`: its page, and what it says of a value."""

import json
from dataclasses import replace

import pytest
from output.page_text import plain_lines, words

from nceref.checks.expect import expected_readings
from nceref.checks.locate import locate
from nceref.cli import expect_page

STUCK = ("expect", "--loss", "nt_xent", "--n", "256", "--temperature", "0.07")


def test_expect_names_the_situation_of_a_value(run):
    status, out, err = run(*STUCK, "--value", "6.2364")
    assert (status, err) == (0, "")
    assert "6.2364 is collapse and chance (6.23637), to 5 digits.\n" in out


@pytest.mark.parametrize("value", ["-1", "1e-4", "0"])
def test_expect_with_an_impossible_value_is_a_finding(run, value):
    status, out, _ = run(*STUCK, f"--value={value}")
    assert status == 1
    assert "is below the lower bound" in out or "no batch reads that" in " ".join(out.split())


def test_help_of_expect_shows_its_example_on_one_line(run):
    out = run("expect", "--help")[1]
    assert "\n    nceref expect --loss nt_xent --n 256 --temperature 0.07 --value 6.236\n" in out


def test_expect_as_json_carries_every_digit_and_the_place(run):
    status, out, _ = run(*STUCK, "--value", "6.2364", "--json")
    answer = json.loads(out)
    assert status == 0
    assert [r["value"] for r in answer["readings"]] == sorted(r["value"] for r in answer["readings"])
    assert answer["settings"] == {"n": 256, "dim": None, "temperature": 0.07}
    assert answer["value"]["possible"]


def test_expect_takes_any_size_or_scalar_by_name(run):
    status, out, _ = run(
        "expect", "--loss", "siglip", "--n", "8", "--set", "logit-scale=10", "--set", "logit_bias = -10"
    )
    assert status == 0
    assert "n = 8, logit_bias = -10, logit_scale = 10" in out


def test_ids_are_explained_once_where_there_are_some():
    explained = "An id such as {} names the statement behind a reading"
    assert (
        words(expect_page.page_of(expected_readings("nt_xent", {"n": 8, "temperature": 1})).text()).count(
            explained.format("WL-1")
        )
        == 1
    )
    answer = expected_readings("nt_xent", {"n": 8, "temperature": 1})
    bare = replace(answer, readings=tuple(replace(reading, because="by definition") for reading in answer.readings))
    assert "An id such as" not in expect_page.page_of(bare).text()


def test_expectations_fit_80_columns_and_mark_defaults_and_what_is_missing():
    lines = plain_lines(
        expect_page.page_of(expected_readings("supcon_out", {"n": 30, "temperature": 0.1, "classes": 3})).text()
    )
    assert lines[1] == "n = 30, classes = 3, views = 1 (default), temperature = 0.1, dim not given"
    assert "needs --dim" in expect_page.page_of(expected_readings("uniformity", {"n": 256})).text()


def test_scatter_of_one_batch_stands_beside_chance(run):
    out = words(run("expect", "--loss", "uniformity", "--n", "8", "--dim", "4", "--value=-2.7")[1])
    assert "95 % interval over 17,182 draws; standard deviation of one batch: about 0.32" in out
    assert "One batch of random rows may be that far from the mean over many" in out
    two = run("expect", "--loss", "uniformity", "--n", "2", "--dim", "4", "--json")[1]
    # -2t + 2t s, where the cosine has variance 1 / D.
    assert [r["spread"] for r in json.loads(two)["readings"] if r["situation"] == "chance"] == [2.0]


def test_place_of_a_value_stands_below_the_expectations():
    answer = expected_readings("nt_xent", {"n": 256, "temperature": 0.07})
    plain_lines(page := expect_page.page_of(answer, locate(answer, "6.2364")).text())
    assert "\n6.2364 is collapse and chance (6.23637), to 5 digits.\n" in page
