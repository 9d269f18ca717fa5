"""`nceref expect`: its page, and what it says of a value."""

import json
from dataclasses import replace

from output.page_text import plain_lines, words
from sweep import sweep

from nceref.checks.expect import expected_readings
from nceref.cli import expect_page

STUCK = ("expect", "--loss", "nt_xent", "--n", "256", "--temperature", "0.07")


@sweep("value", ["1e-4", "0"])
def test_expect_with_an_impossible_value_is_a_finding(run, value):
    status, out, _ = run(*STUCK, f"--value={value}")
    assert status == 1
    assert "is below the lower bound" in out or "no batch reads that" in words(out)


def test_help_of_expect_shows_its_example_on_one_line(run):
    out = run("expect", "--help")[1]
    assert "\n    nceref expect --loss nt_xent --n 256 --temperature 0.07 --value 6.236\n" in out


def test_expect_takes_any_size_or_scalar_by_name(run):
    status, out, _ = run(
        "expect", "--loss", "siglip", "--n", "8", "--set", "logit-scale=10", "--set", "logit_bias = -10"
    )
    assert status == 0
    assert "n = 8, logit_bias = -10, logit_scale = 10" in out


def test_ids_are_not_explained_where_there_are_none():
    answer = expected_readings("nt_xent", {"n": 8, "temperature": 1})
    bare = replace(answer, readings=tuple(replace(reading, because="by definition") for reading in answer.readings))
    assert "An id such as" not in expect_page.page_of(bare).text()


def test_expectations_fit_80_columns_and_mark_defaults_and_what_is_missing():
    lines = plain_lines(
        expect_page.page_of(expected_readings("supcon_out", {"n": 30, "temperature": 0.1, "classes": 3})).text()
    )
    assert lines[1] == "n = 30, classes = 3, views = 1 (default), temperature = 0.1, dim not given"
    assert "needs --dim" in expect_page.page_of(expected_readings("uniformity", {"n": 256})).text()


def test_scatter_of_one_batch_is_that_of_a_cosine(run):
    two = run("expect", "--loss", "uniformity", "--n", "2", "--dim", "4", "--json")[1]
    # -2t + 2t s, where the cosine has variance 1 / D.
    assert [r["spread"] for r in json.loads(two)["readings"] if r["situation"] == "chance"] == [2.0]
