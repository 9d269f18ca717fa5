"""A property is declared if and only if it holds, and every property can tell a broken loss from a sound one."""

import numpy as np
import pytest
from checks.broken_losses import MUTANTS
from checks.frozen_references import all_cases, frozen
from sweep import every_loss, sweep

from nceref import get_loss
from nceref.checks import run
from nceref.checks.cases import cases
from nceref.checks.properties import PROPERTIES
from nceref.tolerance import bounds

pytestmark = pytest.mark.machine

SOUND = get_loss("nt_xent").declaration


@pytest.fixture(autouse=True, scope="module")
def two_temperatures():
    """`nceref check` has one more between them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "PROPERTY_TEMPERATURES", (1.0, 0.07))
        run._property_cases.cache_clear()
        yield
    run._property_cases.cache_clear()


@sweep("name", PROPERTIES)
@every_loss
def test_property_is_declared_if_and_only_if_it_holds(loss_name, name):
    loss = get_loss(loss_name).declaration
    result = run.check_property(loss, PROPERTIES[name])
    assert result.status in ("pass", "skip"), result.detail
    if result.status == "skip":
        assert name not in loss.properties, "declared, but the question does not arise"


@every_loss
def test_every_declared_name_is_a_property(loss_name):
    assert get_loss(loss_name).properties <= set(PROPERTIES)


def test_a_declaration_too_many_fails_by_name():
    from dataclasses import replace

    boastful = replace(get_loss("dcl").declaration, properties=get_loss("dcl").properties | {"nonnegative"})
    result = run.check_property(boastful, PROPERTIES["nonnegative"])
    assert (result.status, result.check) == ("fail", "nonnegative")
    assert result.detail.startswith("declared, but a row is -")


def test_a_declaration_too_few_fails_by_name():
    from dataclasses import replace

    modest = replace(SOUND, properties=SOUND.properties - {"convex_in_logits"})
    result = run.check_property(modest, PROPERTIES["convex_in_logits"])
    assert (result.status, result.check) == ("fail", "convex_in_logits")
    assert "not declared, but it holds" in result.detail


CASES = tuple(cases(SOUND, run.PROPERTY_GEOMETRIES, (1.0, 0.3), variants=1))
BROKEN = {mutant.name: mutant.breaks(SOUND) for mutant in MUTANTS}


def broken_by(mutants, prop):
    """Whether a property breaks for NT-Xent under one of the mutants, on some case."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return any(prop.check(BROKEN[mutant.name], case) for case in CASES for mutant in mutants)


@sweep("name", PROPERTIES)
def test_property_kills_a_mutant_that_was_not_made_for_it(name):
    assert broken_by([mutant for mutant in MUTANTS if mutant.made_for != name], PROPERTIES[name])


@sweep("mutant", [m for m in MUTANTS if m.made_for != "formula"], ids=lambda m: m.name)
def test_mutant_breaks_the_property_it_was_made_for(mutant):
    assert mutant.made_for in SOUND.properties
    assert broken_by([mutant], PROPERTIES[mutant.made_for])


@sweep("mutant", MUTANTS, ids=lambda m: m.name)
def test_mutant_makes_a_named_check_fail(mutant):
    """A broken head, statistic or backward pass: the formula says so, whatever the properties say."""
    loss = BROKEN[mutant.name]
    case = all_cases()["nt_xent/random-0-0.3"][1]
    truth = frozen(SOUND, case)
    assert run.compare(SOUND, case, np.float64, truth).of_bound <= 1
    inputs = dict(case.inputs)
    if mutant.name in ("first feature counts double", "second input shifted", "not normalized", "temperature inverted"):
        # These change what the bounds are computed from; their slack is that of the sound loss.
        allowed = bounds(SOUND, **inputs).value
        value = run.losses.LossFunction(loss)(**inputs)
        assert abs(value - truth["value"]) > allowed
    else:
        assert run.compare(loss, case, np.float64, truth).of_bound > 1


def test_the_failing_check_is_named(monkeypatch):
    monkeypatch.setattr(run, "FORMULA_GEOMETRIES", ("random",))
    broken = next(m for m in MUTANTS if m.name == "backward pass without projection").breaks(SOUND)
    failed = {result.check for result in run.check_loss(broken) if result.status == "fail"}
    assert {"formula float64", "formula float32", "radial_slope_zero"} <= failed
    assert "nonnegative" not in failed
