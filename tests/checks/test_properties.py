"""A property is declared if and only if it holds, and every property can tell a broken loss from a sound one."""

import numpy as np
import pytest
from checks.broken_losses import MUTANTS
from checks.frozen_references import all_cases, frozen
from sweep import every_loss, sweep

from nceref import get_loss
from nceref.checks import properties, run, settings
from nceref.checks.cases import cases
from nceref.checks.properties import PROPERTIES
from nceref.losses import all_losses
from nceref.tolerance import bounds

pytestmark = pytest.mark.machine

SOUND = get_loss("nt_xent").declaration


@pytest.fixture(autouse=True, scope="module")
def two_temperatures():
    """`nceref check` has one more between them, for the first setting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "PROPERTY_TEMPERATURES", (1.0, 0.07))
        run._property_cases.cache_clear()
        yield
    run._property_cases.cache_clear()


@pytest.fixture
def few_cases(one_by_one, monkeypatch):
    """Those geometries that break what is declared for too many settings."""
    monkeypatch.setattr(run, "PROPERTY_GEOMETRIES", ("random", "mixed", "pair"))
    monkeypatch.setattr(run, "OTHER_SETTINGS", (("mixed", "pair"), (1.0,)))


MANY_SETTINGS = ("supcon_out", "supcon_in", "paco", "guided_info_nce", "multi_direction", "mnrl", "hcl")
COLD = ("cross_entropy",)
"""A setting of it breaks a property at a low temperature alone."""


@pytest.mark.parametrize("named", all_losses())
@pytest.mark.slow(reason="up to 51 settings; `nceref check` has them all as well")
def test_property_is_declared_if_and_only_if_it_holds_in_every_setting(named):
    assert_declared_exactly(named)


@pytest.mark.parametrize("named", [x for x in all_losses() if x not in (*MANY_SETTINGS, *COLD)])
@pytest.mark.usefixtures("few_cases")
def test_property_is_declared_if_and_only_if_it_holds(named):
    assert_declared_exactly(named)


def assert_declared_exactly(named):
    loss = get_loss(named).declaration
    for name, prop in PROPERTIES.items():
        result = run.check_property(loss, prop)
        assert result.status in ("pass", "skip"), result.detail
        if result.status == "skip":
            assert name not in loss.properties, f"{name}: declared, but the question does not arise"


@every_loss
def test_every_declared_name_is_a_property(loss_name):
    loss = get_loss(loss_name).declaration
    assert loss.properties.keys() <= set(PROPERTIES)
    parameters = {p.name: p for p in loss.parameters}
    for hypothesis in loss.properties.values():
        for name, allowed in hypothesis.items():
            some = allowed if isinstance(allowed, tuple) else (allowed,)
            assert set(some) <= {None, *settings.levels(parameters[name])}


def test_a_declaration_too_many_fails_by_name():
    from dataclasses import replace

    dcl = get_loss("dcl").declaration
    boastful = replace(dcl, properties={**dcl.properties, "nonnegative": {}})
    result = run.check_property(boastful, PROPERTIES["nonnegative"])
    assert (result.status, result.check) == ("fail", "nonnegative")
    assert result.detail.startswith("declared, but a row is -")


def test_a_declaration_too_few_fails_by_name():
    from dataclasses import replace

    modest = replace(SOUND, properties={k: v for k, v in SOUND.properties.items() if k != "convex_in_logits"})
    result = run.check_property(modest, PROPERTIES["convex_in_logits"])
    assert (result.status, result.check) == ("fail", "convex_in_logits")
    assert "not declared, but it holds" in result.detail


# What the pages once printed without a hypothesis, and a hypothesis that is too narrow.
TOO_WIDE = {
    "supcon_in": {"attracts_positives": "mask given"},
    "cross_entropy": {"attracts_positives": "label_smoothing=", "repels_negatives": "label_smoothing="},
    "supcon_out": {"temperature_homogeneous": "base_temperature="},
    "nt_xent": {"scale_invariant": "normalize='none'"},
}


@sweep(("loss_name", "name", "where"), [(n, k, w) for n, names in TOO_WIDE.items() for k, w in names.items()])
def test_a_property_without_its_hypothesis_fails_with_the_setting(loss_name, name, where):
    from dataclasses import replace

    loss = get_loss(loss_name).declaration
    kept = {k: v for k, v in loss.properties[name].items() if k == "normalize" and "normalize" not in where}
    result = run.check_property(replace(loss, properties={**loss.properties, name: kept}), PROPERTIES[name])
    assert result.status == "fail"
    assert where in result.detail
    assert result.detail.startswith("declared")


@pytest.mark.usefixtures("few_cases")
def test_a_hypothesis_that_is_too_narrow_fails_with_the_setting_beyond():
    from dataclasses import replace

    loss = get_loss("supcon_out").declaration
    narrow = replace(loss, properties={**loss.properties, "convex_in_logits": {"form": "mean"}})
    result = run.check_property(narrow, PROPERTIES["convex_in_logits"])
    assert result.status == "fail"
    assert "declared with form='mean', and it holds on" in result.detail
    assert "form='sum'" in result.detail


def test_weights_of_a_mask_push_a_positive_away():
    # Row weights 0.001 and 1: almost all of the weight is on the farther positive.
    z = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]])
    mask = np.array([[0, 0.001, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    slopes = get_loss("supcon_in").anatomy(z, mask=mask, temperature=0.5).slopes[0]
    p = np.exp(z @ z[0] / 0.5)
    expected = (p[1] / p[1:].sum() - 0.001 * p[1] / (0.001 * p[1] + p[2])) / 4
    np.testing.assert_allclose(slopes[1], expected, rtol=1e-12)
    assert slopes[1] > 0.15
    equal = get_loss("supcon_in").anatomy(z, mask=(mask > 0) * 0.7, temperature=0.5)
    assert np.all(equal.slopes[mask > 0] < 0)
    declared = get_loss("supcon_in").declaration
    assert not settings.holds_for(declared, "attracts_positives", {"mask": mask})
    assert settings.holds_for(declared, "attracts_positives", {"mask": (mask > 0) * 0.7})


def test_on_a_kink_a_property_may_break():
    q, k = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 0.2], [0.6, 0.8], [0.6, 0.8]])
    order, loss = [0, 2, 1], get_loss("hard_contrastive")
    given = {"temperature": 0.5, "fraction": 0.5}
    # Both negatives of the first query are equally similar: the one that comes first is kept, in either order.
    assert run.on_kink(loss.declaration, {"queries": q, "keys": k, **given})
    (value, grad), (other, turned) = (loss.value_and_grad(q[rows], k[rows], **given) for rows in ([0, 1, 2], order))
    assert value == other
    assert not np.allclose(grad["keys"][order], turned["keys"], atol=0.1)


@every_loss
def test_every_level_of_every_parameter_is_in_some_setting_that_the_loss_takes(loss_name):
    loss = get_loss(loss_name).declaration
    taken = [s for s in settings.settings(loss) if settings.cases_of(loss, s, ("random", "unnormalized"), (1.0,))]
    for p in loss.parameters:
        for level in settings.levels(p):
            # A default is not named, and what must be given is not either.
            default = level in settings._defaults(p)
            assert any(p.name not in s if default else s.get(p.name) == level for s in taken), (p.name, level)


def test_settings_are_listed_once_and_those_that_exclude_one_another_have_no_case():
    loss = get_loss("supcon_in").declaration
    listed = [tuple(sorted(map(str, s.items()))) for s in settings.settings(loss)]
    assert len(listed) == len(set(listed))
    both = {"labels": ..., "mask": ...}
    assert settings.cases_of(loss, both, ("random",), (1.0,)) == []


def test_names_alone_are_properties_without_a_hypothesis():
    from dataclasses import replace

    assert replace(SOUND, properties=frozenset({"nonnegative"})).properties == {"nonnegative": {}}


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


ALTERED = {
    "scale_invariant": lambda g: {name: np.ones_like(x) for name, x in g.items()},
    "rotation_invariant": lambda g: {**g, "z1": g["z1"] * [1.01, 1, 1]},
    "view_swap_invariant": lambda g: {**g, "z1": 1.01 * g["z1"]},
    "permutation_equivariant": lambda g: {**g, "z1": g["z1"] * np.arange(1, 1 + len(g["z1"]))[:, None]},
}


@pytest.mark.parametrize("name", ALTERED)
def test_the_gradients_that_a_property_speaks_of_are_compared(name, monkeypatch):
    grads = properties._grads
    assert PROPERTIES[name].check(SOUND, CASES[0]) is None
    monkeypatch.setattr(properties, "_grads", lambda loss, inputs: ALTERED[name](grads(loss, inputs)))
    monkeypatch.setattr(properties, "_unmoved_grads", lambda loss, case: properties._grads(loss, case.inputs))
    assert PROPERTIES[name].check(SOUND, CASES[0]).startswith("gradient of z")


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
