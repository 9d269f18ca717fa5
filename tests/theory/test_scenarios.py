"""What the pages say of a claim's hypotheses and of what is drawn for it is so."""

import re

import numpy as np
import pytest
from sweep import sweep

from nceref.cli import claims_page
from nceref.registry import discover
from nceref.theory import prove, statements
from nceref.theory.claim import LOGARITHMIC, NORMAL, Drawn, Scenario

CLAIMS = prove.claims()
SCENARIOS = discover("nceref.theory.scenarios", "SCENARIO", Scenario)
STATED = [
    [claim for claim in CLAIMS.values() if claim.formula and claim.scenario == name and not claim.table]
    for name in SCENARIOS
]
"""The claims of each scenario."""


def numbers(value):
    """All numbers in lists of lists."""
    return [x for entry in value for x in numbers(entry)] if isinstance(value, list | tuple) else [float(value)]


@sweep("name", SCENARIOS)
def test_every_instance_fulfills_the_hypotheses(name):
    here, rng = SCENARIOS[name], np.random.default_rng(0)
    against = [
        claim.counterexample
        for claim in CLAIMS.values()
        if claim.scenario == name and isinstance(claim.counterexample, dict)
    ]
    for base in (*here.fixed, *against, *(here.draw(rng) for _ in range(8))):
        assert statements.evaluate(here.given, name, base, statements.DecimalSystem(30)).holds, base


@sweep("name", SCENARIOS)
def test_draws_are_from_where_it_is_said(name):
    here, rng = SCENARIOS[name], np.random.default_rng(0)
    draws = [here.draw(rng) for _ in range(400)]
    assert set(here.drawn) == set(draws[0])
    for base, said in here.drawn.items():
        if not isinstance(said, Drawn):
            continue
        counts = {len(numbers(draw[base])) for draw in draws}
        assert (min(counts), max(counts)) == (said.numbers or (1, 1)), base
        assert said.tied == any(len(set(numbers(draw[base]))) < len(numbers(draw[base])) for draw in draws), base
        drawn = np.array([x for draw in draws for x in numbers(draw[base])])
        if said.scale == NORMAL:
            assert abs(drawn.mean() - said.low) < 0.2
            assert 0.9 < drawn.std() / said.high < 1.1
            continue
        scale = np.log if said.scale == LOGARITHMIC else np.asarray
        low, high = scale(said.low), scale(said.high)
        assert low <= scale(drawn).min() < low + 0.05 * (high - low), base
        assert high - 0.05 * (high - low) < scale(drawn).max() <= high, base


@sweep("one", [one for one, claim in CLAIMS.items() if claim.evidence()])
def test_a_claim_says_what_it_is_about_and_how_its_evidence_is_carried_out(one):
    claim = CLAIMS[one]
    assert claims_page.conditions(claim)
    assert all(claims_page.carried_out(claim, kind) for kind in claim.evidence())
    if callable(claim.random):
        # How many, and from where to where.
        assert re.search(r"\d|[Oo]ne|[Ff]our", claim.random.__doc__)


def test_hypotheses_are_those_of_what_the_formula_uses():
    shown = {one: claims_page.conditions(CLAIMS[one]) for one in ("WL-5", "WL-9", "PC-4", "PC-10", "QT-8", "BS-1")}
    # The simple loss has the weight and no temperature; the push of a negative has a temperature and no weight.
    assert "0 <= w" in shown["WL-5"]
    assert "0 < t" not in shown["WL-5"]
    assert shown["WL-9"] == "one anchor and its cosines; 2 <= N, 0 < t, -1 <= s <= 1, -1 < s[1] < 1"
    assert shown["PC-4"] == "one anchor; 1 <= K, 1 <= M"
    assert shown["PC-10"] == "one anchor; 0 < alpha, 0 < K"
    assert shown["QT-8"] == "one anchor of the toy, its encoder, and its candidates"
    assert "margin" not in shown["BS-1"]


@sweep("one", [one for one, claim in CLAIMS.items() if claim.formula])
def test_what_is_not_named_among_the_hypotheses_and_draws_does_not_move_the_formula(one):
    claim, system = CLAIMS[one], statements.DecimalSystem(30)
    here, used = SCENARIOS[claim.scenario], prove.used(claim)
    for base in here.fixed[:2]:
        before = statements.evaluate(claim.formula, claim.scenario, base, system)
        other = {name: x if name in used else statements._shifted(x) for name, x in base.items()}
        assert statements.evaluate(claim.formula, claim.scenario, other, system) == before


@sweep("one", [one for one, claim in CLAIMS.items() if claim.formula])
def test_every_name_in_a_formula_of_the_page_is_explained_there(one):
    claim = CLAIMS[one]
    texts = [
        claim.formula,
        *claims_page.hypotheses(claim),
        *(x for x in claim.evidence().values() if isinstance(x, str)),
    ]
    named = set().union(*map(statements.names, texts))
    if isinstance(claim.counterexample, dict):
        statement, at = re.fullmatch(
            r"published: (.*); but .* against .*, at (.*)", prove.counter(claim).shown
        ).groups()
        named |= statements.names(statement) | {*re.findall(r"(\w+) = ", at)}
    # What is no name of the scenario is a function, or the variable of a sum.
    assert named & SCENARIOS[claim.scenario].meaning.keys() <= {name for name, _ in claims_page.meanings(claim)}


@sweep("one", [one for one, claim in CLAIMS.items() if isinstance(claim.counterexample, dict)])
def test_a_counterexample_fulfills_the_hypotheses_and_gives_what_decides_it(one):
    claim, system = CLAIMS[one], statements.DecimalSystem(30)
    given, used = claim.counterexample, prove.used(claim)
    for text in claims_page.hypotheses(claim):
        assert statements.evaluate(text, claim.scenario, given, system).holds, text
    other = {name: x if name in used else statements._shifted(x) for name, x in given.items()}
    published = [statements.evaluate(claim.as_published, claim.scenario, base, system) for base in (given, other)]
    assert published[0] == published[1]


PARTS = {"WL-2": True, "PC-13": True, "PC-21": True, "IS-7": True, "WL-1": False, "SC-4": False}


@sweep(("one", "part"), PARTS.items())
def test_evidence_by_another_formula_says_so_and_has_its_text(one, part):
    claim = CLAIMS[one]
    text = claims_page.carried_out(claim, "symbolic")
    assert text.startswith(f"{'a part of the formula' if part else 'another formula'}, {claim.symbolic}, of SymPy")
    assert text.endswith(SCENARIOS[claim.scenario].symbols.__doc__)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("one", [max(of_one, key=lambda claim: len(claim.formula)).id for of_one in STATED])
def test_names_are_not_broken_into_lines(one, width, monkeypatch):
    monkeypatch.setattr(claims_page, "_counterexample", lambda claim: "")
    text = claims_page.page_of(CLAIMS[one]).text(width=width)
    shown = re.findall(r"^    (\w+)(?:  .*)?$", text.split("\n  executable")[1], re.MULTILINE)
    assert {name for name, _ in claims_page.meanings(CLAIMS[one])} == set(shown) != set()
