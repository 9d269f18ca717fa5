"""What is judged of one case, quantity by quantity."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sweep import sweep

from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.cases.judge import _known, correct_bits, judge, of_bound
from nceref.cases.records import Observation, Outcome

pytestmark = pytest.mark.machine

LOSS = get_loss("nt_xent").declaration
PROBE = corpus(LOSS, {}, suite="quick")[0]


def right(probe=PROBE):
    return Outcome(probe.value, dict(probe.grads))


def statuses(outcome, probe=PROBE):
    return {result.quantity: result.status for result in judge(Observation(probe, outcome))}


def test_the_reference_passes_in_every_quantity():
    assert statuses(right()) == {
        quantity: "pass"
        for name in ("value", "grad.z1", "grad.z2", "grad.temperature")
        for quantity in (name, f"{name}.finite")
    }


def test_value_and_gradient_are_judged_apart():
    wrong_value = replace(right(), value=PROBE.value + 1e-9)
    assert {q for q, s in statuses(wrong_value).items() if s == "fail"} == {"value"}
    z1 = np.array(PROBE.grads["z1"])
    z1[2, 1] += 1e-9
    wrong_grad = replace(right(), grads={**PROBE.grads, "z1": z1})
    assert {q for q, s in statuses(wrong_grad).items() if s == "fail"} == {"grad.z1"}
    [failed] = [r for r in judge(Observation(PROBE, wrong_grad)) if r.status == "fail"]
    assert "[2, 1]" in failed.why
    assert failed.error == pytest.approx(1e-9, rel=1e-5)
    assert of_bound(failed) > 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_fails_as_such_and_is_compared_no_further(bad):
    by_quantity = statuses(replace(right(), value=bad))
    assert by_quantity["value.finite"] == "fail"
    assert by_quantity["value"] == "skip"
    grads = {**PROBE.grads, "z2": np.full_like(PROBE.grads["z2"], bad)}
    by_quantity = statuses(replace(right(), grads=grads))
    assert (by_quantity["value"], by_quantity["grad.z2.finite"], by_quantity["grad.z2"]) == ("pass", "fail", "skip")


def test_a_wrong_shape_of_a_gradient_is_said():
    [failed] = [
        r for r in judge(Observation(PROBE, replace(right(), grads={**PROBE.grads, "z1": np.zeros((3, 5))})))
        if r.status == "fail"
    ]  # fmt: skip
    assert "(3, 5)" in failed.why
    assert "(5, 3)" in failed.why


def test_declared_constants_must_get_no_gradient():
    loss = get_loss("moco").declaration
    probe = corpus(loss, {}, suite="quick")[0]
    queue = np.zeros_like(probe.inputs["queue"])
    assert statuses(replace(right(probe), grads={**probe.grads, "queue": queue}), probe)["grad.queue"] == "pass"
    queue[0, 0] = 1e-300
    assert statuses(replace(right(probe), grads={**probe.grads, "queue": queue}), probe)["grad.queue"] == "fail"


def test_what_cannot_be_asked_for_is_skipped_with_its_reason():
    outcome = replace(right(), grads={"z1": PROBE.grads["z1"]}, unjudged={"temperature": "it is a Python float"})
    results = {r.quantity: r for r in judge(Observation(PROBE, outcome))}
    assert results["grad.temperature"].status == "skip"
    assert results["grad.temperature"].why == "it is a Python float"


def test_trouble_is_an_error_and_a_remark_a_failure_except_for_prints():
    assert statuses(Outcome(trouble="raises", sentence="ValueError: no")) == {"behavior.raises": "error"}
    remarks = {"modifies-inputs": "it changes z1", "prints": "it prints 'hello'"}
    by_quantity = statuses(replace(right(), remarks=remarks))
    assert (by_quantity["behavior.modifies-inputs"], by_quantity["behavior.prints"]) == ("fail", "skip")


@sweep(("error", "bits"), [(0.0, 53), (0.25, 2), (2.0, 0), (2.0**-60, 53), (math.inf, 0), (math.nan, 0)])
def test_bits_that_are_right(error, bits):
    assert correct_bits(error, 1.0, 53) == bits


def test_an_error_beyond_all_numbers_leaves_no_bits():
    assert correct_bits(1e300, 1e-300, 53) == 0


def test_a_tiny_entry_of_the_reference_is_shown_as_far_as_it_is_known():
    assert _known(2.123456e-268, 1.0, 1.3e-279) == 2.12e-268
    assert _known(-2.1e-18, 1.0, 1e-17) == 0
    assert _known(0.123456789012345, 1.0, 1e-16) == 0.123456789012
