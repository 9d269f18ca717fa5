"""Expected failures: what is read, which results they match, and how these are marked."""

import pytest
from sweep import sweep

from nceref.cases.expected_failures import (
    ExpectedFailure,
    changed_failures,
    expected_failures_in,
    mark_expected_failures,
    read_expected_failures,
)
from nceref.cases.records import Result
from nceref.errors import InputError

STATUSES = {"a-0.3/value": "fail", "a-0.3/grad.z1": "pass"}
RESULTS = [Result(id, *id.split("/"), status, 1, 1, 1, "off") for id, status in STATUSES.items()]


def marked(*named):
    """Statuses by id, of which no two results have the same."""
    out = mark_expected_failures(RESULTS, {id: ExpectedFailure("known", strict=strict) for id, strict in named})
    return {r.id: r.status for r in out}


def test_they_are_strict_and_out_of_date_ones_are_said():
    assert marked(("a-0.3/value", True), ("a-0.3/grad.z1", True), ("no/such", True)) == {
        "a-0.3/value": "xfail", "a-0.3/grad.z1": "xpass", "no/such": "fail",
    }  # fmt: skip
    assert marked(("*/value", True)) == {"a-0.3/value": "xfail", "a-0.3/grad.z1": "pass"}


def test_one_may_be_such_that_some_results_fail():
    some = marked(("*/value", "some"), ("*/grad.*", "some"), ("gone", "some"))
    assert (some["a-0.3/value"], some["a-0.3/grad.z1"]) == ("xfail", "pass")
    assert {id for id, status in some.items() if status == "fail"} == {"*/grad.*", "gone"}
    assert "fail" not in marked(("*", "some")).values()


def test_of_several_the_first_decides_and_the_others_are_in_use():
    assert marked(("*", False), ("a-0.3/grad.z1", True))["a-0.3/grad.z1"] == "pass"
    strict = marked(("a-0.3/grad.z1", True), ("*", "some"))
    assert strict == {"a-0.3/grad.z1": "xpass", "a-0.3/value": "xfail"}
    assert "fail" not in marked(("*", "some"), ("*/value", "some")).values()
    named = read_expected_failures({"a-0.3/value": "first", "*/value": "second"})
    assert mark_expected_failures(RESULTS, named)[0].why == "off [first]"


@sweep("text", ["a/value: twice as large\n# b/value never\n\n", '{"a/value": " twice as large"}'])
def test_a_file_has_lines_or_is_json(tmp_path, text):
    (tmp_path / "expected").write_text(text)
    read = expected_failures_in(tmp_path / "expected", "--expected-failures")
    assert read == {"a/value": ExpectedFailure("twice as large")}


@sweep("text", ["a/value\n", "a/value  # later\n", '{"a/value": " "}', '{"a/value": 3}'])
def test_an_id_in_a_file_has_a_reason(tmp_path, text):
    (tmp_path / "expected").write_text(text)
    with pytest.raises(InputError, match="expected: 'a/value' has no reason; write the id, a space and why it fails"):
        expected_failures_in(tmp_path / "expected", "--expected-failures")


@sweep("given", [3, "a/value", ["a/value"], {3: "reason"}, {"a/value": 3}, {"a/value": None}])
def test_an_argument_of_another_kind_is_refused(given):
    with pytest.raises(InputError, match="`expected_failures` must map ids to reasons, got "):
        read_expected_failures(given)


@sweep(
    "found",
    [
        (["outer-factor-2"], ""),
        (["epsilon-in-log", "outer-factor-2+keys-detached"], ""),
        (["epsilon-in-log"], "expected `outer-factor-2`, found `epsilon-in-log`"),
        ([], "expected `outer-factor-2`, found no explanation"),
    ],
)
def test_another_explanation_than_the_listed_one_is_a_failure(found):
    ids, sentence = found
    expected = {"*/value": ExpectedFailure("twice", diagnosis="outer-factor-2"), "*": ExpectedFailure("else")}
    changed = changed_failures(mark_expected_failures(RESULTS, expected), expected, ids)
    assert [(r.id, r.status) for r in changed] == ([("*/value", "fail")] if sentence else [])
    assert all(f"(twice), but its explanation has changed: {sentence}; mend what is new" in r.why for r in changed)
    # Of what does not fail there is nothing to explain.
    passing = {"*/grad.*": ExpectedFailure("none", strict=False, diagnosis="outer-factor-2")}
    assert not changed_failures(mark_expected_failures(RESULTS, passing), passing, ids)
