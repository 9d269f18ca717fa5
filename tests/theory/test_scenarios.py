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
    for base in (*here.fixed, *against, *(here.draw(rng) for _ in range(20))):
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


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("one", [max(of_one, key=lambda claim: len(claim.formula)).id for of_one in STATED])
def test_names_are_not_broken_into_lines(one, width, monkeypatch):
    monkeypatch.setattr(claims_page, "_counterexample", lambda claim: "")
    text = claims_page.page_of(CLAIMS[one]).text(width=width)
    shown = re.findall(r"^    (\w+)(?:  .*)?$", text.split("\n  executable")[1], re.MULTILINE)
    assert {name for name, _ in claims_page.meanings(CLAIMS[one])} == set(shown) != set()
