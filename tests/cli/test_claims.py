"""`nceref claims` and `nceref prove`: lists, single claims, and what evidence shows."""

import json
import re
from dataclasses import replace

import pytest

from nceref.theory import prove
from nceref.theory.verdicts import Verdict


def test_claims_are_listed_with_evidence_and_verdict(run):
    status, out, err = run("claims")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    shown = [line.split()[0] for line in out.splitlines() if re.match(r"  [A-Z]+-\d", line)]
    assert shown == list(prove.claims())
    assert f"{len(shown)} claims: " in out


def test_claims_of_a_verdict_and_of_a_source(run):
    ids = [one["id"] for one in json.loads(run("claims", "--verdict", "wrong", "--source", "003", "--json")[1])]
    assert ids == [c.id for c in prove.claims().values() if c.expected.value == "wrong" and "003" in c.source]
    assert "QT-5" in ids


def test_claims_as_json_have_the_keys_that_were_promised(run):
    content = json.loads(run("claims", "--source", "004", "--json")[1])
    promised = {"id", "source", "statement", "verdict", "evidence", "published", "computed"}
    assert all(set(one) >= promised for one in content)
    assert all(len(one["published"]) == len(one["computed"]) for one in content)


def test_one_claim_shows_its_repair_and_its_counterexample(run):
    status, out, _ = run("claims", "is-5")
    assert status == 0
    assert "It rises at every temperature only if" in out
    assert "against it" in out


def test_prove_reports_what_held_and_what_it_took(run):
    # The counterexample of PC-3 compares arrays: it ends in a NumPy bool.
    status, out, _ = run("prove", "IS-1", "IS-8", "PC-3", "--json")
    content = json.loads(out, parse_constant=pytest.fail)
    assert status == 0
    assert [one["id"] for one in content["claims"]] == ["IS-1", "IS-8", "PC-3"]
    assert content["claims"][2]["evidence"]["counterexample"]["held"] is True
    assert content["claims"][0]["evidence"]["symbolic"]["held"]
    assert content["totals"]["symbolic"] | {"seconds": 0} == {"held": 2, "run": 2, "seconds": 0}


def test_prove_exits_with_1_where_a_claim_expects_another_verdict(run, monkeypatch):
    changed = {**prove.claims(), "IS-1": replace(prove.claims()["IS-1"], expected=Verdict.WRONG)}
    monkeypatch.setattr(prove, "claims", lambda: changed)
    status, out, _ = run("prove", "IS-1")
    assert status == 1
    assert "expected wrong: all evidence holds" in out
    assert "verdicts as expected: 0 of 1" in out


def test_a_formula_is_text_within_the_page_and_latex_where_that_is_asked_for(run):
    _, page, _ = run("claims", "WL-6", "PC-6")
    assert "\\" not in page
    assert max(map(len, page.splitlines())) <= 80
    _, page, _ = run("claims", "WL-6", "--latex")
    assert r"\frac{\partial L}{\partial s_+}" in page
    status, _, errors = run("claims", "--latex")
    assert status == 2
    assert "with an ID" in errors


def test_words_in_place_of_an_id_list_the_claims_that_have_all_of_them(run):
    status, out, _ = run("claims", "hard negatives")
    assert status == 0
    assert "WL-21" in out
    assert "WL-1 " not in out
    assert run("claims", "nonsense")[0] == 2
    assert "no claim has 'upper' and 'bound' in its words or its source" in run("claims", "upper", "bound")[2]
    ids = [run(*words)[1].count("\n  SC-") for words in (("claims", "Khosla"), ("claims", "--source", "khosla"))]
    assert ids == [8, 8]
    # Of a list there is no formula to copy.
    assert "--latex goes with an ID" in run("claims", "hard negatives", "--latex")[2]
