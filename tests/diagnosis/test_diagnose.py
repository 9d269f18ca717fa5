"""What a diagnosis says: every cause that was measured, beside one another, and no other."""

import math

import numpy as np
import pytest
from catalogue import observed
from diagnosis.altered_losses import altered, samples, temperature, times
from slow import partly_slow
from sweep import sweep

from mutants.score import programs
from nceref.cases.records import Result
from nceref.diagnosis.diagnose import diagnose
from nceref.diagnosis.fresh import NO_CALLS
from nceref.diagnosis.severity import severity
from nceref.losses import LossFunction


def first(observations):
    return diagnose(observations)[0]


@sweep("name", ["nt_xent", "siglip", "uniformity"])
def test_nothing_is_said_of_a_right_target(name):
    assert diagnose(altered(name, times(1.0))) == ()


@pytest.mark.parametrize(
    ("id", "factor"),
    [
        ("outer-factor-2", 2.0),
        ("outer-factor-half", 0.5),
        ("sign-flipped", -1.0),
        ("log-base-2", 1 / math.log(2)),
        ("log-base-10", 1 / math.log(10)),
        ("outer-factor-n", samples),
        ("divided-by-n-twice", lambda probe: 1 / samples(probe)),
    ],
)
def test_a_factor_is_named(id, factor):
    found = first(altered("nt_xent", times(factor)))
    assert found.id == id
    assert "the gradient of" not in found.sentence
    assert found.fix


@pytest.mark.parametrize(
    ("id", "factor", "power"),
    partly_slow(
        [
            ("outer-factor-temperature", lambda t: t, 1),
            ("outer-factor-2-temperature", lambda t: 2 * t, 1),
            ("outer-factor-temperature-over-base", lambda t: t / 0.07, 1),
            ("outer-factor-inverse-temperature", lambda t: 1 / t, -1),
        ],
        lambda case: case[0] == "outer-factor-temperature",
        "the search of another factor",
    ),
)
def test_a_factor_with_the_temperature_is_named_with_its_gradient_or_without(id, factor, power):
    def target(probe, value, grads):
        t = temperature(probe)
        found = {name: factor(t) * grad for name, grad in grads.items()}
        return factor(t) * value, {**found, "temperature": found["temperature"] + power * factor(t) / t * value}

    found = first(altered("nt_xent", target))
    assert found.id == id
    assert "the gradient of" not in found.sentence
    detached = first(altered("nt_xent", times(lambda probe: factor(temperature(probe)))))
    assert detached.id == f"{id}+gradient-parts-scaled"
    assert "no gradient passes through the temperature of the factor; it should" in detached.sentence


def test_a_constant_that_nobody_declared_is_fitted_and_written_as_a_fraction():
    found = first(altered("supcon_out", times(2.5)))
    assert found.id == "outer-factor-constant"
    assert "= 5/2)" in found.sentence


def test_offsets_are_told_from_factors():
    added = first(altered("nt_xent", lambda probe, value, grads: (value + 1.5, grads)))
    assert (added.id, "= 3/2)" in added.sentence) == ("offset-constant", True)
    fewer = first(altered("info_nce", lambda probe, value, grads: (value - math.log(samples(probe)), grads)))
    assert (fewer.id, "- log N" in fewer.sentence) == ("offset-log-n", True)
    both = first(altered("alignment", lambda p, value, g: (3 * value - 0.25, {n: 3 * x for n, x in g.items()})))
    assert both.id == "outer-factor-constant+offset-constant"


def by_rows(weights):
    """A target that adds up the rows in its own way."""

    def target(probe, value, grads):
        loss = LossFunction(probe.loss)
        rows = loss(**probe.inputs, reduction="none")
        share = weights(rows)
        _, found = loss.value_and_grad(**probe.inputs, reduction="none", cotangent=share)
        return float(np.sum(share * rows)), {name: found[name] for name in grads}

    return target


@pytest.mark.parametrize(
    ("name", "id", "weights"),
    [
        ("nt_xent", "last-row-missing", lambda rows: np.append(np.ones(rows.size - 1), 0) / max(rows.size - 1, 1)),
        ("moco", "last-row-missing", lambda rows: np.append(np.ones(rows.size - 1), 0) / rows.size),
        ("dcl", "first-view-only", lambda rows: 2.0 * (np.arange(rows.size) < rows.size // 2) / rows.size),
        ("clip", "one-direction-only", lambda rows: np.stack([np.ones(rows.shape[1]), 0 * rows[1]]) / rows.shape[1]),
        ("clip", "other-direction-only", lambda rows: np.stack([0 * rows[1], np.ones(rows.shape[1])]) / rows.shape[1]),
        ("clip", "directions-summed", lambda rows: np.full(rows.shape, 2 / rows.size)),
    ],
)
def test_missing_rows_are_named(name, id, weights):
    found = first(altered(name, by_rows(weights)))
    assert found.id.startswith(id) or id == "directions-summed"
    assert "the gradient of" not in found.sentence


def test_a_gradient_a_little_off_is_called_neither_radial_nor_detached():
    """What is left along the rows of a right gradient is nothing: it must not pass for a finding."""
    rng = np.random.default_rng(0)

    def target(probe, value, grads):
        z1 = grads["z1"] + 3 * probe.bounds.grads["z1"] * rng.choice([-1.0, 1.0], np.shape(grads["z1"]))
        return value, {**grads, "z1": z1}

    (found,) = diagnose(altered("nt_xent", target))
    assert found.id == "value-right-gradient-wrong"
    assert "equals" not in found.sentence


def test_every_gradient_that_is_wrong_is_told_beside_one_that_has_a_name():
    def target(probe, value, grads):
        return value, {**grads, "z1": 0 * grads["z1"], "z2": np.cos(grads["z2"])}

    (found,) = diagnose(altered("nt_xent", target))
    assert found.id == "value-right-gradient-wrong", "no name of a part stands for the whole"
    assert "the gradient of z1 is 0" in found.sentence
    assert "the gradient of z2 is wrong" in found.sentence


def test_a_gradient_that_is_nan_does_not_hide_another_that_is_wrong():
    def target(probe, value, grads):
        return value, {**grads, "temperature": np.nan, "z1": np.cos(grads["z1"])}

    found = [one.id for one in diagnose(altered("nt_xent", target))]
    assert found == ["gradient-not-finite", "value-right-gradient-wrong"]


@pytest.mark.parametrize(("status", "said"), [("pass", "is right"), ("fail", "is wrong")])
def test_an_identity_is_told_with_its_case_and_no_cause(status, said):
    """Where all rows are equal weights, reductions and small losses do not show: nothing follows for the logits."""
    asked = [Result("c/identity.closed-form", "c", "identity.closed-form", status, None, None, None, "why")]
    seen = altered("alignment", lambda probe, value, grads: (value * (1 + value) + 0.1, grads))
    sentence = diagnose(seen, asked)[0].sentence
    assert sentence.endswith(f"the value of c, where all rows are equal, {said}")
    assert "first" not in sentence


def test_a_denominator_that_is_empty_leaves_no_range():
    """Without its positive the only row of a batch has nothing in its denominator; nobody trains on such a batch."""
    seen = list(observed(programs()["nt-xent-positive-not-in-the-sum"]))
    assert "where the loss with that has no finite value in float64" in diagnose(seen)[0].sentence
    assert severity(seen, NO_CALLS).elsewhere[1] == 0
