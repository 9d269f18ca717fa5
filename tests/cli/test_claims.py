"""`nceref claims` and `nceref prove`: lists, single claims, and what evidence shows."""

import json
from dataclasses import replace

from nceref.theory import prove
from nceref.theory.verdicts import Verdict


def test_claims_of_a_verdict_and_of_a_source(run):
    ids = [one["id"] for one in json.loads(run("claims", "--verdict", "wrong", "--source", "003", "--json")[1])]
    assert ids == [c.id for c in prove.claims().values() if c.expected.value == "wrong" and "003" in c.source]
    assert "QT-5" in ids


def test_each_published_number_of_a_claim_has_a_computed_one(run):
    content = json.loads(run("claims", "--source", "004", "--json")[1])
    assert all(len(one["published"]) == len(one["computed"]) for one in content)


def test_prove_exits_with_1_where_a_claim_expects_another_verdict(run, monkeypatch):
    changed = {**prove.claims(), "IS-1": replace(prove.claims()["IS-1"], expected=Verdict.WRONG)}
    monkeypatch.setattr(prove, "claims", lambda: changed)
    status, out, _ = run("prove", "IS-1")
    assert status == 1
    assert "expected wrong: all evidence holds" in out
    assert "verdicts as expected: 0 of 1" in out


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
    for words in (("hard negatives",), ()):
        assert "--latex goes with an ID" in run("claims", *words, "--latex")[2]
