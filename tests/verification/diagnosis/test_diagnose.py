"""What a diagnosis says was measured: ranges, counts, equalities, and what else is wrong beside what has a name."""

import numpy as np
import pytest
from verification.diagnosis.test_patterns import observed, temperature

from nceref.verification.diagnosis.departure import departure
from nceref.verification.diagnosis.diagnose import diagnose
from nceref.verification.records import Result


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0, 9, "it shows at every temperature"), (0.05, 0.4, "it shows at temperature 0.07 to 0.3 (0.001 to 5")],
)
def test_a_range_of_temperatures_is_told_by_both_ends(low, high, said):
    def target(probe, value, grads):
        return (value * (1 + value) + 0.1, grads) if low < temperature(probe) < high else (value, grads)

    assert said in departure(observed("nt_xent", target))[0].sentence


def test_temperatures_that_are_no_range_are_not_told_as_one():
    def target(probe, value, grads):
        return (value, grads) if 0.05 < temperature(probe) < 0.4 else (value * (1 + value) + 0.1, grads)

    assert "it shows" not in departure(observed("nt_xent", target))[0].sentence


def test_a_gradient_a_little_off_is_called_neither_radial_nor_detached():
    """What is left along the rows of a right gradient is nothing: it must not pass for a finding."""
    rng = np.random.default_rng(0)

    def target(probe, value, grads):
        z1 = grads["z1"] + 3 * probe.bounds.grads["z1"] * rng.choice([-1.0, 1.0], np.shape(grads["z1"]))
        return value, {**grads, "z1": z1}

    seen = observed("nt_xent", target)
    assert [one.id for one in diagnose(seen)] == ["value-right-gradient-wrong"]
    assert "equals" not in diagnose(seen)[0].sentence


def test_every_gradient_that_is_wrong_is_told_beside_one_that_has_a_name():
    def target(probe, value, grads):
        return value, {**grads, "z1": 0 * grads["z1"], "z2": np.cos(grads["z2"])}

    (found,) = diagnose(observed("nt_xent", target))
    assert found.id == "first-input-detached"
    assert "the gradient of z2 is wrong" in found.sentence


def test_a_gradient_that_is_nan_does_not_hide_another_that_is_wrong():
    def target(probe, value, grads):
        return value, {**grads, "temperature": np.nan, "z1": np.cos(grads["z1"])}

    found = [one.id for one in diagnose(observed("nt_xent", target))]
    assert found == ["gradient-not-finite", "value-right-gradient-wrong"]


@pytest.mark.parametrize(("status", "said"), [("pass", "is right"), ("fail", "is wrong")])
def test_an_identity_is_told_with_its_case_and_no_cause(status, said):
    """Where all rows are equal weights, reductions and small losses do not show: nothing follows for the logits."""
    asked = [Result("c/identity.closed-form", "c", "identity.closed-form", status, None, None, None, "why")]
    seen = observed("nt_xent", lambda probe, value, grads: (value * (1 + value) + 0.1, grads))
    sentence = diagnose(seen, asked)[0].sentence
    assert sentence.endswith(f"the value of c, where all rows are equal, {said}")
    assert "first" not in sentence
